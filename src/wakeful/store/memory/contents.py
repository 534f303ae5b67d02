"""What is kept in memory, which several owners may share."""

import secrets

from wakeful.ports import TurnRow, WorkflowRow
from wakeful.ports.turns import TURNS
from wakeful.store.leases import Holder
from wakeful.store.memory.agent_log import AgentLog
from wakeful.store.memory.dispatches import DispatchShelf
from wakeful.store.memory_tables import MemoryTables
from wakeful.store.watches import Watches
from wakeful.store.workflow_shelf import by_name, next_revision


class MemoryWorkflows:
    """Revisions of workflows: added and read one by one, deleted together."""

    def __init__(self) -> None:
        self._revisions: dict[str, list[WorkflowRow]] = {}
        self._by_key: dict[str, WorkflowRow] = {}

    def save(
        self, name: str, graph: str, new_id: str, created_at: int, workflow_id: str | None, key: str | None
    ) -> WorkflowRow:
        if key is not None and key in self._by_key:
            return self._by_key[key]
        row = next_revision(self.newest(), name, graph, new_id=new_id, created_at=created_at, workflow_id=workflow_id)
        self._revisions.setdefault(row.workflow_id, []).append(row)
        if key is not None:
            self._by_key[key] = row
        return row

    def one(self, workflow_id: str, revision: int | None) -> WorkflowRow | None:
        found = [row for row in self._revisions.get(workflow_id, []) if revision in (None, row.revision)]
        return found[-1] if found else None

    def newest(self) -> list[WorkflowRow]:
        return by_name(revisions[-1] for revisions in self._revisions.values())

    def all(self) -> list[WorkflowRow]:
        """Every revision."""
        return [row for revisions in self._revisions.values() for row in revisions]

    def delete(self, workflow_id: str) -> bool:
        for key in [key for key, row in self._by_key.items() if row.workflow_id == workflow_id]:
            del self._by_key[key]
        return self._revisions.pop(workflow_id, None) is not None


class Memory:
    """Logs, rows, blobs, workflows and dispatches; its owners are known as those of a file are."""

    def __init__(self) -> None:
        self.agents: dict[str, AgentLog] = {}
        self.tables = MemoryTables()
        self.blobs: dict[str, bytes] = {}
        self.blob_doubts: dict[str, int] = {}
        """Blobs to which nothing refers, and since when that is known."""
        self.marks: dict[str, str] = {}
        """How far retention has come."""
        self.workflows = MemoryWorkflows()
        self.dispatches = DispatchShelf()
        self.owners: dict[str, Holder] = {}
        self.watches = Watches()
        self.runtime_id = f"rt_{secrets.token_hex(8)}"
        self.secret = secrets.token_bytes(32)

    def new_agent(self, agent_id: str) -> AgentLog:
        """Without a log, and not among the agents yet."""
        return AgentLog(agent_id, self.tables, self.watches)

    def row(self, turn_id: str) -> TurnRow:
        """Of a turn that is there."""
        row = self.tables.get(TURNS, (turn_id,))
        assert row is not None
        return row
