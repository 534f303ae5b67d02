"""Limits as facts: an attempt refused for one says which, in all three formats; an answer only when little is left."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from kit.runs.engine_runs import of_kind
from kit.wires.wire_formats import ALL, CHAT, MESSAGES, RESPONSES, WireFormat
from wakeful import Agent, RunResult
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.events import ModelCompleted, ModelFailed, QuotaBlocked, QuotaLow, RateLimitHit, TurnFailed
from wakeful.contracts.models import ProviderLimit
from wakeful.engine.run_request import RunRequest
from wakeful.service.commands.turns import run_turn
from wakeful.service.queries.replay import replay_turn
from wakeful.store.memory import MemoryStore

from .wire.servers import Conversation, serving

LIKE_OPENAI = (
    "x-ratelimit-limit-requests: 60",
    "x-ratelimit-remaining-requests: 0",
    "x-ratelimit-reset-requests: 1s",
    "x-ratelimit-limit-tokens: 1000",
    "x-ratelimit-remaining-tokens: 900",
    "Date: Fri, 15 Jan 2027 08:00:00 GMT",
)
HEADERS = {
    CHAT.name: LIKE_OPENAI,
    RESPONSES.name: LIKE_OPENAI,
    MESSAGES.name: (
        "anthropic-ratelimit-requests-limit: 60",
        "anthropic-ratelimit-requests-remaining: 0",
        "anthropic-ratelimit-requests-reset: 2027-01-15T08:00:01Z",
        "anthropic-ratelimit-tokens-limit: 1000",
        "anthropic-ratelimit-tokens-remaining: 900",
    ),
}
TOLD_IN_HEADERS = pytest.mark.parametrize("wire", [wire for wire in ALL if wire.name in HEADERS], ids=str)
"""Gemini tells of a limit only when it was met, and in the body."""
ONE = ProviderLimit(name="requests", limit=60, remaining=0, resets_at="2027-01-15T08:00:01.000Z")
OTHER = ProviderLimit(name="tokens", limit=1000, remaining=900)


async def asked(
    wire: WireFormat, *refusals: tuple[str, bytes, tuple[str, ...]], answered_with: Sequence[str] | None = None
) -> RunResult[Any]:
    """A turn on a server that refuses in these ways and then answers; its log is decided again."""
    left = list(refusals)

    async def talk(conversation: Conversation) -> None:
        while True:
            await conversation.request()
            if left:
                status, body, headers = left.pop(0)
                await conversation.answer(status, body, *headers)
            else:
                body = wire.body("Whole.")
                headers = HEADERS[wire.name] if answered_with is None else tuple(answered_with)
                await conversation.answer("200 OK", body, "Content-Type: application/json", *headers)

    store = MemoryStore()
    async with serving(talk) as server:
        agent: Agent[Any, Any] = Agent("asker", wire.model(server.url))
        result = await run_turn(new_engine(store, jitter=lambda: 0.0), RunRequest(agent, "Hello", stream=False))
    (row,) = await store.turns()
    report = await replay_turn(store, row)
    assert report.identical, report.divergence
    return result


@TOLD_IN_HEADERS
async def test_a_429_is_a_fact_with_what_its_headers_said(wire: WireFormat) -> None:
    refusal = wire.refused("rate_limit_error", "slowly")
    result = await asked(wire, ("429 Too Many", refusal, ("retry-after-ms: 5", *HEADERS[wire.name])))
    assert result.output == "Whole."
    (lost,) = of_kind(result, ModelFailed)
    assert of_kind(result, RateLimitHit) == [
        RateLimitHit(
            model_ref=lost.model_ref,
            attempt=1,
            limit_name="requests",
            limit=60,
            observed=60,
            retry_after_ms=5,
            resets_at="2027-01-15T08:00:01.000Z",
            limits=(ONE, OTHER),
        )
    ]
    kinds = [entry.fact.event.kind for entry in result.facts()]
    assert kinds[kinds.index("rate_limit.hit") + 1] == "model.failed"


@TOLD_IN_HEADERS
async def test_a_429_without_words_about_limits_is_a_fact_all_the_same(wire: WireFormat) -> None:
    result = await asked(wire, ("429 Too Many", b"", ("retry-after: 0",)))
    (hit,) = of_kind(result, RateLimitHit)
    assert (hit.limit_name, hit.limits, hit.retry_after_ms) == (None, (), 0)


@TOLD_IN_HEADERS
async def test_an_account_with_nothing_left_is_a_fact_of_its_own(wire: WireFormat) -> None:
    body = json.dumps({"error": {"type": "insufficient_quota", "code": "insufficient_quota", "message": "pay"}})
    result = await asked(wire, ("429 Too Many", body.encode(), HEADERS[wire.name]))
    assert result.status == "waiting"
    (lost,) = of_kind(result, ModelFailed)
    assert lost.failure_kind == "quota_exhausted"
    (blocked,) = of_kind(result, QuotaBlocked)
    assert (blocked.model_ref, blocked.limits) == (lost.model_ref, (ONE, OTHER))
    assert of_kind(result, RateLimitHit) == []
    assert of_kind(result, TurnFailed) == []


@TOLD_IN_HEADERS
async def test_an_answer_says_that_little_is_left_and_nothing_when_all_is_well(wire: WireFormat) -> None:
    result = await asked(wire)
    (completed,) = of_kind(result, ModelCompleted)
    assert of_kind(result, QuotaLow) == [
        QuotaLow(
            model_ref=completed.model_ref,
            attempt=1,
            limit_name="requests",
            limit=60,
            observed=60,
            resets_at="2027-01-15T08:00:01.000Z",
            limits=(ONE, OTHER),
        )
    ]
    assert of_kind(result, RateLimitHit) == of_kind(result, QuotaBlocked) == []
    well = [header.replace("remaining-requests: 0", "remaining-requests: 50") for header in HEADERS[wire.name]]
    well = [header.replace("requests-remaining: 0", "requests-remaining: 50") for header in well]
    assert of_kind(await asked(wire, answered_with=well), QuotaLow) == []


@TOLD_IN_HEADERS
async def test_a_request_that_was_lost_for_another_reason_says_nothing_about_limits(wire: WireFormat) -> None:
    result = await asked(wire, ("503 Not Now", b"", ("retry-after: 0", *HEADERS[wire.name])), answered_with=())
    assert of_kind(result, RateLimitHit) == of_kind(result, QuotaBlocked) == of_kind(result, QuotaLow) == []
