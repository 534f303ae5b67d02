"""The rows of the log: found, read piece by piece and checked against the chain.

An agent's stream is one row an append (`appends`). What a store of version 6 or before has written comes first, one row
a fact (`events`), and is only read. The facts of a turn are found by its number and those of a thread by its turns:
nobody reads what belongs to others. A piece keeps no cursor open for the next one.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.errors import StoreDamaged
from wakeful.ports import TurnRow
from wakeful.store import chain
from wakeful.store.encoding import NO_ROW, EncodedFact, count_facts, decode, link_row, read_row
from wakeful.store.row_bundles import Pair
from wakeful.store.single_facts import link_single, read_single
from wakeful.store.sqlite.bundles import Bundles
from wakeful.store.sqlite.connection import Statements

SHIFT = 40
"""A row's number: that of its agent, shifted by this, and the sequence of its first fact."""
PIECE = 200
"""At most so many rows at a time."""
# A piece may begin within a row: that row is read, too.
_NEXT = """
    SELECT id, header, body, hash FROM appends
    WHERE id >= coalesce((SELECT max(id) FROM appends WHERE id > ? AND id <= ?), ?) AND id <= ? ORDER BY id LIMIT ?
"""
_OF_TURN = """
    SELECT a.id, a.header, a.body, a.hash,
           (SELECT b.hash FROM appends b WHERE b.id > ? AND b.id < a.id ORDER BY b.id DESC LIMIT 1)
    FROM appends a
    WHERE a.turn = ? AND a.id >= coalesce((SELECT max(id) FROM appends WHERE turn = ? AND id <= ?), 0) AND a.id <= ?
    ORDER BY a.id LIMIT ?
"""
_BEFORE = "SELECT hash FROM appends WHERE id > ? AND id < ? ORDER BY id DESC LIMIT 1"
_SINGLE = "SELECT id, header, body, hash FROM events WHERE id > ? AND id <= ? ORDER BY id LIMIT ?"


class Place(NamedTuple):
    """An agent's number in this database, the head of its stream, and what it is called."""

    agent: int
    seq: int
    hash: bytes
    name: str = ""


class Span(NamedTuple):
    """What is to be read: an agent's stream up to an event, or what belongs to one turn in it."""

    agent: int
    agent_id: str
    upto: int
    turn_id: str | None = None
    first_seq: int = 1


class Streams:
    """The rows of one database."""

    def __init__(self, sql: Statements, path: Path) -> None:
        self._sql = sql
        self._path = path
        self._single: dict[int, int] = {}
        """How many single facts an agent's stream begins with. They do not become more."""
        self._has_singles: bool | None = None
        """Is there any single fact in the database?"""
        self._has_appends = False
        self._has_cuts: bool | None = None
        self.bundles = Bundles(sql)

    def place(self, agent_id: str) -> Place | None:
        found = self._sql.one("SELECT id, seq, hash, name FROM agents WHERE agent_id = ?", (agent_id,))
        return None if found is None else Place(*found)

    def agents(self) -> list[tuple[int, str]]:
        return [(number, agent_id) for number, agent_id in self._sql.all("SELECT id, agent_id FROM agents ORDER BY id")]

    def whole(self, agent_id: str) -> Span | None:
        """All there is of an agent."""
        place = self.place(agent_id)
        return None if place is None else Span(place.agent, agent_id, place.seq)

    def of_turn(self, agent_id: str, turn: TurnRow) -> Span | None:
        """All there is of a turn."""
        place = self.place(agent_id)
        if place is None or turn.agent_id != agent_id:
            return None
        upto = place.seq if turn.is_open else turn.last_seq
        return Span(place.agent, agent_id, upto, turn.turn_id, turn.first_seq)

    def piece(self, span: Span, after: int, count: int = PIECE) -> tuple[list[EncodedFact], int]:
        """The span's next facts after an event, checked, and the event up to which they reach."""
        single = self._singles(span.agent)
        after = max(after, span.first_seq - 1, 0 if span.turn_id is not None else self.cut(span.agent)[0])
        if after >= span.upto:
            return [], span.upto
        if after < single:
            return self._single_facts(span, after, min(single, span.upto), count)
        if span.turn_id is not None:
            return self._of_turn(span, after, count)
        base = span.agent << SHIFT
        first = base | after + 1
        rows = self._sql.all(_NEXT, (base, first, first, base | span.upto, count))
        if not rows:
            raise self._damaged(span.agent_id, after + 1, "is missing")
        found: list[EncodedFact] = []
        seq = rows[0][0] - base
        previous = self._hash_before(span, seq)
        for number, header, body, digest in rows:
            if number != base | seq:
                raise self._damaged(span.agent_id, seq, "is missing")
            entries = self._checked(span.agent_id, seq, number, header, body, digest, previous)
            found += entries
            previous = digest
            seq = entries[-1].seq + 1
        return [entry for entry in found if after < entry.seq <= span.upto], seq - 1

    def entries(self, span: Span) -> Iterator[EncodedFact]:
        """All facts of the span, for who need not leave the loop to others meanwhile."""
        at = 0
        while at < span.upto:
            found, at = self.piece(span, at)
            yield from found

    def hash_at_end(self, agent: int, seq: int) -> bytes | None:
        """The hash of the row that ends with this event; None when there is no such row."""
        if seq <= self._singles(agent):
            single = self._sql.one("SELECT hash FROM events WHERE id = ?", (agent << SHIFT | seq,))
            return self._hash_of_cut(agent, seq) if single is None else bytes(single[0])
        if not self._has_appends:
            if self._sql.one("SELECT 1 FROM sqlite_schema WHERE name = 'appends'") is None:
                return None  # looked at before it was brought up to date
            self._has_appends = True
        sql = "SELECT id, header, body, hash FROM appends WHERE id > ? AND id <= ? ORDER BY id DESC LIMIT 1"
        found = self._sql.one(sql, (agent << SHIFT, agent << SHIFT | seq))
        if found is None:
            return self._hash_of_cut(agent, seq)
        number, header, body, digest = found
        try:
            header, _ = self.bundles.whole(number, header, body)
            ends = number - (agent << SHIFT) + count_facts(header) - 1
        except NO_ROW:
            ends = seq  # it is there, and whoever reads it is told that it is damaged
        return bytes(digest) if ends == seq else None

    def is_past(self, agent: int, seq: int) -> bool:
        """Are there rows after the head of the stream?"""
        beyond = (agent << SHIFT | seq, agent + 1 << SHIFT)
        return any(
            self._sql.one(f"SELECT 1 FROM {table} WHERE id > ? AND id < ? LIMIT 1", beyond)
            for table in ("events", "appends")
        )

    def recorded(self, agent_id: str, entry: EncodedFact) -> StoredFact:
        try:
            return StoredFact(agent_id, entry.seq, decode(entry.head, entry.payload))
        except ValueError as error:
            what = f"does not fit its kind, {entry.head.kind}: {error}"
            raise self._damaged(agent_id, entry.seq, what) from error

    def _of_turn(self, span: Span, after: int, count: int) -> tuple[list[EncodedFact], int]:
        base = span.agent << SHIFT
        turn = base | span.first_seq
        rows = self._sql.all(_OF_TURN, (base, turn, turn, base | after + 1, base | span.upto, count))
        found: list[EncodedFact] = []
        for number, header, body, digest, before in rows:
            seq = number - base
            previous = bytes(before) if before is not None else self._hash_before(span, seq)
            found += self._checked(span.agent_id, seq, number, header, body, digest, previous)
        reached = found[-1].seq if len(rows) == count else span.upto
        return [entry for entry in found if after < entry.seq <= span.upto], reached

    def _single_facts(self, span: Span, after: int, upto: int, count: int) -> tuple[list[EncodedFact], int]:
        base = span.agent << SHIFT
        rows: list[tuple[Any, ...]] = self._sql.all(_SINGLE, (base | after, base | upto, count))
        found: list[EncodedFact] = []
        previous = self._hash_before(span, after + 1)
        seq = after
        for number, header, body, digest in rows:
            seq += 1
            if number != base | seq:
                raise self._damaged(span.agent_id, seq, "is missing")
            if link_single(previous, header, body) != digest:
                raise self._damaged(span.agent_id, seq, "is not what was written")
            previous = digest
            entry = read_single(seq, header, body)
            if span.turn_id is None or entry.head.turn_id == span.turn_id:
                found.append(entry)
        if not rows and after < upto:
            raise self._damaged(span.agent_id, after + 1, "is missing")
        return found, max(seq, after)

    def _checked(
        self, agent_id: str, seq: int, number: int, header: bytes, body: bytes, digest: bytes, previous: bytes
    ) -> list[EncodedFact]:
        try:
            header, body = self.bundles.whole(number, header, body)
            entries = read_row(seq, header, body)
            if entries and link_row(previous, header, body, entries) == digest:
                return entries
        except NO_ROW:
            pass
        raise self._damaged(agent_id, seq, "is not what was written")

    def unchecked(self, agent_id: str, seq: int, header: bytes, body: bytes) -> list[EncodedFact]:
        """The facts of a row, whatever the chain says of them. Raises StoreDamaged for bytes that are no row."""
        try:
            return read_row(seq, header, body)
        except NO_ROW:
            raise self._damaged(agent_id, seq, "is not what was written") from None

    def unbundled(self, agent_id: str, number: int, header: bytes, body: bytes) -> Pair:
        """Header and body of a row, wherever they stand. Raises StoreDamaged where they are not."""
        try:
            return self.bundles.whole(number, header, body)
        except NO_ROW:
            raise self._damaged(agent_id, number & (1 << SHIFT) - 1, "is not what was written") from None

    def _hash_before(self, span: Span, seq: int) -> bytes:
        """What the row that begins with this event is chained to."""
        if seq == 1:
            return chain.origin(span.agent_id)
        base = span.agent << SHIFT
        if seq - 1 <= self._singles(span.agent):
            found = self._sql.one("SELECT hash FROM events WHERE id = ?", (base | seq - 1,))
        else:
            found = self._sql.one(_BEFORE, (base, base | seq))
        if found is None:
            if (kept := self._hash_of_cut(span.agent, seq - 1)) is not None:
                return kept
            raise self._damaged(span.agent_id, seq - 1, "is missing")
        return bytes(found[0])

    def cut(self, agent: int) -> tuple[int, bytes | None]:
        """The last event of a stream that retention has removed, 0 for none; and what the rest is chained to."""
        if self._has_cuts is None:
            names = {name for (name,) in self._sql.all("SELECT name FROM pragma_table_info('agents')")}
            self._has_cuts = "cut" in names  # not in one that is looked at before it was brought up to date
        found = self._sql.one("SELECT cut, cut_hash FROM agents WHERE id = ?", (agent,)) if self._has_cuts else None
        return (0, None) if found is None else (found[0], None if found[1] is None else bytes(found[1]))

    def _hash_of_cut(self, agent: int, seq: int) -> bytes | None:
        """What the log is chained to that comes after an event which is gone."""
        cut, digest = self.cut(agent)
        return digest if cut and seq == cut else None

    def _singles(self, agent: int) -> int:
        if self._has_singles is None:
            self._has_singles = self._sql.one("SELECT 1 FROM events LIMIT 1") is not None
        if not self._has_singles:
            return 0
        if (known := self._single.get(agent)) is None:
            sql = "SELECT max(id) FROM events WHERE id > ? AND id < ?"
            ((newest,),) = self._sql.all(sql, (agent << SHIFT, agent + 1 << SHIFT))
            known = self._single[agent] = 0 if newest is None else newest - (agent << SHIFT)
        return known

    def _damaged(self, agent_id: str, seq: int, what: str) -> StoreDamaged:
        return StoreDamaged(
            f"event {seq} of agent {agent_id} in {self._path} {what}",
            "Other agents are not affected. Restore the database from a backup to get this one back.",
            agent_id=agent_id,
            sequence=seq,
        )
