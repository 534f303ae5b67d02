"""What models can do, and what is assumed of those that nobody declared."""

from typing import Any

import pytest

from wakeful.contracts.errors import InvalidConfig
from wakeful.providers.price_list import context_window
from wakeful.providers.profiles import PROFILES, UNKNOWN, ModelProfile, known_models, named_profile, profile_of


@pytest.mark.spec("LOOP-PROV-01")
@pytest.mark.parametrize("name", sorted(PROFILES))
def test_every_declared_model_says_whether_it_calls_tools_and_several_at_a_time(name: str) -> None:
    profile = PROFILES[name]
    assert isinstance(profile.tools, bool) and isinstance(profile.parallel_tool_calls, bool)
    assert profile.tools or not profile.parallel_tool_calls


@pytest.mark.spec("LOOP-PROV-06")
def test_capabilities_are_declared_for_each_model_and_what_is_not_declared_is_false() -> None:
    assert profile_of("gpt-5.5").parallel_tool_calls and not profile_of("o3").parallel_tool_calls
    undeclared = ModelProfile()
    for name in (
        "tools",
        "parallel_tool_calls",
        "forced_tool_choice",
        "images",
        "files",
        "structured_output",
        "reasoning",
    ):
        assert getattr(undeclared, name) is False
    assert undeclared.sampling == frozenset() and undeclared.context_window is None


@pytest.mark.spec("HOL-FRAME-09")
def test_prompt_capabilities_are_declared_in_the_words_of_the_contract() -> None:
    words = {
        "full_request_only",
        "prompt_cache_key",
        "prompt_cache_blocks",
        "incremental_responses",
        "context_management",
    }
    assert all(profile.prompt and profile.prompt <= words for profile in (*PROFILES.values(), UNKNOWN))
    assert profile_of("gpt-5.5").prompt == {"prompt_cache_key", "incremental_responses"}
    assert "prompt_cache_blocks" in profile_of("claude-opus-4-7").prompt
    assert profile_of("made-up").prompt == {"full_request_only"}


def test_a_model_nobody_knows_gets_what_every_server_understands() -> None:
    assert named_profile("made-up-1") is None
    assert profile_of("made-up-1") == UNKNOWN
    assert not UNKNOWN.images and not UNKNOWN.parallel_tool_calls and not UNKNOWN.reasoning


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("gpt-5-mini-2026-01-01", "gpt-5"),
        ("gpt-5.5-2026-04-23", "gpt-5.5"),
        ("gpt-5.4-mini", "gpt-5.4-mini"),
        ("gpt-5.9", "gpt-5"),
        ("claude-opus-4-20250514", "claude-opus-4"),
        ("claude-opus-4-5-20251101", "claude-opus-4-5"),
        ("claude-opus-5-5", "claude-opus-5-5"),
        ("claude-new-9", "claude-"),
        ("anthropic/claude-opus-4-7", "claude-opus-4-7"),
        ("openai/gpt-oss-120b:free", "gpt-oss"),
        ("qwen3:8b", "qwen3"),
        ("Qwen/Qwen3-8B", "qwen3"),
    ],
)
def test_the_longest_beginning_of_a_name_decides(name: str, like: str) -> None:
    assert named_profile(name) is PROFILES[like]


def test_a_name_that_only_looks_alike_is_another_model() -> None:
    assert named_profile("gpt-50") is None
    assert named_profile("o30-large") is None


def test_models_are_suggested_where_they_can_be_asked() -> None:
    assert "claude-opus-4-7" in known_models("anthropic") and "gpt-5.5" not in known_models("anthropic")
    assert "gpt-5.5" in known_models("openai_responses") and "qwen3" not in known_models("openai_responses")
    assert {"qwen3", "gpt-5.5"} <= set(known_models("openai_chat"))


def test_newer_models_take_no_sampling_parameters() -> None:
    assert profile_of("claude-opus-4-7").sampling == frozenset()
    assert "temperature" in profile_of("claude-sonnet-4-6").sampling
    assert profile_of("gpt-5.5").sampling == {"seed"}
    assert "temperature" in profile_of("gpt-4o").sampling


def test_a_profile_is_overridden_field_by_field() -> None:
    profile = profile_of("qwen3", {"images": True, "context_window": 32_768, "sampling": ["temperature"]})
    assert (profile.images, profile.context_window, profile.sampling) == (True, 32_768, {"temperature"})
    assert profile.tools is PROFILES["qwen3"].tools


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"image": True}, "Did you mean images"),
        ({"images": "yes"}, "true or false"),
        ({"images": 1}, "true or false"),
        ({"context_window": "big"}, "number of tokens"),
        ({"context_window": -1}, "number of tokens"),
        ({"context_window": True}, "number of tokens"),
        ({"sampling": "temperature"}, "list of names"),
    ],
)
def test_a_mistake_in_an_override_is_told(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidConfig, match=told):
        profile_of("qwen3", settings)


DOCUMENTED = {"openai:gpt-4.1": 1_047_576, "openai:gpt-5.5": 1_050_000}
"""Windows that the seller's own page gives, where the price list has a round number."""


def test_no_window_is_larger_than_the_one_the_price_list_gives() -> None:
    compared = 0
    for provider, names in (("openai", known_models("openai_responses")), ("anthropic", known_models("anthropic"))):
        for name in names:
            listed = context_window(provider, name)
            ours = profile_of(name).context_window
            if listed is not None and ours is not None:
                assert ours <= DOCUMENTED.get(f"{provider}:{name}", listed), name
                compared += 1
    assert compared > 20


def test_an_answer_is_never_longer_than_the_window() -> None:
    for name, profile in PROFILES.items():
        if profile.context_window is not None and profile.max_output is not None:
            assert profile.max_output < profile.context_window, name
