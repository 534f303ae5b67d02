"""Which revision of which workflow a graph becomes. Pure, and the same for every backend.

A name means one workflow: the one whose newest revision has it.
"""

from collections.abc import Iterable

from wakeful.contracts.errors import WorkflowNameTaken, WorkflowNotFound
from wakeful.ports import WorkflowRow


def next_revision(
    newest: Iterable[WorkflowRow], name: str, graph: str, *, new_id: str, created_at: int, workflow_id: str | None
) -> WorkflowRow:
    """The row to write, given the newest revision of each workflow. Raises WorkflowNotFound and WorkflowNameTaken."""
    rows = list(newest)
    named = next((row for row in rows if row.name == name), None)
    if workflow_id is None:
        before = named
    else:
        before = next((row for row in rows if row.workflow_id == workflow_id), None)
        if before is None:
            raise WorkflowNotFound(f"there is no workflow {workflow_id!r}", "Leave the id out to save it as a new one.")
        if named is not None and named.workflow_id != workflow_id:
            raise WorkflowNameTaken(
                f"the workflow {named.workflow_id} is called {name!r} already", "Give this one another name."
            )
    if before is None:
        return WorkflowRow(new_id, 1, name, graph, created_at)
    return WorkflowRow(before.workflow_id, before.revision + 1, name, graph, created_at)


def by_name(rows: Iterable[WorkflowRow]) -> list[WorkflowRow]:
    """As they are listed."""
    return sorted(rows, key=lambda row: row.name)
