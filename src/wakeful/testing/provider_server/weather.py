"""The weather of a provider: what goes wrong with a request, in words, and when.

A word names a kind of trouble and may carry values: `429`, `429 after=2`, `cut events=3`. Trouble is
announced for the next requests, for a request by its number, for a span of time, or for everything. Rule: a word or a
value that is not known is an error where it is written, never a request in good weather.
"""

import re
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import NamedTuple

from wakeful.errors import InvalidConfig

WORDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "ok": ("nothing: this request is answered", ()),
    "429": (
        "rate limited; `after=` and `date=` say when in Retry-After, `reset=` in the vendor's own headers",
        ("after", "date", "reset"),
    ),
    "quota": ("429: the quota is used up", ()),
    "500": ("an internal error", ()),
    "502": ("a gateway's HTML page", ()),
    "503": ("not available", ("after",)),
    "504": ("the gateway waited too long", ()),
    "529": ("overloaded", ("after",)),
    "401": ("the key is refused", ()),
    "404": ("the model does not exist", ()),
    "too_long": ("400: the conversation is too long for the model", ()),
    "outage": ("503, for this request and all others in `seconds=` (3)", ("seconds",)),
    "refused": ("nobody listens at the port, for `seconds=` (1)", ("seconds",)),
    "reset": ("the connection is reset when the request was read", ()),
    "hang": ("not one byte, for `seconds=` or until the client leaves", ("seconds",)),
    "hang_inside": ("the answer stops in its middle, for `seconds=` or until the client leaves", ("seconds", "events")),
    "drip": ("`seconds=` (0.05) before each event", ("seconds",)),
    "cut": (
        "the connection ends in the middle of the answer, after `events=` or `bytes=`; `at=usage`: before the counts; "
        "`end=clean`: with HTTP's proper end",
        ("events", "bytes", "at", "end"),
    ),
    "half": ("half of a JSON body, with 200 and a proper end", ()),
    "html": ("an HTML page with status 200", ()),
    "empty": ("an answer that says nothing", ()),
    "filtered": ("the content filter stops the answer", ()),
    "refusal": ("the model refuses to answer", ()),
    "usage": ("wrong counts: `as=missing`, `float`, `text`, `huge`, `zero` or `null`", ("as",)),
}
"""What there is: what it does, and which values it takes."""
SHAPES = frozenset({"missing", "float", "text", "huge", "zero", "null"})
_TEXTS: Mapping[str, frozenset[str]] = {"as": SHAPES, "at": frozenset({"usage"}), "end": frozenset({"clean"})}
_AT_A_NUMBER = re.compile(r"(\d+):\s*(.+)")
_IN_A_SPAN = re.compile(r"(\d+(?:\.\d+)?)s?\s*-\s*(\d+(?:\.\d+)?)s:\s*(.+)")


class Trouble(NamedTuple):
    """One word with its values."""

    word: str
    values: tuple[tuple[str, str], ...] = ()

    def number(self, name: str, default: float) -> float:
        return float(dict(self.values).get(name, default))

    def text(self, name: str) -> str | None:
        return dict(self.values).get(name)

    def __str__(self) -> str:
        return " ".join((self.word, *(f"{name}={value}" for name, value in self.values)))


FINE = Trouble("ok")


def trouble(text: "str | Trouble") -> Trouble:
    """`429 after=2` as a Trouble. Raises InvalidConfig for what nobody knows."""
    if isinstance(text, Trouble):
        return text
    word, *given = text.split()
    if word not in WORDS:
        near = get_close_matches(word, WORDS, n=1)
        meant = f"Did you mean {near[0]!r}? " if near else ""
        raise InvalidConfig(f"there is no weather {word!r}", f"{meant}There are: {', '.join(WORDS)}.")
    values = tuple(_value(word, each) for each in given)
    if word == "usage" and not values:
        raise InvalidConfig("usage does not say how the counts are wrong", "Write one such as: usage as=missing")
    return Trouble(word, values)


def _value(word: str, text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    taken = WORDS[word][1]
    if name not in taken or not value:
        there = f"It takes: {', '.join(f'{each}=' for each in taken)}." if taken else "It takes no values."
        raise InvalidConfig(f"{word} does not take {text!r}", there)
    if name in _TEXTS:
        if value not in _TEXTS[name]:
            raise InvalidConfig(f"{word} has {text!r}", f"Write {name}= and one of: {', '.join(sorted(_TEXTS[name]))}.")
    elif not re.fullmatch(r"\d+(\.\d+)?", value):
        raise InvalidConfig(f"{word} has {text!r}", f"Write a number, such as {name}=2.")
    return name, value


@dataclass(frozen=True, slots=True)
class _Span:
    start: float
    end: float
    trouble: Trouble


@dataclass
class Weather:
    """Announcements of trouble. Any thread may change them while the server runs."""

    _next: deque[Trouble] = field(default_factory=deque)
    _by_number: dict[int, Trouble] = field(default_factory=dict)
    _spans: list[_Span] = field(default_factory=list)
    _always: Trouble | None = None
    _began: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def next(self, *words: "str | Trouble") -> None:
        """One word for each of the next requests."""
        troubles = [trouble(word) for word in words]
        with self._lock:
            self._next.extend(troubles)

    def at(self, number: int, word: "str | Trouble") -> None:
        """For the request of this number; the first is 1."""
        with self._lock:
            self._by_number[number] = trouble(word)

    def outage(self, seconds: float, word: "str | Trouble" = "503", *, after: float = 0) -> None:
        """Every request for so many seconds, beginning now or `after` so many."""
        begins = time.monotonic() + after
        with self._lock:
            self._spans.append(_Span(begins, begins + seconds, trouble(word)))

    def always(self, word: "str | Trouble | None") -> None:
        """Every request for which nothing else is announced, until told otherwise. None: fine weather."""
        with self._lock:
            self._always = None if word is None else trouble(word)

    def clear(self) -> None:
        """Nothing is announced any more."""
        with self._lock:
            self._next.clear()
            self._by_number.clear()
            self._spans.clear()
            self._always = None

    def schedule(self, text: str) -> None:
        """A list as the command line takes it: `429, cut, 10s-13s: 503, 7: hang seconds=2`.

        Words by themselves are for the next requests in order, a number names a request, a span counts from the start
        of the server.
        """
        for each in filter(None, (part.strip() for part in text.split(","))):
            if span := _IN_A_SPAN.fullmatch(each):
                start, end = (self._began + float(span[place]) for place in (1, 2))
                with self._lock:
                    self._spans.append(_Span(start, end, trouble(span[3])))
            elif numbered := _AT_A_NUMBER.fullmatch(each):
                self.at(int(numbered[1]), numbered[2])
            else:
                self.next(each)

    def take(self, number: int) -> Trouble:
        """The trouble of the request of this number. A word for the next request is used up by it."""
        now = time.monotonic()
        with self._lock:
            for span in self._spans:
                if span.start <= now < span.end:
                    return span.trouble
            if number in self._by_number:
                found = self._by_number.pop(number)
            else:
                found = self._next.popleft() if self._next else self._always or FINE
            if found.word == "outage":
                found, seconds = Trouble("503"), found.number("seconds", 3)
                self._spans.append(_Span(now, now + seconds, found))
            return found

    def nobody_listens(self) -> bool:
        """Whether an outage in which connections are refused lasts."""
        now = time.monotonic()
        with self._lock:
            return any(span.start <= now < span.end and span.trouble.word == "refused" for span in self._spans)
