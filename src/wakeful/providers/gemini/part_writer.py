"""Parts of a conversation as parts of Gemini's `contents`, each as the JSON bytes that are sent.

Rule: an attachment that the model cannot take is refused, or named in its place (`wire/attachments`); reasoning of
another provider is left out, and our own goes back as it came, with the signature on the part that it came with.
"""

import base64
from collections.abc import Iterable
from typing import Any

from wakeful.contracts.content import File, Image, Text, Thinking
from wakeful.contracts.conversation import AssistantItem, CallPart, ToolItem
from wakeful.providers.gemini.part_reader import CALL_FIELDS, PART_FIELDS, SIGNATURE, WHOLE_PART
from wakeful.providers.wire.attachments import Attachments, kind_of, plain_type, read_out
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.text import dump

NOT_RECORDED = "No result of this call was recorded."
MALFORMED = "INVALID_JSON"
"""The key under which arguments go back that are no JSON object: the API takes nothing else as arguments."""
UNSIGNED = "skip_thought_signature_validator"
"""What Google has a client send for a call that none of its models made, where a model demands signatures."""


class PartWriter:
    """Writes parts for one provider and one set of tool names."""

    __slots__ = ("_attachments", "_names", "_signs", "provider")

    def __init__(self, provider: str, names: WireNames, attachments: Attachments, *, signs: bool) -> None:
        self.provider = provider
        self._names = names
        self._attachments = attachments
        self._signs = signs

    def said(self, parts: Iterable[Text | Image | File]) -> list[bytes]:
        """What a person, or the runtime, says."""
        return [dump(self._shown(part, self._gap(part))) for part in parts]

    def results(self, item: ToolItem) -> list[bytes]:
        """The answer to a call; what it holds beside words follows it."""
        words = "".join(part.text for part in item.parts if isinstance(part, Text))
        shown: list[dict[str, Any]] = []
        for part in item.parts:
            if isinstance(part, Text):
                continue
            gap = self._gap(part, of_result=True)
            if gap is None:
                shown.append(self._shown(part, None))
            else:
                words = f"{words}\n{gap}" if words else gap
        return [dump(self._response(item.call_id, item.name, words, item.is_error)), *map(dump, shown)]

    def no_result(self, call_id: str, name: str) -> bytes:
        """The API takes no call without its answer, so one that has none gets this one."""
        return dump(self._response(call_id, name, NOT_RECORDED, True))

    def late_result(self, item: ToolItem) -> list[bytes]:
        """An answer whose call is not right before it is words like any other."""
        kind = "Error" if item.is_error else "Result"
        opening = Text(f"{kind} of an earlier call of {item.name} ({item.call_id}):")
        return [dump(self._shown(part, self._gap(part, of_result=True))) for part in (opening, *item.parts)]

    def reply(self, item: AssistantItem) -> list[bytes]:
        """What the model said, in its order."""
        ours = item.provider == self.provider
        written: list[dict[str, Any]] = []
        for part in item.parts:
            if isinstance(part, CallPart):
                written.append(self._call(part, ours))
            elif isinstance(part, Thinking):
                if part.provider == self.provider:
                    _think(part, written)
            elif isinstance(part, Text):
                if part.text:
                    written.append({"text": part.text})
            elif ours and kind_of(part) == "image":
                written.append(_inline(part))
            else:
                written.append({"text": f"[{_label(part)} was made by another model and is not shown]"})
        calls = [part for part in written if "functionCall" in part]
        if self._signs and calls and not any(SIGNATURE in part for part in calls):
            calls[0][SIGNATURE] = UNSIGNED
        return [dump(part) for part in written]

    def _gap(self, part: Text | Image | File, *, of_result: bool = False) -> str | None:
        """The words in the place of what the model cannot be shown; None for what it can be."""
        if isinstance(part, Text):
            return None
        return self._attachments.left_out_of_result(part) if of_result else self._attachments.left_out(part)

    def _call(self, part: CallPart, ours: bool) -> dict[str, Any]:
        arguments = part.arguments if part.arguments is not None else {MALFORMED: part.raw_arguments or ""}
        call: dict[str, Any] = {"id": part.call_id, "name": self._names.to_wire(part.name), "args": arguments}
        if not ours:
            return {"functionCall": call}
        beside = {name: value for name, value in part.opaque.items() if name != CALL_FIELDS}
        return {"functionCall": {**call, **part.opaque.get(CALL_FIELDS, {})}, **beside}

    def _response(self, call_id: str, name: str, words: str, is_error: bool) -> dict[str, Any]:
        response = {"error" if is_error else "output": words}
        return {"functionResponse": {"id": call_id, "name": self._names.to_wire(name), "response": response}}

    def _shown(self, part: Text | Image | File, gap: str | None) -> dict[str, Any]:
        if isinstance(part, Text):
            return {"text": part.text}
        if gap is not None:
            return {"text": gap}
        words = read_out(part) if isinstance(part, File) else None
        return {"text": words} if words is not None else _inline(part)


def _think(part: Thinking, before: list[dict[str, Any]]) -> None:
    """What `part_reader` made of a part, as the part again."""
    fields = part.opaque.get(PART_FIELDS)
    if fields is not None:  # they belong to the part they came with, which went just before
        if before and "functionCall" not in before[-1]:
            before[-1].update(fields)
    elif WHOLE_PART in part.opaque:
        before.append(part.opaque[WHOLE_PART])
    else:
        before.append({"text": part.text, **part.opaque})


def _inline(part: Image | File) -> dict[str, Any]:
    if part.url is not None:
        return {"fileData": {"mimeType": plain_type(part), "fileUri": part.url}}
    if part.data is None:
        raise ValueError(f"a {part.type} stands behind a reference and was not fetched")
    return {"inlineData": {"mimeType": plain_type(part), "data": base64.b64encode(part.data).decode("ascii")}}


def _label(part: Image | File) -> str:
    return f"file {part.name!r} ({part.media_type})" if isinstance(part, File) else f"image ({part.media_type})"
