"""A run of a workflow: its nodes as calls, and what became of the calls as the run's result.

The engine does what lies between. It takes a call up when all in `after` have succeeded, asks `arguments_of` for its
arguments, and skips what `doomed` names.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from wakeful.contracts.tools import FailedStatus
from wakeful.contracts.workflows import (
    AGENT_CALL,
    APPROVAL_REF,
    NodeError,
    NodeKind,
    NodeStatus,
    RunStatus,
    WorkflowGraph,
    WorkflowNodeResult,
    WorkflowRunResult,
)
from wakeful.decisions.workflows.node_inputs import given_to, outputs_of
from wakeful.decisions.workflows.order import dependencies, doomed, topological


class PlannedCall(NamedTuple):
    """A node as a call."""

    call_id: str
    """The node's id."""
    kind: NodeKind
    tool_name: str
    """The tool; of an agent, `agent/` and its name; of an approval, the tool that asks a person."""
    title: str
    given: dict[str, Any]
    """What is known before anything ran. The whole comes from `arguments_of`, when `after` is done."""
    after: tuple[str, ...]
    """The calls it takes something from."""


def planned_calls(graph: WorkflowGraph, inputs: Mapping[str, Any]) -> tuple[PlannedCall, ...]:
    """Every node as a call, in topological order. The graph was validated, and the inputs are complete."""
    needs = dependencies(graph)
    calls = []
    for node in map(graph.node, topological(graph)):
        name = APPROVAL_REF if node.kind == "approval" else AGENT_CALL + node.ref if node.kind == "agent" else node.ref
        given = given_to(node, graph, inputs)
        calls.append(PlannedCall(node.id, node.kind, name, node.title or node.id, given, needs[node.id]))
    return tuple(calls)


def node_result(
    node: str, status: FailedStatus | Literal["success"], output: Any = None, error: NodeError | None = None
) -> WorkflowNodeResult:
    """What a call's end is for its node. A call that was refused, rejected or timed out failed it."""
    ended: NodeStatus
    match status:
        case "success":
            return WorkflowNodeResult(id=node, status="succeeded", output=output)
        case "cancelled" | "interrupted":
            ended = "cancelled"
        case "skipped":
            ended = "skipped"
        case _:
            ended = "failed"
    return WorkflowNodeResult(
        id=node, status=ended, error=error or NodeError(kind=status, message=f"the call ended as {status}")
    )


def run_result(
    graph: WorkflowGraph, ended: Mapping[str, WorkflowNodeResult], *, revision: int | None = None
) -> WorkflowRunResult:
    """The result of a run that is over. A node without an end was skipped for what it depends on, or cancelled."""
    lost = doomed(graph, {node: result.status for node, result in ended.items()})
    nodes = tuple(ended.get(node) or _without_end(node, lost) for node in topological(graph))
    outputs, unresolved = outputs_of(graph, {each.id: each.output for each in nodes if each.status == "succeeded"})
    statuses = {each.status for each in nodes}
    status: RunStatus = "succeeded"
    if "cancelled" in statuses:
        status = "cancelled"
    elif statuses - {"succeeded"}:
        status = "failed"
    return WorkflowRunResult(
        workflow_id=graph.id, revision=revision, status=status, nodes=nodes, outputs=outputs, lost_outputs=unresolved
    )


def _without_end(node: str, lost: Mapping[str, str]) -> WorkflowNodeResult:
    if node in lost:
        error = NodeError(kind="dependency_failed", message=f"{lost[node]} did not succeed")
        return WorkflowNodeResult(id=node, status="skipped", error=error)
    error = NodeError(kind="cancelled", message="the run ended before it began")
    return WorkflowNodeResult(id=node, status="cancelled", error=error)
