"""Checks of timers through `Runtime`: a command decides whether a model is asked at all."""

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from wakeful import Agent, Runtime, open_store
from wakeful.contracts.policies import GatePolicy, Rule
from wakeful.errors import InvalidConfig
from wakeful.testing import FixedClock, scripted

MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = 3600


def ops(work: Path, check: str, asked: list[str], **options: Any) -> Agent[None, str]:
    def reply(request: Any) -> str:
        asked.append(request.history[-1].text.partition("]\n")[2])
        return "done"

    wake = [{"cron": "0 * * * *", "say": "Look at it.", "check": check, "name": "look"}]
    return Agent("ops", scripted(reply), workspace=work, wake=wake, **options)


async def passes(rt: Runtime, clock: FixedClock, seconds: float) -> None:
    await rt.settled()
    clock.advance(seconds)
    await rt.settled()


async def events(rt: Runtime, prefix: str) -> list[Any]:
    found = [entry.fact.event for entry in await rt._here.engine.store.read("ops")]
    return [event for event in found if event.kind.startswith(prefix)]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    return place


async def test_a_check_that_ends_well_and_prints_nothing_asks_no_model(tmp_path: Path, work: Path) -> None:
    clock, asked = FixedClock(MIDNIGHT), list[str]()
    async with Runtime(tmp_path / "home", agents=[ops(work, "test ! -e news", asked)], clock=clock) as rt:
        for _ in range(3):
            await passes(rt, clock, HOUR)
        assert asked == []
        (timer,) = await rt.timers("ops")
        assert (timer.fired, timer.skipped, timer.outcome, timer.check) == (0, 3, "skipped", "test ! -e news")
        skipped = await events(rt, "timer.skipped")
        assert [event.number for event in skipped] == [1, 1, 1]
        assert await rt.briefs("ops") == []


async def test_whatever_a_check_prints_wakes_the_agent_as_evidence_and_not_as_its_owners_word(
    tmp_path: Path, work: Path
) -> None:
    clock, asked = FixedClock(MIDNIGHT), list[str]()
    async with Runtime(tmp_path / "home", agents=[ops(work, "cat news 2>/dev/null || true", asked)], clock=clock) as rt:
        await passes(rt, clock, HOUR)
        assert asked == []
        (work / "news").write_text("the disk is full\n")
        await passes(rt, clock, HOUR)
        assert len(asked) == 1
        assert asked[0].startswith("Look at it.\n\nThe check `cat news 2>/dev/null || true` ended with exit status 0")
        assert asked[0].endswith("the disk is full")
        message = next(each for each in await events(rt, "message.admitted") if each.message_kind == "timer_tick")
        assert message.derived_from == "external_evidence"
        (fired,) = await events(rt, "timer.fired")
        assert fired.check_turn


async def test_a_check_that_fails_wakes_the_agent_although_it_prints_nothing(tmp_path: Path, work: Path) -> None:
    clock, asked = FixedClock(MIDNIGHT), list[str]()
    async with Runtime(tmp_path / "home", agents=[ops(work, "exit 3", asked)], clock=clock) as rt:
        await passes(rt, clock, HOUR)
        assert asked == ["Look at it.\n\nThe check `exit 3` ended with exit status 3 and printed:\n\n(nothing)"]


async def test_a_check_goes_through_the_gate_and_what_a_rule_denies_is_not_run(tmp_path: Path, work: Path) -> None:
    clock, asked = FixedClock(MIDNIGHT), list[str]()
    policy = GatePolicy(rules=(Rule(match="exec_command", arguments={"cmd": "touch *"}, decision="deny"),))
    agent = ops(work, "touch ran", asked, policy=policy)
    async with Runtime(tmp_path / "home", agents=[agent], clock=clock) as rt:
        await passes(rt, clock, HOUR)
        assert not (work / "ran").exists()
        assert len(asked) == 1
        assert "The check `touch ran` failed:" in asked[0]
        (verdict,) = await events(rt, "permission.evaluated")
        assert verdict.decision == "deny"


async def test_a_check_runs_once_for_a_due_time(tmp_path: Path, work: Path) -> None:
    """Several hours passed while nothing ran: one check stands for all of them."""
    clock, asked = FixedClock(MIDNIGHT), list[str]()
    agent = ops(work, "echo ran >> runs", asked)
    async with Runtime(tmp_path / "home", agents=[agent], clock=clock) as rt:
        await rt.settled()
    clock.advance(5 * HOUR)
    async with Runtime(tmp_path / "home", agents=[agent], clock=clock) as rt:
        await rt.settled()
        (timer,) = await rt.timers("ops")
        assert (work / "runs").read_text().splitlines() == ["ran"]
        assert (timer.skipped, timer.fired, asked) == (5, 0, [])
        await passes(rt, clock, HOUR)
        assert (work / "runs").read_text().splitlines() == ["ran", "ran"]


async def test_a_check_that_is_paused_with_its_agent_is_told_of_when_the_agent_runs_again(
    tmp_path: Path, work: Path
) -> None:
    clock, asked = FixedClock(MIDNIGHT), list[str]()
    check = "while [ ! -e go ]; do sleep 0.02; done"
    async with Runtime(tmp_path / "home", agents=[ops(work, check, asked)], clock=clock) as rt:
        await rt.settled()
        clock.advance(HOUR)
        settled = asyncio.create_task(rt.settled())
        async with aclosing(rt.follow("ops")) as told:  # type: ignore[type-var]
            async for event in told:
                if event.type == "tool.started":
                    break
        await rt.pause("ops")
        (work / "go").touch()
        await settled
        assert (await events(rt, "timer."))[1:] == [], "its due time is not over"
        await rt.resume("ops")
        await passes(rt, clock, 5)
        assert [event.kind for event in await events(rt, "timer.")] == ["timer.armed", "timer.skipped"]
        assert asked == []


@pytest.mark.parametrize("way", ["pause_all", "stop_all"])
async def test_a_check_is_ended_when_everything_is_held_and_told_of_when_it_runs_again(
    tmp_path: Path, work: Path, way: str
) -> None:
    clock, asked = FixedClock(MIDNIGHT), list[str]()
    agent = ops(work, "touch began; sleep 600; touch ended", asked)
    async with Runtime(tmp_path / "home", agents=[agent], clock=clock) as rt:
        await rt.settled()
        clock.advance(HOUR)
        settled = asyncio.create_task(rt.settled())
        async with asyncio.timeout(60):
            while not (work / "began").exists():  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            await getattr(rt, way)()
            await settled
        assert asked == []
        await rt.resume_all()
        await rt.settled()
        (words,) = asked
        assert "failed: wakeful/exec_command was stopped" in words
        assert not (work / "ended").exists()


async def test_skipped_checks_evict_no_failure_from_the_list_of_turns(tmp_path: Path, work: Path) -> None:
    clock, asked = FixedClock(MIDNIGHT), list[str]()
    async with Runtime(tmp_path / "home", agents=[ops(work, "true", asked)], clock=clock) as rt:
        first = await rt.answer(await rt.send("ops", "Hello."))
        for _ in range(12):
            await passes(rt, clock, HOUR)
    async with open_store(tmp_path / "home" / "wakeful.db") as store:
        assert [turn.turn_id for turn in await store.turns(limit=10)] == [first.turn_id]
        assert len(await store.turns(thread="check:look", limit=20)) == 12


def test_a_check_of_an_agent_without_commands_is_refused(work: Path) -> None:
    with pytest.raises(InvalidConfig, match="has a check, and this agent runs no commands"):
        Agent("ops", scripted(["x"]), wake=[{"cron": "0 * * * *", "say": "x", "check": "true"}])
