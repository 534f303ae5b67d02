"""Small answers of Chat Completions servers, made by hand, and ways to read them."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from wakeful.contracts.models import ModelGlimpse, Reply
from wakeful.contracts.tools import ToolDeclaration
from wakeful.providers.openai_chat.decode import ChatDecoder
from wakeful.providers.wire.failures import Peer
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.sse import SseEvent, SseParser

PEER = Peer("acme", "acme:model-1")
USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
LOOK_UP = ToolDeclaration(
    name="client/look_up",
    description="Looks something up.",
    input_schema={"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
)
ADD = ToolDeclaration(name="add", input_schema={"type": "object", "properties": {"a": {"type": "integer"}}})
TOOLS = (LOOK_UP, ADD)


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **others: Any) -> dict[str, Any]:
    """One chunk with one choice."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "model-1",
        "choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}],
        **others,
    }


def piece(
    index: int | None, name: str | None = None, arguments: str = "", call_id: str | None = None
) -> dict[str, Any]:
    """A chunk with a piece of one tool call."""
    function: dict[str, Any] = {"arguments": arguments}
    call: dict[str, Any] = {"function": function}
    if index is not None:
        call["index"] = index
    if name is not None:
        function["name"] = name
        call["type"] = "function"
    if call_id is not None:
        call["id"] = call_id
    return chunk({"tool_calls": [call]})


USAGE_CHUNK = {"id": "chatcmpl-1", "model": "model-1", "choices": [], "usage": USAGE}


def stream(*chunks: dict[str, Any], done: bool = True) -> bytes:
    """Chunks as a server sends them."""
    events = [b"data: " + json.dumps(one).encode() + b"\n\n" for one in chunks]
    return b"".join([*events, b"data: [DONE]\n\n"] if done else events)


def response(message: dict[str, Any], finish: str | None = "stop", **others: Any) -> bytes:
    """An answer that came at once."""
    return json.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "model-1",
            "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}],
            **others,
        }
    ).encode()


def events_of(data: bytes) -> list[SseEvent]:
    return SseParser().feed(data)


def read(
    data: bytes | Iterable[SseEvent], tools: Sequence[ToolDeclaration] = TOOLS, **options: Any
) -> tuple[list[ModelGlimpse], Reply]:
    """What was glimpsed, and the reply."""
    decoder = ChatDecoder(WireNames(tools), PEER, **options)
    glimpses: list[ModelGlimpse] = []
    for event in events_of(data) if isinstance(data, bytes) else data:
        glimpses += decoder.feed(event)
    return glimpses, decoder.finish()


def reply_to(*chunks: dict[str, Any], **options: Any) -> Reply:
    """The reply of a stream of chunks that ends as it should."""
    return read(stream(*chunks), **options)[1]
