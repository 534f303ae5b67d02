"""A tree of processes: what it holds, looked at while it runs.

A thread looks every few milliseconds: a fork bomb can pass the limit by what it starts between two looks, and then it
is ended whole. A control group would hold it exactly; moving a process into one costs more than starting the command.
"""

import os
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

LOOK_EVERY = 0.02
_PAGE = os.sysconf("SC_PAGESIZE")


class Weight(NamedTuple):
    """What a tree holds."""

    tasks: int
    memory_bytes: int


def descendants(root: int) -> list[int]:
    """Every process below this one; without /proc, none."""
    found: list[int] = []
    waiting = [root]
    while waiting:
        for child in _children(waiting.pop()):
            found.append(child)
            waiting.append(child)
    return found


def weigh(root: int) -> Weight:
    """Tasks and resident memory of a process and everything below it."""
    tasks = memory = 0
    for pid in (root, *descendants(root)):
        try:
            tasks += os.lstat(f"/proc/{pid}/task").st_nlink - 2
            with open(f"/proc/{pid}/statm", "rb") as statm:
                memory += int(statm.read().split()[1]) * _PAGE
        except (OSError, IndexError, ValueError):
            continue  # it ended meanwhile
    return Weight(tasks, memory)


class Watch:
    """One tree that is looked at until `stop`; the first time it is too heavy, `too_heavy` hears why, in the thread."""

    def __init__(self, root: int, *, tasks: int, memory_bytes: int, too_heavy: Callable[[str], None]) -> None:
        self.root = root
        self._tasks = tasks
        self._memory = memory_bytes
        self._tell = too_heavy
        _watcher.add(self)

    def stop(self) -> None:
        _watcher.remove(self)

    def look(self) -> None:
        weight = weigh(self.root)
        if weight.tasks > self._tasks or weight.memory_bytes > self._memory:
            self.stop()
            self._tell("processes" if weight.tasks > self._tasks else "memory")


class _Watcher:
    """The thread that looks, one for the whole process; it sleeps while there is nothing to look at."""

    def __init__(self) -> None:
        self._watches: list[Watch] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def add(self, watch: Watch) -> None:
        with self._changed:
            self._watches.append(watch)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._work, name="wakeful-watch", daemon=True)
                self._thread.start()
            self._changed.notify()

    def remove(self, watch: Watch) -> None:
        with self._changed:
            if watch in self._watches:
                self._watches.remove(watch)

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._watches:
                    self._changed.wait()
            time.sleep(LOOK_EVERY)
            with self._changed:
                watches = list(self._watches)
            for watch in watches:
                watch.look()


def _forget() -> None:
    """A fork has none of its parent's threads."""
    global _watcher
    _watcher = _Watcher()


_watcher = _Watcher()
os.register_at_fork(after_in_child=_forget)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", "rb") as children:
                found.extend(map(int, children.read().split()))
    except OSError:
        pass  # it ended meanwhile
    return found
