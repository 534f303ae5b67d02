"""Deadlines, cancels and budgets: a small crash, settled by effect class like one, with every call accounted for."""

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kit.runs.engine_runs import calls, check_ends, facts_of, folded, kinds, of_kind, until_known
from wakeful import Agent, Budget, RunContext, cancel, resume, run, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.content import BlobRef
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.errors import StoreFull
from wakeful.contracts.events import (
    LimitChanged,
    ModelFailed,
    ToolDispatched,
    ToolFailed,
    TurnInterruptApplied,
    TurnTimeSkipped,
    UnknownResolved,
)
from wakeful.decisions.evolve.facts import evolve
from wakeful.decisions.state import TurnState
from wakeful.engine.run_request import RunRequest
from wakeful.ports import AdmissionAnswer, Claim, ModelRequest, Store
from wakeful.service.commands.steering import interject
from wakeful.service.commands.turns import run_turn
from wakeful.service.queries.replay import replay_turn
from wakeful.store.memory import Memory, MemoryStore
from wakeful.store.sqlite import SqliteStore
from wakeful.testing import FixedClock, scripted
from wakeful.testing.wrapped_store import WrappedStore


def hanging(effect: Any, begun: asyncio.Event, **options: Any) -> Any:
    @tool(name="act", effect=effect, **options)
    async def act(ctx: RunContext[None]) -> str:
        begun.set()
        await asyncio.sleep(60)
        return "never"

    return act


@pytest.mark.parametrize(
    ("effect", "kind", "effects"),
    [("pure", "timeout", "none"), ("irreversible", "outcome_unknown", "unknown")],
)
async def test_a_deadline_is_settled_by_effect_class(effect: Any, kind: str, effects: str) -> None:
    store = MemoryStore()
    agent = Agent("any", scripted([calls("act"), "done"]), tools=[hanging(effect, asyncio.Event(), timeout=0.01)])
    result = await run(agent, "go", store=store)
    (failed,) = of_kind(result, ToolFailed)
    assert (failed.status, failed.error_category, failed.abort_reason) == ("timed_out", "timeout", "timeout")
    assert (failed.tool_error.kind, failed.effects) == (kind, effects)
    assert len(result.unknown) == len(await store.unknown()) == (effects == "unknown")


async def test_a_keyed_tool_that_ran_out_of_time_runs_once_more_with_its_key() -> None:
    seen: list[tuple[str, int]] = []

    @tool(effect="keyed", timeout=0.3)
    async def act(ctx: RunContext[None]) -> str:
        seen.append((ctx.idempotency_key, ctx.attempt))
        if ctx.attempt == 1:
            await asyncio.sleep(60)
        return "done"

    result = await run(Agent("any", scripted([calls("act"), "done"]), tools=[act]), "go")
    assert [attempt for _, attempt in seen] == [1, 2] and len({key for key, _ in seen}) == 1
    (again,) = of_kind(result, ToolDispatched)
    assert (again.attempt, again.cause) == (2, "timeout")
    assert result.calls("act")[0].status == "success" and not result.unknown
    check_ends(result.facts())


async def test_a_keyed_tool_that_runs_out_of_time_twice_is_unknown() -> None:
    agent = Agent("any", scripted([calls("act"), "done"]), tools=[hanging("keyed", asyncio.Event(), timeout=0.01)])
    result = await run(agent, "go")
    assert len(of_kind(result, ToolDispatched)) == 1 and [call.tool for call in result.unknown] == ["act"]


async def test_a_keyed_tool_whose_thread_is_still_busy_is_not_run_a_second_time_beside_it() -> None:
    go_on, inside = threading.Event(), threading.Event()
    begun: list[int] = []

    @tool(effect="keyed", timeout=0.3)
    def act(ctx: RunContext[None]) -> str:
        begun.append(ctx.attempt)
        inside.set()
        go_on.wait(60)
        return "late"

    store = MemoryStore()
    result = await run(Agent("any", scripted([calls("act"), "done"]), tools=[act]), "go", store=store)
    assert await asyncio.to_thread(inside.wait, 30)
    assert begun == [1] and [call.tool for call in result.unknown] == ["act"]
    go_on.set()
    await until_known(store)


# --- cancel ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("effect", "effects"), [("pure", "none"), ("irreversible", "unknown"), ("keyed", "unknown")])
async def test_a_cancel_reaches_a_running_tool_and_is_settled_by_effect_class(effect: Any, effects: str) -> None:
    store, begun = MemoryStore(), asyncio.Event()
    agent = Agent("any", scripted([calls("act", "act")], leftover="ignore"), tools=[hanging(effect, begun)])
    task = asyncio.create_task(run(agent, "go", store=store, key="k"))
    await begun.wait()
    row = await store.turn_of_key("k")
    assert row is not None
    assert await cancel(store, row.turn_id) is True
    result = await task
    assert (result.status, result.stop_reason, result.retryable) == ("cancelled", "cancelled", False)
    failed = {
        entry.fact.call_id: entry.fact.event for entry in result.facts() if entry.fact.event.kind == "tool.failed"
    }
    assert failed["call_1_1"].effects == effects
    assert failed["call_1_1"].metadata.status == "cancelled"
    (applied,) = of_kind(result, TurnInterruptApplied)
    assert "call_1_1" in applied.cancelled_tool_call_ids
    check_ends(result.facts())
    assert await cancel(store, row.turn_id) is False, "it is over already"


async def test_a_cancel_reaches_a_model_that_does_not_answer() -> None:
    store, asked = MemoryStore(), asyncio.Event()

    async def answer(request: ModelRequest) -> str:
        asked.set()
        await asyncio.sleep(60)
        return "never"

    task = asyncio.create_task(run(Agent("any", scripted(answer)), "go", store=store, key="k"))
    await asked.wait()
    row = await store.turn_of_key("k")
    assert row is not None
    await cancel(store, row.turn_id)
    result = await task
    assert result.status == "cancelled"
    assert of_kind(result, ModelFailed)[0].failure_kind == "cancelled"


async def test_a_cancel_that_came_before_the_turn_was_taken_up_ends_it_without_asking_anybody() -> None:
    store = MemoryStore()
    asked: list[int] = []

    def answer(request: ModelRequest) -> str:
        asked.append(1)
        return "no"

    agent = Agent("any", scripted(answer))
    holder = CancellingStore(store)
    result = await run(agent, "go", store=holder, key="k")
    assert result.status == "cancelled" and not asked


class CancellingStore(WrappedStore):
    """Somebody cancels between the admission and the first append."""

    async def admit(
        self, agent_id: str, facts: Sequence[Fact], *, reserve: bool = False, claim: bool = False
    ) -> AdmissionAnswer | None:
        answer = await super().admit(agent_id, facts, reserve=reserve, claim=claim)
        if answer is not None and answer.turn is not None and answer.created:
            await cancel(self.inner, answer.turn.turn_id)
        return answer


async def test_a_second_run_that_the_turns_end_came_before_does_not_begin() -> None:
    store, stopping, may_stop, ran = MemoryStore(), asyncio.Event(), asyncio.Event(), []

    @tool(effect="keyed", timeout=0.1)
    async def act(ctx: RunContext[None]) -> str:
        ran.append(ctx.attempt)
        try:
            await asyncio.sleep(60)
        finally:
            stopping.set()
            await may_stop.wait()  # takes its time to stop: the cancel comes first
        return "never"

    agent = Agent("any", scripted([calls("act")], leftover="ignore"), tools=[act])
    task = asyncio.create_task(run(agent, "go", store=store, key="k"))
    await stopping.wait()
    row = await store.turn_of_key("k")
    assert row is not None
    watch = store.watch(row.agent_id)
    await cancel(store, row.turn_id)
    while "turn.interrupt.applied" not in kinds(await facts_of(store, row.turn_id)):
        await watch.wait()
    watch.close()
    may_stop.set()
    result = await task
    assert result.status == "cancelled" and ran == [1]
    assert [call.tool for call in result.unknown] == ["act"], "nobody knows what became of the first"
    check_ends(result.facts())
    assert (await replay_turn(store, row)).identical


async def test_an_answer_that_comes_while_the_turn_is_told_to_stop_is_kept() -> None:
    store, begun = MemoryStore(), asyncio.Event()

    @tool(effect="irreversible")
    async def act(ctx: RunContext[None]) -> str:
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "it was done by then"
        return "never"

    agent = Agent("any", scripted([calls("act")], leftover="ignore"), tools=[act])
    task = asyncio.create_task(run(agent, "go", store=store, key="k"))
    await begun.wait()
    row = await store.turn_of_key("k")
    assert row is not None
    await cancel(store, row.turn_id)
    result = await task
    assert result.status == "cancelled" and not result.unknown
    assert result.calls("act")[0].result == "it was done by then"


@pytest.mark.parametrize("effect", ["pure", "irreversible"])
async def test_cancelling_the_awaiting_task_is_a_crash_that_can_be_resumed(effect: Any) -> None:
    memory, begun = Memory(), asyncio.Event()
    agent = Agent("any", scripted([calls("act"), "done"], leftover="ignore"), tools=[hanging(effect, begun)])
    store = MemoryStore(memory)
    task = asyncio.create_task(run(agent, "go", store=store, key="k"))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    row = await store.turn_of_key("k")
    assert row is not None and row.state == "running"
    assert kinds(await facts_of(store, row.turn_id))[-1] == "tool.started", "the intent stays open"
    ran: list[int] = []

    @tool(effect=effect)
    async def act(ctx: RunContext[None]) -> str:
        ran.append(ctx.attempt)
        return "ok"

    finished = Agent("any", scripted([calls("act"), "done"]), tools=[act])
    result = await run(finished, "go", store=store, key="k")
    assert result.output == "done"
    assert ran == ([2] if effect == "pure" else [])
    assert len(result.unknown) == (effect == "irreversible")


async def test_what_finishes_while_a_run_goes_down_is_not_forgotten() -> None:
    begun, store = asyncio.Event(), MemoryStore()

    @tool(effect="irreversible")
    async def act() -> list[str]:
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass
        return ["it was sent"]  # takes a task to be made ready

    agent = Agent("any", scripted([calls("act"), "done"], leftover="ignore"), tools=[act])
    task = asyncio.create_task(run(agent, "go", store=store, key="k"))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    row = await store.turn_of_key("k")
    assert row is not None
    assert kinds(await facts_of(store, row.turn_id))[-1] == "tool.result"


# --- the clock -------------------------------------------------------------------------------------------------------


async def test_the_turns_time_bounds_a_tool_that_is_running() -> None:
    clock, begun, store = FixedClock(), asyncio.Event(), MemoryStore()
    agent = Agent("any", scripted([calls("act")], leftover="ignore"), tools=[hanging("irreversible", begun)])
    request = RunRequest(agent, "go", budget=Budget(seconds=10))
    task = asyncio.create_task(run_turn(new_engine(store, clock=clock), request))
    await begun.wait()
    await clock.somebody_sleeps()
    clock.advance(9)
    await asyncio.sleep(0.01)
    assert not task.done(), "within its time it goes on"
    clock.advance(2)
    result = await task
    assert (result.status, result.stop_reason, result.retryable) == ("incomplete", "wall_clock", True)
    (limit,) = of_kind(result, LimitChanged)
    assert (limit.limit, limit.observed) == (10, 11)
    (failed,) = of_kind(result, ToolFailed)
    assert (failed.abort_reason, failed.effects) == ("budget", "unknown")
    check_ends(result.facts())


async def test_time_in_which_nobody_worked_is_free() -> None:
    clock, begun, memory = FixedClock(), asyncio.Event(), Memory()
    agent = Agent("any", scripted([calls("act"), "done"], leftover="ignore"), tools=[hanging("pure", begun)])
    request = RunRequest(agent, "go", budget=Budget(seconds=10), key="k")
    task = asyncio.create_task(run_turn(new_engine(MemoryStore(memory), clock=clock), request))
    await begun.wait()
    clock.advance(4)
    task.cancel()
    await asyncio.wait({task})
    clock.advance(3600)

    @tool(effect="pure")
    async def act() -> str:
        return "ok"

    again = RunRequest(Agent("any", scripted([calls("act"), "done"]), tools=[act]), "go", key="k")
    result = await run_turn(new_engine(MemoryStore(memory), clock=clock), again)
    assert result.status == "completed"


@pytest.mark.parametrize("skipped", [3600.0, -3600.0], ids=["a machine asleep", "a clock set back"])
@pytest.mark.parametrize("spoken_to", [False, True], ids=["noticed by the timer", "noticed with a message"])
async def test_time_in_which_the_machine_slept_is_free(skipped: float, spoken_to: bool) -> None:
    """Seconds of work before and after it count; the turn ends after ten of them, and a replay finds the same."""
    clock, begun, store = FixedClock(), asyncio.Event(), MemoryStore()
    agent = Agent("any", scripted([calls("act")], leftover="ignore"), tools=[hanging("irreversible", begun)])
    request = RunRequest(agent, "go", budget=Budget(seconds=10), key="k")
    task = asyncio.create_task(run_turn(new_engine(store, clock=clock), request))
    await begun.wait()
    await clock.somebody_sleeps()
    clock.advance(4)
    clock.skip(skipped)
    row = await store.turn_of_key("k")
    assert row is not None
    if spoken_to:
        await interject(new_engine(store, clock=clock), row.turn_id, "Hurry.")
    await asyncio.sleep(0.01)
    await clock.somebody_sleeps()
    clock.advance(5)
    await asyncio.sleep(0.01)
    assert not task.done(), "nine seconds of work"
    clock.advance(2)
    result = await task
    assert (result.status, result.stop_reason) == ("incomplete", "wall_clock")
    (limit,) = of_kind(result, LimitChanged)
    assert (limit.limit, limit.observed) == (10, 11)
    (skip,) = of_kind(result, TurnTimeSkipped)
    assert skip.skipped_us == skipped * 1_000_000
    assert result.facts()[-1].fact.event.active_ms == 11_000  # type: ignore[union-attr]
    check_ends(result.facts())
    assert (await replay_turn(store, row)).divergence is None


async def test_a_caller_that_leaves_as_the_time_runs_out_leaves_a_log_that_adds_up() -> None:
    """The clock was set back meanwhile: the log says so before it says how long the turn has worked."""
    clock, begun, store = FixedClock(), asyncio.Event(), MemoryStore()
    agent = Agent("any", scripted([calls("act")], leftover="ignore"), tools=[hanging("irreversible", begun)])
    request = RunRequest(agent, "go", budget=Budget(seconds=10), key="k")
    task = asyncio.create_task(run_turn(new_engine(store, clock=clock), request))
    await begun.wait()
    await clock.somebody_sleeps()
    clock.skip(-3600.0)
    clock.advance(11)
    task.cancel()
    await asyncio.wait({task})
    result = await run_turn(new_engine(store, clock=clock), request)
    assert [limit.observed for limit in of_kind(result, LimitChanged)] == [11]
    row = await store.turn_of_key("k")
    assert row is not None and (await replay_turn(store, row)).divergence is None


# --- nothing waits for ever ------------------------------------------------------------------------------------------


class FullStore(WrappedStore):
    """There is no room for anything large."""

    async def put_blob(self, data: bytes, media_type: str) -> BlobRef:
        if len(data) > 50_000:
            raise StoreFull("there is no room left")
        return await super().put_blob(data, media_type)


@pytest.mark.parametrize("what", ["a result", "a reply"])
async def test_a_store_that_is_full_ends_the_run_with_an_error_and_it_can_be_resumed(what: str) -> None:
    large = "x" * 200_000

    @tool(effect="pure")
    async def act() -> str:
        return large if what == "a result" else "ok"

    inner = MemoryStore()
    reply: Any = "done" if what == "a result" else {"text": large}
    agent = Agent("any", scripted([calls("act"), reply], leftover="ignore"), tools=[act])
    with pytest.raises(StoreFull):
        async with asyncio.timeout(60):
            await run(agent, "go", store=FullStore(inner), key="k")
    result = await run(agent, "go", store=inner, key="k")
    assert result.status == "completed"


class Watching:
    """Whoever watches, and breaks."""

    def facts(self, recorded: Sequence[StoredFact]) -> None:
        raise RuntimeError("no")

    def glimpse(self, seen: Any) -> None:
        raise RuntimeError("no")


async def test_a_watcher_that_breaks_disturbs_nobody() -> None:
    request = RunRequest(Agent("any", scripted(["some words"])), "go", stream=True, watcher=Watching())
    assert (await run_turn(new_engine(MemoryStore()), request)).output == "some words"


# --- late answers and what others write -------------------------------------------------------------------------------


class SlowStore(WrappedStore):
    """Takes its time over the appends that hold an unknown outcome."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.order: list[str] = []
        self.waiting, self.gate = asyncio.Event(), asyncio.Event()

    async def append(
        self, claim: Claim, facts: Sequence[Fact], *, barrier: bool = False, rest: bool = False, last: bool = False
    ) -> list[StoredFact]:
        if any(isinstance(fact.event, ToolFailed) for fact in facts):
            self.waiting.set()
            await self.gate.wait()
        others = await super().append(claim, facts, barrier=barrier, rest=rest, last=last)
        self.order += [fact.event.kind for fact in facts if isinstance(fact.event, ToolFailed)]
        return others

    async def admit(
        self, agent_id: str, facts: Sequence[Fact], *, reserve: bool = False, claim: bool = False
    ) -> AdmissionAnswer | None:
        self.order += [fact.event.kind for fact in facts if isinstance(fact.event, UnknownResolved)]
        return await super().admit(agent_id, facts, reserve=reserve, claim=claim)


async def test_a_late_answer_is_written_after_the_outcome_that_it_closes() -> None:
    go_on = threading.Event()

    @tool(effect="irreversible", timeout=0.01)
    def act() -> str:
        go_on.wait(30)
        return "sent"

    store = SlowStore(MemoryStore())
    agent = Agent("any", scripted([calls("act"), "done"]), tools=[act])
    task = asyncio.create_task(run(agent, "go", store=store, key="k"))
    await store.waiting.wait()  # the deadline and the thread's grace are over: its outcome waits to be written
    go_on.set()
    await asyncio.sleep(0.05)
    store.gate.set()
    await task
    await until_known(store)
    assert store.order == ["tool.failed", "unknown.resolved"]
    row = await store.turn_of_key("k")
    assert row is not None
    facts = [entry.fact for entry in await store.read(row.agent_id, turn_id=row.turn_id)]
    assert _unknown_after(facts) == {}
    # Written the other way round, the answer would have closed nothing.
    (late,) = [fact for fact in facts if isinstance(fact.event, UnknownResolved)]
    facts.remove(late)
    facts.insert(next(at for at, fact in enumerate(facts) if isinstance(fact.event, ToolFailed)), late)
    assert _unknown_after(facts) != {}


def _unknown_after(facts: list[Fact]) -> dict[str, str]:
    state = TurnState()
    for fact in facts:
        evolve(state, fact)
    return state.unknown


async def test_a_cancel_from_another_process_is_heard(tmp_path: Path) -> None:
    ours, theirs = [await SqliteStore.open(tmp_path / "runs.db") for _ in range(2)]
    begun = asyncio.Event()
    agent = Agent("any", scripted([calls("act")], leftover="ignore"), tools=[hanging("pure", begun)])
    task = asyncio.create_task(run(agent, "go", store=ours, key="k"))
    await begun.wait()
    row = await theirs.turn_of_key("k")
    assert row is not None
    await cancel(theirs, row.turn_id)
    assert (await task).status == "cancelled"
    await ours.close()
    await theirs.close()


async def test_what_a_person_found_out_reaches_the_model_and_folds_the_same() -> None:
    store = MemoryStore()
    seen: list[list[str]] = []

    @tool(effect="irreversible", timeout=0.01)
    async def act() -> str:
        await asyncio.sleep(60)
        return "never"

    async def answer(request: ModelRequest) -> Any:
        seen.append([item.text for item in request.history if item.role == "user"])
        if request.answered == 1:
            (row,) = await store.unknown()
            event = UnknownResolved(
                call_id=row.call_id, tool_name="act", happened=True, result="it arrived", source="operator"
            )
            await store.admit(row.agent_id, [Fact(event, row.since, row.thread_id, row.turn_id, row.step)])
        return "done" if request.answered == 3 else calls("act" if request.answered == 0 else "nowhere")

    result = await run(Agent("any", scripted(answer), tools=[act]), "go", store=store)
    assert not result.unknown
    assert [len(texts) for texts in seen] == [1, 1, 1, 2] or [len(texts) for texts in seen] == [1, 1, 2, 2]
    assert "it happened: it arrived" in seen[-1][-1]
    row = await store.turn(result.turn_id)
    assert row is not None
    state = await folded(store, row)
    assert [item.text for item in state.conversation.items] == [item.text for item in result.history()]
    assert await resume(store, result.turn_id, []) is not None
