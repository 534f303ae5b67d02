"""What a reply used is counted, whether it is used or not, and whichever way its server writes numbers."""

import json
from collections.abc import AsyncIterator, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from kit.runs.engine_runs import of_kind
from kit.wires.provider_server import JSON, Answer, ProviderServer, serving
from kit.wires.wire_formats import ALL, CHAT, RESPONSES, WireFormat
from wakeful import Agent, Budget, RunResult, run
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import AssistantItem
from wakeful.contracts.events import CostRecorded
from wakeful.contracts.models import MOST_TOKENS, ModelGlimpse, Reply, TokenUsage
from wakeful.ports import ModelRequest
from wakeful.providers.prices import Price

TEN = Price(Decimal(10), Decimal(10))
HALF_A_MILLION = 500_000


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with serving() as it:
        yield it


def chat_body(content: Any, finish: str, usage: Any) -> Answer:
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": finish}
    return Answer(json.dumps({"choices": [choice], "usage": usage}).encode(), headers=JSON)


def empty_body(wire: WireFormat) -> Answer:
    """An answer without a word that half a million tokens went into, and as many came of."""
    chat_usage = {"prompt_tokens": HALF_A_MILLION, "completion_tokens": HALF_A_MILLION}
    usage = {"input_tokens": HALF_A_MILLION, "output_tokens": HALF_A_MILLION}
    google = {"promptTokenCount": HALF_A_MILLION, "candidatesTokenCount": HALF_A_MILLION}
    bodies: dict[str, Any] = {
        "chat": {
            "choices": [{"index": 0, "message": {"role": "assistant", "content": ""}, "finish_reason": "stop"}],
            "usage": chat_usage,
        },
        "responses": {"id": "resp_1", "status": "completed", "output": [], "usage": usage},
        "messages": {"type": "message", "content": [], "stop_reason": "end_turn", "usage": usage},
        "gemini": {"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}], "usageMetadata": google},
    }
    return Answer(json.dumps(bodies[wire.name]).encode(), headers=JSON)


async def asked(wire: WireFormat, server: ProviderServer, budget: Budget | None = None, **more: Any) -> RunResult[Any]:
    model = wire.model(server.url, price=TEN)
    return await run(Agent("s", model, settings={"stream": False, "max_tokens": 50}), "hi", budget=budget, **more)


@pytest.mark.parametrize("wire", ALL, ids=str)
async def test_an_answer_that_says_nothing_is_paid_and_counted(wire: WireFormat, server: ProviderServer) -> None:
    server.always = empty_body(wire)
    result = await asked(wire, server)
    sent = len(server.asked)
    assert result.status == "failed"
    assert result.usage.input_tokens == result.usage.output_tokens == sent * HALF_A_MILLION
    assert [Decimal(cost.amount) for cost in of_kind(result, CostRecorded)] == [Decimal(10)] * sent
    assert result.cost_usd == float(result.cost_summary.total.cost) == 10 * sent


async def test_a_money_limit_sees_what_empty_answers_cost(server: ProviderServer) -> None:
    server.always = empty_body(CHAT)
    result = await asked(CHAT, server, Budget(usd=5))
    assert (len(server.asked), result.stop_reason) == (1, "cost"), "it cost ten"


async def test_a_limit_of_tokens_sees_what_empty_answers_used(server: ProviderServer) -> None:
    server.always = empty_body(CHAT)
    result = await asked(CHAT, server, Budget(tokens=100_000))
    assert len(server.asked) == 1 and result.stop_reason == "tokens"


async def test_a_response_of_unknown_status_was_paid_too(server: ProviderServer) -> None:
    usage = {"input_tokens": 100, "output_tokens": 50}
    body = {"id": "resp_1", "status": "resting", "output": [], "usage": usage}
    server.always = Answer(json.dumps(body).encode(), headers=JSON)
    result = await asked(RESPONSES, server)
    assert (result.usage.input_tokens, result.usage.output_tokens) == (100 * len(server.asked), 50 * len(server.asked))


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (1_000_000, 1_000_000),
        (1_000_000.0, 1_000_000),
        ("1000000", 1_000_000),
        (MOST_TOKENS, MOST_TOKENS),
        (MOST_TOKENS + 1, None),
        (2**63, None),
        (1e300, None),
        (1.5, None),
        (-1, None),
        (True, None),
        ("many", None),
        ("1_000", None),
        ([5], None),
        (None, None),
    ],
)
async def test_a_count_is_read_or_unknown_and_never_nothing(
    written: Any, read: int | None, server: ProviderServer
) -> None:
    server.answers = [chat_body("Hello.", "stop", {"prompt_tokens": written, "completion_tokens": 0})]
    result = await asked(CHAT, server)
    assert (result.status, result.final_content) == ("completed", "Hello.")
    assert (result.usage.input_tokens if result.cost_usd is not None else None) == read
    assert result.cost_usd == (None if read is None else read / 100_000)


@pytest.mark.parametrize(
    ("wire", "field"), [*zip(ALL, ("prompt_tokens", *["input_tokens"] * 2, "promptTokenCount"), strict=True)]
)
async def test_each_wire_reads_numbers_alike(wire: WireFormat, field: str, server: ProviderServer) -> None:
    body = json.loads(wire.body("Hello."))
    usage = body["usageMetadata"] if wire.name == "gemini" else body["usage"]
    usage[field] = "70.0"
    server.answers = [Answer(json.dumps(body).encode(), headers=JSON)]
    assert (await asked(wire, server)).cost_usd is None
    usage[field] = "70"
    server.answers = [Answer(json.dumps(body).encode(), headers=JSON)]
    assert (await asked(wire, server)).usage.input_tokens == 70


async def test_a_count_that_no_store_can_hold_leaves_the_turn_alone(server: ProviderServer, tmp_path: Path) -> None:
    server.answers = [chat_body("Hello.", "stop", {"prompt_tokens": 2**63, "completion_tokens": 1})]
    for _ in range(3):
        result = await asked(CHAT, server, store=tmp_path / "s.db", key="once")
        assert (result.status, result.cost_usd) == ("completed", None)
    assert len(server.asked) == 1


async def test_usage_of_somebody_elses_model_is_unknown_where_it_cannot_be() -> None:
    class Boaster:
        ref = "mine:boaster"

        async def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
            yield Reply(
                item=AssistantItem(parts=(Text("Hi."),)), usage=TokenUsage(input_tokens=2**63, output_tokens=-5)
            )

    result = await run(Agent("s", Boaster()), "hi")
    assert (result.status, result.usage) == ("completed", TokenUsage())
