"""Parts as content blocks of the Messages API, each block as the JSON bytes that are sent.

Rule: an attachment that the model cannot take is refused, or named in its place, and never dropped in silence
(`wire/attachments`); reasoning of another provider is left out, and our own goes back as it came.
"""

import base64
import hashlib
import re
from collections.abc import Callable, Iterable
from typing import Any

from wakeful.contracts.content import File, Image, Text, Thinking
from wakeful.contracts.conversation import AssistantItem, AssistantPart, CallPart, ToolItem
from wakeful.providers.anthropic.block_reader import TEXT_FIELDS
from wakeful.providers.wire.attachments import Attachments, as_text, kind_of, plain_type, read_out
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.text import dump

NOT_RECORDED = "No result of this call was recorded."
MALFORMED = "INVALID_JSON"
"""The key under which arguments go back that are no JSON object: the API takes nothing else as an input."""
_WIRE_ID = re.compile(r"[A-Za-z0-9_-]{1,256}")


class BlockWriter:
    """Writes blocks for one provider and one set of tool names."""

    __slots__ = ("_attachments", "_names", "provider")

    def __init__(self, provider: str, names: WireNames, attachments: Attachments) -> None:
        self.provider = provider
        self._names = names
        self._attachments = attachments

    def said(self, parts: Iterable[Text | Image | File]) -> list[bytes]:
        """What a person, or the runtime, says."""
        return [dump(block) for block in self._blocks(parts)]

    def results(self, item: ToolItem) -> list[bytes]:
        """The answer to a call."""
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": wire_id(item.call_id)}
        if len(item.parts) == 1 and isinstance(item.parts[0], Text):
            block["content"] = item.parts[0].text
        elif content := self._result_blocks(item.parts):
            block["content"] = content
        if item.is_error:
            block["is_error"] = True
        return [dump(block)]

    def no_result(self, call_id: str, name: str) -> bytes:
        """The API takes no call without its answer, so one that has none gets this one."""
        block = {"type": "tool_result", "tool_use_id": wire_id(call_id), "content": NOT_RECORDED, "is_error": True}
        return dump(block)

    def late_result(self, item: ToolItem) -> list[bytes]:
        """An answer whose call is not right before it is words like any other."""
        kind = "Error" if item.is_error else "Result"
        opening = Text(f"{kind} of an earlier call of {item.name} ({item.call_id}):")
        return [dump(block) for block in self._result_blocks((opening, *item.parts))]

    def reply(self, item: AssistantItem) -> list[bytes]:
        """What the model said, its calls last: the API refuses words between a call and its answer."""
        return [dump(block) for block in self._reply_blocks(item)]

    def takes_mark(self, item: AssistantItem) -> bool:
        """May a cache mark stand on the last block? Reasoning has no place for one, nor has what we do not know."""
        blocks = self._reply_blocks(item)
        return bool(blocks) and blocks[-1]["type"] in ("text", "tool_use")

    def _reply_blocks(self, item: AssistantItem) -> list[dict[str, Any]]:
        ours = item.provider == self.provider
        words: list[dict[str, Any]] = []
        calls: list[dict[str, Any]] = []
        for part in item.parts:
            if isinstance(part, CallPart):
                calls.append(self._call(part, ours))
            elif not isinstance(part, Thinking):
                words += self._blocks((part,), said_by_model=True)
            elif part.provider == self.provider:
                words += _reasoning(part, words)
        return words + calls

    def _call(self, part: CallPart, ours: bool) -> dict[str, Any]:
        arguments = part.arguments if part.arguments is not None else {MALFORMED: part.raw_arguments or ""}
        block = {
            "type": "tool_use",
            "id": wire_id(part.call_id),
            "name": self._names.to_wire(part.name),
            "input": arguments,
        }
        return {**block, **part.opaque} if ours else block

    def _result_blocks(self, parts: Iterable[AssistantPart]) -> list[dict[str, Any]]:
        return self._blocks(parts, left_out=self._attachments.left_out_of_result)

    def _blocks(
        self,
        parts: Iterable[AssistantPart],
        *,
        said_by_model: bool = False,
        left_out: Callable[[Image | File], str | None] | None = None,
    ) -> list[dict[str, Any]]:
        left_out = left_out or self._attachments.left_out
        blocks = []
        for part in parts:
            if isinstance(part, Text):
                if part.text.strip():  # the API refuses a block without words
                    blocks.append({"type": "text", "text": part.text})
            elif isinstance(part, Image | File) and said_by_model:
                blocks.append(_named(part, "was made by the model and cannot be shown to it again"))
            elif isinstance(part, Image | File):
                words = left_out(part)
                blocks.append(self._attachment(part) if words is None else {"type": "text", "text": words})
        return blocks

    def _attachment(self, part: Image | File) -> dict[str, Any]:
        """One that the model takes."""
        if kind_of(part) == "image":
            return {"type": "image", "source": _source(part)}
        assert isinstance(part, File)
        words = read_out(part)
        if words is not None and not self._attachments.takes_files:
            return {"type": "text", "text": words}
        if words is None:
            return {"type": "document", "source": _source(part), "title": part.name}
        source = {"type": "text", "media_type": "text/plain", "data": as_text(part.data or b"")}
        return {"type": "document", "source": source, "title": part.name}


def _reasoning(part: Thinking, before: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What `block_reading` made of a block, as the block again."""
    fields = part.opaque.get(TEXT_FIELDS)
    if fields is not None:  # they belong to the text they came with, which went just before
        if before and before[-1]["type"] == "text":
            before[-1].update(fields)
        return []
    if "type" in part.opaque:
        return [part.opaque]
    return [{"type": "thinking", "thinking": part.text, **part.opaque}]


def wire_id(call_id: str) -> str:
    """A call's id as the API takes it; ids of other providers may have letters that it refuses."""
    if _WIRE_ID.fullmatch(call_id):
        return call_id
    return f"call_{hashlib.sha256(call_id.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"


def _source(part: Image | File) -> dict[str, str]:
    if part.url is not None:
        return {"type": "url", "url": part.url}
    if part.data is None:
        raise ValueError(f"a {part.type} stands behind a reference and was not fetched")
    return {"type": "base64", "media_type": plain_type(part), "data": base64.b64encode(part.data).decode("ascii")}


def _named(part: Image | File, why: str) -> dict[str, str]:
    what = f"file {part.name!r}" if isinstance(part, File) else "image"
    return {"type": "text", "text": f"[{what} ({part.media_type}) is left out: {why}]"}
