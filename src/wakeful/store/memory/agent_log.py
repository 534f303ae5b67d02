"""One agent in memory: its log, its rows, the leases of its threads."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.errors import StoreDamaged
from wakeful.contracts.events import AnyEvent
from wakeful.ports import Damage
from wakeful.ports.operator_feed import FEED
from wakeful.store import chain
from wakeful.store.encoding import NO_ROW, EncodedFact, Head, PackedRow, decode_event, fact_of, link_row, read_row
from wakeful.store.leases import Lease
from wakeful.store.memory_tables import MemoryTables
from wakeful.store.rows import Book
from wakeful.store.watches import Watches

MOST_READ = 1_024
"""Rows of an agent whose facts stay decoded."""


class AgentLog:
    """Rows of bytes, each chained to the one before; who holds the threads, and who held them too long."""

    def __init__(self, agent_id: str, tables: MemoryTables, watches: Watches) -> None:
        self.agent_id = agent_id
        self._watches = watches
        self.log: list[tuple[bytes, bytes, bytes]] = []
        """Header, body, hash: one row an append."""
        self.firsts: list[int] = []
        """The sequence of each row's first fact."""
        self.seq = 0
        self.origin = chain.origin(agent_id)
        """What the first row is chained to."""
        self.rows_of: dict[str, list[int]] = {}
        """A turn's rows, by their places in the log."""
        self.book = Book(agent_id, tables)
        self._read: dict[int, tuple[object, list[tuple[int, Head, AnyEvent]]]] = {}
        """By their place: rows that were read, and their facts."""
        self.leases: dict[str, Lease] = {}
        self.epochs: dict[str, int] = {}
        self.callers: dict[str, str] = {}
        """Turns that are kept for the run that admitted them, until somebody claims them."""
        self.late: dict[str, dict[str, int]] = {}
        """Of each thread: owners that were late with their lease, and the head of the log when they were replaced."""

    def lease(self, thread_id: str) -> Lease:
        return self.leases.get(thread_id, Lease(None, 0, 0.0))

    def extend(self, facts: Sequence[Fact], stored: Sequence[PackedRow]) -> None:
        made, before = self.book.changes(facts, self.seq), self.seq
        previous = self.log[-1][2] if self.log else self.origin
        for row in stored:
            previous = row.link(previous)
            if row.turn_id is not None:
                self.rows_of.setdefault(row.turn_id, []).append(len(self.log))
            self.log.append((row.header, row.body, previous))
            self.firsts.append(self.seq + 1)
            self.seq += len(row.payloads)
        self.book.record(facts, made)
        self._watches.tell(self.agent_id, before, facts)
        if FEED in made.rows:
            self._watches.wake_feed()

    def cut_to_last(self) -> None:
        """Forget all rows but the newest."""
        self._read.clear()
        self.origin = self.log[-2][2]
        self.log, self.firsts, self.rows_of = self.log[-1:], self.firsts[-1:], {}

    def row(self, place: int) -> list[EncodedFact]:
        """The facts of a row, checked. Raises StoreDamaged."""
        header, body, digest = self.log[place]
        previous = self.log[place - 1][2] if place else self.origin
        try:
            entries = read_row(self.firsts[place], header, body)
            if link_row(previous, header, body, entries) == digest:
                return entries
        except NO_ROW:
            pass
        raise StoreDamaged(
            f"event {self.firsts[place]} of agent {self.agent_id} is not what was written",
            "Other agents are not affected.",
            agent_id=self.agent_id,
            sequence=self.firsts[place],
        )

    def entries(self, after: int = 0, turn_ids: Sequence[str] | None = None) -> Iterator[EncodedFact]:
        """Facts after an event in order: all, or those of some turns."""
        for place in self._places(after, turn_ids):
            yield from (entry for entry in self.row(place) if entry.seq > after)

    def _places(self, after: int, turn_ids: Sequence[str] | None) -> Iterator[int]:
        if turn_ids is None:
            places: Sequence[int] = range(max(0, bisect_right(self.firsts, after + 1) - 1), len(self.log))
        else:
            places = sorted(place for turn_id in turn_ids for place in self.rows_of.get(turn_id, ()))
        for place in places:
            if place + 1 == len(self.firsts) or self.firsts[place + 1] > after + 1:
                yield place

    def facts(self, after: int = 0, turn_ids: Sequence[str] | None = None) -> Iterator[StoredFact]:
        """The same, decoded: once for each row, as long as it stays what it was. Events do not change."""
        for place in self._places(after, turn_ids):
            row = self.log[place]
            known = self._read.get(place)
            if known is None or known[0] is not row:
                if len(self._read) >= MOST_READ:
                    del self._read[next(iter(self._read))]
                found = [(entry.seq, entry.head, decode_event(entry.head, entry.payload)) for entry in self.row(place)]
                known = self._read[place] = row, found
            for seq, head, event in known[1]:
                if seq > after:
                    yield StoredFact(self.agent_id, seq, fact_of(head, event))

    def damage(self) -> Damage | None:
        try:
            for _ in self.entries():
                pass
        except StoreDamaged as found:
            return Damage(self.agent_id, found.sequence, "the stored bytes do not match the hash chain")
        return None
