"""Running a workflow: as a turn of its own, durable like any other, through the same gate and under the same budget.

Whatever can be wrong with the graph or its inputs is wrong before the turn exists. Killed in the middle, the same line
run again goes on where it was, and `resume` does, too: the turn has its own copy of the graph.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from wakeful.contracts.content import Text
from wakeful.contracts.conversation import ToolItem
from wakeful.contracts.errors import InvalidValue, TurnNotFound
from wakeful.contracts.events import MessageAdmitted, ToolFailed, ToolResult
from wakeful.contracts.workflows import (
    NodeError,
    SavedWorkflow,
    WorkflowGraph,
    WorkflowNodeResult,
    WorkflowRun,
    WorkflowRunResult,
)
from wakeful.decisions.workflows.node_inputs import complete_inputs, wrong_inputs
from wakeful.decisions.workflows.progress import node_result, run_result
from wakeful.engine.prepare.workflows import named_agents
from wakeful.engine.run_request import Engine, RunRequest
from wakeful.engine.turn_messages import read_turn, with_messages
from wakeful.engine.workflow_registry import WorkflowRegistry
from wakeful.gate.large_content import resolve
from wakeful.ports import Blobs, MessageLog, Store, TurnRow
from wakeful.service.commands.turns import run_turn
from wakeful.service.run_result import RunResult

INVALID_INPUT = "invalid_workflow_input"
FIRST = 8
"""Among how many of its first facts the message of a turn stands."""


class WorkflowOutcome(NamedTuple):
    """A run that rests or is over."""

    run: RunResult[Any]
    result: WorkflowRunResult | None
    """None while something waits for somebody."""


async def run_workflow(
    engine: Engine,
    registry: WorkflowRegistry,
    workflow: SavedWorkflow | WorkflowGraph,
    request: RunRequest,
    inputs: Mapping[str, Any] | None = None,
) -> WorkflowOutcome:
    """Run it until it is over or waits. `request` says with which agent's tools, for whom, under which key and budget.

    The request's prompt is the input `prompt`, where the workflow declares one. Raises InvalidWorkflow and InvalidValue
    (`invalid_workflow_input`) before anything runs.
    """
    text = request.prompt if isinstance(request.prompt, str) and request.prompt else None
    run = checked_run(registry, workflow, inputs or {}, text)
    named_agents(run.graph, request.workflows.agents, request.deps)
    asked = replace(
        request,
        prompt=words_of(run, text),
        workflows=replace(request.workflows, run=run),
    )
    done = await run_turn(engine, asked)
    row = await engine.store.turn(done.turn_id)
    assert row is not None
    return WorkflowOutcome(done, await workflow_result(engine.store, row))


def checked_run(
    registry: WorkflowRegistry,
    workflow: SavedWorkflow | WorkflowGraph,
    inputs: Mapping[str, Any],
    text: str | None,
) -> WorkflowRun:
    """A graph with its inputs, complete; `text` is the input `prompt`, where it is declared.

    Raises InvalidWorkflow, and InvalidValue (`invalid_workflow_input`).
    """
    saved = workflow if isinstance(workflow, SavedWorkflow) else None
    graph = saved.graph if saved is not None else workflow
    assert isinstance(graph, WorkflowGraph)
    registry.check(graph)
    wrong = wrong_inputs(graph, inputs, text)
    for name, reason in wrong.items():
        others = [f"{each}: {why}" for each, why in wrong.items() if each != name]
        takes = [f"{each} (required)" if each in graph.required_inputs else each for each in graph.inputs]
        hint = "\n".join([*others, f"it takes: {', '.join(takes) or 'no inputs'}"])
        raise InvalidValue(INVALID_INPUT, name, reason, hint)
    return WorkflowRun(
        graph=graph,
        inputs=complete_inputs(graph, inputs, text),
        revision=saved.revision if saved is not None else None,
    )


def words_of(run: WorkflowRun, text: str | None) -> str:
    """What the message of a run says."""
    return text or f"Run the workflow {run.graph.name}."


async def runs_workflow(store: MessageLog, row: TurnRow) -> bool:
    """Is the turn the run of a workflow?"""
    first = await store.read(row.agent_id, turn_id=row.turn_id, limit=FIRST)
    recorded = await with_messages(store, row.turn_id, first)
    events = [entry.fact.event for entry in recorded]
    return any(isinstance(event, MessageAdmitted) and event.workflow_ref is not None for event in events)


async def workflow_result(store: Store, row: TurnRow) -> WorkflowRunResult | None:
    """What a run came to, from its log; None while it is not over. Raises TurnNotFound when it runs no workflow."""
    recorded = await read_turn(store, row)
    admitted = next(entry.fact.event for entry in recorded if isinstance(entry.fact.event, MessageAdmitted))
    if admitted.workflow_ref is None:
        raise TurnNotFound(f"turn {row.turn_id} runs no workflow", "see what it did: wakeful events TURN")
    if row.is_open:
        return None
    run = WorkflowRun.model_validate_json(await store.get_blob(admitted.workflow_ref.digest))
    ended: dict[str, WorkflowNodeResult] = {}
    for entry in recorded:
        event, node = entry.fact.event, entry.fact.call_id or ""
        if entry.fact.level is None and isinstance(event, ToolResult):
            ended[node] = node_result(node, "success", await _value(store, event))
        elif entry.fact.level is None and isinstance(event, ToolFailed):
            cancelled = event.status == "skipped" and event.abort_reason is not None
            error = NodeError(kind=event.tool_error.kind, message=event.message)
            ended[node] = node_result(node, "cancelled" if cancelled else event.status, error=error)
    return run_result(run.graph, ended, revision=run.revision)


async def _value(store: Blobs, event: ToolResult) -> Any:
    """What a node gave: JSON where it is an object or a list, else its text."""
    if event.result_ref is not None:
        text = (await store.get_blob(event.result_ref.digest)).decode("utf-8", "replace")
    else:
        item = await resolve(event.item, store.get_blob)
        assert isinstance(item, ToolItem)
        text = "".join(part.text for part in item.parts if isinstance(part, Text))
    if text[:1] in ("{", "["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text
