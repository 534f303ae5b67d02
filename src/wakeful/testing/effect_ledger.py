"""What really happened to the world: an append-only file that stands outside the store.

A tool under test writes one line for each effect, with its call's idempotency key. A line is on disk before `record`
returns, so that a kill right after it is the worst moment there is: done, and not yet known to the log.
"""

import json
import os
import threading
from pathlib import Path
from typing import NamedTuple

from wakeful.testing.crash_switch import CrashSwitch, active_switch


class LedgerEntry(NamedTuple):
    """One effect."""

    tool: str
    key: str


class Ledger:
    """Effects, in the order in which they happened. Safe to use from several threads and to reopen after a kill."""

    def __init__(self, path: str | os.PathLike[str], switch: CrashSwitch | None = None) -> None:
        self.path = Path(path)
        self._switch = switch
        self._lock = threading.Lock()

    def record(self, tool: str, key: str) -> None:
        """The effect itself."""
        with (self._switch or active_switch()).around("ledger"), self._lock:
            self._write(tool, key)

    def once(self, tool: str, key: str) -> bool:
        """The effect of a keyed tool: done unless the key was seen. False when it was."""
        with (self._switch or active_switch()).around("ledger"), self._lock:
            fresh = not any(entry.key == key for entry in self.entries())
            if fresh:
                self._write(tool, key)
            return fresh

    def here(self) -> None:
        """A place of its own to crash at, anywhere inside a tool."""
        (self._switch or active_switch()).here()

    def entries(self) -> list[LedgerEntry]:
        """All effects so far. A last line that a kill cut off did not happen."""
        if not self.path.exists():
            return []
        whole, _, _ = self.path.read_text("utf-8").rpartition("\n")
        try:
            return [LedgerEntry(**json.loads(line)) for line in whole.splitlines()]
        except (ValueError, TypeError):
            raise ValueError(f"{self.path} is not a ledger: a line of it is not an effect") from None

    def _write(self, tool: str, key: str) -> None:
        line = json.dumps({"tool": tool, "key": key}) + "\n"
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, line.encode())
            os.fsync(file)
        finally:
            os.close(file)
