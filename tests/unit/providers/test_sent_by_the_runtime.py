"""Whole conversations as the runtime sends them, over every wire format, held against the vendors' typed parameters.

An agent is run as a program runs it; a server on loopback keeps each request. What an encoder is given by hand shows
what the encoder can do; only this shows what a provider gets.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from kit.wires.provider_server import Asked, ProviderServer, serving
from kit.wires.spoken_replies import Calls, Says, calls, tell, tool_names
from kit.wires.vendor_types import HANDED_BACK, Refused, judge
from wakeful import Agent, Budget, Image, ModelSettings, RunResult, Text, ToolRetry, run, tool
from wakeful.ports import Model
from wakeful.providers import AnthropicMessages, Gemini, OpenAIChat, OpenAIResponses

KEY = "sk-not-to-be-seen-0123456789"
PNG = b"\x89PNG\r\n\x1a\n"


@tool(effect="pure", name="shop/look")
def look(word: str, deep: bool = False) -> str:
    """Look something up."""
    return f"{word} is fine"


@tool(effect="pure")
def show(name: str) -> list[Text | Image]:
    """Show a picture."""
    return [Text("here it is"), Image(data=PNG, media_type="image/png")]


@tool(effect="pure")
def fail(why: str | None = None) -> str:
    """Does not work."""
    raise ToolRetry("try something else")


class Report(BaseModel):
    word: str
    score: float | None = None
    tags: list[str] = []


TOOLS = [look, show, fail]


def responses(server: ProviderServer, name: str, **options: Any) -> Model:
    return OpenAIResponses(name, base_url=f"{server.url}/v1", api_key=KEY, **options)


def chat(server: ProviderServer, name: str, **options: Any) -> Model:
    """OpenAI's own, in its dialect, which is said here because the address is not OpenAI's."""
    known = ["metadata", "reasoning_effort", "service_tier", "user"]
    quirks = {"prompt_cache_key": True, "known_fields": known, **options.pop("quirks", {})}
    return OpenAIChat(name, base_url=f"{server.url}/v1", api_key=KEY, provider="openai", quirks=quirks, **options)


def newer_chat(server: ProviderServer, name: str, **options: Any) -> Model:
    quirks = {"system_role": "developer", "max_tokens_field": "max_completion_tokens"}
    return chat(server, name, quirks=quirks, **options)


def compatible(server: ProviderServer, name: str, **options: Any) -> Model:
    return OpenAIChat(name, base_url=f"{server.url}/v1", api_key=KEY, provider="acme", **options)


def messages(server: ProviderServer, name: str, **options: Any) -> Model:
    return AnthropicMessages(name, base_url=server.url, api_key=KEY, **options)


def gemini(server: ProviderServer, name: str, **options: Any) -> Model:
    return Gemini(name, base_url=f"{server.url}/v1beta", api_key=KEY, **options)


Make = Callable[..., Model]
MODELS: dict[str, tuple[Make, str]] = {
    "responses": (responses, "gpt-5.5"),
    "responses-4o": (responses, "gpt-4o"),
    "chat": (chat, "gpt-4o"),
    "chat-reasoning": (newer_chat, "gpt-5.5"),
    "chat-compatible": (compatible, "llama-3.3-70b"),
    "chat-unknown": (compatible, "m-1"),
    "messages": (messages, "claude-opus-4-7"),
    "messages-older": (messages, "claude-sonnet-4-5"),
    "messages-unknown": (messages, "m-1"),
    "gemini": (gemini, "gemini-3.8-flash"),
    "gemini-older": (gemini, "gemini-2.5-flash"),
    "gemini-unknown": (gemini, "m-1"),
}
FORMATS = ("responses", "chat", "messages", "gemini")
ANY = pytest.mark.parametrize("model", MODELS)


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with serving() as held:
        yield held


def made(server: ProviderServer, model: str, **options: Any) -> Model:
    make, name = MODELS[model]
    return make(server, name, **options)


async def had(
    server: ProviderServer, agent: Agent[Any, Any], *replies: Calls | Says | int, **options: Any
) -> RunResult[Any]:
    """The run, after which every request was taken by the vendor's types."""
    tell(server, *replies)
    extra, handed_back = options.pop("extra", ()), options.pop("handed_back", ())
    result = await run(agent, options.pop("prompt", "Look."), **options)
    assert server.asked and not server.answers, (result.message, len(server.asked))
    for asked in server.asked:
        judge(asked, extra, handed_back)
    return result


# --- conversations ----------------------------------------------------------------------------------------------------


@ANY
@pytest.mark.parametrize("stream", [True, False])
async def test_tools_results_and_parallel_calls(server: ProviderServer, model: str, stream: bool) -> None:
    agent = Agent("a", made(server, model), "Be brief.", TOOLS, settings={"stream": stream})
    both = calls(("look", {"word": "x"}), ("show", {"name": "y"}), ("fail", {}))
    prompt = (
        "Look at this."
        if model in ("chat-compatible", "chat-unknown", "messages-unknown", "gemini-unknown")
        else [
            Text("Look at this."),
            Image(data=PNG, media_type="image/png"),
        ]
    )
    result = await had(server, agent, both, calls(("look", {"word": "z", "deep": True})), Says("done"), prompt=prompt)
    assert result.output == "done"
    assert [len(tool_names(asked.body)) for asked in server.asked] == [3, 3, 3]


@ANY
async def test_structured_output_beside_tools(server: ProviderServer, model: str) -> None:
    agent: Agent[Any, Any] = Agent("a", made(server, model), tools=TOOLS, output_type=Report)
    result = await had(
        server, agent, calls(("look", {"word": "x"})), Says("no JSON"), Says('{"word": "x", "score": 1, "tags": []}')
    )
    assert result.output == Report(word="x", score=1)


@ANY
@pytest.mark.parametrize("thinking", ["low", 3_000, False])
async def test_thinking_that_goes_back(server: ProviderServer, model: str, thinking: Any) -> None:
    agent = Agent("a", made(server, model), tools=TOOLS, settings=ModelSettings(thinking=thinking))
    replies = (calls(("look", {"word": "x"}), thought="hm"), Says("done", thought="so"))
    back = HANDED_BACK if model in ("chat-compatible", "chat-unknown") else ()  # OpenAI's own endpoint gets none
    assert (await had(server, agent, *replies, handed_back=back)).output == "done"


@ANY
async def test_subtasks_and_a_plan(server: ProviderServer, model: str) -> None:
    agent = Agent("a", made(server, model), tools=TOOLS, subtasks=True, planning_enabled=True)
    child = calls(("run_subtask", {"title": "one", "instructions": "Look x up."}))
    result = await had(
        server, agent, Says("1. Look."), child, calls(("look", {"word": "x"})), Says("x is fine"), Says("done")
    )
    assert result.output == "done"
    assert len(server.asked) == 5


@ANY
async def test_a_conversation_that_is_folded_into_a_summary(server: ProviderServer, model: str) -> None:
    agent = Agent("a", made(server, model, profile={"context_window": 3_000}), tools=TOOLS)
    words = "fine " * 1_500
    history = None
    for _ in range(3):
        server.answers.clear()
        tell(server, Says(words), Says("what was said: fine"), Says(words))
        result = await run(agent, f"Tell me more: {words}", history=history)
        history = result.history()
    assert any("what was said" in str(asked.body) for asked in server.asked), "something was folded"
    for asked in server.asked:
        judge(asked)


@ANY
async def test_the_tools_of_a_workspace(server: ProviderServer, model: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    agent = Agent("a", made(server, model), workspace=tmp_path)
    replies = (calls(("read_file", {"path": "a.txt"})), Says("one"))
    assert (await had(server, agent, *replies)).output == "one"


@ANY
async def test_the_last_call_is_for_the_answer(server: ProviderServer, model: str) -> None:
    agent = Agent("a", made(server, model), tools=TOOLS)
    replies = (calls(("look", {"word": "x"})), Says("done"))
    await had(server, agent, *replies, budget=Budget(model_calls=2))
    assert said_choice(server.asked[-1].body) == "none"


@pytest.mark.parametrize("first", MODELS)
@pytest.mark.parametrize("second", FORMATS)
async def test_a_fallback_goes_on_with_the_conversation_of_another_format(
    server: ProviderServer, first: str, second: str
) -> None:
    everything = ModelSettings(**{**EVERYTHING, "extra_body": {"only_here": 1}, "extra_headers": {"x-only": "here"}})
    agent = Agent("a", made(server, first), tools=TOOLS, fallbacks=[made(server, second)], settings=everything)
    both = calls(("look", {"word": "x"}), ("show", {"name": "y"}))
    result = await had(server, agent, both, 400, Says("done"), extra=("only_here",))
    assert result.output == "done"
    elsewhere = made(server, first).ref.partition(":")[0] != made(server, second).ref.partition(":")[0]
    *_, last = server.asked
    assert ("only_here" in last.body, "x-only" in last.headers) == (not elsewhere, not elsewhere)


async def test_inversion_the_same_provider_is_sent_its_own_headers(server: ProviderServer) -> None:
    """Without the check, another provider would be sent what this one is."""
    settings = {"extra_headers": {"x-gateway": "token"}}
    for fallback, sent in (("responses-4o", True), ("messages", False)):
        server.asked.clear()
        agent = Agent("a", made(server, "responses"), fallbacks=[made(server, fallback)], settings=settings)
        result = await had(server, agent, 400, Says("done"))
        assert "x-gateway" in server.asked[0].headers
        assert ("x-gateway" in server.asked[1].headers) is sent
        assert (result.request_metadata.get("left_out") == ["extra_headers"]) is not sent


@pytest.mark.parametrize("model", FORMATS)
async def test_inversion_another_server_of_the_same_name_is_sent_no_headers_of_ones_own(
    server: ProviderServer, model: str
) -> None:
    """Both go by the provider's name: by that alone, the second would get the first one's token."""
    settings = {"extra_headers": {"x-gateway": "token"}, "extra_body": {"only_here": 1}}
    with serving() as second:
        agent = Agent("a", made(server, model), fallbacks=[made(second, model)], settings=settings)
        tell(server, 400, Says("here"))
        tell(second, Says("there"), Says("there"))
        fallen_back = await run(agent, "Look.")
        chosen = await run(agent, "Look.", model=made(second, model))
        at_home = await run(agent, "Look.")
    assert [each.output for each in (fallen_back, chosen, at_home)] == ["there", "there", "here"]
    assert fallen_back.request_metadata["left_out"] == ["extra_headers", "extra_body"]
    sent = [("x-gateway" in each.headers, "only_here" in each.body) for each in (*server.asked, *second.asked)]
    assert sent == [(True, True), (True, True), (False, False), (False, False)]


# --- settings ---------------------------------------------------------------------------------------------------------

EVERYTHING: dict[str, Any] = {
    "temperature": 0.5,
    "top_p": 0.9,
    "max_tokens": 4_000,
    "stop": ["END"],
    "seed": 7,
    "presence_penalty": 0.1,
    "frequency_penalty": 0.2,
    "logit_bias": {"50256": -100},
    "parallel_tool_calls": False,
    "thinking": "medium",
    "cache": "1h",
    "service_tier": "default",
    "user": "u-1",
    "metadata": {"team": "support"},
    "timeout": 30,
    "anthropic": {"top_k": 5, "inference_geo": "eu"},
    "openai": {"verbosity": "low", "prompt_cache_key": "mine", "safety_identifier": "s"},
}
SENT: dict[str, set[str]] = {
    "responses": {"max_output_tokens", "reasoning", "service_tier", "user", "metadata", "text", "safety_identifier"},
    "responses-4o": {"max_output_tokens", "temperature", "top_p", "service_tier", "user", "metadata", "text"},
    "chat": {
        *("max_tokens", "temperature", "top_p", "stop", "seed", "presence_penalty", "frequency_penalty", "logit_bias"),
        *("service_tier", "user", "verbosity"),
    },
    "chat-reasoning": {"max_completion_tokens", "seed", "reasoning_effort", "service_tier", "user", "verbosity"},
    "chat-compatible": {"max_tokens", "temperature", "top_p", "stop", "seed", "presence_penalty", "logit_bias", "user"},
    "chat-unknown": {"max_tokens", "temperature", "top_p", "stop", "user"},
    "messages": {"max_tokens", "stop_sequences", "thinking", "output_config", "service_tier", "metadata"},
    "messages-older": {"max_tokens", "stop_sequences", "thinking", "service_tier", "metadata", "inference_geo"},
    "messages-unknown": {"max_tokens", "temperature", "top_p", "stop_sequences", "service_tier", "metadata"},
    "gemini": {"generationConfig", "serviceTier"},
    "gemini-older": {"generationConfig", "serviceTier"},
    "gemini-unknown": {"generationConfig", "serviceTier"},
}
LEFT_OUT: dict[str, list[str]] = {
    "responses": [
        *("temperature", "top_p", "seed", "presence_penalty", "frequency_penalty", "logit_bias", "stop", "cache"),
    ],
    "responses-4o": [
        *("seed", "presence_penalty", "frequency_penalty", "logit_bias", "stop", "thinking", "cache"),
    ],
    "chat": ["thinking", "metadata", "cache"],
    "chat-reasoning": [
        *("temperature", "top_p", "presence_penalty", "frequency_penalty", "logit_bias", "stop", "metadata", "cache"),
    ],
    "chat-compatible": ["thinking", "service_tier", "metadata", "cache"],
    "chat-unknown": [
        *("seed", "presence_penalty", "frequency_penalty", "logit_bias", "thinking"),
        *("service_tier", "metadata", "cache"),
    ],
    "messages": [
        *("temperature", "top_p", "seed", "presence_penalty", "frequency_penalty", "logit_bias", "metadata"),
        "anthropic.top_k",
    ],
    "messages-older": [
        *("temperature", "top_p", "seed", "presence_penalty", "frequency_penalty", "logit_bias", "metadata"),
        "anthropic.top_k",
    ],
    "messages-unknown": [
        *("thinking", "seed", "presence_penalty", "frequency_penalty", "logit_bias", "metadata", "cache"),
        "anthropic.top_k",
    ],
    "gemini": ["logit_bias", "user", "metadata", "cache", "parallel_tool_calls"],
    "gemini-older": ["logit_bias", "user", "metadata", "cache", "parallel_tool_calls"],
    "gemini-unknown": [
        *("seed", "presence_penalty", "frequency_penalty", "logit_bias", "thinking"),
        *("user", "metadata", "cache", "parallel_tool_calls"),
    ],
}


def vendors_of(model: str) -> set[str]:
    return {"responses": {"openai"}, "messages": {"anthropic"}}.get(
        model.partition("-")[0], {"openai"} if model in ("chat", "chat-reasoning") else set()
    )


@ANY
async def test_every_setting_at_once(server: ProviderServer, model: str) -> None:
    agent = Agent("a", made(server, model), tools=TOOLS, settings=EVERYTHING)
    result = await had(server, agent, calls(("look", {"word": "x"})), Says("done"))
    first, second = (asked.body for asked in server.asked)
    assert SENT[model] <= first.keys()
    assert not {"timeout", "extra_headers", "extra_body", "anthropic", "openai", "cache"} & first.keys()
    unplaced = [name for name in ("anthropic", "openai") if name not in vendors_of(model)]
    assert result.request_metadata["left_out"] == [*unplaced, *LEFT_OUT[model]]
    warned = [entry.fact.event for entry in result.facts() if entry.fact.event.kind == "runtime.warning"]
    assert len(warned) == 1, "it is said once, not with every reply"
    assert result.warnings == (warned[0].message,)
    assert all(name in warned[0].message for name in LEFT_OUT[model])
    assert {name: first.get(name) for name in SENT[model]} == {name: second.get(name) for name in SENT[model]}


@ANY
async def test_without_settings_nothing_is_left_out_or_warned_of(server: ProviderServer, model: str) -> None:
    result = await had(server, Agent("a", made(server, model)), Says("done"))
    assert "left_out" not in result.request_metadata and result.warnings == ()
    assert ("prompt_cache_key" in server.asked[0].body) == (
        model in ("responses", "responses-4o", "chat", "chat-reasoning")
    )


@ANY
async def test_headers_and_fields_of_ones_own_are_sent_where_they_belong(server: ProviderServer, model: str) -> None:
    settings = {"extra_headers": {"X-Trace": "t1"}, "extra_body": {"own_field": {"a": 1}}}
    await had(server, Agent("a", made(server, model), settings=settings), Says("done"), extra=("own_field",))
    (asked,) = server.asked
    assert (asked.headers["x-trace"], asked.body["own_field"]) == ("t1", {"a": 1})
    assert not {"extra_headers", "extra_body"} & asked.body.keys()


# --- which tools are called -------------------------------------------------------------------------------------------


def _gemini_choice(choice: dict[str, Any]) -> Any:
    words = {"AUTO": "auto", "NONE": "none", "ANY": "required"}
    return choice.get("allowedFunctionNames") or words[choice["mode"]]


def said_choice(body: dict[str, Any]) -> Any:
    """The choice of a request, in the words of the setting; names as they are on the wire."""
    if "contents" in body:
        return _gemini_choice(body.get("toolConfig", {}).get("functionCallingConfig", {"mode": "AUTO"}))
    choice = body.get("tool_choice", "auto")
    if isinstance(choice, str):
        return choice
    match choice["type"]:
        case "auto" | "none":
            return choice["type"]
        case "any":
            return "required"
        case "allowed_tools":
            inside = choice.get("allowed_tools", choice)
            assert inside["mode"] == "required"
            return [(each.get("function") or each)["name"] for each in inside["tools"]]
        case _:
            return [(choice.get("function") or choice)["name"]]


UNFORCED = ("chat-unknown", "messages-unknown", "gemini-unknown")
FORCING = [name for name in MODELS if name not in UNFORCED]


@pytest.mark.parametrize("model", FORCING)
@pytest.mark.parametrize("asked", ["look", "shop/look", ["look"]])
async def test_one_tool_is_called_first_by_either_of_its_names(server: ProviderServer, model: str, asked: Any) -> None:
    agent = Agent("a", made(server, model), tools=TOOLS, settings={"tool_choice": asked})
    await had(server, agent, calls(("look", {"word": "x"})), Says("done"))
    first, second = (each.body for each in server.asked)
    assert said_choice(first) == [name for name in tool_names(first) if name.endswith("look")]
    assert said_choice(second) == "auto", "the model has to be able to answer"
    assert tool_names(first) == tool_names(second)


@pytest.mark.parametrize("model", FORCING)
async def test_one_of_several_tools_is_called_first(server: ProviderServer, model: str) -> None:
    agent = Agent("a", made(server, model), tools=TOOLS, settings={"tool_choice": ["look", "show"]})
    await had(server, agent, calls(("look", {"word": "x"})), calls(("fail", {})), Says("done"))
    first, second, _ = (each.body for each in server.asked)
    choice = said_choice(first)
    offered = tool_names(first) if choice == "required" else choice
    assert [name.rpartition("__")[2] for name in offered] == ["look", "show"]
    assert (said_choice(second), len(tool_names(second))) == ("auto", 3)


@pytest.mark.parametrize("model", FORCING)
async def test_a_required_call_leaves_room_for_the_answer(server: ProviderServer, model: str) -> None:
    agent = Agent("a", made(server, model), tools=TOOLS, settings={"tool_choice": "required"})
    result = await had(server, agent, calls(("look", {"word": "x"})), Says("done"))
    assert result.output == "done"
    assert [said_choice(each.body) for each in server.asked] == ["required", "auto"]


@ANY
async def test_no_call_at_all(server: ProviderServer, model: str) -> None:
    agent = Agent("a", made(server, model), tools=TOOLS, settings={"tool_choice": "none"})
    await had(server, agent, Says("done"))
    assert said_choice(server.asked[0].body) == "none"


@ANY
async def test_a_choice_holds_for_the_agents_own_conversation_and_not_for_children(
    server: ProviderServer, model: str
) -> None:
    settings = {"tool_choice": "run_subtask"}
    agent = Agent("a", made(server, model), tools=TOOLS, subtasks=True, settings=settings)
    child = calls(("run_subtask", {"title": "one", "instructions": "Look x up."}))
    await had(server, agent, child, Says("x is fine"), Says("done"))
    assert [said_choice(each.body) for each in server.asked[1:]] == ["auto", "auto"]


@pytest.mark.parametrize("model", UNFORCED)
async def test_a_model_that_cannot_be_forced_is_asked_without_and_that_is_said(
    server: ProviderServer, model: str
) -> None:
    agent = Agent("a", made(server, model), tools=TOOLS, settings={"tool_choice": "required"})
    result = await had(server, agent, Says("done"))
    assert said_choice(server.asked[0].body) == "auto"
    assert result.request_metadata["left_out"] == ["tool_choice"]


# --- caches -----------------------------------------------------------------------------------------------------------


def marks(value: Any) -> list[Any]:
    if isinstance(value, dict):
        own = [value["cache_control"]] if "cache_control" in value else []
        return own + [mark for inner in value.values() for mark in marks(inner)]
    return [mark for inner in value for mark in marks(inner)] if isinstance(value, list) else []


@pytest.mark.parametrize(
    ("cache", "mark"), [(None, {"type": "ephemeral"}), ("1h", {"type": "ephemeral", "ttl": "1h"}), (False, None)]
)
async def test_a_cache_has_a_lifetime_or_is_off(server: ProviderServer, cache: Any, mark: Any) -> None:
    agent = Agent("a", made(server, "messages"), "Be brief.", TOOLS, settings={"cache": cache})
    await had(server, agent, calls(("look", {"word": "x"})), Says("done"))
    for asked in server.asked:
        found = marks(asked.body)
        assert found == ([mark] * len(found)) and bool(found) == (mark is not None)


async def test_a_cache_that_is_off_has_no_key(server: ProviderServer) -> None:
    result = await had(server, Agent("a", made(server, "responses"), settings={"cache": False}), Says("done"))
    assert "prompt_cache_key" not in server.asked[0].body
    assert result.request_metadata["left_out"] == ["cache"], "the provider caches by itself"


# --- the judge --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["responses", "chat", "messages"])
@pytest.mark.parametrize("spoil", ["field", "deep field", "type"])
async def test_inversion_a_request_that_is_not_the_vendors_is_refused(
    server: ProviderServer, model: str, spoil: str
) -> None:
    await had(server, Agent("a", made(server, model), tools=TOOLS), Says("done"))
    (asked,) = server.asked
    body = dict(asked.body)
    if spoil == "field":
        body["no_such_field"] = 1
    elif spoil == "deep field":
        items = "input" if model == "responses" else "messages"
        body[items] = [*body[items][:-1], {**body[items][-1], "no_such_field": 1}]
    else:
        body["tools"] = [*body["tools"], {"type": "function", "name": 7, "function": {"name": 7}}]
    with pytest.raises((Refused, ValidationError)):
        judge(Asked(asked.path, asked.headers, body))


async def test_inversion_a_cache_key_for_every_model_is_refused_by_anthropics_types(server: ProviderServer) -> None:
    """What every request of an agent once had: one field that only another vendor knows."""
    await had(server, Agent("a", made(server, "messages")), Says("done"))
    (asked,) = server.asked
    assert "prompt_cache_key" not in asked.body
    with pytest.raises(Refused, match="prompt_cache_key"):
        judge(Asked(asked.path, asked.headers, {**asked.body, "prompt_cache_key": "wk-1"}))
