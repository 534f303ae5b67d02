"""A thread that is deleted: its rows, what is refused, and rows that are made again when its words are gone."""

import pytest

from kit.runs.store_facts import AGENT, NOON, THREAD, claimed, deferred, ended, message, queued, session, started, takes
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import EventRefused
from wakeful.contracts.events import EventExpired, LeftOfEvent, ThreadDeleted, TurnEmptied
from wakeful.decisions.retention import is_of_conversation, without_words
from wakeful.ports import Store
from wakeful.ports.turns import TURNS
from wakeful.store.log_transfer import checked_log
from wakeful.testing.crash_rows import find_misfits

LATER = NOON + 1_000_000
DELETED = Fact(ThreadDeleted(deleted_by="ada", turns=2), LATER, THREAD)


async def two_turns(store: Store) -> None:
    """One that a message opened, and one that took its message from the queue."""
    await store.admit(AGENT, [session(), message(key="k1")])
    await store.append(await store.claim("turn_1"), [started("turn_1"), ended("turn_1")], last=True)
    await store.admit(AGENT, [queued("q1")])
    claim = await store.claim_thread(AGENT, THREAD, "turn_2")
    await store.append(claim, [takes("turn_2", "q1"), ended("turn_2")], last=True)


async def test_it_is_in_no_list_and_its_turns_are_turns_of_no_thread(store: Store, other: Store) -> None:
    await two_turns(store)
    await store.admit(AGENT, [DELETED])
    for each in (store, other):
        assert await each.thread(AGENT, THREAD) is None
        assert await each.threads(limit=9) == []
        assert await each.turns_of_thread(AGENT, THREAD) == []
        assert await each.read(AGENT, thread_id=THREAD) == []
        assert await each.agents_of_thread(THREAD, limit=9) == []
        assert await each.agents_of_thread(THREAD, limit=9, deleted=True) == [AGENT]
        gone = await each.deleted_turns(AGENT, THREAD)
        assert [(row.turn_id, row.deleted_at, row.prompt_preview) for row in gone] == [
            ("turn_1", LATER, ""),
            ("turn_2", LATER, ""),
        ]
        assert await each.turn_of_key("k1") == gone[0]
        assert await find_misfits(each) == []


async def test_a_message_of_the_same_name_begins_another_one(store: Store) -> None:
    await two_turns(store)
    await store.admit(AGENT, [DELETED])
    await store.admit(AGENT, [message("turn_3", at=LATER + 1)])
    row = await store.thread(AGENT, THREAD)
    assert row is not None and (row.turns, row.newest_turn, row.began_at) == (1, "turn_3", LATER + 1)
    assert [turn.turn_id for turn in await store.turns_of_thread(AGENT, THREAD)] == ["turn_3"]
    assert {entry.fact.turn_id for entry in await store.read(AGENT, thread_id=THREAD)} == {"turn_3"}
    await store.append(await store.claim("turn_3"), [started("turn_3"), ended("turn_3")], last=True)
    await store.admit(AGENT, [Fact(ThreadDeleted(deleted_by="ada"), LATER + 2, THREAD)])
    assert [row.turn_id for row in await store.deleted_turns(AGENT, THREAD)] == ["turn_3"]
    assert await find_misfits(store) == []


@pytest.mark.parametrize("what", ["a turn", "a message", "a deferred message", "nothing: it is not there"])
async def test_while_something_is_open_it_is_refused_whoever_was_faster(store: Store, what: str) -> None:
    if what == "a turn":
        await store.append(await claimed(store), [started("turn_1")])
    elif what == "nothing: it is not there":
        await store.admit(AGENT, [session()])
    else:
        await two_turns(store)
        await store.admit(AGENT, [queued("q2")])
        if what == "a deferred message":
            await store.admit(AGENT, [deferred("q2", LATER)])
    before = await store.read(AGENT)
    with pytest.raises(EventRefused):
        await store.admit(AGENT, [DELETED])
    assert await store.read(AGENT) == before


@pytest.mark.spec("STD-ENV-03")
async def test_it_names_its_thread(store: Store) -> None:
    await two_turns(store)
    with pytest.raises(EventRefused, match=r"thread\.deleted needs thread_id"):
        await store.admit(AGENT, [Fact(ThreadDeleted(deleted_by="ada"), LATER)])


async def test_rows_are_the_same_when_what_was_said_is_gone(store: Store, other: Store) -> None:
    await two_turns(store)
    await store.admit(AGENT, [DELETED])
    going = [entry for entry in await store.read(AGENT) if is_of_conversation(entry.fact.event)]
    left = [(entry.seq, without_words(entry.fact.event)) for entry in going]
    payloads = [(seq, event.model_dump(mode="json", exclude_none=True)) for seq, event in left if event is not None]
    emptied = TurnEmptied(of_turn="turn_1", left=tuple(LeftOfEvent(event_seq=s, payload=p) for s, p in payloads))
    await store.admit(AGENT, [Fact(emptied, LATER, THREAD)])
    assert await find_misfits(store) == []
    seqs = {entry.seq for entry in going}
    assert (await store.retention.expire_facts(AGENT, seqs, dry=True)).items == len(seqs)
    assert (await store.retention.expire_facts(AGENT, seqs)).items == len(seqs)
    assert (await store.retention.expire_facts(AGENT, seqs)).items == 0
    after = await other.read(AGENT)
    assert {entry.seq for entry in after if isinstance(entry.fact.event, EventExpired)} == seqs
    assert await other.verify() == []
    assert await find_misfits(other) == []
    log = await store.transfer.stored_log(AGENT)
    assert log is not None
    made = checked_log(log).tables[TURNS]  # as a store makes them that the log is brought to
    assert [*made.values()] == await store.deleted_turns(AGENT, THREAD)
    turns, costs = await store.deleted_turns(AGENT, THREAD), await store.turn_costs()
    await store.rebuild_views()
    assert (await store.deleted_turns(AGENT, THREAD), await store.turn_costs()) == (turns, costs)
    assert await find_misfits(store) == []
