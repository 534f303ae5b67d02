"""Real traffic of the Responses API: what was said is what we decode, what was sent is what we would send."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kit.wires.model_requests import a_request
from kit.wires.responses_vendor import our_usage, vendor_calls, vendor_reading, vendor_usage
from kit.wires.responses_wire import decoded
from wakeful.contracts.content import Image, Text, Thinking
from wakeful.contracts.conversation import AssistantItem, CallPart, History, ToolItem, UserItem
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.model_settings import stored_settings
from wakeful.contracts.models import ArgumentsDelta, Reply, TextDelta
from wakeful.contracts.tools import ToolDeclaration
from wakeful.ports import ModelRequest
from wakeful.providers.openai_responses.decode import ResponsesDecoder, decode_response
from wakeful.providers.openai_responses.encode import ResponsesEncoder
from wakeful.providers.profiles import profile_of
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.sse import SseParser

RECORDINGS = Path(__file__).resolve().parents[3] / "shared" / "recordings"
BARE = WireNames()


class Exchange(NamedTuple):
    """One recorded request and its answer."""

    name: str
    sent: dict[str, Any]
    stream: bytes

    @property
    def ended(self) -> dict[str, Any]:
        """The response in the terminal event, read without our decoder."""
        last = self.stream.decode().strip().rpartition("data: ")[2]
        response: dict[str, Any] = json.loads(last)["response"]
        return response


def recorded() -> Iterator[Exchange]:
    for folder in ("openai-responses", "openai-responses-cache"):
        for path in sorted((RECORDINGS / folder).glob("*.json")):
            for number, interaction in enumerate(json.loads(path.read_text())["interactions"]):
                yield Exchange(
                    f"{path.stem}-{number}",
                    json.loads(interaction["request"]["body"]),
                    interaction["response"]["body"].encode(),
                )


EXCHANGES = list(recorded())
needs_recordings = pytest.mark.skipif(
    not EXCHANGES, reason="needs recorded traffic in ../shared/recordings, which is not part of the repository"
)
every_exchange = pytest.mark.parametrize("exchange", EXCHANGES, ids=lambda exchange: exchange.name)

EXPECTED: dict[str, tuple[str, list[tuple[str, dict[str, Any]]], str, tuple[int, int, int, int]]] = {
    "gpt-5-5-drives-a-tool-loop-0": ("", [("get_weather", {"city": "Paris"})], "tool_calls", (67, 18, 0, 0)),
    "gpt-5-5-drives-a-tool-loop-1": ("It\u2019s sunny and 22\u00b0C in Paris.", [], "end", (106, 14, 0, 0)),
    "gpt-5-5-streams-text-0": ("Hello!", [], "end", (20, 18, 0, 10)),
    "gpt-5-5-streams-tool-call-0": ("", [("get_weather", {"city": "Paris"})], "tool_calls", (61, 18, 0, 0)),
    "openai-responses-gpt-5-5-image-tool-result-0": ("jiggling restroom prison", [], "end", (227, 9, 0, 0)),
    "openai-responses-gpt-5-5-reasoning-0": ("Hello!", [], "end", (31, 21, 0, 13)),
    "openai-responses-gpt-5-5-reasoning-continuation-0": ("Hello!", [], "end", (31, 20, 0, 12)),
    "openai-responses-gpt-5-5-reasoning-continuation-1": ("Done.", [], "end", (35, 20, 0, 12)),
    "reports-cached-tokens-on-identical-second-call-0": ("Hi.", [], "end", (4765, 3, 0, 0)),
    "reports-cached-tokens-on-identical-second-call-1": ("Hi.", [], "end", (4765, 3, 4608, 0)),
}
"""Text, calls, why it ended, and tokens: heard, said, from the cache, spent on reasoning."""


# --- what was said ----------------------------------------------------------------------------------------------------


@needs_recordings
@every_exchange
def test_a_recorded_answer_is_what_a_person_would_read_in_it(exchange: Exchange) -> None:
    glimpses, reply = decoded(exchange.stream, BARE)
    text, calls, stop_reason, (heard, said, cached, reasoned) = EXPECTED[exchange.name]
    assert reply.item.text == text
    assert [(call.name, call.arguments) for call in reply.item.calls] == calls
    assert reply.stop_reason == stop_reason
    usage = reply.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (heard, said)
    assert (usage.cached_input_tokens, usage.reasoning_tokens) == (cached, reasoned)
    assert usage.total_tokens == heard + said
    assert "".join(glimpse.text for glimpse in glimpses if isinstance(glimpse, TextDelta)) == text
    written = "".join(glimpse.text for glimpse in glimpses if isinstance(glimpse, ArgumentsDelta))
    assert not calls or json.loads(written) == calls[0][1]
    assert reply.request_metadata["response_id"].startswith("resp_")
    assert "unknown_events" not in reply.request_metadata


@needs_recordings
@every_exchange
def test_a_body_without_a_stream_gives_the_same_facts(exchange: Exchange) -> None:
    _, streamed = decoded(exchange.stream, BARE)
    whole = decode_response(json.dumps(exchange.ended).encode(), BARE)
    assert _without_encrypted(whole) == _without_encrypted(streamed)


@needs_recordings
@every_exchange
def test_chunks_of_any_size_give_the_same_reply(exchange: Exchange) -> None:
    whole = decoded(exchange.stream, BARE)
    for size in (1, 7, 64, 1000):
        decoder, parser, glimpses = ResponsesDecoder(BARE), SseParser(), []
        for start in range(0, len(exchange.stream), size):
            for event in parser.feed(exchange.stream[start : start + size]):
                glimpses += decoder.feed(event)
        assert (glimpses, decoder.finish()) == whole


@needs_recordings
@every_exchange
def test_a_recorded_stream_cut_at_every_event_is_a_lost_attempt(exchange: Exchange) -> None:
    events = SseParser().feed(exchange.stream)
    assert events[-1].event == "response.completed"
    for count in range(len(events)):
        decoder = ResponsesDecoder(BARE)
        for event in events[:count]:
            decoder.feed(event)
        with pytest.raises(ModelFailure) as lost:
            decoder.finish()
        assert lost.value.kind == "stream_interrupted"


@needs_recordings
@every_exchange
def test_a_recorded_stream_cut_at_many_bytes_is_a_lost_attempt(exchange: Exchange) -> None:
    whole = len(exchange.stream.rstrip(b"\n")) + 2  # the empty line that closes the terminal event
    assert decoded(exchange.stream[:whole], BARE)
    terminal = exchange.stream.rindex(b"event: response.completed")
    for end in {*range(0, whole, 61), *range(terminal, whole, 7), *range(whole - 40, whole)}:
        with pytest.raises(ModelFailure) as lost:
            decoded(exchange.stream[:end], BARE)
        assert lost.value.kind == "stream_interrupted", end


def _without_encrypted(reply: Reply) -> Reply:
    """The provider encrypts a reasoning item anew each time it shows it."""
    parts = tuple(
        part.model_copy(update={"opaque": {**part.opaque, "encrypted_content": ""}})
        if isinstance(part, Thinking) and part.opaque.get("encrypted_content")
        else part
        for part in reply.item.parts
    )
    return reply.model_copy(update={"item": reply.item.model_copy(update={"parts": parts})})


# --- what was sent ----------------------------------------------------------------------------------------------------


@needs_recordings
@every_exchange
def test_our_request_for_the_same_conversation_is_the_recorded_one(exchange: Exchange) -> None:
    request = request_of(exchange.sent)
    model = exchange.sent["model"]
    ours = json.loads(b"".join(ResponsesEncoder(model, profile_of(model), WireNames(request.tools)).body(request)))
    ours, theirs = comparable(ours), comparable(exchange.sent)
    for field in sorted(ours.keys() | theirs.keys()):
        assert (field, ours.get(field)) == (field, theirs.get(field))


@needs_recordings
def test_a_recorded_answer_goes_back_as_the_recorded_next_request_sent_it() -> None:
    named = {exchange.name: exchange for exchange in EXCHANGES}
    first = named["openai-responses-gpt-5-5-reasoning-continuation-0"]
    second = named["openai-responses-gpt-5-5-reasoning-continuation-1"]
    _, reply = decoded(first.stream, BARE)
    asked = UserItem(parts=(Text("Think briefly, then reply exactly with: Hello!"),))
    more = UserItem(parts=(Text("Now reply exactly with: Done."),))
    request = request_of({**second.sent, "input": []})
    request.history = History([asked, reply.item, more])
    ours = json.loads(b"".join(ResponsesEncoder("gpt-5.5", profile_of("gpt-5.5"), BARE).body(request)))
    assert ours["input"][2]["phase"] == "final_answer"  # which the recorded client dropped, and should not have
    del ours["input"][2]["phase"]
    assert comparable(ours)["input"] == comparable(second.sent)["input"]
    encrypted = [entry["encrypted_content"] for entry in second.sent["input"] if entry.get("type") == "reasoning"]
    assert [entry["encrypted_content"] for entry in ours["input"] if entry["type"] == "reasoning"] == encrypted


def request_of(sent: dict[str, Any]) -> ModelRequest:
    """The conversation behind a recorded request, in our own terms."""
    entries = list(sent["input"])
    instructions = entries.pop(0)["content"] if entries and entries[0].get("role") == "system" else ""
    names: dict[str, str] = {}
    settings = {
        name: sent[name]
        for name in ("temperature", "prompt_cache_key", "max_output_tokens", "reasoning", "text")
        if name in sent
    }
    tools = tuple(
        ToolDeclaration(name=tool["name"], description=tool["description"], input_schema=tool["parameters"])
        for tool in sent.get("tools", ())
    )
    forced = sent.get("tool_choice")
    return a_request(
        instructions=instructions,
        history=History([_item(entry, names) for entry in _turns(entries)]),
        tools=tools,
        settings=stored_settings(settings),
        stream=sent["stream"],
        tool_choice="required" if isinstance(forced, dict) else forced or "auto",
    )


def _turns(entries: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """What the assistant said in a row is one item of ours."""
    said: list[dict[str, Any]] = []
    for entry in entries:
        if entry.get("role") == "assistant" or entry.get("type") in ("reasoning", "function_call"):
            said.append(entry)
            continue
        if said:
            yield said
            said = []
        yield [entry]
    if said:
        yield said


def _item(entries: list[dict[str, Any]], names: dict[str, str]) -> UserItem | AssistantItem | ToolItem:
    entry = entries[0]
    if entry.get("role") == "user":
        return UserItem(parts=tuple(Text(piece["text"]) for piece in entry["content"]))
    if entry.get("type") == "function_call_output":
        return ToolItem(call_id=entry["call_id"], name=names[entry["call_id"]], parts=_shown(entry["output"]))
    parts: list[Any] = []
    for said in entries:
        if said.get("type") == "reasoning":
            parts.append(Thinking(provider="openai", opaque=said))
        elif said.get("type") == "function_call":
            names[said["call_id"]] = said["name"]
            parts.append(CallPart(call_id=said["call_id"], name=said["name"], arguments=json.loads(said["arguments"])))
        else:
            parts.extend(Text(piece["text"]) for piece in said["content"])
    return AssistantItem(parts=tuple(parts), provider="openai")


def _shown(output: Any) -> tuple[Text | Image, ...]:
    if isinstance(output, str):
        return (Text(output),)
    return tuple(
        Text(piece["text"])
        if piece["type"] == "input_text"
        else Image(data=base64.b64decode(piece["image_url"].partition("base64,")[2]), media_type="image/png")
        for piece in output
    )


def comparable(body: dict[str, Any]) -> dict[str, Any]:
    """A request with its several spellings of one thing made one. Each rule says why it may."""
    body = json.loads(json.dumps(body))
    entries = body["input"]
    if entries and entries[0].get("role") == "system":  # instructions stand before the input, in either spelling
        body["instructions"] = entries.pop(0)["content"]
    for entry in entries:
        for piece in entry["output"] if isinstance(entry.get("output"), list) else ():
            if piece.get("detail") == "auto":  # which is what leaving it out means
                del piece["detail"]
        if entry.get("type") == "message":  # a message may leave its type out
            del entry["type"]
        if entry.get("role") == "assistant" and isinstance(entry["content"], str):  # a text is a list of one
            entry["content"] = [{"type": "output_text", "text": entry["content"]}]
    # Nothing is left with the provider, and reasoning comes back to us: our defaults, which the recorded client
    # asked for in some of its requests and left to the server's defaults in others.
    body["store"] = False
    body.pop("include", None)
    if isinstance(body.get("tool_choice"), dict):  # one tool, and it is required: it is that tool
        assert [tool["name"] for tool in body["tools"]] == [body["tool_choice"]["name"]]
        body["tool_choice"] = "required"
    return body


@needs_recordings
@every_exchange
def test_what_is_left_out_of_the_comparison_is_what_we_mean_to_send(exchange: Exchange) -> None:
    request = request_of(exchange.sent)
    model = exchange.sent["model"]
    ours = json.loads(b"".join(ResponsesEncoder(model, profile_of(model), WireNames(request.tools)).body(request)))
    assert ours["store"] is False
    reasons = model.startswith("gpt-5")
    assert ours.get("include") == (["reasoning.encrypted_content"] if reasons else None)
    assert "include" not in exchange.sent or ours["include"] == exchange.sent["include"]


# --- the vendor's client, beside ours ---------------------------------------------------------------------------------


@needs_recordings
@every_exchange
def test_the_vendors_client_and_ours_agree_on_what_was_said(exchange: Exchange) -> None:
    glimpses, reply = decoded(exchange.stream, BARE)
    words, theirs = vendor_reading(exchange.stream)
    assert theirs is not None
    assert theirs.output_text == reply.item.text
    assert words == [glimpse.text for glimpse in glimpses if isinstance(glimpse, TextDelta)]
    assert vendor_calls(theirs) == [(call.call_id, call.name, call.arguments) for call in reply.item.calls]
    assert vendor_usage(theirs) == our_usage(reply)
