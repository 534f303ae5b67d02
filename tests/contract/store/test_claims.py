"""Who may write: claims, epochs, takeovers, and rest."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from kit.runs.store_facts import (
    AGENT,
    THREAD,
    TURN,
    admitted,
    claimed,
    ended,
    interrupt,
    message,
    requested,
    resolved,
    session,
    started,
)
from wakeful.contracts.errors import AgentBusy, OwnerFenced, RestRefused, TurnNotFound
from wakeful.ports import Claim, Store


async def test_a_turn_that_runs_here_is_not_claimed_twice(store: Store) -> None:
    await claimed(store)
    with pytest.raises(AgentBusy, match="runs in this process") as busy:
        await store.claim(TURN)
    assert busy.value.here


async def test_of_two_claims_at_once_one_is_given(store: Store) -> None:
    await admitted(store)
    results = await asyncio.gather(store.claim(TURN), store.claim(TURN), return_exceptions=True)
    assert sorted(type(result).__name__ for result in results) == ["AgentBusy", "Claim"]


async def test_turns_of_one_thread_that_are_claimed_here_share_its_lease(store: Store) -> None:
    one = await claimed(store)
    await store.admit(AGENT, [message("turn_2")])
    two = await store.claim("turn_2")
    assert two.lease_epoch == one.lease_epoch
    await store.append(one, [requested()])
    await store.append(two, [requested("turn_2")])
    await store.release(two)
    await store.append(one, [requested()])
    with pytest.raises(OwnerFenced):
        await store.append(two, [requested("turn_2")])


async def test_a_thread_in_other_hands_is_busy_and_its_holder_named(store: Store, other: Store) -> None:
    await claimed(store)
    with pytest.raises(
        AgentBusy, match=r"thread 'main' of agent agent_1 is being run by process \d+ on .+, since 2"
    ) as busy:
        await other.claim(TURN)
    assert not busy.value.here
    await store.admit("agent_2", [message("turn_2")])
    await other.claim("turn_2")  # another agent is free


async def test_two_owners_run_threads_of_one_agent_and_append_to_its_one_stream(
    store: Store, other: Store, backend: Any
) -> None:
    await store.admit(AGENT, [session(), message()])
    await store.admit(AGENT, [message("turn_2", thread="side")])
    one, two = await store.claim(TURN), await other.claim("turn_2")
    for step in range(1, 4):
        await store.append(one, [requested(step=step)])
        await other.append(two, [requested("turn_2", step=step)])
    entries = await store.read(AGENT)
    assert [(entry.seq, entry.fact.turn_id) for entry in entries[3:]] == list(
        zip(range(4, 10), (TURN, "turn_2") * 3, strict=True)
    )
    assert await store.verify() == []
    backend.hands.now += 31
    new = await other.claim(TURN)
    assert (new.taken_from, new.late_upto, two.late_upto) == ("late", 9, 0)
    with pytest.raises(OwnerFenced):
        await store.append(one, [requested(step=4)])
    await other.append(two, [requested("turn_2", step=4)])  # its own thread was never lost
    await other.append(new, [requested(step=4)])


async def test_an_owner_that_was_late_with_one_thread_keeps_its_others(
    store: Store, other: Store, backend: Any
) -> None:
    await store.admit(AGENT, [session(), message()])
    await store.admit(AGENT, [message("turn_2", thread="side")])
    one, two = await store.claim(TURN), await store.claim("turn_2")
    backend.hands.now += 20
    await store.hold(two)
    backend.hands.now += 20
    taken = await other.claim(TURN)
    assert taken.taken_from == "late"
    with pytest.raises(AgentBusy, match="thread 'side'"):
        await other.claim("turn_2")
    with pytest.raises(OwnerFenced):
        await store.append(one, [requested()])
    await store.append(two, [requested("turn_2")])
    await other.release(taken)
    assert (await other.claim(TURN)).late_upto == 3, "it lives, and may still carry out what it began there"
    await store.release(two)
    assert (await other.claim("turn_2")).late_upto == 0, "it was never late with this one"


async def test_whether_somebody_who_lives_runs_a_thread_is_seen_without_touching_it(
    store: Store, other: Store, backend: Any
) -> None:
    assert not await other.is_held(AGENT, THREAD), "nobody has heard of it"
    claim = await claimed(store)
    assert await other.is_held(AGENT, THREAD) and await store.is_held(AGENT, THREAD)
    assert not await other.is_held(AGENT, "side")
    backend.hands.now += 30.1
    assert not await other.is_held(AGENT, THREAD), "its owner hangs"
    await store.hold(claim)
    assert await other.is_held(AGENT, THREAD)
    await store.close()  # without letting go: as a process that ended
    assert not await other.is_held(AGENT, THREAD)
    assert (await other.claim(TURN)).lease_epoch == claim.lease_epoch + 1, "looking has taken nothing"


async def test_a_claim_that_was_released_is_worth_nothing_and_the_thread_is_free(store: Store, other: Store) -> None:
    claim = await claimed(store)
    assert claim.fresh
    await store.release(claim)
    await store.release(claim)
    with pytest.raises(OwnerFenced):
        await store.append(claim, [requested()])
    with pytest.raises(OwnerFenced):
        await store.hold(claim)
    taken = await other.claim(TURN)
    assert not taken.fresh
    assert (taken.lease_epoch, taken.turn_epoch) == (claim.lease_epoch + 1, claim.turn_epoch + 1)
    assert len(await store.read(AGENT)) == 2


async def test_a_dead_owner_is_replaced_at_once_although_its_lease_has_not_run_out(store: Store, backend: Any) -> None:
    first = await claimed(store)
    await store.close()  # without letting go: as a process that ended
    heir = await backend.open()
    claim = await heir.claim(TURN)
    assert (claim.fresh, claim.lease_epoch) == (False, first.lease_epoch + 1)
    await heir.close()


async def test_an_owner_that_hangs_is_replaced_when_its_lease_runs_out_and_then_fenced(
    store: Store, other: Store, backend: Any
) -> None:
    old = await claimed(store)
    backend.hands.now += 29.9
    with pytest.raises(AgentBusy):
        await other.claim(TURN)
    backend.hands.now += 0.2
    new = await other.claim(TURN)
    assert (new.lease_epoch, new.fresh) == (old.lease_epoch + 1, False)
    for zombie in (store.append(old, [requested()]), store.append(old, [], rest=True), store.hold(old)):
        with pytest.raises(OwnerFenced):
            await zombie
    assert len(await store.read(AGENT)) == 2
    await store.release(old)  # quietly
    await other.append(new, [requested()])
    await other.hold(new)


async def test_an_owner_that_lost_its_thread_is_fenced_also_in_turns_that_nobody_took_up(
    store: Store, other: Store, backend: Any
) -> None:
    old = await claimed(store)
    await store.admit(AGENT, [message("turn_2")])
    backend.hands.now += 31
    await other.claim("turn_2")
    for zombie in (store.append(old, [requested()]), store.hold(old)):
        with pytest.raises(OwnerFenced):
            await zombie
    assert len(await store.read(AGENT)) == 3


async def test_letting_one_turn_go_while_another_is_claimed_keeps_the_lease(store: Store) -> None:
    one = await claimed(store)
    await store.admit(AGENT, [message("turn_2")])
    two, _ = await asyncio.gather(store.claim("turn_2"), store.release(one))
    await store.append(two, [requested("turn_2")])
    await store.hold(two)


async def test_holding_on_renews_the_lease(store: Store, other: Store, backend: Any) -> None:
    claim = await claimed(store)
    for _ in range(4):
        backend.hands.now += 20
        await store.hold(claim)
        with pytest.raises(AgentBusy):
            await other.claim(TURN)


async def test_a_lease_that_ran_out_and_that_nobody_took_is_still_ours(store: Store, backend: Any) -> None:
    claim = await claimed(store)
    backend.hands.now += 1000
    await store.append(claim, [requested()])
    await store.hold(claim)


async def test_a_turn_that_is_not_there_cannot_be_claimed(store: Store) -> None:
    with pytest.raises(TurnNotFound, match="turn_9"):
        await store.claim("turn_9")


async def test_an_owner_is_given_the_outsiders_facts_of_its_turn_once(store: Store, other: Store) -> None:
    claim = await claimed(store)
    await other.admit(AGENT, [message("turn_2")])
    await other.admit(AGENT, [interrupt("turn_2")])
    assert await store.append(claim, [started()]) == []
    await other.admit(AGENT, [interrupt()])
    await store.append(claim, [])  # asking is enough
    await other.admit(AGENT, [resolved()])
    await store.admit(AGENT, [interrupt()])
    given = await store.append(claim, [requested()])
    assert [(one.seq, one.fact) for one in given] == [(7, resolved()), (8, interrupt())]
    assert await store.append(claim, [requested(step=2)]) == []


async def test_what_the_owner_itself_appends_is_not_news_to_it(store: Store) -> None:
    claim = await claimed(store)
    assert await store.append(claim, [resolved()]) == []
    await store.admit(AGENT, [interrupt()])
    claim.seen = 0
    assert [one.seq for one in await store.append(claim, [])] == [2, 4]


async def test_rest_is_refused_while_something_has_not_been_seen_and_nothing_is_written(
    store: Store, other: Store
) -> None:
    claim = await claimed(store)
    await other.admit(AGENT, [interrupt()])
    with pytest.raises(RestRefused, match="event 3"):
        await store.append(claim, [ended()], rest=True)
    assert len(await store.read(AGENT)) == 3
    row = await store.turn(TURN)
    assert row is not None
    assert row.state == "admitted"
    assert [one.seq for one in await store.append(claim, [])] == [3]
    await store.append(claim, [ended()], rest=True, barrier=True)


async def test_what_others_are_told_does_not_keep_a_turn_from_resting(store: Store, other: Store) -> None:
    """Position guards rest for the turn's own news only, and never an append that does not rest."""
    claim = await claimed(store)
    await other.admit(AGENT, [message("turn_2")])
    await store.append(claim, [ended()], rest=True)


# --- whom a claim replaces -------------------------------------------------------------------------------------------


async def test_a_claim_says_whether_the_owner_before_was_dead_or_only_late(
    backend: Any, store: Store, other: Store
) -> None:
    claim = await claimed(store)
    assert (claim.taken_from, claim.late_upto) == (None, 0)
    backend.hands.now += 31
    late = await other.claim(TURN)
    assert (late.taken_from, late.late_upto) == ("late", claim.seen or late.late_upto)
    assert late.late_upto >= 2, "up to the head of the log at that moment"
    await other.release(late)
    again = await other.claim(TURN)
    assert (again.taken_from, again.late_upto) == (None, late.late_upto), "it lives, and may still wake up"
    await other.release(again)
    await store.close()
    afterwards = await other.claim(TURN)
    assert (afterwards.taken_from, afterwards.late_upto) == (None, 0), "it is gone"


async def test_an_owner_that_left_without_releasing_is_a_dead_one(backend: Any, store: Store) -> None:
    first = await backend.open()
    await claimed(first)
    await first.close()
    claim = await store.claim(TURN)
    assert (claim.taken_from, claim.late_upto) == ("dead", 0)


# --- turns that are kept for their caller ----------------------------------------------------------------------------


async def reserved(store: Store, turn: str) -> str:
    answer = await store.admit(AGENT, [message(turn)], reserve=True)
    assert answer is not None and answer.reservation is not None
    return answer.reservation


async def test_a_turn_is_kept_for_the_caller_that_waits_for_its_thread(store: Store, other: Store) -> None:
    claim = await claimed(store)
    reservation = await reserved(other, "turn_2")
    await store.release(claim)
    for owner, here in ((store, False), (other, True)):
        with pytest.raises(AgentBusy, match=r"turn_2 is about to be run by its caller, (this )?process") as busy:
            await owner.claim("turn_2")
        assert busy.value.here is here
    mine = await other.claim("turn_2", reservation=reservation)
    await other.append(mine, [requested("turn_2")])
    await other.release(mine)
    await store.claim("turn_2")  # claiming it was all that it was kept for


async def test_inversion_without_a_reservation_the_turn_is_anybodys_who_asks_first(store: Store, other: Store) -> None:
    claim = await claimed(store)
    await other.admit(AGENT, [message("turn_2")])
    await store.release(claim)
    await store.claim("turn_2")
    with pytest.raises(AgentBusy):
        await other.claim("turn_2")


async def test_a_reservation_ends_when_its_caller_gives_up_or_is_gone(store: Store, other: Store) -> None:
    await claimed(store)
    for turn in ("turn_2", "turn_3"):
        reservation = await reserved(other, turn)
        with pytest.raises(AgentBusy):
            await store.claim(turn)
        if turn == "turn_2":
            await other.give_up(turn, "another's")
            with pytest.raises(AgentBusy):
                await store.claim(turn)
            await other.give_up(turn, reservation)
        else:
            await other.close()
        await store.claim(turn)


async def test_a_caller_that_is_late_loses_the_turn_a_leases_time_after_the_thread_came_free(
    store: Store, other: Store, backend: Any
) -> None:
    claim = await claimed(store)
    backend.hands.now += 100
    late = await reserved(other, "turn_2")
    await store.release(claim)
    backend.hands.now += 29.9
    await reserved(store, "turn_3")  # what comes later gives no more time
    with pytest.raises(AgentBusy):
        await store.claim("turn_2")
    backend.hands.now += 0.2
    mine = await store.claim("turn_2")
    with pytest.raises(AgentBusy):
        await other.claim("turn_2", reservation=late)
    await store.append(mine, [requested("turn_2")])


async def test_the_first_turn_of_a_thread_is_kept_as_long(store: Store, other: Store, backend: Any) -> None:
    await reserved(other, TURN)
    with pytest.raises(AgentBusy):
        await store.claim(TURN)
    backend.hands.now += 30.1
    await store.claim(TURN)


async def test_a_claim_says_where_the_stream_ended(store: Store) -> None:
    answer = await store.admit(AGENT, [session(), message()])
    assert answer is not None
    claim = await store.claim(TURN)
    assert claim.head == answer.turn.last_seq
    await store.append(claim, [started()])
    await store.release(claim)
    assert (await store.claim(TURN)).head == answer.turn.last_seq + 1


# --- turns that are claimed with their admission, and let go with their end ------------------------------------------


async def begun(store: Store, turn: str = TURN) -> Claim:
    answer = await store.admit(AGENT, [message(turn)], reserve=True, claim=True)
    assert answer is not None and answer.turn is not None and answer.claim is not None
    assert answer.reservation is None, "who has it needs no reservation"
    answer.claim.seen = answer.turn.last_seq
    return answer.claim


async def test_a_new_turn_is_claimed_with_its_admission_where_nothing_is_open_in_its_thread(
    store: Store, other: Store
) -> None:
    for turn in (TURN, "turn_2"):
        claim = await begun(store, turn)
        assert (claim.fresh, claim.head, claim.taken_from) == (True, claim.seen, None)
        for owner, here in ((store, True), (other, False)):
            with pytest.raises(AgentBusy) as busy:
                await owner.claim(turn)
            assert busy.value.here is here
        await store.append(claim, [started(turn), requested(turn)])
        await store.append(claim, [ended(turn)])
        await store.release(claim)
    assert [row.state for row in await other.turns()] == ["completed", "completed"]
    assert await store.verify() == []


@pytest.mark.parametrize("what", ["a turn runs", "a message waits", "the lease is held", "its owner is gone"])
async def test_a_new_turn_is_kept_for_its_caller_while_its_thread_is_not_free(
    store: Store, other: Store, what: str
) -> None:
    if what == "a message waits":
        await admitted(other)
    else:
        claim = await claimed(other)
        await other.append(claim, [started()])
        if what != "a turn runs":
            await other.append(claim, [ended()])
        if what == "its owner is gone":
            await other.close()
    answer = await store.admit(AGENT, [message("turn_2")], reserve=True, claim=True)
    assert answer is not None and answer.created
    assert (answer.claim, answer.reservation is not None) == (None, True)


async def test_who_has_the_key_already_is_given_no_claim(store: Store) -> None:
    first = await store.admit(AGENT, [message(key="k")], claim=True)
    again = await store.admit(AGENT, [message("turn_2", key="k")], claim=True)
    assert first is not None and first.claim is not None
    assert again is not None and (again.created, again.claim) == (False, None)


async def test_an_owner_that_died_with_a_turn_it_had_just_admitted_is_replaced(store: Store, other: Store) -> None:
    await begun(other)
    await other.close()
    claim = await store.claim(TURN)
    assert (claim.fresh, claim.taken_from) == (False, "dead")
    await store.append(claim, [started()])


@pytest.mark.parametrize("ticks", range(6))
async def test_who_stops_waiting_for_an_admission_leaves_no_claim_behind(
    store: Store, other: Store, ticks: int
) -> None:
    admission = asyncio.create_task(store.admit(AGENT, [message()], claim=True))
    for _ in range(ticks):
        await asyncio.sleep(0)
    admission.cancel()
    with suppress(asyncio.CancelledError):
        answer = await admission
        assert answer is not None and answer.claim is not None
        await store.release(answer.claim)
    await store.sync()
    await store.admit(AGENT, [session()])  # whatever was queued is written
    if await other.turn(TURN) is not None:
        await other.claim(TURN)


async def test_a_turns_last_facts_let_go_of_it(store: Store, other: Store) -> None:
    claim = await begun(store)
    await store.append(claim, [started()])
    watch = store.watch(AGENT, thread_id=THREAD, feed="lease")
    await store.append(claim, [ended()], barrier=True, rest=True, last=True)
    await watch.wait()
    watch.close()
    assert not await other.is_held(AGENT, THREAD)
    with pytest.raises(OwnerFenced):
        await store.append(claim, [requested()])
    await store.release(claim)  # changes nothing
    await begun(other, "turn_2")


async def test_last_facts_that_are_refused_let_go_of_nothing(store: Store, other: Store) -> None:
    claim = await begun(store)
    await store.append(claim, [started()])
    await other.admit(AGENT, [interrupt()])
    with pytest.raises(RestRefused):
        await store.append(claim, [ended()], rest=True, last=True)
    assert await other.is_held(AGENT, THREAD)
    await store.append(claim, [requested()])


async def test_another_turn_of_the_thread_keeps_the_lease_when_one_ends(store: Store, other: Store) -> None:
    one = await begun(store)
    await store.admit(AGENT, [message("turn_2")])
    two = await store.claim("turn_2")
    await store.append(one, [started(), ended()], last=True)
    assert await other.is_held(AGENT, THREAD)
    await store.append(two, [started("turn_2"), ended("turn_2")], last=True)
    assert not await other.is_held(AGENT, THREAD)
