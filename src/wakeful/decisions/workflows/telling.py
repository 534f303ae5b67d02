"""What is told while `build_workflow` works, step by step, and while a workflow runs, node by node."""

from typing import NamedTuple

from wakeful.contracts.workflow_updates import (
    PlanningPhase,
    PlanningStatus,
    PlanningUpdate,
    TaskEvent,
    TaskUpdate,
    Titled,
    WorkflowUpdate,
)
from wakeful.contracts.workflows import SavedWorkflow, WorkflowGraph, WorkflowNodeResult, WorkflowRunResult
from wakeful.decisions.workflows.planning import Built, Judgement


class Place(NamedTuple):
    """The call that is told about, and where in the tree it stands."""

    tool_call_id: str
    parent_id: str | None = None
    depth: int = 0


def drafting(at: Place, corrections: int = 0) -> PlanningUpdate:
    """The model is asked for a graph, or for a better one."""
    return _planning(at, "drafting", "running", f"correction {corrections}" if corrections else None)


def judged_draft(at: Place, judgement: Judgement) -> list[WorkflowUpdate]:
    """There is a graph, and this is what it was worth."""
    told: list[WorkflowUpdate] = [
        _planning(at, "drafting", "completed"),
        _planning(at, "validating", "running"),
    ]
    if isinstance(judgement, Built):
        told += [
            _planning(at, "validating", "completed"),
            _task(at, _unsaved(judgement.graph), "task_planned"),
            _planning(at, "saving", "running"),
        ]
    else:
        problems = "\n".join(str(problem) for problem in judgement.problems)
        told.append(_planning(at, "validating", "failed", problems))
    return told


def saved_draft(at: Place, saved: SavedWorkflow) -> list[WorkflowUpdate]:
    """It is kept."""
    task = Titled(id=saved.workflow_id, title=saved.name)
    words = f"{saved.name}, revision {saved.revision}"
    return [_planning(at, "saving", "completed", words), _task(at, task, "task_created")]


def node_began(at: Place, graph: WorkflowGraph, node: str) -> TaskUpdate:
    """A node of a run began."""
    return _task(at, _unsaved(graph), "step_started", _step(graph, node))


def node_ended(at: Place, graph: WorkflowGraph, result: WorkflowNodeResult) -> TaskUpdate:
    """A node of a run came to its end; one that was skipped or cancelled did not do its work."""
    event: TaskEvent = "step_completed" if result.status == "succeeded" else "step_failed"
    return _task(at, _unsaved(graph), event, _step(graph, result.id))


def run_ended(at: Place, graph: WorkflowGraph, result: WorkflowRunResult) -> TaskUpdate:
    """A run came to its end."""
    return _task(at, _unsaved(graph), "task_completed" if result.status == "succeeded" else "task_failed")


def _unsaved(graph: WorkflowGraph) -> Titled:
    """A workflow by its id; before it has one, by its name."""
    return Titled(id=graph.id or graph.name, title=graph.name)


def _step(graph: WorkflowGraph, node: str) -> Titled:
    return Titled(id=node, title=graph.node(node).title or node)


def _planning(at: Place, phase: PlanningPhase, status: PlanningStatus, content: str | None = None) -> PlanningUpdate:
    return PlanningUpdate(phase=phase, status=status, content=content, **at._asdict())


def _task(at: Place, task: Titled, event: TaskEvent, step: Titled | None = None) -> TaskUpdate:
    return TaskUpdate(task=task, event=event, step=step, **at._asdict())
