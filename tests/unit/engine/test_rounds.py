"""The rounds of a turn: what runs together, what runs alone, in which order results come, and where it stops."""

import asyncio
import json
from typing import Any

import pytest

from kit.runs.engine_runs import calls, check_ends, kinds, of_kind
from wakeful import Agent, Budget, RunContext, cancel, run, tool
from wakeful.contracts.budgets import MAX_PARALLEL_PER_TURN
from wakeful.contracts.events import (
    AssistantRecorded,
    ContextResolved,
    LimitChanged,
    ModelCompleted,
    ModelRequested,
    ToolFailed,
    ToolProgress,
    ToolResult,
    ToolStarted,
    TurnCompleted,
    TurnFailed,
)
from wakeful.contracts.models import TokenUsage
from wakeful.ports import ModelRequest
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted
from wakeful.views.turn_record import terminal_record


class Floor:
    """Who is at work, and who was at work together."""

    def __init__(self) -> None:
        self.now: set[str] = set()
        self.together: list[set[str]] = []
        self.order: list[str] = []

    async def work(self, name: str, ticks: int = 3) -> str:
        self.now.add(name)
        self.order.append(name)
        self.together.append(set(self.now))
        for _ in range(ticks):
            await asyncio.sleep(0)
        self.now.discard(name)
        return name

    @property
    def widest(self) -> int:
        return max(map(len, self.together))


def reader(floor: Floor, **options: Any) -> Any:
    @tool(name="read", effect="pure", **options)
    async def read(name: str, ticks: int = 3) -> str:
        return await floor.work(name, ticks)

    return read


def writer(floor: Floor, **options: Any) -> Any:
    @tool(name="write", **{"effect": "keyed", **options})
    async def write(name: str) -> str:
        return await floor.work(name)

    return write


@pytest.mark.spec("LOOP-STEP-04", "HOL-TURN-02", "HOL-TURN-03", "API-RES-04")
async def test_a_reply_without_calls_ends_the_turn_and_its_text_is_the_result() -> None:
    read = reader(Floor())
    script = scripted([{"text": "I am completely done.", **calls(("read", {"name": "a"}))}, "The answer."])
    result = await run(Agent("any", script, tools=[read]), "go")
    assert result.output == result.final_content == "The answer."
    # Words that sound like an end do not end a turn: the loop drained, and that is a fact of the runtime.
    assert result.turn_count == 2
    assert isinstance(result.facts()[-1].fact.event, TurnCompleted)
    record = terminal_record(result.turn_id, result.facts())
    assert record is not None and (record.kind, record.last_assistant_message) == ("completed", "The answer.")


@pytest.mark.spec("API-RES-04")
async def test_without_any_text_the_final_content_is_empty() -> None:
    read = reader(Floor())
    script = scripted([calls(("read", {"name": "a"}))], leftover="ignore")
    result = await run(Agent("any", script, tools=[read], max_steps=1), "go")
    assert (result.status, result.final_content) == ("incomplete", "")


@pytest.mark.spec("LOOP-STEP-05", "LOOP-STEP-12")
async def test_readers_run_together_and_writers_alone_in_the_models_order() -> None:
    floor, seen = Floor(), []

    @tool(effect="pure")
    async def context(ctx: RunContext[None]) -> str:
        seen.append((ctx.turn_id, ctx.call_id))
        return "seen"

    script = scripted(
        [
            calls(
                ("read", {"name": "r1"}),
                ("read", {"name": "r2"}),
                ("write", {"name": "w1"}),
                ("write", {"name": "w2"}),
                ("read", {"name": "r3"}),
                ("read", {"name": "r4"}),
                "context",
            ),
            "done",
        ]
    )
    result = await run(Agent("any", script, tools=[reader(floor), writer(floor), context]), "go")
    assert {"r1", "r2"} in floor.together and {"r3", "r4"} in floor.together
    assert {"w1"} in floor.together and {"w2"} in floor.together
    assert all(len(group) == 1 for group in floor.together if group & {"w1", "w2"}), "a writer is alone"
    assert floor.order.index("w1") < floor.order.index("w2") < floor.order.index("r3")
    assert seen == [(result.turn_id, "call_1_7")], "every tool is given the turn's own context"


@pytest.mark.parametrize(("locks", "widest"), [(["printer"], 1), ([], 2)], ids=["with a lock", "without"])
async def test_a_reader_that_holds_a_lock_runs_alone(locks: list[str], widest: int) -> None:
    floor = Floor()
    script = scripted([calls(("read", {"name": "a"}), ("read", {"name": "b"})), "done"])
    await run(Agent("any", script, tools=[reader(floor, locks=locks)]), "go")
    assert floor.widest == widest


@pytest.mark.spec("LOOP-STEP-07")
async def test_at_most_eight_calls_run_at_once() -> None:
    floor = Floor()
    names = [("read", {"name": str(number)}) for number in range(3 * MAX_PARALLEL_PER_TURN)]
    result = await run(Agent("any", scripted([calls(*names), "done"]), tools=[reader(floor)]), "go")
    assert floor.widest == MAX_PARALLEL_PER_TURN == 8
    assert len(result.calls()) == 24 and {call.status for call in result.calls()} == {"success"}


@pytest.mark.spec("LOOP-STEP-06")
async def test_a_raising_tool_disturbs_no_sibling() -> None:
    floor = Floor()

    @tool(effect="pure")
    async def fails() -> str:
        raise ValueError("no")

    script = scripted([calls(("read", {"name": "a"}), "fails", ("read", {"name": "b", "ticks": 20})), "done"])
    result = await run(Agent("any", script, tools=[reader(floor), fails]), "go")
    answers = [item for item in result.history() if item.role == "tool"]
    assert [(item.name, item.is_error) for item in answers] == [("read", False), ("fails", True), ("read", False)]
    assert answers[2].text == "b"


@pytest.mark.spec("LOOP-STEP-13", "LOOP-STEP-17", "STD-CALL-10")
async def test_results_stand_in_the_models_order_whatever_order_they_came_in() -> None:
    floor = Floor()
    seen: list[list[str]] = []

    def answer(request: ModelRequest) -> Any:
        if request.answered:
            seen.append([item.text for item in request.history if item.role == "tool"])
            return "done"
        slow = ("read", {"name": "slow", "ticks": 40})
        return calls(slow, ("read", {"name": "quick", "ticks": 1}), ("read", {"name": "middle", "ticks": 10}))

    result = await run(Agent("any", scripted(answer), tools=[reader(floor)]), "go")
    assert seen == [["slow", "quick", "middle"]], "the model reads them in its own order, all of them"
    ends = [entry.fact.call_id for entry in result.facts() if isinstance(entry.fact.event, ToolResult)]
    assert ends == ["call_1_2", "call_1_3", "call_1_1"], "each end is written as soon as it is known"
    for call_id in ends:
        told = [entry.fact.event.kind for entry in result.facts() if entry.fact.call_id == call_id]
        assert told == ["permission.evaluated", "tool.started", "tool.result"]


@pytest.mark.spec("STD-CALL-10", "CTL-META-05")
async def test_a_calls_facts_are_its_beginning_its_progress_and_one_end() -> None:
    @tool(effect="pure")
    async def works(ctx: RunContext[None]) -> str:
        for step in range(5):
            ctx.progress(f"step {step}", done=step, total=5)
        return "ok"

    result = await run(Agent("any", scripted([calls("works"), "done"]), tools=[works]), "go")
    of_call = [entry.fact.event for entry in result.facts() if entry.fact.call_id == "call_1_1"]
    assert [event.kind for event in of_call] == [
        "permission.evaluated",
        "tool.started",
        "tool.progress",
        "tool.progress",
        "tool.result",
    ], "the first note and the last are facts, those between were shown and are gone"
    notes = of_kind(result, ToolProgress)
    assert [(note.message, note.progress, note.total) for note in notes] == [("step 0", 0, 5), ("step 4", 4, 5)]
    metadata = of_kind(result, ToolResult)[0].metadata
    assert metadata.started_at <= metadata.completed_at
    assert 0 <= metadata.execution_time_ms <= (metadata.completed_at - metadata.started_at) * 1000 + 1


async def _has_ended(store: MemoryStore, name: str) -> bool:
    events = [entry.fact.event for each in await store.agents() for entry in await store.read(each)]
    return any(isinstance(event, ToolResult) and event.tool_name == name for event in events)


@pytest.mark.spec("CTL-META-11")
async def test_the_time_inside_a_tool_is_measured_for_each_call_alone() -> None:
    store = MemoryStore()

    @tool(effect="pure")
    async def slow() -> str:
        while not await _has_ended(store, "quick"):  # noqa: ASYNC110  (it is in the log, and nowhere else)
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.06)
        return "ok"

    @tool(effect="pure")
    async def quick() -> str:
        return "ok"

    script = scripted([calls("slow", "quick", "nowhere"), "done"])
    result = await run(Agent("any", script, tools=[slow, quick]), "go", store=store)
    times = {
        entry.fact.call_id: entry.fact.event.metadata.execution_time_ms
        for entry in result.facts()
        if isinstance(entry.fact.event, ToolResult | ToolFailed)
    }
    assert times["call_1_1"] >= 59
    assert times["call_1_2"] < times["call_1_1"], "not the batch's time shared out"
    assert times["call_1_3"] == 0, "a call that was not executed took no time"


@pytest.mark.spec("LOOP-STEP-02", "LOOP-STEP-14", "STD-INV-02")
@pytest.mark.parametrize(
    ("budget", "max_steps", "reason", "limit"),
    [(Budget(model_calls=2), None, "llm_calls", 2), (None, 2, "max_steps", 2)],
    ids=["model calls", "rounds"],
)
async def test_a_limit_of_two_allows_two_and_refuses_the_third_before_it_happens(
    budget: Budget | None, max_steps: int | None, reason: str, limit: int
) -> None:
    asked: list[int] = []

    def answer(request: ModelRequest) -> Any:
        asked.append(request.answered)
        return calls(("read", {"name": "again"}))

    agent = Agent("any", scripted(answer), tools=[reader(Floor())], max_steps=max_steps)
    result = await run(agent, "go", budget=budget)
    assert asked == [0, 1]
    assert (result.status, result.stop_reason, result.retryable) == ("incomplete", reason, True)
    (reached,) = of_kind(result, LimitChanged)
    assert (reached.limit_name, reached.limit, reached.observed) == (reason, limit, limit + 1)
    end = result.facts()[-1].fact.event
    assert isinstance(end, TurnFailed) and end.status == "incomplete", "a limit is never a completion"
    check_ends(result.facts())


async def test_within_its_limits_the_same_run_completes() -> None:
    script = scripted([calls(("read", {"name": "again"})), "done"])
    agent = Agent("any", script, tools=[reader(Floor())], max_steps=2)
    assert (await run(agent, "go", budget=Budget(model_calls=2))).status == "completed"


@pytest.mark.spec("LOOP-STEP-18", "STD-CALL-12", "STD-INV-01", "CTL-META-13")
async def test_every_call_has_one_beginning_and_one_end_also_when_it_was_refused_or_skipped() -> None:
    store = MemoryStore()

    @tool(effect="irreversible")
    async def stops(ctx: RunContext[None]) -> str:
        await cancel(store, ctx.turn_id)
        await asyncio.sleep(60)
        return "never"

    names = [("read", "not json"), "nowhere", ("read", {"name": "a"}), "stops", ("read", {"name": "b"}), "stops"]
    script = scripted([calls(*names)], leftover="ignore")
    result = await run(Agent("any", script, tools=[reader(Floor()), stops]), "go", store=store)
    assert result.status == "cancelled"
    check_ends(result.facts())
    by_call = {
        entry.fact.call_id: entry.fact.event
        for entry in result.facts()
        if isinstance(entry.fact.event, ToolResult | ToolFailed)
    }
    assert {call_id: event.status for call_id, event in by_call.items()} == {
        "call_1_1": "invalid",
        "call_1_2": "invalid",
        "call_1_3": "succeeded",
        "call_1_4": "cancelled",
        "call_1_5": "skipped",
        "call_1_6": "skipped",
    }
    skipped = by_call["call_1_5"]
    assert (skipped.tool_error.kind, skipped.metadata.status) == ("skipped", "error")
    assert by_call["call_1_4"].metadata.status == "cancelled", "a cancelled call has a status of its own"
    answers = [item.call_id for item in result.history() if item.role == "tool"]
    assert answers == [f"call_1_{number}" for number in range(1, 7)], "no call of a batch is without a result"


@pytest.mark.spec("CTL-META-03", "CTL-META-04", "CTL-META-12")
async def test_the_metadata_of_a_call_says_how_it_ended_and_that_nobody_had_to_approve() -> None:
    @tool(effect="pure")
    async def fails() -> str:
        raise ValueError("no")

    @tool(effect="pure", timeout=0.01)
    async def hangs() -> str:
        await asyncio.sleep(60)
        return "never"

    script = scripted([calls(("read", {"name": "a"}), "fails", "hangs"), "done"])
    result = await run(Agent("any", script, tools=[reader(Floor()), fails, hangs]), "go")
    metadata = {
        entry.fact.call_id: entry.fact.event.metadata
        for entry in result.facts()
        if isinstance(entry.fact.event, ToolResult | ToolFailed)
    }
    assert [metadata[f"call_1_{number}"].status for number in (1, 2, 3)] == ["success", "error", "timed_out"]
    # Timed out without an approval: the tool itself ran out of time.
    assert {each.approval_status for each in metadata.values()} == {"not_required"}
    assert {each.approval_id for each in metadata.values()} == {None}, "no record was made, so there is no id"


@pytest.mark.spec("HOL-ERR-06", "HOL-ERR-09")
async def test_a_failure_is_a_plain_string_to_the_model_and_structured_in_its_event() -> None:
    class Refused(Exception):
        details = {"field": "amount", "most": 10}
        recovery_hint = "ask for less"

    @tool(effect="pure")
    async def pays() -> str:
        raise Refused("too much")

    seen: list[Any] = []

    def answer(request: ModelRequest) -> Any:
        seen.extend(item for item in request.history if item.role == "tool")
        return "done" if request.answered else calls("pays")

    result = await run(Agent("any", scripted(answer), tools=[pays]), "go")
    (told,) = seen[0].parts
    assert isinstance(told.text, str) and json.loads(told.text)["field"] == "amount"
    (event,) = of_kind(result, ToolFailed)
    assert event.tool_error.details == {"field": "amount", "most": 10}
    assert event.tool_error.recovery_hint == "ask for less"
    assert isinstance(event.error, str) and "too much" in event.error and "\n" not in event.error


@pytest.mark.spec("HOL-LAT-04", "HOL-LAT-05", "HOL-TOK-04", "HOL-TOK-09")
async def test_each_answered_round_leaves_its_telemetry_and_separately_what_was_said() -> None:
    used = TokenUsage(input_tokens=7, output_tokens=3, total_tokens=10)
    script = scripted([{**calls(("read", {"name": "a"})), "text": "Let me look.", "usage": used.model_dump()}, "done"])
    result = await run(Agent("any", script, tools=[reader(Floor())]), "go")
    first, second = of_kind(result, ModelCompleted)
    assert first.context_build_ms >= 0 and first.provider_round_ms >= 0
    assert first.provider_started_at <= first.provider_completed_at
    assert first.token_usage == used
    assert second.token_usage is None and result.status == "completed", "no token data is no failure"
    assert result.usage == used
    told = set(first.model_dump())
    assert not told & {"item", "calls", "text_preview"}, "telemetry holds nothing of what was said"
    said = of_kind(result, AssistantRecorded)[0]
    assert said.text_preview == "Let me look." and [call.name for call in said.calls] == ["read"]


@pytest.mark.spec("HOL-FAIL-04", "HOL-TURN-04")
async def test_a_provider_that_fails_for_good_fails_the_turn_and_leaves_an_artifact() -> None:
    script = scripted([{"fail": {"kind": "contract_error", "status": 400, "message": "bad field"}}])
    result = await run(Agent("any", script), "go")
    assert (result.status, result.stop_reason) == ("failed", "provider_error")
    artifact = result.failure_artifact
    assert artifact is not None
    assert (artifact.category, artifact.kind, artifact.status) == ("protocol", "contract_error", 400)
    assert not result.retryable
    end = result.facts()[-1].fact.event
    assert isinstance(end, TurnFailed) and end.failure_artifact == artifact
    record = terminal_record(result.turn_id, result.facts())
    assert record is not None and record.kind == "aborted"


@pytest.mark.spec("HOL-TURN-06")
async def test_a_finished_run_is_told_from_its_facts_and_no_further_round_is_asked_for() -> None:
    asked: list[int] = []

    def answer(request: ModelRequest) -> Any:
        asked.append(request.answered)
        return "done"

    store = MemoryStore()
    agent = Agent("any", scripted(answer))
    first = await run(agent, "go", store=store, key="k")
    again = await run(agent, "go", store=store, key="k")
    assert first.output == again.output == "done"
    assert asked == [0], "completion was not restated by the model"


@pytest.mark.spec("STD-SCOPE-01", "STD-SCOPE-02", "STD-SCOPE-03")
async def test_the_facts_alone_explain_the_run() -> None:
    large = "0123456789" * 10_000

    @tool(effect="pure")
    async def whole_file() -> str:
        return large

    @tool(effect="irreversible", timeout=0.01)
    async def sends() -> str:
        await asyncio.sleep(60)
        return "never"

    store = MemoryStore()
    script = scripted([calls("whole_file"), calls("sends"), "I could not tell."])
    agent = Agent("any", script, "Be careful.", tools=[whole_file, sends])
    result = await run(agent, "go", store=store)
    begun = ["message.admitted", "turn.started", "context.resolved"]
    begun += ["routing.candidates.resolved", "routing.single_candidate", "routing.decided"]
    begun += ["tool.catalog.resolved", "model.requested"]
    assert kinds(result.facts())[:8] == begun
    started = of_kind(result, ToolStarted)
    assert [(event.tool_name, event.effect, event.policy) for event in started] == [
        ("whole_file", "pure", "allowed"),
        ("sends", "irreversible", "allowed"),
    ]
    kept = of_kind(result, ToolResult)[0]
    assert kept.result_ref is not None and large not in kept.model_dump_json(), "linked by reference, not copied"
    assert await store.get_blob(kept.result_ref.digest) == large.encode()
    (lost,) = of_kind(result, ToolFailed)
    assert (lost.effects, lost.tool_error.kind) == ("unknown", "outcome_unknown"), "said, and success is not inferred"
    end = result.facts()[-1].fact.event
    assert isinstance(end, TurnCompleted) and end.unknown == (result.unknown[0].call_id,)
    (context,) = of_kind(result, ContextResolved)
    assert context.instruction_refs and context.tokens_are_estimate
    assert [event.items for event in of_kind(result, ModelRequested)] == [1, 3, 5], "and what each request rested on"


@pytest.mark.spec("STD-CALL-15")
async def test_progress_is_told_while_calls_run_and_the_conversation_takes_their_ends_in_model_order() -> None:
    store, finish_slow, finish_quick = MemoryStore(), asyncio.Event(), asyncio.Event()
    read: list[list[str]] = []

    @tool(effect="pure")
    async def slow() -> str:
        await finish_slow.wait()
        return "slow"

    @tool(effect="pure")
    async def quick(ctx: RunContext[None]) -> str:
        ctx.progress("halfway")
        await finish_quick.wait()
        return "quick"

    def answer(request: ModelRequest) -> Any:
        read.append([item.text for item in request.history if item.role == "tool"])
        return "done" if request.answered else calls("slow", "quick")

    async def until(kind: type[Any]) -> list[Any]:
        """The log's events, once there is one of this kind."""
        async with asyncio.timeout(30):
            while True:
                agents = await store.agents()
                events = [entry.fact.event for each in agents for entry in await store.read(each)]
                if any(isinstance(event, kind) for event in events):
                    return events
                await asyncio.sleep(0.005)

    running = asyncio.create_task(run(Agent("any", scripted(answer), tools=[slow, quick]), "go", store=store))
    assert not any(isinstance(event, ToolResult) for event in await until(ToolProgress)), "at once: nothing has ended"
    finish_quick.set()
    early = [event.tool_name for event in await until(ToolResult) if isinstance(event, ToolResult)]
    assert (early, read) == (["quick"], [[]]), "known and written; the conversation waits for what comes before it"
    finish_slow.set()
    result = await running
    assert read[1] == ["slow", "quick"]
    assert [message.content for message in result.messages if message.type == "tool_result"] == ["slow", "quick"]
