"""Attempts over HTTP: which are made again and where, and the one timeline that keeps them."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from kit.runs.engine_runs import of_kind
from kit.runs.whole_views import run_stream, transcript
from kit.wires.wire_formats import CHAT, MESSAGES, RESPONSES, WireFormat
from wakeful import Agent, Retry, RunResult
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.events import (
    ModelCompleted,
    ModelFailed,
    ModelRequested,
    RoutingCandidatesResolved,
    RoutingDecided,
    RoutingFallbackApplied,
    RoutingNotPossible,
    TurnFailed,
    WarningIssued,
)
from wakeful.contracts.models import ProviderAttemptRecord, ProviderAttemptTimeline
from wakeful.engine.run_request import RunRequest
from wakeful.ports import Model
from wakeful.providers.endpoints import Endpoint
from wakeful.providers.model_references import UnsupportedTransport
from wakeful.service.commands.turns import give_up_waiting, run_turn
from wakeful.service.queries.replay import replay_facts, replay_turn
from wakeful.store.memory import MemoryStore
from wakeful.views.run_stream_events import ErrorEvent, StepEvent
from wakeful.views.transcript import AssistantRound, RuntimeFailure

from .wire.servers import Conversation, Server, serving

GOOD = 200
FIRST, SECOND, THIRD = "openai-compatible:m-1", "anthropic:m-1", "openai:m-1"


@asynccontextmanager
async def answering(wire: WireFormat, *statuses: int) -> AsyncIterator[tuple[Model, list[int]]]:
    """A model whose server answers with these, in order, and the answers that it has given."""
    left, given = list(statuses), []

    async def talk(conversation: Conversation) -> None:
        while True:
            await conversation.request()
            given.append(left.pop(0))
            if given[-1] == GOOD:
                await conversation.answer("200 OK", wire.body(f"from {wire}"), "Content-Type: application/json")
            else:
                await conversation.answer(f"{given[-1]} No", wire.refused("no", "not like this"))

    async with serving(talk) as server:
        yield wire.model(server.url), given


async def turn(*models: Model, wait: float = 0.0) -> RunResult[Any]:
    """What a run without a store does: it cannot wait, and fails."""
    agent: Agent[Any, Any] = Agent("asker", models[0], fallbacks=models[1:], retry=Retry(patience=0))
    engine, request = new_engine(MemoryStore(), jitter=lambda: wait), RunRequest(agent, "Hello", stream=False)
    result = await run_turn(engine, request)
    return result if result.waiting_for is None else await give_up_waiting(engine, result, request)


def told(result: RunResult[Any]) -> list[tuple[str, int, int | None, str]]:
    """Model, attempt, status and disposition of every lost attempt."""
    lost = of_kind(result, ModelFailed)
    return [(each.model_ref, each.attempt, each.status, each.disposition) for each in lost]


def won(result: RunResult[Any]) -> ProviderAttemptTimeline:
    (completed,) = of_kind(result, ModelCompleted)
    assert completed.timeline is not None
    return completed.timeline


@pytest.mark.spec("HOL-RETRY-01")
async def test_each_attempt_is_judged_by_itself() -> None:
    """The first may be made again, the second may not: what the first was counts for nothing then."""
    async with answering(CHAT, 503, 400) as (model, given):
        result = await turn(model)
    assert told(result) == [(FIRST, 1, 503, "retry"), (FIRST, 2, 400, "abort")]
    assert given == [503, 400]


@pytest.mark.spec("HOL-RETRY-02", "HOL-RETRY-05", "HOL-RETRY-06")
async def test_a_passing_failure_is_retried_twice_before_the_next_model_is_asked() -> None:
    async with answering(CHAT, 503, 429, 500) as (first, asked), answering(MESSAGES, GOOD) as (second, helped):
        result = await turn(first, second)
    assert asked == [503, 429, 500]
    assert told(result) == [(FIRST, 1, 503, "retry"), (FIRST, 2, 429, "retry"), (FIRST, 3, 500, "fallback")]
    assert [(each.model_ref, each.attempt, each.max_attempts) for each in of_kind(result, ModelRequested)] == [
        *((FIRST, 1, 3), (FIRST, 2, 3), (FIRST, 3, 3), (SECOND, 1, 3)),
    ]
    assert helped == [GOOD]
    assert result.output == "from messages"


@pytest.mark.spec("HOL-RETRY-07")
async def test_a_refusal_for_good_ends_that_model_alone() -> None:
    async with answering(CHAT, 401) as (first, asked), answering(MESSAGES, 529, GOOD) as (second, helped):
        result = await turn(first, second)
    assert asked == [401]
    assert helped == [529, GOOD]
    assert told(result) == [(FIRST, 1, 401, "fallback"), (SECOND, 1, 529, "retry")]
    assert result.output == "from messages"


@pytest.mark.spec("HOL-RETRY-08", "HOL-TIMELINE-05")
async def test_a_round_that_is_lost_says_that_its_retries_are_used_up_and_keeps_them() -> None:
    async with answering(CHAT, 400) as (first, _), answering(MESSAGES, 503, 503, 503) as (second, _):
        result = await turn(first, second)
    assert (result.status, result.stop_reason) == ("failed", "provider_error")
    assert result.message is not None
    assert "retries exhausted" in result.message
    (end,) = of_kind(result, TurnFailed)
    assert end.timeline is not None
    assert [(each.model_ref, each.attempt, each.outcome) for each in end.timeline.attempts] == [
        (FIRST, 1, "fail_fast_aborted"),
        (SECOND, 1, "retrying"),
        (SECOND, 2, "retrying"),
        (SECOND, 3, "retries_exhausted"),
    ]
    assert (end.timeline.winning_model_ref, end.timeline.active_model_ref) == (None, SECOND)


async def test_a_round_that_was_refused_for_good_does_not_speak_of_retries() -> None:
    async with answering(CHAT, 400) as (model, _):
        result = await turn(model)
    assert result.message is not None
    assert "exhausted" not in result.message


@pytest.mark.spec("HOL-TIMELINE-01", "HOL-TIMELINE-02", "HOL-TIMELINE-04")
async def test_every_attempt_of_an_answered_round_is_in_its_timeline() -> None:
    async with AsyncExitStack() as servers:
        first, _ = await servers.enter_async_context(answering(CHAT, 400))
        second, _ = await servers.enter_async_context(answering(MESSAGES, 503, 503, 503))
        third, _ = await servers.enter_async_context(answering(RESPONSES, 500, GOOD))
        result = await turn(first, second, third)
    timeline = won(result)
    shown = [
        (each.provider, each.model_ref, each.attempt, each.failure_kind, each.outcome, each.advanced_to_fallback)
        for each in timeline.attempts
    ]
    assert shown == [
        ("openai-compatible", FIRST, 1, "contract_error", "fail_fast_aborted", True),
        ("anthropic", SECOND, 1, "server_error", "retrying", False),
        ("anthropic", SECOND, 2, "server_error", "retrying", False),
        ("anthropic", SECOND, 3, "server_error", "retries_exhausted", True),
        ("openai", THIRD, 1, "server_error", "retrying", False),
        ("openai", THIRD, 2, None, "succeeded", False),
    ]
    assert (timeline.requested_model_ref, timeline.winning_model_ref) == (FIRST, THIRD)


@pytest.mark.spec("HOL-RETRY-09", "HOL-TIMELINE-03", "HOL-TIMELINE-13", "HOL-TIMELINE-14")
async def test_the_log_and_the_transcript_hold_the_same_timeline() -> None:
    async with answering(CHAT, 503, 400) as (first, _), answering(MESSAGES, GOOD) as (second, _):
        answered = await turn(first, second)
    (round_,) = [entry for entry in transcript(answered.facts()) if isinstance(entry, AssistantRound)]
    assert round_.data.provider_attempt_timeline == won(answered)
    decided = [(each.disposition, each.outcome, each.advanced_to_fallback) for each in won(answered).attempts]
    assert decided == [
        ("retry", "retrying", False),
        ("fallback", "fail_fast_aborted", True),
        (None, "succeeded", False),
    ]
    assert "provider_round_completed" in ModelCompleted.aliases
    assert "terminal_delivery_round_completed" in ModelCompleted.aliases

    async with answering(CHAT, 503, 400) as (first, _):
        failed = await turn(first)
    (end,) = of_kind(failed, TurnFailed)
    (failure,) = [entry for entry in transcript(failed.facts()) if isinstance(entry, RuntimeFailure)]
    assert end.timeline is not None
    assert failure.data.provider_attempt_timeline == end.timeline
    assert [each.disposition for each in end.timeline.attempts] == ["retry", "abort"]
    assert "runtime_error" in TurnFailed.aliases


@pytest.mark.spec("HOL-TIMELINE-06", "HOL-TIMELINE-07", "HOL-TIMELINE-08")
async def test_times_are_those_of_each_attempt_and_the_waiting_between_them_stands_apart() -> None:
    async with answering(CHAT, 503, 503, GOOD) as (model, _):
        result = await turn(model, wait=1.0)
    first, second, third = won(result).attempts
    assert [each.backoff_ms for each in (first, second, third)] == [None, 200, 400]
    for before, after in ((first, second), (second, third)):
        assert after.backoff_ms is not None
        # The wait lies between the attempts: it is part of neither.
        assert (_at(after.started_at) - _at(before.completed_at)) * 1000 >= after.backoff_ms - 1
    requested = of_kind(result, ModelRequested)
    assert [each.backoff_ms for each in requested] == [0, 200, 400]
    for each in (first, second, third):
        assert each.duration_ms is not None
        assert each.duration_ms <= _span_ms(each) + 2  # one attempt, from its request to its end
    for record, event in zip((first, second), of_kind(result, ModelFailed), strict=True):
        assert (record.started_at, record.completed_at) == (event.started_at, event.completed_at)


@pytest.mark.spec("HOL-TIMELINE-11", "HOL-TIMELINE-12")
async def test_diagnostics_tell_failures_apart_and_stay_out_of_the_summary() -> None:
    async def cut(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.start_chunks()
        conversation.reset()

    async def nobody(_: Conversation) -> None:
        pass

    async with serving(nobody) as gone:
        pass
    async with serving(cut) as cutting:
        found = {name: await turn(CHAT.model(where.url)) for name, where in (("body", cutting), ("connect", gone))}
    seen = {}
    for name, result in found.items():
        (end,) = of_kind(result, TurnFailed)
        assert end.failure_artifact is not None
        assert end.timeline is not None
        diagnostics = end.timeline.attempts[-1].transport_diagnostics
        assert diagnostics is not None
        assert diagnostics.http_client is not None
        assert diagnostics.source_chain
        assert not any(link in end.failure_artifact.summary for link in diagnostics.source_chain)
        seen[name] = (diagnostics.stage, diagnostics.http_client.is_connect, diagnostics.http_client.is_body)
    assert seen == {"body": ("body", False, True), "connect": ("connect", True, False)}


@pytest.mark.spec("STD-ROUTE-14")
async def test_each_move_names_the_attempt_that_was_lost_and_the_chain_is_that_of_the_timeline() -> None:
    async with AsyncExitStack() as servers:
        first, _ = await servers.enter_async_context(answering(CHAT, 429, 429, 429))
        second, _ = await servers.enter_async_context(answering(MESSAGES, 403))
        third, _ = await servers.enter_async_context(answering(RESPONSES, GOOD))
        result = await turn(first, second, third)
    moves = of_kind(result, RoutingFallbackApplied)
    assert [(each.from_model_ref, each.to_model_ref, each.reason, each.attempt) for each in moves] == [
        (FIRST, SECOND, "rate_limited", 3),
        (SECOND, THIRD, "auth_error", 1),
    ]
    advanced = [each.model_ref for each in won(result).attempts if each.advanced_to_fallback]
    assert [each.fallback_chain for each in moves] == [(FIRST,), (FIRST, SECOND)]
    assert moves[-1].fallback_chain == tuple(advanced)
    assert [each.limit_state.rate_limit for each in moves] == ["limited", "unknown"]


def unsupported(server: Server) -> UnsupportedTransport:
    """A provider with a transport that nobody here speaks, at an address where somebody would answer."""
    return UnsupportedTransport("acme:m-1", Endpoint("acme", "carrier_pigeon", server.url, key_required=False))


@pytest.mark.spec("HOL-PROV-01", "HOL-PROV-11", "HOL-PROV-12")
async def test_a_transport_that_is_not_supported_is_turned_down_before_anything_is_sent() -> None:
    async def nobody(_: Conversation) -> None:
        pass

    async with serving(nobody) as server, answering(MESSAGES, GOOD) as (second, _):
        helped = await turn(unsupported(server), second)
        alone = await turn(unsupported(server))
    assert server.connections == 0
    assert helped.output == "from messages"
    (resolved,) = of_kind(helped, RoutingCandidatesResolved)
    (left_out,) = resolved.excluded
    assert (left_out.model_ref, left_out.reason) == ("acme:m-1", "unsupported_transport")
    assert "'carrier_pigeon', which is not supported" in left_out.detail
    (decided,) = of_kind(helped, RoutingDecided)
    assert (decided.requested_provider, decided.requested_model) == ("acme", "m-1")
    assert (decided.selected_model_ref, decided.fallback_chain) == (SECOND, ())
    assert told(helped) == [], "it was no candidate, so it lost no attempt"
    assert [each.model_ref for each in of_kind(helped, ModelRequested)] == [SECOND]
    assert helped.model_calls == 1

    assert (alone.status, alone.stop_reason) == ("failed", "routing_not_possible")
    (refused,) = of_kind(alone, RoutingNotPossible)
    assert [each.reason for each in refused.excluded] == ["unsupported_transport"]
    assert of_kind(alone, ModelRequested) == of_kind(alone, ModelFailed) == []
    (end,) = of_kind(alone, TurnFailed)
    assert "unsupported_transport (acme is configured with the transport 'carrier_pigeon'" in end.message
    assert end.model_calls == alone.model_calls == 0


class RefusesLater:
    """The same model, which is a candidate when the turn begins and then cannot be asked after all."""

    def __init__(self, inner: UnsupportedTransport) -> None:
        self.ref = inner.ref
        self.respond = inner.respond
        self._inner = inner
        self._asked = False

    def refusal(self, settings: Mapping[str, Any]) -> ModelFailure | None:
        asked, self._asked = self._asked, True
        return self._inner.refusal(settings) if asked else None


class Unasked:
    """The same model, which nobody asks beforehand whether it can be asked."""

    def __init__(self, inner: Model) -> None:
        self.ref = inner.ref
        self.respond = inner.respond


async def test_a_model_that_is_not_asked_beforehand_costs_a_request_that_is_none() -> None:
    """The inversion: it is the question beforehand that keeps the request out of the log."""

    async def nobody(_: Conversation) -> None:
        pass

    async with serving(nobody) as server:
        result = await turn(Unasked(unsupported(server)))
    assert (len(of_kind(result, ModelRequested)), result.model_calls) == (1, 0)
    assert result.status == "failed"


async def test_what_was_turned_down_comes_out_the_same_in_a_replay_and_is_shown_to_whoever_watches() -> None:
    async def nobody(_: Conversation) -> None:
        pass

    async with serving(nobody) as server, answering(MESSAGES, GOOD) as (second, _):
        store = MemoryStore()
        agent: Agent[Any, Any] = Agent(
            "asker", RefusesLater(unsupported(server)), fallbacks=[RefusesLater(unsupported(server)), second]
        )
        result = await run_turn(new_engine(store), RunRequest(agent, "Hello", stream=False))
    (row,) = await store.turns()
    report = await replay_turn(store, row)
    assert report.identical, report.divergence
    assert report.checked["model.failed"] == 2
    shown = [event for event in run_stream(row.turn_id, result.facts()) if isinstance(event, ErrorEvent | StepEvent)]
    assert [(event.type, getattr(event, "attempt", None)) for event in shown] == [
        ("step", None),
        ("error", 1),
        ("error", 2),
        ("step", None),
    ]


async def test_a_log_that_says_a_request_was_turned_down_for_no_such_reason_is_found() -> None:
    async def nobody(_: Conversation) -> None:
        pass

    async with serving(nobody) as server:
        store = MemoryStore()
        agent: Agent[Any, Any] = Agent("asker", RefusesLater(unsupported(server)))
        await run_turn(new_engine(store), RunRequest(agent, "Hello", stream=False))
    (row,) = await store.turns()
    facts = await store.read(row.agent_id)
    for changed in ({"failure_kind": "server_error"}, {"disposition": "retry"}, {"attempt": 2}):
        tampered = [
            StoredFact(each.agent_id, each.seq, replace(each.fact, event=each.fact.event.model_copy(update=changed)))
            if isinstance(each.fact.event, ModelFailed)
            else each
            for each in facts
        ]
        report = await replay_facts(store, row, tampered)
        assert report.divergence is not None
        assert report.divergence.kind == "model.failed"


@pytest.mark.parametrize("wire", [CHAT, MESSAGES], ids=str)
async def test_a_format_without_background_responses_is_asked_without_and_that_is_said(wire: WireFormat) -> None:
    async with answering(wire, GOOD) as (model, given):
        agent: Agent[Any, Any] = Agent("asker", model, settings={"openai": {"background": True}})
        result = await run_turn(new_engine(MemoryStore()), RunRequest(agent, "Hello", stream=False))
    assert (result.status, given) == ("completed", [GOOD])
    (warning,) = of_kind(result, WarningIssued)
    assert warning == WarningIssued(
        code="settings_left_out", message=f"{model.ref} does not take openai: the request was sent without"
    )


@pytest.mark.parametrize("wire", [CHAT, MESSAGES], ids=str)
async def test_a_setting_that_says_no_to_background_responses_is_heeded(wire: WireFormat) -> None:
    async with answering(wire, GOOD) as (model, given):
        agent: Agent[Any, Any] = Agent("asker", model, settings={"openai": {"background": False}})
        result = await run_turn(new_engine(MemoryStore()), RunRequest(agent, "Hello", stream=False))
    assert (result.status, given) == ("completed", [GOOD])


def _at(text: str | None) -> float:
    assert text is not None
    return datetime.fromisoformat(text).timestamp()


def _span_ms(record: ProviderAttemptRecord) -> float:
    return (_at(record.completed_at) - _at(record.started_at)) * 1000
