"""What a request may cost and what attempts cost, as facts of a turn."""

import subprocess
import sys
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import pytest

from wakeful import Agent, run
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import AssistantItem
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.events import CostEstimated, CostRecorded, Event, ModelFailed, ModelRequested
from wakeful.contracts.model_settings import ModelSettings
from wakeful.contracts.models import ModelGlimpse, Reply, TokenUsage
from wakeful.ports import ModelRequest
from wakeful.providers.openai_chat import OpenAIChat
from wakeful.providers.prices import IN_CODE, LOCAL, ListedPrice, Price
from wakeful.service.run_result import RunResult

MINE = Price(Decimal(1), Decimal(10))
USED = TokenUsage(input_tokens=100, output_tokens=20, total_tokens=120)


class Priced:
    """A model with a price and a limit of its own, which says or fails what it is given, in order."""

    ref = "mine:m"

    def __init__(self, *says: Reply | ModelFailure, most: int | None = 1_000, price: Price | None = MINE) -> None:
        self._says = list(says)
        self._most = most
        self.price = None if price is None else ListedPrice(price, IN_CODE)

    def most_output(self, settings: ModelSettings) -> int | None:
        return settings.max_tokens or self._most

    async def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        said = self._says.pop(0)
        if isinstance(said, ModelFailure):
            raise said
        yield said


def answer(usage: TokenUsage | None = USED, **metadata: str) -> Reply:
    return Reply(item=AssistantItem(parts=(Text("hi"),)), usage=usage, request_metadata=dict(metadata))


def facts(result: RunResult[Any], *kinds: type[Event]) -> list[Event]:
    return [entry.fact.event for entry in result.facts() if isinstance(entry.fact.event, kinds)]


async def test_the_most_a_request_can_cost_is_written_before_it_and_what_it_cost_after() -> None:
    result = await run(Agent("a", Priced(answer())), "x" * 297)
    estimated, asked, recorded = facts(result, CostEstimated, ModelRequested, CostRecorded)
    assert isinstance(estimated, CostEstimated) and isinstance(recorded, CostRecorded)
    assert isinstance(asked, ModelRequested)
    assert (estimated.output_tokens, estimated.price_list) == (1_000, IN_CODE)
    assert estimated.input_tokens >= 100
    assert Decimal(estimated.amount) == (estimated.input_tokens + 10 * Decimal(1_000)) / 1_000_000
    assert (recorded.amount, recorded.lost, recorded.attempt) == ("0.0003", False, 1)
    assert result.cost_usd == pytest.approx(0.0003)


async def test_a_limit_of_the_callers_is_the_one_that_is_estimated() -> None:
    result = await run(Agent("a", Priced(answer()), settings={"max_tokens": 50}), "go")
    (estimated,) = facts(result, CostEstimated)
    assert isinstance(estimated, CostEstimated) and estimated.output_tokens == 50


async def test_without_a_price_or_without_a_limit_nothing_is_estimated() -> None:
    for model in (Priced(answer(), price=None), Priced(answer(), most=None)):
        assert facts(await run(Agent("a", model), "go"), CostEstimated) == []


async def test_a_lost_attempt_that_used_tokens_cost_something_too() -> None:
    broken = ModelFailure("cut", kind="stream_interrupted", stage="body", usage=TokenUsage(input_tokens=100))
    silent = ModelFailure("cut", kind="stream_interrupted", stage="body")
    result = await run(Agent("a", Priced(broken, silent, answer())), "go")
    told = facts(result, CostRecorded, ModelFailed)
    assert [type(event) for event in told] == [ModelFailed, CostRecorded, ModelFailed, CostRecorded]
    costs = [(each.amount, each.lost, each.attempt) for each in told if isinstance(each, CostRecorded)]
    assert costs == [("0.0001", True, 1), ("0.0003", False, 3)]
    assert result.cost_usd == pytest.approx(0.0004), "what was lost is in the sum"


async def test_one_answer_of_unknown_cost_makes_the_sum_unknown() -> None:
    result = await run(Agent("a", Priced(answer(service_tier="flex"))), "go")
    assert facts(result, CostRecorded) == [] and result.cost_usd is None


def test_a_model_carries_the_price_its_owner_gives_it() -> None:
    model = OpenAIChat("qwen3", base_url="http://127.0.0.1:1/v1", price=MINE)
    assert model.price == ListedPrice(MINE, IN_CODE)
    assert OpenAIChat("qwen3", base_url="http://127.0.0.1:1/v1").price is LOCAL
    assert OpenAIChat("qwen3", base_url="http://10.0.0.1:1/v1").price is None
    assert model.most_output(ModelSettings()) is None and model.most_output(ModelSettings(max_tokens=7)) == 7


@pytest.mark.parametrize(("ref", "loads"), [("openai:gpt-5.5", True), ("scripted:demo", False), ("vllm:m", False)])
def test_a_turn_loads_the_list_once_and_only_for_a_model_that_a_seller_lists(ref: str, loads: bool) -> None:
    program = (
        "import asyncio, sys\n"
        "from types import SimpleNamespace as Some\n"
        "from wakeful.providers.pricing import ListPricing\n"
        f"asyncio.run(ListPricing().ready([Some(ref='scripted:x'), Some(ref={ref!r})]))\n"
        "print('genai_prices.data' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == str(loads)
