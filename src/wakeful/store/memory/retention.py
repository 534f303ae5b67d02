"""`RetentionStore` in memory: the same rows and the same chain, without space to give back."""

from bisect import bisect_right
from collections.abc import Collection
from itertools import takewhile
from typing import Any

from wakeful.contracts.envelope import Fact
from wakeful.ports import TurnRow
from wakeful.ports.artifacts import ARTIFACTS
from wakeful.ports.retention import FreedSpace, StoreSize, left_mark
from wakeful.ports.tables import Table
from wakeful.store.blob_names import beside_outputs, names_in, names_in_blob
from wakeful.store.encoding import OUTSIDER, encode, lengths_of, read_row
from wakeful.store.hollow_rows import hollowed
from wakeful.store.log_cut import checkpoint_of
from wakeful.store.memory.contents import Memory
from wakeful.store.tables import TABLES


class MemoryRetention:
    """Steps on what is kept."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    async def expire_events(
        self, turn: TurnRow, kinds: Collection[str], *, after: int = 0, dry: bool = False
    ) -> FreedSpace:
        agent = self._memory.agents.get(turn.agent_id)
        if agent is None or turn.is_open:
            return FreedSpace()
        facts = freed = 0
        for place in agent.rows_of.get(turn.turn_id, ()):
            header, body, digest = agent.log[place]
            entries = read_row(agent.firsts[place], header, body)
            expiring = {at for at, each in enumerate(entries) if each.payload is not None and each.head.kind in kinds}
            if expiring:
                new = hollowed(body, lengths_of(header), expiring)
                if not dry:
                    agent.log[place] = header, new, digest
                facts, freed = facts + len(expiring), freed + len(body) - len(new)
        return FreedSpace(facts, freed)

    async def expire_facts(self, agent_id: str, seqs: Collection[int], *, dry: bool = False) -> FreedSpace:
        agent = self._memory.agents.get(agent_id)
        if agent is None:
            return FreedSpace()
        facts = freed = 0
        for place in sorted({bisect_right(agent.firsts, seq) - 1 for seq in seqs}):
            header, body, digest = agent.log[place]
            entries = read_row(agent.firsts[place], header, body)
            going = {at for at, each in enumerate(entries) if each.payload is not None and each.seq in seqs}
            if going:
                new = hollowed(body, lengths_of(header), going)
                if not dry:
                    agent.log[place] = header, new, digest
                facts, freed = facts + len(going), freed + len(body) - len(new)
        return FreedSpace(facts, freed)

    async def bundle_rows(self, agent_id: str, *, before: int, anew: bool = False) -> FreedSpace:
        return FreedSpace()

    async def cut_log(self, agent_id: str, *, now: int, before: int, dry: bool = False) -> FreedSpace:
        agent = self._memory.agents.get(agent_id)
        entries = [] if agent is None else [*agent.entries()]
        if agent is None or entries[-1].head.at >= before:
            return FreedSpace()
        event = checkpoint_of(agent_id, entries, agent.seq, agent.log[-1][2])
        fact = Fact(event, now)
        stored = encode([fact], OUTSIDER)
        items, freed = len(agent.log), sum(len(header) + len(body) for header, body, _ in agent.log)
        if dry:
            return FreedSpace(items, freed)
        agent.extend([fact], stored)
        agent.cut_to_last()
        for (turn_id,) in event.gone.get("turns", ()):
            agent.epochs.pop(turn_id, None)
            agent.callers.pop(turn_id, None)
        return FreedSpace(items, freed)

    async def expire_rows(self, table: Table[Any], *, before: int, after: int = 0, dry: bool = False) -> FreedSpace:
        tables = self._memory.tables
        rows = sorted(tables.all(table), key=lambda row: getattr(row, table.position))[:-1]
        later = [row for row in rows if getattr(row, table.position) > after]
        old = [*takewhile(lambda row: getattr(row, table.aged_by) < before, later)]
        if old and not dry:
            tables.change({table: {table.key_of(row): None for row in old}})
            self._memory.marks[table.name] = left_mark(getattr(old[-1], table.position), before)
        return FreedSpace(len(old))

    async def finish_cuts(self) -> FreedSpace:
        return FreedSpace()

    async def doubt_outputs(
        self, digests: Collection[str], *, now: int, dry: bool = False, anew: bool = False
    ) -> set[str]:
        free = {*digests} - self._referenced(beside=True)
        if not dry:
            self._memory.blob_doubts |= dict.fromkeys(free, now)
        return free

    async def remove_blob(self, digest: str, *, dry: bool = False) -> FreedSpace:
        data = self._memory.blobs.get(digest)
        if data is None or dry:
            return FreedSpace() if data is None else FreedSpace(1, len(data))
        if digest not in self._memory.blob_doubts:
            return FreedSpace()
        del self._memory.blobs[digest]
        self._memory.blob_doubts.pop(digest, None)
        return FreedSpace(1, len(data))

    async def sweep_blobs(self, *, now: int, grace: int, dry: bool = False, anew: bool = False) -> FreedSpace:
        memory = self._memory
        names = memory.blobs.keys() - self._referenced()
        if dry:
            return FreedSpace(len(names), sum(len(memory.blobs[name]) for name in names))
        since = {name: memory.blob_doubts.get(name, now) for name in names}
        memory.blob_doubts = since
        freed = [await self.remove_blob(name) for name in names if now - since[name] >= grace]
        return FreedSpace(len(freed), sum(each.bytes for each in freed))

    def _referenced(self, *, beside: bool = False) -> set[str]:
        memory = self._memory
        tables = [table for table in TABLES if table is not ARTIFACTS or not beside]
        texts = [repr(row) for table in tables for row in memory.tables.all(table)]
        texts += [repr(each) for each in memory.workflows.all()]
        texts += [repr(vars(memory.dispatches))]
        for agent in memory.agents.values():
            texts += [
                entry.payload.decode("utf-8", "replace") for entry in agent.entries() if entry.payload is not None
            ]
        found: set[str] = set()
        stored = (text.encode("utf-8", "replace") for text in texts)
        waiting = names_in(map(beside_outputs, stored) if beside else stored)
        while waiting:
            name = f"sha256:{waiting.pop()}"
            if name not in found and name in memory.blobs:
                found.add(name)
                waiting |= names_in_blob(memory.blobs[name])
        return found

    async def release_space(self, pages: int) -> int:
        return 0

    async def retention_mark(self, name: str) -> str | None:
        return self._memory.marks.get(name)

    async def set_retention_mark(self, name: str, value: str) -> None:
        self._memory.marks[name] = value

    async def used_bytes(self) -> int:
        return (await self.size()).total_bytes

    async def size(self) -> StoreSize:
        of = {
            name: sum(len(header) + len(body) + len(digest) for header, body, digest in agent.log)
            for name, agent in self._memory.agents.items()
        }
        return StoreSize(sum(of.values()) + sum(map(len, self._memory.blobs.values())), 0, {}, of)
