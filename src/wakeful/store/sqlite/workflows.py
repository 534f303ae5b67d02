"""The table of workflows: revisions, added and read, deleted together."""

from wakeful.ports import WorkflowRow
from wakeful.store.sqlite.connection import Statements
from wakeful.store.workflow_shelf import by_name, next_revision

_ROW = "SELECT workflow_id, revision, name, graph, created_at FROM workflows"
_NEWEST = f"{_ROW} w WHERE revision = (SELECT max(revision) FROM workflows o WHERE o.workflow_id = w.workflow_id)"


class SqliteWorkflows:
    """Everything that writes runs inside the writer's transaction: two who save at once get two revisions."""

    def __init__(self, sql: Statements) -> None:
        self._sql = sql

    def save(
        self, name: str, graph: str, new_id: str, created_at: int, workflow_id: str | None, key: str | None
    ) -> WorkflowRow:
        if key is not None and (there := self._sql.one(f"{_ROW} WHERE key = ?", (key,))) is not None:
            return WorkflowRow._make(there)
        row = next_revision(self.newest(), name, graph, new_id=new_id, created_at=created_at, workflow_id=workflow_id)
        self._sql.do("INSERT INTO workflows VALUES (?, ?, ?, ?, ?, ?)", (*row, key))
        return row

    def one(self, workflow_id: str, revision: int | None) -> WorkflowRow | None:
        which, given = ("revision = ?", [revision]) if revision is not None else ("TRUE", [])
        sql = f"{_ROW} WHERE workflow_id = ? AND {which} ORDER BY revision DESC LIMIT 1"
        found = self._sql.one(sql, [workflow_id, *given])
        return None if found is None else WorkflowRow._make(found)

    def newest(self) -> list[WorkflowRow]:
        return by_name(map(WorkflowRow._make, self._sql.all(_NEWEST)))

    def delete(self, workflow_id: str) -> bool:
        there = self.one(workflow_id, None) is not None
        self._sql.do("DELETE FROM workflows WHERE workflow_id = ?", (workflow_id,))
        return there
