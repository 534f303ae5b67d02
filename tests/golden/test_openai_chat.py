"""Real traffic of Chat Completions: what was said is what we decode, what was sent is what we would send."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kit.wires.chat_vendor import Heard, heard, vendor_accepts, vendor_heard
from kit.wires.model_requests import a_request
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import AssistantItem, CallPart, History, Item, ToolItem, UserItem
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.models import ArgumentsDelta, ModelGlimpse, Reply, TextDelta
from wakeful.contracts.tools import ToolDeclaration
from wakeful.ports import ModelRequest
from wakeful.providers.openai_chat.decode import ChatDecoder
from wakeful.providers.openai_chat.dialect import OPENAI
from wakeful.providers.openai_chat.encode import ChatEncoder
from wakeful.providers.profiles import profile_of
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.sse import SseParser

RECORDINGS = Path(__file__).resolve().parents[3] / "shared" / "recordings" / "openai-chat"
BYTE_CUTS = 400
"""Cuts at byte offsets in one recording, spread over it; cuts at its events come on top."""


class Exchange(NamedTuple):
    """One recorded request and its answer."""

    name: str
    sent: dict[str, Any]
    stream: bytes


def recorded() -> Iterator[Exchange]:
    for path in sorted(RECORDINGS.glob("*.json")):
        for number, interaction in enumerate(json.loads(path.read_text())["interactions"]):
            request, response = interaction["request"], interaction["response"]
            if response["status"] == 200:
                yield Exchange(f"{path.stem}-{number}", json.loads(request["body"]), response["body"].encode())


EXCHANGES = {exchange.name: exchange for exchange in recorded()}
needs_recordings = pytest.mark.skipif(
    not EXCHANGES, reason="needs recorded traffic in ../shared/recordings, which is not part of the repository"
)
every_exchange = pytest.mark.parametrize("exchange", EXCHANGES.values() or [None], ids=list(EXCHANGES) or ["absent"])

PARIS = {"city": "Paris"}
SUNNY = "The weather in Paris is sunny with a temperature of 22°C."
EXPECTED = {
    "continues-after-tool-result-0": (SUNNY, [], "end", (59, 14)),
    "drives-a-tool-loop-end-to-end-0": ("", [("get_weather", PARIS)], "tool_calls", (64, 14)),
    "drives-a-tool-loop-end-to-end-1": (SUNNY, [], "end", (96, 15)),
    "streams-text-0": ("Hello!", [], "end", (22, 2)),
    "streams-tool-call-0": ("", [("get_weather", PARIS)], "tool_calls", (67, 5)),
}
"""What a person reads in the recordings: words, calls, why it ended, tokens in and out."""


def decoded(stream: bytes, names: WireNames | None = None, step: int | None = None) -> tuple[list[ModelGlimpse], Reply]:
    """The glimpses and the reply, from the whole stream or from pieces of `step` bytes."""
    parser, decoder = SseParser(), ChatDecoder(names or WireNames())
    glimpses: list[ModelGlimpse] = []
    for start in range(0, len(stream), step or len(stream) or 1):
        for event in parser.feed(stream[start : start + step] if step else stream):
            glimpses += decoder.feed(event)
    return glimpses, decoder.finish()


# --- what was said ------------------------------------------------------------------------------------------------


@needs_recordings
@every_exchange
def test_a_recorded_answer_decodes_to_what_a_person_reads_in_it(exchange: Exchange) -> None:
    if exchange.name not in EXPECTED:
        pytest.skip("nobody has written down what this recording says")
    glimpses, reply = decoded(exchange.stream)
    calls = [(call.name, call.arguments) for call in reply.item.calls]
    assert reply.usage is not None
    tokens = (reply.usage.input_tokens, reply.usage.output_tokens)
    assert (reply.item.text, calls, reply.stop_reason, tokens) == EXPECTED[exchange.name]
    assert all(call.call_id.startswith("call_") for call in reply.item.calls)
    assert reply.request_metadata["id"].startswith("chatcmpl-")
    assert reply.request_metadata["model"] == "gpt-4o-mini-2024-07-18"
    assert "".join(glimpse.text for glimpse in glimpses if isinstance(glimpse, TextDelta)) == reply.item.text
    arguments = "".join(glimpse.text for glimpse in glimpses if isinstance(glimpse, ArgumentsDelta))
    assert (json.loads(arguments) if arguments else None) == (PARIS if calls else None)


@needs_recordings
@every_exchange
def test_the_vendors_client_hears_the_same(exchange: Exchange) -> None:
    ours: Heard = heard(decoded(exchange.stream)[1])
    assert ours == vendor_heard(exchange.stream)


@needs_recordings
@every_exchange
def test_it_does_not_matter_in_which_pieces_a_stream_comes(exchange: Exchange) -> None:
    whole = decoded(exchange.stream)
    for step in (1, 7, 100, 1460):
        assert decoded(exchange.stream, step=step) == whole


@needs_recordings
@every_exchange
def test_a_recorded_stream_cut_anywhere_is_a_failed_attempt(exchange: Exchange) -> None:
    stream = exchange.stream
    at_events = [cut for cut in range(len(stream)) if stream[:cut].endswith(b"\n\n")]
    at_bytes = range(0, len(stream), max(1, len(stream) // BYTE_CUTS))
    near_the_end = range(max(0, len(stream) - 60), len(stream))
    assert len(at_events) > 3
    for cut in {*at_events, *at_bytes, *near_the_end}:
        with pytest.raises(ModelFailure) as failed:
            decoded(stream[:cut])
        assert failed.value.kind == "stream_interrupted", cut


@needs_recordings
@every_exchange
def test_without_the_check_for_done_some_cuts_would_pass(exchange: Exchange) -> None:
    cut = exchange.stream.rindex(b"data: [DONE]")
    decoder = ChatDecoder(WireNames(), needs_done=False)
    for event in SseParser().feed(exchange.stream[:cut]):
        decoder.feed(event)
    assert decoder.finish().item.parts


# --- what was sent ------------------------------------------------------------------------------------------------


def request_of(body: dict[str, Any]) -> ModelRequest:
    """Our own request for the recorded conversation."""
    system = [message["content"] for message in body["messages"] if message["role"] == "system"]
    tools = tuple(
        ToolDeclaration(
            name=tool["function"]["name"],
            description=tool["function"]["description"],
            input_schema=tool["function"]["parameters"],
        )
        for tool in body.get("tools", ())
    )
    settings: dict[str, Any] = {name: body[name] for name in ("max_tokens", "temperature") if name in body}
    forced = (body["tool_choice"]["function"]["name"],) if "tool_choice" in body else "auto"
    return a_request(
        instructions="".join(system),
        history=History(items_of(body["messages"])),
        tools=tools,
        settings=settings,
        tool_choice=forced,
        stream=body["stream"],
    )


def items_of(messages: list[dict[str, Any]]) -> Iterator[Item]:
    names: dict[str, str] = {}
    for message in messages:
        if message["role"] == "user":
            yield UserItem(parts=(Text(message["content"]),))
        elif message["role"] == "tool":
            call_id = message["tool_call_id"]
            yield ToolItem(call_id=call_id, name=names[call_id], parts=(Text(message["content"]),))
        elif message["role"] == "assistant":
            calls = [
                CallPart(
                    call_id=call["id"],
                    name=call["function"]["name"],
                    arguments=json.loads(call["function"]["arguments"]),
                )
                for call in message.get("tool_calls", ())
            ]
            names.update({call.call_id: call.name for call in calls})
            words = (Text(message["content"]),) if message["content"] else ()
            yield AssistantItem(parts=(*words, *calls), provider="openai")


def our_body(request: ModelRequest, model: str) -> dict[str, Any]:
    encoder = ChatEncoder(model, profile_of(model), WireNames(request.tools), dialect=OPENAI)
    body: dict[str, Any] = json.loads(b"".join(encoder.body(request)))
    return body


@needs_recordings
@every_exchange
def test_our_request_is_the_recorded_one_field_by_field(exchange: Exchange) -> None:
    ours = our_body(request_of(exchange.sent), exchange.sent["model"])
    for tool in ours.get("tools", ()):
        assert tool["function"].pop("strict") is False, "the vendor's default, said aloud"
    for field in ours.keys() | exchange.sent.keys():
        assert ours.get(field) == exchange.sent.get(field), field


@needs_recordings
@every_exchange
def test_the_vendors_types_accept_our_request(exchange: Exchange) -> None:
    vendor_accepts(our_body(request_of(exchange.sent), exchange.sent["model"]))


@needs_recordings
def test_a_decoded_answer_goes_back_as_it_was_sent_back() -> None:
    first, second = (EXCHANGES.get(f"drives-a-tool-loop-end-to-end-{number}") for number in (0, 1))
    if first is None or second is None:
        pytest.skip("this recording is not among those that are here")
    request = request_of(first.sent)
    encoder = ChatEncoder(first.sent["model"], profile_of("gpt-4o-mini"), WireNames(request.tools), dialect=OPENAI)
    before = encoder.body(request)
    reply = decoded(first.stream, WireNames(request.tools))[1]
    answer = second.sent["messages"][-1]
    call = reply.item.calls[0]
    request.history.extend(
        [reply.item, ToolItem(call_id=call.call_id, name=call.name, parts=(Text(answer["content"]),))]
    )
    after = encoder.body(request)
    assert json.loads(b"".join(after))["messages"] == second.sent["messages"]
    assert b"".join(after).startswith(b"".join(before[:-1])), "the next request begins with all of the one before it"
