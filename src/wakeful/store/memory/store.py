"""One owner at work on what is kept in memory."""

import asyncio
import hashlib
import os
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import islice
from socket import gethostname
from typing import Any

from wakeful.contracts.content import BlobRef
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.errors import RestRefused, StoreDamaged, StoreProblem
from wakeful.contracts.values import unchecked
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
    Value,
    Watch,
    WorkflowRow,
)
from wakeful.ports.mailbox import MESSAGES
from wakeful.ports.turns import TURN_OF_KEY, TURNS, TURNS_OF_THREAD
from wakeful.store.emptied_turns import LeftEvents, emptied_among
from wakeful.store.encoding import OUTSIDER, OWNER, decode, encode
from wakeful.store.leases import TTL, Elapsed, Holder, check_turn, elapsed
from wakeful.store.memory.claims import MemoryClaims
from wakeful.store.memory.contents import Memory
from wakeful.store.memory.dispatches import MemoryDispatches, MemoryImportedAgents
from wakeful.store.memory.retention import MemoryRetention
from wakeful.store.memory.transfer import MemoryTransfer
from wakeful.store.memory_tables import MemoryTables
from wakeful.store.rows import Book
from wakeful.store.table_changes import message_of
from wakeful.store.watches import Wake

_blob_ref = unchecked(BlobRef)

STEP = 500
"""Facts of an agent that a rebuild reads before others have a turn."""


class MemoryStore(TableReads):
    """A `Store` in memory. What it acknowledges survives nothing; everything else holds."""

    def __init__(self, memory: Memory | None = None, *, ttl: float = TTL, clock: Elapsed = elapsed) -> None:
        self._memory = memory if memory is not None else Memory()
        self._owner = f"own_{secrets.token_hex(8)}"
        self._claims = MemoryClaims(self._memory, self._owner, ttl, clock)
        self._closed = False
        self.dispatches = MemoryDispatches(self._memory.dispatches, self._check_open)
        self.retention = MemoryRetention(self._memory)
        self.transfer = MemoryTransfer(self._memory)
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
        agent = memory.agents.get(agent_id) or memory.new_agent(agent_id)
        agent.extend(facts, stored)
        memory.agents[agent_id] = agent
        memory.watches.wake(Wake.outsiders(agent_id, facts), is_told=True)
        if message is None or event is None:
            return None
        if message.turn_id is None:
            return AdmissionAnswer(None, created=True, queued=memory.tables.get(MESSAGES, (event.message_id,)))
        row = memory.row(message.turn_id)
        if claim and (own := self._claims.claim_new(agent, row)) is not None:
            return AdmissionAnswer(row, created=True, claim=own)
        return AdmissionAnswer(row, created=True, reservation=self._claims.reserve(agent, row) if reserve else None)

    async def give_up(self, turn_id: str, reservation: str) -> None:
        self._check_open()
        self._claims.give_up(turn_id, reservation)

    async def claim(self, turn_id: str, *, reservation: str | None = None) -> Claim:
        self._check_open()
        return self._claims.claim(turn_id, reservation)

    async def claim_thread(self, agent_id: str, thread_id: str, turn_id: str) -> Claim:
        self._check_open()
        return self._claims.claim_thread(agent_id, thread_id, turn_id)

    async def release(self, claim: Claim) -> None:
        self._claims.release(claim)

    async def hold(self, claim: Claim) -> None:
        self._check_open()
        self._claims.renew(claim)

    async def append(
        self, claim: Claim, facts: Sequence[Fact], *, barrier: bool = False, rest: bool = False, last: bool = False
    ) -> list[StoredFact]:
        self._check_open()
        check_turn(claim, facts)
        stored = encode(facts, OWNER)
        agent = self._claims.check(claim)
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
            self._memory.watches.wake(Wake(claim.agent_id, claim.thread_id, "all"), is_told=True)
        if last:
            self._claims.release(claim)
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
        return self._claims.is_held(agent_id, thread_id)

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
        return self._memory.workflows.save(name, graph, new_id, created_at, workflow_id, key)

    async def workflow(self, workflow_id: str, revision: int | None = None) -> WorkflowRow | None:
        return self._memory.workflows.one(workflow_id, revision)

    async def workflows(self) -> list[WorkflowRow]:
        return self._memory.workflows.newest()

    async def delete_workflow(self, workflow_id: str) -> bool:
        self._check_open()
        return self._memory.workflows.delete(workflow_id)

    async def put_blob(self, data: bytes, media_type: str) -> BlobRef:
        self._check_open()
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        self._memory.blobs[digest] = bytes(data)
        self._memory.blob_doubts.pop(digest, None)
        return _blob_ref(digest=digest, size=len(data), media_type=media_type)

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

    def watch(self, agent_id: str, *, thread_id: str | None = None, feed: Feed = "all", keeps: bool = False) -> Watch:
        return self._memory.watches.open(agent_id, thread_id, feed, keeps=keeps)

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
                left = LeftEvents(lambda agent=agent: emptied_among(agent.entries()))  # type: ignore[misc]
                for entry in islice(agent.entries(read.get(agent.agent_id, 0)), STEP):
                    book.read_again([left.read_as(entry.seq, decode(entry.head, entry.payload))], entry.seq - 1)
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

    def _check_open(self) -> None:
        if self._closed:
            raise StoreProblem("the store was closed", "Open it again.")
