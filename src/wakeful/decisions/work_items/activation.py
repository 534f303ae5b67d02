"""Whether an idle agent has work of its own, when it is woken for it, and with which words.

The runtime never changes the focus. It wakes the agent with a message that says which item it is about, or that there
are items to pick from; the rest is the model's. Turns that the agent started itself and that bring an item no further
are spaced out, and after many of them the item is blocked and the operator is told.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from wakeful.contracts.authority import Authority, lowest
from wakeful.contracts.events import (
    AnyEvent,
    Terminal,
    TurnFailed,
    TurnInterruptRequested,
    TurnPauseLifted,
    WorkItemCompleted,
    WorkItemCreated,
    WorkItemPicked,
    WorkItemUpdated,
)
from wakeful.contracts.events.holds import EVERYTHING
from wakeful.contracts.waking import WorkSignal
from wakeful.contracts.work_items import ActiveWait, WorkItem
from wakeful.decisions.waking.backoff import BackoffPause, Sign, TurnSigns, has_progress, pause_after, plans_after
from wakeful.decisions.waking.closure import work_signal
from wakeful.decisions.work_items.readiness import scheduling_state


class Activation(NamedTuple):
    """What an idle agent is woken for."""

    signal: WorkSignal
    item: WorkItem
    derived_from: Authority
    """The lowest authority among the causes of what the message says."""
    open_items: int


def activation(items: Sequence[WorkItem], focus: str | None, waits: Iterable[ActiveWait] = ()) -> Activation | None:
    """Given the open items, the one left alone for the longest time first; None: there is nothing to wake for."""
    active = list(waits)
    ready = [item for item in items if scheduling_state(item, active) == "runnable"]
    current = next((item for item in ready if item.work_item_id == focus), None)
    first = current or next(iter(ready), None)
    signal = work_signal(current.work_item_id if current is not None else None, first.work_item_id if first else None)
    if signal is None or first is None:
        return None
    words = [first.derived_from] if current is not None else [item.derived_from for item in ready]
    derived: Authority = next(word for word in words if word == lowest(words))
    return Activation(signal, first, derived, len(items))


def goes_on_by_itself(ended: Terminal, signal: WorkSignal, events: Iterable[AnyEvent] = ()) -> bool:
    """Is the agent woken for its work after a turn that ended like this? `events` are the turn's.

    Not after one that a person cancelled: they want it to be quiet until they say something, and that they let the
    agent run again before the turn had ended says it. Who stops everything ends no work: it goes on when all may run
    again, as that of an agent does which was stopped by name. Nor for the same item after a conversation that was too
    long for its model: the next turn would be, too.
    """
    if not isinstance(ended, TurnFailed):
        return True
    said = [event for event in events if isinstance(event, TurnInterruptRequested | TurnPauseLifted)]
    if ended.status == "cancelled" and said:
        last = said[-1]
        if isinstance(last, TurnPauseLifted) or last.requested_by == EVERYTHING:
            return True
    attempts = ended.timeline.attempts if ended.timeline is not None else ()
    is_too_long = bool(attempts) and attempts[-1].failure_kind == "context_length_exceeded"
    return ended.status != "cancelled" and not (is_too_long and signal.status == "active")


def tick_text(found: Activation) -> str:
    """The body of the message that wakes an idle agent: which item, and why."""
    item = found.item
    if found.signal.status == "active":
        return (
            f"Your current work item {item.work_item_id} is open and nothing blocks it: {item.objective}\n"
            "Go on with it. When it is done, complete it; when something is missing, say what blocks it."
        )
    more = f" ({found.open_items - 1} more open)" if found.open_items > 1 else ""
    return (
        f"You have no work item that you can go on with, and {item.work_item_id}{more} is ready: {item.objective}\n"
        "Pick one with pick_work_item and begin."
    )


def recheck_text(item: WorkItem) -> str:
    """The body of the message that reminds an agent of a blocker."""
    return (
        f"Work item {item.work_item_id} has been blocked by {item.blocked_by!r}: {item.objective}\n"
        "Look whether that still holds. If it does, say so again with update_work_item; if not, clear blocked_by. "
        "This reminder has changed nothing."
    )


# --- progress ----------------------------------------------------------------------------------------------------


def work_signs(events: Iterable[AnyEvent]) -> set[Sign]:
    """What a turn's facts about work items say of its progress.

    To name a blocker counts as a plan does: whoever names the same one at each recheck gets nowhere.
    """
    found: set[Sign] = set()
    for event in events:
        if isinstance(event, WorkItemCreated | WorkItemPicked | WorkItemCompleted):
            found.add("work")
        elif isinstance(event, WorkItemUpdated):
            found.add("work" if event.blocked_by == "" or event.objective is not None else "plan")
    return found


class ItemPause(NamedTuple):
    """How far apart the next turns for an item stand."""

    idle_turns: int
    plan_turns: int
    pause: BackoffPause


def spacing_after(item: WorkItem, turn: TurnSigns) -> ItemPause:
    """After a turn, given how often the turns before it brought the item no further."""
    plans = plans_after(item.plan_turns, turn)
    idle = 0 if has_progress(plans, turn) or not turn.is_self_started else item.idle_turns + 1
    return ItemPause(idle, plans, pause_after([TurnSigns(True)] * idle))
