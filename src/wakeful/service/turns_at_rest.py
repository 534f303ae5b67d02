"""Ending a turn that was asked to stop and that nobody runs: one that waits for a person, or was paused.

It takes none of the agent's code: nothing of it runs, so nothing has to be told or settled. What it waited for is
withdrawn with it, and whoever decides afterwards is told so. The same steps are decided and written as if the turn had
been taken up; what a dead process leaves half done, the next one to take the turn up finishes.
"""

from wakeful.agents.folding import fold
from wakeful.agents.known_facts import KnownFacts
from wakeful.agents.runner import TurnRunner
from wakeful.agents.work import TurnWork
from wakeful.contracts.errors import AgentBusy
from wakeful.contracts.events import TurnResumed
from wakeful.decisions.conversation_export import turn_facts
from wakeful.decisions.recovery import resume_cause, settle
from wakeful.mediation.gate import GateParts
from wakeful.ports import Claim, TurnRow
from wakeful.service.preparing import safe_keeping
from wakeful.service.requests import Runtime


async def end_at_rest(runtime: Runtime, row: TurnRow) -> None:
    """End it, unless somebody has taken it up: then they are told."""
    try:
        claim = await runtime.store.claim(row.turn_id)
    except AgentBusy:
        return
    try:
        row = await runtime.store.turn(row.turn_id) or row
        if row.state == "suspended":
            await _end(runtime, row, claim)
    finally:
        await runtime.store.release(claim)


async def _end(runtime: Runtime, row: TurnRow, claim: Claim) -> None:
    store = runtime.store
    recorded = await store.read(row.agent_id, after=row.window_from - 1, thread_id=row.thread_id)
    folded = await fold(store, row, recorded)
    state = folded.state
    if state.config is None or settle(state):
        return  # it was cut off inside a call: what became of that takes the tool's code to find out
    claim.seen = max(claim.seen, folded.last_seq)
    of_turn = turn_facts(recorded, row.turn_id)
    work = TurnWork(
        store=store,
        claim=claim,
        row=row,
        state=state,
        config=state.config,
        models=(),
        tools={},
        clock=runtime.clock,
        ids=runtime.ids,
        jitter=runtime.jitter,
        call_ids=folded.call_ids,
        known=KnownFacts(row.agent_id, of_turn, store.reader(row.agent_id, row.turn_id)),
        # Children that had come to a result have it, however long it is.
        gate=GateParts(keep=safe_keeping(store, runtime.keys), fetch=store.get_blob, keys=runtime.keys),
    )
    await TurnRunner(work).run([work.fact(TurnResumed(cause=resume_cause(state)))])
