"""OpenAI's Responses: requests read, and answers written, in the vendor's shape."""

from collections.abc import Mapping
from typing import Any

from wakeful.testing.provider_server.answers import WireAnswer
from wakeful.testing.provider_server.chat import choice_of, model_in
from wakeful.testing.provider_server.pieces import CREATED, SIGNATURE, pieces, sse
from wakeful.testing.provider_server.wire_requests import (
    KeptConversations,
    RequestRefused,
    Role,
    WireRequest,
    WireTurn,
    joined,
    positive,
    size,
    text_of,
)

FIELDS = frozenset(
    {
        *("access_programs", "background", "context_management", "conversation", "image", "include", "input"),
        *("instructions", "max_output_tokens", "max_tool_calls", "metadata", "model", "moderation"),
        *("parallel_tool_calls", "previous_response_id", "prompt", "prompt_cache_key", "prompt_cache_options"),
        *("prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "store", "stream"),
        *("stream_options", "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p", "truncation"),
        "user",
    }
)
_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "assistant": "assistant"}
_BY_THE_MODEL = frozenset({"function_call", "reasoning", "custom_tool_call", "web_search_call"})
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})
_REASONS = {"length": "max_output_tokens", "filtered": "content_filter"}


def read(path: str, body: Mapping[str, Any], kept: KeptConversations) -> WireRequest:
    """Raises RequestRefused for what the vendor does not take."""
    for name in body:
        if name not in FIELDS:
            raise RequestRefused(f"Unknown parameter: '{name}'.", code="unknown_parameter", param=name)
    given = body.get("input")
    if not given:
        raise RequestRefused("Missing required parameter: 'input'.", code="missing_required_parameter", param="input")
    turns = [WireTurn("system", str(body["instructions"]))] if body.get("instructions") else []
    if before := body.get("previous_response_id"):
        turns += kept.turns(before)
    turns += [WireTurn("user", given)] if isinstance(given, str) else [_turn(item) for item in given]
    form = (body.get("text") or {}).get("format") or {}
    tools = [tool for tool in body.get("tools") or () if tool.get("type") == "function"]
    return WireRequest(
        wire="openai_responses",
        model=model_in(body),
        body=body,
        turns=joined(turns),
        tools={tool["name"]: tool.get("parameters") or {} for tool in tools},
        choice=choice_of(body.get("tool_choice")),
        most=positive(body.get("max_output_tokens"), "max_output_tokens"),
        streams=bool(body.get("stream")),
        parallel=body.get("parallel_tool_calls") is not False,
        shows_thoughts=True,
        schema=form.get("schema"),
        characters=size([body.get("instructions"), given, body.get("tools"), form])
        + (sum(len(turn.text) for turn in turns) if before else 0),
    )


def _turn(item: Mapping[str, Any]) -> WireTurn:
    kind = item.get("type", "message")
    if kind in _BY_THE_MODEL:
        return WireTurn("assistant", "")
    if kind in _RESULTS:
        output = item.get("output")
        return WireTurn("tool", output if isinstance(output, str) else text_of(output))
    return WireTurn(_ROLES.get(item.get("role", "user"), "user"), text_of(item.get("content")))


def whole(said: WireAnswer, asked: WireRequest, number: int) -> dict[str, Any]:
    reason = _REASONS.get(said.finish)
    body = asked.body
    return {
        "id": response_id(number),
        "object": "response",
        "created_at": CREATED,
        "status": "incomplete" if reason else "completed",
        "background": False,
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "instructions": body.get("instructions"),
        "max_output_tokens": asked.most,
        "max_tool_calls": None,
        "metadata": body.get("metadata") or {},
        "model": asked.model,
        "output": _output(said, asked, number),
        "parallel_tool_calls": asked.parallel,
        "previous_response_id": body.get("previous_response_id"),
        "reasoning": {"effort": None, "summary": None},
        "service_tier": "default",
        "store": body.get("store", True),
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools") or [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": _usage(said) if said.reports_usage else None,
        "user": None,
    }


def events(said: WireAnswer, asked: WireRequest, number: int) -> list[bytes]:
    ended = whole(said, asked, number)
    begun = {**ended, "status": "in_progress", "incomplete_details": None, "output": [], "usage": None}
    found: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    for place, item in enumerate(ended["output"]):
        found += _item_events(place, item)
    found.append({"type": f"response.{ended['status']}", "response": ended})
    return [sse({**each, "sequence_number": number}, each["type"]) for number, each in enumerate(found)]


def before_usage(events: list[bytes]) -> int:
    return len(events) - 1


def response_id(number: int) -> str:
    return f"resp_{number:08d}"


def _output(said: WireAnswer, asked: WireRequest, number: int) -> list[dict[str, Any]]:
    output: list[dict[str, Any]] = []
    if said.thoughts:
        thought: dict[str, Any] = {"id": f"rs_{number:08d}", "type": "reasoning", "summary": []}
        if (asked.body.get("reasoning") or {}).get("summary"):
            thought["summary"] = [{"type": "summary_text", "text": said.thoughts}]
        if "reasoning.encrypted_content" in (asked.body.get("include") or ()):
            thought["encrypted_content"] = SIGNATURE
        output.append(thought)
    if said.text or not said.calls:
        part: dict[str, Any] = {"type": "output_text", "annotations": [], "logprobs": [], "text": said.text}
        if said.finish == "refused":
            part = {"type": "refusal", "refusal": said.text}
        status = "completed" if said.finish in ("end", "calls", "refused") else "incomplete"
        message = {"id": f"msg_{number:08d}", "type": "message", "status": status, "role": "assistant"}
        if said.text or said.finish == "end":
            output.append({**message, "content": [part]})
    output += [
        {
            "id": f"fc_{call.call_id}",
            "type": "function_call",
            "status": "completed" if call.whole else "incomplete",
            "arguments": call.arguments,
            "call_id": call.call_id,
            "name": call.name,
        }
        for call in said.calls
    ]
    return output


def _item_events(place: int, item: dict[str, Any]) -> list[dict[str, Any]]:
    where: dict[str, Any] = {"item_id": item["id"], "output_index": place}
    empties: dict[str, dict[str, Any]] = {"message": {"content": []}, "function_call": {"arguments": ""}}
    empty = empties.get(item["type"], {"summary": []})
    begun = {**item, **empty} if item["type"] == "reasoning" else {**item, **empty, "status": "in_progress"}
    found = [{"type": "response.output_item.added", "output_index": place, "item": begun}]
    if item["type"] == "function_call":
        kind = "response.function_call_arguments"
        found += [{"type": f"{kind}.delta", "delta": piece, **where} for piece in pieces(item["arguments"])]
        found.append({"type": f"{kind}.done", "arguments": item["arguments"], "name": item["name"], **where})
    elif item["type"] == "message":
        for index, part in enumerate(item["content"]):
            found += _part_events({**where, "content_index": index}, part)
    else:
        for index, part in enumerate(item["summary"]):
            at = {**where, "summary_index": index}
            kind = "response.reasoning_summary"
            found.append({"type": f"{kind}_part.added", "part": {**part, "text": ""}, **at})
            found += [{"type": f"{kind}_text.delta", "delta": piece, **at} for piece in pieces(part["text"])]
            found.append({"type": f"{kind}_text.done", "text": part["text"], **at})
            found.append({"type": f"{kind}_part.done", "part": part, **at})
    found.append({"type": "response.output_item.done", "output_index": place, "item": item})
    return found


def _part_events(at: dict[str, Any], part: dict[str, Any]) -> list[dict[str, Any]]:
    kind, field = ("refusal", "refusal") if part["type"] == "refusal" else ("output_text", "text")
    more: dict[str, Any] = {"logprobs": []} if kind == "output_text" else {}
    return [
        {"type": "response.content_part.added", "part": {**part, field: ""}, **at},
        *({"type": f"response.{kind}.delta", "delta": piece, **more, **at} for piece in pieces(part[field])),
        {"type": f"response.{kind}.done", field: part[field], **more, **at},
        {"type": "response.content_part.done", "part": part, **at},
    ]


def _usage(said: WireAnswer) -> dict[str, Any]:
    used = said.used
    return said.counts(
        {
            "input_tokens": used.input_tokens,
            "input_tokens_details": {"cached_tokens": used.cached_input_tokens, "cache_write_tokens": 0},
            "output_tokens": used.output_tokens,
            "output_tokens_details": {"reasoning_tokens": used.reasoning_tokens},
            "total_tokens": used.input_tokens + used.output_tokens,
        }
    )
