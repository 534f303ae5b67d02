"""The mailbox on every backend: a message is queued, taken, said to a turn under way, processed; each by a fact."""

from dataclasses import replace
from typing import Any

import pytest

from contract.store.conftest import Backend
from kit.runs.store_facts import AGENT, NOON, THREAD, ended, message, session, started
from kit.runs.table_facts import failed, interjected
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import MessageAdmitted
from wakeful.ports import BusyThread, MessageRow, Store


def posted(turn: str, *, at: int = NOON, thread: str = THREAD, **fields: Any) -> Fact:
    fact = message(turn, at=at, thread=thread)
    assert isinstance(fact.event, MessageAdmitted)
    return replace(fact, event=fact.event.model_copy(update=fields))


async def states(store: Store, *turns: str) -> list[str]:
    rows = [await store.message(f"msg of {turn}") for turn in turns]
    return [row.state if row is not None else "none" for row in rows]


async def step(store: Store, turn: str, *facts: Fact) -> None:
    claim = await store.claim(turn)
    await store.append(claim, facts)
    await store.release(claim)


async def test_a_message_is_queued_then_taken_then_processed(store: Store) -> None:
    await store.admit(AGENT, [session(), posted("t1", key="k1")])
    queued = MessageRow(
        "msg of t1",
        AGENT,
        THREAD,
        "queued",
        band=2,
        kind="operator_prompt",
        authority="operator_instruction",
        key="k1",
        turn_id="t1",
        admitted_seq=2,
        admitted_at=NOON,
        taken_at=None,
        ended_at=None,
    )
    assert await store.message("msg of t1") == queued
    assert await store.busy_threads() == [BusyThread(AGENT, THREAD, turns=0, queued=1)]
    await step(store, "t1", replace(started("t1"), at=NOON + 1))
    taken = queued._replace(state="taken", taken_at=NOON + 1)
    assert await store.message("msg of t1") == taken
    assert await store.busy_threads() == [BusyThread(AGENT, THREAD, turns=1, queued=0)]
    await step(store, "t1", replace(ended("t1"), at=NOON + 2))
    assert await store.message("msg of t1") == taken._replace(state="processed", ended_at=NOON + 2)
    assert await store.busy_threads() == []


async def test_a_turn_that_is_begun_and_ended_in_one_append_leaves_nothing_open(store: Store) -> None:
    await store.admit(AGENT, [session(), posted("t1")])
    await step(store, "t1", started("t1"), ended("t1"))
    assert await states(store, "t1") == ["processed"]
    assert (await store.busy_threads(), await store.queued(AGENT, THREAD), await store.next_wake()) == ([], [], None)


@pytest.mark.spec("HOL-PRIO-01")
async def test_messages_are_read_by_band_and_then_first_in_first_out(store: Store) -> None:
    bands = ["background", "normal", "interject", "normal", "next", "background", "interject"]
    await store.admit(AGENT, [session()])
    for place, priority in enumerate(bands):
        await store.admit(AGENT, [posted(f"t{place}", priority=priority)])
    await store.admit(AGENT, [posted("elsewhere", thread="side")])
    expected = [f"msg of t{place}" for place in (2, 6, 4, 1, 3, 0, 5)]
    assert [row.message_id for row in await store.queued(AGENT, THREAD)] == expected
    found: list[str] = []
    last = None
    while page := await store.queued(AGENT, THREAD, after=last, limit=2):
        found += [row.message_id for row in page]
        last = page[-1]
    assert found == expected


async def test_a_turn_takes_the_messages_it_names_and_no_others(store: Store) -> None:
    await store.admit(AGENT, [session(), posted("t1")])
    await store.admit(AGENT, [posted("t2")])
    await step(store, "t1", started("t1"))
    assert await states(store, "t1", "t2") == ["taken", "queued"]
    assert [row.message_id for row in await store.queued(AGENT, THREAD)] == ["msg of t2"]
    await step(store, "t1", ended("t1"))
    assert await states(store, "t1", "t2") == ["processed", "queued"]


async def test_what_is_said_to_a_turn_under_way_ends_with_it_and_never_queues(store: Store) -> None:
    await store.admit(AGENT, [session(), posted("t1")])
    await step(store, "t1", started("t1"))
    await store.admit(AGENT, [interjected("t1", "msg also")])
    row = await store.message("msg also")
    assert row is not None and (row.state, row.band, row.turn_id) == ("interjected", 0, "t1")
    await step(store, "t1", ended("t1"))
    row = await store.message("msg also")
    assert row is not None and row.state == "processed"
    await store.admit(AGENT, [interjected("t1", "msg too late")])
    assert await store.message("msg too late") is None, "whoever said it is told that the turn is over"


async def test_a_queued_message_that_is_cancelled_is_processed_without_having_been_taken(store: Store) -> None:
    await store.admit(AGENT, [session(), posted("t1")])
    await store.admit(AGENT, [posted("t2")])
    await step(store, "t2", failed("t2"))
    assert await states(store, "t1", "t2") == ["queued", "processed"]
    assert await store.busy_threads() == [BusyThread(AGENT, THREAD, turns=0, queued=1)]
    row = await store.message("msg of t2")
    assert row is not None and row.taken_at is None


async def test_a_key_that_is_taken_admits_nothing(store: Store) -> None:
    await store.admit(AGENT, [session(), posted("t1", key="k")])
    answer = await store.admit(AGENT, [posted("t2", key="k")])
    assert answer is not None and not answer.created
    assert await states(store, "t1", "t2") == ["queued", "none"]


async def test_two_owners_of_one_agent_queue_into_one_mailbox(store: Store, backend: Backend) -> None:
    second = await backend.open()
    await store.admit(AGENT, [session(), posted("t1")])
    await second.admit(AGENT, [posted("t2")])
    await second.admit(AGENT, [posted("s1", thread="side")])
    claim, other = await store.claim("t1"), await second.claim("s1")
    await store.append(claim, [started("t1")])
    await second.append(other, [replace(started("s1"), thread_id="side")])
    for each in (store, second):
        assert await states(each, "t1", "t2", "s1") == ["taken", "queued", "taken"]
        assert await each.busy_threads() == [BusyThread(AGENT, THREAD, 1, 1), BusyThread(AGENT, "side", 1, 0)]
    await second.release(other)
    await second.close()
