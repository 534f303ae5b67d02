"""Work items, their focus and briefs on every backend: a turn asserts, and what others write is compared first."""

from typing import Any

import pytest

from kit.runs.store_facts import AGENT, NOON, THREAD, TURN, claimed
from kit.runs.table_facts import OTHER
from kit.runs.work_facts import OTHER_TURN, brief, item_created, item_enqueued, of_item
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import EventRefused
from wakeful.contracts.events import (
    WorkItemBlockerChanged,
    WorkItemCompleted,
    WorkItemPicked,
    WorkItemRechecked,
    WorkItemUpdated,
    WorkQueueActivated,
    WorkQueueProjected,
    WorkQueueScheduled,
)
from wakeful.contracts.work_items import TodoItem, WorkItem
from wakeful.ports import BriefRow, Store


def rechecked(at: int, message: str = "msg tick", due: int = NOON + 9) -> Fact:
    return Fact(WorkItemRechecked(work_item_id="wi_1", recheck_at=due, message_id=message), at)


def blocker(at: int = NOON, **fields: Any) -> Fact:
    return Fact(WorkItemBlockerChanged(work_item_id="wi_1", **fields), at)


async def item(store: Store, name: str = "wi_1") -> WorkItem:
    found = await store.work_item(name)
    assert found is not None
    return found


@pytest.mark.spec("HOL-WORK-02", "HOL-WORK-03", "HOL-WORK-04", "HOL-WORK-05")
async def test_a_created_item_has_one_open_record(store: Store) -> None:
    claim = await claimed(store)
    todos = (TodoItem(text="look"), TodoItem(text="mend", state="in_progress"))
    await store.append(claim, [item_created("wi_1", plan_status="ready", todo_list=todos, workspace_id="ws_1")])
    assert await item(store) == WorkItem(
        work_item_id="wi_1",
        agent_id=AGENT,
        thread_id=THREAD,
        workspace_id="ws_1",
        objective="objective of wi_1",
        state="open",
        plan_status="ready",
        todo_list=({"text": "look", "state": "pending"}, {"text": "mend", "state": "in_progress"}),
        blocked_by=None,
        recheck_at=None,
        recheck_message_id="",
        recheck_consumed_at=None,
        triggered_at=None,
        report_event_id="",
        derived_from="operator_instruction",
        turns=(),
        idle_turns=0,
        plan_turns=0,
        created_by="agent",
        created_at=NOON,
        updated_at=NOON,
        completed_at=None,
    )


@pytest.mark.spec("HOL-WORK-07")
async def test_the_focus_is_the_agents_and_goes_when_its_item_is_completed(store: Store) -> None:
    claim = await claimed(store)
    await store.append(claim, [item_created("wi_1"), item_created("wi_2")])
    before = await item(store)
    await store.append(claim, [of_item(WorkItemPicked(work_item_id="wi_1"), NOON + 1)])
    assert await store.current_work_item_id(AGENT) == "wi_1"
    assert await item(store) == before, "nothing in the item says that it is current"
    await store.append(claim, [of_item(WorkItemCompleted(work_item_id="wi_2"), NOON + 2)])
    assert await store.current_work_item_id(AGENT) == "wi_1"
    await store.append(claim, [of_item(WorkItemCompleted(work_item_id="wi_1"), NOON + 3)])
    assert await store.current_work_item_id(AGENT) is None
    assert [each.work_item_id for each in await store.completed_work_items(AGENT)] == ["wi_1", "wi_2"]
    assert await store.open_work_items(AGENT) == []


@pytest.mark.spec("HOL-WTOOL-09", "HOL-WTOOL-10", "HOL-WTOOL-14")
async def test_a_deadline_stays_with_its_blocker_and_goes_with_it(store: Store) -> None:
    claim = await claimed(store)
    await store.append(claim, [item_created("wi_1")])
    await store.append(claim, [of_item(WorkItemUpdated(work_item_id="wi_1", blocked_by="CI", recheck_at=NOON + 9))])
    await store.append(claim, [of_item(WorkItemUpdated(work_item_id="wi_1", objective="other"), NOON + 1)])
    blocked = await item(store)
    assert (blocked.objective, blocked.blocked_by, blocked.recheck_at) == ("other", "CI", NOON + 9)
    await store.admit(AGENT, [rechecked(NOON + 9)])
    await store.append(claim, [of_item(WorkItemUpdated(work_item_id="wi_1", blocked_by=""), NOON + 10)])
    free = await item(store)
    assert (free.blocked_by, free.recheck_at, free.recheck_message_id, free.recheck_consumed_at) == (
        None,
        None,
        "",
        None,
    )
    await store.append(claim, [of_item(WorkItemUpdated(work_item_id="wi_1", blocked_by="CI", recheck_at=NOON + 20))])
    await store.append(claim, [of_item(WorkItemCompleted(work_item_id="wi_1", text_ref="agent_1:4"), NOON + 30)])
    done = await item(store)
    assert (done.state, done.blocked_by, done.recheck_at, done.completed_at) == ("completed", None, None, NOON + 30)
    assert done.report_event_id == "agent_1:4"


@pytest.mark.spec("HOL-WORK-14")
async def test_a_deadline_reminds_once_and_is_consumed_when_a_model_turn_saw_it(store: Store) -> None:
    claim = await claimed(store)
    await store.append(claim, [item_created("wi_1")])
    await store.append(claim, [of_item(WorkItemUpdated(work_item_id="wi_1", blocked_by="CI", recheck_at=NOON + 9))])
    await store.admit(AGENT, [rechecked(NOON + 9)])
    reminded = await item(store)
    assert (reminded.recheck_message_id, reminded.recheck_consumed_at) == ("msg tick", None)
    with pytest.raises(EventRefused, match="is settled"):
        await store.admit(AGENT, [rechecked(NOON + 10, "msg again")])
    await store.append(claim, [Fact(WorkQueueProjected(triggered=("wi_1",)), NOON + 11, THREAD, TURN)])
    seen = await item(store)
    assert (seen.recheck_consumed_at, seen.triggered_at, seen.blocked_by) == (NOON + 11, None, "CI")
    with pytest.raises(EventRefused, match="is settled"):
        await store.admit(AGENT, [rechecked(NOON + 12, "msg later")])
    await store.append(claim, [of_item(WorkItemUpdated(work_item_id="wi_1", blocked_by="CI", recheck_at=NOON + 99))])
    await store.admit(AGENT, [rechecked(NOON + 99, "msg next", NOON + 99)])
    assert (await item(store)).recheck_message_id == "msg next", "a new deadline reminds anew"


async def test_the_runtime_never_touches_a_blocker_that_somebody_else_set(store: Store) -> None:
    claim = await claimed(store)
    await store.append(claim, [item_created("wi_1")])
    await store.admit(AGENT, [blocker(blocked_by="waiting: CI", cause="wait")])
    await store.append(claim, [of_item(WorkItemUpdated(work_item_id="wi_1", blocked_by="a person"), NOON + 1)])
    before = await item(store)
    with pytest.raises(EventRefused, match="blocked by 'a person'"):
        await store.admit(AGENT, [blocker(before="waiting: CI", cause="wait_resolved")])
    assert await item(store) == before
    await store.admit(AGENT, [blocker(NOON + 2, before="a person", blocked_by=None, cause="wait_resolved")])
    assert (await item(store)).triggered_at == NOON + 2


async def test_a_completed_item_stays_as_it_is(store: Store) -> None:
    """Two threads of an agent may be at work at once: whoever comes after the completion changes nothing."""
    claim = await claimed(store)
    await store.append(claim, [item_created("wi_1")])
    await store.append(claim, [of_item(WorkItemCompleted(work_item_id="wi_1", text_ref="agent_1:3"), NOON + 1)])
    done = await item(store)
    for event in (
        WorkItemUpdated(work_item_id="wi_1", objective="other"),
        WorkItemPicked(work_item_id="wi_1"),
        WorkItemCompleted(work_item_id="wi_1"),
    ):
        await store.append(claim, [of_item(event, NOON + 2)])
        assert await item(store) == done
    assert await store.current_work_item_id(AGENT) is None
    with pytest.raises(EventRefused, match="is completed"):
        await store.admit(AGENT, [blocker(blocked_by="waiting: CI", cause="wait")])


async def test_an_item_that_is_there_is_not_enqueued_again(store: Store) -> None:
    await claimed(store)
    await store.admit(AGENT, [item_enqueued("wi_1")])
    enqueued = await item(store)
    assert (enqueued.created_by, enqueued.thread_id, enqueued.state) == ("ada", "main", "open")
    with pytest.raises(EventRefused, match="wi_1 is there already"):
        await store.admit(AGENT, [item_enqueued("wi_1", NOON + 1)])
    assert await item(store) == enqueued


async def test_items_are_their_own_agents(store: Store) -> None:
    claim = await claimed(store)
    second = await claimed(store, OTHER_TURN, OTHER)
    await store.append(claim, [item_created("wi_1")])
    before = await item(store)
    for event in (WorkItemUpdated(work_item_id="wi_1", objective="mine"), WorkItemPicked(work_item_id="wi_1")):
        with pytest.raises(EventRefused, match="which this agent has not"):
            await store.append(second, [of_item(event, turn=OTHER_TURN)])
    with pytest.raises(EventRefused, match="belongs to agent agent_1"):
        await store.append(second, [item_created("wi_1", OTHER_TURN)])
    assert await item(store) == before


async def test_what_an_item_says_derives_from_the_lowest_word_that_changed_it(store: Store) -> None:
    claim = await claimed(store)
    await store.append(claim, [item_created("wi_1")])
    for word in ("external_evidence", "operator_instruction"):
        await store.append(claim, [of_item(WorkItemUpdated(work_item_id="wi_1", objective="x", derived_from=word))])
    assert (await item(store)).derived_from == "external_evidence"


async def test_the_current_item_names_the_newest_turns_that_began_with_it(store: Store) -> None:
    claim = await claimed(store)
    await store.append(claim, [item_created("wi_1")])
    await store.append(claim, [Fact(WorkQueueProjected(current="wi_1"), NOON + 1, THREAD, TURN)])
    assert (await item(store)).turns == (TURN,)


@pytest.mark.spec("HOL-BRIEF-03", "HOL-BRIEF-11")
async def test_a_brief_names_the_event_that_holds_its_words(store: Store) -> None:
    claim = await claimed(store)
    facts = [
        item_created("wi_1"),
        brief("brief_1", text_ref="@-1", work_item_id="wi_1", related_message_id="msg_1", workspace_id="ws_1"),
        brief("brief_2", text="soon"),
        brief("brief_3"),
    ]
    await store.append(claim, facts)
    first = claim.seen - len(facts) + 1
    rows = await store.briefs(AGENT)
    words = f"{AGENT}:{first}"
    assert [row.text_event_id for row in rows] == ["", f"{AGENT}:{first + 2}", words], "the newest first"
    assert rows[-1] == BriefRow(
        "brief_1",
        AGENT,
        THREAD,
        TURN,
        kind="result",
        visibility="turn_result",
        work_item_id="wi_1",
        workspace_id="ws_1",
        related_message_id="msg_1",
        related_task_id="",
        created_seq=first + 1,
        text_event_id=words,
        created_at=NOON,
    )


async def test_a_recheck_has_a_wake_until_it_is_told_or_the_blocker_is_gone(store: Store) -> None:
    claim = await claimed(store)
    await store.append(claim, [item_created("wi_1")])

    async def due() -> int | None:
        row = await store.wake(AGENT, "main", "recheck:wi_1")
        return row.due_at if row is not None else None

    async def blocked_until(at: int) -> None:
        event = WorkItemUpdated(work_item_id="wi_1", blocked_by="CI", recheck_at=at)
        await store.append(claim, [of_item(event)])
        assert await due() == at

    await blocked_until(NOON + 9)
    await blocked_until(NOON + 19)
    await store.append(claim, [of_item(WorkItemUpdated(work_item_id="wi_1", objective="other"))])
    assert await due() == NOON + 19
    await store.admit(AGENT, [rechecked(NOON + 19, due=NOON + 19)])
    assert await due() is None
    await blocked_until(NOON + 29)
    await store.append(claim, [of_item(WorkItemUpdated(work_item_id="wi_1", blocked_by=""))])
    assert await due() is None
    await blocked_until(NOON + 39)
    await store.append(claim, [of_item(WorkItemCompleted(work_item_id="wi_1"))])
    assert await due() is None


async def test_an_agent_is_woken_once_for_each_time_that_was_set_for_its_work(store: Store) -> None:
    claim = await claimed(store)
    await store.append(claim, [item_created("wi_1")])

    def scheduled(due_at: int | None, idle: int = 0) -> Fact:
        event = WorkQueueScheduled(work_item_id="wi_1" if due_at else None, due_at=due_at, idle_turns=idle)
        return Fact(event, NOON, THREAD, TURN)

    def activated(due_at: int) -> Fact:
        return Fact(WorkQueueActivated(due_at=due_at, work_item_id="wi_1"), NOON + 9, THREAD)

    await store.append(claim, [scheduled(NOON + 5, idle=2)])
    assert (await item(store)).idle_turns == 2
    await store.append(claim, [scheduled(NOON + 7)])
    with pytest.raises(EventRefused, match="no work that is due"):
        await store.admit(AGENT, [activated(NOON + 5)])
    await store.admit(AGENT, [activated(NOON + 7)])
    with pytest.raises(EventRefused, match="no work that is due"):
        await store.admit(AGENT, [activated(NOON + 7)])
    await store.append(claim, [scheduled(NOON + 8)])
    await store.append(claim, [scheduled(None)])
    assert await store.wake(AGENT, THREAD, "work") is None


async def test_items_are_read_page_by_page_in_the_order_in_which_they_were_made(store: Store) -> None:
    await claimed(store)
    for number in range(5):
        await store.admit(AGENT, [item_enqueued(f"wi_{number}", NOON + number)])
    first = await store.work_items_by_birth(AGENT, "open", limit=2)
    assert [each.work_item_id for each in first] == ["wi_4", "wi_3"]
    await store.admit(AGENT, [blocker(NOON + 9, blocked_by="waiting: CI", cause="wait")])
    rest = await store.work_items_by_birth(AGENT, "open", limit=9, after=first[-1])
    assert [each.work_item_id for each in rest] == ["wi_2", "wi_1", "wi_0"], "a change moves no item"
    assert await store.work_items_by_birth(AGENT, "completed", limit=9) == []
