"""A tree of processes: what it holds, looked at while it runs.

A thread looks every few milliseconds: a fork bomb can pass the limit by what it starts between two looks, and then it
is ended whole. A control group would hold it exactly; moving a process into one costs more than starting the command.
Memory in files of no folder (memfd), in shared memory, and in files that were deleted while open belongs to no
process's own count: it is looked at less often, because every open file has to be.
"""

import os
import stat
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

LOOK_EVERY = 0.02
HELD_EVERY = 10
"""Every so many looks, open files are looked at too."""
_PAGE = os.sysconf("SC_PAGESIZE")
_BLOCK = 512
_AS_IT_SEES = "root"
"""Below a process in /proc: the top of the folders that it sees."""


class Weight(NamedTuple):
    """What a tree holds."""

    tasks: int
    memory_bytes: int


class OpenFileUsage(NamedTuple):
    """What a tree holds by its open files alone."""

    memory_bytes: int
    """In memory that is in no process's resident set: memfd and shared memory that is not mapped."""
    deleted_bytes: int
    """On disk, in files without a name."""


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


def held(root: int, shared: str | None = None) -> OpenFileUsage:
    """What open files of the tree hold. `shared` is a folder in memory, as the tree's processes see it."""
    memory: dict[tuple[int, int], int] = {}
    deleted: dict[tuple[int, int], int] = {}
    mapped, folder = 0, None
    for pid in (root, *descendants(root)):
        mapped += _mapped_shared(pid)
        folder = folder if folder is not None or shared is None else _used(f"/proc/{pid}/{_AS_IT_SEES}{shared}")
        for place in _open_files(pid):
            try:
                found = os.stat(place)
                if stat.S_ISREG(found.st_mode) and found.st_nlink == 0:
                    kind = memory if os.readlink(place).startswith("/memfd:") else deleted
                    kind[found.st_dev, found.st_ino] = found.st_blocks * _BLOCK
            except OSError:
                continue  # it was closed meanwhile
    beside = sum(memory.values()) + (folder or 0)
    return OpenFileUsage(max(0, beside - mapped), sum(deleted.values()))  # what is mapped is in a resident set


class Growth:
    """How much more the folders that a command may write hold than when it began.

    The free space of their file systems is looked at, which costs nothing. Only when it has fallen by more than the
    limit are the files counted that were written since: somebody else may be writing too.
    """

    def __init__(self, roots: Sequence[str], most_bytes: int) -> None:
        self._roots = tuple(roots)
        self._most = most_bytes
        self._began_ns = time.time_ns()
        self._free = {root: _free(root) for root in self._roots}
        self._suspicious = dict.fromkeys(self._roots, most_bytes)

    def is_too_much(self, deleted_bytes: Callable[[], int]) -> bool:
        """`deleted_bytes` is asked for what is held at this moment: an older answer would hide what came since."""
        fallen = {root: before - _free(root) for root, before in self._free.items()}
        if all(fallen[root] <= self._suspicious[root] for root in self._roots):
            return False
        written = deleted_bytes() + self._written()
        for root in self._roots:  # before so much more is gone, it cannot be too much
            self._suspicious[root] = max(self._suspicious[root], fallen[root] + max(0, self._most - written))
        return written > self._most

    def _written(self) -> int:
        total, seen = 0, set[tuple[int, int]]()
        waiting = list(self._roots)
        while waiting and total <= self._most:
            try:
                with os.scandir(waiting.pop()) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(entry.path)
                            continue
                        found = entry.stat(follow_symlinks=False)
                        if found.st_ctime_ns >= self._began_ns and (found.st_dev, found.st_ino) not in seen:
                            seen.add((found.st_dev, found.st_ino))
                            total += found.st_blocks * _BLOCK
            except OSError:
                continue  # it went away meanwhile
        return total


class ProcessWatch:
    """One tree that is looked at until `stop`; the first time it is too heavy, `too_heavy` hears why, in the thread."""

    def __init__(
        self,
        root: int,
        *,
        tasks: int,
        memory_bytes: int,
        too_heavy: Callable[[str], None],
        shared: str | None = None,
        growth: Growth | None = None,
    ) -> None:
        self.root = root
        self._tasks = tasks
        self._memory = memory_bytes
        self._tell = too_heavy
        self._shared = shared
        self._growth = growth
        self._looks = 0
        self._held = OpenFileUsage(0, 0)
        _watcher.add(self)

    def stop(self) -> None:
        _watcher.remove(self)

    def look(self) -> None:
        weight = weigh(self.root)
        if self._looks % HELD_EVERY == 0:
            self._held = held(self.root, self._shared)
        self._looks += 1
        why = None
        if weight.tasks > self._tasks:
            why = "processes"
        elif weight.memory_bytes + self._held.memory_bytes > self._memory:
            why = "memory"
        elif self._growth is not None and self._growth.is_too_much(lambda: held(self.root, self._shared).deleted_bytes):
            why = "growth"
        if why is not None:
            self.stop()
            self._tell(why)


class _Watcher:
    """The thread that looks, one for the whole process; it sleeps while there is nothing to look at."""

    def __init__(self) -> None:
        self._watches: list[ProcessWatch] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def add(self, watch: ProcessWatch) -> None:
        with self._changed:
            self._watches.append(watch)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._work, name="wakeful-watch", daemon=True)
                self._thread.start()
            self._changed.notify()

    def remove(self, watch: ProcessWatch) -> None:
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


def _open_files(pid: int) -> list[str]:
    try:
        return [f"/proc/{pid}/fd/{number}" for number in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        return []  # it ended meanwhile, or is not ours to look at


def _mapped_shared(pid: int) -> int:
    """Shared memory in a process's resident set."""
    try:
        with open(f"/proc/{pid}/status", "rb") as status:
            return next((int(line.split()[1]) * 1024 for line in status if line.startswith(b"RssShmem:")), 0)
    except (OSError, IndexError, ValueError):
        return 0


def _used(folder: str) -> int | None:
    try:
        found = os.statvfs(folder)
    except OSError:
        return None
    return (found.f_blocks - found.f_bfree) * found.f_frsize


def _free(folder: str) -> int:
    try:
        found = os.statvfs(folder)
    except OSError:
        return 0
    return found.f_bfree * found.f_frsize
