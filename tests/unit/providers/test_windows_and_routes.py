"""Models under the names that gateways, clouds and servers give them: their profiles, windows and prices."""

import pytest

from wakeful.contracts.errors import UnknownProvider
from wakeful.contracts.model_settings import ModelSettings
from wakeful.providers.endpoints import endpoint
from wakeful.providers.openai_chat import OpenAIChat
from wakeful.providers.price_list import context_window, price_of
from wakeful.providers.profiles import named_profile, profile_of
from wakeful.providers.wire.setting_fields import effort_of


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("anthropic/claude-opus-4.7", "claude-opus-4-7"),
        ("anthropic/claude-opus-4.8", "claude-opus-4-8"),
        ("claude-sonnet-4.6", "claude-sonnet-4-6"),
        ("claude-haiku-5.5", "claude-haiku-5-5"),
        ("us.anthropic.claude-opus-4-7-20260101-v1:0", "claude-opus-4-7"),
        ("anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5"),
        ("apac.anthropic.claude-sonnet-4-6-v1", "claude-sonnet-4-6"),
    ],
)
def test_a_model_keeps_its_profile_under_every_name(written: str, plain: str) -> None:
    assert named_profile(written) == named_profile(plain) is not None


@pytest.mark.parametrize(
    ("name", "window"),
    [
        ("moonshotai/Kimi-K2-Thinking", 262_144),
        ("zai-org/GLM-4.6", 200_000),
        ("MiniMaxAI/MiniMax-M2", 204_800),
        ("meta-llama/llama-4-scout-17b-16e-instruct", 131_072),
        ("codestral-2508", 256_000),
        ("devstral-2512", 262_144),
        ("ministral-8b-latest", 131_072),
        ("grok-3", 131_072),
        ("grok-4-1-fast-reasoning", 2_000_000),
        ("gpt-4-turbo-2024-04-09", 128_000),
    ],
)
def test_more_models_have_a_profile(name: str, window: int) -> None:
    profile = profile_of(name)
    assert (profile.context_window, profile.tools) == (window, True)


def test_a_window_that_no_profile_has_is_the_sellers() -> None:
    model = OpenAIChat("zai-glm-4.7", provider="cerebras", api_key="k")
    assert model.profile.context_window is None
    assert model.context_window == context_window("cerebras", "zai-glm-4.7") == 131_072
    assert OpenAIChat("mine", base_url="http://127.0.0.1:1/v1").context_window is None


@pytest.mark.parametrize(
    ("ref", "like"),
    [
        ("azure:gpt-5.5", "openai:gpt-5.5"),
        ("moonshot:kimi-k3", None),
        ("zai:glm-4.6", None),
        ("cohere:command-a", None),
        ("minimax:MiniMax-M2", None),
        ("fireworks:accounts/fireworks/models/kimi-k3", None),
        ("huggingface:moonshotai/Kimi-K3:fireworks-ai", None),
    ],
)
def test_more_routes_have_prices(ref: str, like: str | None) -> None:
    found = price_of(ref)
    assert found is not None
    assert like is None or found.price.input == price_of(like).price.input  # type: ignore[union-attr]


def test_a_seller_that_asks_for_each_request_as_well_has_no_price_by_tokens() -> None:
    assert price_of("perplexity:sonar-pro") is None


def test_a_router_whose_choice_is_not_known_has_no_price() -> None:
    assert price_of("huggingface:moonshotai/Kimi-K3") is None


@pytest.mark.parametrize("name", ["vertex", "zai", "minimax", "moonshot"])
def test_a_service_that_is_not_built_in_is_not_taken_for_another(name: str) -> None:
    with pytest.raises(UnknownProvider) as unknown:
        endpoint(name, environ={}, settings={})
    assert "Did you mean" not in str(unknown.value)


def test_a_slip_of_the_pen_is_still_seen() -> None:
    with pytest.raises(UnknownProvider, match="Did you mean anthropic"):
        endpoint("antropic", environ={}, settings={})


@pytest.mark.parametrize(
    ("model", "asked", "sent"),
    [
        ("claude-opus-4-7", "max", "max"),
        ("claude-opus-4-7", "xhigh", "xhigh"),
        ("claude-opus-4-6", "xhigh", "high"),
        ("gpt-5.5", "max", "xhigh"),
        ("o3", "max", "high"),
        ("gemini-3.8-flash", "xhigh", "high"),
    ],
)
def test_a_word_for_thinking_is_the_highest_that_the_model_knows(model: str, asked: str, sent: str) -> None:
    thinking = ModelSettings(thinking=asked).thinking  # type: ignore[arg-type]
    assert thinking and effort_of(thinking, profile_of(model).efforts) == sent
