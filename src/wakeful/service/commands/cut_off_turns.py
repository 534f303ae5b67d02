"""What a process left behind when it died: calls of a thread's turns, of which nobody knows what they did.

They are closed before anything else of that thread runs, so that no turn of it begins or goes on while the log still
says that such a call is under way. It takes none of the agent's code. The rest of such a turn waits for whoever takes
it up. Other threads may have other owners: what was cut off in them is settled by whoever runs or resumes them.
"""

import logging

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.errors import AgentBusy, StoreProblem
from wakeful.engine.prepare.gate import safe_keeping
from wakeful.engine.recovery import closed_beforehand
from wakeful.engine.run_request import Engine
from wakeful.engine.state_loader import fold
from wakeful.engine.turn_facts import KnownFacts
from wakeful.engine.turn_work import ModelTerms, TurnPlace, TurnWork
from wakeful.gate.turn_gate import GateParts
from wakeful.ports import Claim, TurnRow
from wakeful.views.conversation_export import turn_facts

_log = logging.getLogger("wakeful.recovery")


async def close_cut_off(engine: Engine, row: TurnRow) -> None:
    """Close what was cut off in the turns of this turn's thread, which is to be run. Other threads are left alone."""
    if row.agent_id != row.agent_name:  # made for this one turn, which settles what is its own
        return
    for each in await engine.store.turns_of_thread(row.agent_id, row.thread_id, open_only=True):
        if each.state != "running":
            continue
        try:
            claim = await engine.store.claim(each.turn_id)
        except AgentBusy as busy:
            if busy.here:
                continue  # it runs, or somebody looks at it at this moment
            return  # another process owns the thread, and whoever wants to run a turn of it is told
        try:
            await _close(engine, await engine.store.turn(each.turn_id) or each, claim)
        except StoreProblem as problem:
            _log.warning("what was cut off in turn %s cannot be closed: %s", each.turn_id, problem)
        finally:
            await engine.store.release(claim)


async def _close(engine: Engine, row: TurnRow, claim: Claim) -> None:
    work = await work_without_code(engine, row, claim)
    if work.state.config is not None and (facts := await closed_beforehand(work)):
        await engine.store.append(claim, facts, barrier=True)


async def work_without_code(engine: Engine, row: TurnRow, claim: Claim) -> TurnWork:
    """A turn as its log knows it: without models and without tools, and without what cannot be read any more."""
    store = engine.store
    recorded = await store.read(row.agent_id, after=row.window_from - 1, thread_id=row.thread_id)
    folded = await fold(store, row, recorded, lost=True)
    state = folded.state
    claim.seen = max(claim.seen, folded.last_seq)
    reader = store.turn_reader(row.agent_id, row.turn_id)
    known = KnownFacts(row.agent_id, turn_facts(recorded, row.turn_id), reader, folded.thread.limits)
    return TurnWork(
        place=TurnPlace(store, claim, row, known, folded.thread.call_ids, state),
        config=state.config or TurnConfig(agent_name=row.agent_name, model_ref=""),
        clock=engine.clock,
        terms=ModelTerms(engine.jitter),
        # Children that had come to a result have it, however long it is.
        gate=GateParts(keep=safe_keeping(store, engine.keys), fetch=store.get_blob, keys=engine.keys),
    )
