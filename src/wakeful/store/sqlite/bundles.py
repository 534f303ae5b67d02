"""Rows of the log that stand in a bundle: `appends` keeps number, turn and hash of each, and where the rest is.

A bundle is made and taken apart in one transaction with its rows. Whoever reads the row and then finds the bundle gone,
or another one in its place, reads the row again: it was taken apart in between.
"""

import zlib
from typing import Any

from pydantic_core import from_json

from wakeful.ports.retention import FreedSpace
from wakeful.store.encoding import lengths_of
from wakeful.store.row_bundles import MOST_BYTES, MOST_ROWS, Pair, bundle, loose, unbundle
from wakeful.store.sqlite.connection import Statements

LEAST_ROWS = 32
"""Fewer are not worth a bundle yet."""
_KEPT = 4
"""Bundles that stay unpacked: rows that are read one after the other stand in the same one."""
_CHECKSUM = 4


class Bundles:
    """Of one database."""

    def __init__(self, sql: Statements) -> None:
        self._sql = sql
        self._unpacked: dict[bytes, list[Pair]] = {}

    def whole(self, number: int, header: bytes, body: bytes) -> Pair:
        """Header and body of a row, wherever they stand. Raises ValueError or LookupError when that cannot be read."""
        if header:
            return header, body
        found = self._bundled(body)
        if found is None:
            row = self._sql.one("SELECT header, body FROM appends WHERE id = ?", (number,))
            if row is not None and row[0]:
                return row[0], row[1]
            found = None if row is None else self._bundled(row[1])
        if found is None:
            raise LookupError("the bundle in which the row stands is not there")
        return found

    def pack(self, base: int, after: int, upto: int, before: int) -> FreedSpace:
        """A step: rows of an agent, whose numbers begin with `base`, become one bundle where they are from before a
        time, and their turn ended before it."""
        sql = "SELECT id, turn, header, body, hash FROM appends WHERE id > ? AND id <= ? ORDER BY id LIMIT ?"
        rows = self._sql.all(sql, (base | after, base | upto, 4 * MOST_ROWS))
        chosen: list[tuple[Any, ...]] = []
        pairs: list[Pair] = []
        size, reached, is_done = 0, after, len(rows) < 4 * MOST_ROWS
        for row in rows:
            number, _, header, body, _ = row
            if header:
                _, at, _, turn_id, *_ = from_json(header)
                if at >= before:
                    is_done = True
                    break
                if len(body) < MOST_BYTES and self._has_ended(turn_id, before):
                    pair = loose(header, body, lengths_of(header))
                    if len(pairs) == MOST_ROWS or (pairs and size + len(pair[0]) + len(pair[1]) > MOST_BYTES):
                        is_done = False
                        break
                    chosen.append(row)
                    pairs.append(pair)
                    size += len(pair[0]) + len(pair[1])
            reached = number - base
        if len(chosen) < LEAST_ROWS and is_done:
            return FreedSpace()
        freed = self._replace(chosen, pairs) if len(chosen) >= LEAST_ROWS else 0
        return FreedSpace(len(chosen) if freed else 0, freed, reached)

    def unpack(self, body: bytes) -> None:
        """Put the rows of the bundle in which a row stands back, each by itself."""
        name = int.from_bytes(body[:8], "big")
        sql = "SELECT id, header, body FROM appends WHERE id >= ? AND header = x'' ORDER BY id LIMIT ?"
        for number, header, place in self._sql.all(sql, (name, 4 * MOST_ROWS)):
            if place[: 8 + _CHECKSUM] == body[: 8 + _CHECKSUM]:
                self._sql.do(
                    "UPDATE appends SET header = ?, body = ? WHERE id = ?", (*self.whole(number, header, place), number)
                )
        self._sql.do("DELETE FROM bundles WHERE id = ?", (name,))

    def _replace(self, chosen: list[tuple[Any, ...]], pairs: list[Pair]) -> int:
        data = bundle(pairs)
        name = chosen[0][0]
        where = name.to_bytes(8, "big") + zlib.crc32(data).to_bytes(_CHECKSUM, "big")
        self._sql.do("INSERT INTO bundles VALUES (?, ?)", (name, data))
        # Not updated in place: pages that become nearly empty are joined only where rows are removed.
        self._sql.many("DELETE FROM appends WHERE id = ?", [(row[0],) for row in chosen])
        self._sql.many(
            "INSERT INTO appends (id, turn, header, body, hash) VALUES (?, ?, x'', ?, ?)",
            [(row[0], row[1], where + place.to_bytes(2, "big"), row[4]) for place, row in enumerate(chosen)],
        )
        return sum(len(row[2]) + len(row[3]) for row in chosen) - len(data) - len(chosen) * (len(where) + 2)

    def _has_ended(self, turn_id: str | None, before: int) -> bool:
        """What of a turn expires has expired by then: it stands in the same walk."""
        if turn_id is None:
            return True
        found = self._sql.one("SELECT ended_at FROM turns WHERE turn_id = ?", (turn_id,))
        return found is None or (found[0] is not None and found[0] < before)

    def _bundled(self, body: bytes) -> Pair | None:
        key, place = body[: 8 + _CHECKSUM], int.from_bytes(body[8 + _CHECKSUM :], "big")
        rows = self._unpacked.get(key)
        if rows is None:
            found = self._sql.one("SELECT data FROM bundles WHERE id = ?", (int.from_bytes(body[:8], "big"),))
            if found is None or zlib.crc32(found[0]).to_bytes(_CHECKSUM, "big") != key[8:]:
                return None
            rows = unbundle(found[0])
            if len(self._unpacked) >= _KEPT:
                del self._unpacked[next(iter(self._unpacked))]
            self._unpacked[key] = rows
        return rows[place]
