"""Pydantic AI's ModelRequest and ModelResponse, as objects or as the dicts its own adapter dumps."""

from collections.abc import Iterator, Mapping
from typing import Any

from wakeful.contracts.content import File, Image, Text, Thinking
from wakeful.contracts.conversation import AssistantItem, AssistantPart, ToolItem, UserItem
from wakeful.engine.foreign_history.blocks import Shown, call, decoded, refused
from wakeful.tools.results import parts_from

KINDS = frozenset({"request", "response"})


def is_one(message: Any) -> bool:
    """By the class's module, or by the two discriminators of the dumped form."""
    if isinstance(message, Mapping):
        return message.get("kind") in KINDS and "parts" in message
    return type(message).__module__.partition(".")[0] == "pydantic_ai" and hasattr(message, "parts")


def read(message: Any, at: str) -> Iterator[UserItem | AssistantItem | ToolItem]:
    """A request is what was said to the model, part by part; a response is one reply."""
    parts = _get(message, "parts") or ()
    if _get(message, "kind") == "response":
        yield AssistantItem(
            parts=tuple(_reply(part, f"{at}.parts[{index}]") for index, part in enumerate(parts)),
            provider=str(_get(message, "provider_name") or ""),
        )
        return
    for index, part in enumerate(parts):
        yield _request(part, f"{at}.parts[{index}]")


def _request(part: Any, at: str) -> UserItem | ToolItem:
    content = _get(part, "content")
    match _get(part, "part_kind"):
        case "system-prompt":
            return UserItem(parts=_said(content, at), origin="runtime")
        case "user-prompt":
            return UserItem(parts=_said(content, at))
        case "tool-return":
            failed = _get(part, "outcome") in ("failed", "denied")
            return _result(part, parts_from(_plain(content)), failed, at)
        case "retry-prompt":
            words = parts_from(content if isinstance(content, str) else _plain(content))
            if _get(part, "tool_name") is None:
                return UserItem(parts=words, origin="runtime")
            return _result(part, words, True, at)
        case kind:
            raise refused(at, f"a part of kind {kind!r} cannot be converted")


def _reply(part: Any, at: str) -> AssistantPart:
    match _get(part, "part_kind"):
        case "text":
            return Text(str(_get(part, "content") or ""))
        case "thinking":
            opaque = {name: _get(part, name) for name in ("id", "signature") if _get(part, name) is not None}
            provider = str(_get(part, "provider_name") or "")
            return Thinking(text=str(_get(part, "content") or ""), provider=provider, opaque=opaque)
        case "tool-call":
            return call(_get(part, "tool_call_id"), _get(part, "tool_name"), _get(part, "args"), at)
        case kind:
            raise refused(at, f"a part of kind {kind!r} cannot be converted")


def _result(part: Any, parts: tuple[Shown, ...], is_error: bool, at: str) -> ToolItem:
    call_id = _get(part, "tool_call_id")
    if not call_id:
        raise refused(at, "a tool result without the id of its call")
    return ToolItem(call_id=str(call_id), name=str(_get(part, "tool_name") or ""), parts=parts, is_error=is_error)


def _said(content: Any, at: str) -> tuple[Shown, ...]:
    if isinstance(content, str):
        return (Text(content),)
    if not isinstance(content, list | tuple):
        raise refused(at, f"content is a string or a list, not a {type(content).__name__}")
    return tuple(_piece(piece, f"{at}.content[{index}]") for index, piece in enumerate(content))


def _piece(piece: Any, at: str) -> Shown:
    if isinstance(piece, str):
        return Text(piece)
    kind = _get(piece, "kind")
    match kind:
        case "text" | "text-content":
            return Text(str(_get(piece, "content") or ""))
        case "image-url" | "audio-url" | "video-url" | "document-url":
            url, media = _get(piece, "url"), _get(piece, "media_type")
            return Image(url=url, media_type=media or "image/png") if kind == "image-url" else _file(url, media)
        case "binary":
            media = str(_get(piece, "media_type") or "application/octet-stream")
            data = decoded(_get(piece, "data"), at)
            return (
                Image(data=data, media_type=media) if media.startswith("image/") else File(data=data, media_type=media)
            )
        case _:
            raise refused(at, f"content of kind {kind!r} cannot be converted")


def _file(url: Any, media: Any) -> File:
    return File(url=url, media_type=media or "application/octet-stream")


def _plain(content: Any) -> Any:
    """A tool's return value; its pictures and files become parts."""
    if _get(content, "kind") in ("binary", "image-url", "document-url"):
        return _piece(content, "content")
    if isinstance(content, list | tuple):
        return [_plain(piece) for piece in content]
    return content


def _get(thing: Any, name: str) -> Any:
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)
