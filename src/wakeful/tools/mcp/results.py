"""What a server's tool returned, as a tool of ours returns it: parts for the model and metadata, all of it bounded."""

import base64
import binascii
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import mcp_types as types
from pydantic_core import to_json

from wakeful.contracts.content import File, Image, Text
from wakeful.contracts.errors import ToolReported
from wakeful.contracts.tools import ToolError
from wakeful.decisions.secret_values import NO_SECRETS, SecretValues
from wakeful.tools.results import ResultPart, ToolOutput

MAX_PARTS = 100
MAX_BINARY_BYTES = 10 * 1024 * 1024
MAX_TEXT_CHARS = 4 * 1024 * 1024
MAX_STRUCTURED_BYTES = 1024 * 1024
MAX_ERROR_CHARS = 4_000
MAX_SHOWN_BYTES = 20_000
"""Of the text of one result. Pages and search results come from servers: they get less than any result may show."""


def output_of(result: types.CallToolResult, keys: SecretValues = NO_SECRETS) -> Any:
    """The content, or a ToolOutput where there is more to say. Raises ToolReported when the tool says it failed.

    `keys` are what the server was given: they are in nothing it says.
    """
    parts, left_out = _parts(result.content)
    parts = [_without(part, keys) for part in parts] if keys else parts
    structured = keys.hide_keys_in(result.structured_content)
    if structured is not None and len(to_json(structured, inf_nan_mode="strings")) > MAX_STRUCTURED_BYTES:
        structured, left_out = None, [*left_out, f"structured content of more than {MAX_STRUCTURED_BYTES:,} bytes"]
    if result.is_error:
        raise ToolReported(_error(parts, structured))
    if left_out:
        parts.append(Text(f"[left out: {'; '.join(left_out)}]"))
    if not parts and structured is not None:
        parts = [Text(to_json(structured, inf_nan_mode="strings").decode())]
    content: Any = parts[0].text if len(parts) == 1 and isinstance(parts[0], Text) else parts or None
    is_long = (
        sum(len(part.text.encode("utf-8", "replace")) for part in parts if isinstance(part, Text)) > MAX_SHOWN_BYTES
    )
    if structured is None and not left_out and not is_long:
        return content
    metadata = {} if structured is None else {"structured_content": structured}
    most = MAX_SHOWN_BYTES if is_long else None
    return ToolOutput(content, truncated=bool(left_out), metadata=metadata, most_bytes=most)


def _parts(blocks: list[Any]) -> tuple[list[ResultPart], list[str]]:
    parts: list[ResultPart] = []
    left_out: list[str] = []
    room, letters = MAX_BINARY_BYTES, MAX_TEXT_CHARS
    for block in blocks[:MAX_PARTS]:
        part = _part(block)
        if isinstance(part, Text):
            if len(part.text) > letters:
                left_out.append(f"{len(part.text) - letters:,} characters of text")
                part = Text(part.text[:letters])
            letters -= len(part.text)
        elif part.data is not None and len(part.data) > room:
            left_out.append(f"{len(part.data):,} bytes of {part.media_type[:80]}")
            continue
        else:
            room -= len(part.data or b"")
        parts.append(part)
    if len(blocks) > MAX_PARTS:
        left_out.append(f"{len(blocks) - MAX_PARTS:,} more parts")
    return parts, left_out


def _part(block: Any) -> ResultPart:
    match block:
        case types.TextContent():
            return Text(block.text)
        case types.ImageContent():
            data = _bytes(block.data)
            return _unreadable("a picture") if data is None else Image(data=data, media_type=block.mime_type)
        case types.AudioContent():
            data = _bytes(block.data)
            return _unreadable("sound") if data is None else File(name="sound", data=data, media_type=block.mime_type)
        case types.ResourceLink():
            return Text(f"[{block.title or block.name}: {block.uri}]")
        case types.EmbeddedResource(resource=types.TextResourceContents() as inner):
            return Text(inner.text)
        case types.EmbeddedResource(resource=types.BlobResourceContents() as inner):
            data = _bytes(inner.blob)
            if data is None:
                return _unreadable("a file")
            kind = inner.mime_type or "application/octet-stream"
            if kind.startswith("image/"):
                return Image(data=data, media_type=kind)
            return File(name=_file_name(str(inner.uri)), data=data, media_type=kind)
    return Text(f"[a part of the kind {getattr(block, 'type', '?')!s:.40}, which cannot be shown]")


def _without(part: ResultPart, keys: SecretValues) -> ResultPart:
    if isinstance(part, Text):
        return Text(keys.hide_keys(part.text))
    return part if part.data is None else part.model_copy(update={"data": keys.hide_bytes(part.data)})


def _bytes(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def _unreadable(what: str) -> Text:
    return Text(f"[{what} that cannot be read: it is not base64]")


def _file_name(uri: str) -> str:
    return PurePosixPath(urlsplit(uri).path).name[:120] or "file"


def _error(parts: list[ResultPart], structured: Any) -> ToolError:
    words = "\n".join(part.text for part in parts if isinstance(part, Text)).strip()
    return ToolError(
        kind="tool_error",
        message=words[:MAX_ERROR_CHARS] or "the tool failed and did not say why",
        details={"structured_content": structured} if isinstance(structured, dict) else None,
    )
