"""The part of the story of all tables that is about work items and briefs."""

from typing import Any

from kit.runs.store_facts import AGENT, NOON, THREAD, TURN
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import (
    AnyEvent,
    BriefCreated,
    WorkItemBlockerChanged,
    WorkItemCompleted,
    WorkItemCreated,
    WorkItemEnqueued,
    WorkItemPicked,
    WorkItemRechecked,
    WorkItemUpdated,
    WorkQueueActivated,
    WorkQueueProjected,
    WorkQueueScheduled,
)
from wakeful.contracts.work_items import TodoItem
from wakeful.ports import Claim, Store

OTHER_TURN = "turn_9"


def item_created(name: str, turn: str = TURN, call: str = "c1", **fields: Any) -> Fact:
    given = {"objective": f"objective of {name}", **fields}
    return Fact(WorkItemCreated(work_item_id=name, **given), NOON, THREAD, turn, 1, call)


def of_item(event: AnyEvent, at: int = NOON, turn: str = TURN, step: int = 1, call: str = "c1") -> Fact:
    return Fact(event, at, THREAD, turn, step, call)


def item_enqueued(name: str, at: int = NOON) -> Fact:
    return Fact(WorkItemEnqueued(work_item_id=name, objective=f"objective of {name}", enqueued_by="ada"), at)


def brief(name: str, turn: str = TURN, **fields: Any) -> Fact:
    return Fact(BriefCreated(brief_id=name, brief_kind="result", **fields), NOON, THREAD, turn)


WORK: list[list[Fact]] = [
    [item_created("wi_1"), item_created("wi_2", todo_list=(TodoItem(text="look"),)), item_created("wi_3")],
    [of_item(WorkItemPicked(work_item_id="wi_1"), NOON + 1)],
    [Fact(WorkQueueProjected(current="wi_1", others=("wi_2",)), NOON + 2, THREAD, TURN)],
    [of_item(WorkItemUpdated(work_item_id="wi_2", blocked_by="CI", recheck_at=NOON + 9), NOON + 3)],
    [of_item(WorkItemUpdated(work_item_id="wi_1", objective="other", plan_status="ready"), NOON + 3)],
    [of_item(WorkItemCompleted(work_item_id="wi_3", text_ref="agent_1:1"), NOON + 4)],
    [of_item(WorkItemCompleted(work_item_id="wi_1"), NOON + 5), brief("brief_1", text_ref="@-1", work_item_id="wi_1")],
    [of_item(WorkItemPicked(work_item_id="wi_2"), NOON + 6), brief("brief_2", text="soon")],
    [of_item(WorkItemUpdated(work_item_id="wi_2", blocked_by="CI", recheck_at=NOON + 9), NOON + 7)],
    [Fact(WorkQueueScheduled(work_item_id="wi_2", due_at=NOON + 8, idle_turns=1), NOON + 7, THREAD, TURN)],
]
"""What the owner of the first turn does to work items, and tells of them."""
WORK_OUTSIDE: list[list[Fact]] = [
    [item_enqueued("wi_4")],
    [item_enqueued("wi_5")],
    [Fact(WorkQueueActivated(due_at=NOON + 8), NOON + 8, THREAD)],
    [Fact(WorkQueueScheduled(work_item_id="wi_4", due_at=NOON + 8), NOON + 8, THREAD)],
    [Fact(WorkQueueScheduled(), NOON + 8, THREAD)],
    [Fact(WorkItemRechecked(work_item_id="wi_2", recheck_at=NOON + 9, message_id="msg tick"), NOON + 9)],
    [Fact(WorkItemBlockerChanged(work_item_id="wi_4", blocked_by="waiting: CI", cause="wait"), NOON + 10)],
    [Fact(WorkItemBlockerChanged(work_item_id="wi_4", before="waiting: CI", cause="wait_resolved"), NOON + 11)],
]
"""What others do to them."""


async def tell_work(store: Store, claim: Claim, second: Claim) -> None:
    for facts in WORK:
        await store.append(claim, facts)
    for facts in WORK_OUTSIDE:
        await store.admit(AGENT, facts)
    await store.append(claim, [Fact(WorkQueueProjected(triggered=("wi_2", "wi_4")), NOON + 12, THREAD, TURN)])
    await store.append(second, [item_created("wi_9", OTHER_TURN)])
    await store.append(second, [of_item(WorkItemPicked(work_item_id="wi_9"), turn=OTHER_TURN)])
