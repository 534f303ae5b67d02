"""Asking turns to stop: answered at once, every request accounted for; a newer message that takes a turn's place."""

import asyncio
from typing import Any, get_args

import pytest

from kit.runs.engine_runs import calls, check_ends, facts_of, of_kind
from wakeful import Agent, cancel, interrupt, run, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import InvalidConfig, InvalidValue, TurnNotFound
from wakeful.contracts.events import (
    MessageExpired,
    ToolFailed,
    TurnFailed,
    TurnInterruptApplied,
    TurnInterruptIgnored,
    TurnInterruptRequested,
)
from wakeful.contracts.events.tools import AbortReason
from wakeful.contracts.events.turns import IgnoreReason
from wakeful.ports import AdmissionAnswer, ModelRequest, Store, TurnRow
from wakeful.runtime.inbox import QueuedMessage, defer_message, queue_message
from wakeful.service.commands.interruption import InterruptAnswer, cancel_turn, interrupt_turn
from wakeful.service.queries.replay import replay_turn
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted
from wakeful.testing.wrapped_store import WrappedStore


class Hanging:
    """An agent whose first call hangs until somebody stops it, running in a thread of its own."""

    def __init__(self, store: Store | None = None, **options: Any) -> None:
        self.store = store or MemoryStore()
        self.begun = asyncio.Event()

        @tool(effect="irreversible", **options)
        async def act() -> str:
            self.begun.set()
            await asyncio.sleep(60)
            return "never"

        async def answer(request: ModelRequest) -> Any:
            return calls("act", "act") if not request.answered else "done"

        self.agent = Agent("any", scripted(answer), tools=[act])
        self.task: asyncio.Task[Any] | None = None

    async def start(self, **options: Any) -> TurnRow:
        self.task = asyncio.create_task(run(self.agent, "go", store=self.store, thread="t", key="k", **options))
        await self.begun.wait()
        row = await self.store.turn_of_key("k")
        assert row is not None
        return row


async def admitted(store: Store, key: str) -> TurnRow:
    """The turn of a key, once its message is safe."""
    watch = store.watch("any")
    try:
        while (row := await store.turn_of_key(key)) is None:
            await watch.wait(timeout=0.05)
        return row
    finally:
        watch.close()


def of_turn(facts: list[Any]) -> list[str]:
    """Requests to stop, by who asked."""
    return [one.fact.event.requested_by for one in facts if isinstance(one.fact.event, TurnInterruptRequested)]


def answers_to(facts: list[Any]) -> dict[str, list[str]]:
    """What follows each request: applied or ignored, by its id."""
    events = [entry.fact.event for entry in facts]
    asked: dict[str, list[str]] = {
        event.interrupt_id: [] for event in events if isinstance(event, TurnInterruptRequested)
    }
    for event in events:
        if isinstance(event, TurnInterruptApplied | TurnInterruptIgnored):
            asked[event.interrupt_id].append(event.kind.rpartition(".")[2])
    return asked


@pytest.mark.spec("STD-INT-03")
async def test_a_request_to_stop_is_answered_at_once_and_made_twice_it_is_one() -> None:
    hanging = Hanging()
    row = await hanging.start()
    first = await interrupt(hanging.store, turn_id=row.turn_id, interrupt_id="int_mine")
    assert first == InterruptAnswer(answer="accepted", interrupt_id="int_mine", turn_id=row.turn_id)
    assert hanging.task is not None and not hanging.task.done(), "nobody waited for its end"
    again = await interrupt(hanging.store, turn_id=row.turn_id, interrupt_id="int_mine")
    assert again == first, "the same request, the same answer"
    other = await interrupt(hanging.store, turn_id=row.turn_id)
    assert (other.answer, other.ignore_reason) == ("no_op", "already_ending")
    result = await hanging.task
    assert (result.status, result.stop_reason) == ("cancelled", "cancelled")
    late = await interrupt(hanging.store, thread="t")
    assert (late.answer, late.turn_id, late.ignore_reason) == ("no_op", row.turn_id, "no_active_turn")
    assert await interrupt(hanging.store, turn_id=row.turn_id, interrupt_id="int_mine") == first
    facts = await facts_of(hanging.store, row.turn_id)
    assert list(answers_to(facts).values()) == [["applied"], ["ignored"], ["ignored"]]
    check_ends(facts)
    assert (await replay_turn(hanging.store, row)).identical


@pytest.mark.parametrize("queue", ["keep", "clear"])
async def test_what_waits_behind_the_turn_is_kept_or_cleared_with_it(queue: Any) -> None:
    hanging = Hanging()
    await hanging.start()
    behind = asyncio.create_task(run(hanging.agent, "next", store=hanging.store, thread="t", key="k2"))
    waiting = await admitted(hanging.store, "k2")
    answer = await interrupt(hanging.store, thread="t", agent="any", queue=queue)
    assert answer.accepted and answer.turn_id != waiting.turn_id, "the one that runs is meant"
    assert hanging.task is not None and (await hanging.task).status == "cancelled"
    if queue == "keep":
        hanging.begun.clear()
        await hanging.begun.wait()
        await cancel(hanging.store, waiting.turn_id)
    result = await behind
    assert result.status == "cancelled"
    assert result.model_calls == (1 if queue == "keep" else 0)


@pytest.mark.parametrize("queue", ["keep", "clear"])
async def test_messages_without_a_turn_are_kept_or_cleared_with_the_queue(queue: Any) -> None:
    hanging = Hanging()
    engine, store = new_engine(hanging.store), hanging.store
    row = await hanging.start()
    names = [
        (await queue_message(engine, "any", thread, QueuedMessage(words))).message_id
        for words, thread in (("one", "t"), ("two", "t"), ("aside", "t"), ("elsewhere", "u"))
    ]
    await defer_message(engine, names[2])
    answer = await interrupt_turn(engine, turn_id=row.turn_id, queue=queue, requested_by="ada")
    assert answer.accepted and hanging.task is not None
    await hanging.task
    states = [each.state for name in names if (each := await store.message(name)) is not None]
    cleared = ["expired"] * 3 if queue == "clear" else ["queued", "queued", "deferred"]
    assert states == [*cleared, "queued"], "of this thread alone"
    why = [event.reason for event in await facts_of_kind(store, "any", MessageExpired)]
    assert why == (["ada cleared the queue"] * 3 if queue == "clear" else [])


async def test_the_queue_of_a_thread_without_a_turn_is_cleared_where_its_agent_is_named() -> None:
    store = MemoryStore()
    engine = new_engine(store)
    waiting = await queue_message(engine, "any", "t", QueuedMessage("one"))
    kept = await interrupt_turn(engine, thread_id="t", agent="any")
    assert (kept.answer, kept.ignore_reason) == ("no_op", "no_active_turn")
    assert await store.message(waiting.message_id) == waiting
    await interrupt_turn(engine, thread_id="t", agent="any", queue="clear")
    row = await store.message(waiting.message_id)
    assert row is not None and row.state == "expired"
    assert (await store.busy_threads(), await store.wakes_of("any")) == ([], [])
    nobody = await interrupt_turn(engine, thread_id="t", agent="nobody", queue="clear")
    assert nobody.ignore_reason == "unknown_target"


async def facts_of_kind(store: Store, agent_id: str, kind: type[Any]) -> list[Any]:
    return [entry.fact.event for entry in await store.read(agent_id) if isinstance(entry.fact.event, kind)]


async def test_a_target_that_is_not_there_is_told_so_and_one_that_is_ambiguous_refused() -> None:
    hanging = Hanging()
    row = await hanging.start()
    nowhere: list[dict[str, Any]] = [
        {"turn_id": "turn_none"},
        {"thread_id": "none"},
        {"thread_id": "t", "agent": "nobody"},
    ]
    for where in nowhere:
        answer = await interrupt_turn(new_engine(hanging.store), **where)
        assert (answer.answer, answer.ignore_reason) == ("no_op", "unknown_target")
    neither_or_both: list[dict[str, Any]] = [{}, {"turn_id": row.turn_id, "thread_id": "t"}]
    for both in neither_or_both:
        with pytest.raises(InvalidValue, match="a turn or a thread"):
            await interrupt_turn(new_engine(hanging.store), **both)
    with pytest.raises(TurnNotFound):
        await cancel(hanging.store, "turn_none")
    await run(Agent("other", scripted(["hello"])), "hi", store=hanging.store, thread="t")
    with pytest.raises(InvalidValue, match="'t' is a thread of any, other"):
        await interrupt_turn(new_engine(hanging.store), thread_id="t")
    assert (await interrupt_turn(new_engine(hanging.store), thread_id="t", agent="any")).accepted
    assert hanging.task is not None
    await hanging.task


class Racing(WrappedStore):
    """Lets something happen just before a request to stop is written."""

    before: Any = None

    async def admit(
        self, agent_id: str, facts: Any, *, reserve: bool = False, claim: bool = False
    ) -> AdmissionAnswer | None:
        if self.before is not None and isinstance(facts[0].event, TurnInterruptRequested):
            happens, self.before = self.before, None
            await happens()
        return await super().admit(agent_id, facts, reserve=reserve, claim=claim)


@pytest.mark.spec("STD-INT-04")
async def test_of_two_requests_at_the_same_time_one_holds_and_both_are_answered() -> None:
    hanging = Hanging()
    row = await hanging.start()
    racing = Racing(hanging.store)

    async def another() -> None:
        assert await cancel(hanging.store, row.turn_id)

    racing.before = another
    assert (await interrupt_turn(new_engine(racing), turn_id=row.turn_id, requested_by="late")).accepted
    assert hanging.task is not None
    result = await hanging.task
    facts = await facts_of(hanging.store, row.turn_id)
    assert list(answers_to(facts).values()) == [["applied"], ["ignored"]], "exactly one of the two for each"
    requested = [entry.fact.event for entry in facts if isinstance(entry.fact.event, TurnInterruptRequested)]
    assert [(one.requested_by, one.reason, one.queue) for one in requested] == [
        ("caller", "user_interrupt", "keep"),
        ("late", "user_interrupt", "keep"),
    ]
    (applied,) = of_kind(result, TurnInterruptApplied)
    assert applied.interrupt_id == requested[0].interrupt_id
    assert (applied.cancelled_tool_call_ids, applied.skipped_tool_call_ids) == (("call_1_1",), ("call_1_2",))
    assert (applied.blocking_tool_call_ids, applied.cancelled_children) == ((), ()) and applied.latency_ms >= 0
    (ignored,) = of_kind(result, TurnInterruptIgnored)
    assert (ignored.interrupt_id, ignored.ignore_reason) == (requested[1].interrupt_id, "already_ending")
    assert set(get_args(IgnoreReason)) == {"no_active_turn", "already_ending", "not_allowed", "unknown_target"}
    check_ends(facts)
    assert (await replay_turn(hanging.store, row)).identical


async def test_a_request_that_came_after_the_end_is_told_that_it_is_late() -> None:
    store = MemoryStore()
    gate = asyncio.Event()

    asked = asyncio.Event()

    async def answer(request: ModelRequest) -> str:
        asked.set()
        await gate.wait()
        return "done"

    task = asyncio.create_task(run(Agent("any", scripted(answer)), "go", store=store, key="k"))
    await asked.wait()
    row = await admitted(store, "k")
    racing = Racing(store)

    async def it_ends() -> None:
        gate.set()
        await task

    racing.before = it_ends
    answered = await interrupt_turn(new_engine(racing), turn_id=row.turn_id)
    assert (answered.answer, answered.ignore_reason) == ("no_op", "no_active_turn")
    assert (await task).status == "completed"
    assert list(answers_to(await facts_of(store, row.turn_id)).values()) == [["ignored"]]
    assert (await replay_turn(store, row)).identical


async def test_a_request_without_a_word_about_it_would_be_seen() -> None:
    """The inversion: a log in which a second request stands alone is told apart."""
    hanging = Hanging()
    row = await hanging.start()
    await cancel(hanging.store, row.turn_id)
    assert hanging.task is not None
    await hanging.task
    silent = TurnInterruptRequested(interrupt_id="int_silent", requested_by="x")
    await hanging.store.admit(row.agent_id, [Fact(silent, 0, row.thread_id, row.turn_id)])
    assert answers_to(await facts_of(hanging.store, row.turn_id))["int_silent"] == []


# --- a newer message takes the place of a turn -----------------------------------------------------------------------


@pytest.mark.spec("LOOP-RUN-06")
async def test_a_newer_message_waits_and_one_that_supersedes_has_the_older_turn_stopped_first() -> None:
    hanging = Hanging()
    row = await hanging.start()
    quiet = Agent("any", scripted(["I am here."]), tools=hanging.agent.tools)
    waiting = asyncio.create_task(run(quiet, "waits", store=hanging.store, thread="t", key="k2"))
    behind = await admitted(hanging.store, "k2")
    await asyncio.sleep(0.02)
    assert row.turn_id in {one.turn_id for one in await hanging.store.turns(open_only=True)}
    assert not of_turn(await facts_of(hanging.store, row.turn_id)), "a new message alone cancels nothing"
    newest = await run(quiet, "now", store=hanging.store, thread="t", supersede=True)
    assert newest.completed
    assert hanging.task is not None
    first, second = await hanging.task, await waiting
    for result in (first, second):
        assert (result.status, result.stop_reason) == ("cancelled", "superseded")
    (failed,) = [one for one in of_kind(first, ToolFailed) if one.status == "cancelled"]
    assert failed.abort_reason == "superseded"
    (skipped,) = [one for one in of_kind(first, ToolFailed) if one.status == "skipped"]
    assert skipped.abort_reason == "superseded"
    assert second.turn_id == behind.turn_id and second.model_calls == 0
    # Two root turns of the thread never ran at the same time.
    log = [one.fact for one in await hanging.store.read("any", thread_id="t") if not one.fact.event.outsider]
    turns = [fact.turn_id for fact in log]
    assert turns == sorted(turns, key=list(dict.fromkeys(turns)).index)
    assert list(dict.fromkeys(turns)) == [row.turn_id, behind.turn_id, newest.turn_id]
    with pytest.raises(InvalidConfig, match="supersede=True"):
        await run(quiet, "where?", store=hanging.store, supersede=True)


@pytest.mark.spec("STD-INT-06")
async def test_why_a_call_was_stopped_is_on_record_and_cancelled_is_not_interrupted() -> None:
    for reason, stop_reason, status in (
        ("user_interrupt", "cancelled", "cancelled"),
        ("superseded", "superseded", "cancelled"),
        ("parent_cancelled", "cancelled", "cancelled"),
        ("runtime_shutdown", "interrupted", "interrupted"),
    ):
        hanging = Hanging()
        row = await hanging.start()
        assert await cancel_turn(new_engine(hanging.store), row.turn_id, reason=reason)  # type: ignore[arg-type]
        assert hanging.task is not None
        result = await hanging.task
        (ended,) = of_kind(result, TurnFailed)
        assert (ended.status, ended.stop_reason) == ("cancelled", stop_reason)
        (running,) = [one for one in of_kind(result, ToolFailed) if one.item.call_id == "call_1_1"]
        assert (running.status, running.abort_reason) == (status, reason)
    # Cut off without anybody's wish: the process went away.
    hanging = Hanging()
    await hanging.start()
    assert hanging.task is not None
    hanging.task.cancel()
    await asyncio.wait({hanging.task})
    again = asyncio.create_task(run(hanging.agent, "go", store=hanging.store, thread="t", key="k"))
    hanging.begun.clear()
    await hanging.begun.wait()
    await interrupt(hanging.store, thread="t")
    first, second = of_kind(await again, ToolFailed)
    assert (first.status, first.effects, first.abort_reason) == ("interrupted", "unknown", "runtime_shutdown")
    assert (second.status, second.abort_reason) == ("cancelled", "user_interrupt")
    assert set(get_args(AbortReason)) == {
        *("user_interrupt", "superseded", "sibling_failed", "timeout", "budget", "fallback"),
        *("approval_expired", "runtime_shutdown", "parent_cancelled"),
    }
