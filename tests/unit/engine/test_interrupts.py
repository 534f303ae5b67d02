"""What an interrupt does to the calls and the children of a turn, and what a failing call does to those beside it."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from kit.gates.confined_commands import alive, marker, until
from kit.runs.engine_runs import calls, check_ends, facts_of, kinds, of_kind, until_known
from wakeful import Agent, Budget, RunContext, RunResult, cancel, interrupt, run, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.events import (
    ActionResolved,
    LimitChanged,
    ModelFailed,
    SubagentFailed,
    SubagentStarted,
    ToolFailed,
    ToolProgress,
    ToolResult,
    TurnFailed,
    TurnInterruptApplied,
    TurnInterruptRequested,
    WarningIssued,
)
from wakeful.engine.run_request import RunRequest
from wakeful.gate.running_call import GRACE_SECONDS
from wakeful.ports import ModelRequest
from wakeful.service.commands.turns import run_turn
from wakeful.service.queries.replay import replay_turn
from wakeful.store.memory import MemoryStore
from wakeful.testing import FixedClock, scripted


class Case:
    """A turn whose first round makes some calls; each tool says when it has begun."""

    def __init__(self, *round_: Any, tools: list[Any], **options: Any) -> None:
        self.store = MemoryStore()
        self.agent = Agent("any", scripted([calls(*round_), "done"], leftover="ignore"), tools=tools, **options)

    def start(self, **options: Any) -> "asyncio.Task[RunResult[Any]]":
        return asyncio.create_task(run(self.agent, "go", store=self.store, key="k", **options))

    async def stop(self) -> None:
        row = await self.store.turn_of_key("k")
        assert row is not None
        await interrupt(self.store, turn_id=row.turn_id)

    async def is_identical(self) -> bool:
        row = await self.store.turn_of_key("k")
        assert row is not None
        return (await replay_turn(self.store, row)).identical


def outcomes(result: RunResult[Any]) -> dict[str, Any]:
    """How each call ended."""
    return {
        str(entry.fact.call_id): entry.fact.event
        for entry in result.facts()
        if isinstance(entry.fact.event, ToolResult | ToolFailed)
    }


def acknowledged(result: RunResult[Any]) -> list[str | None]:
    return [
        entry.fact.call_id
        for entry in result.facts()
        if isinstance(entry.fact.event, ToolProgress) and entry.fact.event.message == "cancel_acknowledged"
    ]


@pytest.mark.spec("STD-INT-01", "STD-INT-05", "STD-INT-08", "STD-INT-09")
async def test_what_was_asked_seen_and_came_of_it_are_facts_of_their_own() -> None:
    begun = asyncio.Event()

    @tool(effect="pure")
    async def quick() -> str:
        return "found"

    @tool(effect="irreversible")
    async def act() -> str:
        begun.set()
        await asyncio.sleep(60)
        return "never"

    case = Case("quick", "act", "act", tools=[quick, act])
    task = case.start()
    await begun.wait()
    await case.stop()
    result = await task
    order = [kind for kind in kinds(list(result.facts())) if kind.startswith(("turn.i", "tool.p", "tool.f", "turn.f"))]
    assert order == [
        *("turn.interrupt.requested", "turn.interrupt.applied", "tool.failed"),
        *("tool.progress", "tool.failed", "turn.failed"),
    ]
    (asked,) = of_kind(result, TurnInterruptRequested)
    assert asked.reason == "user_interrupt"
    assert acknowledged(result) == ["call_1_2"], "only what runs is told, and says that it heard"
    ended = outcomes(result)
    assert (ended["call_1_2"].status, ended["call_1_2"].abort_reason) == ("cancelled", "user_interrupt")
    assert (ended["call_1_3"].status, ended["call_1_3"].abort_reason) == ("skipped", "user_interrupt")
    assert isinstance(ended["call_1_1"], ToolResult), "what there was stays"
    (end,) = of_kind(result, TurnFailed)
    assert end.status == "cancelled"
    assert len(result.history()) == 5 and result.calls("quick")[0].result == "found"
    check_ends(result.facts())
    assert await case.is_identical()


async def test_a_call_that_finishes_after_all_has_its_result_and_no_more() -> None:
    begun = asyncio.Event()

    @tool(effect="irreversible")
    async def act() -> str:
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "it was done by then"
        return "never"

    case = Case("act", tools=[act])
    task = case.start()
    await begun.wait()
    await case.stop()
    result = await task
    assert isinstance(outcomes(result)["call_1_1"], ToolResult) and acknowledged(result) == []
    assert result.status == "cancelled"


async def test_a_call_that_blocks_is_let_finish_and_the_next_turn_waits_for_it() -> None:
    begun, go_on = [asyncio.Event(), asyncio.Event()], asyncio.Event()

    @tool(effect="pure", interrupt_behavior="block")
    async def save() -> str:
        begun[0].set()
        await go_on.wait()
        return "saved"

    @tool(effect="pure")
    async def look() -> str:
        begun[1].set()
        await asyncio.sleep(60)
        return "never"

    case = Case("save", "look", tools=[save, look])
    task = case.start(thread="t")
    for each in begun:
        await each.wait()
    later = Agent("any", scripted(["next"]), tools=[save, look])
    following = asyncio.create_task(run(later, "next", store=case.store, thread="t"))
    await case.stop()
    row = await case.store.turn_of_key("k")
    assert row is not None
    watch = case.store.watch("any")
    while "tool.failed" not in kinds(await facts_of(case.store, row.turn_id)):
        await watch.wait(timeout=0.05)
    watch.close()
    assert not task.done() and not following.done(), "the blocking call is at it"
    go_on.set()
    result = await task
    (applied,) = of_kind(result, TurnInterruptApplied)
    assert (applied.blocking_tool_call_ids, applied.cancelled_tool_call_ids) == (("call_1_1",), ("call_1_2",))
    ended = outcomes(result)
    assert isinstance(ended["call_1_1"], ToolResult) and ended["call_1_1"].preview == "saved"
    assert ended["call_1_2"].status == "cancelled"
    assert result.status == "cancelled" and (await following).output == "next"
    check_ends(result.facts())
    assert await case.is_identical()


@pytest.mark.spec("STD-INT-02")
@pytest.mark.parametrize("behavior", ["cancel", "block"])
async def test_a_tool_says_whether_an_interrupt_stops_it_or_waits_for_it_with_all_that_depends_on_it(
    behavior: Any,
) -> None:
    """What depends on it: its parent's call, the next turn of the thread, and a call of another that needs its lock."""
    begun, go_on, done = [asyncio.Event(), asyncio.Event()], asyncio.Event(), list[str]()

    @tool(effect="irreversible", interrupt_behavior=behavior, locks=["disk"])
    async def save() -> str:
        begun[0].set()
        async with asyncio.timeout(60):
            await go_on.wait()
        done.append("saved")
        return "saved"

    @tool(effect="pure")
    async def look() -> str:
        begun[1].set()
        await asyncio.sleep(60)
        return "never"

    @tool(effect="pure", locks=["disk"])
    async def copy() -> str:
        done.append("copied")
        return "copied"

    store, tools = MemoryStore(), [save, look, copy]

    async def answer(request: ModelRequest) -> Any:
        if request.depth:
            return calls("save")
        newest = [item.text for item in request.history if item.role == "user"][-1]
        if newest == "next":
            done.append("next")
        first = {"go": calls(("run_subtask", {"title": "t", "instructions": "i"}), "look"), "other": calls("copy")}
        return "done" if request.answered else first.get(newest, "done")

    around = new_engine(store)

    def asked(prompt: str, thread: str) -> "asyncio.Task[RunResult[Any]]":
        agent = Agent("any", scripted(answer), tools=tools, subtasks=True)
        return asyncio.create_task(run_turn(around, RunRequest(agent, prompt, thread=thread, key=prompt)))

    async def until(key: str, kind: str) -> None:
        watch = store.watch("any")
        async with asyncio.timeout(60):
            while (row := await store.turn_of_key(key)) is None or kind not in kinds(
                await facts_of(store, row.turn_id)
            ):
                await watch.wait(timeout=0.05)
        watch.close()

    task = asked("go", "t")
    for each in begun:
        await each.wait()
    following, other = asked("next", "t"), asked("other", "u")
    await until("other", "assistant.recorded")
    await until("next", "message.admitted")
    row = await store.turn_of_key("go")
    assert row is not None
    await interrupt(store, turn_id=row.turn_id)
    await until("go", "tool.failed")  # `look` is told, and stops
    if behavior == "block":
        assert (done, task.done(), following.done()) == ([], False, False), "all of them wait"
        go_on.set()
    result = await task
    assert [(await each).output for each in (following, other)] == ["done", "done"]
    (applied,) = of_kind(result, TurnInterruptApplied)
    ended = {one.tool_name: one for one in outcomes(result).values()}
    assert ended["look"].status == ended["run_subtask"].status == result.status == "cancelled"
    order = [
        entry.fact.event.tool_name for entry in result.facts() if isinstance(entry.fact.event, ToolResult | ToolFailed)
    ]
    assert order.index("save") < order.index("run_subtask"), "what waits for it ends after it"
    if behavior == "block":
        assert (ended["save"].preview, len(applied.blocking_tool_call_ids)) == ("saved", 1)
        assert done[0] == "saved" and sorted(done[1:]) == ["copied", "next"], "then they go on"
    else:
        assert (ended["save"].status, applied.blocking_tool_call_ids) == ("cancelled", ())
        assert sorted(done) == ["copied", "next"], "it was stopped, and nobody waited"
    check_ends(result.facts())


async def test_a_call_that_blocks_does_not_outlive_the_time_of_its_turn() -> None:
    clock, begun, store = FixedClock(), asyncio.Event(), MemoryStore()

    @tool(effect="irreversible", interrupt_behavior="block")
    async def save() -> str:
        begun.set()
        await asyncio.sleep(60)
        return "never"

    agent = Agent("any", scripted([calls("save")], leftover="ignore"), tools=[save])
    around = new_engine(store, clock=clock)
    task = asyncio.create_task(run_turn(around, RunRequest(agent, "go", budget=Budget(seconds=10), key="k")))
    await begun.wait()
    await clock.somebody_sleeps()
    row = await store.turn_of_key("k")
    assert row is not None
    await cancel(store, row.turn_id)
    watch = store.watch(row.agent_id)
    while "turn.interrupt.applied" not in kinds(await facts_of(store, row.turn_id)):
        await watch.wait(timeout=0.05)
    watch.close()
    assert not task.done()
    clock.advance(11)
    result = await task
    assert (result.status, result.stop_reason) == ("cancelled", "cancelled")
    first, second = of_kind(result, TurnInterruptApplied)
    assert (first.blocking_tool_call_ids, first.cancelled_tool_call_ids) == (("call_1_1",), ())
    assert (second.interrupt_id, second.cancelled_tool_call_ids) == ("limit:wall_clock", ("call_1_1",))
    assert len(of_kind(result, LimitChanged)) == 1
    check_ends(result.facts())
    assert (await replay_turn(store, row)).identical


# --- two seconds -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("effect", ["pure", "keyed", "irreversible"])
async def test_a_call_that_does_not_stop_is_warned_of_and_nobody_knows_what_it_did(effect: Any) -> None:
    begun, go_on = threading.Event(), threading.Event()

    @tool(effect=effect)
    def act() -> str:
        begun.set()
        go_on.wait(30)
        return "late"

    case = Case("act", tools=[act])
    task = case.start()
    await asyncio.to_thread(begun.wait, 30)
    await case.stop()
    result = await task
    (warning,) = of_kind(result, WarningIssued)
    assert warning.code == "cancel_ignored" and "act (call_1_1) was told to stop and did not" in warning.message
    ended = outcomes(result)["call_1_1"]
    assert (ended.status, ended.effects, ended.abort_reason) == ("cancelled", "unknown", "user_interrupt")
    assert acknowledged(result) == []
    go_on.set()
    await until_known(case.store)  # its late answer closes it


async def in_time(stopped: Callable[[], Awaitable[RunResult[Any]]]) -> RunResult[Any]:
    """A run whose call stops when it is told to. Two seconds are short on a machine that stands still for a while, and
    then it is right to warn: it gets more than one chance."""
    for _ in range(4):
        result = await stopped()
        if of_kind(result, WarningIssued) == []:
            break
    return result


async def test_a_thread_that_looks_has_two_seconds_to_stop() -> None:
    async def stopped() -> RunResult[Any]:
        begun = threading.Event()

        @tool(effect="irreversible")
        def act(ctx: RunContext[None]) -> str:
            begun.set()
            while not ctx.cancelled.wait(0.3):
                pass
            return "stopped in time"

        case = Case("act", tools=[act])
        task = case.start()
        await asyncio.to_thread(begun.wait, 30)
        await case.stop()
        return await task

    result = await in_time(stopped)
    assert acknowledged(result) == ["call_1_1"]
    assert outcomes(result)["call_1_1"].preview == "stopped in time", "tool.result when it finished after all"
    assert of_kind(result, WarningIssued) == []


@pytest.mark.spec("STD-INT-07")
async def test_what_is_told_to_stop_is_gone_within_two_seconds_or_warned_of(tmp_path: Path) -> None:
    async def yes(_: Any) -> bool:
        return True

    async def stopped() -> RunResult[Any]:
        name, store = marker(), MemoryStore()
        mark = tmp_path / name
        command = {"cmd": f"sleep {name} & echo $! > {mark.name}; sleep {name}", "login": False}
        turns = scripted([calls(("wakeful/exec_command", command)), "done"], leftover="ignore")
        agent = Agent("any", turns, workspace=tmp_path, profile="coding")
        task = asyncio.create_task(run(agent, "go", store=store, key="k", approver=yes))
        while not _read(mark).strip():
            assert not task.done(), task.result().calls()
            await asyncio.wait({task}, timeout=0.05)
        row = await store.turn_of_key("k")
        assert row is not None
        await cancel(store, row.turn_id)
        result = await task
        assert await until(lambda: alive(name) == []), "children included"
        return result

    result = await in_time(stopped)
    facts = list(result.facts())
    ended = next(one for one in facts if isinstance(one.fact.event, ToolFailed))
    assert isinstance(ended.fact.event, ToolFailed)
    assert ended.fact.event.status == "cancelled"
    # One that is not over within the grace is warned of: this one was.
    assert acknowledged(result) == [ended.fact.call_id] and of_kind(result, WarningIssued) == []
    # One that does not stop: the turn goes on without it after the same two seconds, and says so.
    assert GRACE_SECONDS == 2
    begun, go_on = asyncio.Event(), asyncio.Event()

    @tool(effect="irreversible")
    async def stubborn() -> str:
        begun.set()
        while not go_on.is_set():
            try:
                await go_on.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    case = Case("stubborn", tools=[stubborn])
    task = case.start()
    await begun.wait()
    await case.stop()
    result = await task
    (warning,) = of_kind(result, WarningIssued)
    assert warning.code == "cancel_ignored" and outcomes(result)["call_1_1"].effects == "unknown"
    go_on.set()
    await until_known(case.store)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


# --- trees -----------------------------------------------------------------------------------------------------------


def of_level(facts: list[StoredFact], level: str | None) -> list[str]:
    return [entry.fact.event.kind for entry in facts if entry.fact.level == level]


@pytest.mark.spec("STD-INT-10")
async def test_an_interrupt_reaches_every_level_and_children_end_before_their_parents(tmp_path: Path) -> None:
    """A child with a child of its own that runs a command; two jobs side by side, one of which asks its model."""
    asking, acting, store = asyncio.Event(), asyncio.Event(), MemoryStore()
    name = marker()
    mark = tmp_path / name

    @tool(effect="pure")
    async def act() -> str:
        acting.set()
        await asyncio.sleep(60)
        return "never"

    async def answer(request: ModelRequest) -> Any:
        if request.depth == 0:
            jobs = {"jobs": [{"task": "asks"}, {"task": "acts"}]}
            return calls(("run_subtask", {"title": "deep", "instructions": "deep"}), ("spawn_parallel", jobs))
        task = next(iter(request.history)).text
        if "asks" in task:
            asking.set()
            await asyncio.sleep(60)
        if "acts" in task:
            return calls("act")
        if request.depth == 1:
            return calls(("run_subtask", {"title": "deeper", "instructions": "deeper"}))
        command = f"sleep {name} & echo $! > {mark.name}; sleep {name}"
        return calls(("wakeful/exec_command", {"cmd": command, "login": False}))

    async def yes(_: Any) -> bool:
        return True

    agent = Agent(
        *("any", scripted(answer)),
        tools=[act],
        subtasks=True,
        allow_parallel_subagents=True,
        workspace=tmp_path,
        profile="coding",
    )
    task = asyncio.create_task(run(agent, "go", store=store, key="k", approver=yes))
    await asking.wait()
    await acting.wait()
    while not _read(mark).strip():
        assert not task.done(), task.result().calls()
        await asyncio.wait({task}, timeout=0.05)
    row = await store.turn_of_key("k")
    assert row is not None
    await cancel(store, row.turn_id)
    result = await task
    assert result.status == "cancelled"
    assert await until(lambda: alive(name) == []), "processes too"
    facts = list(result.facts())
    (applied,) = of_kind(result, TurnInterruptApplied)
    levels = {entry.fact.level for entry in facts if entry.fact.level is not None}
    assert set(applied.cancelled_children) == levels and len(levels) == 4
    ends = {
        entry.fact.event.level_id: (entry.seq, entry.fact.event.error)
        for entry in facts
        if isinstance(entry.fact.event, SubagentFailed)
    }
    assert set(ends) == levels and {error for _, error in ends.values()} == {"cancelled"}
    made = {
        entry.fact.event.level_id: entry.fact.level for entry in facts if isinstance(entry.fact.event, SubagentStarted)
    }
    for level, parent in made.items():
        assert parent is None or ends[level][0] < ends[parent][0], "a child before its parent"
    calls_ended = [entry.seq for entry in facts if isinstance(entry.fact.event, ToolFailed)]
    end = next(entry.seq for entry in facts if isinstance(entry.fact.event, TurnFailed))
    assert max(seq for seq, _ in ends.values()) < end and max(calls_ended) < end
    assert of_kind(result, ModelFailed)[0].failure_kind == "cancelled", "a request under way is given up"
    ended = list(outcomes(result).values())
    assert len(ended) == 5
    (jobs,) = (one for one in ended if isinstance(one, ToolResult))
    assert jobs.tool_name == "spawn_parallel" and jobs.item.parts[0].text.count('"cancelled"') == 2, "a result a job"
    stopped = [one for one in ended if one is not jobs]
    assert {(one.status, one.abort_reason) for one in stopped} == {("cancelled", "user_interrupt")}
    check_ends(facts)
    assert (await replay_turn(store, row)).identical


# --- a failure beside it ---------------------------------------------------------------------------------------------


def failing(policy: Any, gate: asyncio.Event) -> Any:
    @tool(name="fails", effect="pure", on_failure=policy)
    async def fails() -> str:
        await gate.wait()
        raise ValueError("no")

    return fails


@pytest.mark.spec("STD-INT-12")
@pytest.mark.parametrize("policy", ["ignore", "cancel_siblings", "cancel_dependent"])
async def test_a_tool_says_what_its_failure_does_to_the_calls_beside_it(policy: Any) -> None:
    gate, go_on = asyncio.Event(), asyncio.Event()

    @tool(effect="pure")
    async def beside() -> str:
        gate.set()
        await asyncio.wait_for(go_on.wait(), 60)
        return "beside"

    @tool(effect="keyed")
    async def after() -> str:
        return "after"

    case = Case("beside", "fails", "after", tools=[beside, failing(policy, gate), after])
    task = case.start()
    await gate.wait()
    if policy != "cancel_siblings":
        row = await case.store.turn_of_key("k")
        assert row is not None
        watch = case.store.watch(row.agent_id)
        while "tool.failed" not in kinds(await facts_of(case.store, row.turn_id)):
            await watch.wait(timeout=0.05)
        watch.close()
        go_on.set()
    result = await task
    assert result.output == "done", "the turn itself goes on"
    ended = outcomes(result)
    assert ended["call_1_2"].status == "failed"
    running, waiting = ended["call_1_1"], ended["call_1_3"]
    if policy == "cancel_siblings":
        told = (running.status, running.error_category, running.abort_reason)
        assert told == ("cancelled", "sibling_canceled", "sibling_failed")
        assert acknowledged(result) == ["call_1_1"]
    else:
        assert running.preview == "beside"
    if policy == "ignore":
        assert waiting.preview == "after"
    else:
        told = (waiting.status, waiting.error_category, waiting.abort_reason)
        assert told == ("skipped", "sibling_canceled", "sibling_failed")
    check_ends(result.facts())
    assert await case.is_identical()


def test_the_default_is_that_nothing_happens_to_them_and_other_words_are_refused() -> None:
    @tool
    def plain() -> str:
        return ""

    assert (plain.declaration.on_failure, plain.declaration.interrupt_behavior) == ("ignore", "cancel")
    with pytest.raises(InvalidConfig, match="on_failure='all'"):
        tool(on_failure="all")  # type: ignore[call-overload]
    with pytest.raises(InvalidConfig, match="interrupt_behavior='wait'"):
        tool(interrupt_behavior="wait")  # type: ignore[call-overload]


async def test_a_failure_calls_off_questions_and_whole_children_too() -> None:
    gate, store = asyncio.Event(), MemoryStore()

    @tool(effect="pure")
    async def act() -> str:
        gate.set()
        await asyncio.sleep(60)
        return "never"

    @tool(effect="irreversible", approval=True)
    def pay() -> str:
        return "paid"

    async def answer(request: ModelRequest) -> Any:
        if request.depth:
            return calls("act")
        if request.answered:
            return "done"
        return calls("fails", ("run_subtask", {"title": "t", "instructions": "i"}), "pay")

    agent = Agent(
        "any", scripted(answer), tools=[act, pay, failing("cancel_siblings", gate)], subtasks=True, hitl_tools=["pay"]
    )
    result = await run(agent, "go", store=store, key="k")
    assert result.output == "done"
    ended = {one.tool_name: one for one in outcomes(result).values()}
    assert (ended["act"].status, ended["act"].error_category) == ("cancelled", "sibling_canceled")
    assert (ended["run_subtask"].status, ended["run_subtask"].error_category) == ("cancelled", "sibling_canceled")
    assert ended["run_subtask"].abort_reason == ended["pay"].abort_reason == "sibling_failed"
    assert ended["pay"].status == "skipped" and not await store.actions(pending_only=True)
    assert [one.error for one in of_kind(result, SubagentFailed)] == ["cancelled"]
    assert all(one.decision == "cancel" for one in of_kind(result, ActionResolved))
    check_ends(result.facts())
    row = await store.turn_of_key("k")
    assert row is not None and (await replay_turn(store, row)).identical
