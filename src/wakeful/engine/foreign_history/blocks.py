"""Content blocks of the OpenAI, Anthropic and LangChain formats, read into parts.

What has no counterpart here is refused by its type and its place; nothing is left out in silence.
"""

import base64
import binascii
import json
import mimetypes
import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from pydantic import ValidationError

from wakeful.contracts.content import File, Image, Text, Thinking
from wakeful.contracts.conversation import CallPart
from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.findings import citation

INVALID = "invalid_history"
Shown: TypeAlias = Text | Image | File
_DATA_URL = re.compile(r"^data:(?P<media>[^;,]*)(?:;[^,]*)?;base64,(?P<data>.*)$", re.DOTALL)


def refused(at: str, reason: str) -> InvalidValue:
    return InvalidValue(INVALID, at, reason)


def shown(content: Any, at: str) -> tuple[Shown, ...]:
    """A message's content (a string, a block or a list of blocks) as what a person or a tool can say."""
    if content is None:
        return ()
    if isinstance(content, str):
        return (Text(content),) if content else ()
    if isinstance(content, Mapping):
        return (_shown(content, at),)
    if not isinstance(content, list | tuple):
        raise refused(at, f"content is a string or a list of blocks, not a {type(content).__name__}")
    return tuple(
        Text(block) if isinstance(block, str) else _shown(block, f"{at}[{index}]")
        for index, block in enumerate(content)
    )


def _shown(block: Any, at: str) -> Shown:
    if not isinstance(block, Mapping):
        raise refused(at, f"a block is an object, not a {type(block).__name__}")
    kind = block.get("type")
    match kind:
        case "text" | "input_text" | "output_text":
            return Text(str(block.get("text", "")))
        case "refusal":
            return Text(str(block.get("refusal", "")))
        case "image_url" | "input_image" | "image":
            return _image(block, at)
        case "file" | "input_file" | "document":
            return _file(block, at)
        case _:
            raise refused(at, f"a block of type {kind!r} cannot be converted")


def thinking(block: Mapping[str, Any]) -> Thinking | None:
    """A reasoning block, whole, or None when the block is something else."""
    match block.get("type"):
        case "thinking" | "redacted_thinking":
            return Thinking(text=str(block.get("thinking") or ""), provider="anthropic", opaque=dict(block))
        case "reasoning":
            summary = block.get("summary") or ()
            text = "\n".join(str(piece.get("text", "")) for piece in summary if isinstance(piece, Mapping))
            return Thinking(
                text=text or str(block.get("reasoning") or ""),
                provider="openai" if "summary" in block else "",
                opaque=dict(block),
            )
    return None


def sources(block: Any) -> list[dict[str, Any] | None]:
    """The places on the web that a block, or a message, says its words were found at."""
    if not isinstance(block, Mapping):
        return []
    cited = [each for each in block.get("citations") or () if isinstance(each, Mapping)]  # Anthropic
    found = [citation(each.get("url"), each.get("title"), excerpt=each.get("cited_text")) for each in cited]
    for each in block.get("annotations") or ():  # OpenAI
        if isinstance(each, Mapping) and each.get("type") == "url_citation":
            inner = each.get("url_citation")
            place = inner if isinstance(inner, Mapping) else each
            found.append(citation(place.get("url"), place.get("title")))
    return found


def call(call_id: Any, name: Any, arguments: Any, at: str) -> CallPart:
    """A tool call; arguments may be an object or the text of one."""
    if not isinstance(call_id, str) or not call_id:
        raise refused(at, "a tool call without an id cannot be paired with its result")
    if not isinstance(name, str) or not name:
        raise refused(at, "a tool call without a name")
    if arguments is None or arguments == "":
        return CallPart(call_id=call_id, name=name, arguments={})
    if isinstance(arguments, Mapping):
        return CallPart(call_id=call_id, name=name, arguments=dict(arguments))
    try:
        parsed = json.loads(arguments)
    except (ValueError, TypeError):
        parsed = None
    if isinstance(parsed, dict):
        return CallPart(call_id=call_id, name=name, arguments=parsed)
    return CallPart(call_id=call_id, name=name, raw_arguments=str(arguments))


def _image(block: Mapping[str, Any], at: str) -> Image:
    source = block.get("source")
    if isinstance(source, Mapping):  # Anthropic
        return Image(**_source(source, at, "image/png"))
    url = block.get("image_url") or block.get("url")
    if isinstance(url, Mapping):
        url = url.get("url")
    if isinstance(url, str):
        return Image(**_located(url, at, "image/png"))
    return Image(**_inline(block, at, "image/png"))


def _file(block: Mapping[str, Any], at: str) -> Shown:
    source = block.get("source")
    name = block.get("title") or block.get("filename") or block.get("name")
    if isinstance(source, Mapping):  # Anthropic
        if source.get("type") == "text":
            return Text(str(source.get("data", "")))
        return _named(name, _source(source, at, "application/pdf"))
    inner = block["file"] if isinstance(block.get("file"), Mapping) else block
    name = inner.get("filename") or name
    url = inner.get("file_data") or inner.get("file_url") or inner.get("url")
    if isinstance(url, str):
        return _named(name, _located(url, at, "application/octet-stream"))
    return _named(name, _inline(inner, at, "application/octet-stream"))


def _named(name: Any, data: dict[str, Any]) -> File:
    return File(name=str(name), **data) if name else File(**data)


def _source(source: Mapping[str, Any], at: str, default: str) -> dict[str, Any]:
    if source.get("type") == "url" and isinstance(source.get("url"), str):
        return _located(source["url"], at, default)
    if source.get("type") == "base64":
        return {"data": decoded(source.get("data"), at), "media_type": source.get("media_type") or default}
    raise refused(at, f"a source of type {source.get('type')!r} cannot be converted: the bytes are elsewhere")


def _inline(block: Mapping[str, Any], at: str, default: str) -> dict[str, Any]:
    """LangChain's own blocks: base64 under `base64` or `data`."""
    data = block.get("base64") or block.get("data")
    if data is None:
        raise refused(at, "holds neither data nor a URL: the bytes are elsewhere")
    return {"data": decoded(data, at), "media_type": block.get("mime_type") or block.get("media_type") or default}


def _located(url: str, at: str, default: str) -> dict[str, Any]:
    """A data: URL is its bytes; any other stays a URL."""
    if url.startswith("data:"):
        inline = _DATA_URL.match(url)
        if inline is None:
            raise refused(at, "a data: URL that is not base64")
        return {"data": decoded(inline["data"], at), "media_type": inline["media"] or default}
    return {"url": url, "media_type": mimetypes.guess_type(url.partition("?")[0])[0] or default}


def decoded(data: Any, at: str) -> bytes:
    """Bytes from base64 text."""
    if isinstance(data, bytes):
        return data
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise refused(at, "is not base64") from None


def checked(error: ValidationError, at: str) -> InvalidValue:
    """A part that pydantic refused."""
    first = error.errors(include_url=False, include_input=False)[0]
    return refused(at, str(first["msg"]))
