"""Answers that a provider makes by itself: their id is a fact, and what a crash cut off is asked for by it."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from kit.runs.engine_runs import cut, kinds, of_kind
from wakeful import Agent, RunResult, cancel, resume, run
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import AssistantItem, CallPart
from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.errors import ModelFailure, ResponseGone
from wakeful.contracts.events import (
    ModelCompleted,
    ModelFailed,
    ModelRequested,
    ModelResponseAccepted,
    ModelResponseReattached,
    TurnInterruptApplied,
)
from wakeful.contracts.models import ModelGlimpse, Reply, TextDelta
from wakeful.ports import ModelRequest, Reattachable
from wakeful.service.queries.replay import replay_facts, replay_turn
from wakeful.store.memory import Memory, MemoryStore
from wakeful.testing import scripted

KEY = "sk-not-to-be-seen-0123456789"
ANSWER = Reply(item=AssistantItem(parts=(Text("here it is"),)))


class Working:
    """A provider that works by itself. What it was asked is noted."""

    def __init__(self, *, ref: str = "far:away", gone: bool = False, endless: bool = False, deaf: bool = False) -> None:
        self.ref = ref
        self.gone, self.endless, self.deaf = gone, endless, deaf
        self.asked: list[str] = []
        self.on_disk: list[str] = []
        self.started = asyncio.Event()
        self.store: MemoryStore | None = None

    async def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        self.asked.append("respond")
        assert request.accepted is not None
        await request.accepted("resp_1")
        if self.store is not None:
            (row,) = await self.store.turns()
            self.on_disk = kinds(await self.store.read(row.agent_id))
        async for piece in self._answer():
            yield piece

    async def reattach(self, request: ModelRequest, response_id: str) -> AsyncIterator[ModelGlimpse | Reply]:
        self.asked.append(f"reattach {response_id}")
        if self.gone:
            raise ResponseGone("it was thrown away", kind="stream_interrupted", stage="headers", status=404)
        async for piece in self._answer():
            yield piece

    async def abandon(self, response_id: str) -> None:
        self.asked.append(f"abandon {response_id}")
        if self.deaf:
            raise ConnectionError(f"nobody listens to {KEY}")

    def redacted(self, text: str) -> str:
        return text.replace(KEY, "[redacted]")

    async def _answer(self) -> AsyncIterator[ModelGlimpse | Reply]:
        yield TextDelta(text="here")
        self.started.set()
        if self.endless:
            await asyncio.Event().wait()
        yield ANSWER


def agent(model: Any, **options: Any) -> Agent[Any, Any]:
    return Agent("any", model, **options)


async def cut_off_at(kind: type[Any], model: Any) -> tuple[Memory, str]:
    """A turn whose log ends with the first event of this kind."""
    memory = Memory()
    result = await run(agent(model), "go", store=MemoryStore(memory))
    (agent_id,) = memory.agents
    upto = next(entry.seq for entry in result.facts() if isinstance(entry.fact.event, kind))
    return cut(memory, agent_id, upto), result.turn_id


async def is_identical(store: MemoryStore) -> bool:
    (row,) = await store.turns()
    report = await replay_turn(store, row)
    assert report.divergence is None, report.divergence
    return report.identical


async def test_the_id_is_on_disk_before_the_model_goes_on() -> None:
    model = Working()
    model.store = MemoryStore()
    result = await run(agent(model), "go", store=model.store)
    assert model.on_disk[-1] == "model.response.accepted"
    (accepted,) = of_kind(result, ModelResponseAccepted)
    assert accepted == ModelResponseAccepted(
        model_ref="far:away", provider="far", candidate=0, attempt=1, response_id="resp_1"
    )
    assert result.output == "here it is"
    assert await is_identical(model.store)


async def test_what_was_accepted_is_asked_for_by_its_id_and_not_sent_again() -> None:
    memory, turn_id = await cut_off_at(ModelResponseAccepted, Working())
    model, store = Working(), MemoryStore(memory)
    assert isinstance(model, Reattachable)
    result = await resume(store, turn_id, [agent(model)])
    assert model.asked == ["reattach resp_1"]
    assert (result.output, result.model_calls) == ("here it is", 1)
    assert of_kind(result, ModelResponseReattached) == [
        ModelResponseReattached(model_ref="far:away", candidate=0, attempt=1, response_id="resp_1")
    ]
    assert of_kind(result, ModelFailed) == [] and len(of_kind(result, ModelRequested)) == 1
    assert await is_identical(store)


async def test_a_second_crash_asks_for_the_same_answer_again() -> None:
    memory, turn_id = await cut_off_at(ModelResponseAccepted, Working())
    (agent_id,) = memory.agents
    for _ in range(4):
        result = await resume(MemoryStore(memory), turn_id, [agent(Working())])
        last = max(e.seq for e in result.facts() if isinstance(e.fact.event, ModelResponseReattached))
        memory = cut(memory, agent_id, last)
    model, store = Working(), MemoryStore(memory)
    result = await resume(store, turn_id, [agent(model)])
    assert model.asked == ["reattach resp_1"]
    assert (result.output, result.model_calls) == ("here it is", 1)
    assert await is_identical(store)


class Splitting(Working):
    """Splits its work in two at the root; what the children are asked, it works at by itself."""

    async def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        if request.level is None and request.answered == 0:
            asks = [
                CallPart(call_id=name, name="run_subtask", arguments={"title": name, "instructions": name})
                for name in ("c1", "c2")
            ]
            yield Reply(item=AssistantItem(parts=tuple(asks)), stop_reason="tool_calls")
            return
        if request.level is not None:
            self.asked.append(f"respond {request.level}")
            assert request.accepted is not None
            await request.accepted(f"resp_{request.level}")
        async for piece in self._answer():
            yield piece


async def test_each_child_that_was_cut_off_asks_for_its_own_answer() -> None:
    memory = Memory()
    result = await run(agent(Splitting(), subtasks=True), "go", store=MemoryStore(memory))
    (agent_id,) = memory.agents
    places = [entry.seq for entry in result.facts() if isinstance(entry.fact.event, ModelResponseAccepted)]
    assert len(places) == 2
    store = MemoryStore(cut(memory, agent_id, places[-1]))
    before = [entry.fact for entry in await store.read(agent_id)]
    answered = {fact.level for fact in before if isinstance(fact.event, ModelCompleted)}
    model = Splitting()
    resumed = await resume(store, result.turn_id, [agent(model, subtasks=True)])
    open_ones = {"c1", "c2"} - answered
    assert open_ones and set(model.asked) == {f"reattach resp_{level}" for level in open_ones}
    assert (resumed.output, resumed.model_calls) == ("here it is", 4)
    assert await is_identical(store)


async def test_what_was_not_accepted_is_lost_and_sent_again() -> None:
    memory, turn_id = await cut_off_at(ModelRequested, Working())
    model, store = Working(), MemoryStore(memory)
    await resume(store, turn_id, [agent(model)])
    assert model.asked == ["respond"]
    assert await is_identical(store)


async def test_an_answer_that_is_gone_is_a_lost_attempt_that_does_not_count() -> None:
    memory, turn_id = await cut_off_at(ModelResponseAccepted, Working())
    model, store = Working(gone=True), MemoryStore(memory)
    result = await resume(store, turn_id, [agent(model)])
    assert model.asked == ["reattach resp_1", "respond"]
    (lost,) = of_kind(result, ModelFailed)
    assert (lost.stage, lost.disposition, lost.message) == ("crash", "retry", "it was thrown away")
    assert [event.attempt for event in of_kind(result, ModelRequested)] == [1, 1]
    assert (result.output, result.model_calls) == ("here it is", 2)
    assert await is_identical(store)


@pytest.mark.parametrize(
    "model", [Working(ref="far:other"), scripted(["here it is"])], ids=["another", "no such thing"]
)
async def test_a_model_that_cannot_be_asked_for_it_is_sent_the_request(model: Any) -> None:
    memory, turn_id = await cut_off_at(ModelResponseAccepted, Working())
    store = MemoryStore(memory)
    result = await resume(store, turn_id, [agent(model)])
    assert result.output == "here it is"
    assert of_kind(result, ModelResponseReattached) == []
    (lost,) = of_kind(result, ModelFailed)
    assert lost.stage == "crash"
    assert await is_identical(store)


async def stopped(model: Working, store: MemoryStore) -> RunResult[Any]:
    running = asyncio.create_task(run(agent(model), "go", store=store))
    await model.started.wait()
    (row,) = await store.turns()
    await cancel(store, row.turn_id)
    return await running


async def test_a_turn_that_is_stopped_tells_the_provider() -> None:
    model, store = Working(endless=True), MemoryStore()
    result = await stopped(model, store)
    assert model.asked == ["respond", "abandon resp_1"]
    assert result.status == "cancelled"
    (lost,) = of_kind(result, ModelFailed)
    assert (lost.failure_kind, lost.message) == ("cancelled", "the turn was told to stop")
    assert await is_identical(store)


async def test_a_provider_that_cannot_be_told_keeps_no_turn_from_ending() -> None:
    model, store = Working(endless=True, deaf=True), MemoryStore()
    result = await stopped(model, store)
    assert result.status == "cancelled"
    (lost,) = of_kind(result, ModelFailed)
    assert "the provider could not be told (ConnectionError: nobody listens to [redacted])" in lost.message


async def test_a_turn_that_died_while_it_stopped_tells_the_provider_when_it_is_taken_up() -> None:
    memory = Memory()
    result = await stopped(Working(endless=True), MemoryStore(memory))
    (agent_id,) = memory.agents
    applied = next(entry.seq for entry in result.facts() if isinstance(entry.fact.event, TurnInterruptApplied))
    model, store = Working(endless=True), MemoryStore(cut(memory, agent_id, applied))
    again = await asyncio.wait_for(resume(store, result.turn_id, [agent(model)]), 60)
    assert again.status == "cancelled"
    assert model.asked[-1] == "abandon resp_1"
    assert "respond" not in model.asked
    assert await is_identical(store)


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        (ModelResponseReattached, {"response_id": "resp_2"}),
        (ModelResponseAccepted, {"response_id": "resp_2"}),
    ],
)
async def test_a_log_that_was_changed_does_not_come_out_the_same(kind: type[Any], changed: dict[str, Any]) -> None:
    memory, turn_id = await cut_off_at(ModelResponseAccepted, Working())
    store = MemoryStore(memory)
    await resume(store, turn_id, [agent(Working())])
    (row,) = await store.turns()
    facts = [
        StoredFact(each.agent_id, each.seq, replace(each.fact, event=each.fact.event.model_copy(update=changed)))
        if isinstance(each.fact.event, kind)
        else each
        for each in await store.read(row.agent_id)
    ]
    report = await replay_facts(store, row, facts)
    assert report.divergence is not None
    assert report.divergence.kind == "model.response.reattached"


async def test_an_attempt_said_to_be_lost_in_a_crash_that_never_was_is_found() -> None:
    failing = scripted([{"fail": [{"kind": "server_error", "retry_after": 0}], "text": "fine"}])
    store = MemoryStore()
    await run(agent(failing), "go", store=store)
    (row,) = await store.turns()
    facts = [
        StoredFact(
            each.agent_id, each.seq, replace(each.fact, event=each.fact.event.model_copy(update={"stage": "crash"}))
        )
        if isinstance(each.fact.event, ModelFailed)
        else each
        for each in await store.read(row.agent_id)
    ]
    report = await replay_facts(store, row, facts)
    assert report.divergence is not None


# --- words that nobody expected ---------------------------------------------------------------------------------------


class Broken:
    """A model with a bug, whose words hold its key."""

    ref = "far:broken"

    async def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        raise KeyError(f"no header for {KEY}")
        yield ANSWER


class BrokenAndDiscreet(Broken):
    def redacted(self, text: str) -> str:
        return text.replace(KEY, "[redacted]")


class BrokenTwice(Broken):
    def redacted(self, text: str) -> str:
        raise ModelFailure("there is no key", kind="auth_error", stage="connect")


async def message_of(model: Any) -> str:
    result = await run(agent(model), "go", store=MemoryStore())
    assert result.status == "failed"
    (lost,) = of_kind(result, ModelFailed)
    return str(lost.message)


async def test_the_words_of_an_exception_nobody_expected_hold_no_key() -> None:
    assert await message_of(BrokenAndDiscreet()) == "KeyError: 'no header for [redacted]'"


async def test_a_model_that_cannot_say_what_is_secret_has_its_words_left_out() -> None:
    assert await message_of(BrokenTwice()) == "KeyError"


async def test_a_model_that_does_not_say_what_is_secret_is_taken_at_its_word() -> None:
    """The inversion: it is the model's own word that keeps the key out."""
    assert KEY in await message_of(Broken())
