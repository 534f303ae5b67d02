"""OpenAI's Chat Completions: requests read, and answers written, in the vendor's shape."""

import json
from collections.abc import Mapping
from typing import Any

from wakeful.testing.provider_server.answers import WireAnswer
from wakeful.testing.provider_server.pieces import CREATED, pieces, sse
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
        *("audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs"),
        *("max_completion_tokens", "max_tokens", "messages", "metadata", "modalities", "model", "moderation", "n"),
        *("parallel_tool_calls", "prediction", "presence_penalty", "prompt_cache_key", "prompt_cache_options"),
        *("prompt_cache_retention", "reasoning_effort", "response_format", "safety_identifier", "seed"),
        *("service_tier", "stop", "store", "stream", "stream_options", "temperature", "tool_choice", "tools"),
        *("top_logprobs", "top_p", "user", "verbosity", "web_search_options"),
    }
)
_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "assistant": "assistant", "tool": "tool"}
_FINISH = {"end": "stop", "calls": "tool_calls", "length": "length", "filtered": "content_filter", "refused": "stop"}


def read(path: str, body: Mapping[str, Any], kept: KeptConversations) -> WireRequest:
    """Raises RequestRefused for what the vendor does not take."""
    for name in body:
        if name not in FIELDS:
            raise RequestRefused(f"Unknown parameter: '{name}'.", code="unknown_parameter", param=name)
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise RequestRefused(
            "Missing required parameter: 'messages'.", code="missing_required_parameter", param="messages"
        )
    turns = [WireTurn(_ROLES.get(each.get("role"), "user"), text_of(each.get("content"))) for each in messages]
    listed = [tool["function"] for tool in body.get("tools") or () if tool.get("type") == "function"]
    form = body.get("response_format") or {}
    return WireRequest(
        wire="openai_chat",
        model=model_in(body),
        body=body,
        turns=joined(turns),
        tools={tool["name"]: tool.get("parameters") or {} for tool in listed},
        choice=choice_of(body.get("tool_choice")),
        most=positive(body.get("max_completion_tokens", body.get("max_tokens")), "max_completion_tokens"),
        streams=bool(body.get("stream")),
        parallel=body.get("parallel_tool_calls") is not False,
        schema=(form.get("json_schema") or {}).get("schema"),
        characters=size([messages, body.get("tools"), form]),
    )


def model_in(body: Mapping[str, Any]) -> str:
    if not isinstance(body.get("model"), str) or not body["model"]:
        raise RequestRefused("you must provide a model parameter", param="model")
    return str(body["model"])


def choice_of(given: Any) -> Any:
    """The tool choice, in either of OpenAI's two spellings."""
    if given is None or isinstance(given, str):
        return given or "auto"
    if given.get("type") == "allowed_tools":
        allowed = given.get("allowed_tools", given)
        names = tuple((tool.get("function") or tool)["name"] for tool in allowed["tools"])
        return names if allowed.get("mode") == "required" else "auto"
    return ((given.get("function") or given)["name"],)


def whole(said: WireAnswer, asked: WireRequest, number: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": said.text or None, "refusal": None, "annotations": []}
    if said.finish == "refused":
        message |= {"content": None, "refusal": said.text}
    elif said.text == "" and not said.calls:
        message["content"] = ""
    if said.calls:
        message["tool_calls"] = [
            {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in said.calls
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _FINISH[said.finish]}
    answer = {**_envelope(asked, number, "chat.completion"), "choices": [choice]}
    return {**answer, "usage": _usage(said)} if said.reports_usage else answer


def events(said: WireAnswer, asked: WireRequest, number: int) -> list[bytes]:
    """The stream. The counts come last, and only when they were asked for, as the vendor has it."""
    counted = bool((asked.body.get("stream_options") or {}).get("include_usage"))
    envelope = _envelope(asked, number, "chat.completion.chunk") | ({"usage": None} if counted else {})

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**envelope, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]}

    chunks = [chunk({"role": "assistant", "content": None if said.calls and not said.text else "", "refusal": None})]
    field = "refusal" if said.finish == "refused" else "content"
    chunks += [chunk({field: piece}) for piece in pieces(said.text)]
    for place, call in enumerate(said.calls):
        begun = {"index": place, "id": call.call_id, "type": "function"}
        chunks.append(chunk({"tool_calls": [{**begun, "function": {"name": call.name, "arguments": ""}}]}))
        chunks += [
            chunk({"tool_calls": [{"index": place, "function": {"arguments": piece}}]})
            for piece in pieces(call.arguments)
        ]
    chunks.append(chunk({}, _FINISH[said.finish]))
    if counted and said.reports_usage:
        chunks.append({**envelope, "choices": [], "usage": _usage(said)})
    return [*(sse(each) for each in chunks), b"data: [DONE]\n\n"]


def before_usage(events: list[bytes]) -> int:
    """So many events come before the counts."""
    return next((place for place, event in enumerate(events) if b'"choices":[]' in event), len(events) - 1)


def _envelope(asked: WireRequest, number: int, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{number:08d}",
        "object": kind,
        "created": CREATED,
        "model": asked.model,
        "service_tier": "default",
        "system_fingerprint": None,
    }


def _usage(said: WireAnswer) -> dict[str, Any]:
    used = said.used
    return said.counts(
        {
            "prompt_tokens": used.input_tokens,
            "completion_tokens": used.output_tokens,
            "total_tokens": used.input_tokens + used.output_tokens,
            "prompt_tokens_details": {"cached_tokens": used.cached_input_tokens, "audio_tokens": 0},
            "completion_tokens_details": {
                "reasoning_tokens": used.reasoning_tokens,
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        }
    )


def error(status: int, kind: str, words: str, code: str | None = None, param: str | None = None) -> bytes:
    return json.dumps({"error": {"message": words, "type": kind, "param": param, "code": code}}).encode()
