"""The store without a disk: the same bytes, the same chain, the same epochs, gone with the process.

`Memory` is what is kept; a `MemoryStore` is one owner working on it. Two stores on one `Memory` are two owners, as two
processes on one database are.
"""

import hashlib
import os
import secrets
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from socket import gethostname

from wakeful.contracts.content import BlobRef
from wakeful.contracts.envelope import Fact, Recorded
from wakeful.contracts.errors import RestRefused, StoreDamaged, StoreProblem, TurnNotFound
from wakeful.contracts.models import AgentTokenUsageSummary
from wakeful.contracts.spending import SpendRow, WindowKey
from wakeful.ports import ActionRow, Admitted, Claim, Damage, RuleRow, TurnRow, UnknownRow, Watch, WorkflowRow
from wakeful.store import chain
from wakeful.store.encoding import OUTSIDER, OWNER, Stored, Writer, decode, encode, read_head
from wakeful.store.leases import (
    TTL,
    Elapsed,
    Holder,
    Lease,
    busy_elsewhere,
    busy_here,
    check,
    check_turn,
    elapsed,
    fenced,
    is_held,
    take,
)
from wakeful.store.memory_runs import MemoryImportedAgents, MemoryTaskRuns, RunShelf
from wakeful.store.rows import Book, changes, message_of, not_ours, summary
from wakeful.store.spending import Move, in_order
from wakeful.store.watching import Watches
from wakeful.store.workflow_shelf import by_name, next_revision


class _Agent:
    """One agent: its log, its rows, its lease."""

    def __init__(self, agent_id: str, windows: dict[WindowKey, Move]) -> None:
        self.agent_id = agent_id
        self.log: list[tuple[bytes, bytes, bytes]] = []
        """Header, body, hash; the sequence is the position, from 1."""
        self.book = Book(agent_id, windows, checks_windows=True)
        self.lease = Lease(None, 0, 0.0)
        self.epochs: dict[str, int] = {}

    def extend(self, facts: Sequence[Fact], stored: Sequence[Stored], writer: Writer) -> None:
        made = changes(facts, writer, len(self.log), self.book)
        previous = self.log[-1][2] if self.log else chain.origin(self.agent_id)
        for header, body in stored:
            previous = chain.link(previous, header, body)
            self.log.append((header, body, previous))
        self.book.record(facts, made)

    def damage(self) -> Damage | None:
        previous = chain.origin(self.agent_id)
        for seq, (header, body, digest) in enumerate(self.log, 1):
            if chain.link(previous, header, body) != digest:
                return Damage(self.agent_id, seq, "the stored bytes do not match the hash chain")
            previous = digest
        return None


class Memory:
    """What several owners may share."""

    def __init__(self) -> None:
        self.agents: dict[str, _Agent] = {}
        self.agent_of_turn: dict[str, _Agent] = {}
        self.turn_of_key: dict[str, str] = {}
        self.windows: dict[WindowKey, Move] = {}
        self.blobs: dict[str, bytes] = {}
        self.workflows: dict[str, list[WorkflowRow]] = {}
        self.workflow_keys: dict[str, WorkflowRow] = {}
        self.runs = RunShelf()
        self.owners: dict[str, Holder] = {}
        self.watches = Watches()
        self.runtime_id = f"rt_{secrets.token_hex(8)}"
        self.secret = secrets.token_bytes(32)


class MemoryStore:
    """A `Store` in memory. What it acknowledges survives nothing; everything else holds."""

    def __init__(self, memory: Memory | None = None, *, ttl: float = TTL, clock: Elapsed = elapsed) -> None:
        self._memory = memory if memory is not None else Memory()
        self._owner = f"own_{secrets.token_hex(8)}"
        self._ttl = ttl
        self._clock = clock
        self._held: dict[str, Claim] = {}
        self._closed = False
        self.task_runs = MemoryTaskRuns(self._memory.runs, self._check_open)
        self.imported_agents = MemoryImportedAgents(self._memory.runs, self._check_open)
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

    async def admit(self, agent_id: str, facts: Sequence[Fact]) -> Admitted | None:
        self._check_open()
        memory = self._memory
        stored = encode(facts, OUTSIDER)
        message, event = message_of(facts)
        if message is not None and event is not None:
            taken = None if event.key is None else self._row(memory.turn_of_key.get(event.key, ""))
            if taken is not None:
                return Admitted(taken, created=False)
            there = self._row(message.turn_id or "")
            if there is not None and there.agent_id != agent_id:
                raise not_ours(there)
        agent = memory.agents.get(agent_id) or _Agent(agent_id, memory.windows)
        agent.extend(facts, stored, OUTSIDER)
        memory.agents[agent_id] = agent
        for turn_id, row in agent.book.turns.items():
            if turn_id not in memory.agent_of_turn:
                memory.agent_of_turn[turn_id] = agent
                if row.key is not None:
                    memory.turn_of_key[row.key] = turn_id
        memory.watches.wake(agent_id, outsider=True)
        if message is None or message.turn_id is None:
            return None
        return Admitted(agent.book.turns[message.turn_id], created=True)

    async def claim(self, turn_id: str) -> Claim:
        self._check_open()
        agent = self._memory.agent_of_turn.get(turn_id)
        if agent is None:
            raise TurnNotFound(f"there is no turn {turn_id} in this store", "List the turns that are there.")
        if agent.lease.owner == self._owner and turn_id in self._held:
            raise busy_here(turn_id)
        lease = take(agent.lease, self._owner, self._clock(), self._ttl, self._memory.owners.__contains__)
        if lease is None:
            raise busy_elsewhere(agent.agent_id, self._memory.owners.get(agent.lease.owner or ""))
        if lease.epoch != agent.lease.epoch:
            self._drop(agent.agent_id)
        agent.lease = lease
        epoch = agent.epochs.get(turn_id, 0) + 1
        agent.epochs[turn_id] = epoch
        claim = Claim(agent.agent_id, turn_id, self._owner, lease.epoch, epoch, seen=0, fresh=epoch == 1)
        self._held[turn_id] = claim
        return claim

    async def release(self, claim: Claim) -> None:
        held = self._held.get(claim.turn_id)
        if held is None or held.turn_epoch != claim.turn_epoch:
            return
        del self._held[claim.turn_id]
        agent = self._memory.agents[claim.agent_id]
        if agent.lease.owner == self._owner and not any(h.agent_id == claim.agent_id for h in self._held.values()):
            agent.lease = agent.lease._replace(owner=None)

    async def hold(self, claim: Claim) -> None:
        self._check_open()
        agent = self._checked(claim)
        agent.lease = agent.lease._replace(expires=self._clock() + self._ttl)

    async def append(
        self, claim: Claim, facts: Sequence[Fact], *, barrier: bool = False, rest: bool = False
    ) -> list[Recorded]:
        self._check_open()
        check_turn(claim, facts)
        stored = encode(facts, OWNER)
        agent = self._checked(claim)
        heard = agent.book.heard.get(claim.turn_id, 0)
        if rest and heard > claim.seen:
            raise RestRefused(f"turn {claim.turn_id} has not seen event {heard}", "Fold what arrived, then decide.")
        others = []
        for seq in range(claim.seen + 1, heard + 1):
            header, body, _ = agent.log[seq - 1]
            head = read_head(header)
            if head.writer == OUTSIDER and head.turn_id == claim.turn_id:
                others.append(Recorded(agent.agent_id, seq, decode(head, body)))
        agent.extend(facts, stored, OWNER)
        claim.seen = len(agent.log)
        if facts:
            self._memory.watches.wake(claim.agent_id)
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
    ) -> list[Recorded]:
        self._check_open()
        return self._recorded(agent_id, after, thread_id, turn_id, limit)

    def _recorded(
        self, agent_id: str, after: int, thread_id: str | None, turn_id: str | None, limit: int | None
    ) -> list[Recorded]:
        agent = self._memory.agents.get(agent_id)
        if agent is None:
            return []
        found: list[Recorded] = []
        previous = agent.log[after - 1][2] if 0 < after <= len(agent.log) else chain.origin(agent_id)
        for seq in range(after + 1, len(agent.log) + 1):
            if limit is not None and len(found) >= limit:
                break
            header, body, digest = agent.log[seq - 1]
            if chain.link(previous, header, body) != digest:
                raise StoreDamaged(
                    f"event {seq} of agent {agent_id} is not what was written",
                    "Other agents are not affected.",
                    agent_id=agent_id,
                    sequence=seq,
                )
            previous = digest
            head = read_head(header)
            if turn_id is not None and head.turn_id != turn_id:
                continue
            if thread_id is not None and head.thread_id != thread_id:
                continue
            found.append(Recorded(agent_id, seq, decode(head, body)))
        return found

    async def turn(self, turn_id: str) -> TurnRow | None:
        return self._row(turn_id)

    async def turn_of_key(self, key: str) -> TurnRow | None:
        turn_id = self._memory.turn_of_key.get(key)
        return None if turn_id is None else self._row(turn_id)

    async def turns(self, *, open_only: bool = False, limit: int | None = None) -> list[TurnRow]:
        rows = [
            (row.created_at, place, row.first_seq, row)
            for place, agent in enumerate(self._memory.agents.values())
            for row in agent.book.turns.values()
            if row.is_open or not open_only
        ]
        rows.sort(key=lambda found: found[:3], reverse=True)
        return [row for *_, row in rows[:limit]]

    async def running(self, agent_id: str) -> list[TurnRow]:
        agent = self._memory.agents.get(agent_id)
        rows = [] if agent is None else [row for row in agent.book.turns.values() if row.state == "running"]
        return sorted(rows, key=lambda row: (row.created_at, row.first_seq), reverse=True)

    async def is_held(self, agent_id: str) -> bool:
        agent = self._memory.agents.get(agent_id)
        return agent is not None and is_held(agent.lease, self._clock(), self._memory.owners.__contains__)

    async def turns_of_thread(self, agent_id: str, thread_id: str) -> list[TurnRow]:
        agent = self._memory.agents.get(agent_id)
        return [] if agent is None else [row for row in agent.book.turns.values() if row.thread_id == thread_id]

    async def agents(self) -> list[str]:
        return list(self._memory.agents)

    async def unknown(self) -> list[UnknownRow]:
        rows = [
            (row.since, place, seq, row)
            for place, agent in enumerate(self._memory.agents.values())
            for seq, row in agent.book.unknown.values()
        ]
        rows.sort(key=lambda found: found[:3])
        return [row for *_, row in rows]

    async def action(self, action_id: str) -> ActionRow | None:
        found = (agent.book.actions.get(action_id) for agent in self._memory.agents.values())
        return next((row for row in found if row is not None), None)

    async def actions(self, *, pending_only: bool = False, turn_id: str | None = None) -> list[ActionRow]:
        rows = [
            row
            for agent in self._memory.agents.values()
            for row in agent.book.actions.values()
            if (not pending_only or row.status == "pending") and turn_id in (None, row.turn_id)
        ]
        return sorted(rows, key=lambda row: (row.requested_at, row.agent_id, row.required_seq))

    async def rules(self, agent_name: str | None = None) -> list[RuleRow]:
        rows = [
            row
            for agent in self._memory.agents.values()
            for row in agent.book.rules.values()
            if agent_name in (None, row.agent_name)
        ]
        return sorted(rows, key=lambda row: (row.added_at, row.rule_id))

    async def spending(self, scopes: Sequence[str] | None = None, *, after: int = 0) -> list[SpendRow]:
        rows = [move.row(key) for key, move in self._memory.windows.items() if move.turns > after]
        return in_order(row for row in rows if scopes is None or row.scope in scopes)

    async def usage(self, agent_id: str) -> AgentTokenUsageSummary:
        agent = self._memory.agents.get(agent_id)
        if agent is None:
            return AgentTokenUsageSummary()
        return summary(agent.book.total, agent.book.rounds, agent.book.last_turn)

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
        return BlobRef(digest=digest, size=len(data), media_type=media_type)

    async def get_blob(self, digest: str) -> bytes:
        data = self._memory.blobs.get(digest)
        if data is None:
            raise StoreDamaged(f"there is no blob {digest} in this store", "Nothing refers to it, or it was removed.")
        if f"sha256:{hashlib.sha256(data).hexdigest()}" != digest:
            raise StoreDamaged(f"blob {digest} does not match its name")
        return data

    def reader(self, agent_id: str, turn_id: str) -> Callable[[], list[Recorded]]:
        return lambda: self._recorded(agent_id, 0, None, turn_id, None)

    def watch(self, agent_id: str, *, outsiders_only: bool = False) -> Watch:
        return self._memory.watches.open(agent_id, outsiders_only=outsiders_only)

    async def rebuild_views(self) -> None:
        self._memory.windows.clear()
        for agent in self._memory.agents.values():
            book = Book(agent.agent_id, self._memory.windows)
            for seq, (header, body, _) in enumerate(agent.log, 1):
                head = read_head(header)
                fact = decode(head, body)
                book.record([fact], changes([fact], head.writer, seq - 1, book))
            book.checks_windows = True
            agent.book = book

    async def verify(self) -> list[Damage]:
        return [found for agent in self._memory.agents.values() if (found := agent.damage()) is not None]

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._memory.owners.pop(self._owner, None)
        self._memory.watches.wake_all()

    def _row(self, turn_id: str) -> TurnRow | None:
        agent = self._memory.agent_of_turn.get(turn_id)
        return None if agent is None else agent.book.turns[turn_id]

    def _checked(self, claim: Claim) -> _Agent:
        agent = self._memory.agents[claim.agent_id]
        check(claim, agent.lease, agent.epochs[claim.turn_id])
        held = self._held.get(claim.turn_id)
        if held is None or held.turn_epoch != claim.turn_epoch:
            raise fenced(claim)
        return agent

    def _drop(self, agent_id: str) -> None:
        """Claims under an older epoch of the agent's lease are worth nothing."""
        for turn_id in [turn for turn, held in self._held.items() if held.agent_id == agent_id]:
            del self._held[turn_id]

    def _check_open(self) -> None:
        if self._closed:
            raise StoreProblem("the store was closed", "Open it again.")
