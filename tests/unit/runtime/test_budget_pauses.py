"""A spending limit through `Runtime`: told at 80 %, at 100 % the agent rests with its queue, and wakes by itself."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import apsw
import pytest

from kit.wires.notice_receiver import receiving
from wakeful import Agent, Runtime, SpendWindow
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import AssistantItem
from wakeful.contracts.models import ModelGlimpse, Reply, TokenUsage
from wakeful.contracts.spending import agent_scope
from wakeful.ports import ModelRequest
from wakeful.providers.prices import IN_CODE, ListedPrice, Price
from wakeful.service.commands.spend_windows import grant
from wakeful.testing import FixedClock

EVENING = datetime(2027, 1, 15, 22, 30, tzinfo=UTC)
UNTIL_MIDNIGHT = 90 * 60 + 1


class Paid:
    """A model that costs ten cents a request, and at most twenty."""

    ref = "mine:m"
    price = ListedPrice(Price(Decimal(0), Decimal(1_000)), IN_CODE)

    def __init__(self) -> None:
        self.asked = 0

    def most_output(self, settings: Any) -> int:
        return 200

    async def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        self.asked += 1
        used = TokenUsage(input_tokens=10, output_tokens=100, total_tokens=110)
        yield Reply(item=AssistantItem(parts=(Text("done"),)), usage=used)


async def test_a_used_up_limit_keeps_the_queue_and_ends_by_itself_when_the_window_turns(tmp_path: Path) -> None:
    clock, model = FixedClock(EVENING), Paid()
    agent = Agent("ops", model, spend_windows=[SpendWindow("day", Decimal("0.50"))])
    async with Runtime(tmp_path, agents=[agent], clock=clock) as rt:
        for _ in range(4):
            await rt.answer(await rt.send("ops", "One more."))
        await rt.settled()
        (told,) = await rt.notices("ops")
        assert (told.kind, told.cause) == ("budget", "budget.noticed")
        assert told.text.startswith("80 % of the day of agent ops")
        sent = [await rt.send("ops", f"And {number}.") for number in range(3)]
        await rt.settled()
        assert model.asked == 4
        assert [notice.cause for notice in await rt.notices("ops")] == ["limit.changed", "budget.noticed"]
        life = await rt.why("ops")
        assert life.state == "waiting"
        assert "until 2027-01-16T00:00:00.000Z at the latest" in life.sentence
        clock.advance(UNTIL_MIDNIGHT)
        await rt.settled()
        assert [(await rt.answer(each)).output for each in sent] == ["done"] * 3
        assert (await rt.agents())[0].control == "running"


async def test_a_window_that_the_clock_is_set_back_in_is_waited_for_until_it_turns(tmp_path: Path) -> None:
    """It is full all the same: a turn that was due for it again and again would keep the machine busy."""
    model = Paid()
    agent = Agent("ops", model, spend_windows=[SpendWindow("day", Decimal("0.20"))])
    async with Runtime(tmp_path, agents=[agent], clock=FixedClock(EVENING)) as rt:
        await rt.answer(await rt.send("ops", "One."))
        sent = await rt.send("ops", "One more.")
        await rt.settled()
    clock = FixedClock(EVENING - timedelta(hours=2))
    async with Runtime(tmp_path, agents=[agent], clock=clock) as rt:
        await rt.settled()
        assert model.asked == 1
        clock.advance(2 * 3_600 + UNTIL_MIDNIGHT)
        await rt.settled()
        assert (await rt.answer(sent)).output == "done"


async def test_a_turn_whose_wake_was_lost_waits_until_its_window_turns(tmp_path: Path) -> None:
    clock, model = FixedClock(EVENING), Paid()
    agent = Agent("ops", model, spend_windows=[SpendWindow("day", Decimal("0.20"))])
    async with Runtime(tmp_path, agents=[agent], clock=clock) as rt:
        await rt.answer(await rt.send("ops", "One."))
        sent = await rt.send("ops", "One more.")
        await rt.settled()
        base = apsw.Connection(str(tmp_path / "wakeful.db"))
        base.set_busy_timeout(10_000)
        base.execute("DELETE FROM wakes WHERE cause = 'window'")
        assert base.changes() == 1
        base.close()
        await rt._here.watchdog.look()
        clock.advance(1)
        await rt.settled()
        assert model.asked == 1
        clock.advance(UNTIL_MIDNIGHT)
        await rt.settled()
        assert (await rt.answer(sent)).output == "done"


async def test_a_grant_lets_a_resting_agent_go_on_at_once(tmp_path: Path) -> None:
    clock, model = FixedClock(EVENING), Paid()
    agent = Agent("ops", model, spend_windows=[SpendWindow("day", Decimal("0.50"))])
    async with Runtime(tmp_path, agents=[agent], clock=clock) as rt:
        sent = [await rt.send("ops", f"Number {number}.", thread=f"t{number}") for number in range(6)]
        await rt.settled()
        assert model.asked == 4
        await grant(rt._here.engine, agent_scope("ops"), "1.00", "day", by="ann")
        await rt.settled()
        assert [(await rt.answer(each)).output for each in sent] == ["done"] * 6
        assert model.asked == 6


async def test_a_limit_that_is_raised_lets_a_resting_agent_go_on_at_once_and_a_lower_one_does_not(
    tmp_path: Path,
) -> None:
    clock, model = FixedClock(EVENING), Paid()

    def ops(limit: str) -> Agent[None, str]:
        return Agent("ops", model, spend_windows=[SpendWindow("day", Decimal(limit))])

    async with Runtime(tmp_path, agents=[ops("0.50")], clock=clock) as rt:
        sent = [await rt.send("ops", f"Number {number}.", thread=f"t{number}") for number in range(6)]
        await rt.settled()
        assert model.asked == 4
    async with Runtime(tmp_path, agents=[ops("0.40")], clock=clock) as rt:
        await rt.settled()
        assert (await rt.why("ops")).state == "waiting"
        assert model.asked == 4
    async with Runtime(tmp_path, agents=[ops("1.00")], clock=clock) as rt:
        assert [(await rt.answer(each)).output for each in sent] == ["done"] * 6
        assert model.asked == 6


async def test_a_limit_that_many_conversations_meet_is_told_once_a_window(tmp_path: Path) -> None:
    clock, model = FixedClock(EVENING), Paid()
    async with receiving() as there:
        limit = [SpendWindow("day", Decimal("0.50"))]
        agent = Agent("ops", model, spend_windows=limit, notify={"to": there.url, "on": ["budget"]})
        async with Runtime(tmp_path, agents=[agent], clock=clock) as rt:
            for number in range(12):
                await rt.send("ops", f"Number {number}.", thread=f"t{number}")
            await rt.settled()
            assert len([each for each in there.got if "not enough money is left" in each["text"]]) == 1
            clock.advance(UNTIL_MIDNIGHT)
            await rt.settled()
            used_up = [each["text"] for each in there.got if "not enough money is left" in each["text"]]
            assert len(used_up) == len(set(used_up)) == 2, "another day is another limit"


async def test_a_limit_of_the_owner_that_is_raised_counts_with_the_reload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAKEFUL_HOME", str(tmp_path))
    limits = tmp_path / "wakeful.toml"
    limits.write_text("[budget]\nper_day = {usd = 0.50}\n")
    clock, model = FixedClock(EVENING), Paid()
    async with Runtime(tmp_path, agents=[Agent("ops", model)], clock=clock) as rt:
        sent = [await rt.send("ops", f"Number {number}.", thread=f"t{number}") for number in range(6)]
        await rt.settled()
        assert model.asked == 4
        limits.write_text("[budget]\nper_day = {usd = 5}\n")
        assert await rt.reload() == []
        assert [(await rt.answer(each)).output for each in sent] == ["done"] * 6
