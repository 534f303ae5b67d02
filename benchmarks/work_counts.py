"""How much work something is, in counts that are the same on a busy machine: calls of Python and steps of SQLite.

`with counted_steps() as counts:` round the opening of a store, then `with counts.counting():` round the work.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import apsw


@dataclass
class WorkCounts:
    """What was done while it counted: by this thread, and by all connections."""

    calls: int = 0
    """Of functions, Python's and built-in ones."""
    statements: int = 0
    steps: int = 0
    """Of SQLite's machine."""
    scanned: int = 0
    """Of these: to the next row of a table that is read without an index."""
    is_on: bool = field(default=False, repr=False)

    @contextmanager
    def counting(self) -> Iterator[None]:
        self.calls = self.statements = self.steps = self.scanned = 0
        self.is_on = True
        sys.setprofile(self._called)
        try:
            yield
        finally:
            sys.setprofile(None)
            self.is_on = False

    def _called(self, frame: FrameType, event: str, arg: Any) -> None:
        if event in ("call", "c_call"):
            self.calls += 1

    def ran(self, event: dict[str, Any]) -> None:
        if self.is_on:
            status = event["stmt_status"]
            self.statements += 1
            self.steps += status["SQLITE_STMTSTATUS_VM_STEP"]
            self.scanned += status["SQLITE_STMTSTATUS_FULLSCAN_STEP"]


@contextmanager
def counted_steps() -> Iterator[WorkCounts]:
    """Connections that are opened meanwhile are counted."""
    counts = WorkCounts()

    def follow(connection: apsw.Connection) -> None:
        connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, counts.ran)

    apsw.connection_hooks.append(follow)
    try:
        yield counts
    finally:
        apsw.connection_hooks.remove(follow)
