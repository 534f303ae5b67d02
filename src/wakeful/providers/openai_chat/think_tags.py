"""Reasoning that a model writes into its text, between `<think>` and `</think>`: split off, and put back as it came.

A block is split off where the text begins with it, and everywhere where the model's profile says that it writes such
blocks (`think_tags`). A block that never ends is text, unless the answer was cut off inside it. Whitespace around a
block belongs to the block, so that its pieces put together are the text again, byte for byte.
"""

from typing import Literal, NamedTuple

OPEN, CLOSE = "<think>", "</think>"


class AnswerText(NamedTuple):
    """Words of the answer."""

    text: str


class Thought(NamedTuple):
    """A block: `before` + `text` + `after` is what the model wrote."""

    before: str
    text: str
    after: str


def split(text: str, *, everywhere: bool = False, cut_off: bool = False) -> list[AnswerText | Thought]:
    """The pieces of a whole text, in order. `cut_off`: the provider ended it before the model did."""
    found: list[AnswerText | Thought] = []
    rest = text
    while True:
        at = rest.find(OPEN) if everywhere else _start(rest) if not found else -1
        if at < 0:
            break
        end = rest.find(CLOSE, at + len(OPEN))
        if end < 0 and not cut_off:
            break
        said, block = rest[:at], rest[at:]
        if not said.strip():
            said, block = "", rest
        thought, rest = _block(block)
        found += [AnswerText(said), thought] if said else [thought]
    return [*found, AnswerText(rest)] if rest or not found else found


def _start(text: str) -> int:
    """Where a text begins with a block; -1 when it does not."""
    at = len(text) - len(text.lstrip())
    return at if text.startswith(OPEN, at) else -1


def _block(text: str) -> tuple[Thought, str]:
    """A text that begins with a block (and whitespace before it), as the block and what follows it."""
    inside = text.find(OPEN) + len(OPEN)
    end = text.find(CLOSE, inside)
    inner = text[inside:] if end < 0 else text[inside:end]
    words = inner.strip()
    lead = len(inner) - len(inner.lstrip()) if words else 0
    before, after = text[:inside] + inner[:lead], inner[lead + len(words) :]
    if end < 0:
        return Thought(before, words, after), ""
    rest = text[end + len(CLOSE) :]
    gap = len(rest) - len(rest.lstrip())
    return Thought(before, words, after + CLOSE + rest[:gap]), rest[gap:]


class StreamPiece(NamedTuple):
    """What one piece of a stream shows."""

    text: str
    is_thought: bool


class ThinkTagStream:
    """The same while the text is still coming, for glimpses: what may be the beginning of a tag is held back."""

    __slots__ = ("_everywhere", "_held", "_where")

    def __init__(self, *, everywhere: bool = False) -> None:
        self._everywhere = everywhere
        self._held = ""
        self._where: Literal["start", "opened", "inside", "closed", "text"] = "start"

    @property
    def is_over(self) -> bool:
        """Whatever comes is text: no block can begin any more."""
        return self._where == "text" and not self._everywhere

    def feed(self, text: str) -> list[StreamPiece]:
        """What can be shown of the text so far and was not shown yet."""
        if self.is_over:
            return [StreamPiece(text, False)]
        self._held += text
        shown: list[StreamPiece] = []
        while self._advance(shown):
            pass
        return shown

    def rest(self) -> list[StreamPiece]:
        """What was held back, when nothing more comes."""
        held, self._held = self._held, ""
        return [StreamPiece(held, self._where in ("opened", "inside"))] if held else []

    def _advance(self, shown: list[StreamPiece]) -> bool:
        """On to the next place, showing what lies between; False when more has to come first."""
        if self._where == "start":
            return self._begin()
        if self._where in ("opened", "closed"):
            self._held = self._held.lstrip()
            if not self._held:
                return False
            self._where = "inside" if self._where == "opened" else "text"
            return True
        inside = self._where == "inside"
        if not inside and not self._everywhere:
            shown.append(StreamPiece(self._held, False))
            self._held = ""
            return False
        tag = CLOSE if inside else OPEN
        at = self._held.find(tag)
        end = at if at >= 0 else len(self._held) - _beginning(self._held, tag)
        if end:
            shown.append(StreamPiece(self._held[:end], inside))
        self._held = self._held[end:] if at < 0 else self._held[at + len(tag) :]
        if at >= 0:
            self._where = "closed" if inside else "opened"
        return at >= 0

    def _begin(self) -> bool:
        start = self._held.lstrip()
        if start.startswith(OPEN):
            self._held, self._where = start[len(OPEN) :], "opened"
            return True
        if OPEN.startswith(start):
            return False  # nothing but whitespace, or the beginning of the tag
        self._where = "text"
        return True


def _beginning(text: str, tag: str) -> int:
    """How many characters at the end of a text may be the beginning of a tag."""
    return next((size for size in range(min(len(text), len(tag) - 1), 0, -1) if tag.startswith(text[-size:])), 0)
