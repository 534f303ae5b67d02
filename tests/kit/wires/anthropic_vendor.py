"""The vendor's SDK, asked for its opinion: whether it takes a request, and what it reads in a stream."""

from collections.abc import Iterator, Mapping
from typing import Any

import anthropic
import httpx2
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming, MessageCreateParamsStreaming
from pydantic import TypeAdapter

from wakeful.contracts.content import Thinking
from wakeful.contracts.models import Reply, TokenUsage

FIELDS = MessageCreateParamsStreaming.__required_keys__ | MessageCreateParamsStreaming.__optional_keys__
STREAMING: TypeAdapter[Any] = TypeAdapter(MessageCreateParamsStreaming)
AT_ONCE: TypeAdapter[Any] = TypeAdapter(MessageCreateParamsNonStreaming)


def take(value: Any) -> None:
    """Look at everything: the SDK's types check a list only while somebody walks through it."""
    if isinstance(value, str | bytes):
        return
    if isinstance(value, Mapping):
        for inner in value.values():
            take(inner)
    elif isinstance(value, list | tuple) or hasattr(value, "__next__"):
        for inner in value:
            take(inner)


def accepted(body: dict[str, Any]) -> None:
    take((STREAMING if body["stream"] else AT_ONCE).validate_python(body))


def sdk_message(stream: bytes) -> Any:
    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=stream)

    with (
        httpx2.Client(transport=httpx2.MockTransport(answer)) as http,
        anthropic.Anthropic(api_key="test", base_url="http://127.0.0.1:1", http_client=http) as client,
        client.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "?"}]) as events,
    ):
        return events.get_final_message()


def facts_of(message: Any) -> dict[str, Any]:
    usage = message.usage
    read, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
    details = usage.output_tokens_details
    return {
        "text": "".join(part.text for part in message.content if part.type == "text"),
        "thinking": [(part.thinking, part.signature) for part in message.content if part.type == "thinking"],
        "calls": [(part.id, part.name, part.input) for part in message.content if part.type == "tool_use"],
        "others": list(_others(message)),
        "id": message.id,
        "stop": message.stop_reason,
        "usage": TokenUsage(
            input_tokens=usage.input_tokens + read + written,
            output_tokens=usage.output_tokens,
            total_tokens=usage.input_tokens + read + written + usage.output_tokens,
            cached_input_tokens=read,
            cache_write_tokens=written,
            reasoning_tokens=details.thinking_tokens if details else 0,
        ),
    }


def _others(message: Any) -> Iterator[dict[str, Any]]:
    for part in message.content:
        if part.type not in ("text", "thinking", "tool_use"):
            yield part.to_dict()


def our_facts(reply: Reply) -> dict[str, Any]:
    kept = [part for part in reply.item.parts if isinstance(part, Thinking)]
    return {
        "text": reply.item.text,
        "thinking": [(part.text, part.opaque["signature"]) for part in kept if "signature" in part.opaque],
        "calls": [(call.call_id, call.name, call.arguments) for call in reply.item.calls],
        "others": [part.opaque for part in kept if "type" in part.opaque],
        "id": reply.request_metadata["response_id"],
        "stop": reply.request_metadata["provider_stop_reason"],
        "usage": reply.usage,
    }
