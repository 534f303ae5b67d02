"""Every fault at every point of an exchange, in all three formats: what the timeline says, and how the turn ends.

Each fault is met twice, at the same time: by an agent that has another model to turn to, and by one that has none.
Backoff is zero here, so that nothing is waited for but the fault.
"""

import asyncio
import ssl
from collections.abc import Iterable
from typing import Any

import pytest

from kit.runs.engine_runs import of_kind
from kit.wires.wire_formats import ALL, CHAT, KEY, WireFormat
from wakeful import Agent, Retry, RunResult
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.events import ModelCompleted, ModelFailed, RoutingFallbackApplied, TurnFailed
from wakeful.contracts.models import RETRYABLE
from wakeful.decisions.failures import PROTOCOL
from wakeful.decisions.retries import ONCE_MORE
from wakeful.engine.run_request import RunRequest
from wakeful.ports import Model
from wakeful.service.commands.turns import give_up_waiting, run_turn
from wakeful.service.queries.replay import replay_turn
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted

from .faulty_servers import (
    AT_THE_END,
    BEFORE_THE_ANSWER,
    NOT_STREAMED,
    PATIENT,
    WORDS,
    Case,
    going_wrong,
    in_chunk,
    in_the_stream,
    longer,
)
from .wire.servers import serving

EVERY_FORMAT = pytest.mark.parametrize("wire", ALL, ids=str)


async def turn(models: list[Model], prompt: str = "Say it.", *, stream: bool = True) -> RunResult[Any]:
    """A whole turn without backoff, whose decisions come out the same when they are made again."""
    store = MemoryStore()
    agent: Agent[Any, Any] = Agent("sweeper", models[0], fallbacks=models[1:], retry=Retry(patience=0))
    engine = new_engine(store, jitter=lambda: 0.0)
    request = RunRequest(agent, prompt, stream=stream)
    result = await run_turn(engine, request)
    if result.waiting_for == "provider":
        result = await give_up_waiting(engine, result, request)
    (row,) = await store.turns()
    assert (await replay_turn(store, row)).identical
    return result


async def faced(case: Case, wire: WireFormat, certificate: ssl.SSLContext) -> None:
    """Meet a fault with and without another model, and hold both ends against the rules."""
    for times in (1, 5, 25, 100):
        async with going_wrong(case, wire, certificate) as url:
            model = wire.model(url, timeouts=longer(case.timeouts, times))
            helped, alone = await asyncio.gather(
                turn([model, scripted(["from the other"])], case.prompt, stream=case.stream),
                turn([model], case.prompt, stream=case.stream),
            )
        lost = of_kind(helped, ModelFailed) + of_kind(alone, ModelFailed)
        if not any(each.failure_kind == "timeout" and each.stage != case.stage for each in lost):
            break  # else the time was over before the fault was reached: once more, with more of it
    attempts = 2 if case.kind in ONCE_MORE else 3 if case.kind in RETRYABLE else 1
    retries = [(attempt, "retry") for attempt in range(1, attempts)]
    check_lost(case, helped, model.ref, [*retries, (attempts, "fallback")])
    check_lost(case, alone, model.ref, [*retries, (attempts, "abort")])
    check_helped(case, helped, model.ref, attempts)
    check_alone(case, alone, attempts)


def check_lost(case: Case, result: RunResult[Any], ref: str, expected: list[tuple[int, str]]) -> None:
    lost = of_kind(result, ModelFailed)
    said = [(each.failure_kind, each.stage, each.attempt, each.disposition) for each in lost]
    assert said == [(case.kind, case.stage, attempt, disposition) for attempt, disposition in expected], lost[0].message
    for each in lost:
        assert (each.model_ref, each.candidate) == (ref, 0)
        assert each.transport_diagnostics is not None
        assert each.transport_diagnostics.stage == case.stage
        assert KEY not in each.model_dump_json()


def check_helped(case: Case, result: RunResult[Any], ref: str, attempts: int) -> None:
    assert (result.status, result.output) == ("completed", "from the other")
    (moved,) = of_kind(result, RoutingFallbackApplied)
    assert (moved.from_model_ref, moved.reason, moved.attempt) == (ref, case.kind, attempts)
    (won,) = of_kind(result, ModelCompleted)
    assert won.timeline is not None
    outcomes = [record.outcome for record in won.timeline.attempts]
    ended = "retries_exhausted" if attempts == 3 else "fail_fast_aborted"
    assert outcomes == [*["retrying"] * (attempts - 1), ended, "succeeded"]
    assert won.timeline.winning_model_ref == moved.to_model_ref == won.model_ref


def check_alone(case: Case, result: RunResult[Any], attempts: int) -> None:
    (end,) = of_kind(result, TurnFailed)
    assert (result.status, end.stop_reason) == ("failed", "provider_error")
    assert (result.output if result.completed else None) is None
    assert of_kind(result, ModelCompleted) == of_kind(result, RoutingFallbackApplied) == []
    artifact = end.failure_artifact
    assert artifact is not None
    assert artifact.kind == case.kind
    assert artifact.category == ("protocol" if case.kind in PROTOCOL else "transport")
    assert ("retries exhausted" in end.message) == (attempts == 3)
    assert end.timeline is not None
    assert len(end.timeline.attempts) == attempts


async def all_faced(cases: Iterable[Case], wire: WireFormat, certificate: ssl.SSLContext) -> None:
    """Side by side: nearly all of their time is waiting. What fails says which case it is of."""

    async def one(case: Case) -> None:
        try:
            await faced(case, wire, certificate)
        except AssertionError as error:
            error.add_note(f"the fault: {case}")
            raise

    await asyncio.gather(*map(one, cases))


@EVERY_FORMAT
async def test_a_fault_before_the_answer_begins(wire: WireFormat, untrusted: ssl.SSLContext) -> None:
    await all_faced(BEFORE_THE_ANSWER, wire, untrusted)


@EVERY_FORMAT
@pytest.mark.parametrize("fault", range(len(in_chunk(0))), ids=lambda number: str(in_chunk(0)[number]))
async def test_a_fault_after_any_number_of_events(wire: WireFormat, fault: int, untrusted: ssl.SSLContext) -> None:
    """However much of the answer came: without its last event it is a lost attempt, never a short answer."""
    places = range(len(wire.events(WORDS)))
    if wire is CHAT and "ends-cleanly" in str(in_chunk(0)[fault]):
        places = range(
            3
        )  # the reason is the third event: from there on such an end is one: see `test_ends_of_streams.py`
    await all_faced((in_chunk(place)[fault] for place in places), wire, untrusted)


@EVERY_FORMAT
async def test_a_fault_in_an_answer_that_is_not_streamed(wire: WireFormat, untrusted: ssl.SSLContext) -> None:
    await all_faced(NOT_STREAMED, wire, untrusted)


@EVERY_FORMAT
@pytest.mark.parametrize("fault", AT_THE_END)
async def test_what_happens_behind_the_last_event_does_not_touch_the_answer(wire: WireFormat, fault: str) -> None:
    async with serving(in_the_stream(len(wire.events(WORDS)), AT_THE_END[fault])(wire)) as server:
        result = await turn([wire.model(server.url, timeouts=PATIENT), scripted(["from the other"])])
    assert (result.status, result.output) == ("completed", WORDS)
    assert of_kind(result, ModelFailed) == []
    assert server.connections == 1
