"""Spend windows: held back, settled, refused, granted and noticed with the facts that say so. On every backend."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit.runs.store_facts import NOON, TURN, claimed, ended, fact, said, started
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import AlreadyNoticed, WindowFull
from wakeful.contracts.events import BudgetGranted, BudgetNoticed, CostRecorded, ModelFailed, ModelRequested
from wakeful.contracts.spending import SpendRow, WindowRef, nanodollars
from wakeful.ports import Claim, Store
from wakeful.store.memory import Memory, MemoryStore

LATER = NOON + 60_000_000
DAY = WindowRef(scope="agent:calc", period="day", began=NOON - 5, turns=LATER, usd="1")
ALL = WindowRef(scope="runtime", period="day", began=NOON - 5, turns=LATER, usd="1.5")


def asks(
    usd: str | None, *windows: WindowRef, turn: str = TURN, level: str | None = None, step: int = 1, at: int = NOON
) -> Fact:
    event = ModelRequested(model_ref="a:b", items=1, reserved_usd=usd, windows=windows or (DAY,))
    return Fact(event, at, "main", turn, step, level=level)


def costs(usd: str, *, lost: bool = False, level: str | None = None, turn: str = TURN) -> Fact:
    event = CostRecorded(model_ref="a:b", amount=usd, price_list="code", lost=lost)
    return Fact(event, NOON, "main", turn, 1, level=level)


def lost(stage: Any = "body", status: int | None = None) -> Fact:
    event = ModelFailed(
        model_ref="a:b",
        attempt=1,
        failure_kind="stream_interrupted",
        stage=stage,
        disposition="retry",
        message="cut",
        status=status,
    )
    return fact(event)


def granted(usd: str, window: WindowRef = DAY) -> Fact:
    return Fact(BudgetGranted(window=window, usd=usd, granted_by="ada"), NOON)


def noticed(window: WindowRef = DAY) -> Fact:
    return fact(BudgetNoticed(window=window, percent=80, spent="0.8", held="0"), step=None)


async def open_turn(store: Store, turn: str = TURN, agent: str = "agent_1") -> Claim:
    claim = await claimed(store, turn, agent)
    await store.append(claim, [started(turn)])
    return claim


async def amounts(store: Store, window: WindowRef = DAY) -> tuple[int, int, int]:
    """Spent, held, granted."""
    rows = [row for row in await store.spending() if row.key == window.key]
    return (rows[0].spent, rows[0].held, rows[0].granted) if rows else (0, 0, 0)


def nano(*usd: str) -> tuple[int, ...]:
    return tuple(map(nanodollars, usd))


async def test_a_request_holds_in_every_window_it_names_and_its_price_takes_that_place(store: Store) -> None:
    claim = await open_turn(store)
    await store.append(claim, [asks("0.4", DAY, ALL)])
    assert await store.spending() == [
        SpendRow("agent:calc", "day", NOON - 5, LATER, nanodollars("1"), 0, nanodollars("0.4")),
        SpendRow("runtime", "day", NOON - 5, LATER, nanodollars("1.5"), 0, nanodollars("0.4")),
    ]
    await store.append(claim, [costs("0.1"), said()])
    assert await amounts(store) == await amounts(store, ALL) == nano("0.1", "0", "0")
    assert [row.scope for row in await store.spending(["runtime"])] == ["runtime"]
    assert await store.spending(after=LATER) == []


async def test_what_nobody_names_a_price_of_settles_at_what_was_held(store: Store) -> None:
    claim = await open_turn(store)
    await store.append(claim, [asks("0.4")])
    await store.append(claim, [said()])
    assert await amounts(store) == nano("0.4", "0", "0")


@pytest.mark.parametrize(
    ("facts", "spent"),
    [
        ([lost("connect")], "0"),
        ([lost(status=429)], "0"),
        ([lost("body")], "0.4"),
        ([lost("crash")], "0.4"),
        ([lost("body"), costs("0.15", lost=True)], "0.15"),
        ([lost("body"), asks("0.4", step=1), costs("0.3"), said()], "0.7"),
        ([lost("body"), costs("0.1", lost=True), asks("0.4"), costs("0.3"), said()], "0.4"),
        ([asks("0.4"), costs("0.1"), said()], "0.5"),
    ],
)
async def test_a_lost_attempt_costs_what_is_known_of_it_or_all_that_was_held(
    store: Store, facts: list[Fact], spent: str
) -> None:
    claim = await open_turn(store)
    await store.append(claim, [asks("0.4")])
    for each in facts:
        await store.append(claim, [each])
    assert await amounts(store) == nano(spent, "0", "0")


async def test_a_turn_that_ends_leaves_nothing_held(store: Store) -> None:
    claim = await open_turn(store)
    await store.append(claim, [asks("0.2"), asks("0.3", level="call_1")])
    assert await amounts(store) == nano("0", "0.5", "0")
    await store.append(claim, [costs("0.1", level="call_1"), ended()])
    assert await amounts(store) == nano("0.3", "0", "0")


async def test_a_window_takes_exactly_what_it_allows_and_refuses_the_next_without_writing(store: Store) -> None:
    claim = await open_turn(store)
    await store.append(claim, [asks("0.6")])
    count = len(await store.read("agent_1"))
    with pytest.raises(WindowFull, match="the day of agent calc"):
        await store.append(claim, [asks("0.400000001", level="call_1")])
    with pytest.raises(WindowFull):  # the two together
        await store.append(claim, [asks("0.3", level="call_1"), asks("0.3", level="call_2")])
    assert len(await store.read("agent_1")) == count
    assert await amounts(store) == nano("0", "0.6", "0")
    await store.append(claim, [asks("0.4", level="call_1")])
    assert await amounts(store) == nano("0", "1", "0")


async def test_two_agents_share_a_window_and_the_last_of_it_goes_to_one(store: Store, other: Store) -> None:
    here, there = await open_turn(store), await open_turn(other, "turn_2", "agent_2")
    await store.append(here, [asks("0.9", ALL)])
    with pytest.raises(WindowFull):
        await other.append(there, [asks("0.9", ALL, turn="turn_2")])
    await other.append(there, [asks("0.6", ALL, turn="turn_2")])
    assert await amounts(other, ALL) == await amounts(store, ALL) == nano("0", "1.5", "0")


async def test_a_grant_makes_room_and_the_next_window_begins_empty(store: Store) -> None:
    claim = await open_turn(store)
    await store.append(claim, [asks("1")])
    await store.admit("grants", [granted("0.5")])
    await store.append(claim, [asks("0.5", level="call_1")])
    with pytest.raises(WindowFull):
        await store.append(claim, [asks("0.1", level="call_2")])
    after = DAY.model_copy(update={"began": LATER, "turns": LATER + 60_000_000})
    await store.append(claim, [asks("1", after, level="call_2")])
    assert await amounts(store) == nano("0", "1.5", "0.5")
    assert await amounts(store, after) == nano("0", "1", "0")


async def test_a_notice_is_given_once_a_window(store: Store, other: Store) -> None:
    claim = await open_turn(store)
    await store.append(claim, [noticed()])
    assert [row.noticed for row in await store.spending()] == [True]
    count = len(await store.read("agent_1"))
    with pytest.raises(AlreadyNoticed):
        await store.append(claim, [noticed()])
    assert len(await store.read("agent_1")) == count
    await store.append(claim, [noticed(ALL)])


async def test_windows_and_holds_are_the_same_after_they_were_made_again_from_the_log(store: Store) -> None:
    claim, second = await open_turn(store), await open_turn(store, "turn_2", "agent_2")
    await store.append(claim, [asks("0.2", DAY, ALL), asks("0.3", ALL, level="call_1")])
    await store.append(second, [asks("0.4", ALL.model_copy(update={"usd": "2"}), turn="turn_2", at=NOON + 1)])
    await store.append(claim, [costs("0.1"), noticed()])
    await store.admit("grants", [granted("0.5", ALL)])
    before = await store.spending()
    await store.rebuild_views()
    assert await store.spending() == before
    await store.append(claim, [said(), ended()])
    await store.append(second, [fact(said().event, "turn_2")])
    assert await amounts(store) == nano("0.1", "0", "0")
    assert await amounts(store, ALL) == nano("0.8", "0", "0.5")
    with pytest.raises(WindowFull):  # made again, it still refuses
        await store.append(second, [asks("3", ALL, turn="turn_2")])


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["ask", "answer", "answer unpriced", "lose", "crash"]),
        st.integers(0, 2),  # which level
        st.integers(0, 3),  # how many windows later
        st.integers(0, 700_000_000),
    ),
    max_size=40,
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(STEPS)
async def test_no_window_ever_holds_more_than_its_limit_whatever_happens_and_whoever_goes_on(steps: Any) -> None:
    """Costs stay below what was held for them, as an estimate of the most promises."""
    memory = Memory()
    store: Store = MemoryStore(memory)
    claim = await open_turn(store)
    held: dict[str, int] = {}
    at = 0
    for what, level_number, later, amount in steps:
        level = f"call_{level_number}"
        at += later // 3  # now and then the window turns
        window = DAY.model_copy(update={"began": NOON + at, "turns": LATER + at})
        if what == "ask" and level not in held:
            try:
                usd = f"{amount / 10**9:.9f}"
                await store.append(claim, [asks(usd, window, level=level)])
                held[level] = amount
            except WindowFull:
                pass
        elif what == "crash":
            await store.close()
            store = MemoryStore(memory)
            seen, claim = claim.seen, await store.claim(TURN)
            claim.seen = seen
            for each in held:
                await store.append(claim, [Fact(lost("crash").event, NOON, "main", TURN, 1, level=each)])
            held.clear()
            before = await store.spending()
            await store.rebuild_views()
            assert await store.spending() == before
        elif level in held:
            price = costs(f"{min(amount, held.pop(level)) / 10**9:.9f}", level=level)
            over = Fact(said().event, NOON, "main", TURN, 1, level=level)
            gone = Fact(lost().event, NOON, "main", TURN, 1, level=level)
            facts = {"answer": [price, over], "lose": [gone]}.get(what, [over])
            await store.append(claim, facts)
        for row in await store.spending():
            assert 0 <= row.taken <= row.limit
    assert sum(row.held for row in await store.spending()) == sum(held.values())
