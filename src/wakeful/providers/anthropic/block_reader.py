"""Content blocks as they come: collected from a stream or taken whole, and made into parts.

Rule: nothing a provider sent with a block is lost. What we have no place for travels in `opaque` and is handed back
untouched; a block of a kind that nobody knows here is kept whole.
"""

import json
from typing import Any

from pydantic_core import from_json

from wakeful.contracts.content import Part, Text, Thinking
from wakeful.contracts.conversation import CallPart
from wakeful.contracts.models import ArgumentsDelta, ModelGlimpse, ReasoningDelta, TextDelta
from wakeful.providers.wire.names import WireNames

TEXT_FIELDS = "text_fields"
"""The key under which what came with a text (citations) stands, in the part that follows it."""
_MAIN = {"text": "text", "thinking": "thinking"}
"""The field of a block that its glimpses grow."""
_KNOWN = frozenset({*_MAIN, "tool_use"})


class GrowingBlock:
    """One content block, while it grows."""

    __slots__ = ("_citations", "_id", "_json", "_name", "_pieces", "_start", "closed", "kind")

    def __init__(self, start: dict[str, Any], names: WireNames) -> None:
        self.kind = str(start.get("type", ""))
        self.closed = False
        self._start = start
        self._id = str(start.get("id") or "")
        self._name = names.from_wire(str(start.get("name") or "")) if self.kind == "tool_use" else ""
        self._pieces: list[str] = []
        self._json: list[str] = []
        self._citations: list[Any] = []

    def opening(self) -> list[ModelGlimpse]:
        """What can be seen when the block begins: a call names its tool before any argument comes."""
        if self.kind == "tool_use":
            return [ArgumentsDelta(call_id=self._id, name=self._name, text="")]
        first = self._start.get(_MAIN.get(self.kind, ""))
        if not first:
            return []
        return [TextDelta(text=first) if self.kind == "text" else ReasoningDelta(text=first)]

    def grow(self, delta: dict[str, Any]) -> list[ModelGlimpse] | None:
        """Take a delta in. None: it means nothing to a block of this kind, and was not taken."""
        kind, what = self.kind, delta.get("type")
        if what == "text_delta" and kind == "text":
            words = delta["text"]
            self._pieces.append(words)
            return [TextDelta(text=words)]
        if what == "input_json_delta" and kind not in _MAIN:
            written = delta["partial_json"]
            self._json.append(written)
            if kind != "tool_use" or not written:
                return []
            return [ArgumentsDelta(call_id=self._id, name=self._name, text=written)]
        if kind == "thinking" and what == "thinking_delta":
            self._pieces.append(delta["thinking"])
            return [ReasoningDelta(text=delta["thinking"])]
        if kind == "thinking" and what == "signature_delta":
            self._start["signature"] = delta["signature"]  # whole, not a piece of one
            return []
        if kind == "text" and what == "citations_delta":
            self._citations.append(delta["citation"])
            return []
        if kind in _KNOWN:
            return None
        self._merge(delta)
        return []

    def parts(self, provider: str) -> list[Part | CallPart]:
        """The block as parts of a reply."""
        match self.kind:
            case "text":
                return self._text(provider)
            case "thinking":
                words = str(self._start.get("thinking") or "") + "".join(self._pieces)
                return [Thinking(text=words, provider=provider, opaque=_rest(self._start, "type", "thinking"))]
            case "tool_use":
                return [self._call()]
            case _:
                if self._json:
                    self._start["input"] = self._written()
                return [Thinking(provider=provider, opaque=self._start)]

    def _text(self, provider: str) -> list[Part | CallPart]:
        words = Text(str(self._start.get("text") or "") + "".join(self._pieces))
        extra = _rest(self._start, "type", "text")
        if self._citations:
            extra["citations"] = [*extra.get("citations", ()), *self._citations]
        elif not extra.get("citations", True):
            del extra["citations"]
        return [words, Thinking(provider=provider, opaque={TEXT_FIELDS: extra})] if extra else [words]

    def _call(self) -> CallPart:
        given = self._written()
        arguments = given if isinstance(given, dict) else None
        return CallPart(
            call_id=self._id,
            name=self._name,
            arguments=arguments,
            raw_arguments=None if arguments is not None else given if isinstance(given, str) else json.dumps(given),
            opaque=_rest(self._start, "type", "id", "name", "input"),
        )

    def _written(self) -> Any:
        """The input: what was streamed, or what the block began with; the text itself when it is not JSON."""
        text = "".join(self._json)
        if not text.strip():
            given = self._start.get("input")
            return {} if given is None else given
        try:
            value = from_json(text, allow_inf_nan=False)
        except ValueError:
            return text
        return value if isinstance(value, dict) else text

    def _merge(self, delta: dict[str, Any]) -> None:
        """A block nobody knows grows the way the known ones do: texts are appended, everything else is set."""
        for key, value in delta.items():
            if key == "type":
                continue
            had = self._start.get(key)
            self._start[key] = had + value if isinstance(had, str) and isinstance(value, str) else value


def _rest(block: dict[str, Any], *known: str) -> dict[str, Any]:
    return {key: value for key, value in block.items() if key not in known and value is not None}
