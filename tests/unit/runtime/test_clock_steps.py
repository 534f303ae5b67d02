"""A wall clock that is set, between two lives of a runtime and in one: nothing ends by it, and nothing waits for it."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from wakeful import Agent, Runtime, SpendWindow, tool
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import AssistantItem
from wakeful.contracts.events import TimerFired
from wakeful.contracts.models import ModelGlimpse, Reply, TokenUsage
from wakeful.ports import ModelRequest
from wakeful.providers.prices import IN_CODE, ListedPrice, Price
from wakeful.testing import FixedClock, scripted

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE, HOUR, DAY = 60, 3600, 86_400


async def test_a_turn_that_was_cut_off_goes_on_after_the_clock_was_set_back(tmp_path: Path) -> None:
    begun = asyncio.Event()

    @tool(effect="pure")
    async def look() -> str:
        """Look."""
        begun.set()
        if len(lives) == 1:
            await asyncio.Event().wait()
        return "seen"

    agent = Agent(
        "ops",
        scripted(lambda asked: "done" if asked.answered else {"calls": [{"name": "look", "arguments": {}}]}),
        tools=[look],
    )
    lives = [NOON]
    async with Runtime(tmp_path, agents=[agent], clock=FixedClock(lives[0]), grace=0) as rt:
        sent = await rt.send("ops", "Look.")
        await begun.wait()
    lives.append(NOON - timedelta(hours=1))
    async with Runtime(tmp_path, agents=[agent], clock=FixedClock(lives[1])) as rt:
        result = await rt.answer(sent)
    assert (result.status, result.final_content) == ("completed", "done")


async def test_a_turn_whose_message_came_before_the_clock_was_set_back_has_all_its_time(tmp_path: Path) -> None:
    agent = Agent("ops", scripted(lambda asked: "done"))
    async with Runtime(tmp_path, agents=[agent], clock=FixedClock(NOON + timedelta(hours=1))) as rt:
        await rt.pause("ops")
        sent = await rt.send("ops", "Look.")
    async with Runtime(tmp_path, agents=[agent], clock=FixedClock(NOON)) as rt:
        await rt.resume("ops")
        result = await rt.answer(sent)
    assert (result.status, result.final_content) == ("completed", "done")


def echo(**options: Any) -> Agent[None, str]:
    return Agent("ops", scripted(lambda asked: "done"), **options)


async def passes(rt: Runtime, clock: FixedClock, seconds: float) -> None:
    await rt.settled()
    clock.advance(seconds)
    await rt.settled()


async def test_a_message_of_a_clock_that_was_ahead_is_due_at_once(tmp_path: Path) -> None:
    for is_paused in (False, True):
        home = tmp_path / str(is_paused)
        async with Runtime(home, agents=[echo()], clock=FixedClock(NOON + timedelta(days=400))) as rt:
            await rt.pause("ops")
            sent = await rt.send("ops", "Look.")
            if not is_paused:
                await rt.pause_all()
                await rt.resume("ops")
        async with Runtime(home, agents=[echo()], clock=FixedClock(NOON)) as rt:
            await rt.resume("ops")
            await rt.resume_all()
            assert (await rt.answer(sent)).status == "completed"


async def fired(rt: Runtime) -> list[str]:
    entries = await rt._here.engine.store.read("ops")
    dues = [each.fact.event.due_at for each in entries if isinstance(each.fact.event, TimerFired)]
    return [f"{datetime.fromtimestamp(due / 1e6, UTC):%Y-%m-%d %H:%M}" for due in dues]


async def test_a_schedule_goes_on_after_a_life_with_a_clock_that_was_ahead(tmp_path: Path) -> None:
    agent = echo(wake=[{"cron": "0 * * * *", "say": "Look."}])
    for start, hours in ((NOON, 2), (NOON + timedelta(days=1_826), 1), (NOON + timedelta(hours=3), 3)):
        clock = FixedClock(start)
        async with Runtime(tmp_path, agents=[agent], clock=clock) as rt:
            for _ in range(hours):
                await passes(rt, clock, HOUR)
            found = await fired(rt)
    assert found == [
        "2026-01-01 13:00",
        "2026-01-01 14:00",
        "2031-01-01 12:00",  # the hours before it are told of in its message
        "2031-01-01 13:00",
        "2026-01-01 16:00",
        "2026-01-01 17:00",
        "2026-01-01 18:00",
    ]


async def test_a_due_time_that_the_clock_comes_to_twice_fires_once(tmp_path: Path) -> None:
    agent = echo(wake=[{"cron": "0 * * * *", "say": "Look."}])
    for start in (NOON + timedelta(minutes=30), NOON + timedelta(minutes=20)):
        clock = FixedClock(start)
        async with Runtime(tmp_path, agents=[agent], clock=clock) as rt:
            for _ in range(6):
                await passes(rt, clock, 15 * MINUTE)
            (timer,) = await rt.timers("ops")
            assert await fired(rt) == ["2026-01-01 13:00", "2026-01-01 14:00"]
    assert (timer.fired, timer.folded, timer.outcome) == (2, 1, "folded")


async def test_a_schedule_goes_on_when_the_clock_is_set_while_it_runs(tmp_path: Path) -> None:
    clock = FixedClock(NOON)
    async with Runtime(tmp_path, agents=[echo(wake=[{"cron": "0 * * * *", "say": "Look."}])], clock=clock) as rt:
        await rt.settled()
        clock.skip(2 * DAY)
        await rt.settled()
        clock.skip(-2 * DAY)
        for _ in range(125):
            await passes(rt, clock, MINUTE)
        assert await fired(rt) == ["2026-01-03 12:00", "2026-01-01 13:00", "2026-01-01 14:00"]


async def test_a_span_that_was_begun_by_a_clock_that_was_ahead_is_counted_from_now(tmp_path: Path) -> None:
    def reply(asked: Any) -> Any:
        return (
            "done"
            if asked.answered
            else {"calls": [{"name": "sleep", "arguments": {"reason": "rest", "duration_ms": 600_000}}]}
        )

    agent = Agent("ops", scripted(reply))
    async with Runtime(tmp_path, agents=[agent], clock=FixedClock(NOON + timedelta(days=2))) as rt:
        await rt.answer(await rt.send("ops", "Wait ten minutes."))
    clock = FixedClock(NOON)
    async with Runtime(tmp_path, agents=[agent], clock=clock) as rt:
        await passes(rt, clock, 599)
        assert len(await rt.briefs("ops")) == 1
        await passes(rt, clock, 1)
        assert len(await rt.briefs("ops")) == 2


async def test_a_pause_for_a_while_that_was_begun_by_a_clock_that_was_ahead_ends(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[echo()], clock=FixedClock(NOON + timedelta(days=2))) as rt:
        await rt.pause("ops", seconds=600)
        sent = await rt.send("ops", "Look.")
    clock = FixedClock(NOON)
    async with Runtime(tmp_path, agents=[echo()], clock=clock) as rt:
        await passes(rt, clock, 600)
        assert (await rt.answer(sent)).status == "completed"


class Paid:
    """A model of which each answer costs ten cents."""

    ref = "mine:m"
    price = ListedPrice(Price(Decimal(0), Decimal(1_000)), IN_CODE)

    def most_output(self, settings: Any) -> int:
        return 100

    async def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        used = TokenUsage(input_tokens=10, output_tokens=100, total_tokens=110)
        yield Reply(item=AssistantItem(parts=(Text("done"),)), usage=used)


async def test_a_turn_rests_again_in_the_spend_window_that_a_clock_half_an_hour_ahead_was_in(tmp_path: Path) -> None:
    agent = Agent("ops", Paid(), spend_windows=[SpendWindow("hour", Decimal("0.10"))])
    clock = FixedClock(NOON)
    async with Runtime(tmp_path, agents=[agent], clock=clock) as rt:
        await rt.answer(await rt.send("ops", "Look."))
    async with Runtime(tmp_path, agents=[agent], clock=FixedClock(NOON + timedelta(minutes=30))) as rt:
        sent = await rt.send("ops", "Look once more.")
        await rt.settled()
    async with Runtime(tmp_path, agents=[agent], clock=clock) as rt:
        await rt.settled()
        store = rt._here.engine.store
        (wake,) = await store.wakes_of("ops")
        assert (wake.cause, wake.due_at) == ("window", clock.now() + HOUR * 1_000_000)
        written = len(await store.read("ops"))
        await passes(rt, clock, 59 * MINUTE)
        assert len(await store.read("ops")) == written
        await passes(rt, clock, MINUTE)
        assert (await rt.answer(sent)).output == "done"
