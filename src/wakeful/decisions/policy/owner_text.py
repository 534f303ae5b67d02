"""The owner's own words, and whether a value stands whole among them. Text is compared, never judged.

What counts as equal:

    white space      any run of it is one gap
    letter case      ignored, except in values of one or two characters
    Unicode          compared in its composed form (NFC)
    punctuation      counts
    boundaries       a value stands where words begin and end: `a` does not stand in `mail`, nor `corp.example` in
                     `bob@corp.example`, nor `bob@corp.example` in `bob@corp.example.evil.org`
    numbers          by their value: 1250 stands in `1,250.00`
    long values      of more than three words, each run of three has to stand there

A lookup costs what the value is long, however much the owner said: words are kept as hashed runs of one to three. The
newest `MOST_CHARS` characters count. The runs are made when they are first asked for, and never stored.
"""

import re
import unicodedata
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from itertools import islice
from typing import NamedTuple

MOST_CHARS = 300_000
LONGEST_RUN = 3
SHORT = 2
"""Values up to this length are compared with their letter case: the article `a` is not the option `A`."""

_WORD = r"\w@./+#&%~\\-"
_JOINING = "@./+#&%~\\-"
"""Inside a word these belong to it; before and after it they are punctuation."""
_PIECES = re.compile(rf"[{_WORD}]+|[^\s{_WORD}]")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
"""Scripts that put no space between words: each character is a word of its own."""
_NUMBER = re.compile(r"(?<![\w.,/:-])[-+]?(?:0|[1-9][\d,]*)(?:\.\d+)?(?!\w|[.,/:-]\d)")


class UnreadTexts(NamedTuple):
    """Texts that are read when somebody looks a value up."""

    texts: int
    chars: int
    read: Callable[[], Sequence[tuple[str, str]]]
    """Each with its turn."""


class OwnerText:
    """What the owner said, text by text."""

    __slots__ = ("_chars", "_counts", "_taken", "_texts", "_unread", "added")

    def __init__(self, unread: Sequence[UnreadTexts] = ()) -> None:
        self._unread = unread
        """What comes before the texts."""
        self._texts: deque[tuple[str, str]] = deque()
        self._chars = sum(each.chars for each in unread)
        self.added = sum(each.texts for each in unread)
        """How many texts ever came in."""
        self._taken = 0
        """How many of the texts, from the oldest, are among the counts."""
        self._counts: dict[int, int] = {}
        self._forget()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OwnerText) and self._all() == other._all()

    def __repr__(self) -> str:
        return f"<{len(self._all())} texts of the owner, {self._chars:,} characters>"

    def add(self, text: str, turn_id: str = "") -> None:
        """Take a text in; what is too old by then is forgotten."""
        if not text:
            return
        text = text[-MOST_CHARS:]
        self._texts.append((turn_id, text))
        self.added += 1
        self._chars += len(text)
        self._forget()

    @property
    def chars(self) -> int:
        """Of all texts that are not forgotten."""
        return self._chars

    def _all(self) -> "deque[tuple[str, str]]":
        if self._unread:
            unread, self._unread = self._unread, ()
            self._texts.extendleft(text for each in reversed(unread) for text in reversed(each.read()))
        return self._texts

    def _forget(self) -> None:
        """Forget what is too old."""
        while self._chars > MOST_CHARS:
            _, oldest = self._all().popleft()
            self._chars -= len(oldest)
            if self._taken:
                self._taken -= 1
                self._uncount(oldest)

    def keep(self, turn_ids: Collection[str]) -> None:
        """Forget what was said in other turns than these."""
        kept = [each for each in self._all() if each[0] in turn_ids]
        if len(kept) == len(self._texts):
            return
        self._texts, self._chars = deque(kept), sum(len(text) for _, text in kept)
        self._taken, self._counts = 0, {}

    def since(self, added: int) -> tuple[tuple[str, str], ...]:
        """The texts, with the turn of each, that came after so many; without those that were forgotten again."""
        if self.added - added > len(self._texts):
            self._all()
        new = min(self.added - added, len(self._texts))
        return tuple(islice(self._texts, len(self._texts) - new, None))

    def holds_text(self, value: str) -> bool:
        """Does the value stand whole somewhere? An empty one does not."""
        self._count()
        words = _words(value)
        if not words:
            return False
        if len(words) == 1:  # one character of a script without spaces stands in nearly every text
            return _of_one(words[0]) in self._counts and not _UNSPACED.fullmatch(words[0])
        folded = [word.casefold() for word in words]
        length = min(len(words), LONGEST_RUN)
        return all(hash(tuple(folded[at : at + length])) in self._counts for at in range(len(folded) - length + 1))

    def holds_number(self, value: int | float | Decimal) -> bool:
        """Does a number of this value stand somewhere?"""
        self._count()
        number = _decimal(value)
        return number is not None and hash(("number", number)) in self._counts

    def _count(self) -> None:
        self._all()
        for place in range(self._taken, len(self._texts)):
            for run in _runs(self._texts[place][1]):
                self._counts[run] = self._counts.get(run, 0) + 1
        self._taken = len(self._texts)

    def _uncount(self, text: str) -> None:
        for run in _runs(text):
            if self._counts[run] == 1:
                del self._counts[run]
            else:
                self._counts[run] -= 1


def _words(text: str) -> list[str]:
    """The words of a text and its punctuation, in order."""
    if not text.isascii():
        text = _UNSPACED.sub(r" \g<0> ", unicodedata.normalize("NFC", text))
    found: list[str] = []
    for piece in _PIECES.findall(text):
        bare = piece.strip(_JOINING)
        if bare == piece:
            found.append(piece)
            continue
        before, word, after = piece.partition(bare) if bare else ("", "", piece)
        found += [*before, *((word,) if word else ()), *after]
    return found


def _of_one(word: str) -> int:
    return hash((word,) if len(word) <= SHORT else (word.casefold(),))


def _runs(text: str) -> Iterator[int]:
    """Hashes of everything that a value may be looked up by."""
    words = _words(text)
    folded = [word.casefold() for word in words]
    yield from map(_of_one, words)
    for length in range(2, LONGEST_RUN + 1):
        yield from (hash(tuple(folded[at : at + length])) for at in range(len(folded) - length + 1))
    for found in _NUMBER.finditer(text):
        number = _decimal(found.group().replace(",", ""))
        if number is not None:
            yield hash(("number", number))


def _decimal(value: int | float | Decimal | str) -> Decimal | None:
    try:
        number = Decimal(str(value)) if isinstance(value, float) else Decimal(value)
        return number.normalize() if number.is_finite() else None
    except InvalidOperation:  # no number, or one of more digits than anybody writes
        return None


NOTHING_SAID = OwnerText()
