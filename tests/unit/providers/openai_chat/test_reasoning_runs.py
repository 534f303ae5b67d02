"""Whole turns with servers that reason: what they gave goes back to them, byte for byte, and to nobody else."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kit.wires.chat_streams import PEER, chunk, response, stream
from kit.wires.provider_server import JSON, Answer, Asked, ProviderServer, chat_words, refusal, serving
from wakeful import Agent, Budget, Image, run, tool
from wakeful.contracts.content import Text, Thinking
from wakeful.contracts.conversation import AssistantItem
from wakeful.contracts.events import AssistantRecorded, ModelFailed, ToolFailed
from wakeful.providers.endpoints import BUILT_IN
from wakeful.providers.openai_chat import OpenAIChat
from wakeful.providers.openai_chat.dialect import COMPATIBLE
from wakeful.providers.openai_chat.messages import Messages
from wakeful.providers.profiles import ModelProfile
from wakeful.providers.wire.attachments import Attachments
from wakeful.providers.wire.names import WireNames

CALL = {"id": "call12345", "type": "function", "function": {"name": "look_up", "arguments": '{"word":"é"}'}}
HM = 'Hm… \u2028 "so"\n'


@tool(effect="pure", name="look_up")
def look_up(word: str) -> str:
    """Looks a word up."""
    return f"{word} is a letter"


GIVEN: dict[str, dict[str, Any]] = {
    "reasoning_content": {"content": "I look.", "reasoning_content": HM},
    "reasoning": {"content": None, "reasoning": HM},
    "both": {"content": None, "reasoning": HM, "reasoning_content": HM},
    "reasoning_details": {
        "content": "I look.",
        "reasoning": HM,
        "reasoning_details": [
            {"type": "reasoning.text", "text": HM, "signature": "c2ln", "format": "anthropic-claude-v1", "index": 0},
            {"type": "reasoning.encrypted", "data": "x==", "id": "call12345", "format": "google-gemini-v1", "index": 1},
        ],
    },
    "thinking parts": {
        "content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": HM}], "closed": True},
            {"type": "text", "text": "I look."},
        ]
    },
    "think tags": {"content": f"<think>\n{HM}</think>\n\nI look."},
}


def whole(message: dict[str, Any], finish: str = "stop") -> Answer:
    return Answer(response(message, finish), headers=JSON)


def in_pieces(message: dict[str, Any], finish: str = "stop") -> Answer:
    """The same message as a stream of small pieces."""
    deltas: list[dict[str, Any]] = []
    for name, value in message.items():
        if isinstance(value, str):
            deltas += [{name: letter} for letter in value]
        elif name == "reasoning_details":
            for detail in value:
                words = detail.get("text", "")
                rest = {key: each for key, each in detail.items() if key != "text"}
                bare = {key: rest[key] for key in ("type", "index")}
                deltas += [{name: [{**bare, "text": letter}]} for letter in words] + [{name: [rest]}]
        elif name == "content" and value is not None:
            for part in value:
                if part["type"] == "text":
                    deltas += [{name: letter} for letter in part["text"]]
                    continue
                text = part["thinking"][0]["text"]
                deltas += [{name: [{**part, "thinking": [{"type": "text", "text": letter}]}]} for letter in text]
        elif value is not None:
            deltas.append({name: [{"index": 0, **value[0]}]})
    return Answer(stream(*map(chunk, deltas), chunk(finish=finish)))


def at(server: ProviderServer, name: str, **options: Any) -> OpenAIChat:
    """A model of a provider that is configured to be there."""
    known = BUILT_IN.get(name) or replace(BUILT_IN["vllm"], name=name)
    there = replace(known, base_url=f"{server.url}/v1")
    return OpenAIChat("model-1", endpoint=there, api_key="k", **options)


def sent(asked: Asked) -> list[dict[str, Any]]:
    return [message for message in asked.body["messages"] if message["role"] == "assistant"]


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with serving() as running:
        yield running


@pytest.fixture
def other() -> Iterator[ProviderServer]:
    with serving() as running:
        yield running


@pytest.mark.spec("LOOP-PROV-04")
@pytest.mark.parametrize("answer", [whole, in_pieces])
@pytest.mark.parametrize("shape", GIVEN)
async def test_a_tool_loop_hands_reasoning_back_as_it_came(
    server: ProviderServer, shape: str, answer: Any, tmp_path: Path
) -> None:
    message = {**GIVEN[shape], "tool_calls": [CALL]}
    server.answers = [answer(message, "tool_calls"), chat_words("A letter.")]
    agent = Agent("reader", model=at(server, "mistral" if "parts" in shape else "vllm"), tools=[look_up])
    result = await run(agent, "What is é?", store=tmp_path / "runs.db")
    assert result.output == "A letter."
    assert sent(server.asked[1]) == [{"role": "assistant", **message}]


@pytest.mark.parametrize("shape", GIVEN)
async def test_reasoning_is_no_part_of_the_answer(server: ProviderServer, shape: str) -> None:
    server.answers = [whole({**GIVEN[shape], "content": GIVEN[shape]["content"] or "I look."})]
    assert (await run(Agent("reader", model=at(server, "vllm")), "What is é?")).output == "I look."


@pytest.mark.spec("LOOP-PROV-04")
@pytest.mark.parametrize("size", [1, 90_000])
@pytest.mark.parametrize("shape", GIVEN)
async def test_reasoning_survives_a_restart(server: ProviderServer, shape: str, size: int, tmp_path: Path) -> None:
    """Of any size: it comes out of the log, where what is large stands behind a reference."""
    message = json.loads(json.dumps(GIVEN[shape]).replace("Hm", "Hm" * size))
    server.answers = [whole({**message, "content": message["content"] or "I look."}), chat_words("A letter.")]
    for words in ("What is é?", "And è?"):
        agent = Agent("reader", model=at(server, "vllm"))  # nothing is shared but the store
        await run(agent, words, store=tmp_path / "runs.db", thread="letters")
    kept = {key: value for key, value in message.items() if key != "content" or value}
    assert {key: value for key, value in sent(server.asked[1])[0].items() if key in kept} == kept


# --- to nobody else -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("shape", GIVEN)
async def test_a_fallback_gets_no_reasoning_of_another_server(
    server: ProviderServer, other: ProviderServer, shape: str, named: bool
) -> None:
    """Not even one that goes by the same name: of a server without a name, its address is who it is."""
    server.answers = [whole({**GIVEN[shape], "tool_calls": [CALL]}, "tool_calls")]
    server.always = refusal(401, "invalid_api_key", "no")
    other.answers = [chat_words("A letter.")]
    models = [at(server, "first"), at(other, "second")] if named else [unnamed(server), unnamed(other)]
    result = await run(Agent("reader", model=models[0], fallbacks=[models[1]], tools=[look_up]), "What is é?")
    assert result.output == "A letter."
    text = GIVEN[shape]["content"] and "I look."
    assert sent(other.asked[0]) == [{"role": "assistant", "content": text, "tool_calls": [CALL]}]
    assert "Hm" in json.dumps(server.asked[1].body) and "Hm" not in json.dumps(other.asked[0].body)


def unnamed(server: ProviderServer) -> OpenAIChat:
    return OpenAIChat("model-1", base_url=f"{server.url}/v1")


def test_inversion_without_an_owner_reasoning_would_go_to_anybody() -> None:
    """The owner alone keeps it back: the encoder of another server sends what it is told to be its own."""
    for owner, back in (("acme", {"reasoning": "Hm."}), ("other", {})):
        thought = Thinking(text="Hm.", provider=owner, opaque={"openai_chat": {"said_in": ["reasoning"]}})
        shown = Attachments("m", ModelProfile(), "openai_chat")
        messages = Messages(provider=PEER.provider, names=WireNames(), dialect=COMPATIBLE, attachments=shown)
        sent_out = json.loads(messages.encode(AssistantItem(parts=(thought, Text("Yes")), provider=owner))[1:])
        assert sent_out == {"role": "assistant", "content": "Yes", **back}


async def test_deepseek_is_given_the_field_it_demands_in_messages_of_others(
    server: ProviderServer, other: ProviderServer
) -> None:
    other.answers = [whole({"content": None, "reasoning": HM, "tool_calls": [CALL]}, "tool_calls")]
    other.always = refusal(401, "invalid_api_key", "no")
    server.answers = [chat_words("A letter.")]
    agent = Agent("reader", model=at(other, "vllm"), fallbacks=[at(server, "deepseek")], tools=[look_up])
    assert (await run(agent, "What is é?")).output == "A letter."
    assert sent(server.asked[0]) == [
        {"role": "assistant", "content": None, "reasoning_content": "", "tool_calls": [CALL]}
    ]


# --- Mistral's order of roles ----------------------------------------------------------------------------------


@tool(effect="pure", name="look_at")
def look_at(word: str) -> Image:
    """Shows a letter."""
    return Image(data=b"\x89PNG", media_type="image/png")


def in_order(answer: Answer) -> Any:
    """What Mistral answers: a user message right after a tool message is refused, and so is a picture in a tool's."""

    def answered(asked: Asked) -> Answer:
        roles = [message["role"] for message in asked.body["messages"]]
        if ("tool", "user") in pairwise(roles):
            return refusal(400, "invalid_request_message_order", "Unexpected role 'user' after role 'tool'")
        if any(not isinstance(each["content"], str) for each in asked.body["messages"] if each["role"] == "tool"):
            return refusal(400, "invalid_request_error", "no pictures in a tool message")
        return answer

    return answered


async def test_a_picture_that_a_tool_gave_works_on_mistral(server: ProviderServer) -> None:
    asks = {**CALL, "function": {**CALL["function"], "name": "look_at"}}
    server.answers = [whole({"content": None, "tool_calls": [asks]}, "tool_calls"), in_order(chat_words("A letter."))]
    agent = Agent("reader", model=at(server, "mistral", profile={"images": True}), tools=[look_at])
    assert (await run(agent, "What is é?")).output == "A letter."
    messages = server.asked[1].body["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant", "user"]
    assert messages[-1]["content"][-1]["image_url"]["url"].startswith("data:image/png;base64,")


async def test_words_after_a_tools_result_work_on_mistral(server: ProviderServer, tmp_path: Path) -> None:
    """A turn that ended at its tool's result, and a message in the next one."""
    server.answers = [whole({"content": None, "tool_calls": [CALL]}, "tool_calls"), refusal(400, "bad", "no")]
    agent = Agent("reader", model=at(server, "mistral"), tools=[look_up])
    assert (await run(agent, "What is é?", store=tmp_path / "runs.db", thread="letters")).status == "failed"
    server.answers = [in_order(chat_words("A letter."))]
    result = await run(agent, "Well?", store=tmp_path / "runs.db", thread="letters")
    assert result.output == "A letter."


def test_other_servers_get_nothing_between_results_and_words() -> None:
    assert COMPATIBLE.user_after_tool and not at_mistral().user_after_tool


def at_mistral() -> Any:
    return OpenAIChat("m", endpoint=BUILT_IN["mistral"], api_key="k").dialect


# --- a call that the provider refuses --------------------------------------------------------------------------


def refused_call(written: str | None) -> dict[str, Any]:
    words = "Tool call validation failed: did not match schema"
    error: dict[str, Any] = {"message": words, "type": "invalid_request_error", "code": "tool_use_failed"}
    return {"error": error if written is None else {**error, "failed_generation": written}}


def refused_at_once(written: str | None) -> Answer:
    return Answer(json.dumps(refused_call(written)).encode(), 400, JSON)


def refused_in_a_stream(written: str | None) -> Answer:
    events = [chunk({"reasoning": "Hm."}), refused_call(written)]
    first, error = (json.dumps(each).encode() for each in events)
    return Answer(b"data: " + first + b"\n\nevent: error\ndata: " + error + b"\n\n")


WRITTEN = {
    "wrong arguments": ('{"name": "look_up", "arguments": {"letter": 1}}', "look_up"),
    "right arguments": ('{"name": "look_up", "arguments": {"word": "é"}}', "look_up"),
    "an unknown tool": ('{"name": "look_down", "arguments": {}}', "look_down"),
    "another language": ('<function=look_up>{"word": "é"}</function>', "look_up"),
    "no call at all": ("Well.", "unknown_tool"),
    "nothing": (None, "unknown_tool"),
}


@pytest.mark.parametrize("refused", [refused_at_once, refused_in_a_stream])
@pytest.mark.parametrize("case", WRITTEN)
async def test_a_refused_call_goes_back_to_the_model_and_is_never_run(
    server: ProviderServer, case: str, refused: Any
) -> None:
    ran: list[str] = []

    @tool(effect="pure", name="look_up")
    def look_up(word: str) -> str:
        """Looks a word up."""
        ran.append(word)
        return "a letter"

    written, name = WRITTEN[case]
    server.answers = [refused(written), chat_words("A letter.")]
    result = await run(Agent("reader", model=at(server, "groq"), tools=[look_up]), "What is é?")
    assert (result.output, ran) == ("A letter.", [])
    (failed,) = [each.fact.event for each in result.facts() if isinstance(each.fact.event, ToolFailed)]
    assert (failed.tool_name, failed.tool_error.kind) == (name, "invalid_arguments")
    assert "did not match schema" in failed.message
    said, answered = server.asked[1].body["messages"][-2:]
    assert said["tool_calls"][0]["function"]["name"] == name
    assert json.loads(said["tool_calls"][0]["function"]["arguments"]) is not None, "a server reads it as JSON"
    assert "did not match schema" in answered["content"]
    assert not [each for each in result.facts() if isinstance(each.fact.event, ModelFailed)]


async def test_inversion_the_same_call_runs_where_the_provider_did_not_refuse_it(server: ProviderServer) -> None:
    server.answers = [whole({"content": None, "tool_calls": [CALL]}, "tool_calls"), chat_words("A letter.")]
    result = await run(Agent("reader", model=at(server, "groq"), tools=[look_up]), "What is é?")
    (recorded, _) = [each.fact.event for each in result.facts() if isinstance(each.fact.event, AssistantRecorded)]
    assert recorded.item.calls[0].refused is None
    assert "é is a letter" in server.asked[1].body["messages"][-1]["content"]


async def test_a_model_whose_calls_are_always_refused_ends_with_its_budget(server: ProviderServer) -> None:
    server.always = refused_at_once(WRITTEN["wrong arguments"][0])
    agent = Agent("reader", model=at(server, "groq"), tools=[look_up], budget=Budget(model_calls=4))
    result = await run(agent, "What is é?")
    assert result.status != "completed"
    assert len(server.asked) <= 4


async def test_an_empty_legacy_call_ends_the_turn_with_its_answer(server: ProviderServer) -> None:
    server.always = whole({"content": "A letter.", "function_call": {"name": "", "arguments": ""}})
    result = await run(Agent("reader", model=at(server, "vllm"), tools=[look_up]), "What is é?")
    assert (result.output, len(server.asked)) == ("A letter.", 1)


# --- a provider that asks to be left alone for long ------------------------------------------------------------


async def test_a_retry_after_that_is_longer_than_anybody_waits_ends_a_run_without_a_store(
    server: ProviderServer,
) -> None:
    server.always = refusal(429, "rate_limit_exceeded", "slow down", **{"retry-after": "3600"})
    result = await run(Agent("reader", model=at(server, "groq")), "What is é?")
    assert (result.status, len(server.asked)) == ("failed", 1)
    assert result.retryable and "slow down" in result.message


async def test_a_model_that_is_not_there_is_told_with_models_that_are(server: ProviderServer) -> None:
    """Names that can be asked: `gpt-6` and `llama-3` are beginnings of names, and no models."""
    server.always = refusal(404, "model_not_found", "The model does not exist")
    there = replace(BUILT_IN["openai"], base_url=f"{server.url}/v1", transport="openai_chat_completions")
    for provider, name, near, no_model in (
        (there, "gpt-6.1", "gpt-6.1-sol", "gpt-6 "),
        (replace(there, name="groq"), "llama-3.1", "llama-3.1-8b-instant", "llama-3.2 "),
        (replace(there, name="mine"), "llama-3", "", "Did you mean"),
    ):
        model = OpenAIChat(name, endpoint=provider, api_key="k")
        result = await run(Agent("reader", model=model), "What is é?")
        assert near in result.message
        assert no_model not in result.message
