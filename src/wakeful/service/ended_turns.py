"""Follows the turns of a store that end, in the order of their ends, each once, from a cursor on.

Two turns may end within the same moments and be committed the other way round, so a cursor looks back a little and
knows what it has seen there. Kept in a file it outlives the process; the log is the buffer for whoever is behind.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wakeful.ports import Store, TurnRow
from wakeful.ports.turns import TURNS, TURNS_BY_END

LOOK_BACK_US = 5_000_000
PAGE = 200


@dataclass(slots=True)
class EndedTurns:
    """A place among the ends of a store's turns."""

    upto: int
    """The newest end that was taken, in microseconds."""
    seen: dict[str, int] = field(default_factory=dict)
    """Turns that were taken, as far back as it looks."""
    path: Path | None = None

    async def fresh(self, store: Store, most: int) -> list[TurnRow]:
        """The next turns that were not taken yet, the first to end first."""
        found: list[TurnRow] = []
        after: tuple[int, str] = (self.upto - LOOK_BACK_US, "")
        while len(found) < most:
            page = await store.list_rows(TURNS, TURNS_BY_END, after=after, limit=PAGE)
            found += [row for row in page if row.turn_id not in self.seen]
            if len(page) < PAGE:
                break
            last = page[-1]
            after = (last.ended_at or 0, last.turn_id)
        return found[:most]

    def take(self, rows: Sequence[TurnRow]) -> None:
        """They are done. Kept in the file, if there is one; one that cannot be written is behind, and no more."""
        self.seen |= {row.turn_id: row.ended_at or 0 for row in rows}
        self.upto = max(self.upto, *self.seen.values()) if self.seen else self.upto
        self.seen = {name: at for name, at in self.seen.items() if at >= self.upto - LOOK_BACK_US}
        if self.path is not None:
            _write(self.path, self.upto, self.seen)

    def turn_back(self, now: int) -> None:
        """The clock was set back: what ends from now on is not behind the cursor."""
        if now < self.upto - LOOK_BACK_US:
            self.upto = now


def cursor_at(path: Path | None, now: int) -> EndedTurns:
    """Where the file says; without one, or with one that cannot be read, from now on."""
    try:
        found = json.loads(path.read_text("utf-8")) if path is not None else {}
        return EndedTurns(int(found["upto"]), {str(name): int(at) for name, at in found["seen"].items()}, path)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        cursor = EndedTurns(now, path=path)
        cursor.take([])
        return cursor


def _write(path: Path, upto: int, seen: Mapping[str, int]) -> None:
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh.write_text(json.dumps({"upto": upto, "seen": dict(seen)}), "utf-8")
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
