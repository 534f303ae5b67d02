"""Agents that wait, through `Runtime` and on a clock that is moved: what ends a wait, and what does not."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from wakeful import Agent, Runtime, open_store, run, tool
from wakeful.testing import FixedClock, scripted

HOUR = 3600


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": arguments}]}


def ops(*replies: Any) -> Agent[None, str]:
    """An agent whose model says these one after the other, whichever turn it is asked in; past the end it is done."""
    left = list(replies)
    return Agent("ops", scripted(lambda request: left.pop(0) if left else "done"))


async def kinds(rt: Runtime, *wanted: str) -> list[str]:
    found = await rt._here.engine.store.read("ops")
    return [entry.fact.event.kind for entry in found if entry.fact.event.kind.startswith(wanted)]


async def shown(rt: Runtime) -> list[str]:
    """What the messages of the agent say, in the order in which they came."""
    found = await rt._here.engine.store.read("ops")
    return [entry.fact.event.item.text for entry in found if entry.fact.event.kind == "message.admitted"]


async def passes(rt: Runtime, clock: FixedClock, seconds: float) -> None:
    await rt.settled()
    clock.advance(seconds)
    await rt.settled()


@pytest.mark.spec("HOL-WAKE-05", "HOL-WAKE-06", "HOL-WAKE-01", "HOL-WAKE-04")
async def test_sleep_ends_the_turn_and_wakes_the_agent_after_its_time(tmp_path: Path) -> None:
    clock = FixedClock()
    async with Runtime(
        tmp_path, agents=[ops(call("sleep", reason="rest", duration_ms=60_000), "awake")], clock=clock
    ) as rt:
        result = await rt.answer(await rt.send("ops", "Rest a minute."))
        assert (result.status, result.stop_reason) == ("completed", "natural")
        (wait,) = await rt._here.engine.store.open_waits("ops")
        assert (wait.reason, wait.wake, wait.is_sleep, wait.turn_id) == ("rest", "timer", True, result.turn_id)
        await passes(rt, clock, 59)
        assert len(await shown(rt)) == 1
        await passes(rt, clock, 1)
        assert (await shown(rt))[1].endswith("the time is over. You said: rest")
        assert await kinds(rt, "wait.", "turn.completed") == [
            "wait.created",
            "turn.completed",
            "wait.resolved",
            "turn.completed",
        ]


@pytest.mark.spec("HOL-WAKE-07")
@pytest.mark.parametrize("given", [{}, {"duration_ms": 0}])
async def test_sleep_without_an_end_rests_until_a_message_comes(tmp_path: Path, given: dict[str, int]) -> None:
    clock = FixedClock()
    async with Runtime(tmp_path, agents=[ops(call("sleep", reason="rest", **given), "yes?")], clock=clock) as rt:
        await rt.answer(await rt.send("ops", "Rest."))
        assert await rt._here.engine.store.open_waits("ops") == []
        await passes(rt, clock, 100 * HOUR)
        assert len(await shown(rt)) == 1
        assert (await rt.answer(await rt.send("ops", "Hello?"))).output == "yes?"


async def test_a_wait_in_vain_ends_at_its_deadline_once_and_the_agent_is_told(tmp_path: Path) -> None:
    clock = FixedClock()
    script = [call("wait_for", reason="the vote", wake="external", resource="vote 7"), "I gave up"]
    async with Runtime(tmp_path, agents=[ops(*script)], clock=clock) as rt:
        result = await rt.answer(await rt.send("ops", "Wait for the vote."))
        (wait,) = await rt._here.engine.store.open_waits("ops")
        assert wait.due_at - wait.created_at == timedelta(hours=24) / timedelta(microseconds=1)
        assert result.status == "completed"
        await passes(rt, clock, 24 * HOUR)
        assert "the deadline has come first. You said: the vote" in (await shown(rt))[1]
        await passes(rt, clock, 24 * HOUR)
        assert await kinds(rt, "wait.") == ["wait.created", "wait.expired"]
        assert len(await shown(rt)) == 2


async def test_the_operator_ends_a_wait_for_the_operator(tmp_path: Path) -> None:
    script = [call("wait_for", reason="which one?", wake="operator_input"), "the blue one"]
    async with Runtime(tmp_path, agents=[ops(*script)], clock=FixedClock()) as rt:
        await rt.answer(await rt.send("ops", "Choose."))
        assert (await rt.answer(await rt.send("ops", "Blue."))).output == "the blue one"
        assert await kinds(rt, "wait.") == ["wait.created", "wait.resolved"]


async def test_wrong_wake_type_what_is_not_waited_for_is_shown_later_and_never_lost(tmp_path: Path) -> None:
    """It says something, so that it is deferred: the operator's turn shows it, and after 15 minutes it starts one."""
    clock = FixedClock()
    script = [
        call("wait_for", reason="which one?", wake="operator_input"),
        "seen",
        call("wait_for", reason="more", wake="operator_input"),
        "again",
    ]
    async with Runtime(tmp_path, agents=[ops(*script)], clock=clock) as rt:
        await rt.answer(await rt.send("ops", "Choose."))
        await rt.wake("ops", body="the build is red", source="ci")
        await passes(rt, clock, 60)
        assert await kinds(rt, "continuation.", "message.deferred") == ["continuation.resolved", "message.deferred"]
        row = await rt._here.engine.store.last_continuation("ops")
        assert row is not None and (row.treatment, row.resolution["prior_waiting_reason"]) == (
            "deferred",
            "awaiting_operator_input",
        )
        await passes(rt, clock, 15 * 60)
        assert await kinds(rt, "turn.completed") == ["turn.completed"] * 2, "it started one itself"


@pytest.mark.spec("HOL-CONT-02", "HOL-TICK-03")
async def test_a_timer_begins_a_turn_of_an_agent_that_waits_for_nothing(tmp_path: Path) -> None:
    clock = FixedClock()
    async with Runtime(tmp_path, agents=[ops("done")], clock=clock) as rt:
        await rt.arm_timer("ops", "Check the backups.", cron="0 7 * * *", thread="main")
        await passes(rt, clock, 8 * HOUR)
        assert await kinds(rt, "turn.completed") == ["turn.completed"]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (call("wait_for", reason="x", wake="timer"), "a wait for a timer needs the time: deadline_ms"),
        (call("wait_for", reason=" ", wake="external"), "say what you wait for"),
        (call("wait_for", reason="x"), "wake"),
        (call("wait_for", reason="x", wake="moon"), "operator_input"),
        (call("wait_for", reason="x", wake="timer", deadline_ms=-5), "deadline_ms"),
        (call("sleep", reason="x", duration_ms=3_600_001), "duration_ms"),
        (call("cancel_wait", wait_id="wait_9"), "not one of your open waits; open are: none"),
        (
            call("wait_for", reason="x", wake="task_result", resource="task_9"),
            "not one of your running tasks; running are: none",
        ),
        (call("wait_for", reason="x", wake="task_result"), "no task of yours is running"),
    ],
)
async def test_a_wait_that_makes_no_sense_is_refused_to_the_model_with_what_would_be_right(
    tmp_path: Path, bad: Any, words: str
) -> None:
    async with Runtime(tmp_path, agents=[ops(bad, "sorry")], clock=FixedClock()) as rt:
        result = await rt.answer(await rt.send("ops", "Wait."))
        assert result.output == "sorry"
        (refused,) = result.calls()
        assert words in str(refused)
        assert await kinds(rt, "wait.") == []


async def test_the_model_may_cancel_a_wait(tmp_path: Path) -> None:
    clock, ended = FixedClock(), {}

    def reply(request: Any) -> Any:
        ended["round"] = ended.get("round", 0) + 1
        match ended["round"]:
            case 1:
                return call("wait_for", reason="the vote", wake="external")
            case 2:
                return call("cancel_wait", wait_id=ended["wait"])
        return "cancelled"

    async with Runtime(tmp_path, agents=[Agent("ops", scripted(reply))], clock=clock) as rt:
        await rt.answer(await rt.send("ops", "Wait for the vote."))
        (wait,) = await rt._here.engine.store.open_waits("ops")
        ended["wait"] = wait.wait_id
        assert (await rt.answer(await rt.send("ops", "Forget it."))).output == "cancelled"
        assert await kinds(rt, "wait.") == ["wait.created", "wait.cancelled"]
        await passes(rt, clock, 48 * HOUR)
        assert len(await shown(rt)) == 2


async def test_in_a_run_of_the_library_nobody_could_wake_an_agent_and_it_has_no_tool_to_wait(tmp_path: Path) -> None:
    from wakeful import run

    result = await run(ops(call("sleep", reason="rest"), "no such tool"), "Rest.", store=tmp_path / "runs.db")
    (refused,) = result.calls()
    assert "sleep" in str(refused) and result.output == "no such tool"


@pytest.mark.spec("HOL-TICK-01", "HOL-TICK-04")
async def test_no_tool_makes_a_tick(tmp_path: Path) -> None:
    names: set[str] = set()

    def reply(request: Any) -> str:
        names.update(tool.name for tool in request.tools)
        return "done"

    async with Runtime(tmp_path, agents=[Agent("ops", scripted(reply))], clock=FixedClock()) as rt:
        await rt.answer(await rt.send("ops", "Hello."))
        assert {"wait_for", "sleep", "cancel_wait"} <= names
        assert not any("tick" in name for name in names)


async def test_775_waits_in_a_row_are_spaced_out_and_the_operator_is_told_once(tmp_path: Path) -> None:
    """An agent that wakes only to sleep again: after three such turns it waits longer each time."""
    clock = FixedClock()
    agent = Agent("ops", scripted(lambda request: call("sleep", reason="again", duration_ms=1000)))
    async with Runtime(tmp_path, agents=[agent], clock=clock) as rt:
        await rt.answer(await rt.send("ops", "Go."))
        for _ in range(775):
            await passes(rt, clock, 10)
        turns = len(await kinds(rt, "turn.completed"))
        assert 5 < turns < 14
        for _ in range(8):
            await passes(rt, clock, HOUR)
        assert await kinds(rt, "progress.") == ["progress.stalled"]
        assert len(await rt._here.engine.store.open_waits("ops")) <= 1


async def test_a_turn_that_ended_with_a_wait_is_decided_again_the_same_way(tmp_path: Path) -> None:
    agent = ops(call("wait_for", reason="the vote", wake="external"))
    async with Runtime(tmp_path, agents=[agent], clock=FixedClock()) as rt:
        result = await rt.answer(await rt.send("ops", "Wait for the vote."))
        (ended,) = [
            entry.fact.event
            for entry in await rt._here.engine.store.read("ops")
            if entry.fact.event.kind == "turn.completed"
        ]
        (wait,) = await rt._here.engine.store.open_waits("ops")
        assert ended.wait_ids == (wait.wait_id,)
    async with open_store(tmp_path / "wakeful.db") as store:
        assert (await store.replay(result.turn_id)).identical


@pytest.mark.spec("HOL-CLOSE-01", "HOL-CLOSE-04", "HOL-WAKE-03")
async def test_an_agent_says_where_it_stands_and_why(tmp_path: Path) -> None:
    clock = FixedClock()
    script = [call("wait_for", reason="which one?", wake="operator_input"), "blue"]
    async with Runtime(tmp_path, agents=[ops(*script)], clock=clock) as rt:
        before = await rt.closure("ops")
        assert (before.outcome, before.evidence) == ("completed", ("no turn yet",))
        waited = await rt.answer(await rt.send("ops", "Choose."))
        standing = await rt.closure("ops")
        (wait,) = await rt._here.engine.store.open_waits("ops")
        assert (standing.outcome, standing.waiting_reason) == ("waiting", "awaiting_operator_input")
        assert standing.evidence == (f"wait {wait.wait_id} for operator_input is open",)
        assert waited.status == "completed", "how the turn ended is another question"
        assert (await rt.closure("ops", thread="side")).outcome == "completed", "a wait is its thread's own"
        done = await rt.answer(await rt.send("ops", "Blue."))
        assert (await rt.closure("ops")).evidence == (f"turn {done.turn_id} completed",)


async def test_an_agent_that_could_not_be_run_has_failed_until_it_is_resumed(tmp_path: Path) -> None:
    clock, is_open = FixedClock(), list[bool]()

    def deps(context: Any) -> None:
        if not is_open:
            raise RuntimeError("the vault is closed")

    agent = Agent("ops", scripted(lambda request: "done"), deps=deps)
    async with Runtime(tmp_path, agents=[agent], clock=clock) as rt:
        message = await rt.send("ops", "Hello.")
        while (await rt.agent("ops")).control != "paused":
            await passes(rt, clock, HOUR)
        failed = await rt.closure("ops")
        assert failed.outcome == "failed"
        assert "the vault is closed" in failed.evidence[0]
        assert (await rt.agent("ops")).closure == failed, "whoever is asked says the same"
        is_open.append(True)
        await rt.resume("ops")
        await passes(rt, clock, HOUR)
        answered = await rt.answer(message)
        assert (await rt.closure("ops")).evidence == (f"turn {answered.turn_id} completed",)
        assert (await rt.agent("ops")).closure == await rt.closure("ops")


@pytest.mark.spec("HOL-CONT-20", "HOL-WAKE-08", "HOL-WAKE-10", "HOL-WAKE-12")
async def test_why_a_turn_began_is_kept_with_it(tmp_path: Path) -> None:
    script = [call("wait_for", reason="which one?", wake="operator_input"), "blue"]
    async with Runtime(tmp_path, agents=[ops(*script)], clock=FixedClock()) as rt:
        store = rt._here.engine.store
        first = await rt.send("ops", "Choose.")
        await rt.answer(first)
        row = await store.last_continuation("ops")
        assert row is not None and (row.message_id, row.message_kind, row.treatment, row.resolution["class"]) == (
            first.message_id,
            "operator_prompt",
            "turn",
            "local_continuation",
        )
        await rt.answer(await rt.send("ops", "Blue."))
        row = await store.last_continuation("ops")
        assert row is not None and (row.resolution["class"], row.resolution["matched_waiting_reason"]) == (
            "resume_expected_wait",
            True,
        )


@pytest.mark.spec("HOL-WAKE-02", "HOL-WAKE-13")
async def test_everything_that_says_something_wakes_an_agent_that_rests(tmp_path: Path) -> None:
    clock = FixedClock()
    async with Runtime(tmp_path, agents=[ops()], clock=clock) as rt:
        await rt.answer(await rt.send("ops", "Hello."))
        await rt.receive("ops", "The shop is closed.", channel="mail", sender="eve")
        await rt.settled()
        await rt.receive("ops", {"build": 7}, webhook="ci")
        await rt.settled()
        await rt.wake("ops", body="the build is red")
        await rt.arm_timer("ops", "Check.", cron="0 7 * * *", thread="main")
        await passes(rt, clock, 8 * HOUR)
        found = await rt._here.engine.store.read("ops")
        woken = [entry.fact.event.message_kind for entry in found if entry.fact.event.kind == "message.admitted"]
        assert woken == ["operator_prompt", "channel_event", "webhook_event", "system_tick", "timer_tick"]
        assert len(await kinds(rt, "turn.completed")) == 5


@pytest.mark.spec("HOL-WAKE-09")
async def test_a_turn_has_its_context_runs_and_tells_what_came_of_it(tmp_path: Path) -> None:
    agent = Agent("ops", scripted(["All backups are there."]), work_items=True)
    async with Runtime(tmp_path, agents=[agent], clock=FixedClock()) as rt:
        await rt.answer(await rt.send("ops", "Check the backups."))
        found = await kinds(rt, "turn.started", "context.resolved", "model.completed", "brief.", "turn.completed")
        assert found[:3] == ["turn.started", "context.resolved", "model.completed"]
        assert sorted(found[3:]) == ["brief.created", "turn.completed"]
        (brief,) = await rt.briefs("ops")
        assert brief.text == "All backups are there."


async def test_what_the_operator_says_is_not_held_back_however_often_the_agent_got_nowhere(tmp_path: Path) -> None:
    clock = FixedClock()

    def reply(request: Any) -> Any:
        is_asked = any("Hello?" in str(item) for item in request.history)
        return "here" if is_asked else call("sleep", reason="again", duration_ms=1000)

    async with Runtime(tmp_path, agents=[Agent("ops", scripted(reply))], clock=clock) as rt:
        await rt.answer(await rt.send("ops", "Go."))
        for _ in range(30):
            await passes(rt, clock, 10)
        assert (await rt.answer(await rt.send("ops", "Hello?"))).output == "here"


async def test_an_agents_own_tool_called_sleep_is_its_own(tmp_path: Path) -> None:
    slept: list[int] = []

    @tool(effect="pure")
    def sleep(seconds: int) -> str:
        """Rest for a while."""
        slept.append(seconds)
        return "rested"

    script = [{"calls": [{"name": "sleep", "arguments": {"seconds": 3}}]}, "done"]
    agent = Agent("ops", scripted(script), tools=[sleep])
    assert (await run(agent, "Rest.")).output == "done"
    async with Runtime(tmp_path, agents=[agent]) as rt:
        assert (await rt.answer(await rt.send("ops", "Rest."))).output == "done"
    assert slept == [3, 3]
