"""Asking a turn to stop. One that runs is told by whoever runs it; one that waits for a person is ended here and now.

Ending a turn at rest takes none of the agent's code: nothing of it runs, so nothing has to be told or settled. What it
waited for is withdrawn with it, and whoever decides afterwards is told so. The same steps are decided and written as if
the turn had been taken up; what a dead process leaves half done, the next one to take the turn up finishes.
"""

from typing import Literal

from wakeful.agents.folding import fold
from wakeful.agents.known_facts import KnownFacts
from wakeful.agents.runner import TurnRunner
from wakeful.agents.work import TurnWork
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import AgentBusy, TurnNotFound
from wakeful.contracts.events import TurnInterruptRequested, TurnResumed
from wakeful.decisions.conversation_export import turn_facts
from wakeful.decisions.recovery import resume_cause, settle
from wakeful.mediation.gate import GateParts
from wakeful.ports import Claim, TurnRow
from wakeful.service.preparing import safe_keeping
from wakeful.service.requests import Runtime


async def cancel_turn(
    runtime: Runtime,
    turn_id: str,
    *,
    requested_by: str = "caller",
    reason: Literal["user_interrupt", "budget"] = "user_interrupt",
) -> bool:
    """Ask a turn to stop. False when it is over already."""
    row = await runtime.store.turn(turn_id)
    if row is None:
        raise TurnNotFound(f"there is no turn {turn_id} in {runtime.store.location}")
    if not row.is_open:
        return False
    event = TurnInterruptRequested(interrupt_id=runtime.ids.new("int"), requested_by=requested_by, reason=reason)
    await runtime.store.admit(row.agent_id, [Fact(event, runtime.clock.now(), row.thread_id, row.turn_id)])
    row = await runtime.store.turn(turn_id) or row
    if row.state == "suspended":
        await _end_at_rest(runtime, row)
    return True


async def _end_at_rest(runtime: Runtime, row: TurnRow) -> None:
    try:
        claim = await runtime.store.claim(row.turn_id)
    except AgentBusy:
        return  # somebody has taken it up: they are told
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
