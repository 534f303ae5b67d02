"""Ending a turn that nobody runs: one that was asked to stop while it rested, or one that cannot be read any more.

It takes none of the agent's code: nothing of it runs, so nothing has to be told or settled. What it waited for is
withdrawn with it, and whoever decides afterwards is told so. The same steps are decided and written as if the turn had
been taken up, and its agent's work, memory and budget are closed with it. What a dead process leaves half done, the
next one to take the turn up finishes.

A turn whose log is whole and whose configuration is gone could be taken up by nobody, ever. It fails, and says so: what
was asked may be asked again.
"""

import asyncio
from contextlib import suppress
from functools import partial

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import AgentBusy, EventRefused, TurnUnreadable
from wakeful.contracts.events import TurnPatienceEnded
from wakeful.decisions.recovery import settle
from wakeful.decisions.state import Stop
from wakeful.decisions.step import Finish
from wakeful.decisions.turn_end import ending
from wakeful.engine.prepare.conversation import conversation_of
from wakeful.engine.recovery import given_up, resumed
from wakeful.engine.run_request import Engine
from wakeful.engine.runner import TurnRunner
from wakeful.engine.turn_end import close_turn
from wakeful.ports import Claim, TurnRow, Watch
from wakeful.service.commands.cut_off_turns import work_without_code

SOON = 20.0
"""Seconds that whoever runs a turn waits for a spend window; what takes longer is left to a later resume."""


async def rest_until_due(engine: Engine, row: TurnRow, watch: Watch, longest: float) -> bool:
    """Wait until a turn at rest is due, or until somebody says something to it, if it is due in so many seconds. One
    that somebody has taken up since is waited for by whoever wants to claim it.

    False: no time moves it, or it is due too late to be waited for here; a later resume takes it up.
    """
    wake = await engine.store.wake(row.agent_id, row.thread_id, row.turn_id)
    if wake is None or wake.due_at is None:
        now = await engine.store.turn(row.turn_id)
        return now is not None and now.state != "suspended"
    seconds = (wake.due_at - engine.clock.now()) / 1_000_000
    if seconds > longest:
        return False
    waiting = [asyncio.ensure_future(engine.clock.sleep(max(0.0, seconds))), asyncio.ensure_future(watch.wait())]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()
    return True


async def end_at_rest(engine: Engine, row: TurnRow) -> None:
    """End it, unless somebody has taken it up: then they are told."""
    try:
        claim = await engine.store.claim(row.turn_id)
    except AgentBusy:
        return
    try:
        row = await engine.store.turn(row.turn_id) or row
        if row.state == "suspended":
            await _end(engine, row, claim)
    finally:
        await engine.store.release(claim)


async def end_waiting(engine: Engine, turn_id: str, seconds: float) -> None:
    """End a turn whose provider has been away for so long: failed, and worth another try."""
    row = await engine.store.turn(turn_id)
    if row is None or row.state != "suspended":
        return
    ended = Fact(TurnPatienceEnded(seconds=seconds), engine.clock.now(), row.thread_id, turn_id)
    with suppress(EventRefused):  # it is over
        await engine.store.admit(row.agent_id, [ended])
        await end_at_rest(engine, row)


async def end_unreadable(engine: Engine, row: TurnRow, claim: Claim, why: TurnUnreadable) -> None:
    """End a turn that cannot be loaded: failed, and worth another try."""
    work = await work_without_code(engine, row, claim)
    state, message = work.state, f"the turn could not be loaded: {why.message}"
    if state.phase == "new":  # nothing of it has begun
        failed = ending(state, Finish("failed", "runtime_error", message), engine.clock.now())
        await engine.store.append(claim, [work.fact(failed)], barrier=True, rest=True)
        return
    # Nothing of it runs, so nobody has to be told before it is closed.
    state.stop = Stop("failed", "runtime_error", message, applied=True, abort="runtime_shutdown")
    await TurnRunner(work).run(await given_up(work))


async def _end(engine: Engine, row: TurnRow, claim: Claim) -> None:
    work = await work_without_code(engine, row, claim)
    if work.state.config is None or settle(work.state):
        return  # it was cut off inside a call: what became of that takes the tool's code to find out
    try:
        conversation = await conversation_of(engine.store, row, claim)
    except TurnUnreadable:  # what would be closed with it follows from something that is gone
        await TurnRunner(work).run([resumed(work)])
    else:
        await TurnRunner(work, partial(close_turn, work, conversation)).run([resumed(work)])
