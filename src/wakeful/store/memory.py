"""The store without a disk: the same bytes, the same chain, the same epochs, gone with the process.

`Memory` is what is kept; a `MemoryStore` is one owner working on it. Two stores on one `Memory` are two owners, as two
processes on one database are.
"""

import asyncio
import hashlib
import os
import secrets
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from socket import gethostname
from typing import Any

from wakeful.contracts.content import BlobRef
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.errors import RestRefused, StoreDamaged, StoreProblem, TurnNotFound
from wakeful.contracts.events import AnyEvent
from wakeful.ports import (
    AdmissionAnswer,
    Claim,
    Damage,
    Feed,
    Match,
    Row,
    RowQuery,
    Table,
    TableReads,
    TurnReader,
    TurnRow,
    Value,
    Watch,
    WorkflowRow,
)
from wakeful.ports.mailbox import BUSY_THREADS, MESSAGES, BusyThread
from wakeful.ports.operator_feed import FEED
from wakeful.ports.turns import TURN_OF_KEY, TURNS, TURNS_OF_THREAD
from wakeful.store import chain
from wakeful.store.encoding import (
    NO_ROW,
    OUTSIDER,
    OWNER,
    EncodedFact,
    Head,
    PackedRow,
    decode,
    decode_event,
    encode,
    fact_of,
    link_row,
    read_row,
)
from wakeful.store.leases import (
    TTL,
    Elapsed,
    Holder,
    Lease,
    busy_elsewhere,
    busy_here,
    busy_waiting,
    check,
    check_turn,
    elapsed,
    fenced,
    is_held,
    is_kept,
    no_stream,
    owner_of,
    take,
    taken_from,
)
from wakeful.store.memory_dispatches import DispatchShelf, MemoryDispatches, MemoryImportedAgents
from wakeful.store.memory_retention import MemoryRetention
from wakeful.store.memory_tables import MemoryTables
from wakeful.store.memory_transfer import MemoryTransfer
from wakeful.store.rows import Book
from wakeful.store.table_changes import message_of
from wakeful.store.watches import Wake, Watches
from wakeful.store.workflow_shelf import by_name, next_revision

MOST_READ = 1_024
"""Rows of an agent whose facts stay decoded."""
STEP = 500
"""Facts of an agent that a rebuild reads before others have a turn."""


class _Agent:
    """One agent: its log, its rows, the leases of its threads."""

    def __init__(self, agent_id: str, memory: "Memory") -> None:
        self.agent_id = agent_id
        self._watches = memory.watches
        self.log: list[tuple[bytes, bytes, bytes]] = []
        """Header, body, hash: one row an append."""
        self.firsts: list[int] = []
        """The sequence of each row's first fact."""
        self.seq = 0
        self.origin = chain.origin(agent_id)
        """What the first row is chained to."""
        self.rows_of: dict[str, list[int]] = {}
        """A turn's rows, by their places in the log."""
        self.book = Book(agent_id, memory.tables)
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
        made = self.book.changes(facts, self.seq)
        previous = self.log[-1][2] if self.log else self.origin
        for row in stored:
            previous = row.link(previous)
            if row.turn_id is not None:
                self.rows_of.setdefault(row.turn_id, []).append(len(self.log))
            self.log.append((row.header, row.body, previous))
            self.firsts.append(self.seq + 1)
            self.seq += len(row.payloads)
        self.book.record(facts, made)
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


class Memory:
    """What several owners may share."""

    def __init__(self) -> None:
        self.agents: dict[str, _Agent] = {}
        self.tables = MemoryTables()
        self.blobs: dict[str, bytes] = {}
        self.blob_doubts: dict[str, int] = {}
        """Blobs to which nothing refers, and since when that is known."""
        self.marks: dict[str, str] = {}
        """How far retention has come."""
        self.workflows: dict[str, list[WorkflowRow]] = {}
        self.workflow_keys: dict[str, WorkflowRow] = {}
        self.dispatches = DispatchShelf()
        self.owners: dict[str, Holder] = {}
        self.watches = Watches()
        self.runtime_id = f"rt_{secrets.token_hex(8)}"
        self.secret = secrets.token_bytes(32)

    def row(self, turn_id: str) -> TurnRow:
        """Of a turn that is there."""
        row = self.tables.get(TURNS, (turn_id,))
        assert row is not None
        return row


class MemoryStore(TableReads):
    """A `Store` in memory. What it acknowledges survives nothing; everything else holds."""

    def __init__(self, memory: Memory | None = None, *, ttl: float = TTL, clock: Elapsed = elapsed) -> None:
        self._memory = memory if memory is not None else Memory()
        self._owner = f"own_{secrets.token_hex(8)}"
        self._ttl = ttl
        self._clock = clock
        self._held: dict[str, Claim] = {}
        self._reserved = 0
        self._closed = False
        self.dispatches = MemoryDispatches(self._memory.dispatches, self._check_open)
        self.retention = MemoryRetention(self._memory)
        self.transfer = MemoryTransfer(self._memory, lambda agent_id: _Agent(agent_id, self._memory))
        self.imported_agents = MemoryImportedAgents(self._memory.dispatches, self._check_open)
        since = datetime.now(UTC).isoformat(timespec="seconds")
        self._memory.owners[self._owner] = Holder(os.getpid(), gethostname(), since)

    @property
    def location(self) -> str:
        return ":memory:"

    @property
    def runtime_id(self) -> str:
        return self._memory.runtime_id

    @property
    def secret(self) -> bytes:
        return self._memory.secret

    async def admit(
        self, agent_id: str, facts: Sequence[Fact], *, reserve: bool = False, claim: bool = False
    ) -> AdmissionAnswer | None:
        self._check_open()
        memory = self._memory
        stored = encode(facts, OUTSIDER)
        message, event = message_of(facts)
        if event is not None and event.key is not None:
            for taken in memory.tables.page(TURNS, TURN_OF_KEY, (event.key,)):
                return AdmissionAnswer(taken, created=False)
        if message is not None and event is not None and (message.turn_id is None or event.key is not None):
            there = memory.tables.get(MESSAGES, (event.message_id,))
            if there is not None:
                return AdmissionAnswer(memory.tables.get(TURNS, (there.turn_id,)), created=False)
        agent = memory.agents.get(agent_id) or _Agent(agent_id, memory)
        agent.extend(facts, stored)
        memory.agents[agent_id] = agent
        memory.watches.wake(Wake.outsiders(agent_id, facts))
        if message is None or event is None:
            return None
        if message.turn_id is None:
            return AdmissionAnswer(None, created=True, queued=memory.tables.get(MESSAGES, (event.message_id,)))
        row = memory.row(message.turn_id)
        if claim and (own := self._claim_new(agent, row)) is not None:
            return AdmissionAnswer(row, created=True, claim=own)
        return AdmissionAnswer(row, created=True, reservation=self._reserve(agent, row) if reserve else None)

    def _claim_new(self, agent: _Agent, row: TurnRow) -> Claim | None:
        """Claim a turn as the only one of its thread; None: wait for the thread."""
        place = (row.agent_id, row.thread_id)
        old, thread = agent.lease(row.thread_id), self._memory.tables.get(BUSY_THREADS, place)
        if old.owner is not None or thread != BusyThread(*place, turns=0, queued=1):
            return None
        lease = Lease(self._owner, old.epoch + 1, self._clock() + self._ttl)
        return self._take(agent, row.thread_id, row.turn_id, lease)

    def _reserve(self, agent: _Agent, row: TurnRow) -> str:
        self._reserved += 1
        reservation = agent.callers[row.turn_id] = f"{self._owner}/{self._reserved}"
        lease, now = agent.lease(row.thread_id), self._clock()
        if lease.owner is None and lease.expires <= now:
            agent.leases[row.thread_id] = lease._replace(expires=now + self._ttl)
        return reservation

    async def give_up(self, turn_id: str, reservation: str) -> None:
        self._check_open()
        row = self._memory.row(turn_id)
        agent = self._memory.agents[row.agent_id]
        if agent.callers.get(turn_id) == reservation:
            del agent.callers[turn_id]
        self._memory.watches.wake(Wake(agent.agent_id, row.thread_id, "lease"))

    async def claim(self, turn_id: str, *, reservation: str | None = None) -> Claim:
        self._check_open()
        row = await self.turn(turn_id)
        if row is None:
            raise TurnNotFound(f"there is no turn {turn_id} in this store", "List the turns that are there.")
        agent, thread, owners = self._memory.agents[row.agent_id], row.thread_id, self._memory.owners
        old = agent.lease(thread)
        mine = self._mine(agent.agent_id, thread) if old.owner == self._owner else []
        for held in mine:
            if held == turn_id or self._held[held].opens:
                raise busy_here(held)
        lease = self._lease(agent, thread)
        caller = agent.callers.get(turn_id)
        if caller is not None and is_kept(old, caller, reservation, self._clock(), owners.__contains__):
            asker = owner_of(caller)
            raise busy_waiting(turn_id, owners.get(asker), here=asker == self._owner)
        agent.callers.pop(turn_id, None)
        return self._take(agent, thread, turn_id, lease)

    async def claim_thread(self, agent_id: str, thread_id: str, turn_id: str) -> Claim:
        self._check_open()
        agent = self._memory.agents.get(agent_id)
        if agent is None:
            raise no_stream(agent_id)
        is_ours = agent.lease(thread_id).owner == self._owner
        mine = self._mine(agent_id, thread_id) if is_ours else []
        if mine:
            raise busy_here(mine[0])
        lease = self._lease(agent, thread_id)
        claim = self._take(agent, thread_id, turn_id, lease)
        claim.opens = True
        return claim

    def _mine(self, agent_id: str, thread_id: str) -> list[str]:
        """Turns of a thread that are claimed here."""
        place = (agent_id, thread_id)
        return [held.turn_id for held in self._held.values() if (held.agent_id, held.thread_id) == place]

    def _lease(self, agent: _Agent, thread: str) -> Lease:
        """The thread's lease in our hands, once it is taken. Raises AgentBusy."""
        old, owners = agent.lease(thread), self._memory.owners
        lease = take(old, self._owner, self._clock(), self._ttl, owners.__contains__)
        if lease is None:
            raise busy_elsewhere(agent.agent_id, thread, owners.get(old.owner or ""))
        return lease

    def _take(self, agent: _Agent, thread: str, turn_id: str, lease: Lease) -> Claim:
        old, late, owners = agent.lease(thread), agent.late.get(thread, {}), self._memory.owners
        if lease.epoch != old.epoch:
            self._drop(agent.agent_id, thread)
        before = taken_from(old, self._owner, owners.__contains__)
        if before == "late" and old.owner is not None:
            late[old.owner] = agent.seq
        agent.late[thread] = late = {owner: seq for owner, seq in late.items() if owner in owners}
        agent.leases[thread] = lease
        epoch = agent.epochs.get(turn_id, 0) + 1
        agent.epochs[turn_id] = epoch
        claim = Claim(
            agent.agent_id,
            thread,
            turn_id,
            self._owner,
            lease.epoch,
            epoch,
            seen=0,
            head=agent.seq,
            fresh=epoch == 1,
            taken_from=before,
            late_upto=max(late.values(), default=0),
        )
        self._held[turn_id] = claim
        return claim

    async def release(self, claim: Claim) -> None:
        self._let_go(claim)

    def _let_go(self, claim: Claim) -> None:
        held = self._held.get(claim.turn_id)
        if held is None or held.turn_epoch != claim.turn_epoch:
            return
        del self._held[claim.turn_id]
        agent, place = self._memory.agents[claim.agent_id], (claim.agent_id, claim.thread_id)
        lease = agent.lease(claim.thread_id)
        if lease.owner == self._owner and not any((h.agent_id, h.thread_id) == place for h in self._held.values()):
            agent.leases[claim.thread_id] = lease._replace(owner=None, expires=self._clock() + self._ttl)
        self._memory.watches.wake(Wake(*place, "lease"))

    async def hold(self, claim: Claim) -> None:
        self._check_open()
        agent = self._checked(claim)
        lease = agent.lease(claim.thread_id)
        agent.leases[claim.thread_id] = lease._replace(expires=self._clock() + self._ttl)

    async def append(
        self, claim: Claim, facts: Sequence[Fact], *, barrier: bool = False, rest: bool = False, last: bool = False
    ) -> list[StoredFact]:
        self._check_open()
        check_turn(claim, facts)
        stored = encode(facts, OWNER)
        agent = self._checked(claim)
        heard = 0 if claim.opens else self._memory.row(claim.turn_id).heard
        if rest and heard > claim.seen:
            raise RestRefused(f"turn {claim.turn_id} has not seen event {heard}", "Fold what arrived, then decide.")
        news = agent.entries(claim.seen, [claim.turn_id]) if heard > claim.seen else ()
        others = [
            StoredFact(agent.agent_id, entry.seq, decode(entry.head, entry.payload))
            for entry in news
            if entry.head.writer == OUTSIDER
        ]
        agent.extend(facts, stored)
        if facts:
            claim.opens = False
        claim.seen = agent.seq
        if facts:
            self._memory.watches.wake(Wake(claim.agent_id, claim.thread_id, "all"))
        if last:
            self._let_go(claim)
        return others

    async def sync(self) -> None:
        self._check_open()

    async def read(
        self,
        agent_id: str,
        *,
        after: int = 0,
        thread_id: str | None = None,
        turn_id: str | None = None,
        limit: int | None = None,
    ) -> list[StoredFact]:
        self._check_open()
        return self._recorded(agent_id, after, thread_id, turn_id, limit)

    def _recorded(
        self, agent_id: str, after: int, thread_id: str | None, turn_id: str | None, limit: int | None
    ) -> list[StoredFact]:
        agent = self._memory.agents.get(agent_id)
        if agent is None:
            return []
        turns: list[str] | None = None
        if turn_id is not None or thread_id is not None:
            tables = self._memory.tables
            if turn_id is None:
                rows = tables.page(TURNS, TURNS_OF_THREAD, (thread_id, agent_id))
            else:
                rows = [row for row in [tables.get(TURNS, (turn_id,))] if row is not None]
            turns = [row.turn_id for row in rows if row.agent_id == agent_id and thread_id in (None, row.thread_id)]
        return [*islice(agent.facts(after, turns), limit)]

    async def is_held(self, agent_id: str, thread_id: str) -> bool:
        agent = self._memory.agents.get(agent_id)
        alive = self._memory.owners.__contains__
        return agent is not None and is_held(agent.lease(thread_id), self._clock(), alive)

    async def agents(self) -> list[str]:
        return list(self._memory.agents)

    async def head(self, agent_id: str) -> int:
        agent = self._memory.agents.get(agent_id)
        return 0 if agent is None else agent.seq

    async def count_rows(self, table: Table[Any]) -> int:
        return len(self._memory.tables.all(table))

    async def get_row(self, table: Table[Row], *key: Value) -> Row | None:
        return self._memory.tables.get(table, key)

    async def list_rows(
        self,
        table: Table[Row],
        query: RowQuery,
        *equal: Value,
        after: Sequence[Value] = (),
        limit: int | None = None,
        backwards: bool = False,
    ) -> list[Row]:
        return self._memory.tables.page(table, query, equal, after, limit, backwards)

    async def find_rows(
        self, table: Table[Row], matches: Sequence[Match], *, order: Sequence[str], limit: int | None = None
    ) -> list[Row]:
        return self._memory.tables.find(table, matches, order, limit)

    async def save_workflow(
        self,
        name: str,
        graph: str,
        *,
        new_id: str,
        created_at: int,
        workflow_id: str | None = None,
        key: str | None = None,
    ) -> WorkflowRow:
        self._check_open()
        kept, keys = self._memory.workflows, self._memory.workflow_keys
        if key is not None and key in keys:
            return keys[key]
        newest = [revisions[-1] for revisions in kept.values()]
        row = next_revision(newest, name, graph, new_id=new_id, created_at=created_at, workflow_id=workflow_id)
        kept.setdefault(row.workflow_id, []).append(row)
        if key is not None:
            keys[key] = row
        return row

    async def workflow(self, workflow_id: str, revision: int | None = None) -> WorkflowRow | None:
        revisions = self._memory.workflows.get(workflow_id, [])
        found = [row for row in revisions if revision in (None, row.revision)]
        return found[-1] if found else None

    async def workflows(self) -> list[WorkflowRow]:
        return by_name(revisions[-1] for revisions in self._memory.workflows.values())

    async def delete_workflow(self, workflow_id: str) -> bool:
        self._check_open()
        keys = self._memory.workflow_keys
        for key in [key for key, row in keys.items() if row.workflow_id == workflow_id]:
            del keys[key]
        return self._memory.workflows.pop(workflow_id, None) is not None

    async def put_blob(self, data: bytes, media_type: str) -> BlobRef:
        self._check_open()
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        self._memory.blobs[digest] = bytes(data)
        self._memory.blob_doubts.pop(digest, None)
        return BlobRef(digest=digest, size=len(data), media_type=media_type)

    async def get_blob(self, digest: str) -> bytes:
        data = self._memory.blobs.get(digest)
        if data is None:
            raise StoreDamaged(f"there is no blob {digest} in this store", "Nothing refers to it, or it was removed.")
        if f"sha256:{hashlib.sha256(data).hexdigest()}" != digest:
            raise StoreDamaged(f"blob {digest} does not match its name")
        return data

    def turn_reader(self, agent_id: str, turn_id: str) -> TurnReader:
        async def read() -> list[StoredFact]:
            return self._recorded(agent_id, 0, None, turn_id, None)

        return read

    def watch(self, agent_id: str, *, thread_id: str | None = None, feed: Feed = "all") -> Watch:
        return self._memory.watches.open(agent_id, thread_id, feed)

    def watch_wakes(self) -> Watch:
        return self._memory.watches.open_wakes()

    def watch_feed(self) -> Watch:
        return self._memory.watches.open_feed()

    async def rebuild_views(self) -> None:
        tables, books = MemoryTables(), dict[str, Book]()
        read: dict[str, int] = {}
        while behind := [each for each in self._memory.agents.values() if read.get(each.agent_id, 0) < each.seq]:
            for agent in behind:
                book = books.setdefault(agent.agent_id, Book(agent.agent_id, tables))
                for entry in islice(agent.entries(read.get(agent.agent_id, 0)), STEP):
                    book.read_again(decode(entry.head, entry.payload), entry.seq)
                    read[agent.agent_id] = entry.seq
            await asyncio.sleep(0)  # others append meanwhile, and what they appended is read next
        tables.keep_numbers(self._memory.tables, self._memory.marks)
        self._memory.tables = tables
        for agent_id, book in books.items():
            self._memory.agents[agent_id].book = book

    async def verify(self) -> list[Damage]:
        found: list[Damage] = []
        for agent in [*self._memory.agents.values()]:
            if (damage := agent.damage()) is not None:
                found.append(damage)
            await asyncio.sleep(0)
        return found

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._memory.owners.pop(self._owner, None)
        self._memory.watches.wake_all()

    def _checked(self, claim: Claim) -> _Agent:
        agent = self._memory.agents[claim.agent_id]
        check(claim, agent.lease(claim.thread_id), agent.epochs[claim.turn_id])
        held = self._held.get(claim.turn_id)
        if held is None or held.turn_epoch != claim.turn_epoch:
            raise fenced(claim)
        return agent

    def _drop(self, agent_id: str, thread_id: str) -> None:
        """Claims under an older epoch of the thread's lease are worth nothing."""
        place = (agent_id, thread_id)
        for turn_id in [turn for turn, held in self._held.items() if (held.agent_id, held.thread_id) == place]:
            del self._held[turn_id]

    def _check_open(self) -> None:
        if self._closed:
            raise StoreProblem("the store was closed", "Open it again.")
