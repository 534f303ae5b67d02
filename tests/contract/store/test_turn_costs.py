"""What the requests of a turn come to, kept beside the log: written with the turn's end, equal to what the log says."""

import pytest

from kit.runs.store_facts import (
    AGENT,
    NOON,
    TURN,
    claimed,
    completed,
    ended,
    fact,
    message,
    requested,
    session,
    started,
)
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import CostRecorded, ModelFailed
from wakeful.ports import Claim, Store
from wakeful.views.model_calls import TurnCost, call_groups, model_calls


def paid(turn: str = TURN, amount: str = "0.0125") -> Fact:
    event = CostRecorded(
        model_ref="scripted:list", amount=amount, attempt=1, price_list="mine", price_date="2026-10-26"
    )
    return fact(event, turn)


def lost(turn: str = TURN) -> Fact:
    refused = ModelFailed(
        model_ref="scripted:list",
        attempt=1,
        failure_kind="rate_limited",
        message="no",
        stage="headers",
        disposition="retry",
    )
    return fact(refused, turn)


async def said(store: Store) -> TurnCost:
    """The same from the whole log."""
    calls = model_calls(await store.read(AGENT, turn_id=TURN))
    times = [call.at for call in calls]
    return TurnCost(min(times, default=0), max(times, default=0), tuple(call_groups(calls)))


async def kept(store: Store) -> dict[str, TurnCost | None]:
    return {row.turn_id: cost for row, cost in await store.turn_costs()}


async def rounds(store: Store, claim: Claim, count: int) -> None:
    turn = claim.turn_id
    for step in range(1, count + 1):
        await store.append(claim, [requested(turn, step)])
        await store.append(claim, [lost(turn), requested(turn, step)])
        await store.append(claim, [completed(turn, step), paid(turn, f"0.{step:03}")])


@pytest.mark.parametrize("count", [1, 3, 90])
async def test_the_row_of_a_turn_that_ended_says_what_its_log_says(store: Store, other: Store, count: int) -> None:
    claim = await claimed(store)
    await store.append(claim, [started()])
    await rounds(store, claim, count)
    assert await kept(store) == {TURN: None}, "what is under way has none"
    await store.append(claim, [requested(), ended()])
    cost = await said(store)
    assert sum(group.calls for group in cost.groups) == 2 * count + 1
    assert await kept(store) == await kept(other) == {TURN: cost}
    await store.rebuild_views()
    assert await kept(store) == {TURN: cost}


async def test_what_an_earlier_owner_asked_counts_too(store: Store, other: Store) -> None:
    claim = await claimed(store)
    await store.append(claim, [started()])
    await rounds(store, claim, 2)
    await store.release(claim)
    again = await other.claim(TURN)
    await rounds(other, again, 1)
    await other.append(again, [ended()])
    assert await kept(other) == {TURN: await said(other)}


async def test_a_turn_that_asked_no_model_has_a_row_that_says_so(store: Store) -> None:
    claim = await claimed(store)
    await store.append(claim, [started(), ended()])
    assert await kept(store) == {TURN: TurnCost(0, 0, ())}


async def test_turns_come_oldest_first_and_those_that_ended_before_a_moment_are_left_out(store: Store) -> None:
    await store.admit(AGENT, [session()])
    for number in (1, 2, 3):
        turn = f"turn_{number}"
        await store.admit(AGENT, [message(turn, at=NOON + number)])
        claim = await store.claim(turn)
        await store.append(claim, [started(turn)])
        if number != 3:
            await store.append(claim, [fact(ended(turn).event, turn, at=NOON + 10 * number)])
    named = [[row.turn_id for row, _ in await store.turn_costs(since=NOON + since)] for since in (-1, 10, 11, 21)]
    assert named == [["turn_1", "turn_2", "turn_3"]] * 2 + [["turn_2", "turn_3"], ["turn_3"]]


async def test_names_of_agents_are_told_once_and_in_order(store: Store) -> None:
    assert await store.agent_names() == []
    for agent_id, name in (("agent_1", "zebra"), ("agent_2", "apple"), ("agent_3", "zebra")):
        await store.admit(agent_id, [session(name), message(f"turn of {agent_id}")])
    assert await store.agent_names() == ["apple", "zebra"]
