"""An agent's own work between turns: it is woken for it, reminded of blockers, and given more from outside.

Each fact is compared with its row, in one transaction with the message that it causes: whoever comes second changes
nothing.
"""

from contextlib import suppress

from wakeful.contracts.authority import Authority
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import MAIN_THREAD, Fact
from wakeful.contracts.errors import EventRefused, InvalidRequest
from wakeful.contracts.events import (
    MessageAdmitted,
    WorkItemEnqueued,
    WorkItemRechecked,
    WorkQueueActivated,
    WorkQueueScheduled,
)
from wakeful.contracts.messages import SystemOrigin
from wakeful.contracts.tools import PREVIEW_CHARS
from wakeful.contracts.work_items import MAX_OBJECTIVE, WorkItem
from wakeful.decisions.policy.provenance import is_instruction
from wakeful.decisions.work_items.activation import activation, recheck_text, tick_text
from wakeful.decisions.work_items.readiness import is_recheck_due
from wakeful.engine.admission import fingerprint_of, storable
from wakeful.engine.run_request import Engine
from wakeful.engine.work_items import active_waits
from wakeful.ports import WakeRow

WORK_QUEUE = "work_queue"
"""The part of the runtime that says so."""


async def wake_for_work(engine: Engine, wake: WakeRow) -> None:
    """The time came to wake an idle agent for its own work.

    A thread that is at work, or has messages, is looked at again later: the end of its turn plans anew, and a message
    that needs no turn leaves the plan as it is.
    """
    store, now = engine.store, engine.clock.now()
    assert wake.due_at is not None
    agent_id, thread_id = wake.agent_id, wake.thread_id
    if any(thread.thread_id == thread_id for thread in await store.busy_threads(agent_id)):
        return
    items = await store.open_work_items(agent_id)
    found = activation(items, await store.current_work_item_id(agent_id), await active_waits(store, agent_id))
    activated = WorkQueueActivated(due_at=wake.due_at)
    facts = [Fact(activated, now, thread_id)]
    if found is not None:
        item = found.item
        message = _tick(engine, agent_id, item, tick_text(found), found.derived_from)
        update = {"work_item_id": item.work_item_id, "message_id": message.message_id}
        facts = [Fact(activated.model_copy(update=update), now, thread_id), Fact(message, now, thread_id)]
    with suppress(EventRefused):
        await store.admit(agent_id, facts)


async def remind_of_blocker(engine: Engine, wake: WakeRow) -> None:
    """What blocks an item is to be looked at again. The reminder changes nothing of the item's readiness."""
    store, now = engine.store, engine.clock.now()
    item = await store.work_item(wake.cause_id)
    if item is None or item.recheck_at is None or not is_recheck_due(item, now):
        return
    message = _tick(engine, wake.agent_id, item, recheck_text(item), item.derived_from)
    rechecked = WorkItemRechecked(
        work_item_id=item.work_item_id, recheck_at=item.recheck_at, message_id=message.message_id
    )
    with suppress(EventRefused):
        await store.admit(wake.agent_id, [Fact(rechecked, now), Fact(message, now, MAIN_THREAD)])


async def enqueue_work_item(engine: Engine, agent_id: str, objective: str, *, by: str) -> WorkItem:
    """Put an objective into an agent's queue, without a message and without changing what it works on.

    What returns survives a power cut. Raises AgentStopped.
    """
    said = objective.strip()
    if not said or len(said) > MAX_OBJECTIVE:
        found = f"{len(said):,} characters" if said else "nothing"
        raise InvalidRequest(f"the objective of a work item is {found}", f"Give 1 to {MAX_OBJECTIVE:,} characters.")
    store, now = engine.store, engine.clock.now()
    name = engine.ids.new("wi")
    enqueued = WorkItemEnqueued(work_item_id=name, objective=said, enqueued_by=by)
    scheduled = WorkQueueScheduled(work_item_id=name, due_at=now)
    await store.admit(agent_id, [Fact(enqueued, now), Fact(scheduled, now, MAIN_THREAD)])
    item = await store.work_item(name)
    assert item is not None
    return item


def _tick(engine: Engine, agent_id: str, item: WorkItem, words: str, derived_from: Authority) -> MessageAdmitted:
    """A message with an id of its own: a plan may be made for a moment for which there was one before, and a message
    that is there already would be taken for this one."""
    said = UserItem(parts=storable((Text(words),)))
    return MessageAdmitted(
        message_id=engine.ids.new("msg"),
        item=said,
        message_kind="system_tick",
        origin=SystemOrigin(subsystem=WORK_QUEUE),
        authority_class="runtime_instruction",
        derived_from=None if is_instruction(derived_from) else derived_from,
        priority="background",
        delivery_surface="runtime_system",
        admission_context="runtime_owned",
        work_item_id=item.work_item_id,
        fingerprint=fingerprint_of(agent_id, said),
        prompt_preview=words[:PREVIEW_CHARS],
    )
