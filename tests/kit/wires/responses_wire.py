"""Small exchanges in the words of the Responses API, for the suites that test it."""

import json
from typing import Any

from wakeful.contracts.models import ModelGlimpse, Reply
from wakeful.contracts.tools import ToolDeclaration
from wakeful.providers.openai_responses.decode import ResponsesDecoder
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.sse import SseParser

WEATHER = ToolDeclaration(
    name="client/get_weather",
    description="Get current weather for a city.",
    input_schema={
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
)
USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 8},
    "output_tokens": 20,
    "output_tokens_details": {"reasoning_tokens": 12},
    "total_tokens": 120,
}
REASONING: dict[str, Any] = {
    "id": "rs_1",
    "type": "reasoning",
    "encrypted_content": "gAAAA-ünïcode-==",
    "summary": [{"type": "summary_text", "text": "Look first."}, {"type": "summary_text", "text": "Then speak."}],
}


def message(*content: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A message of the assistant."""
    return {
        "id": "msg_1",
        "type": "message",
        "status": "completed",
        "content": list(content),
        "role": "assistant",
        **fields,
    }


def words(text: str, **fields: Any) -> dict[str, Any]:
    """Text in a message."""
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text, **fields}


def call(call_id: str = "call_1", arguments: str = '{"city":"Paris"}', **fields: Any) -> dict[str, Any]:
    """A function call."""
    return {
        "id": f"fc_{call_id}",
        "type": "function_call",
        "status": "completed",
        "arguments": arguments,
        "call_id": call_id,
        "name": "client__get_weather",
        **fields,
    }


def response(*output: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A response as it ends."""
    return {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": "gpt-5.5-2026-04-23",
        "service_tier": "default",
        "output": list(output),
        "usage": USAGE,
        **fields,
    }


def events_of(ended: dict[str, Any], *, streamed: list[dict[str, Any]] | None = None) -> list[dict[str, Any]]:
    """The events of a stream that ends in this response. `streamed` are its items, when they are not its output."""
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**ended, "output": [], "status": "in_progress", "usage": None}}
    ]
    for place, item in enumerate(ended["output"] if streamed is None else streamed):
        events.extend(_item_events(place, item))
    events.append({"type": f"response.{ended['status']}", "response": ended})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def _item_events(place: int, item: dict[str, Any]) -> list[dict[str, Any]]:
    where = {"output_index": place, "item_id": item.get("id")}
    events: list[dict[str, Any]] = [
        {"type": "response.output_item.added", "output_index": place, "item": {**item, "status": "in_progress"}}
    ]
    if item["type"] == "function_call":
        half = len(item["arguments"]) // 2
        events.extend(
            {"type": "response.function_call_arguments.delta", "delta": piece, **where}
            for piece in (item["arguments"][:half], item["arguments"][half:])
        )
        events.append({"type": "response.function_call_arguments.done", "arguments": item["arguments"], **where})
    elif item["type"] == "message":
        for index, content in enumerate(item["content"]):
            kind, field = ("refusal", "refusal") if content["type"] == "refusal" else ("output_text", "text")
            at = {**where, "content_index": index}
            events.append({"type": "response.content_part.added", "part": {**content, field: ""}, **at})
            events.extend(
                {"type": f"response.{kind}.delta", "delta": character, "logprobs": [], **at}
                for character in content.get(field, "")
            )
            events.append({"type": "response.content_part.done", "part": content, **at})
    elif item["type"] == "reasoning":
        for index, summary in enumerate(item.get("summary", ())):
            at = {**where, "summary_index": index}
            events.append({"type": "response.reasoning_summary_text.delta", "delta": summary["text"], **at})
    events.append({"type": "response.output_item.done", "output_index": place, "item": item})
    return events


def sse(events: list[dict[str, Any]], *, named: bool = True) -> bytes:
    """Events as a server sends them."""
    lines = []
    for event in events:
        name = f"event: {event['type']}\n" if named else ""
        lines.append(f"{name}data: {json.dumps(event, ensure_ascii=False, separators=(',', ':'))}\n\n")
    return "".join(lines).encode()


def decoded(stream: bytes, names: WireNames | None = None) -> tuple[list[ModelGlimpse], Reply]:
    """What is made of a stream; raises what the decoder raises."""
    decoder = ResponsesDecoder(names or WireNames([WEATHER]))
    glimpses = [glimpse for event in SseParser().feed(stream) for glimpse in decoder.feed(event)]
    return glimpses, decoder.finish()
