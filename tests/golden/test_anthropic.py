"""Recorded traffic with a Messages endpoint: what we make of each answer, and our request beside the recorded one.

The recordings stand beside the repository where it is developed; where they are absent these tests are skipped.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.wires.anthropic_samples import decoded
from kit.wires.anthropic_vendor import accepted, facts_of, our_facts, sdk_message
from kit.wires.model_requests import a_request
from wakeful.contracts.content import Image, Text
from wakeful.contracts.conversation import AssistantItem, CallPart, History, ToolItem, UserItem
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.models import ArgumentsDelta, StopReason, TextDelta, TokenUsage
from wakeful.contracts.tools import ToolDeclaration
from wakeful.providers.anthropic.encode import AnthropicEncoder
from wakeful.providers.profiles import profile_of
from wakeful.providers.wire.failures import from_status
from wakeful.providers.wire.sse import SseParser

RECORDINGS = Path(__file__).resolve().parents[3] / "shared" / "recordings"
FOLDERS = ("anthropic-messages", "anthropic-messages-cache")
FILES = [path for folder in FOLDERS for path in sorted((RECORDINGS / folder).glob("*.json"))]
STREAMS = [
    pytest.param(exchange["response"]["body"].encode(), id=f"{path.stem}-{number}")
    for path in FILES
    for number, exchange in enumerate(json.loads(path.read_text("utf-8"))["interactions"])
    if exchange["response"]["status"] == 200
]

pytestmark = pytest.mark.skipif(not FILES, reason="needs the recordings in ../shared/recordings, which are not here")


def exchanges(name: str) -> list[dict[str, Any]]:
    (path,) = (path for path in FILES if path.stem == name)
    found: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["interactions"]
    return found


# --- answers ----------------------------------------------------------------------------------------------------------

CALL = {"caller": {"type": "direct"}}
SAID: list[tuple[str, int, tuple[Any, ...], StopReason, TokenUsage]] = [
    (
        "streams-text",
        0,
        (Text("Hello!"),),
        "end",
        TokenUsage(input_tokens=18, output_tokens=5, total_tokens=23),
    ),
    (
        "streams-tool-call",
        0,
        (
            CallPart(
                call_id="toolu_012rmAruviySvUXSjgCPWVRu", name="get_weather", arguments={"city": "Paris"}, opaque=CALL
            ),
        ),
        "tool_calls",
        TokenUsage(input_tokens=677, output_tokens=33, total_tokens=710),
    ),
    (
        "claude-opus-4-7-drives-a-tool-loop",
        0,
        (
            CallPart(
                call_id="toolu_01M8nJQQMxqpv1VaPYuJKT4j", name="get_weather", arguments={"city": "Paris"}, opaque=CALL
            ),
        ),
        "tool_calls",
        TokenUsage(input_tokens=798, output_tokens=66, total_tokens=864),
    ),
    (
        "claude-opus-4-7-drives-a-tool-loop",
        1,
        (Text("Paris is currently sunny at 22°C."),),
        "end",
        TokenUsage(input_tokens=895, output_tokens=19, total_tokens=914),
    ),
    (
        "anthropic-opus-4-7-image-tool-result",
        0,
        (Text("jiggling restroom prison"),),
        "end",
        TokenUsage(input_tokens=1005, output_tokens=13, total_tokens=1018),
    ),
    (
        "accepts-malformed-assistant-tool-order-with-default-patch",
        0,
        (Text("The weather in Paris is currently 72°F."),),
        "end",
        TokenUsage(input_tokens=638, output_tokens=14, total_tokens=652),
    ),
    (
        "writes-then-reads-cache-control-on-identical-second-call",
        0,
        (Text("Hi."),),
        "end",
        TokenUsage(input_tokens=5761, output_tokens=5, total_tokens=5766, cache_write_tokens=5752),
    ),
    (
        "writes-then-reads-cache-control-on-identical-second-call",
        1,
        (Text("Hi."),),
        "end",
        TokenUsage(input_tokens=5761, output_tokens=5, total_tokens=5766, cached_input_tokens=5752),
    ),
]


@pytest.mark.parametrize(("name", "number", "parts", "stop", "usage"), SAID)
def test_a_recorded_answer_is_what_a_person_reads_in_it(
    name: str, number: int, parts: tuple[Any, ...], stop: StopReason, usage: TokenUsage
) -> None:
    glimpses, reply = decoded(exchanges(name)[number]["response"]["body"].encode())
    assert reply.item == AssistantItem(parts=parts, provider="anthropic")
    assert (reply.stop_reason, reply.usage) == (stop, usage)
    assert reply.request_metadata["response_id"].startswith("msg_")
    assert "unknown_events" not in reply.request_metadata
    assert "".join(piece.text for piece in glimpses if isinstance(piece, TextDelta)) == reply.item.text
    arguments = "".join(piece.text for piece in glimpses if isinstance(piece, ArgumentsDelta))
    assert [json.loads(arguments)] if arguments else [call.arguments for call in reply.item.calls] == []


def test_every_recorded_answer_has_its_line_above() -> None:
    recorded = {
        (path.stem, number)
        for path in FILES
        for number, exchange in enumerate(json.loads(path.read_text("utf-8"))["interactions"])
        if exchange["response"]["status"] == 200
    }
    assert recorded == {(name, number) for name, number, *_ in SAID}


def test_the_recorded_refusal_is_a_contract_error_in_the_provider_s_words() -> None:
    response = exchanges("rejects-malformed-assistant-tool-order-without-patch")[0]["response"]
    failure = from_status(
        "anthropic", "anthropic:claude", response["status"], response["headers"], response["body"].encode()
    )
    assert (failure.kind, failure.status) == ("contract_error", 400)
    assert "`tool_use` ids were found without `tool_result` blocks" in failure.message


@pytest.mark.parametrize("stream", STREAMS)
def test_the_vendor_s_sdk_reads_the_same_in_a_recorded_stream(stream: bytes) -> None:
    assert facts_of(sdk_message(stream)) == our_facts(decoded(stream)[1])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_vendor_s_types_take_our_request_for_a_recorded_conversation(path: Path) -> None:
    for exchange in json.loads(path.read_text("utf-8"))["interactions"]:
        accepted(request_like(json.loads(exchange["request"]["body"])))


# --- cuts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", STREAMS)
def test_a_recorded_stream_cut_after_any_event_is_a_lost_attempt(stream: bytes) -> None:
    pieces = stream.rstrip(b"\n").split(b"\n\n")
    assert decoded(b"\n\n".join(pieces) + b"\n\n")[1].item.parts
    for length in range(len(pieces)):
        check_lost(b"\n\n".join(pieces[:length]) + b"\n\n")


@pytest.mark.parametrize("stream", STREAMS)
def test_a_recorded_stream_cut_after_any_byte_is_a_lost_attempt(stream: bytes) -> None:
    last = len(stream.rstrip(b"\n")) + 1  # one line end: the last event is not closed yet
    for length in (*range(0, last, 7), *range(last - 64, last + 1)):
        check_lost(stream[:length])


def check_lost(stream: bytes) -> None:
    with pytest.raises(ModelFailure) as raised:
        decoded(stream)
    assert (raised.value.kind, raised.value.stage) == ("stream_interrupted", "body")


@pytest.mark.parametrize("stream", STREAMS)
def test_a_recorded_stream_reads_the_same_in_any_chunks(stream: bytes) -> None:
    whole = SseParser().feed(stream)
    for size in (1, 5, 64, 1000):
        parser = SseParser()
        assert [e for at in range(0, len(stream), size) for e in parser.feed(stream[at : at + size])] == whole


# --- requests ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_our_request_for_a_recorded_conversation_says_the_same(path: Path) -> None:
    for exchange in json.loads(path.read_text("utf-8"))["interactions"]:
        theirs = json.loads(exchange["request"]["body"])
        ours = request_like(theirs)
        if path.stem.startswith("rejects-"):
            # The order that was refused is put right: words first, then the call, then its result.
            blocks = [block["type"] for message in ours["messages"] for block in message["content"]]
            assert blocks == ["text", "tool_use", "tool_result", "text"]
            theirs["messages"][0]["content"].reverse()
        mine, recorded = plainly(ours), plainly(theirs)
        assert mine.keys() == recorded.keys()
        for field, value in recorded.items():
            assert mine[field] == value, field


def test_a_recorded_cache_mark_stands_where_we_put_ours() -> None:
    theirs = json.loads(exchanges("writes-then-reads-cache-control-on-identical-second-call")[0]["request"]["body"])
    assert request_like(theirs)["system"] == theirs["system"]
    theirs = json.loads(exchanges("accepts-malformed-assistant-tool-order-with-default-patch")[0]["request"]["body"])
    assert request_like(theirs)["messages"][-1]["content"][-1] == theirs["messages"][-1]["content"][-1]


def test_a_reply_goes_back_as_the_recorded_next_request_has_it() -> None:
    first, second = exchanges("claude-opus-4-7-drives-a-tool-loop")
    reply = decoded(first["response"]["body"].encode())[1]
    recorded = json.loads(second["request"]["body"])
    history = History([*items_of(json.loads(first["request"]["body"])), reply.item, *items_of(recorded)[2:]])
    ours = json.loads(b"".join(encoder_like(recorded).body(a_request(history=history))))
    (call,) = ours["messages"][1]["content"]
    assert call.pop("caller") == {"type": "direct"}  # what the provider sent with the call, which the other client lost
    assert plainly(ours)["messages"] == plainly(recorded)["messages"]


def request_like(theirs: dict[str, Any]) -> dict[str, Any]:
    """What we would send for a recorded request's conversation, tools and settings."""
    system = "".join(block["text"] for block in theirs.get("system", ()))
    kept = ("max_tokens", "temperature")
    request = a_request(
        instructions=system,
        history=History(items_of(theirs)),
        tool_choice="required" if "tool_choice" in theirs else "auto",
        settings={name: theirs[name] for name in kept if name in theirs},
        stream=theirs["stream"],
    )
    ours: dict[str, Any] = json.loads(b"".join(encoder_like(theirs).body(request)))
    return ours


def encoder_like(theirs: dict[str, Any]) -> AnthropicEncoder:
    tools = tuple(
        ToolDeclaration(name=tool["name"], description=tool["description"], input_schema=tool["input_schema"])
        for tool in theirs.get("tools", ())
    )
    return AnthropicEncoder(theirs["model"], profile_of(theirs["model"]), tools)


def items_of(theirs: dict[str, Any]) -> list[Any]:
    return [item for message in theirs["messages"] for item in _items(message)]


def _items(message: dict[str, Any]) -> Iterator[Any]:
    if message["role"] == "assistant":
        yield AssistantItem(parts=tuple(map(_part, message["content"])), provider="anthropic")
        return
    for block in message["content"]:
        if block["type"] == "tool_result":
            content = block["content"]
            parts = (Text(content),) if isinstance(content, str) else tuple(map(_part, content))
            yield ToolItem(call_id=block["tool_use_id"], name="", parts=parts)
        else:
            yield UserItem(parts=(_part(block),))


def _part(block: dict[str, Any]) -> Any:
    match block["type"]:
        case "text":
            return Text(block["text"])
        case "image":
            return Image.model_validate_json(
                json.dumps({"data": block["source"]["data"], "media_type": block["source"]["media_type"]})
            )
        case "tool_use":
            return CallPart(call_id=block["id"], name=block["name"], arguments=block["input"])
    raise AssertionError(block)


def plainly(body: dict[str, Any]) -> dict[str, Any]:
    """A request without what does not matter.

    Cache marks cost nothing and are where each client likes them; neighbours of one role are one message to the API;
    objects are closed by us (`additionalProperties`); forcing the only tool there is and forcing any is the same.
    """
    plain = json.loads(
        json.dumps(body), object_hook=lambda found: {k: v for k, v in found.items() if k != "cache_control"}
    )
    merged: list[dict[str, Any]] = []
    for message in plain["messages"]:
        if merged and merged[-1]["role"] == message["role"]:
            merged[-1]["content"] += message["content"]
        else:
            merged.append(message)
    plain["messages"] = merged
    for tool in plain.get("tools", ()):
        tool["input_schema"]["additionalProperties"] = False
    if len(plain.get("tools", ())) == 1 and plain.get("tool_choice", {}).get("type") == "tool":
        plain["tool_choice"] = {"type": "any"}
    found: dict[str, Any] = plain
    return found
