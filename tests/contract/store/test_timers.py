"""Timers on every backend: each due time ends once, and is found by its time until then."""

import pytest

from kit.runs.store_facts import AGENT, NOON, THREAD, created
from kit.runs.waking_facts import MINUTE, armed, fired, waking
from wakeful.contracts.errors import EventRefused
from wakeful.contracts.events import AgentStateChanged, TimerCancelled, TimerFolded, TimerMissed
from wakeful.ports import Store, WakeRow

DUE = NOON + MINUTE


def wake(due_at: int, set_at: int = NOON) -> WakeRow:
    return WakeRow(AGENT, THREAD, "timer:timer_1", due_at, "timer", "timer_1", due_at, set_at)


def cancelled() -> TimerCancelled:
    return TimerCancelled(timer_id="timer_1", cancelled_by="ada")


async def test_a_timer_is_due_at_its_time_and_then_at_the_next(store: Store) -> None:
    await store.admit(AGENT, [created(), armed(cron="* * * * *", name="beat")])
    assert await store.due_wakes(DUE - 1, limit=9) == []
    assert await store.due_wakes(DUE, limit=9) == [wake(DUE)]
    await store.admit(AGENT, fired(next_at=DUE + MINUTE))
    row = await store.timer("timer_1")
    assert row is not None
    assert (row.state, row.due_at, row.last_due, row.last_end, row.fired) == (
        "armed",
        DUE + MINUTE,
        DUE,
        "fired",
        1,
    )
    assert row.last_message == f"msg of timer_1 at {DUE}"
    assert await store.wake(AGENT, THREAD, "timer:timer_1") == wake(DUE + MINUTE, DUE)


async def test_a_due_time_fires_once_with_one_message(store: Store, other: Store) -> None:
    await store.admit(AGENT, [created(), armed(cron="* * * * *")])
    await store.admit(AGENT, fired(next_at=DUE + MINUTE))
    before = await store.read(AGENT)
    with pytest.raises(EventRefused, match=f"its next one is {DUE + MINUTE}"):
        await other.admit(AGENT, fired(next_at=DUE + MINUTE, message_id="another"))
    assert await store.read(AGENT) == before
    assert await store.message("another") is None


async def test_a_timer_without_a_further_due_time_is_done(store: Store) -> None:
    await store.admit(AGENT, [created(), armed()])
    await store.admit(AGENT, fired())
    row = await store.timer("timer_1")
    assert row is not None and (row.state, row.due_at) == ("done", None)
    assert await store.wake(AGENT, THREAD, "timer:timer_1") is None
    with pytest.raises(EventRefused, match="it is done"):
        await store.admit(AGENT, fired(message_id="another"))


async def test_due_times_may_be_folded_and_missed(store: Store) -> None:
    await store.admit(AGENT, [created(), armed(cron="* * * * *")])
    missed = TimerMissed(
        timer_id="timer_1", due_at=DUE, last=DUE + MINUTE, number=2, because="too_many", next_at=DUE + 2 * MINUTE
    )
    folded = TimerFolded(
        timer_id="timer_1",
        due_at=DUE + 2 * MINUTE,
        last=DUE + 4 * MINUTE,
        number=3,
        into=f"msg of timer_1 at {DUE + 5 * MINUTE}",
        next_at=DUE + 5 * MINUTE,
    )
    facts = fired(due_at=DUE + 5 * MINUTE, next_at=DUE + 6 * MINUTE)
    await store.admit(AGENT, [waking(missed), waking(folded), *facts])
    row = await store.timer("timer_1")
    assert row is not None and (row.missed, row.folded, row.fired, row.due_at) == (2, 3, 1, DUE + 6 * MINUTE)
    for again in (missed, folded):
        with pytest.raises(EventRefused, match="its next one is"):
            await store.admit(AGENT, [waking(again)])


async def test_a_cancelled_timer_is_due_no_more_and_may_be_armed_again(store: Store) -> None:
    await store.admit(AGENT, [created(), armed(cron="* * * * *")])
    with pytest.raises(EventRefused, match="is armed already"):
        await store.admit(AGENT, [armed()])
    await store.admit(AGENT, fired(next_at=DUE + MINUTE))
    await store.admit(AGENT, [waking(cancelled())])
    assert await store.wake(AGENT, THREAD, "timer:timer_1") is None
    with pytest.raises(EventRefused, match="it is cancelled"):
        await store.admit(AGENT, fired(due_at=DUE + MINUTE))
    with pytest.raises(EventRefused, match="it is cancelled"):
        await store.admit(AGENT, [waking(cancelled())])
    await store.admit(AGENT, [armed(due_at=DUE + 9 * MINUTE)])
    row = await store.timer("timer_1")
    assert row is not None and (row.state, row.due_at, row.fired) == ("armed", DUE + 9 * MINUTE, 1)


async def test_a_timer_of_a_paused_agent_is_kept_and_not_due(store: Store) -> None:
    await store.admit(AGENT, [created(), armed()])
    await store.admit(AGENT, [waking(AgentStateChanged(control="paused", changed_by="ada"), NOON + 1)])
    assert await store.due_wakes(DUE, limit=9) == []
    await store.admit(AGENT, [waking(AgentStateChanged(control="running", changed_by="ada"), NOON + 2)])
    assert await store.due_wakes(DUE, limit=9) == [wake(DUE)]


async def test_timers_are_listed_by_their_time_and_by_their_agent(store: Store) -> None:
    await store.admit(AGENT, [created(), armed(), armed("timer_2", NOON + 1)])
    await store.admit("b", [created("b"), armed("timer_3", NOON + 2)])
    assert [row.timer_id for row in await store.timers()] == ["timer_2", "timer_3", "timer_1"]
    assert [row.timer_id for row in await store.timers(AGENT)] == ["timer_1", "timer_2"]


async def test_nobody_ends_a_due_time_of_a_timer_that_is_not_there(store: Store) -> None:
    await store.admit(AGENT, [created()])
    with pytest.raises(EventRefused, match="there is none"):
        await store.admit(AGENT, fired())
