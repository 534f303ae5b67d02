"""`LogTransfer` in memory."""

from collections.abc import AsyncIterator, Sequence

from wakeful.contracts.errors import EventRefused
from wakeful.ports.operator_feed import FEED
from wakeful.ports.transfer import StoredLog, StoredRow
from wakeful.store.blob_names import names_in, names_in_blob
from wakeful.store.log_transfer import checked_log, payloads_of, refuse_known
from wakeful.store.memory.contents import Memory


class MemoryTransfer:
    """Whole logs of one memory."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    async def stored_log(self, agent_id: str) -> StoredLog | None:
        agent = self._memory.agents.get(agent_id)
        if agent is None:
            return None
        rows = [StoredRow(first, *row) for first, row in zip(agent.firsts, agent.log, strict=True)]
        for place in range(len(rows)):
            agent.row(place)  # raises StoreDamaged
        return StoredLog(agent_id, agent.firsts[0] - 1, agent.origin, rows)

    async def referenced_blobs(self, logs: Sequence[StoredLog]) -> AsyncIterator[tuple[str, bytes]]:
        waiting, seen = names_in(payloads_of(logs)), set[str]()
        while waiting:
            name = waiting.pop()
            seen.add(name)
            data = self._memory.blobs.get(f"sha256:{name}")
            if data is not None:
                yield f"sha256:{name}", data
                waiting |= names_in_blob(data) - seen

    def check(self, log: StoredLog) -> None:
        checked_log(log)

    async def take_in(self, log: StoredLog) -> int:
        checked = checked_log(log)
        if log.agent_id in self._memory.agents:
            raise EventRefused(
                f"agent {log.agent_id} is in this store already", "Import it into a store that does not have it."
            )
        refuse_known(checked, log.agent_id, self._memory.tables)
        agent = self._memory.new_agent(log.agent_id)
        agent.origin = log.cut_hash if log.cut else agent.origin
        for place, (row, entries) in enumerate(zip(log.rows, checked.entries, strict=True)):
            agent.log.append((row.header, row.body, row.hash))
            agent.firsts.append(row.seq)
            if entries[0].head.turn_id is not None:
                agent.rows_of.setdefault(entries[0].head.turn_id, []).append(place)
        agent.seq = checked.head
        agent.book.agent_name = checked.book.agent_name
        self._memory.tables.add_agent(log.agent_id)
        self._memory.tables.change(checked.tables)
        self._memory.agents[log.agent_id] = agent
        if checked.tables[FEED]:
            self._memory.watches.wake_feed()
        return checked.head - log.cut
