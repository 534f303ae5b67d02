"""Who may write: claims, epochs, takeovers, and rest."""

import asyncio
from typing import Any

import pytest

from store_facts import AGENT, TURN, admitted, claimed, ended, interrupt, message, requested, resolved, started
from wakeful.contracts.errors import AgentBusy, Fenced, RestRefused, TurnNotFound
from wakeful.ports import Store


async def test_a_turn_that_runs_here_is_not_claimed_twice(store: Store) -> None:
    await claimed(store)
    with pytest.raises(AgentBusy, match="runs in this process") as busy:
        await store.claim(TURN)
    assert busy.value.here


async def test_of_two_claims_at_once_one_is_given(store: Store) -> None:
    await admitted(store)
    results = await asyncio.gather(store.claim(TURN), store.claim(TURN), return_exceptions=True)
    assert sorted(type(result).__name__ for result in results) == ["AgentBusy", "Claim"]


async def test_turns_of_one_agent_run_side_by_side_under_one_lease(store: Store) -> None:
    one = await claimed(store)
    await store.admit(AGENT, [message("turn_2")])
    two = await store.claim("turn_2")
    assert two.agent_epoch == one.agent_epoch
    await store.append(one, [requested()])
    await store.append(two, [requested("turn_2")])
    await store.release(two)
    await store.append(one, [requested()])
    with pytest.raises(Fenced):
        await store.append(two, [requested("turn_2")])


async def test_an_agent_in_other_hands_is_busy_and_its_holder_named(store: Store, other: Store) -> None:
    await claimed(store)
    with pytest.raises(AgentBusy, match=r"agent_1 is being run by process \d+ on .+, since 2") as busy:
        await other.claim(TURN)
    assert not busy.value.here
    await store.admit("agent_2", [message("turn_2")])
    await other.claim("turn_2")  # another agent is free


async def test_whether_somebody_who_lives_runs_an_agent_is_seen_without_touching_it(
    store: Store, other: Store, backend: Any
) -> None:
    assert not await other.is_held(AGENT), "nobody has heard of it"
    claim = await claimed(store)
    assert await other.is_held(AGENT) and await store.is_held(AGENT)
    backend.hands.now += 30.1
    assert not await other.is_held(AGENT), "its owner hangs"
    await store.hold(claim)
    assert await other.is_held(AGENT)
    await store.close()  # without letting go: as a process that ended
    assert not await other.is_held(AGENT)
    assert (await other.claim(TURN)).agent_epoch == claim.agent_epoch + 1, "looking has taken nothing"


async def test_a_claim_that_was_released_is_worth_nothing_and_the_agent_is_free(store: Store, other: Store) -> None:
    claim = await claimed(store)
    assert claim.fresh
    await store.release(claim)
    await store.release(claim)
    with pytest.raises(Fenced):
        await store.append(claim, [requested()])
    with pytest.raises(Fenced):
        await store.hold(claim)
    taken = await other.claim(TURN)
    assert not taken.fresh
    assert (taken.agent_epoch, taken.turn_epoch) == (claim.agent_epoch + 1, claim.turn_epoch + 1)
    assert len(await store.read(AGENT)) == 2


async def test_a_dead_owner_is_replaced_at_once_although_its_lease_has_not_run_out(store: Store, backend: Any) -> None:
    first = await claimed(store)
    await store.close()  # without letting go: as a process that ended
    heir = await backend.open()
    claim = await heir.claim(TURN)
    assert (claim.fresh, claim.agent_epoch) == (False, first.agent_epoch + 1)
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
    assert (new.agent_epoch, new.fresh) == (old.agent_epoch + 1, False)
    for zombie in (store.append(old, [requested()]), store.append(old, [], rest=True), store.hold(old)):
        with pytest.raises(Fenced):
            await zombie
    assert len(await store.read(AGENT)) == 2
    await store.release(old)  # quietly
    await other.append(new, [requested()])
    await other.hold(new)


async def test_an_owner_that_lost_its_agent_is_fenced_also_in_turns_that_nobody_took_up(
    store: Store, other: Store, backend: Any
) -> None:
    old = await claimed(store)
    await store.admit(AGENT, [message("turn_2")])
    backend.hands.now += 31
    await other.claim("turn_2")
    for zombie in (store.append(old, [requested()]), store.hold(old)):
        with pytest.raises(Fenced):
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
