"""What may be asked about running workflows in a runtime: to save one, to have it run, how a run stands, to stop it.

The runtime of the store runs them. Who asks waits for nothing but that the run is safe.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wakeful.service.operations.operation import OpenStore, Operation, check_no_tool
from wakeful.service.operations.turns import PAGE

if TYPE_CHECKING:
    from wakeful.contracts.workflows import SavedWorkflow
    from wakeful.service.agent_supply import AgentSupply
    from wakeful.views.workflow_runs import QueuedWorkflowRun

_RUN = "wakeful.views.workflow_runs.QueuedWorkflowRun"


@dataclass(frozen=True, slots=True)
class WorkflowToSave:
    """A graph to keep as a new revision, and the agent whose tools its nodes may name."""

    agent: str
    graph: Mapping[str, Any] = field(default_factory=dict)
    """The workflow, as a document."""


@dataclass(frozen=True, slots=True)
class WorkflowToRun:
    """A saved workflow to run with the tools, the policy and the budget of an agent."""

    name: str
    agent: str
    inputs: Mapping[str, Any] = field(default_factory=dict)
    """The inputs of the graph, by name."""
    prompt: str = ""
    revision: int | None = None
    thread: str | None = None
    key: str | None = None
    sender: str = ""


@dataclass(frozen=True, slots=True)
class WorkflowRunName:
    """One run of a workflow by its id."""

    run: str


@dataclass(frozen=True, slots=True)
class WorkflowRunQuery:
    """The newest runs."""

    limit: int = PAGE
    before: str | None = None
    """The last run of the page before."""


@dataclass(frozen=True, slots=True)
class WorkflowRunToCancel:
    """A run that is to end, and who wants it."""

    run: str
    by: str = ""


def supply_of(opened: OpenStore) -> "AgentSupply":
    """The agents that run here. Raises InvalidRequest where none do."""
    from wakeful.contracts.errors import InvalidRequest

    if opened.living is None:
        raise InvalidRequest("no process runs the agents of this store", "Start one: wakeful daemon start")
    return opened.living.supply


async def _save(opened: OpenStore, asked: WorkflowToSave) -> "SavedWorkflow":
    from wakeful.service.workflows.queued_runs import save_workflow

    check_no_tool("workflows")
    return await save_workflow(supply_of(opened), asked.graph, asked.agent)


async def _start(opened: OpenStore, asked: WorkflowToRun) -> "QueuedWorkflowRun":
    from wakeful.service.workflows.queued_runs import RunToQueue, queue_workflow

    check_no_tool("workflows")
    wanted = RunToQueue(
        asked.agent,
        asked.name,
        asked.revision,
        asked.inputs,
        asked.prompt,
        asked.thread,
        asked.key,
        asked.sender,
    )
    supply = supply_of(opened)
    assert opened.living is not None
    async with opened.living.refusals.counting(asked.agent):
        return await queue_workflow(supply, wanted)


async def _show(opened: OpenStore, asked: WorkflowRunName) -> "QueuedWorkflowRun":
    from wakeful.service.workflows.queued_runs import queued_run

    return await queued_run(opened.engine, asked.run)


async def _list(opened: OpenStore, asked: WorkflowRunQuery) -> "list[QueuedWorkflowRun]":
    from wakeful.service.workflows.queued_runs import queued_runs

    return await queued_runs(opened.engine, asked.limit, asked.before)


async def _cancel(opened: OpenStore, asked: WorkflowRunToCancel) -> "QueuedWorkflowRun":
    from wakeful.service.workflows.queued_runs import cancel_run

    check_no_tool("workflows")
    return await cancel_run(opened.engine, asked.run, by=asked.by)


SAVE_WORKFLOW = Operation(
    "runtime.save_workflow", "operate", WorkflowToSave, "wakeful.contracts.workflows.SavedWorkflow", _save
)
START_WORKFLOW = Operation("runtime.start_workflow", "operate", WorkflowToRun, _RUN, _start)
SHOW_WORKFLOW_RUN = Operation("runtime.workflow_run", "observe", WorkflowRunName, _RUN, _show)
LIST_WORKFLOW_RUNS = Operation("runtime.workflow_runs", "observe", WorkflowRunQuery, _RUN, _list, many=True)
CANCEL_WORKFLOW_RUN = Operation(
    "runtime.cancel_workflow_run", "operate", WorkflowRunToCancel, _RUN, _cancel, repeatable=True
)
