"""Words of models while they come, for whoever listens to a thread. Nothing here is stored, and nothing waits for it.

Of each level of a running turn the words of its newest attempt are kept, once for all listeners, until the turn rests:
somebody who comes in the middle hears them from the beginning. A listener remembers how far it has heard. One that is
slow hears more at once; it costs no more than one that is not.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from wakeful.contracts.models import TextDelta
from wakeful.engine.watchers import ModelGlimpsed

WORD_CHARS = 200
"""A word that is longer is heard before its end."""


class Heard(NamedTuple):
    """New words of an attempt."""

    turn_id: str
    level: str | None
    step: int
    attempt: int
    text: str


@dataclass(slots=True)
class _Attempt:
    """What an attempt has said so far."""

    turn_id: str
    step: int
    attempt: int
    pieces: list[str] = field(default_factory=list)


class ThreadWords:
    """The words of one thread: `Seats` for the turn, listeners on the other side."""

    def __init__(self) -> None:
        self.attempts: dict[str | None, _Attempt] = {}
        self.listeners: set[Listener] = set()
        self.runs = 0
        """How many turns of the thread are under way here: one, or none."""

    @property
    def is_taken(self) -> bool:
        return bool(self.listeners)

    @property
    def is_idle(self) -> bool:
        return not self.listeners and not self.runs

    def hear(self, turn_id: str, seen: ModelGlimpsed) -> None:
        if not isinstance(seen.piece, TextDelta) or not seen.piece.text:
            return
        said = self.attempts.get(seen.level)
        if said is None or (said.turn_id, said.step, said.attempt) != (turn_id, seen.step, seen.attempt):
            said = self.attempts[seen.level] = _Attempt(turn_id, seen.step, seen.attempt)
        said.pieces.append(seen.piece.text)
        for listener in self.listeners:
            listener.news.set()


class Listener:
    """Somebody who follows the words of a thread."""

    def __init__(self, words: ThreadWords) -> None:
        self._words = words
        self._places: dict[str | None, tuple[_Attempt, int, str]] = {}
        """Of each level: the attempt, how many pieces of it were heard, and the beginning of a word."""
        self.news = asyncio.Event()
        self.news.set()  # there may be words already

    def heard(self, turn_id: str) -> list[Heard]:
        """What is new in a turn. A word is heard when it is whole, so that a secret in it can be known as one."""
        self.news.clear()
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
            words.attempts.clear()
            self._let_go(agent_id, thread_id)

    @contextmanager
    def listening(self, agent_id: str, thread_id: str) -> Iterator[Listener]:
        words = self._thread(agent_id, thread_id)
        listener = Listener(words)
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
