"""Timers through `Runtime`, on a clock that is moved: each due time is told of once, also after an outage."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from wakeful import Agent, Runtime
from wakeful.errors import AgentNotFound, InvalidConfig, InvalidRequest
from wakeful.runtime.timers import MOST_ASKING
from wakeful.testing import FixedClock, scripted

MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE, HOUR, DAY = 60, 3600, 86_400


def ops(asked: list[str] | None = None) -> Agent[None, str]:
    def reply(request: Any) -> str:
        if asked is not None:
            asked.append(request.history[-1].text.partition("]\n")[2])
        return "done"

    return Agent("ops", scripted(reply))


async def events(rt: Runtime, prefix: str) -> list[Any]:
    found = [entry.fact.event for entry in await rt._here.engine.store.read("ops")]
    return [event for event in found if event.kind.startswith(prefix)]


async def kinds(rt: Runtime, prefix: str) -> list[str]:
    return [event.kind for event in await events(rt, prefix)]


async def passes(rt: Runtime, clock: FixedClock, seconds: float) -> None:
    await rt.settled()
    clock.advance(seconds)
    await rt.settled()


async def test_every_quarter_of_an_hour_that_the_clocks_repeat_fires_once(tmp_path: Path) -> None:
    """In Berlin the clocks go from 3:00 back to 2:00 on 25 October: 0:00 to 1:00 UTC is the first time round."""
    clock, line = FixedClock(datetime(2026, 10, 24, 23, 30, tzinfo=UTC)), "*/15 2 * * *"
    agent = Agent(
        "ops", scripted(lambda request: "done"), wake=[{"cron": line, "timezone": "Europe/Berlin", "say": "Go."}]
    )
    async with Runtime(tmp_path, agents=[agent], clock=clock) as rt:
        for _ in range(48):
            await passes(rt, clock, 5 * MINUTE)
        fired = [datetime.fromtimestamp(event.due_at / 1_000_000, UTC) for event in await events(rt, "timer.fired")]
        assert [f"{moment:%H:%M}" for moment in fired] == ["00:00", "00:15", "00:30", "00:45"]


async def test_a_timer_wakes_its_agent_once_with_the_owners_words(tmp_path: Path) -> None:
    clock, asked = FixedClock(MIDNIGHT), list[str]()
    async with Runtime(tmp_path, agents=[ops(asked)], clock=clock) as rt:
        armed = await rt.arm_timer("ops", "Check the backups.", at=MIDNIGHT + timedelta(hours=7), name="backups")
        assert (armed.state, armed.armed_by) == ("armed", "program")
        assert armed.next == (MIDNIGHT + timedelta(hours=7)).timestamp()
        await passes(rt, clock, 7 * HOUR - 1)
        assert asked == []
        await passes(rt, clock, 1)
        await passes(rt, clock, DAY)
        assert asked == ["Check the backups."]
        (timer,) = await rt.timers("ops")
        assert (timer.state, timer.outcome, timer.fired, timer.next) == ("done", "fired", 1, None)
        assert await rt.timers() == []
        (message,) = await events(rt, "message.admitted")
        assert (message.message_kind, message.authority_class, message.derived_from) == (
            "timer_tick",
            "operator_instruction",
            None,
        )


async def test_a_schedule_wakes_its_agent_in_a_fresh_thread_each_time_by_the_clock_of_its_zone(tmp_path: Path) -> None:
    clock, asked = FixedClock(MIDNIGHT), list[str]()
    async with Runtime(tmp_path, agents=[ops(asked)], clock=clock) as rt:
        await rt.arm_timer("ops", "Morning.", cron="0 7 * * *", timezone="Europe/Berlin", name="morning")
        await passes(rt, clock, 6 * HOUR)
        for _ in range(2):
            await passes(rt, clock, DAY)
        assert asked == ["Morning."] * 3
        threads = [row.thread_id for row in await rt._here.engine.store.turns_of_agent("ops", limit=9)]
        assert sorted(threads) == [f"morning-2026010{day}T060000Z" for day in (1, 2, 3)]


async def test_an_agent_that_sleeps_between_its_due_times_asks_no_model(tmp_path: Path) -> None:
    clock, asked = FixedClock(MIDNIGHT), list[str]()
    async with Runtime(tmp_path, agents=[ops(asked)], clock=clock) as rt:
        await rt.arm_timer("ops", "Once a year.", cron="0 0 1 6 *")
        for _ in range(100):
            await passes(rt, clock, DAY)
        assert (asked, await kinds(rt, "turn.")) == ([], [])


@pytest.mark.parametrize(
    ("catch_up", "messages", "facts"),
    [
        ("one", 1, ["timer.armed", "timer.folded", "timer.fired"]),
        ("all", 5, ["timer.armed", *["timer.fired"] * 5]),
        ("none", 0, ["timer.armed", "timer.missed"]),
    ],
)
async def test_due_times_of_an_outage_are_caught_up_with_as_their_owner_wants(
    tmp_path: Path, catch_up: Any, messages: int, facts: list[str]
) -> None:
    clock = FixedClock(MIDNIGHT)
    async with Runtime(tmp_path, agents=[ops()], clock=clock) as rt:
        await rt.arm_timer("ops", "Every hour.", cron="0 * * * *", catch_up=catch_up)
    clock.advance(5 * HOUR + 30 * MINUTE)
    async with Runtime(tmp_path, agents=[ops()], clock=clock) as rt:
        await rt.settled()
        assert await kinds(rt, "timer.") == facts
        assert len(await events(rt, "message.admitted")) == messages
        if catch_up == "one":
            (message,) = await events(rt, "message.admitted")
            assert "This was due 4 times before" in message.item.text
        (timer,) = await rt.timers()
        assert timer.next == (MIDNIGHT + timedelta(hours=6)).timestamp()


async def test_due_times_of_a_paused_agent_are_kept_until_it_runs_again(tmp_path: Path) -> None:
    clock = FixedClock(MIDNIGHT)
    async with Runtime(tmp_path, agents=[ops()], clock=clock) as rt:
        await rt.arm_timer("ops", "Every hour.", cron="0 * * * *")
        await rt.pause("ops")
        await passes(rt, clock, 3 * HOUR + 1)
        assert await kinds(rt, "timer.") == ["timer.armed"]
        await rt.resume("ops")
        await rt.settled()
        assert await kinds(rt, "timer.") == ["timer.armed", "timer.folded", "timer.fired"]


async def test_timer_storm_due_times_behind_a_turn_that_is_not_over_are_one_message(tmp_path: Path) -> None:
    """A turn that waits for a person for hours is not followed by hundreds of ticks."""
    from wakeful import tool

    @tool(effect="pure", approval=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    clock = FixedClock(MIDNIGHT)
    agent = Agent("ops", scripted([{"calls": [{"name": "pay", "arguments": {}}]}]), tools=[pay])
    async with Runtime(tmp_path, agents=[agent], clock=clock) as rt:
        await rt.arm_timer("ops", "Pay.", cron="* * * * *", thread="main")
        for _ in range(60):
            await passes(rt, clock, MINUTE)
        assert len(await events(rt, "message.admitted")) == 1
        (timer,) = await rt.timers()
        assert (timer.fired, timer.folded, timer.outcome) == (1, 59, "folded")


def asking() -> Agent[None, str]:
    """An agent whose every turn asks its operator."""
    from wakeful import tool

    @tool(effect="pure", approval=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    return Agent(
        "ops", scripted(lambda request: "fine" if request.answered else {"calls": [{"name": "pay"}]}), tools=[pay]
    )


async def test_a_schedule_with_threads_of_its_own_goes_on_while_its_last_turn_waits_for_a_person(
    tmp_path: Path,
) -> None:
    """A question of Monday, which nobody answers, does not cost the check of Tuesday."""
    clock = FixedClock(MIDNIGHT)
    async with Runtime(tmp_path, agents=[asking()], clock=clock) as rt:
        await rt.arm_timer("ops", "Check.", cron="0 7 * * *", name="morning")
        await passes(rt, clock, 7 * HOUR + 5)
        for day in range(2, 5):
            await passes(rt, clock, DAY - 1)
            pending = await rt._here.engine.store.actions(pending_only=True)
            assert [row.thread_id for row in pending][-1] == f"morning-2026010{day}T070000Z"
        (timer,) = await rt.timers()
        assert (timer.fired, timer.folded) == (4, 0)


async def test_timer_storm_so_many_turns_wait_for_a_person_and_no_more(tmp_path: Path) -> None:
    clock = FixedClock(MIDNIGHT)
    async with Runtime(tmp_path, agents=[asking()], clock=clock) as rt:
        await rt.arm_timer("ops", "Check.", cron="* * * * *")
        for _ in range(30):
            await passes(rt, clock, MINUTE)
        (timer,) = await rt.timers()
        assert (timer.fired, timer.folded) == (MOST_ASKING, 30 - MOST_ASKING)
        assert len(await rt._here.engine.store.actions(pending_only=True)) == MOST_ASKING


async def test_a_cancelled_timer_fires_no_more(tmp_path: Path) -> None:
    clock = FixedClock(MIDNIGHT)
    async with Runtime(tmp_path, agents=[ops()], clock=clock) as rt:
        armed = await rt.arm_timer("ops", "Every hour.", cron="0 * * * *")
        await passes(rt, clock, HOUR)
        cancelled = await rt.cancel_timer(armed.timer_id, by="ada", reason="enough")
        assert (cancelled.state, cancelled.next, cancelled.fired) == ("cancelled", None, 1)
        for _ in range(148):
            await passes(rt, clock, HOUR)
        assert len(await events(rt, "message.admitted")) == 1
        with pytest.raises(InvalidRequest, match="is cancelled"):
            await rt.cancel_timer(armed.timer_id)
        with pytest.raises(InvalidRequest, match="there is no timer 'nope'"):
            await rt.cancel_timer("nope")


async def test_a_clock_that_is_set_back_fires_nothing_twice(tmp_path: Path) -> None:
    clock = FixedClock(MIDNIGHT)
    async with Runtime(tmp_path, agents=[ops()], clock=clock) as rt:
        await rt.arm_timer("ops", "Every hour.", cron="0 * * * *")
        await passes(rt, clock, HOUR)
        clock.skip(-HOUR)
        await passes(rt, clock, HOUR)
        assert len(await events(rt, "timer.fired")) == 1
        await passes(rt, clock, HOUR)
        assert len(await events(rt, "timer.fired")) == 2


async def test_a_clock_that_jumps_by_over_an_hour_is_a_fact(tmp_path: Path) -> None:
    clock = FixedClock(MIDNIGHT)
    async with Runtime(tmp_path, agents=[ops()], clock=clock) as rt:
        store = rt._here.engine.store
        watch = store.watch("runtime-clock")
        await passes(rt, clock, MINUTE)
        clock.skip(-2 * HOUR)
        await passes(rt, clock, MINUTE)
        while not (found := await store.read("runtime-clock")):
            await watch.wait()
        watch.close()
        assert [entry.fact.event.by_us for entry in found[1:]] == [-2 * HOUR * 1_000_000]
        assert [agent.agent for agent in await rt.agents()] == ["ops"], "it is no agent's"


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"at": MIDNIGHT - timedelta(hours=1)}, InvalidRequest, "2025-12-31T23:00:00.000Z is past"),
        ({"at": datetime(2026, 1, 2)}, InvalidRequest, "has no time zone"),
        ({"cron": "0 7 * *"}, InvalidRequest, "has 4 fields, and a cron line has 5"),
        ({"cron": "0 0 30 2 *"}, InvalidRequest, "bad day-of-month"),
        ({"cron": "0 7 * * *", "timezone": "Europe/Berlim"}, InvalidConfig, "'Europe/Berlim'"),
        (
            {"at": MIDNIGHT + timedelta(hours=1), "timezone": "Europe/Berlin"},
            InvalidRequest,
            "timezone='Europe/Berlin' has no effect on a single time",
        ),
        ({}, InvalidRequest, "neither a time nor a cron line"),
        ({"cron": "0 7 * * *", "catch_up": "two"}, InvalidRequest, "catch_up='two'"),
        ({"cron": "0 7 * * *", "thread": "t" * 513}, InvalidRequest, "thread has 513 characters"),
        ({"cron": "0 7 * * *", "thread": "\ud800"}, InvalidRequest, "thread holds half of a surrogate pair"),
        ({"cron": "0 7 * * *", "name": "n" * 201}, InvalidRequest, "name has 201 characters"),
        ({"cron": "0 7 * * *", "check": " "}, InvalidRequest, "the timer's check is blank"),
        ({"cron": "0 7 * * *", "check": "c" * 70_000}, InvalidRequest, "check has 70,000 characters"),
        ({"cron": "0 7 * * *", "agent": "opps"}, AgentNotFound, "no agent 'opps'"),
    ],
)
async def test_a_timer_that_makes_no_sense_is_refused_with_what_would_be_right(
    tmp_path: Path, given: dict[str, Any], error: type[Exception], words: str
) -> None:
    async with Runtime(tmp_path, agents=[ops()], clock=FixedClock(MIDNIGHT)) as rt:
        agent = given.pop("agent", "ops") if "agent" in given else "ops"
        with pytest.raises(error, match=words.replace("(", r"\(")):
            await rt.arm_timer(agent, "Wake up.", **given)
        assert await rt.timers() == []


async def test_failures_in_a_row_are_counted_and_end_with_a_turn_that_completes(tmp_path: Path) -> None:
    clock, broken = FixedClock(MIDNIGHT), [True]

    def reply(request: Any) -> Any:
        return {"fail": [{"kind": "contract_error"}]} if broken[0] else "done"

    async with Runtime(tmp_path, agents=[Agent("ops", scripted(reply))], clock=clock) as rt:
        await rt.arm_timer("ops", "Every hour.", cron="0 * * * *")
        for _ in range(3):
            await passes(rt, clock, HOUR)
        (timer,) = await rt.timers()
        assert timer.failures == 3
        broken[0] = False
        for _ in range(2):
            await passes(rt, clock, HOUR)
        (timer,) = await rt.timers()
        assert timer.failures == 0


async def test_due_times_that_could_not_start_count_as_failures_and_are_told_once(tmp_path: Path) -> None:
    """The agent's model is not there: its due times are kept as one message, and people are told once."""
    clock = FixedClock(MIDNIGHT)
    async with Runtime(tmp_path, agents=[Agent("ops", "nowhere:m")], clock=clock) as rt:
        await rt.arm_timer("ops", "Every hour.", cron="0 * * * *")
        for _ in range(5):
            await passes(rt, clock, HOUR)
        (timer,) = await rt.timers()
        assert (timer.failures, timer.fired) == (1, 1), "further due times are kept while it is paused"
        assert (await rt.agents())[0].control == "paused"
        assert len(await rt.notices("ops")) == 1


async def test_due_times_whose_check_cannot_begin_are_kept_and_count_as_failures(tmp_path: Path) -> None:
    """The agent's code is not there any more, so nobody knows under which policy its check would run."""
    clock, work = FixedClock(MIDNIGHT), tmp_path / "work"
    work.mkdir()
    entry = {"cron": "0 * * * *", "say": "Look.", "check": "true"}
    agent = Agent("ops", scripted(["done"], leftover="ignore"), workspace=work, wake=[entry])
    async with Runtime(tmp_path / "rt", agents=[agent], clock=clock) as rt:
        await rt.settled()
    async with Runtime(tmp_path / "rt", clock=clock) as rt:
        await rt.settled()
        assert [timer.failures for timer in await rt.timers()] == [0]
        for _ in range(3):
            await passes(rt, clock, HOUR)
        assert [(timer.failures, timer.fired, timer.folded) for timer in await rt.timers()] == [(1, 0, 0)]
        assert [notice.kind for notice in await rt.notices("ops")] == ["failure"]


# --- `wake` of an agent --------------------------------------------------------------------------------------------


def woken(*entries: Any, asked: list[str] | None = None) -> Agent[None, str]:
    return ops(asked).changed(wake=entries)


MORNING = {"cron": "0 7 * * *", "timezone": "Europe/Berlin", "say": "Check the backups."}


async def test_a_runtime_wakes_an_agent_as_its_definition_says(tmp_path: Path) -> None:
    clock, asked = FixedClock(MIDNIGHT), list[str]()
    async with Runtime(tmp_path, agents=[woken(MORNING, asked=asked)], clock=clock) as rt:
        await passes(rt, clock, 6 * HOUR)
        assert asked == ["Check the backups."]
        (timer,) = await rt.timers()
        assert (timer.armed_by, timer.fired) == ("code", 1)


async def test_a_definition_that_is_read_again_keeps_its_timers_and_takes_back_those_it_has_no_more(
    tmp_path: Path,
) -> None:
    clock = FixedClock(MIDNIGHT)
    async with Runtime(tmp_path, agents=[woken(MORNING)], clock=clock) as rt:
        (before,) = await rt.timers()
    clock.advance(3 * DAY)
    async with Runtime(tmp_path, agents=[woken(MORNING)], clock=clock) as rt:
        await rt.settled()
        (same,) = await rt.timers()
        assert (same.timer_id, same.fired, same.folded) == (before.timer_id, 1, 2), "what passed meanwhile is told of"
    async with Runtime(tmp_path, agents=[woken({**MORNING, "cron": "0 8 * * *"})], clock=clock) as rt:
        (other,) = await rt.timers()
        assert other.cron == "0 8 * * *"
        assert [timer.state for timer in await rt.timers("ops")] == ["cancelled", "armed"]
    async with Runtime(tmp_path, agents=[woken()], clock=clock) as rt:
        assert await rt.timers() == []


async def test_an_agents_file_says_when_it_is_woken(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "ops.yaml").write_text(
        "name: ops\nmodel: scripted:hello\nwake:\n  - {cron: '0 7 * * 1-5', say: Check the backups., thread: main}\n"
    )
    async with Runtime(tmp_path, clock=FixedClock(MIDNIGHT)) as rt:
        (timer,) = await rt.timers()
        assert (timer.cron, timer.thread, timer.armed_by) == ("0 7 * * 1-5", "main", "file")


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"cron": "0 7 * *", "say": "x"}, "has 4 fields"),
        ({"cron": "0 0 30 2 *", "say": "x"}, "bad day-of-month"),
        ({"cron": "0 7 * * *", "say": "x", "timezone": "Mars/Base"}, "'Mars/Base'"),
        ({"cron": "0 7 * * *"}, "say"),
        ({"cron": "0 7 * * *", "say": "x", "catch_up": "two"}, "catch_up"),
        ({"cron": "0 7 * * *", "say": "x", "when": "now"}, "when"),
        ("0 7 * * *", "an entry is an object"),
    ],
)
def test_a_wake_entry_that_cannot_be_due_is_refused_when_the_agent_is_made(entry: Any, words: str) -> None:
    with pytest.raises(InvalidConfig, match=words):
        woken(entry)


async def test_wake_in_a_run_of_the_library_is_told_to_have_no_effect(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from wakeful import run

    await run(woken(MORNING), "Hello.", store=tmp_path / "runs.db")
    assert "wake= has no effect in a run" in caplog.text
