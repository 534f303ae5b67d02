"""The provider server as the vendors' own clients find it: their types read every answer, over a real connection."""

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, NamedTuple

import anthropic
import httpx2
import openai
import pytest
from anthropic.types import Message
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from openai.types.responses import Response, ResponseStreamEvent
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from pydantic import TypeAdapter

from kit.wires.gemini_vendor import RequestBody, types
from wakeful import Agent, Budget, run, tool
from wakeful.errors import InvalidConfig
from wakeful.testing import ProviderServer
from wakeful.testing.provider_server import WireRequest, chat, gemini, responses
from wakeful.testing.provider_server import anthropic as messages_wire
from wakeful.testing.provider_server.answers import example

REFUND = {"order": "A17"}
SCHEMA = {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}
CALL = {"calls": [{"name": "refund", "arguments": REFUND}]}
WIRES = ("openai_chat", "openai_responses", "anthropic", "gemini")
MODELS = {"openai_chat": "gpt-5.5", "openai_responses": "gpt-5.5", "anthropic": "claude-opus-4-7"}

EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


class Heard(NamedTuple):
    """An answer as a vendor's client reads it."""

    text: str
    calls: list[tuple[str, Any]]
    finish: str
    tokens: tuple[int, int]


def chat_heard(server: ProviderServer, streams: bool, tools: bool = False, **options: Any) -> Heard:
    function = {"name": "refund", "parameters": SCHEMA}
    given = {"tools": [{"type": "function", "function": function}]} if tools else {}
    asked: Any = {"model": "gpt-5.5", "messages": [{"role": "user", "content": "Go on."}], **given, **options}
    with openai.OpenAI(api_key="k", base_url=server.base_url("openai"), max_retries=0) as client:
        if not streams:
            whole = client.chat.completions.create(**asked)
            ChatCompletion.model_validate(whole.model_dump(), strict=True)
        else:
            from openai.lib.streaming.chat import ChatCompletionStreamState

            state = ChatCompletionStreamState()
            for chunk in client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}):
                ChatCompletionChunk.model_validate(chunk.model_dump(), strict=True)
                state.handle_chunk(chunk)
            whole = state.current_completion_snapshot
    choice, usage = whole.choices[0], whole.usage
    assert usage is not None
    calls = [(each.function.name, json.loads(each.function.arguments)) for each in choice.message.tool_calls or ()]  # type: ignore[union-attr]
    return Heard(
        choice.message.content or choice.message.refusal or "",
        calls,
        str(choice.finish_reason),
        (usage.prompt_tokens, usage.completion_tokens),
    )


def responses_heard(server: ProviderServer, streams: bool, tools: bool = False, **options: Any) -> Heard:
    given = {"tools": [{"type": "function", "name": "refund", "parameters": SCHEMA, "strict": False}]} if tools else {}
    asked: Any = {"model": "gpt-5.5", "input": "Go on.", **given, **options}
    with openai.OpenAI(api_key="k", base_url=server.base_url("openai"), max_retries=0) as client:
        if not streams:
            whole: Response = client.responses.create(**asked)
        else:
            words = ""
            for event in client.responses.create(**asked, stream=True):
                EVENT.validate_json(event.model_dump_json(exclude_unset=True))
                if event.type in ("response.output_text.delta", "response.refusal.delta"):
                    words += event.delta
                elif event.type in ("response.completed", "response.incomplete"):
                    whole = event.response
            assert words in (whole.output_text, words if "refusal" in str(whole.output) else whole.output_text)
    Response.model_validate_json(whole.model_dump_json(), strict=True)
    assert whole.usage is not None
    refused = "".join(
        part.refusal
        for item in whole.output
        if item.type == "message"
        for part in item.content
        if part.type == "refusal"
    )
    calls = [(item.name, json.loads(item.arguments)) for item in whole.output if item.type == "function_call"]
    reason = whole.incomplete_details.reason if whole.incomplete_details else None
    return Heard(
        whole.output_text or refused,
        calls,
        reason or str(whole.status),
        (whole.usage.input_tokens, whole.usage.output_tokens),
    )


def messages_heard(server: ProviderServer, streams: bool, tools: bool = False, **options: Any) -> Heard:
    given = {"tools": [{"name": "refund", "input_schema": SCHEMA}]} if tools else {}
    asked: Any = {
        "model": "claude-opus-4-7",
        "max_tokens": 1000,
        "messages": [{"role": "user", "content": "Go on."}],
        **given,
        **options,
    }
    with anthropic.Anthropic(api_key="k", base_url=server.base_url("anthropic"), max_retries=0) as client:
        if streams:
            with client.messages.stream(**asked) as events:
                whole: Any = events.get_final_message()
        else:
            whole = client.messages.create(**asked)
            Message.model_validate_json(whole.model_dump_json(), strict=True)
    calls = [(part.name, part.input) for part in whole.content if part.type == "tool_use"]
    text = "".join(part.text for part in whole.content if part.type == "text")
    return Heard(text, calls, whole.stop_reason, (whole.usage.input_tokens, whole.usage.output_tokens))


def gemini_heard(server: ProviderServer, streams: bool, tools: bool = False, **options: Any) -> Heard:
    """The SDK's client wants a loop and proxies of its own; its types are what counts."""
    declared = [{"functionDeclarations": [{"name": "refund", "parametersJsonSchema": SCHEMA}]}]
    body = {
        "contents": [{"role": "user", "parts": [{"text": "Go on."}]}],
        **({"tools": declared} if tools else {}),
        **options,
    }
    RequestBody.model_validate_json(json.dumps(body))
    verb = "streamGenerateContent?alt=sse" if streams else "generateContent"
    url = f"{server.base_url('gemini')}/models/gemini-3.8-flash:{verb}"
    with httpx2.Client() as client:
        answer = client.post(url, json=body, headers={"x-goog-api-key": "k"})
    assert answer.status_code == 200, answer.text
    bodies = [each[6:] for each in answer.text.split("\r\n\r\n") if each] if streams else [answer.text]
    read = [types.GenerateContentResponse.model_validate_json(each) for each in bodies]
    contents = [each.candidates[0].content for each in read if each.candidates]
    parts = [part for content in contents if content for part in content.parts or ()]
    usage = read[-1].usage_metadata
    assert usage is not None
    candidates = read[-1].candidates
    finish = candidates[0].finish_reason.value if candidates else read[-1].prompt_feedback.block_reason.value
    return Heard(
        "".join(part.text for part in parts if part.text and not part.thought),
        [(part.function_call.name, part.function_call.args) for part in parts if part.function_call],
        finish,
        (usage.prompt_token_count, (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)),
    )


HEARD: dict[str, Callable[..., Heard]] = {
    "openai_chat": chat_heard,
    "openai_responses": responses_heard,
    "anthropic": messages_heard,
    "gemini": gemini_heard,
}
every_wire = pytest.mark.parametrize("wire", WIRES)
streamed_or_not = pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])


def limit(wire: str, tokens: int) -> dict[str, Any]:
    return {
        "openai_chat": {"max_completion_tokens": tokens},
        "openai_responses": {"max_output_tokens": tokens},
        "anthropic": {"max_tokens": tokens},
        "gemini": {"generationConfig": {"maxOutputTokens": tokens}},
    }[wire]


def choose(wire: str, choice: str) -> dict[str, Any]:
    """`none`, `required`, or a tool's name."""
    named = choice not in ("none", "required")
    if wire == "anthropic":
        kind = {"none": "none", "required": "any"}.get(choice, "tool")
        return {"tool_choice": {"type": kind, **({"name": choice} if named else {})}}
    if wire == "gemini":
        config = {
            "mode": "NONE" if choice == "none" else "ANY",
            **({"allowedFunctionNames": [choice]} if named else {}),
        }
        return {"toolConfig": {"functionCallingConfig": config}}
    function: Any = {"name": choice} if wire == "openai_responses" else {"function": {"name": choice}}
    return {"tool_choice": {"type": "function", **function} if named else choice}


@every_wire
@streamed_or_not
def test_the_vendors_client_reads_words_and_their_size(wire: str, streams: bool) -> None:
    with ProviderServer([{"text": "Paid, and thanked for.", "reasoning": "Think of it first."}]) as server:
        heard = HEARD[wire](server, streams)
    assert heard.text == "Paid, and thanked for."
    assert heard.finish in ("stop", "completed", "end_turn", "STOP")
    assert heard.tokens[0] > 0
    assert heard.tokens[1] == 5 + 6  # four characters are a token: thoughts, and words
    assert server.requests[0].delivered


@every_wire
@streamed_or_not
def test_the_vendors_client_reads_calls(wire: str, streams: bool) -> None:
    both = {"calls": [{"name": "refund", "arguments": REFUND}, {"name": "refund", "arguments": {"order": "ünï"}}]}
    with ProviderServer([both]) as server:
        heard = HEARD[wire](server, streams, tools=True)
    assert heard.calls == [("refund", REFUND), ("refund", {"order": "ünï"})]
    assert heard.finish in ("tool_calls", "completed", "tool_use", "STOP")


@every_wire
@streamed_or_not
def test_an_answer_stops_at_the_limit_and_says_so(wire: str, streams: bool) -> None:
    with ProviderServer(["A sentence of forty letters, more or less."]) as server:
        heard = HEARD[wire](server, streams, **limit(wire, 3))
    assert heard.text == "A sentence o"
    assert heard.finish in ("length", "max_output_tokens", "max_tokens", "MAX_TOKENS")
    assert heard.tokens[1] == 3


@every_wire
@streamed_or_not
def test_a_limit_that_thoughts_use_up_leaves_nothing_to_say(wire: str, streams: bool) -> None:
    with ProviderServer([{"reasoning": "Well, well, well.", "text": "Yes."}]) as server:
        heard = HEARD[wire](server, streams, **limit(wire, 2))
    assert heard.text == ""
    assert heard.finish in ("length", "max_output_tokens", "max_tokens", "MAX_TOKENS")


@every_wire
@streamed_or_not
def test_the_tool_choice_holds_whatever_the_script_says(wire: str, streams: bool) -> None:
    with ProviderServer(CALL["calls"] and [CALL]) as server:
        assert HEARD[wire](server, streams, tools=True, **choose(wire, "none")).calls == []
    for choice in ("required", "refund"):
        with ProviderServer(["Only words."]) as server:
            assert HEARD[wire](server, streams, tools=True, **choose(wire, choice)).calls == [("refund", {"order": ""})]
        with ProviderServer(['{"order": "B2"}']) as server:
            heard = HEARD[wire](server, streams, tools=True, **choose(wire, choice))
            assert heard.calls == [("refund", {"order": "B2"})]


@every_wire
@streamed_or_not
def test_refused_and_filtered_answers_say_so_in_the_vendors_words(wire: str, streams: bool) -> None:
    with ProviderServer(["Some words of an answer."]) as server:
        server.weather.next("filtered", "refusal")
        filtered = HEARD[wire](server, streams).finish
        refused = HEARD[wire](server, streams)
    assert filtered in ("content_filter", "refusal", "SAFETY")
    assert refused.finish in ("refusal", "PROHIBITED_CONTENT") or refused.text == "I can't help with that."


def test_the_fields_that_are_taken_are_those_of_the_vendors_types() -> None:
    def keys(typed: Any) -> set[str]:
        return set(typed.__required_keys__ | typed.__optional_keys__)

    assert keys(CompletionCreateParamsNonStreaming) == chat.FIELDS
    assert keys(ResponseCreateParamsNonStreaming) == responses.FIELDS
    assert keys(MessageCreateParamsNonStreaming) == messages_wire.FIELDS
    named = {field.alias for field in RequestBody.model_fields.values()}
    assert named <= gemini.FIELDS


@every_wire
def test_what_the_vendor_does_not_know_is_refused(wire: str) -> None:
    with ProviderServer() as server:
        answer = post(server, wire, colour="blue")
        assert answer.status_code == 400
        assert "colour" in answer.text
        assert server.spent == 0


@every_wire
def test_a_wrong_key_is_refused_and_no_key_is_recorded(wire: str) -> None:
    with ProviderServer(key="sk-right") as server:
        assert post(server, wire, key="sk-wrong").status_code in (400, 401)
        assert post(server, wire, key="sk-right").status_code == 200
        assert "sk-" not in repr(server.requests)
        assert [request.weather for request in server.requests] == ["401", "ok"]


def post(
    server: ProviderServer, wire: str, *, key: str = "k", prompt: str = "Go on.", **fields: Any
) -> httpx2.Response:
    messages = [{"role": "user", "content": prompt}]
    path, body = {
        "openai_chat": ("/v1/chat/completions", {"model": "gpt-5.5", "messages": messages}),
        "openai_responses": ("/v1/responses", {"model": "gpt-5.5", "input": prompt}),
        "anthropic": ("/v1/messages", {"model": "claude-opus-4-7", "max_tokens": 99, "messages": messages}),
        "gemini": (
            f"/v1beta/models/gemini-3.8-flash:generateContent?key={key}",
            {"contents": [{"role": "user", "parts": [{"text": prompt}]}]},
        ),
    }[wire]
    header = {"anthropic": {"x-api-key": key}, "gemini": {}}.get(wire, {"authorization": f"Bearer {key}"})
    with httpx2.Client() as client:
        return client.post(f"{server.url}{path}", json={**body, **fields}, headers=header)


# --- whose turn it is -------------------------------------------------------------------------------------------------


@tool(effect="pure")
def refund(order: str) -> str:
    """Refund an order."""
    return f"{order} is refunded"


def models(server: ProviderServer) -> Iterator[Any]:
    for ref in ("openai:gpt-5.5", "anthropic:claude-opus-4-7", "gemini:gemini-3.8-flash"):
        yield server.model(ref)
    yield server.model("openai:gpt-5.5", wire="openai_chat")


async def test_one_script_answers_every_wire_and_every_repeat() -> None:
    async with ProviderServer([CALL, "Refunded."]) as server:
        for model in models(server):
            for _ in range(2):
                result = await run(Agent("a", model, tools=[refund]), "Refund A17.")
                assert (result.output, [call.result for call in result.calls()]) == ("Refunded.", ["A17 is refunded"])
    assert len(server.requests) == 4 * 2 * 2
    assert all(request.cost for request in server.requests)


async def test_what_is_spent_is_what_the_runs_say() -> None:
    async with ProviderServer([CALL, "Refunded."]) as server:
        costs = []
        for model in models(server):
            result = await run(Agent("a", model, tools=[refund]), "Refund A17.", budget=Budget(usd=20))
            costs.append(Decimal(str(result.cost_usd)))
        assert sum(costs) == server.spent > 0


async def test_lines_in_the_prompt_say_what_is_answered() -> None:
    words = (
        'Please.\nthink: 20\ncall: refund {"order": "A17"}\nand call: refund {"order": "B2"}\nlong: 50\nanswer: Done.'
    )
    async with ProviderServer() as server:
        for model in models(server):
            result = await run(Agent("a", model, tools=[refund]), words)
            assert [call.arguments for call in result.calls()] == [REFUND, {"order": "B2"}]
            assert len(result.output) == 200
        assert (await run(Agent("a", server.model("openai:gpt-5.5")), "Nothing is asked for.")).output == "All right."


async def test_a_function_gets_the_request_as_it_came_over_the_wire() -> None:
    seen: list[WireRequest] = []

    def script(asked: WireRequest) -> object:
        seen.append(asked)
        return CALL if not asked.results else f"{asked.results[0]}, round {asked.rounds + 1}"

    async with ProviderServer(script) as server:
        for model in models(server):
            result = await run(Agent("a", model, "Be kind.", tools=[refund]), "Refund A17.")
            assert result.output == "A17 is refunded, round 2"
    assert {asked.prompt for asked in seen} == {"Refund A17."}
    assert {asked.wire for asked in seen} == set(WIRES)
    assert all(list(asked.tools) == ["refund"] for asked in seen)


async def test_a_script_of_a_thread_goes_on_where_the_conversation_is(tmp_path: Any) -> None:
    async with ProviderServer(["One.", CALL, "Two.", "Three."]) as server:
        for number, model in enumerate(models(server)):
            agent = Agent("a", model, tools=[refund])
            said = [
                (await run(agent, words, store=tmp_path / "runs.db", thread=f"t{number}")).output
                for words in ("First.", "Second.", "Third.")
            ]
            assert said == ["One.", "Two.", "Three."]


async def test_an_answer_that_was_kept_can_be_gone_on_from() -> None:
    from wakeful.providers import OpenAIResponses

    async with ProviderServer([CALL, "Refunded."]) as server:
        model = OpenAIResponses("gpt-5.5", base_url=server.base_url("openai"), api_key="k", continues=True)
        assert (await run(Agent("a", model, tools=[refund]), "Refund A17.")).output == "Refunded."
        assert server.requests[1].body["previous_response_id"] == "resp_00000001"
        assert post(server, "openai_responses", previous_response_id="resp_gone").status_code == 400


def test_an_example_of_a_schema_is_as_small_as_it_may_be() -> None:
    schema = {
        "type": "object",
        "required": ["a", "b", "c", "d", "e"],
        "properties": {
            "a": {"type": "integer", "minimum": 3},
            "b": {"enum": ["x", "y"]},
            "c": {"type": "array"},
            "d": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
            "e": SCHEMA,
            "f": {"type": "string"},
        },
    }
    assert example(schema) == {"a": 3, "b": "x", "c": [], "d": False, "e": {"order": ""}}


def test_a_model_without_a_list_price_is_named() -> None:
    with ProviderServer() as server, pytest.raises(InvalidConfig, match="gpt-none"):
        server.model("openai:gpt-none")


def test_nothing_is_left_behind() -> None:
    with ProviderServer() as server:
        port = server.port
        post(server, "openai_chat")
    with socket.socket() as tried, pytest.raises(ConnectionRefusedError):
        tried.connect(("127.0.0.1", port))


def test_the_command_serves_another_process() -> None:
    words = [sys.executable, "-m", "wakeful.testing.provider_server", "--weather", "503", "--key", "k"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first.startswith("export OPENAI_BASE_URL=http://127.0.0.1:")
        with openai.OpenAI(api_key="k", base_url=first.partition("=")[2].strip(), max_retries=0) as client:
            with pytest.raises(openai.InternalServerError):
                client.responses.create(model="gpt-5.5", input="answer: Here.")
            assert client.responses.create(model="gpt-5.5", input="answer: Here.").output_text == "Here."
        process.terminate()
        rest = process.stdout.read()
    assert process.returncode == 0
    assert '[providers.openai.prices."gpt-5.5"]\ninput = "5"\noutput = "30"' in rest
    assert "2 requests, 0.0" in rest


def test_a_weather_that_the_command_does_not_know_is_an_error() -> None:
    words = [sys.executable, "-m", "wakeful.testing.provider_server", "--weather", "42"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=240)
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no weather '42'" in done.stderr
