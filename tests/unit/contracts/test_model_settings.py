"""Settings of a model: what is taken, what is refused and how, what an override changes, what older turns wrote."""

from typing import Any

import pytest

from wakeful import Agent, ModelSettings, run, tool
from wakeful.contracts.errors import InvalidConfig, UnknownTool
from wakeful.contracts.model_settings import stored_settings
from wakeful.contracts.setting_names import UnknownSetting
from wakeful.ports import ModelRequest
from wakeful.testing import scripted

EVERYTHING = ModelSettings(
    temperature=0.5,
    top_p=0.9,
    max_tokens=9,
    stop="END",
    seed=7,
    presence_penalty=-1,
    frequency_penalty=1,
    logit_bias={50256: -100},
    tool_choice=["look"],
    parallel_tool_calls=False,
    thinking="low",
    cache="1h",
    service_tier="flex",
    user="u",
    metadata={"team": "a"},
    timeout=3,
    first_byte_timeout=2,
    extra_headers={"x-trace": "t"},
    extra_body={"top_k": 4},
    anthropic={"top_k": 4},
    openai={"verbosity": "low"},
    gemini={"safety": "off"},
    stream=False,
    require=["tools"],
    accept_gap=["vision"],
)


@tool(effect="pure")
def look(word: str) -> str:
    """Look."""
    return word


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        (
            "temprature",
            "Did you mean 'temperature'? "
            'Vendor-specific fields go under the vendor\'s name, for example anthropic={"top_k": 40}.',
        ),
        ("max_output_tokens", "Did you mean 'max_tokens'? Vendor-specific"),
        ("reasoning_effort", "Did you mean 'thinking'? Vendor-specific"),
        ("top_k", 'Write it under the vendor\'s name: anthropic={"top_k": ...}.'),
        ("background", 'Write it under the vendor\'s name: openai={"background": ...}.'),
        ("messages", "The runtime writes this field of the request itself."),
        ("zzz", "Settings are: temperature, top_p, max_tokens"),
    ],
)
def test_a_setting_that_does_not_exist_names_what_was_meant(name: str, hint: str) -> None:
    with pytest.raises(UnknownSetting) as refused:
        ModelSettings(**{name: 1})  # type: ignore[arg-type]
    assert refused.value.message == f"{name!r} is not a model setting"
    assert refused.value.hint.startswith(hint)
    assert isinstance(refused.value, TypeError)


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": "hot"},
        {"temperature": True},
        {"temperature": float("nan")},
        {"temperature": 3},
        {"top_p": 1.5},
        {"max_tokens": 0},
        {"max_tokens": "9"},
        {"max_tokens": True},
        {"stop": [1]},
        {"seed": 1.5},
        {"presence_penalty": 3},
        {"logit_bias": {"7": "more"}},
        {"tool_choice": []},
        {"tool_choice": 7},
        {"parallel_tool_calls": "no"},
        {"thinking": "hard"},
        {"thinking": True},
        {"thinking": 0},
        {"cache": 1},
        {"cache": "2h"},
        {"metadata": {"a": 1}},
        {"timeout": 0},
        {"timeout": True},
        {"extra_headers": {"x": 1}},
        {"extra_body": [1]},
        {"anthropic": "top_k"},
        {"stream": 1},
        {"require": "vision"},
        {"require": ["sight"]},
    ],
    ids=str,
)
@pytest.mark.parametrize("door", ["settings", "agent", "file", "run"])
async def test_a_value_of_the_wrong_type_is_refused_before_anything_runs(wrong: dict[str, Any], door: str) -> None:
    asked: list[ModelRequest] = []
    model = scripted(lambda request: asked.append(request) or "done")
    ((name, value),) = wrong.items()
    with pytest.raises(InvalidConfig) as refused:
        match door:
            case "settings":
                ModelSettings(**wrong)
            case "agent":
                Agent("a", model, settings=wrong)
            case "file":
                Agent.from_dict({"name": "a", "model": "a:b", "settings": wrong})
            case _:
                await run(Agent("a", model), "go", settings=wrong)
    assert f"settings.{name}={value!r}" in refused.value.message
    assert refused.value.hint
    assert asked == []


@pytest.mark.parametrize("place", ["openai", "anthropic", "gemini", "extra_body"])
@pytest.mark.parametrize("name", ["model", "messages", "tools", "stream", "tool_choice", "system", "input"])
def test_a_field_that_the_runtime_writes_cannot_be_set(place: str, name: str) -> None:
    with pytest.raises(InvalidConfig, match=rf"settings\.{place}\.{name}: the runtime writes this field itself"):
        ModelSettings(**{place: {name: "x"}})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["Authorization", "x-api-key", "api-key", "Cookie", "Content-Length", "Host"])
def test_a_key_is_no_header_of_the_settings_because_settings_are_stored(name: str) -> None:
    with pytest.raises(InvalidConfig, match=rf"settings\.extra_headers has '{name}'"):
        ModelSettings(extra_headers={name: "x"})


async def test_inversion_a_header_that_is_no_key_is_stored_and_sent() -> None:
    """What a key would become without the check: a part of the stored configuration."""
    result = await run(Agent("a", scripted(["done"]), settings={"extra_headers": {"x-note": "sk-1"}}), "go")
    assert result._config is not None and "sk-1" in result._config.model_dump_json()


@pytest.mark.parametrize("header", [("x-a", "one\r\nx-api-key: two"), ("x a", "one"), ("", "one"), ("x", "\u2603")])
def test_a_header_that_would_become_another_is_refused(header: tuple[str, str]) -> None:
    with pytest.raises(InvalidConfig, match="is not an HTTP header"):
        ModelSettings(extra_headers=dict([header]))


def test_a_value_that_is_no_json_is_named_by_its_place() -> None:
    with pytest.raises(InvalidConfig, match=r"settings\.openai\.a\.b: a object is not JSON"):
        ModelSettings(openai={"a": {"b": object()}})


def test_settings_come_back_from_what_was_written() -> None:
    assert ModelSettings(**EVERYTHING.written()) == EVERYTHING
    assert stored_settings(EVERYTHING.written()) == EVERYTHING
    assert set(EVERYTHING.written()) == set(ModelSettings.model_fields), "none was forgotten here"
    assert ModelSettings().written() == ModelSettings(temperature=None).written() == {}


def test_an_override_changes_what_it_sets_and_nothing_else() -> None:
    before = ModelSettings(temperature=0.1, max_tokens=9, openai={"verbosity": "low", "truncation": "auto"})
    after = before.updated(ModelSettings(temperature=None, openai={"verbosity": "high"}, seed=1))
    assert after == ModelSettings(max_tokens=9, seed=1, openai={"verbosity": "high", "truncation": "auto"})


async def test_a_run_changes_the_settings_of_its_agent_for_itself() -> None:
    seen: list[ModelSettings] = []
    agent = Agent("a", scripted(lambda request: seen.append(request.settings) or "done"), settings={"temperature": 0.1})
    await run(agent, "go", settings={"max_tokens": 5})
    await run(agent, "go", settings=ModelSettings(temperature=0.9))
    await run(agent, "go")
    assert seen == [
        ModelSettings(temperature=0.1, max_tokens=5),
        ModelSettings(temperature=0.9),
        ModelSettings(temperature=0.1),
    ]


def test_a_file_has_the_same_settings_as_a_program(tmp_path: Any) -> None:
    agent = Agent("a", "scripted:demo", tools=[look], settings=EVERYTHING)
    for name in ("agent.yaml", "agent.json"):
        agent.to_file(tmp_path / name)
        assert Agent.from_file(tmp_path / name, [look]).settings == EVERYTHING
    assert Agent.from_dict({"name": "a", "model": "a:b", "settings": {"temperature": 1}}).settings.temperature == 1


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        ("lock", "did you mean 'look'?"),
        (["look", "other"], "its tools are: look"),
    ],
)
def test_a_choice_of_a_tool_that_is_not_there_is_refused_when_the_agent_is_made(choice: Any, told: str) -> None:
    with pytest.raises(UnknownTool, match=r"settings\.tool_choice names") as refused:
        Agent("a", "scripted:demo", tools=[look], settings={"tool_choice": choice})
    assert refused.value.hint == told
    with pytest.raises(InvalidConfig, match="it has no tools"):
        Agent("a", "scripted:demo", settings={"tool_choice": "required"})


def test_a_bare_name_that_two_tools_have_is_refused() -> None:
    one, two = tool(_named, effect="pure", name="a/look"), tool(_named, effect="pure", name="b/look")
    with pytest.raises(UnknownTool, match="which several tools are called") as refused:
        Agent("a", "scripted:demo", tools=[one, two], settings={"tool_choice": "look"})
    assert refused.value.hint == "write one of: a/look, b/look"
    Agent("a", "scripted:demo", tools=[one, two], settings={"tool_choice": "b/look"})


def _named() -> str:
    """Look."""
    return ""


async def test_what_was_written_for_one_provider_is_not_sent_to_another_that_a_run_names() -> None:
    seen: list[ModelSettings] = []
    settings = ModelSettings(temperature=0.1, extra_headers={"x-gateway": "t"}, extra_body={"own": 1})
    agent: Agent[Any, Any] = Agent("a", "openai:gpt-5.5", settings=settings)
    await run(agent, "go", model=scripted(lambda request: seen.append(request.settings) or "done"))
    assert seen == [ModelSettings(temperature=0.1)]
    again = agent.changed(model="openai:gpt-4o")
    assert again.settings == settings, "the same provider keeps them"


@pytest.mark.parametrize(
    ("stored", "meant"),
    [
        ({}, {}),
        ({"temperature": 0.5, "max_tokens": 9}, {"temperature": 0.5, "max_tokens": 9}),
        ({"max_output_tokens": 9, "stop_sequences": ["a"]}, {"max_tokens": 9, "stop": ["a"]}),
        ({"background": True, "verbosity": "low"}, {"openai": {"background": True, "verbosity": "low"}}),
        ({"context_management": True, "top_k": 3}, {"anthropic": {"context_management": True, "top_k": 3}}),
        ({"thinking": {"type": "adaptive"}}, {"anthropic": {"thinking": {"type": "adaptive"}}}),
        ({"effort": "max"}, {"anthropic": {"output_config": {"effort": "max"}}}),
        ({"reasoning_effort": "low"}, {"thinking": "low"}),
        ({"reasoning_effort": "xhigh"}, {"openai": {"reasoning_effort": "xhigh"}}),
        ({"repetition_penalty": 1.1, "seed": None}, {"extra_body": {"repetition_penalty": 1.1}}),
        ({"top_p": "0.5", "seed": 1}, {"extra_body": {"top_p": "0.5"}, "seed": 1}),
        ({"tool_choice": {"type": "function"}, "n": 2}, {"extra_body": {}}),
    ],
    ids=str,
)
def test_settings_of_turns_from_before_they_were_typed_keep_their_meaning(
    stored: dict[str, Any], meant: dict[str, Any]
) -> None:
    assert stored_settings(stored) == ModelSettings(**meant)
