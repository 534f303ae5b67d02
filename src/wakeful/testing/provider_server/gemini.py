"""Gemini's generateContent: requests read, and answers written, in the vendor's shape."""

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
        *("contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings"),
        *("cachedContent", "labels", "serviceTier", "store", "model"),
    }
)
_FINISH = {
    "end": "STOP",
    "calls": "STOP",
    "length": "MAX_TOKENS",
    "filtered": "SAFETY",
    "refused": "PROHIBITED_CONTENT",
}
_MODES = {"AUTO": "auto", "VALIDATED": "auto", "MODE_UNSPECIFIED": "auto", "NONE": "none"}


def read(path: str, body: Mapping[str, Any], kept: KeptConversations) -> WireRequest:
    """Raises RequestRefused for what the vendor does not take."""
    for name in body:
        if name not in FIELDS:
            raise RequestRefused(
                f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.', code="INVALID_ARGUMENT"
            )
    contents = body.get("contents")
    if not isinstance(contents, list) or not contents:
        raise RequestRefused("* GenerateContentRequest.contents: contents is not specified", code="INVALID_ARGUMENT")
    turns = [WireTurn("system", text_of(system.get("parts")))] if (system := body.get("systemInstruction")) else []
    for content in contents:
        turns += _turns(content)
    config = body.get("generationConfig") or {}
    listed = [each for tool in body.get("tools") or () for each in tool.get("functionDeclarations", ())]
    schema = config.get("responseJsonSchema") or config.get("responseSchema")
    return WireRequest(
        wire="gemini",
        model=path.partition("/models/")[2].partition(":")[0],
        body=body,
        turns=joined(turns),
        tools={tool["name"]: tool.get("parametersJsonSchema") or tool.get("parameters") or {} for tool in listed},
        choice=_choice((body.get("toolConfig") or {}).get("functionCallingConfig") or {}),
        most=positive(config.get("maxOutputTokens"), "max_output_tokens"),
        streams=":streamGenerateContent" in path,
        shows_thoughts=bool((config.get("thinkingConfig") or {}).get("includeThoughts")),
        schema=schema,
        characters=size([body.get("systemInstruction"), contents, body.get("tools"), schema]),
    )


def _turns(content: Mapping[str, Any]) -> list[WireTurn]:
    parts = content.get("parts") or []
    if content.get("role") == "model":
        return [WireTurn("assistant", text_of([part for part in parts if not part.get("thought")]))]
    answered = [part["functionResponse"] for part in parts if "functionResponse" in part]
    results = [WireTurn("tool", _result(each.get("response") or {})) for each in answered]
    words = text_of(parts)
    return [*results, WireTurn("user", words)] if words or not results else results


def _result(response: Mapping[str, Any]) -> str:
    """A text stands under a name, because a result has to be an object here."""
    values = list(response.values())
    plain = len(values) == 1 and isinstance(values[0], str)
    return str(values[0]) if plain else json.dumps(response, ensure_ascii=False)


def _choice(config: Mapping[str, Any]) -> Any:
    if config.get("mode") == "ANY":
        return tuple(config.get("allowedFunctionNames") or ()) or "required"
    return _MODES[config.get("mode", "AUTO")]


def whole(said: WireAnswer, asked: WireRequest, number: int) -> dict[str, Any]:
    return _answer(_parts(said, asked), said, asked, number, last=True)


def events(said: WireAnswer, asked: WireRequest, number: int) -> list[bytes]:
    """Words in pieces; a call comes whole, with the piece that holds it; the last one says how it ended."""
    said_in_pieces: list[list[dict[str, Any]]] = []
    for part in _parts(said, asked):
        words = pieces(part["text"]) if "text" in part else []
        said_in_pieces += [[{**part, "text": piece}] for piece in words] or [[part]]
    said_in_pieces.append([{"text": ""}] if said_in_pieces else [])
    last = len(said_in_pieces) - 1
    answers = [_answer(parts, said, asked, number, last=place == last) for place, parts in enumerate(said_in_pieces)]
    return [sse(each, end="\r\n\r\n") for each in answers]


def before_usage(events: list[bytes]) -> int:
    """The last event holds the counts, and the end."""
    return len(events) - 1


def _parts(said: WireAnswer, asked: WireRequest) -> list[dict[str, Any]]:
    if said.finish in ("filtered", "refused"):
        return []
    parts: list[dict[str, Any]] = []
    if said.thoughts and asked.shows_thoughts:
        parts.append({"text": said.thoughts, "thought": True})
    if said.text:
        parts.append({"text": said.text})
    for place, call in enumerate(call for call in said.calls if call.whole):
        made = {"functionCall": {"id": call.call_id, "name": call.name, "args": call.parsed}}
        parts.append({**made, "thoughtSignature": SIGNATURE} if place == 0 else made)
    return parts


def _answer(
    parts: list[dict[str, Any]], said: WireAnswer, asked: WireRequest, number: int, *, last: bool
) -> dict[str, Any]:
    answer: dict[str, Any] = {"modelVersion": asked.model, "responseId": f"resp-{number:08d}"}
    if said.finish == "refused":
        answer["promptFeedback"] = {"blockReason": "PROHIBITED_CONTENT"}
    else:
        candidate: dict[str, Any] = {"index": 0}
        if parts or (last and said.finish != "filtered"):
            candidate["content"] = {"role": "model", **({"parts": parts} if parts else {})}
        if last:
            candidate["finishReason"] = _FINISH[said.finish]
        answer["candidates"] = [candidate]
    if said.reports_usage and last:
        answer["usageMetadata"] = _usage(said)
    return answer


def _usage(said: WireAnswer) -> dict[str, Any]:
    used = said.used
    counts: dict[str, Any] = {
        "promptTokenCount": used.input_tokens,
        "candidatesTokenCount": used.output_tokens - used.reasoning_tokens,
        "totalTokenCount": used.input_tokens + used.output_tokens,
    }
    if used.reasoning_tokens:
        counts["thoughtsTokenCount"] = used.reasoning_tokens
    if used.cached_input_tokens:
        counts["cachedContentTokenCount"] = used.cached_input_tokens
    return said.counts(counts)


def error(status: int, kind: str, words: str, code: str | None = None, param: str | None = None) -> bytes:
    return json.dumps({"error": {"code": status, "message": words, "status": kind}}).encode()
