"""Small answers of a Messages endpoint, made by hand, for the suites that test that provider."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from wakeful.contracts.models import ModelGlimpse, Reply
from wakeful.contracts.tools import ToolDeclaration
from wakeful.providers.anthropic.decode import AnthropicDecoder
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.sse import SseParser

USAGE = {"input_tokens": 10, "output_tokens": 1, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 5}
WEATHER = ToolDeclaration(
    name="client/get_weather",
    description="Get current weather for a city.",
    input_schema={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    effect="pure",
)
NO_NAMES = WireNames()


def started(**changed: Any) -> dict[str, Any]:
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-test",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": USAGE,
    }
    return {"type": "message_start", "message": {**message, **changed}}


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def text_block(index: int, *pieces: str) -> list[dict[str, Any]]:
    return block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": piece} for piece in pieces))


def call_block(index: int, call_id: str, name: str, *pieces: str) -> list[dict[str, Any]]:
    start = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    return block(index, start, *({"type": "input_json_delta", "partial_json": piece} for piece in pieces))


def ended(stop_reason: str | None = "end_turn", **more: Any) -> list[dict[str, Any]]:
    delta = {"stop_reason": stop_reason, "stop_sequence": None, **more}
    return [{"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7}}, {"type": "message_stop"}]


def sse(events: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def decoded(stream: bytes | Sequence[dict[str, Any]], names: WireNames = NO_NAMES) -> tuple[list[ModelGlimpse], Reply]:
    """Everything a stream shows, and the reply it ends in."""
    decoder = AnthropicDecoder(names)
    glimpses: list[ModelGlimpse] = []
    for event in SseParser().feed(stream if isinstance(stream, bytes) else sse(stream)):
        glimpses += decoder.feed(event)
    return glimpses, decoder.finish()


def reply_to(*events: dict[str, Any] | list[dict[str, Any]], names: WireNames = NO_NAMES) -> Reply:
    flat = [event for given in events for event in (given if isinstance(given, list) else [given])]
    return decoded(flat, names)[1]
