"""Removing from a database what has reached its age: each method is one short step inside the writer's transaction, and
checks before its first write.
"""

from collections.abc import Callable, Collection, Sequence, Set
from itertools import takewhile
from typing import Any, TypeAlias

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import StoreDamaged
from wakeful.ports import TurnRow
from wakeful.ports.retention import STEP_ROWS, FreedSpace, left_mark
from wakeful.ports.tables import Table
from wakeful.store.encoding import NO_ROW, EncodedFact, PackedRow, lengths_of
from wakeful.store.hollow_rows import hollowed
from wakeful.store.single_facts import hollow_single, read_single
from wakeful.store.sqlite.blob_references import BlobReferences
from wakeful.store.sqlite.connection import Statements
from wakeful.store.sqlite.helper import SPACE_RELEASED
from wakeful.store.sqlite.streams import SHIFT, Place, Streams

_BUNDLED = "bundled:"
"""In `meta`, with the number of an agent: how far its log stands in bundles."""
_CUTTING = "cutting:"
"""In `meta`, with the number of an agent: its log was cut, and not all of it is removed yet."""
MARK = "retention:"
"""In `meta`, with the name of a walk or of a table."""

Append: TypeAlias = Callable[[str, Sequence[Fact], Sequence[PackedRow]], object]


class RetentionSteps:
    """On the writing connection of a store."""

    def __init__(self, sql: Statements, streams: Streams, append: Append) -> None:
        self._sql = sql
        self._streams = streams
        self._append = append
        self.references = BlobReferences(sql)

    def expire_events(self, turn: TurnRow, kinds: Collection[str], after: int, dry: bool) -> FreedSpace:
        place = self._streams.place(turn.agent_id)
        if place is None or turn.is_open:
            return FreedSpace()
        base = place.agent << SHIFT
        facts = freed = 0
        sql = (
            "SELECT id, header, body FROM appends INDEXED BY appends_of_turn "
            "WHERE turn = ? AND turn > 0 AND id > ? AND id <= ? ORDER BY id LIMIT ?"
        )
        rows = self._sql.all(sql, (base | turn.first_seq, base | after, base | turn.last_seq, STEP_ROWS))
        for number, stored, place_of in rows:
            header, body = self._streams.unbundled(turn.agent_id, number, stored, place_of)
            entries = self._streams.unchecked(turn.agent_id, number - base, header, body)
            places = _expiring(entries, kinds)
            if places:
                new = hollowed(body, lengths_of(header), places)
                if not dry:
                    self._put_hollow(number, place_of if not stored else None, new)
                    left = [entry for at, entry in enumerate(entries) if at not in places]
                    self.references.leave_row(number, left)
                facts, freed = facts + len(places), freed + len(body) - len(new)
        if not after:
            more, less = self._expire_singles(base, turn, kinds, dry)
            facts, freed = facts + more, freed + less
        return FreedSpace(facts, freed, rows[-1][0] - base if len(rows) == STEP_ROWS else None)

    def _put_hollow(self, number: int, bundled_in: Any, body: bytes) -> None:
        if bundled_in is not None:  # a bundle with it would keep what has to go
            self._streams.bundles.unpack(bundled_in)
        self._sql.do("UPDATE appends SET body = ? WHERE id = ?", (body, number))

    def expire_facts(self, agent_id: str, seqs: Collection[int], dry: bool) -> FreedSpace:
        place = self._streams.place(agent_id)
        if place is None:
            return FreedSpace()
        base = place.agent << SHIFT
        numbers = {self._row_with(base, seq) for seq in seqs}
        facts = freed = 0
        for number in sorted(each for each in numbers if each is not None):
            ((stored, place_of),) = self._sql.all("SELECT header, body FROM appends WHERE id = ?", (number,))
            header, body = self._streams.unbundled(agent_id, number, stored, place_of)
            entries = self._streams.unchecked(agent_id, number - base, header, body)
            going = {at for at, each in enumerate(entries) if each.payload is not None and each.seq in seqs}
            if going:
                new = hollowed(body, lengths_of(header), going)
                if not dry:
                    self._put_hollow(number, place_of if not stored else None, new)
                facts, freed = facts + len(going), freed + len(body) - len(new)
        for seq in seqs:
            if (less := self._expire_single(base | seq, dry)) is not None:
                facts, freed = facts + 1, freed + less
        if facts and not dry:
            self.references.forget_agent(place.agent)
        return FreedSpace(facts, freed)

    def _row_with(self, base: int, seq: int) -> int | None:
        """The row that holds an event, if any."""
        found = self._sql.one("SELECT max(id) FROM appends WHERE id > ? AND id <= ?", (base, base | seq))
        return None if found is None or found[0] is None else int(found[0])

    def _expire_single(self, number: int, dry: bool) -> int | None:
        """How many bytes that freed; None: a store of version 6 or before has not written it."""
        found = self._sql.one("SELECT header, body FROM events WHERE id = ?", (number,))
        if found is None or read_single(number & (1 << SHIFT) - 1, *found).payload is None:
            return None
        new = hollow_single(found[1])
        if not dry:
            self._sql.do("UPDATE events SET body = ? WHERE id = ?", (new, number))
        return len(found[1]) - len(new)

    def _expire_singles(self, base: int, turn: TurnRow, kinds: Collection[str], dry: bool) -> tuple[int, int]:
        """What a store of version 6 or before has written of it."""
        facts = freed = 0
        sql = "SELECT id, header, body FROM events WHERE id >= ? AND id <= ?"
        for number, header, body in self._sql.all(sql, (base | turn.first_seq, base | turn.last_seq)):
            entry = read_single(number - base, header, body)
            if entry.head.turn_id == turn.turn_id and _expiring([entry], kinds):
                new = hollow_single(body)
                if not dry:
                    self._sql.do("UPDATE events SET body = ? WHERE id = ?", (new, number))
                    self.references.leave_row(number, ())
                facts, freed = facts + 1, freed + len(body) - len(new)
        return facts, freed

    def bundle_rows(self, agent_id: str, before: int, *, anew: bool) -> FreedSpace:
        place = self._streams.place(agent_id)
        if place is None:
            return FreedSpace()
        name = f"{_BUNDLED}{place.agent}"
        known = None if anew else self._sql.one("SELECT value FROM meta WHERE key = ?", (name,))
        after = int(known[0]) if known is not None else 0
        try:
            freed = self._streams.bundles.pack(place.agent << SHIFT, after, place.seq, before)
        except NO_ROW:
            words = f"a row of agent {agent_id} cannot be read: its log stays as it is"
            raise StoreDamaged(words, "wakeful store verify", agent_id=agent_id) from None
        if freed.more is not None:
            self._sql.do("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, str(freed.more)))
        return freed

    def cut_log(
        self, place: Place, agent_id: str, fact: Fact, stored: Sequence[PackedRow], gone: Sequence[str]
    ) -> FreedSpace:
        """`place` is what the checkpoint was made from; when the stream goes on elsewhere, nothing is done."""
        if self._streams.place(agent_id) != place:
            return FreedSpace()
        self._sql.do("UPDATE agents SET cut = ?, cut_hash = ? WHERE id = ?", (place.seq, place.hash, place.agent))
        self.references.forget_log(place.agent, place.seq)
        self._append(agent_id, [fact], stored)
        self._sql.many("DELETE FROM turn_claims WHERE turn_id = ?", [(turn_id,) for turn_id in gone])
        self._sql.do("DELETE FROM leases WHERE agent = ?", (place.agent,))
        freed = self._remove(place.agent, place.seq)
        if freed.more is not None:
            self._sql.do("INSERT OR REPLACE INTO meta VALUES (?, '')", (f"{_CUTTING}{place.agent}",))
        return freed

    def finish_cuts(self) -> FreedSpace:
        found = self._sql.one("SELECT key FROM meta WHERE key >= ? AND key < ? LIMIT 1", (_CUTTING, _CUTTING + "~"))
        if found is None:
            return FreedSpace()
        agent = int(found[0].removeprefix(_CUTTING))
        freed = self._remove(agent, self._streams.cut(agent)[0])
        if freed.more is None:
            self._sql.do("DELETE FROM meta WHERE key = ?", (found[0],))
        return freed._replace(more=agent)

    def _remove(self, agent: int, upto: int) -> FreedSpace:
        """A step of rows up to an event that was cut off."""
        base = agent << SHIFT
        items = freed = 0
        for table in ("events", "appends"):
            room = STEP_ROWS - items
            which = f"SELECT id FROM {table} WHERE id > ? AND id <= ? ORDER BY id LIMIT ?"
            ((count, size),) = self._sql.all(
                f"SELECT count(*), coalesce(sum(length(header) + length(body)), 0) FROM {table} WHERE id IN ({which})",
                (base, base | upto, room),
            )
            self._sql.do(f"DELETE FROM {table} WHERE id IN ({which})", (base, base | upto, room))
            items, freed = items + count, freed + size
        if items < STEP_ROWS:
            self._sql.do("DELETE FROM bundles WHERE id > ? AND id <= ?", (base, base | upto))
        return FreedSpace(items, freed, agent if items == STEP_ROWS else None)

    def note_doubts(self, unreferenced: Set[str], now: int, grace: int) -> list[str]:
        """Those that nothing has referred to for so long. New ones are noted, others forgotten."""
        known: dict[str, int] = dict(self._sql.all("SELECT digest, since FROM blob_doubts"))
        self._sql.many("DELETE FROM blob_doubts WHERE digest = ?", [(name,) for name in known.keys() - unreferenced])
        new = unreferenced - known.keys()
        self.doubt(new, now)
        since = dict.fromkeys(new, now) | known
        return [name for name in unreferenced if now - since[name] >= grace]

    def is_doubted(self, name: str) -> bool:
        return self._sql.one("SELECT 1 FROM blob_doubts WHERE digest = ?", (name,)) is not None

    def blob_size(self, name: str) -> int:
        """Of a blob that is a row; 0 for any other."""
        ((size,),) = self._sql.all("SELECT coalesce(sum(length(data)), 0) FROM blobs WHERE digest = ?", (name,))
        return int(size)

    def doubt(self, names: Collection[str], now: int) -> None:
        self._sql.many("INSERT OR IGNORE INTO blob_doubts VALUES (?, ?)", [(name, now) for name in names])

    def drop_blob(self, name: str) -> int | None:
        """The bytes of the row that was removed; None where somebody has put the blob again."""
        if not self.is_doubted(name):
            return None
        size = self.blob_size(name)
        self._sql.do("DELETE FROM blobs WHERE digest = ?", (name,))
        self._sql.do("DELETE FROM blob_doubts WHERE digest = ?", (name,))
        self.references.forget_blob(name)
        return size

    def release_space(self, pages: int) -> int:
        ((free,),) = self._sql.all("PRAGMA freelist_count")
        if free:
            self._sql.all(f"PRAGMA incremental_vacuum({pages})")
            ((left,),) = self._sql.all("PRAGMA page_count")
            self._sql.do("INSERT OR REPLACE INTO meta VALUES (?, ?)", (SPACE_RELEASED, str(left)))
        return max(0, int(free) - pages)

    def expire_rows(self, table: Table[Any], before: int, after: int, dry: bool) -> FreedSpace:
        """The oldest rows by their positions, as long as they are old enough; never the newest, whose number must not
        be given again."""
        position, at = table.position, table.column[table.aged_by].name
        newest = self._sql.one(f"SELECT max({position}) FROM {table.name}")
        found = self._sql.all(
            f"SELECT {position}, {at} FROM {table.name} WHERE {position} > ? ORDER BY {position} LIMIT ?",
            (after, STEP_ROWS),
        )
        old = [*takewhile(lambda row: row[1] < before and newest is not None and row[0] < newest[0], found)]
        if not old:
            return FreedSpace()
        last = old[-1][0]
        if not dry:
            self._sql.do(f"DELETE FROM {table.name} WHERE {position} <= ?", (last,))
            self.set_mark(table.name, left_mark(last, before))
        return FreedSpace(len(old), more=last if len(old) == STEP_ROWS else None)

    def mark(self, name: str) -> str | None:
        found = self._sql.one("SELECT value FROM meta WHERE key = ?", (MARK + name,))
        return None if found is None else str(found[0])

    def set_mark(self, name: str, value: str) -> None:
        self._sql.do("INSERT OR REPLACE INTO meta VALUES (?, ?)", (MARK + name, value))


def _expiring(entries: Collection[EncodedFact], kinds: Collection[str]) -> set[int]:
    return {place for place, entry in enumerate(entries) if entry.payload is not None and entry.head.kind in kinds}
