"""Messages that no turn was opened for, on every backend: queued, taken by a turn's start, deferred, expired."""

import asyncio
from dataclasses import replace

import pytest

from contract.store.conftest import Backend
from kit.runs.store_facts import (
    AGENT,
    NOON,
    THREAD,
    created,
    deferred,
    ended,
    expired,
    message,
    queued,
    requested,
    started,
    takes,
)
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import AgentBusy, AgentStopped, EventRefused, OwnerFenced, TurnNotFound
from wakeful.contracts.events import AgentStateChanged
from wakeful.ports import AdmissionAnswer, BusyThread, Claim, MessageRow, Store, WakeRow

MINUTES = 60_000_000


async def filled(store: Store, *names: str) -> None:
    """A thread in which these messages wait."""
    await store.admit(AGENT, [created()])
    for name in names:
        await store.admit(AGENT, [queued(name)])


async def states(store: Store, *names: str) -> list[str]:
    rows = [await store.message(name) for name in names]
    return [row.state if row is not None else "none" for row in rows]


async def opened(store: Store, turn: str, *names: str) -> Claim:
    claim = await store.claim_thread(AGENT, THREAD, turn)
    await store.append(claim, [takes(turn, *names)])
    return claim


async def test_a_message_without_a_turn_is_queued_and_opens_none(store: Store) -> None:
    answer = await store.admit(AGENT, [created(), queued("m1")])
    row = MessageRow(
        "m1",
        AGENT,
        THREAD,
        "queued",
        band=2,
        kind="operator_prompt",
        authority="operator_instruction",
        key=None,
        turn_id="",
        admitted_seq=2,
        admitted_at=NOON,
        taken_at=None,
        ended_at=None,
    )
    assert answer == AdmissionAnswer(None, created=True, queued=row)
    assert await store.message("m1") == row
    assert await store.turns() == []
    assert await store.busy_threads() == [BusyThread(AGENT, THREAD, turns=0, queued=1)]
    assert await store.next_wake() == WakeRow(AGENT, THREAD, "", NOON, "message", "m1", NOON, NOON)


async def test_a_message_that_is_there_is_not_written_again(store: Store) -> None:
    await filled(store, "m1")
    before = await store.read(AGENT)
    assert await store.admit(AGENT, [queued("m1", at=NOON + 5)]) == AdmissionAnswer(None, created=False)
    assert await store.read(AGENT) == before
    assert await store.busy_threads() == [BusyThread(AGENT, THREAD, turns=0, queued=1)]


async def test_the_start_of_a_turn_opens_it_and_takes_its_messages(store: Store) -> None:
    await filled(store, "m1", "m2", "m3")
    claim = await store.claim_thread(AGENT, THREAD, "t1")
    assert (claim.opens, claim.fresh, await store.turn("t1")) == (True, True, None)
    await store.append(claim, [takes("t1", "m1", "m2", at=NOON + 7)])
    row = await store.turn("t1")
    assert row is not None and not claim.opens
    assert (row.state, row.first_seq, row.turn_index, row.prompt_preview) == ("running", 5, 1, "this is m1")
    assert (row.created_at, row.key, row.fingerprint, row.agent_name) == (NOON + 7, None, "", "calc")
    assert await states(store, "m1", "m2", "m3") == ["taken", "taken", "queued"]
    taken = await store.message("m2")
    assert taken is not None and (taken.turn_id, taken.taken_at) == ("t1", NOON + 7)
    assert await store.busy_threads() == [BusyThread(AGENT, THREAD, turns=1, queued=1)]
    assert await store.next_wake() is None
    assert [entry.fact.event.kind for entry in await store.read(AGENT, turn_id="t1")] == ["turn.started"]
    await store.append(claim, [replace(ended("t1"), at=NOON + 9)])
    await store.release(claim)
    assert await states(store, "m1", "m2", "m3") == ["processed", "processed", "queued"]
    assert await store.next_wake() == WakeRow(AGENT, THREAD, "", NOON + 9, "message", "t1", NOON + 9, NOON + 9)


async def test_a_turn_that_its_owner_opened_can_be_claimed_again_and_is_not_fresh(
    store: Store, backend: Backend
) -> None:
    await filled(store, "m1")
    await store.release(await opened(store, "t1", "m1"))
    second = await backend.open()
    claim = await second.claim("t1")
    assert not claim.fresh
    await second.append(claim, [requested("t1"), ended("t1")])
    assert [entry.seq for entry in await second.read(AGENT, turn_id="t1")] == [3, 4, 5]
    await second.close()


async def test_the_first_fact_of_a_turn_without_a_row_is_its_start(store: Store) -> None:
    await filled(store, "m1")
    claim = await store.claim_thread(AGENT, THREAD, "t1")
    with pytest.raises(EventRefused, match="names turn t1, which nothing has opened"):
        await store.append(claim, [requested("t1"), takes("t1", "m1")])
    assert await states(store, "m1") == ["queued"]
    await store.append(claim, [takes("t1", "m1"), requested("t1")])
    assert await states(store, "m1") == ["taken"]


async def test_a_thread_is_claimed_by_one_at_a_time(store: Store, backend: Backend) -> None:
    await filled(store, "m1")
    await store.admit(AGENT, [message("t9")])
    at_rest = await store.claim("t9")
    await store.append(at_rest, [started("t9")])
    await store.release(at_rest)
    second = await backend.open()
    claim = await store.claim_thread(AGENT, THREAD, "t1")
    with pytest.raises(AgentBusy):
        await second.claim_thread(AGENT, THREAD, "t2")
    with pytest.raises(AgentBusy) as here:
        await store.claim_thread(AGENT, THREAD, "t3")
    assert here.value.here
    with pytest.raises(AgentBusy) as next_turn:
        await store.claim("t9")
    assert next_turn.value.here, "the turn that is about to be opened comes first"
    await store.release(claim)
    with pytest.raises(OwnerFenced):
        await store.append(claim, [takes("t1", "m1")])
    await second.append(await second.claim_thread(AGENT, THREAD, "t2"), [takes("t2", "m1")])
    with pytest.raises(AgentBusy):
        await store.claim_thread(AGENT, THREAD, "t4")
    await second.close()


async def test_a_thread_in_which_a_turn_runs_opens_no_other(store: Store) -> None:
    await store.admit(AGENT, [created(), message("t1")])
    await store.admit(AGENT, [queued("m1")])
    claim = await store.claim("t1")
    with pytest.raises(AgentBusy) as busy:
        await store.claim_thread(AGENT, THREAD, "t2")
    assert busy.value.here
    await store.release(claim)
    await store.release(await store.claim_thread(AGENT, THREAD, "t2"))
    await store.release(await store.claim("t1"))


async def test_an_agent_without_messages_has_no_thread_to_claim(store: Store) -> None:
    with pytest.raises(TurnNotFound, match="agent nobody has no messages"):
        await store.claim_thread("nobody", THREAD, "t1")


async def test_a_message_is_taken_once_and_in_its_own_thread(store: Store) -> None:
    await filled(store, "m1", "m2")
    await store.admit(AGENT, [queued("elsewhere", thread="side")])
    claim = await opened(store, "t1", "m1")
    await store.append(claim, [ended("t1")])
    await store.release(claim)
    claim = await store.claim_thread(AGENT, THREAD, "t2")
    for wrong, why in (("m1", r"which is processed \(turn t1\)"), ("elsewhere", r"which is queued \(thread side\)")):
        with pytest.raises(EventRefused, match=f"turn t2 takes message {wrong}, {why}"):
            await store.append(claim, [takes("t2", "m2", wrong)])
    assert await states(store, "m1", "m2", "elsewhere") == ["processed", "queued", "queued"]
    assert await store.turn("t2") is None


async def test_a_turn_that_its_caller_opened_is_not_overtaken(store: Store) -> None:
    await filled(store, "m1")
    claim = await store.claim_thread(AGENT, THREAD, "t2")
    await store.admit(AGENT, [message("t1")])
    with pytest.raises(EventRefused, match="turn t2 would begin before turn t1, which its caller has opened"):
        await store.append(claim, [takes("t2", "m1")])
    assert (await states(store, "m1", "msg of t1"), await store.turn("t2")) == (["queued", "queued"], None)
    await store.release(claim)
    first = await store.claim("t1")
    await store.append(first, [started("t1"), ended("t1")])
    await store.release(first)
    assert await states(store, "m1") == ["queued"]
    claim = await store.claim_thread(AGENT, THREAD, "t2")
    await store.append(claim, [takes("t2", "m1", index=2)])
    assert await states(store, "m1") == ["taken"]


async def test_a_deferred_message_is_due_at_its_deadline_and_not_before(store: Store) -> None:
    await filled(store, "m1")
    await store.admit(AGENT, [deferred("m1", NOON + 15 * MINUTES)])
    assert await states(store, "m1") == ["deferred"]
    assert (await store.busy_threads(), await store.queued(AGENT, THREAD)) == ([], [])
    wake = WakeRow(AGENT, THREAD, "m1", NOON + 15 * MINUTES, "deferral", "m1", NOON + 15 * MINUTES, NOON)
    assert await store.next_wake() == wake
    assert await store.deferrals(AGENT, THREAD) == [wake]
    assert await store.due_wakes(NOON + 14 * MINUTES, limit=9) == []
    assert await store.due_wakes(NOON + 15 * MINUTES, limit=9) == [wake]


async def test_a_deferred_message_is_taken_by_whichever_turn_comes_next(store: Store) -> None:
    await filled(store, "m1", "m2")
    await store.admit(AGENT, [deferred("m1", NOON + MINUTES)])
    assert await store.wake(AGENT, THREAD) is not None, "another message waits"
    await store.admit(AGENT, [message("t1")])
    claim = await store.claim("t1")
    await store.append(claim, [takes("t1", "msg of t1", "m1", opens=False)])
    assert await states(store, "msg of t1", "m1", "m2") == ["taken", "taken", "queued"]
    assert (await store.deferrals(AGENT, THREAD), await store.next_wake()) == ([], None)
    assert await store.busy_threads() == [BusyThread(AGENT, THREAD, turns=1, queued=1)]


async def test_deferring_again_moves_the_deadline(store: Store) -> None:
    await filled(store, "m1", "m2")
    for name, later in (("m1", 1), ("m2", 2), ("m1", 3)):
        await store.admit(AGENT, [deferred(name, NOON + later * MINUTES)])
    assert [row.subject for row in await store.deferrals(AGENT, THREAD)] == ["m2", "m1"]
    assert await store.busy_threads() == []


async def test_an_expired_message_is_over_and_wakes_nobody(store: Store) -> None:
    await filled(store, "m1", "m2")
    await store.admit(AGENT, [deferred("m2", NOON + MINUTES)])
    for name in ("m1", "m2"):
        await store.admit(AGENT, [expired(name, at=NOON + 3)])
    row = await store.message("m1")
    assert row is not None and (row.state, row.ended_at, row.taken_at) == ("expired", NOON + 3, None)
    assert await states(store, "m2") == ["expired"]
    assert (await store.busy_threads(), await store.deferrals(AGENT, THREAD), await store.next_wake()) == ([], [], None)
    with pytest.raises(EventRefused, match="takes message m1, which is expired"):
        await opened(store, "t1", "m1")


@pytest.mark.parametrize("change", [deferred("m1", NOON + MINUTES), expired("m1")], ids=["deferred", "expired"])
async def test_only_a_message_that_waits_without_a_turn_is_set_aside(store: Store, change: Fact) -> None:
    await filled(store, "m1")
    claim = await opened(store, "t1", "m1")
    with pytest.raises(EventRefused, match="names message m1, which is taken by turn t1"):
        await store.admit(AGENT, [change])
    await store.append(claim, [ended("t1")])
    with pytest.raises(EventRefused, match="which is processed by turn t1"):
        await store.admit(AGENT, [change])
    await store.admit(AGENT, [message("t2")])
    of_caller = replace(change, event=change.event.model_copy(update={"message_id": "msg of t2"}))
    with pytest.raises(EventRefused, match="which is queued by turn t2"):
        await store.admit(AGENT, [of_caller])
    with pytest.raises(EventRefused, match="is not in thread side"):
        await store.admit(AGENT, [replace(change, thread_id="side")])


async def test_rows_of_messages_without_a_turn_are_made_again_from_the_log(store: Store) -> None:
    await filled(store, "m1", "m2", "m3", "m4")
    await store.admit(AGENT, [deferred("m2", NOON + MINUTES)])
    await store.admit(AGENT, [expired("m3")])
    await store.release(await opened(store, "t1", "m1"))
    names = ("m1", "m2", "m3", "m4")
    before = ([await store.message(name) for name in names], await store.turns(), await store.deferrals(AGENT, THREAD))
    await store.rebuild_views()
    after = ([await store.message(name) for name in names], await store.turns(), await store.deferrals(AGENT, THREAD))
    assert after == before
    claim = await store.claim("t1")
    assert not claim.fresh


async def test_a_turn_that_its_message_opened_starts_as_before(store: Store) -> None:
    await store.admit(AGENT, [created(), message("t1")])
    claim = await store.claim("t1")
    await store.append(claim, [started("t1")])
    row = await store.turn("t1")
    assert row is not None and (row.first_seq, row.prompt_preview) == (2, "what is 1 + 1?")


async def test_messages_sent_at_once_are_queued_one_after_the_other(store: Store) -> None:
    for agent in ("a", "b"):
        await store.admit(agent, [created()])
    agents = {f"m{number:02}": "a" if number % 7 < 4 else "b" for number in range(80)}
    sent = [store.admit(agent, [queued(name, at=NOON + 1)]) for name, agent in agents.items()]
    answers = await asyncio.gather(*sent)
    rows = [await store.message(name) for name in agents]
    assert [answer.queued for answer in answers if answer is not None] == rows
    for agent in ("a", "b"):
        facts = await store.read(agent)
        mine = [name for name in agents if agents[name] == agent]
        assert [fact.seq for fact in facts] == [*range(1, len(mine) + 2)]
        assert [fact.fact.event for fact in facts[1:]] == [queued(name).event for name in mine]
        assert [row.admitted_seq for row in rows if row and row.agent_id == agent] == [fact.seq for fact in facts[1:]]
    numbers = [sum(agent == each for each in agents.values()) for agent in ("a", "b")]
    busy = [BusyThread(agent, THREAD, turns=0, queued=number) for agent, number in zip("ab", numbers, strict=True)]
    assert sorted(await store.busy_threads()) == busy
    assert await store.verify() == []


async def test_a_message_that_is_there_is_not_written_again_among_others(store: Store) -> None:
    await filled(store, "m1")
    before = await store.message("m1")
    names = ("m2", "m1", "m3", "m3", "m4")
    answers = await asyncio.gather(*(store.admit(AGENT, [queued(name, at=NOON + 5)]) for name in names))
    assert [answer.created for answer in answers if answer is not None] == [True, False, True, False, True]
    assert await store.message("m1") == before
    assert [fact.fact.event for fact in (await store.read(AGENT))[2:]] == [queued(n).event for n in ("m2", "m3", "m4")]
    assert await store.busy_threads() == [BusyThread(AGENT, THREAD, turns=0, queued=4)]


async def test_a_message_that_is_refused_is_refused_alone(store: Store) -> None:
    await filled(store)
    await store.admit(AGENT, [Fact(AgentStateChanged(control="stopped", changed_by="ada"), NOON + 1)])
    of_its_own = [queued(name, admission_context="runtime_owned") for name in ("m1", "m3")]
    facts = [of_its_own[0], queued("m2"), of_its_own[1]]
    answers = await asyncio.gather(*(store.admit(AGENT, [fact]) for fact in facts), return_exceptions=True)
    assert [type(answer) for answer in answers] == [AdmissionAnswer, AgentStopped, AdmissionAnswer]
    assert await states(store, "m1", "m2", "m3") == ["queued", "none", "queued"]
