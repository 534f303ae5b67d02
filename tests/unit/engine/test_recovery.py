"""Taking a turn up again: what was open is settled by the effect class of its own intent, and nothing else changes."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from kit.runs.engine_runs import calls, check_ends, cut, facts_of, kinds, of_kind
from kit.runs.level_scripts import subtask
from wakeful import (
    Agent,
    Budget,
    DidNotHappen,
    Happened,
    Principal,
    RunContext,
    StillUnknown,
    ToolRetry,
    cancel,
    resume,
    resume_all,
    run,
    tool,
)
from wakeful.contracts.errors import AgentMissing, DepsMissing, ToolMissing
from wakeful.contracts.events import (
    MessageAdmitted,
    ModelFailed,
    ModelRequested,
    ToolDispatched,
    ToolFailed,
    ToolStarted,
    TurnConfigChanged,
    TurnResumed,
    TurnStarted,
)
from wakeful.ports import ModelRequest
from wakeful.service.queries.replay import replay_turn
from wakeful.store.memory import Memory, MemoryStore
from wakeful.testing import scripted


def acting(effect: Any, done: list[tuple[str, int]], **options: Any) -> Any:
    @tool(name="act", effect=effect, **options)
    async def act(ctx: RunContext[Any]) -> str:
        done.append((ctx.idempotency_key, ctx.attempt))
        return "done once"

    return act


def agent(*tools: Any, script: Any = None, **options: Any) -> Agent[Any, Any]:
    model = scripted(script or [calls("act"), "the end"], leftover="ignore")
    return Agent("any", model, tools=tools, **options)


async def cut_off_at(kind: type[Any], *tools: Any, **options: Any) -> tuple[Memory, str]:
    """A turn whose log ends with the first event of this kind (with the whole commit it stands in)."""
    memory = Memory()
    result = await run(agent(*tools, **options.pop("agent", {})), "go", store=MemoryStore(memory), **options)
    (agent_id,) = memory.agents
    upto = next(entry.seq for entry in result.facts() if isinstance(entry.fact.event, kind))
    return cut(memory, agent_id, upto), result.turn_id


# --- what was open ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("effect", ["pure", "keyed"])
async def test_what_may_be_repeated_runs_again_with_the_same_key(effect: Any) -> None:
    done: list[tuple[str, int]] = []
    memory, turn_id = await cut_off_at(ToolStarted, acting(effect, done))
    result = await resume(MemoryStore(memory), turn_id, [agent(acting(effect, done))])
    assert result.output == "the end" and not result.unknown
    assert [attempt for _, attempt in done] == [1, 2] and len({key for key, _ in done}) == 1
    assert result.tool_calls == 1, "a repeat is not counted twice"
    (again,) = of_kind(result, ToolDispatched)
    assert (again.attempt, again.cause) == (2, "recovery")
    check_ends(result.facts())


async def test_what_is_irreversible_is_closed_as_unknown_and_everybody_is_told() -> None:
    done: list[tuple[str, int]] = []
    memory, turn_id = await cut_off_at(ToolStarted, acting("irreversible", done))
    told: list[str] = []

    def answer(request: ModelRequest) -> Any:
        told.extend(item.text for item in request.history if item.role == "tool")
        return "the end"

    store = MemoryStore(memory)
    result = await resume(store, turn_id, [agent(acting("irreversible", done), script=answer)])
    assert len(done) == 1, "it ran once, before the crash"
    assert [call.tool for call in result.unknown] == ["act"] == [row.tool for row in await store.unknown()]
    assert '"kind":"outcome_unknown"' in told[0]
    (failed,) = of_kind(result, ToolFailed)
    assert (failed.status, failed.effects, failed.abort_reason) == ("interrupted", "unknown", "runtime_shutdown")


@pytest.mark.spec("STD-INT-11")
async def test_after_a_crash_what_nobody_knows_is_closed_before_anything_else_of_the_thread_runs() -> None:
    """Also when another thread's message comes first: that one leaves it alone."""
    memory, begun = Memory(), [asyncio.Event(), asyncio.Event()]

    @tool(effect="irreversible", name="act")
    async def hang() -> str:
        begun[0].set()
        await asyncio.sleep(60)
        return "never"

    def answers(hangs: bool) -> Any:
        async def answer(request: ModelRequest) -> Any:
            said = [item.text for item in request.history if item.role == "user"]
            if said[0] == "one":
                return "lost" if request.answered else calls("act")
            if said[0] == "two":
                if hangs:
                    begun[1].set()
                    await asyncio.sleep(60)
                return "two is done"
            if said[-1] == "second":
                return "hello"
            return "the end" if request.answered else calls(subtask("one"), subtask("two"))

        return answer

    first = agent(hang, script=answers(hangs=True), subtasks=True)
    killed = asyncio.create_task(run(first, "first", store=MemoryStore(memory), thread="t", key="k"))
    for each in begun:
        await each.wait()
    ended = memory.agents["any"].seq
    memory = cut(memory, "any", ended)  # what a kill at this moment leaves
    killed.cancel()
    await asyncio.wait({killed})

    store, done = MemoryStore(memory), list[tuple[str, int]]()
    later = agent(acting("irreversible", done), script=answers(hangs=False), subtasks=True)
    row = await store.turn_of_key("k")
    assert row is not None and row.state == "running" and not await store.unknown()
    assert (await run(later, "second", store=store, thread="u")).output == "hello"
    assert not [entry for entry in await store.read("any", after=ended) if entry.fact.turn_id == row.turn_id]
    assert not await store.unknown(), "another thread is another owner's"
    ended = memory.agents["any"].seq
    assert (await run(later, "second", store=store, thread="t")).output == "hello"
    after = [entry for entry in await store.read("any") if entry.seq > ended]
    (closed,) = [entry for entry in after if isinstance(entry.fact.event, ToolFailed)]
    event = closed.fact.event
    assert isinstance(event, ToolFailed) and closed.fact.turn_id == row.turn_id
    assert (event.tool_name, event.status, event.effects) == ("act", "interrupted", "unknown")
    runs = (TurnStarted, ModelRequested, ToolDispatched, ToolStarted)
    assert closed.seq < min(entry.seq for entry in after if isinstance(entry.fact.event, runs))
    assert [each.tool for each in await store.unknown()] == ["act"]
    result = await run(later, "first", store=store, thread="t", key="k")
    assert (result.status, result.output, done) == ("completed", "the end", [])
    causes = [one.cause for one in of_kind(result, TurnResumed)]
    assert causes == ["closing", "recovery"]
    check_ends(result.facts())
    for each in await store.turns():
        report = await replay_turn(store, each)
        assert report.identical, report.divergence


async def test_turns_of_two_threads_that_are_taken_up_together_each_go_on_after_their_own_calls_are_closed() -> None:
    memory, begun, asked = Memory(), asyncio.Semaphore(0), asyncio.Event()

    @tool(effect="irreversible", name="act")
    async def hang() -> str:
        begun.release()
        await asyncio.sleep(60)
        return "never"

    async def slow_for_the_first(context: Mapping[str, Any]) -> None:
        if context["thread"] == "t":
            await asked.wait()

    async def answer(request: ModelRequest) -> Any:
        asked.set()
        return "the end"

    store = MemoryStore(memory)
    runs = []
    for thread in "tu":
        work = run(agent(hang), "go", store=store, thread=thread, context={"thread": thread})
        runs.append(asyncio.create_task(work))
        await begun.acquire()
    ended = memory.agents["any"].seq
    memory = cut(memory, "any", ended)
    for killed in runs:
        killed.cancel()
    await asyncio.wait(runs)

    store = MemoryStore(memory)
    later = agent(hang, script=answer, deps=slow_for_the_first)
    async with asyncio.timeout(60):
        results = await resume_all(store, [later])
    assert [each.status for each in results] == ["completed", "completed"]
    after = [entry for entry in await store.read("any") if entry.seq > ended]
    for thread in "tu":
        its = [entry for entry in after if entry.fact.thread_id == thread]
        (closed,) = [entry.seq for entry in its if isinstance(entry.fact.event, ToolFailed)]
        assert closed < min(entry.seq for entry in its if isinstance(entry.fact.event, ModelRequested))


async def test_a_turn_that_runs_here_is_not_taken_for_one_that_was_cut_off() -> None:
    begun, go_on, store = asyncio.Event(), asyncio.Event(), MemoryStore()

    @tool(effect="irreversible", name="act")
    async def act() -> str:
        begun.set()
        async with asyncio.timeout(60):
            await go_on.wait()
        return "done once"

    first = asyncio.create_task(run(agent(act), "first", store=store, thread="t"))
    await begun.wait()
    assert (await run(agent(act, script=["hello"]), "second", store=store, thread="u")).output == "hello"
    go_on.set()
    result = await first
    assert (result.output, result.unknown, of_kind(result, TurnResumed)) == ("the end", (), [])


async def test_the_effect_class_of_the_intent_holds_whatever_the_code_says_today() -> None:
    done: list[tuple[str, int]] = []
    memory, turn_id = await cut_off_at(ToolStarted, acting("irreversible", done))
    result = await resume(MemoryStore(memory), turn_id, [agent(acting("pure", done))])
    assert len(done) == 1 and [call.tool for call in result.unknown] == ["act"]
    (changed,) = of_kind(result, TurnConfigChanged)
    assert "tool:act effect" in changed.changed


async def test_a_call_that_kept_killing_the_process_is_not_tried_a_fourth_time() -> None:
    done: list[tuple[str, int]] = []
    memory, turn_id = await cut_off_at(ToolStarted, acting("keyed", done))
    (agent_id,) = memory.agents
    for attempt in (2, 3):
        result = await resume(MemoryStore(memory), turn_id, [agent(acting("keyed", done))])
        again = next(entry.seq for entry in reversed(result.facts()) if isinstance(entry.fact.event, ToolDispatched))
        memory = cut(memory, agent_id, again)
        assert len(done) == attempt
    result = await resume(MemoryStore(memory), turn_id, [agent(acting("keyed", done))])
    assert len(done) == 3, "three times is enough"
    (failed,) = of_kind(result, ToolFailed)
    assert failed.tool_error.details == {"reason": "crash_loop", "dispatches": 3}
    assert [call.tool for call in result.unknown] == ["act"]


async def test_a_request_that_was_cut_off_is_asked_again_and_is_none_of_the_providers_attempts() -> None:
    asked: list[tuple[int, int]] = []

    def answer(request: ModelRequest) -> Any:
        asked.append((request.step, request.attempt))
        return "the end"

    memory, turn_id = await cut_off_at(ModelRequested, agent={"script": answer})
    result = await resume(MemoryStore(memory), turn_id, [agent(script=answer)])
    assert asked == [(1, 1), (1, 1)]
    (lost,) = of_kind(result, ModelFailed)
    assert (lost.stage, lost.disposition) == ("crash", "retry")
    assert result.model_calls == 2, "it may have been paid for"


# --- probes ----------------------------------------------------------------------------------------------------------


def probed(done: list[str], answer: Any, **options: Any) -> Any:
    @tool(name="act", effect="probeable", **options)
    async def act(ctx: RunContext[Any]) -> str:
        done.append(ctx.idempotency_key)
        if options:
            await asyncio.sleep(60)
        return "done"

    if answer is not None:

        @act.probe
        async def look(ctx: RunContext[Any]) -> Any:
            assert ctx.idempotency_key == done[0]
            return answer() if callable(answer) else answer

    return act


def broken() -> None:
    raise RuntimeError("the API is down")


def cancelled() -> None:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("answer", "result", "runs"),
    [
        (Happened("seen there"), "seen there", 1),
        (DidNotHappen(), "done", 2),
        (StillUnknown("not listed yet"), None, 1),
        (broken, None, 1),
        (cancelled, None, 1),
        ("yes", None, 1),
    ],
    ids=["happened", "did not", "cannot say", "raises", "cancels itself", "says something else"],
)
async def test_after_a_crash_the_probe_is_asked(answer: Any, result: str | None, runs: int) -> None:
    done: list[str] = []
    memory, turn_id = await cut_off_at(ToolStarted, probed(done, answer))
    taken_up = await resume(MemoryStore(memory), turn_id, [agent(probed(done, answer))])
    assert len(done) == runs and len(set(done)) == 1
    assert taken_up.output == "the end"
    if result is not None:
        assert taken_up.calls("act")[0].result == result and not taken_up.unknown
    else:
        assert [call.tool for call in taken_up.unknown] == ["act"]
    check_ends(taken_up.facts())


@pytest.mark.parametrize(
    ("answer", "status", "unknown"),
    [
        (Happened("seen there"), "success", 0),
        (DidNotHappen(), "timed_out", 0),
        (StillUnknown(), "timed_out", 1),
        (broken, "timed_out", 1),
    ],
    ids=["happened", "did not", "cannot say", "raises"],
)
async def test_after_a_deadline_the_probe_is_asked(answer: Any, status: str, unknown: int) -> None:
    done: list[str] = []
    result = await run(agent(probed(done, answer, timeout=0.01)), "go")
    assert len(done) == 1
    assert result.calls("act")[0].status == status and len(result.unknown) == unknown


async def test_a_turn_that_is_told_to_stop_while_a_probe_is_asked_begins_nothing_more() -> None:
    done: list[str] = []
    store_of: list[MemoryStore] = []

    async def slow() -> Any:
        await cancel(store_of[0], turn_id)
        await asyncio.sleep(0.01)
        return DidNotHappen()

    def make() -> Any:
        act = probed(done, None)

        @act.probe
        async def look(ctx: RunContext[Any]) -> Any:
            return await slow()

        return act

    memory, turn_id = await cut_off_at(ToolStarted, make())
    store_of.append(MemoryStore(memory))
    result = await resume(store_of[0], turn_id, [agent(make())])
    assert result.status == "cancelled"
    assert len(done) == 1, "it did not begin again"
    check_ends(result.facts())


# --- code that changed, or is not there ------------------------------------------------------------------------------


async def test_code_that_changed_is_an_event_and_what_finished_stays_finished() -> None:
    done: list[tuple[str, int]] = []
    memory, turn_id = await cut_off_at(ToolStarted, acting("keyed", done))

    @tool(effect="pure")
    async def new(x: int) -> int:
        return x

    changed_agent = agent(acting("keyed", done, timeout=5), new, instructions="Now be brief.")
    result = await resume(MemoryStore(memory), turn_id, [changed_agent])
    (changed,) = of_kind(result, TurnConfigChanged)
    assert {"instructions", "tool:new added"} <= set(changed.changed)
    started = of_kind(result, TurnStarted)[0]
    assert changed.previous == started.config_ref.digest != changed.config_ref.digest
    assert [attempt for _, attempt in done] == [1, 2] and result.output == "the end"


async def test_without_a_change_there_is_no_such_event() -> None:
    memory, turn_id = await cut_off_at(ToolStarted, acting("keyed", []))
    result = await resume(MemoryStore(memory), turn_id, [agent(acting("keyed", []))])
    assert of_kind(result, TurnConfigChanged) == []


async def test_a_vanished_tool_ends_its_call_in_a_result_that_says_so() -> None:
    memory, turn_id = await cut_off_at(ModelRequested, acting("irreversible", []))

    @tool(effect="pure")
    async def other() -> str:
        return "x"

    result = await resume(MemoryStore(memory), turn_id, [agent(other)])
    assert result.output == "the end"
    (failed,) = of_kind(result, ToolFailed)
    assert failed.tool_error.kind == "tool_not_found" and failed.effects == "none"


async def test_a_missing_tool_leaves_the_turn_suspended_and_named_until_it_is_supplied() -> None:
    done: list[tuple[str, int]] = []
    memory, turn_id = await cut_off_at(ToolStarted, acting("keyed", done))
    store = MemoryStore(memory)
    before = len(await facts_of(store, turn_id))
    with pytest.raises(ToolMissing, match="waits for act") as missing:
        await resume(store, turn_id, [agent()])
    assert missing.value.exit_code == 3
    row = await store.turn(turn_id)
    assert row is not None and (row.state, row.waiting_for) == ("suspended", ("act",))
    facts = await facts_of(store, turn_id)
    assert kinds(facts)[before:] == ["turn.suspended"], "nothing was settled"
    with pytest.raises(ToolMissing):
        await resume(store, turn_id, [agent()])
    assert len(await facts_of(store, turn_id)) == len(facts), "said once"
    (reported,) = await resume_all(store, [agent()])
    assert (reported.status, reported.waiting_for) == ("waiting", "code") and "act" in reported.message
    result = await resume(store, turn_id, [agent(acting("keyed", done))])
    assert result.output == "the end" and [attempt for _, attempt in done] == [1, 2]
    check_ends(result.facts())


async def test_a_missing_agent_changes_nothing_and_is_named() -> None:
    memory, turn_id = await cut_off_at(ToolStarted, acting("keyed", []))
    store = MemoryStore(memory)
    before = await facts_of(store, turn_id)
    other: Agent[None, str] = Agent("other", scripted(["no"], leftover="ignore"))
    with pytest.raises(AgentMissing, match="belongs to agent 'any'") as missing:
        await resume(store, turn_id, [other])
    assert "nothing was changed" in missing.value.hint
    (reported,) = await resume_all(store, [other])
    assert reported.turn_id == turn_id and "'any'" in reported.message
    assert kinds(await facts_of(store, turn_id)) == kinds(before)


async def test_resume_all_takes_up_every_turn_that_is_open() -> None:
    memory = Memory()
    for number in range(3):
        part, _ = await cut_off_at(ToolStarted, acting("keyed", []), key=f"k{number}")
        memory.agents.update(part.agents)
        memory.blobs.update(part.blobs)
    await MemoryStore(memory).rebuild_views()
    results = await resume_all(MemoryStore(memory), [agent(acting("keyed", []))])
    assert [result.output for result in results] == ["the end"] * 3
    assert await resume_all(MemoryStore(memory), [agent(acting("keyed", []))]) == []


# --- what the caller asked for is stored with the message -------------------------------------------------------------


async def test_of_turns_that_cannot_be_taken_up_each_is_told() -> None:
    store = MemoryStore()

    def fails(context: Mapping[str, Any]) -> None:
        raise ValueError(f"no {context['who']}")

    for who in ("ada", "bob"):
        with pytest.raises(ValueError, match=who):
            await run(agent(deps=fails), "go", store=store, thread=who, context={"who": who})
    with pytest.raises(ValueError, match="no ada") as raised:
        await resume_all(store, [agent(deps=fails)])
    assert raised.value.__notes__ == ["and of another turn: ValueError: no bob"]


async def test_a_turn_that_never_began_begins_with_what_its_caller_asked_for() -> None:
    seen: list[Any] = []

    @tool(effect="pure")
    async def act(ctx: RunContext[str]) -> str:
        seen.append((ctx.deps, dict(ctx.context), ctx.principal.id if ctx.principal else None))
        return "ok"

    script = [calls("act"), calls("act"), "the end"]
    options: dict[str, Any] = {"deps": lambda context: f"pool for {context['customer']}", "deps_type": str}
    memory, turn_id = await cut_off_at(
        MessageAdmitted,
        act,
        agent={"script": script, **options},
        context={"customer": "C1"},
        principal=Principal(id="ann"),
        budget=Budget(model_calls=2),
        deps="first pool",
    )
    seen.clear()
    result = await resume(MemoryStore(memory), turn_id, [agent(act, script=script, **options)])
    assert set(map(str, seen)) == {str(("pool for C1", {"customer": "C1"}, "ann"))}
    assert result.stop_reason == "llm_calls", "and is held to the budget it was given"


async def test_the_deps_factory_is_called_with_the_stored_context() -> None:
    seen: list[Any] = []

    @tool(effect="keyed")
    async def act(ctx: RunContext[str]) -> str:
        seen.append(ctx.deps)
        return "ok"

    async def factory(context: Any) -> str:
        return f"pool for {context['customer']}"

    options: dict[str, Any] = {"deps": factory, "deps_type": str}
    memory, turn_id = await cut_off_at(ToolStarted, act, agent=options, context={"customer": "C1"})
    await resume(MemoryStore(memory), turn_id, [agent(act, **options)])
    assert seen == ["pool for C1"] * 2


async def test_deps_that_are_needed_and_not_given_are_an_error_before_anything_runs() -> None:
    ran: list[str] = []

    @tool(effect="keyed")
    async def act(ctx: RunContext[str]) -> str:
        ran.append(ctx.deps)
        return "ok"

    store = MemoryStore()
    with pytest.raises(DepsMissing, match=r"agent 'any' needs deps for 'act'.*new turn"):
        await run(agent(act, deps_type=str), "go", store=store)
    assert await store.turns() == [], "nothing was admitted"
    memory, turn_id = await cut_off_at(ToolStarted, act, agent={"deps_type": str}, deps="pool")
    taken_up = MemoryStore(memory)
    before = kinds(await facts_of(taken_up, turn_id))
    with pytest.raises(DepsMissing, match=turn_id):
        await resume(taken_up, turn_id, [agent(act, deps_type=str)])
    assert kinds(await facts_of(taken_up, turn_id)) == before and ran == ["pool"]


# --- a tool that asks the model to try differently --------------------------------------------------------------------


async def test_a_tool_may_ask_for_another_try_as_often_as_it_said_and_no_more() -> None:
    asked: list[int] = []

    @tool(effect="pure", retries=2)
    async def act() -> str:
        asked.append(1)
        raise ToolRetry("use a date")

    result = await run(agent(act, script=[calls("act")] * 3 + ["the end"]), "go")
    failures = of_kind(result, ToolFailed)
    assert [event.tool_error.kind for event in failures] == ["retry_requested", "retry_requested", "retries_exhausted"]
    assert [event.retryable for event in failures] == [True, True, False]
    assert {event.effects for event in failures} == {"none"} and len(asked) == 3
    assert result.output == "the end"


async def test_retries_that_were_asked_for_are_remembered_over_a_crash() -> None:
    @tool(effect="pure", retries=1)
    async def act() -> str:
        raise ToolRetry("use a date")

    memory, turn_id = await cut_off_at(ToolFailed, act)
    again = agent(act, script=[calls("act"), calls("act"), "the end"])
    result = await resume(MemoryStore(memory), turn_id, [again])
    assert [event.tool_error.kind for event in of_kind(result, ToolFailed)] == ["retry_requested", "retries_exhausted"]
