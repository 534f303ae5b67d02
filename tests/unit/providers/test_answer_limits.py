"""A provider is told of the length that was reserved, in its own words, and what it is told stays valid."""

from decimal import Decimal
from typing import Any, Literal, NamedTuple

import pytest

from wakeful import Agent, Budget, RunResult, run
from wakeful.contracts.events import ModelRequested
from wakeful.contracts.model_settings import ModelSettings
from wakeful.engine.request_budget import held_to
from wakeful.providers.prices import Price
from wakeful.testing.provider_server.server import ProviderServer

PRICE = Price(Decimal(5), Decimal(25))
MODELS: dict[str, tuple[str, Literal["openai_chat"] | None]] = {
    "chat": ("openai:gpt-5.5", "openai_chat"),
    "responses": ("openai:gpt-5.5", None),
    "messages": ("anthropic:claude-haiku-4-5", None),
    "gemini": ("gemini:gemini-2.5-flash", None),
    "unknown": ("openai:a-model-of-nobody", "openai_chat"),
}
OWN_LONGEST = {"messages": 32_000, "unknown": 4_096}
"""Where a request always names a length, and where it has to because nobody knows the model's."""
wires = pytest.mark.parametrize("wire", MODELS)


class Sent(NamedTuple):
    """What a request says of the length of its answer, and of its thoughts."""

    most: int | None
    thinks: int | None


def sent(body: dict[str, Any]) -> Sent:
    generation = body.get("generationConfig", {})
    lengths = [body.get(name) for name in ("max_tokens", "max_completion_tokens", "max_output_tokens")]
    most = next((each for each in lengths if each is not None), generation.get("maxOutputTokens"))
    thinks = generation.get("thinkingConfig", {}).get("thinkingBudget")
    return Sent(most, body.get("thinking", {}).get("budget_tokens", thinks))


async def asked(wire: str, budget: Budget, **settings: Any) -> tuple[Sent, RunResult[Any]]:
    ref, spoken = MODELS[wire]
    async with ProviderServer(["hello"], prices={ref.partition(":")[2]: PRICE}) as server:
        model = server.model(ref, wire=spoken)
        result = await run(Agent("a", model, settings=settings), "hi", budget=budget)
        return sent(server.requests[0].body), result


def reserved(result: RunResult[Any]) -> int:
    events = [each.fact.event for each in result.facts()]
    return next(event.reserved_output or 0 for event in events if isinstance(event, ModelRequested))


@wires
@pytest.mark.parametrize("budget", [Budget(usd=0.2), Budget(tokens=9_000), Budget(output_tokens=9_000)], ids=str)
async def test_the_vendor_cannot_pass_what_was_reserved(wire: str, budget: Budget) -> None:
    request, result = await asked(wire, budget)
    assert request.most is not None and request.most == reserved(result) <= 4_096


@wires
async def test_an_answer_that_nothing_shortens_is_as_long_as_its_model_can_write(wire: str) -> None:
    request, result = await asked(wire, Budget(usd=500))
    assert request.most == OWN_LONGEST.get(wire)
    assert reserved(result) == OWN_LONGEST.get(wire, 65_536 if wire == "gemini" else 128_000)


@pytest.mark.parametrize(
    ("wire", "own"),
    [
        ("chat", {"openai": {"max_completion_tokens": 50_000}}),
        ("chat", {"extra_body": {"max_completion_tokens": 50_000}}),
        ("responses", {"extra_body": {"max_output_tokens": 50_000}}),
        ("messages", {"extra_body": {"max_tokens": 30_000}}),
        ("gemini", {"gemini": {"maxOutputTokens": 50_000}}),
        ("gemini", {"extra_body": {"generationConfig": {"maxOutputTokens": 50_000}}}),
    ],
)
async def test_no_field_of_a_vendors_own_passes_it_either(wire: str, own: dict[str, Any]) -> None:
    request, result = await asked(wire, Budget(usd=0.2), **own)
    assert request.most is not None and request.most == reserved(result) < 5_000


@pytest.mark.parametrize("usd", [0.06, 0.1, 0.2, 0.4, 1])
@pytest.mark.parametrize("thinking", ["low", "high", 5_000])
async def test_thinking_stays_valid_when_the_answer_is_short(usd: float, thinking: Any) -> None:
    for wire in ("messages", "gemini"):
        request, _ = await asked(wire, Budget(usd=usd), thinking=thinking)
        assert request.most is not None
        if request.thinks is not None:
            assert request.thinks <= request.most - min(1_024, request.most // 2), "thoughts leave room for an answer"
            assert wire == "gemini" or request.thinks >= 1_024, "the API takes no fewer"
        else:
            assert wire == "messages" and request.most < 2_048


async def test_thinking_in_a_vendors_own_words_stays_valid_too() -> None:
    own = {"anthropic": {"thinking": {"type": "enabled", "budget_tokens": 20_000}}}
    request, _ = await asked("messages", Budget(usd=0.4), **own)
    assert request.most is not None and request.thinks == request.most // 2
    request, _ = await asked("messages", Budget(usd=0.1), **own)
    assert request.most is not None and request.most < 2_048 and request.thinks is None


@wires
async def test_an_answer_that_the_budget_cut_off_names_the_budget(wire: str) -> None:
    ref, spoken = MODELS[wire]
    with ProviderServer([{"text": "word " * 40_000}], prices={ref.partition(":")[2]: PRICE}) as server:
        agent = Agent("a", server.model(ref, wire=spoken))
        result = await run(agent, "hi", budget=Budget(usd=0.1))
    (words,) = result.warnings
    assert words.startswith("the answer was cut off: the budget of 0.1 USD allows this request 1,0")
    assert "max_tokens" not in words


def test_a_smaller_length_of_a_vendors_own_stays() -> None:
    settings = ModelSettings(openai={"max_completion_tokens": 300}, temperature=0.5)
    assert held_to(settings, 1_000) == settings.model_copy(update={"max_tokens": 1_000})
