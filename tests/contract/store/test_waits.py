"""Waits and hints on every backend: a wait ends once, hints become one tick, and both are found by their time."""

import pytest

from kit.runs.store_facts import AGENT, NOON, THREAD, created, ended, queued, started
from kit.runs.waking_facts import (
    MINUTE,
    continuation,
    hinted,
    resolved,
    settled,
    triggered,
    wait_cancelled,
    wait_created,
    wait_expired,
    with_turn,
)
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import EventRefused
from wakeful.ports import Store, WakeRow

DEADLINE = NOON + 60 * MINUTE


async def waited(store: Store, *facts: Fact) -> None:
    await store.admit(AGENT, [created()])
    await with_turn(store, *(facts or (wait_created(),)), agent=AGENT)


async def test_a_wait_is_due_at_its_deadline(store: Store) -> None:
    await waited(store)
    row = WakeRow(AGENT, THREAD, "wait:wait_1", DEADLINE, "wait", "wait_1", DEADLINE, NOON)
    assert await store.next_wake() == row
    assert [wait.wait_id for wait in await store.open_waits(AGENT)] == ["wait_1"]


@pytest.mark.parametrize(
    ("fact", "state", "by"),
    [
        (resolved(), "resolved", "m1"),
        (wait_expired(), "expired", "m1"),
    ],
    ids=["resolved", "expired"],
)
async def test_a_wait_ends_once(store: Store, other: Store, fact: Fact, state: str, by: str) -> None:
    await waited(store)
    await store.admit(AGENT, [fact])
    row = await store.wait("wait_1")
    assert row is not None and (row.state, row.ended_by, row.ended_at) == (state, by, fact.at)
    assert (await store.open_waits(AGENT), await store.next_wake()) == ([], None)
    for second in (resolved(message_id="m2"), wait_expired(message_id="m2")):
        with pytest.raises(EventRefused, match=f"it was {state}"):
            await other.admit(AGENT, [second])
    assert await store.wait("wait_1") == row
    await with_turn(store, wait_cancelled(), agent=AGENT, turn="turn_c")
    assert await store.wait("wait_1") == row, "there is nothing to cancel, and the turn goes on"


async def test_a_wait_may_be_cancelled_by_a_turn_of_its_agent(store: Store) -> None:
    await waited(store)
    await with_turn(store, wait_cancelled(), agent=AGENT, turn="turn_c")
    row = await store.wait("wait_1")
    assert row is not None and (row.state, row.ended_by) == ("cancelled", "agent")
    assert (await store.open_waits(AGENT), await store.next_wake()) == ([], None)


async def test_a_wait_for_the_same_thing_takes_the_place_of_the_one_before(store: Store) -> None:
    await waited(store, wait_created(), wait_created("wait_2", resource="build 7"))
    for number in range(3, 9):
        turn = f"turn_{number}"
        await with_turn(store, wait_created(f"wait_{number}", turn), agent=AGENT, turn=turn)
    assert [row.wait_id for row in await store.open_waits(AGENT)] == ["wait_2", "wait_8"]
    first = await store.wait("wait_1")
    assert first is not None and (first.state, first.ended_by) == ("cancelled", "wait_3")
    assert [row.subject for row in await store.due_wakes(DEADLINE, limit=9)] == ["wait:wait_2", "wait:wait_8"]


async def test_a_sleep_until_a_message_comes_leaves_no_row(store: Store) -> None:
    await waited(store, wait_created(due_at=None, wake="timer", is_sleep=True))
    assert (await store.wait("wait_1"), await store.next_wake()) == (None, None)


async def test_a_wait_that_expires_and_its_message_are_one(store: Store, other: Store) -> None:
    await waited(store)
    await store.admit(AGENT, [wait_expired(message_id="m1"), queued("m1")])
    with pytest.raises(EventRefused):
        await other.admit(AGENT, [wait_expired(message_id="m2"), queued("m2")])
    assert (await store.message("m2")) is None
    assert (await store.message("m1")) is not None


async def test_a_wait_has_an_id_of_its_own(store: Store) -> None:
    await waited(store)
    with pytest.raises(EventRefused, match="there is a wait wait_1 already"):
        await with_turn(store, wait_created(turn="turn_2"), agent=AGENT, turn="turn_2")


async def test_a_hint_for_a_free_thread_is_due_at_once(store: Store) -> None:
    await store.admit(AGENT, [created(), hinted(at=NOON + 3)])
    assert await store.next_wake() == WakeRow(AGENT, THREAD, "hint", NOON + 3, "hint", "hint_1", NOON + 3, NOON + 3)


async def test_a_hint_for_a_busy_thread_is_due_when_its_turn_has_ended(store: Store) -> None:
    await store.admit(AGENT, [created(), queued("m1")])
    claim = await store.claim_thread(AGENT, THREAD, "t1")
    begun = started("t1")
    begun.event = begun.event.model_copy(update={"prompt_preview": "?", "message_ids": ("m1",)})
    await store.append(claim, [begun])
    await store.admit(AGENT, [hinted(at=NOON + 1)])
    assert await store.next_wake() is None
    end = ended("t1")
    end.at = NOON + 9
    await store.append(claim, [end])
    await store.release(claim)
    assert await store.next_wake() == WakeRow(AGENT, THREAD, "hint", NOON + 9, "hint", "hint_1", NOON + 9, NOON + 9)


async def test_a_hint_behind_a_message_that_needs_no_turn_is_due_when_that_is_settled(store: Store) -> None:
    await store.admit(AGENT, [created(), queued("m1")])
    await store.admit(AGENT, [hinted(at=NOON + 1)])
    assert [row.subject for row in await store.due_wakes(DEADLINE, limit=9)] == [""]
    await store.admit(AGENT, [continuation(at=NOON + 4), settled(at=NOON + 4)])
    assert [row.subject for row in await store.due_wakes(DEADLINE, limit=9)] == ["hint"]
    row = await store.message("m1")
    assert row is not None and (row.state, row.turn_id, row.ended_at) == ("processed", "", NOON + 4)


@pytest.mark.spec("HOL-STATE-12")
async def test_a_thousand_hints_are_one_pending_hint_and_those_that_say_something_are_kept(store: Store) -> None:
    await store.admit(AGENT, [created(), hinted(body="first")])
    for place in range(2, 12):
        await store.admit(AGENT, [hinted(f"hint_{place}", NOON + place, body="more" if place > 9 else None)])
    row = await store.pending_hint(AGENT, THREAD)
    assert row is not None and (row.hints, row.first_hint_id, row.first_at, row.last_at) == (
        11,
        "hint_1",
        NOON,
        NOON + 11,
    )
    assert len(row.stored_seqs) == 3
    assert len(await store.due_wakes(DEADLINE, limit=99)) == 1


async def test_hints_become_a_tick_once(store: Store, other: Store) -> None:
    await store.admit(AGENT, [created(), hinted()])
    await store.admit(AGENT, [hinted("hint_2")])
    with pytest.raises(EventRefused, match="is not what is pending"):
        await store.admit(AGENT, triggered(hints=1))
    await store.admit(AGENT, triggered(hints=2))
    with pytest.raises(EventRefused, match="is not what is pending"):
        await other.admit(AGENT, triggered(hints=2, message_id="tick_2"))
    assert await store.pending_hint(AGENT, THREAD) is None
    assert [row.subject for row in await store.due_wakes(DEADLINE, limit=9)] == [""], "the tick, and no hint"


@pytest.mark.spec("HOL-CONT-20", "HOL-STATE-14")
async def test_the_newest_continuation_of_an_agent_is_kept(store: Store) -> None:
    await store.admit(AGENT, [created(), continuation("m1", at=NOON)])
    await store.admit(AGENT, [continuation("m2", "deferred", at=NOON + 1)])
    row = await store.last_continuation(AGENT)
    assert row is not None and (row.message_id, row.treatment, row.message_kind, row.at) == (
        "m2",
        "deferred",
        "system_tick",
        NOON + 1,
    )
    assert row.resolution["class"] == "liveness_only"
