"""Words of models and lines of calls while they come, for whoever listens to a thread. Nothing here is stored, and
nothing waits for it.

Of each level of a running turn the words of its newest attempt are kept, and of its newest calls the end of what they
put out, once for all listeners, until the turn rests: somebody who comes in the middle hears words from the beginning.
A listener remembers how far it has heard. One that is slow hears more at once; it costs no more than one that is not.
"""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from wakeful.contracts.models import TextDelta
from wakeful.engine.watchers import ModelGlimpsed, OutputGlimpsed

WORD_CHARS = 200
"""A word that is longer is heard before its end."""
OUTPUT_CHARS = 65_536
"""Kept of what a call puts out: its end, from a line on."""
MOST_CALLS = 16
"""Calls of a turn whose output is kept: the newest."""


class Heard(NamedTuple):
    """New words of an attempt."""

    turn_id: str
    level: str | None
    step: int
    attempt: int
    text: str


class HeardOutput(NamedTuple):
    """New lines of a call."""

    turn_id: str
    call_id: str
    tool_name: str
    text: str
    offset: int
    """How much the call had put out before."""


@dataclass(slots=True)
class _Attempt:
    """What an attempt has said so far."""

    turn_id: str
    step: int
    attempt: int
    pieces: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Output:
    """The end of what a call has put out."""

    turn_id: str
    tool_name: str
    pieces: "deque[str]" = field(default_factory=deque)
    begin: int = 0
    """How much came before the first piece."""
    end: int = 0

    def add(self, text: str) -> None:
        """Whole lines. What is too much is forgotten, from the oldest line on."""
        self.end += len(text)
        if len(text) > OUTPUT_CHARS:
            text = text[text.find("\n", len(text) - OUTPUT_CHARS) + 1 :]
            self.pieces.clear()
            self.begin = self.end - len(text)
        self.pieces.append(text)
        while self.end - self.begin > OUTPUT_CHARS:
            self.begin += len(self.pieces.popleft())

    def after(self, place: int) -> tuple[int, str]:
        """What came after a place, as far as it is kept, and where it begins."""
        at, found = self.begin, []
        for piece in self.pieces:
            if at >= place:
                found.append(piece)
            at += len(piece)
        text = "".join(found)
        return self.end - len(text), text


class ThreadWords:
    """The words of one thread: `Seats` for the turn, listeners on the other side."""

    def __init__(self) -> None:
        self.attempts: dict[str | None, _Attempt] = {}
        self.outputs: dict[str, _Output] = {}
        """By call, the oldest first."""
        self.listeners: set[Listener] = set()
        self.runs = 0
        """How many turns of the thread are under way here: one, or none."""

    @property
    def is_taken(self) -> bool:
        return bool(self.listeners)

    @property
    def is_idle(self) -> bool:
        return not self.listeners and not self.runs

    def hear(self, turn_id: str, seen: ModelGlimpsed | OutputGlimpsed) -> None:
        if isinstance(seen, OutputGlimpsed):
            self._hear_output(turn_id, seen)
            return
        if not isinstance(seen.piece, TextDelta) or not seen.piece.text:
            return
        said = self.attempts.get(seen.level)
        if said is None or (said.turn_id, said.step, said.attempt) != (turn_id, seen.step, seen.attempt):
            said = self.attempts[seen.level] = _Attempt(turn_id, seen.step, seen.attempt)
        said.pieces.append(seen.piece.text)
        self._ring()

    def forget(self) -> None:
        """The turn rests: what it said is in the log."""
        self.attempts.clear()
        self.outputs.clear()

    def _hear_output(self, turn_id: str, seen: OutputGlimpsed) -> None:
        known = self.outputs.get(seen.call_id)
        if known is None or known.turn_id != turn_id:
            self.outputs.pop(seen.call_id, None)
            known = self.outputs[seen.call_id] = _Output(turn_id, seen.tool_name)
            if len(self.outputs) > MOST_CALLS:
                del self.outputs[next(iter(self.outputs))]
        known.add(seen.text)
        self._ring()

    def _ring(self) -> None:
        for listener in self.listeners:
            listener.ring()


class Listener:
    """Somebody who follows the words of a thread. `ring` tells them that there are new ones."""

    def __init__(self, words: ThreadWords, ring: Callable[[], None]) -> None:
        self._words = words
        self.ring = ring
        self._places: dict[str | None, tuple[_Attempt, int, str]] = {}
        """Of each level: the attempt, how many pieces of it were heard, and the beginning of a word."""
        self._outputs: dict[str, tuple[_Output, int]] = {}
        """Of each call: its output, and how much of it was heard."""

    def heard(self, turn_id: str) -> list[Heard]:
        """What is new in a turn. A word is heard when it is whole, so that a secret in it can be known as one."""
        found = []
        for level, said in self._words.attempts.items():
            if said.turn_id != turn_id:
                continue
            known, place, begun = self._places.get(level, (said, 0, ""))
            if known is not said:
                place, begun = 0, ""
            if place == len(said.pieces):
                continue
            text = begun + "".join(said.pieces[place:])
            whole = _whole_words(text)
            self._places[level] = said, len(said.pieces), text[whole:]
            if whole:
                found.append(Heard(turn_id, level, said.step, said.attempt, text[:whole]))
        return found

    def heard_output(self, turn_id: str) -> list[HeardOutput]:
        """New lines of the calls of a turn."""
        found = []
        for call_id, output in self._words.outputs.items():
            known, place = self._outputs.get(call_id, (output, 0))
            if output.turn_id != turn_id or (known is output and place == output.end):
                continue
            begin, text = output.after(place if known is output else 0)
            self._outputs[call_id] = output, output.end
            found.append(HeardOutput(turn_id, call_id, output.tool_name, text, begin))
        return found


def _whole_words(text: str) -> int:
    """How much of a text ends with a word."""
    if len(text) - len(text.rstrip()) or len(text) > WORD_CHARS:
        return len(text)
    last = max(text.rfind(" "), text.rfind("\n"), text.rfind("\t"))
    return last + 1


class LiveWords:
    """The words of all threads whose turns are run in this process."""

    def __init__(self) -> None:
        self._threads: dict[tuple[str, str], ThreadWords] = {}

    @contextmanager
    def running(self, agent_id: str, thread_id: str) -> Iterator[ThreadWords]:
        """Seats for a turn of a thread, while it is run."""
        words = self._thread(agent_id, thread_id)
        words.runs += 1
        try:
            yield words
        finally:
            words.runs -= 1
            words.forget()
            self._let_go(agent_id, thread_id)

    @contextmanager
    def listening(self, agent_id: str, thread_id: str, ring: Callable[[], None]) -> Iterator[Listener]:
        """Hear the words of a thread; there may be some already."""
        words = self._thread(agent_id, thread_id)
        listener = Listener(words, ring)
        words.listeners.add(listener)
        try:
            yield listener
        finally:
            words.listeners.discard(listener)
            self._let_go(agent_id, thread_id)

    def _thread(self, agent_id: str, thread_id: str) -> ThreadWords:
        return self._threads.setdefault((agent_id, thread_id), ThreadWords())

    def _let_go(self, agent_id: str, thread_id: str) -> None:
        words = self._threads.get((agent_id, thread_id))
        if words is not None and words.is_idle:
            del self._threads[agent_id, thread_id]
