"""Everything at once: pause or stop all agents of a store, and let them run again. Facts, which need no model.

What was said of single agents and turns stays as it was. It holds for agents that are made later, until somebody takes
it back. Whoever has the store can say it; the process that runs the agents ends their commands, and where none runs,
whoever says it ends what was left running.
"""

from contextlib import suppress

from wakeful.contracts.agent_identity import AgentControl
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import AgentStopped, StoreDamaged, StoreLocked
from wakeful.contracts.events import (
    RuntimeControlChanged,
    TurnInterruptRequested,
    TurnPauseLifted,
    TurnPauseRequested,
)
from wakeful.contracts.events.holds import EVERYTHING
from wakeful.contracts.waking import CHECK_THREAD
from wakeful.engine.run_request import Engine
from wakeful.ports import TurnRow
from wakeful.ports.notices import RuntimeHoldRow, RuntimeHolds
from wakeful.runtime.home_lock import runtime_lock
from wakeful.runtime.parked_providers import append_to_runtime
from wakeful.runtime.task_folders import IN_MEMORY, tasks_folder
from wakeful.runtime.tasks import RuntimeTasks


async def hold_everything(engine: Engine, control: AgentControl, *, by: str, reason: str = "") -> RuntimeHoldRow:
    """Pause or stop all agents. Turns that run rest, or are stopped, before their next step."""
    event = RuntimeControlChanged(control=control, changed_by=by, reason=reason)
    await append_to_runtime(engine, Fact(event, engine.clock.now()))
    await hold_turns(engine, control)
    await _end_left_tasks(engine)
    row = await engine.store.runtime_hold()
    assert row is not None
    return row


async def hold_turns(engine: Engine, control: AgentControl, known: set[str] | None = None) -> None:
    """Ask every open turn that does not rest. `known` have been asked before.

    The check of a timer is stopped either way: it is one command that nothing else would end, and its agent is told.
    """
    for row in await _open_turns(engine):
        if known is not None and row.turn_id in known:
            continue
        if known is not None:
            known.add(row.turn_id)
        is_check = row.thread_id.startswith(CHECK_THREAD)
        if (control == "stopped" or (control == "paused" and is_check)) and row.state != "suspended":
            asked = TurnInterruptRequested(interrupt_id=engine.ids.new("int"), requested_by=EVERYTHING)
            await _say(engine, row, asked)
        elif control == "paused":
            await _say(engine, row, TurnPauseRequested(requested_by=EVERYTHING))


async def release_everything(engine: Engine, *, by: str) -> RuntimeHoldRow:
    """Let everything run that nobody paused or stopped by name."""
    event = RuntimeControlChanged(control="running", changed_by=by)
    await append_to_runtime(engine, Fact(event, engine.clock.now()))
    for row in await _open_turns(engine):
        own = await engine.store.runtime_agent(row.agent_id)
        if (own is None or own.control == "running") and not await _rests_by_name(engine, row):
            await _say(engine, row, TurnPauseLifted(requested_by=by))
    held = await engine.store.runtime_hold()
    assert held is not None
    return held


async def refuse_if_stopped(store: RuntimeHolds) -> None:
    """Raises AgentStopped while everything is stopped: what comes from outside is refused."""
    hold = await store.runtime_hold()
    if hold is not None and hold.control == "stopped":
        raise AgentStopped(
            f"all agents are stopped by {hold.changed_by}" + (f": {hold.reason}" if hold.reason else ""),
            "Nothing was sent. To let them run: wakeful resume --all",
        )


async def _rests_by_name(engine: Engine, row: TurnRow) -> bool:
    """Did somebody pause this very turn, and nobody resume it since?"""
    named = False
    try:
        recorded = await engine.store.read(row.agent_id, turn_id=row.turn_id)
    except StoreDamaged:
        return True  # it cannot go on, and keeps no other from going on
    for entry in recorded:
        match entry.fact.event:
            case TurnPauseRequested(requested_by=who) if who != EVERYTHING:
                named = True
            case TurnPauseLifted():
                named = False
    return named


async def _open_turns(engine: Engine) -> list[TurnRow]:
    return [row async for row in engine.store.open_turns()]


async def _say(
    engine: Engine, row: TurnRow, event: TurnInterruptRequested | TurnPauseRequested | TurnPauseLifted
) -> None:
    await engine.store.admit(row.agent_id, [Fact(event, engine.clock.now(), row.thread_id, row.turn_id)])


async def _end_left_tasks(engine: Engine) -> None:
    """Commands in the background that a runtime has left. Where one runs, it ends them itself; of a store in memory
    that is always so."""
    store = engine.store
    if store.location == IN_MEMORY or not await store.open_tasks(limit=1):
        return
    with suppress(StoreLocked), runtime_lock(store.location), tasks_folder(store.location) as place:
        tasks = RuntimeTasks(engine, place, frozenset)
        await tasks.start()
        try:
            await tasks.end_commands("everything was stopped")
        finally:
            await tasks.close()
