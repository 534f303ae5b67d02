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
    first_seq: int
    """Of that turn: where a turn begins to read whose message came before `window_from`."""

    def window_for(self, row: TurnRow) -> int:
        return self.window_from if self.window_from < row.first_seq else self.first_seq

    @property
    def size(self) -> int:
        said = self.thread.so_far.conversation
        return said.measure.of(said.items).characters + len(said.items) * ITEM_CHARACTERS


class WarmThreads:
    """The threads that this process keeps, of every store."""

    def __init__(self, most: int = MOST_THREADS, most_characters: int = MOST_CHARACTERS) -> None:
        self._most = most
        self._most_characters = most_characters
        self._threads: OrderedDict[Place, tuple[WarmThread, int]] = OrderedDict()
        """Each with its size."""
        self._characters = 0

    def take(self, store: Store, row: TurnRow, before: TurnRow | None) -> WarmThread | None:
        """What is kept of the thread, for this turn alone; None where it is not what `before` left."""
        found, size = self._threads.pop(_place(store, row), (None, 0))
        self._characters -= size
        if found is None or before is None:
            return None
        is_it = (before.turn_id, before.last_seq) == (found.turn_id, found.last_seq)
        return found if is_it else None

    def keep(self, store: Store, row: TurnRow, kept: WarmThread) -> None:
        """Keep a thread whose turn has ended, and whose end is stored."""
        place, size = _place(store, row), kept.size
        _, before = self._threads.pop(place, (None, 0))
        self._threads[place] = kept, size
        self._characters += size - before
        while self._threads and (len(self._threads) > self._most or self._characters > self._most_characters):
            _, (_, oldest) = self._threads.popitem(last=False)
            self._characters -= oldest

    def forget(self, store: Store, agent_id: str, thread_id: str) -> None:
        """The thread is no more. A process that does not hear of it keeps what it has, and no turn takes it: the turn
        before it is not found any more."""
        _, size = self._threads.pop(_place_of(store, agent_id, thread_id), (None, 0))
        self._characters -= size


def _place(store: Store, row: TurnRow) -> Place:
    return _place_of(store, row.agent_id, row.thread_id)


def _place_of(store: Store, agent_id: str, thread_id: str) -> Place:
    return store.runtime_id, store.location, agent_id, thread_id


warm_threads = WarmThreads()
