"""Ending a turn that was asked to stop and that nobody runs: one that waits for a person, or was paused.

It takes none of the agent's code: nothing of it runs, so nothing has to be told or settled. What it waited for is
withdrawn with it, and whoever decides afterwards is told so. The same steps are decided and written as if the turn had
been taken up; what a dead process leaves half done, the next one to take the turn up finishes.
"""

from wakeful.agents.runner import TurnRunner
from wakeful.contracts.errors import AgentBusy
from wakeful.contracts.events import TurnResumed
from wakeful.decisions.recovery import resume_cause, settle
from wakeful.ports import Claim, TurnRow
from wakeful.service.cut_off import work_without_code
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
    work = await work_without_code(runtime, row, claim)
    if work is None or settle(work.state):
        return  # it was cut off inside a call: what became of that takes the tool's code to find out
    await TurnRunner(work).run([work.fact(TurnResumed(cause=resume_cause(work.state)))])
