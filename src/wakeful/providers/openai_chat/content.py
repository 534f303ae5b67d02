"""The content of one message as it comes: words, and the reasoning that stands among them.

Reasoning inside content comes in two shapes: parts of the type `thinking` in a list of parts, and `<think>` blocks in a
text. Each becomes a Thinking of its own, in its place, with what is needed to make the same content of it again
(`messages`): byte for byte what the server gave, for that server alone.
"""

from typing import Any

from wakeful.contracts.content import Text, Thinking
from wakeful.contracts.models import ModelGlimpse, ReasoningDelta, TextDelta
from wakeful.providers.openai_chat.calls import WrongShape
from wakeful.providers.openai_chat.dialect import IN_CONTENT
from wakeful.providers.openai_chat.messages import OPAQUE
from wakeful.providers.openai_chat.think_tags import AnswerText, StreamPiece, ThinkTagStream, split
from wakeful.providers.wire.text import mended, showable, storable


class ReplyContent:
    """The content of one message, as far as it has come."""

    __slots__ = ("_pieces", "_tags", "_think_tags", "text", "unknown")

    def __init__(self, *, think_tags: bool = False) -> None:
        self._think_tags = think_tags
        self._tags = ThinkTagStream(everywhere=think_tags)
        self._pieces: list[list[str] | dict[str, Any]] = []
        """Texts in their pieces, and `thinking` parts, in order."""
        self.text: list[str] | None = None
        """Where more text goes as it is, the usual case; None while it has to be looked at (`add`)."""
        self.unknown: list[Any] = []
        """Parts of a type that this version does not know."""

    def __bool__(self) -> bool:
        return bool(self._pieces)

    @property
    def has_words(self) -> bool:
        """Whether anything but reasoning parts has come."""
        return any(isinstance(piece, list) for piece in self._pieces)

    def add(self, content: Any, glimpses: list[ModelGlimpse], *, whole: bool = False) -> None:
        """One piece, or the `whole` of it. Raises WrongShape for content that is neither a text nor a list."""
        if isinstance(content, str):
            self._add_text(content, glimpses)
            return
        if not isinstance(content, list):
            raise WrongShape(f"content is {type(content).__name__}, not text")
        for part in content:
            kind = part.get("type") if isinstance(part, dict) else None
            if isinstance(part, str):
                self._add_text(part, glimpses)
            elif kind == "text" and isinstance(part.get("text"), str):
                self._add_text(part["text"], glimpses)
            elif kind == "thinking" and (thought := _words(part.get("thinking"))):
                self._add_thinking(part, whole)
                glimpses.append(ReasoningDelta(text=showable(thought)))
            else:
                self.unknown.append(part)

    def end(self, glimpses: list[ModelGlimpse]) -> None:
        """Nothing more comes: what was held back is shown."""
        _show(self._tags.rest(), glimpses)

    def parts(self, provider: str, *, cut_off: bool) -> list[Text | Thinking]:
        """Words and reasoning in their order. `cut_off`: the answer was ended before the model ended it."""
        found: list[Text | Thinking] = []
        for number, piece in enumerate(self._pieces):
            if isinstance(piece, dict):
                found.append(_of_part(piece, provider))
                continue
            text = mended("".join(piece))
            if number and not self._think_tags:
                found.append(Text(text))
                continue
            for said in split(text, everywhere=self._think_tags, cut_off=cut_off):
                if isinstance(said, AnswerText):
                    found.append(Text(said.text))
                else:
                    kept = {IN_CONTENT: {"before": said.before, "after": said.after}}
                    found.append(Thinking(text=said.text, provider=provider, opaque={OPAQUE: kept}))
        return [part for part in found if not isinstance(part, Text) or part.text]

    def _add_text(self, text: str, glimpses: list[ModelGlimpse]) -> None:
        if not text:
            return
        last = self._pieces[-1] if self._pieces else None
        if isinstance(last, list):
            last.append(text)
        else:
            self._pieces.append([text])
        _show(self._tags.feed(text), glimpses)
        newest = self._pieces[-1]
        self.text = newest if self._tags.is_over and isinstance(newest, list) else None

    def _add_thinking(self, part: dict[str, Any], whole: bool) -> None:
        """In a stream, a part that goes on with the one before it is put together with it: handed back, it is whole."""
        self.text = None
        last = self._pieces[-1] if self._pieces and not whole else None
        before, more = (last.get("thinking"), part["thinking"]) if isinstance(last, dict) else (None, None)
        if isinstance(last, dict) and isinstance(before, str) and isinstance(more, str):
            self._pieces[-1] = {**last, **part, "thinking": before + more}
        elif isinstance(last, dict) and isinstance(before, list) and isinstance(more, list):
            self._pieces[-1] = {**last, **part, "thinking": _joined([*before, *more])}
        else:
            self._pieces.append(part)


def _show(shown: list[StreamPiece], glimpses: list[ModelGlimpse]) -> None:
    glimpses += [(ReasoningDelta if each.is_thought else TextDelta)(text=showable(each.text)) for each in shown]


def _joined(pieces: list[Any]) -> list[Any]:
    """Consecutive texts, which have nothing but their text, as one."""
    out: list[Any] = []
    for piece in pieces:
        if out and _is_text(piece) and _is_text(out[-1]):
            out[-1] = {**out[-1], "text": out[-1]["text"] + piece["text"]}
        else:
            out.append(piece)
    return out


def _is_text(piece: Any) -> bool:
    return isinstance(piece, dict) and piece.keys() == {"type", "text"} and isinstance(piece["text"], str)


def _words(thinking: Any) -> str:
    if isinstance(thinking, str):
        return thinking
    if not isinstance(thinking, list):
        return ""
    return "".join(part["text"] for part in thinking if isinstance(part, dict) and isinstance(part.get("text"), str))


def _of_part(part: dict[str, Any], provider: str) -> Thinking:
    """A `thinking` part. Its words are kept once: where each of them stood, there is its length."""
    whole = storable(part)
    pieces = whole["thinking"]
    frame = (
        len(pieces)
        if isinstance(pieces, str)
        else [
            {**piece, "text": len(piece["text"])}
            if isinstance(piece, dict) and isinstance(piece.get("text"), str)
            else piece
            for piece in pieces
        ]
    )
    kept = {IN_CONTENT: {"part": {**whole, "thinking": frame}}}
    return Thinking(text=_words(pieces), provider=provider, opaque={OPAQUE: kept})
