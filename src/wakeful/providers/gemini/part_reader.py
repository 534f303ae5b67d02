"""Parts of a candidate as they come, in a stream or at once, made into parts of a reply.

A streamed text comes in many parts, which are one; a part with a thought signature stands by itself, because the
signature belongs to exactly that part. Rule: nothing a part held is lost. What we have no place for travels in `opaque`
and is handed back untouched.
"""

import base64
import binascii
import json
from typing import Any

from wakeful.contracts.content import Image, Part, Text, Thinking
from wakeful.contracts.conversation import CallPart
from wakeful.contracts.models import ArgumentsDelta, ModelGlimpse, ReasoningDelta, TextDelta
from wakeful.providers.gemini.growing_call import GrowingCall
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.text import mended, showable, storable

PART_FIELDS = "part_fields"
"""The key under which what came beside a text or a picture stands, in the part that follows it."""
WHOLE_PART = "part"
"""The key of a part that nobody knows here, whole."""
CALL_FIELDS = "functionCall"
"""The key of a call's fields that have no place of their own."""
SIGNATURE = "thoughtSignature"


class GrowingParts:
    """The parts of one candidate, while they come."""

    __slots__ = ("_call_now", "_names", "_parts")

    def __init__(self, names: WireNames) -> None:
        self._names = names
        self._parts: list[dict[str, Any]] = []
        self._call_now: GrowingCall | None = None
        """The call whose end has not come."""

    @property
    def unfinished(self) -> str | None:
        """The tool whose call has not come to its end."""
        return self._names.from_wire(mended(self._call_now.name)) if self._call_now is not None else None

    def add(self, part: dict[str, Any]) -> list[ModelGlimpse]:
        """Take a part in, and show what can be seen of it."""
        if not isinstance(part, dict):
            raise TypeError("a part is not an object")
        if isinstance(part.get("functionCall"), dict):
            return self._add_call(part)
        last = self._parts[-1] if self._parts else None
        if last is not None and _kind(part) is not None and _kind(part) == _kind(last):
            last["text"] += part["text"]
        elif part:
            self._parts.append(dict(part))
        return self._glimpses(part)

    def parts(self, provider: str) -> list[Part | CallPart]:
        """As parts of a reply."""
        return [made for part in self._parts for made in self._made(part, provider)]

    def _add_call(self, part: dict[str, Any]) -> list[ModelGlimpse]:
        """A call, or a piece of the one that has begun."""
        call, now = part["functionCall"], self._call_now
        if now is not None:
            now.grow(part)
        elif call.get("name"):
            part = dict(part)
            self._parts.append(part)
            if call.get("willContinue") or "partialArgs" in call:
                now = GrowingCall(part)
        elif call:
            raise ValueError("a call has no name")
        else:
            return []  # the end of a call that has ended
        self._call_now = now if now is not None and now.is_open else None
        return [] if self._call_now is not None else self._glimpses(part if now is None else now.part)

    def _glimpses(self, part: dict[str, Any]) -> list[ModelGlimpse]:
        call, text = part.get("functionCall"), part.get("text")
        if isinstance(call, dict):
            name = showable(self._names.from_wire(str(call.get("name") or "")))
            arguments = showable(json.dumps(call.get("args") or {}, ensure_ascii=False))
            return [ArgumentsDelta(call_id=str(call.get("id") or ""), name=name, text=arguments)]
        if not isinstance(text, str) or not text:
            return []
        return [ReasoningDelta(text=showable(text)) if part.get("thought") else TextDelta(text=showable(text))]

    def _made(self, part: dict[str, Any], provider: str) -> list[Part | CallPart]:
        if isinstance(part.get("functionCall"), dict):
            return [self._call(part)]
        text = part.get("text")
        if isinstance(text, str) and part.get("thought"):
            return [Thinking(text=mended(text), provider=provider, opaque=_rest(part, "text"))]
        if isinstance(text, str) and text:
            return [Text(mended(text)), *_beside(part, provider, "text")]
        picture = _picture(part.get("inlineData"))
        if picture is not None:
            return [picture, *_beside(part, provider, "inlineData")]
        if text == "" and not _rest(part, "text"):
            return []
        return [Thinking(provider=provider, opaque={WHOLE_PART: storable(part)})]

    def _call(self, part: dict[str, Any]) -> CallPart:
        """A call without an id is given one by the runtime."""
        call = part["functionCall"]
        given = call.get("args")
        arguments = {} if given is None else storable(given)
        cut_off = self._call_now is not None and part is self._call_now.part
        is_object = isinstance(arguments, dict) and not cut_off
        opaque = _rest(part, "functionCall")
        more = {name: value for name, value in call.items() if name not in ("id", "name", "args") and value is not None}
        if more:
            opaque[CALL_FIELDS] = storable(more)
        return CallPart(
            call_id=mended(str(call.get("id") or "")),
            name=self._names.from_wire(mended(str(call.get("name") or ""))),
            arguments=arguments if is_object else None,
            raw_arguments=None if is_object else json.dumps(arguments, ensure_ascii=False),
            opaque=opaque,
        )


def _kind(part: dict[str, Any]) -> str | None:
    """Which text it goes on with; None for one that stands by itself."""
    if not isinstance(part.get("text"), str):
        return None
    if part.keys() == {"text"}:
        return "words"
    return "thought" if part.keys() == {"text", "thought"} and part["thought"] is True else None


def _rest(part: dict[str, Any], *known: str) -> dict[str, Any]:
    rest: dict[str, Any] = storable({key: value for key, value in part.items() if key not in known})
    return rest


def _beside(part: dict[str, Any], provider: str, *known: str) -> list[Part | CallPart]:
    rest = _rest(part, *known)
    return [Thinking(provider=provider, opaque={PART_FIELDS: rest})] if rest else []


def _picture(blob: Any) -> Image | None:
    if not isinstance(blob, dict) or not str(blob.get("mimeType", "")).startswith("image/"):
        return None
    try:
        data = base64.b64decode(str(blob.get("data", "")), validate=True)
    except (binascii.Error, ValueError):
        return None
    return Image(data=data, media_type=str(blob["mimeType"])) if data else None
