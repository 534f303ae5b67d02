"""Waits that end by themselves: a sleep is over, or a deadline came before what was waited for."""

from contextlib import suppress

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import EventRefused
from wakeful.contracts.events import WaitExpired, WaitResolved
from wakeful.contracts.messages import TimerOrigin
from wakeful.decisions.waking.wake_words import expired_words, slept_words
from wakeful.decisions.work_items.blockers import wait_over
from wakeful.engine.run_request import Engine
from wakeful.engine.work_items import active_wait
from wakeful.ports import WakeRow, WorkItems
from wakeful.ports.waits import WaitRow
from wakeful.runtime.wake_messages import WakeMessage, message_id_of

WAIT = "wait"
"""Of a message: the wait that it ends."""


async def end_wait(engine: Engine, wake: WakeRow) -> None:
    """Tell the agent that its time has come. The wait and the message are one transaction."""
    row, now = await engine.store.wait(wake.cause_id), engine.clock.now()
    if row is None or row.state != "open" or row.due_at > now:
        return
    message = _message(row)
    event = WaitResolved if row.wake == "timer" else WaitExpired
    ended = Fact(event(wait_id=row.wait_id, message_id=message.message_id), now, row.thread_id)
    with suppress(EventRefused):  # it was ended meanwhile
        freed = await freed_item(engine.store, row, now)
        await engine.store.admit(row.agent_id, [ended, *freed, message.fact(row.agent_id, row.thread_id, now)])


async def freed_item(store: WorkItems, row: WaitRow, now: int) -> list[Fact]:
    """The end of a wait takes away the blocker that the wait set on its work item, and no other."""
    item = await store.work_item(row.work_item_id) if row.work_item_id is not None else None
    change = wait_over(item, active_wait(row))
    return [] if change is None else [Fact(change, now)]


def _message(row: WaitRow) -> WakeMessage:
    if row.wake == "timer":
        words = slept_words(row.reason, row.created_at)
    else:
        words = expired_words(row.reason, row.wake, row.resource, row.created_at)
    return WakeMessage(
        message_id_of("wait", row.wait_id),
        words,
        "timer_tick",
        TimerOrigin(timer_id=row.wait_id),
        derived_from=row.derived_from,
        surface="timer_scheduler",
        source_refs={WAIT: row.wait_id},
        work_item_id=row.work_item_id,
    )
