"""Limits as facts: an attempt that was refused for one says which, in all three formats; an answered one adds none."""

import json
from typing import Any

import pytest

from engine_runs import of_kind
from wakeful import Agent, RunResult
from wakeful.bootstrap import runtime
from wakeful.contracts.events import ModelFailed, QuotaBlocked, RateLimitHit, TurnFailed
from wakeful.contracts.models import ProviderLimit
from wakeful.service.replay import replay_turn
from wakeful.service.requests import RunRequest
from wakeful.service.turns import run_turn
from wakeful.store.memory import MemoryStore
from wire_formats import ALL, CHAT, MESSAGES, RESPONSES, WireFormat

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
ONE = ProviderLimit(name="requests", limit=60, remaining=0, resets_at="2027-01-15T08:00:01.000Z")
OTHER = ProviderLimit(name="tokens", limit=1000, remaining=900)


async def asked(wire: WireFormat, *refusals: tuple[str, bytes, tuple[str, ...]]) -> RunResult[Any]:
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
                await conversation.answer("200 OK", body, "Content-Type: application/json", *HEADERS[wire.name])

    store = MemoryStore()
    async with serving(talk) as server:
        agent: Agent[Any, Any] = Agent("asker", wire.model(server.url))
        result = await run_turn(runtime(store, jitter=lambda: 0.0), RunRequest(agent, "Hello", stream=False))
    (row,) = await store.turns()
    report = await replay_turn(store, row)
    assert report.identical, report.divergence
    return result


@pytest.mark.parametrize("wire", ALL, ids=str)
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


@pytest.mark.parametrize("wire", ALL, ids=str)
async def test_a_429_without_words_about_limits_is_a_fact_all_the_same(wire: WireFormat) -> None:
    result = await asked(wire, ("429 Too Many", b"", ("retry-after: 0",)))
    (hit,) = of_kind(result, RateLimitHit)
    assert (hit.limit_name, hit.limits, hit.retry_after_ms) == (None, (), 0)


@pytest.mark.parametrize("wire", ALL, ids=str)
async def test_an_account_with_nothing_left_is_a_fact_of_its_own(wire: WireFormat) -> None:
    body = json.dumps({"error": {"type": "insufficient_quota", "code": "insufficient_quota", "message": "pay"}})
    result = await asked(wire, ("429 Too Many", body.encode(), HEADERS[wire.name]))
    assert result.status == "failed"
    (lost,) = of_kind(result, ModelFailed)
    assert lost.failure_kind == "quota_exhausted"
    (blocked,) = of_kind(result, QuotaBlocked)
    assert (blocked.model_ref, blocked.limits) == (lost.model_ref, (ONE, OTHER))
    assert of_kind(result, RateLimitHit) == []
    assert len(of_kind(result, TurnFailed)) == 1


@pytest.mark.parametrize("wire", ALL, ids=str)
async def test_an_answered_request_adds_no_fact_whatever_its_headers_say(wire: WireFormat) -> None:
    result = await asked(wire)
    assert of_kind(result, RateLimitHit) == of_kind(result, QuotaBlocked) == []
    result = await asked(wire, ("503 Not Now", b"", ("retry-after: 0", *HEADERS[wire.name])))
    assert of_kind(result, RateLimitHit) == of_kind(result, QuotaBlocked) == []
