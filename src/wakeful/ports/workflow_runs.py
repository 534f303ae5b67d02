"""Runs of workflows: one row each, which says where its message is. What it runs is in the event that admitted it."""

from typing import NamedTuple, Protocol

from wakeful.ports.tables import RowQuery, Rows, Table, TableIndex


class WorkflowRunRow(NamedTuple):
    """A message that runs a workflow (`message.admitted` with a `workflow_ref`)."""

    message_id: str
    agent_id: str
    admitted_at: int


RUNS_BY_AGE = RowQuery(("admitted_at", "message_id"), served_by="workflow_runs_by_age")

WORKFLOW_RUNS = Table(
    "workflow_runs",
    WorkflowRunRow,
    key=("message_id",),
    indexes=(TableIndex("workflow_runs_by_age", ("admitted_at", "message_id")),),
    queries=(RUNS_BY_AGE,),
)


class WorkflowRuns(Rows, Protocol):
    """Reads runs of workflows."""

    async def workflow_runs(self, *, limit: int, after: WorkflowRunRow | None = None) -> list[WorkflowRunRow]:
        """The newest first; `after` is the last one of the page before."""
        place = () if after is None else (after.admitted_at, after.message_id)
        return await self.list_rows(WORKFLOW_RUNS, RUNS_BY_AGE, after=place, limit=limit, backwards=True)
