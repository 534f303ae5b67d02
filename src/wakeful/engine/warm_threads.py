"""Threads that are in use: what the last turn left, kept in memory, so that the next one folds only what is new.

What is kept is taken out by whoever has claimed the thread's next turn, and counts only when the turn before that one
is the turn it was kept after, with the same last event. Otherwise, and after a restart, the log is read. Both come to
the same state. The threads that were used longest ago are forgotten first.
"""

from collections import OrderedDict
from typing import NamedTuple, TypeAlias

from wakeful.engine.state_loader import Thread
from wakeful.ports import Store, TurnRow

MOST_THREADS = 1_000
MOST_CHARACTERS = 50_000_000
"""Of all conversations that are kept together, as the model is shown them."""
ITEM_CHARACTERS = 500
"""What an item takes beside its text."""

Place: TypeAlias = tuple[str, str, str, str]


class WarmThread(NamedTuple):
    """A thread after one of its turns."""

    thread: Thread
    turn_id: str
    last_seq: int
    """Of that turn."""
    window_from: int
    """Where the next turn begins to read, should it have to."""
    size: int


class WarmThreads:
    """The threads that this process keeps, of every store."""

    def __init__(self, most: int = MOST_THREADS, most_characters: int = MOST_CHARACTERS) -> None:
        self._most = most
        self._most_characters = most_characters
        self._threads: OrderedDict[Place, WarmThread] = OrderedDict()
        self._characters = 0

    def take(self, store: Store, row: TurnRow, before: TurnRow | None) -> WarmThread | None:
        """What is kept of the thread, for this turn alone; None where it is not what `before` left."""
        found = self._threads.pop(_place(store, row), None)
        if found is None:
            return None
        self._characters -= found.size
        is_it = before is not None and (before.turn_id, before.last_seq) == (found.turn_id, found.last_seq)
        return found if is_it else None

    def keep(self, store: Store, row: TurnRow, thread: Thread, last_seq: int, window_from: int) -> None:
        """Keep a thread whose turn has ended, and whose end is stored."""
        items = thread.state.conversation.items
        size = thread.state.conversation.measure.of(items).characters + len(items) * ITEM_CHARACTERS
        place = _place(store, row)
        if (before := self._threads.pop(place, None)) is not None:
            self._characters -= before.size
        self._threads[place] = WarmThread(thread, row.turn_id, last_seq, window_from, size)
        self._characters += size
        while self._threads and (len(self._threads) > self._most or self._characters > self._most_characters):
            _, oldest = self._threads.popitem(last=False)
            self._characters -= oldest.size


def _place(store: Store, row: TurnRow) -> Place:
    return store.runtime_id, store.location, row.agent_id, row.thread_id


warm_threads = WarmThreads()
