"""The vendors' typed parameters as a judge of whole requests: a field that they do not know is refused, however deep.

Their types drop what they do not know and check lists only while somebody walks through them. So the request is read
through the types to its end, and what they read has to be the request.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any

from anthropic.types import beta, message_create_params
from openai.types.chat import completion_create_params
from openai.types.responses import response_create_params
from pydantic import BaseModel, TypeAdapter

from kit.wires.gemini_vendor import read_by_vendor, with_plain_base64
from kit.wires.provider_server import Asked
from kit.wires.spoken_replies import wire_of

OLDER_SAMPLING = frozenset({"temperature", "top_p", "top_k"})
"""The newest types of Anthropic's have lost them; the API version that requests name takes them for older models."""
OLDER_VERSION = "2023-06-01"
HANDED_BACK = frozenset({"reasoning", "reasoning_content", "reasoning_details", "thinking"})
"""`thinking`: parts of that type among the content."""


class Refused(AssertionError):
    """The vendor's types do not take the request."""


def judge(asked: Asked, extra: Iterable[str] = (), handed_back: Iterable[str] = ()) -> None:
    """Raises Refused, or pydantic's ValidationError. `extra` are fields that somebody wrote who knew the server.

    `handed_back` are fields of its own that a compatible server gets back in messages of the assistant.
    """
    body = {name: value for name, value in asked.body.items() if name not in extra}
    if wire_of(asked.path).endswith("enerateContent"):
        sent, read = with_plain_base64(body), with_plain_base64(read_by_vendor(body))
        if read != sent:
            raise Refused(f"{asked.path}: Google's types do not know {', '.join(_lost(sent, read)) or 'a part of it'}")
        return
    format_ = asked.path.rpartition("/")[2]
    if format_ == "messages" and asked.headers.get("anthropic-version") == OLDER_VERSION:
        body = {name: value for name, value in body.items() if name not in OLDER_SAMPLING}
    if format_ == "completions":
        body["messages"] = [_without_thoughts(each, HANDED_BACK & {*handed_back}) for each in body["messages"]]
    if format_ == "responses":
        body["input"] = [_with_id(item) for item in body["input"]]
    adapter = _adapter(format_, bool(body.get("stream")), "anthropic-beta" in asked.headers)
    read = _drained(adapter.validate_python(body))
    if read != body:
        raise Refused(f"{asked.path}: the vendor's types do not know {', '.join(_lost(body, read)) or 'a part of it'}")


def _without_thoughts(message: dict[str, Any], names: frozenset[str]) -> dict[str, Any]:
    if message.get("role") != "assistant":
        return message
    left = {name: value for name, value in message.items() if name not in names}
    if "thinking" in names and isinstance(content := left.get("content"), list):
        left["content"] = [part for part in content if part.get("type") != "thinking"]
    return left


def _with_id(item: dict[str, Any]) -> dict[str, Any]:
    """The types want the id of what goes back; the API takes it without where nothing is stored there."""
    if item.get("type") == "message" and item["role"] == "assistant" and isinstance(item["content"], list):
        return {"id": "left_out", "status": "completed", **item}
    return {"id": "left_out", **item} if item.get("type") in ("reasoning", "web_search_call") else item


@cache
def _adapter(format_: str, streams: bool, is_beta: bool) -> TypeAdapter[Any]:
    # An adapter outlives what it returns: a lazy list of the types needs it still.
    kind: Any
    match format_:
        case "completions":
            params = completion_create_params
            kind = params.CompletionCreateParamsStreaming if streams else params.CompletionCreateParamsNonStreaming
        case "responses":
            theirs = response_create_params
            kind = theirs.ResponseCreateParamsStreaming if streams else theirs.ResponseCreateParamsNonStreaming
        case _:
            messages: Any = beta.message_create_params if is_beta else message_create_params
            kind = messages.MessageCreateParamsStreaming if streams else messages.MessageCreateParamsNonStreaming
    return TypeAdapter(kind)


def _drained(value: Any) -> Any:
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json", exclude_unset=True)
    if isinstance(value, dict):
        return {key: _drained(inner) for key, inner in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [_drained(inner) for inner in value]
    return value


def _lost(sent: Any, read: Any, path: str = "") -> list[str]:
    """Where the two differ."""
    if isinstance(sent, dict) and isinstance(read, dict):
        inside = [_lost(value, read[key], f"{path}.{key}") for key, value in sent.items() if key in read]
        gone = [f"{path}.{key}".lstrip(".") for key in sent if key not in read]
        return gone + [each for found in inside for each in found]
    if isinstance(sent, list) and isinstance(read, list) and len(sent) == len(read):
        pairs = enumerate(zip(sent, read, strict=True))
        return [each for at, (one, other) in pairs for each in _lost(one, other, f"{path}[{at}]")]
    return [] if sent == read else [path.lstrip(".")]
