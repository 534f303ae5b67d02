"""Admission: keys, and the turn a message opens."""

import asyncio

import pytest

from kit.runs.store_facts import AGENT, NOON, TURN, admitted, message, session, started
from wakeful.contracts.errors import EventRefused
from wakeful.ports import AdmissionAnswer, Store, TurnRow


async def test_a_message_opens_its_turn(store: Store) -> None:
    answer = await store.admit(AGENT, [session(), message(key="k1")])
    assert answer is not None
    assert answer.created
    assert answer.turn == TurnRow(
        turn_id=TURN,
        agent_id=AGENT,
        agent_name="calc",
        thread_id="main",
        state="admitted",
        first_seq=2,
        last_seq=2,
        window_from=2,
        turn_index=0,
        key="k1",
        fingerprint="calc: what is 1 + 1?",
        prompt_preview="what is 1 + 1?",
        waiting_for=(),
        created_at=NOON,
        ended_at=None,
        heard=2,
    )
    assert await store.turn(TURN) == answer.turn
    assert await store.turn_of_key("k1") == answer.turn


async def test_facts_without_a_message_open_nothing(store: Store) -> None:
    assert await store.admit(AGENT, [session()]) is None
    assert await store.turns() == []
    assert await store.turn_of_key("k1") is None
    assert await store.turn(TURN) is None


async def test_a_taken_key_gives_the_turn_that_has_it_and_writes_nothing(store: Store, other: Store) -> None:
    first = await store.admit(AGENT, [session(), message(key="k1")])
    for who in (store, other):
        again = await who.admit("agent_2", [session(), message("turn_2", key="k1")])
        assert again is not None
        assert first is not None
        assert (again.created, again.turn) == (False, first.turn)
    assert await store.agents() == [AGENT]


async def test_of_many_who_bring_the_same_key_at_once_one_opens_a_turn(store: Store, other: Store) -> None:
    answers = await asyncio.gather(
        *(who.admit(AGENT, [message(f"turn_{n}_{id(who)}", key="k")]) for n in range(5) for who in (store, other))
    )
    assert sum(answer.created for answer in answers if answer) == 1
    assert len({answer.turn.turn_id for answer in answers if answer}) == 1
    assert len(await store.read(AGENT)) == 1


async def test_messages_that_are_admitted_at_once_are_all_there_and_in_one_order(store: Store) -> None:
    await asyncio.gather(*(store.admit(AGENT, [message(f"turn_{n}")]) for n in range(150)))
    read = await store.read(AGENT)
    assert [one.seq for one in read] == list(range(1, 151))
    assert {one.fact.turn_id for one in read} == {f"turn_{n}" for n in range(150)}
    assert {row.first_seq for row in await store.turns()} == set(range(1, 151))


async def test_one_that_is_refused_among_many_does_not_harm_the_others(store: Store) -> None:
    await admitted(store)
    claim = await store.claim(TURN)
    results = await asyncio.gather(
        store.admit(AGENT, [message("turn_2")]),
        store.admit("agent_2", [message(TURN)]),  # another agent's turn
        store.append(claim, [started()]),
        store.admit(AGENT, [message("turn_3")]),
        return_exceptions=True,
    )
    assert [type(result) for result in results] == [AdmissionAnswer, EventRefused, list, AdmissionAnswer]
    assert [one.seq for one in await store.read(AGENT)] == [1, 2, 3, 4, 5]
    assert await store.agents() == [AGENT]


async def test_an_admission_has_one_message_at_most(store: Store) -> None:
    with pytest.raises(EventRefused, match="two messages"):
        await store.admit(AGENT, [message(), message("turn_2")])
    assert await store.agents() == []


async def test_what_is_given_up_before_it_is_written_is_not_written(store: Store) -> None:
    await admitted(store)
    claim = await store.claim(TURN)
    task = asyncio.ensure_future(store.append(claim, [started()]))
    task.cancel()
    await asyncio.wait([task])
    assert len(await store.read(AGENT)) == 2
    await store.append(claim, [started()])
    assert len(await store.read(AGENT)) == 3
