"""Saved workflows: graphs with a name, in numbered revisions. They are no view of the log."""

from typing import NamedTuple, Protocol


class WorkflowRow(NamedTuple):
    """One revision of a workflow. Revisions are numbered from 1 without gaps and never change."""

    workflow_id: str
    revision: int
    name: str
    graph: str
    """JSON, as it was given: the store does not read it."""
    created_at: int


class Workflows(Protocol):
    """Keeps graphs."""

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
        """Keep a graph, with a barrier, as the next revision of `workflow_id`.

        Without one: of the workflow that has this name now, or as the first revision of `new_id`. Raises
        WorkflowNotFound, and WorkflowNameTaken when another workflow has the name. What was saved under the same key
        before is returned, and nothing is written.
        """
        ...

    async def workflow(self, workflow_id: str, revision: int | None = None) -> WorkflowRow | None:
        """A revision, or the newest."""
        ...

    async def workflows(self) -> list[WorkflowRow]:
        """The newest revision of each, by name."""
        ...

    async def delete_workflow(self, workflow_id: str) -> bool:
        """Forget every revision; False when there was none. What runs has its own copy of the graph."""
        ...
