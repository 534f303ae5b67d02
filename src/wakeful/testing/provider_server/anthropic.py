"""Anthropic's Messages: requests read, and answers written, in the vendor's shape."""

import json
from collections.abc import Mapping
from typing import Any

from wakeful.testing.provider_server.answers import WireAnswer
from wakeful.testing.provider_server.pieces import SIGNATURE, pieces, sse
from wakeful.testing.provider_server.wire_requests import (
    KeptConversations,
    RequestRefused,
    WireRequest,
    WireTurn,
    joined,
    positive,
    size,
    text_of,
)

FIELDS = frozenset(
    {
        *("cache_control", "container", "diagnostics", "inference_geo", "max_tokens", "messages", "metadata", "model"),
        *("output_config", "service_tier", "speed", "stop_sequences", "stream", "system", "thinking", "tool_choice"),
        *("tools", "user_profile_id", "workspace_id"),
    }
)
BETA_FIELDS = frozenset({"context_management", "mcp_servers", "fallbacks"})
"""Taken where a beta header asks for them."""
_SAMPLING = frozenset({"temperature", "top_p", "top_k"})
"""Taken by the first version of the API, which the types of the newest client no longer know."""
_FINISH = {"end": "end_turn", "calls": "tool_use", "length": "max_tokens", "filtered": "refusal", "refused": "refusal"}
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}


def read(path: str, body: Mapping[str, Any], kept: KeptConversations) -> WireRequest:
    """Raises RequestRefused for what the vendor does not take."""
    for name in body:
        if name not in FIELDS | BETA_FIELDS | _SAMPLING:
            raise RequestRefused(f"{name}: Extra inputs are not permitted")
    for name in ("model", "messages", "max_tokens"):
        if not body.get(name):
            raise RequestRefused(f"{name}: Field required")
    turns = [WireTurn("system", text_of(body["system"]))] if body.get("system") else []
    for message in body["messages"]:
        turns += _turns(message)
    choice = body.get("tool_choice") or {"type": "auto"}
    form = (body.get("output_config") or {}).get("format") or {}
    return WireRequest(
        wire="anthropic",
        model=str(body["model"]),
        body=body,
        turns=joined(turns),
        tools={tool["name"]: tool["input_schema"] for tool in body.get("tools") or () if "input_schema" in tool},
        choice=(choice["name"],) if choice["type"] == "tool" else _CHOICES[choice["type"]],  # type: ignore[arg-type]
        most=positive(body["max_tokens"], "max_tokens"),
        streams=bool(body.get("stream")),
        parallel=not choice.get("disable_parallel_tool_use"),
        shows_thoughts=(body.get("thinking") or {}).get("type", "disabled") != "disabled",
        schema=form.get("schema"),
        characters=size([body.get("system"), body["messages"], body.get("tools"), form]),
    )


def _turns(message: Mapping[str, Any]) -> list[WireTurn]:
    """A message of the user may hold results of tools, words, or both."""
    content = message.get("content")
    if message.get("role") == "assistant":
        return [WireTurn("assistant", text_of(content))]
    blocks = content if isinstance(content, list) else []
    results = [WireTurn("tool", text_of(each.get("content"))) for each in blocks if each.get("type") == "tool_result"]
    words = text_of(content)
    return [*results, WireTurn("user", words)] if words or not results else results


def whole(said: WireAnswer, asked: WireRequest, number: int) -> dict[str, Any]:
    message = _message(asked, number, _blocks(said, asked), _FINISH[said.finish])
    return {**message, "usage": _usage(said)} if said.reports_usage else message


def events(said: WireAnswer, asked: WireRequest, number: int) -> list[bytes]:
    begun = _message(asked, number, [], None)
    first = said.counts({**_counts(said), "output_tokens": 1}) if said.reports_usage else {}
    found: list[dict[str, Any]] = [{"type": "message_start", "message": {**begun, "usage": first}}, {"type": "ping"}]
    for index, block in enumerate(_blocks(said, asked)):
        found += _block_events(index, block, said)
    delta = {"stop_reason": _FINISH[said.finish], "stop_sequence": None}
    ended: dict[str, Any] = {"type": "message_delta", "delta": delta}
    found.append({**ended, "usage": _usage(said)} if said.reports_usage else {**ended, "usage": {}})
    found.append({"type": "message_stop"})
    return [sse(each, each["type"]) for each in found]


def before_usage(events: list[bytes]) -> int:
    return len(events) - 2


def _message(asked: WireRequest, number: int, content: list[dict[str, Any]], stop: str | None) -> dict[str, Any]:
    return {
        "id": f"msg_{number:08d}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
    }


def _blocks(said: WireAnswer, asked: WireRequest) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if said.thoughts and asked.shows_thoughts:
        found.append({"type": "thinking", "thinking": said.thoughts, "signature": SIGNATURE})
    if said.text:
        found.append({"type": "text", "text": said.text})
    found += [{"type": "tool_use", "id": call.call_id, "name": call.name, "input": call.parsed} for call in said.calls]
    return found


def _block_events(index: int, block: dict[str, Any], said: WireAnswer) -> list[dict[str, Any]]:
    kind = block["type"]
    if kind == "tool_use":
        arguments = next(call.arguments for call in said.calls if call.call_id == block["id"])
        empty: dict[str, Any] = {**block, "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *pieces(arguments)]]
    elif kind == "thinking":
        empty = {**block, "thinking": "", "signature": ""}
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
        deltas.append({"type": "signature_delta", "signature": SIGNATURE})
    else:
        empty = {**block, "text": ""}
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
    return [
        {"type": "content_block_start", "index": index, "content_block": empty},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def _counts(said: WireAnswer) -> dict[str, Any]:
    used = said.used
    return {
        "input_tokens": used.input_tokens - used.cached_input_tokens - used.cache_write_tokens,
        "cache_creation_input_tokens": used.cache_write_tokens,
        "cache_read_input_tokens": used.cached_input_tokens,
        "output_tokens": used.output_tokens,
    }


def _usage(said: WireAnswer) -> dict[str, Any]:
    return said.counts({**_counts(said), "service_tier": "standard"})


def error(status: int, kind: str, words: str, code: str | None = None, param: str | None = None) -> bytes:
    said = {"type": "error", "error": {"type": kind, "message": words}, "request_id": "req_00000000"}
    return json.dumps(said).encode()
