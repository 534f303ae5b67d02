"""Where a thread of an agent stands between two turns, read from rows: its newest turn, its waits, its work."""

from typing import NamedTuple

from wakeful.contracts.envelope import MAIN_THREAD
from wakeful.contracts.waking import ClosureDecision, WorkSignal
from wakeful.contracts.work_items import SchedulingState
from wakeful.decisions.waking.closure import ClosureFacts, FocusedItem, ItemWait, OpenWait, closure_of, work_signal
from wakeful.decisions.work_items.readiness import scheduling_state, work_views
from wakeful.engine.run_request import Engine
from wakeful.engine.work_items import active_wait
from wakeful.ports import TurnRow
from wakeful.ports.waits import WaitRow

MOST_ITEMS = 64
"""Work items that are looked at."""
_ITEM_WAITS: dict[SchedulingState, ItemWait] = {
    "waiting_operator": "operator",
    "waiting_task": "task",
    "waiting_external": "external",
    "blocked": "blocked",
}


class ThreadStanding(NamedTuple):
    """What a decision about a thread rests on."""

    closure: ClosureDecision
    turns: list[TurnRow]
    """Its newest turns, oldest first."""
    waits: list[WaitRow]
    """Its open waits."""
    every_wait: list[WaitRow]
    """Those of the whole agent."""


async def standing_of(
    engine: Engine, agent_id: str, thread_id: str, *, turns: int = 1, runtime_error: str = ""
) -> ThreadStanding:
    """Where a thread stands. Work belongs to the agent's own loop: to `main`, and to no other thread.

    `runtime_error` is what the agent is paused for because it could not be run; a turn begins after that is over.
    """
    store = engine.store
    every_wait = await store.open_waits(agent_id)
    waits = [row for row in every_wait if row.thread_id == thread_id]
    newest = await store.turns_of_thread(agent_id, thread_id, last=turns)
    last = newest[-1] if newest else None
    state = last.state if last is not None else None
    runnable, focused = await _work(engine, agent_id, every_wait) if thread_id == MAIN_THREAD else (None, None)
    facts = ClosureFacts(
        runtime_error=runtime_error,
        running_turn=last.turn_id if last is not None and last.is_open else "",
        started_turn=last.turn_id if last is not None else "",
        terminal=state if state in ("completed", "incomplete", "failed", "cancelled") else None,
        waits=tuple(OpenWait(row.wait_id, row.wake) for row in waits if row.work_item_id is None),
        runnable=runnable,
        focused=focused,
    )
    return ThreadStanding(closure_of(facts), newest, waits, every_wait)


async def _work(engine: Engine, agent_id: str, waits: list[WaitRow]) -> tuple[WorkSignal | None, FocusedItem | None]:
    """The work that could go on, and what the item in focus waits for."""
    items = await engine.store.open_work_items(agent_id, limit=MOST_ITEMS)
    if not items:
        return None, None
    active = [active_wait(row) for row in waits]
    states = {item.work_item_id: scheduling_state(item, active) for item in items}
    views = work_views(items, await engine.store.current_work_item_id(agent_id))
    focus = views.current.work_item_id if views.current is not None else None
    runnable = focus if focus is not None and states[focus] == "runnable" else None
    queued = next((item.work_item_id for item in views.queued if states[item.work_item_id] == "runnable"), None)
    focused = None if focus is None else FocusedItem(focus, _ITEM_WAITS.get(states[focus]))
    return work_signal(runnable, queued), focused
