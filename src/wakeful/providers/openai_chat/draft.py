"""A reply in the making: pieces of one message go in, and when its end has come, one Reply comes out.

A message that came at once is one large piece, so both ways lead to the same reply. What is not known is kept: fields
of the message beside its reasoning, fields of a call with the call, all others in the reply's metadata.
"""

from typing import Any

from wakeful.contracts.content import Text, Thinking
from wakeful.contracts.conversation import AssistantItem, AssistantPart
from wakeful.contracts.models import ModelGlimpse, ReasoningDelta, Reply, StopReason, TextDelta, TokenUsage
from wakeful.providers.openai_chat.calls import ReplyCalls
from wakeful.providers.openai_chat.content import ReplyContent
from wakeful.providers.openai_chat.dialect import REASONING
from wakeful.providers.openai_chat.messages import OPAQUE, dumps
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.text import mended, showable, storable

STOPPED: dict[str, StopReason] = {
    "": "end",
    "stop": "end",
    "eos": "end",
    "end_turn": "end",
    "stop_sequence": "end",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "tool_calls": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "sensitive": "content_filter",
    "safety": "content_filter",
    "refusal": "refusal",
}
"""Finish reasons, in lower case: OpenAI's, and those of servers that write their own or their model's."""
MAX_KEPT_BYTES = 4_000
"""An unknown field of the envelope is metadata; a larger one is named and not kept."""
_KNOWN = frozenset({"role", "content", "refusal", "tool_calls", "function_call", "reasoning_details", *REASONING})


class Draft:
    """One message, as far as it has come."""

    __slots__ = ("_content", "_details", "_fields", "_reasoning", "_refusal", "calls")

    def __init__(self, names: WireNames, *, think_tags: bool = False) -> None:
        self.calls = ReplyCalls(names)
        self._content = ReplyContent(think_tags=think_tags)
        self._refusal: list[str] = []
        self._reasoning: dict[str, list[str]] = {}
        self._details: list[Any] = []
        self._fields: dict[str, Any] = {}

    @property
    def is_empty(self) -> bool:
        return not (self._content or self._refusal or self._reasoning or self.calls)

    @property
    def said_nothing(self) -> bool:
        return not (self._content.has_words or self._refusal or self.calls)

    def add(self, delta: dict[str, Any], *, whole: bool = False) -> list[ModelGlimpse]:
        """One piece. Raises WrongShape for a known field that holds something else than it should."""
        glimpses: list[ModelGlimpse] = []
        content = delta.get("content")
        if content:
            text = self._content.text
            if text is not None and isinstance(content, str):
                text.append(content)
                glimpses.append(TextDelta(text=showable(content)))
            else:
                self._content.add(content, glimpses, whole=whole)
        if len(delta) > (content is not None):
            self._add_others(delta, glimpses, whole)
        return glimpses

    def _add_others(self, delta: dict[str, Any], glimpses: list[ModelGlimpse], whole: bool) -> None:
        self._add_reasoning(delta, glimpses)
        refusal = delta.get("refusal")
        if isinstance(refusal, str) and refusal:
            self._refusal.append(refusal)
            glimpses.append(TextDelta(text=showable(refusal)))
        if delta.get("tool_calls"):
            self.calls.add(delta["tool_calls"], glimpses, whole=whole)
        elif delta.get("function_call"):
            self.calls.add_legacy(delta["function_call"], glimpses)
        if not delta.keys() <= _KNOWN:
            for name, value in delta.items():
                if name not in _KNOWN and value not in (None, "", [], {}):
                    held = self._fields.get(name)
                    self._fields[name] = held + value if isinstance(held, list) and isinstance(value, list) else value

    def _add_reasoning(self, delta: dict[str, Any], glimpses: list[ModelGlimpse]) -> None:
        shown = False
        for name in REASONING:
            value = delta.get(name)
            if isinstance(value, str) and value:
                self._reasoning.setdefault(name, []).append(value)
                if not shown:
                    glimpses.append(ReasoningDelta(text=showable(value)))
                    shown = True
            elif value:
                self._fields[name] = value
        details = delta.get("reasoning_details")
        if isinstance(details, list):
            for detail in details:
                _add_detail(self._details, detail)

    def end(self) -> list[ModelGlimpse]:
        """Nothing more comes: what was held back of the text can be shown."""
        glimpses: list[ModelGlimpse] = []
        self._content.end(glimpses)
        return glimpses

    def reply(self, provider: str, finish_reason: str, usage: TokenUsage | None, metadata: dict[str, Any]) -> Reply:
        """The reply. Only to be asked for when the end has come."""
        calls = self.calls.parts()
        parts: list[AssistantPart] = []
        thinking = self._thinking(provider)
        if thinking is not None:
            parts.append(thinking)
        stop = STOPPED.get(finish_reason.lower(), "other")
        parts += self._content.parts(provider, cut_off=stop == "length")
        if self._refusal:
            parts.append(Text(mended("".join(self._refusal))))
        parts += calls
        if self._refusal:
            stop = "refusal"
        elif calls and stop in ("end", "other"):
            stop = "tool_calls"  # with a forced call, and with many servers, the reason given is `stop`
        return Reply(
            item=AssistantItem(parts=tuple(parts), provider=provider),
            stop_reason=stop,
            finish_reason=finish_reason or None,
            usage=usage,
            request_metadata=storable({**metadata, "finish_reason": finish_reason}),
        )

    def _thinking(self, provider: str) -> Thinking | None:
        """Reasoning as it was given. What equals the text is named and not kept twice."""
        said = {name: mended("".join(pieces)) for name, pieces in self._reasoning.items()}
        text = next((said[name] for name in REASONING if name in said), "")
        if not text:
            text = mended("".join(filter(None, map(_words_of_detail, self._details))))
        fields: dict[str, Any] = {name: words for name, words in said.items() if words != text}
        if self._details:
            fields["reasoning_details"] = self._details
        fields.update(self._fields)
        if self._content.unknown:
            fields["content"] = self._content.unknown
        same = [name for name, words in said.items() if words == text]
        if not (text or fields):
            return None
        kept = {key: value for key, value in (("said_in", same), ("fields", fields)) if value}
        return Thinking(text=text, provider=provider, opaque={OPAQUE: storable(kept)} if kept else {})


def small(value: Any) -> Any:
    """An unknown field of the envelope, when it is small enough to stand in an event."""
    size = len(dumps(value))
    return value if size <= MAX_KEPT_BYTES else f"{size:,} bytes, not kept"


def _add_detail(details: list[Any], detail: Any) -> None:
    """A detail that goes on with the one before it is put together with it: handed back, they have to be whole.

    Details with the same index may be several all the same: each encrypted one has the id of what it belongs to.
    """
    last = details[-1] if details else None
    if not isinstance(detail, dict):
        details.append(detail)
    elif (
        isinstance(last, dict)
        and detail.get("type") == last.get("type")
        and detail.get("index") is not None
        and detail.get("index") == last.get("index")
        and (detail.get("id") is None or last.get("id") in (None, detail["id"]))
    ):
        merged = {**last, **{key: value for key, value in detail.items() if value is not None}}
        for name in ("text", "summary", "data"):
            if isinstance(last.get(name), str) and isinstance(detail.get(name), str):
                merged[name] = last[name] + detail[name]
        details[-1] = merged
    else:
        details.append(detail)


def _words_of_detail(detail: Any) -> str | None:
    if not isinstance(detail, dict):
        return None
    return next((detail[name] for name in ("text", "summary") if isinstance(detail.get(name), str)), None)
