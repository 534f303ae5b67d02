"""Runs of workflows that a runtime is asked for: each is a message of an agent that says what to run.

The answer to whoever asks is that the message is safe. The scheduler takes it like any other message, in a thread of
its own unless one is named, so that nothing waits behind it. After a kill the runtime that comes next goes on with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wakeful.contracts.errors import InvalidWorkflow, MessageNotFound, StoreDamaged, TurnDeleted
from wakeful.contracts.events import MessageAdmitted, TurnFailed
from wakeful.contracts.messages import AdmissionContext, DeliverySurface
from wakeful.contracts.workflows import SavedWorkflow, WorkflowGraph, WorkflowRun
from wakeful.decisions.intake import id_of_key
from wakeful.decisions.workflows.graph_reader import graph_of
from wakeful.engine.run_request import Engine
from wakeful.engine.turn_messages import admitted_message
from wakeful.engine.workflow_parts import workflow_registry
from wakeful.engine.workflow_registry import WorkflowRegistry
from wakeful.ports import MessageRow, TurnRow
from wakeful.ports.mailbox import MESSAGES
from wakeful.ports.workflow_runs import WORKFLOW_RUNS, WorkflowRunRow
from wakeful.service.agent_supply import AgentSupply
from wakeful.service.commands.agents import addressed, send_message
from wakeful.service.commands.interruption import cancel_message
from wakeful.service.commands.turn_claims import recall
from wakeful.service.queries.record_names import meant_row
from wakeful.service.workflows.runs import checked_run, words_of, workflow_result
from wakeful.views.workflow_runs import QueuedRunStatus, QueuedWorkflowRun

RUNS_ONE = "Start one: wakeful workflow run NAME --agent AGENT"


@dataclass(slots=True, frozen=True)
class RunToQueue:
    """What is to be run, with whose tools."""

    agent: str
    workflow: str
    """A saved one, by its name or id."""
    revision: int | None = None
    inputs: Mapping[str, Any] | None = None
    prompt: str = ""
    """The input of that name, where the workflow declares it."""
    thread: str | None = None
    """None: one of its own."""
    key: str | None = None
    sender: str = ""
    surface: DeliverySurface = "http_control_prompt"
    admission: AdmissionContext = "control_authenticated"


async def queue_workflow(supply: AgentSupply, asked: RunToQueue) -> QueuedWorkflowRun:
    """Make a run safe. Raises AgentNotFound, WorkflowNotFound, InvalidWorkflow, InvalidValue, AgentStopped or
    KeyReused, and then there is no run."""
    engine = supply.engine
    await addressed(engine.store, asked.agent)
    saved = await (await workflow_registry(engine)).find(asked.workflow, asked.revision)
    registry = await _registry_for(supply, asked.agent, saved.graph)
    text = asked.prompt or None
    run = checked_run(registry, saved, asked.inputs or {}, text)
    key = asked.key or engine.ids.new("run")
    row = await send_message(
        engine,
        asked.agent,
        words_of(run, text),
        thread=asked.thread or thread_of_run(run, id_of_key(asked.agent, key)),
        key=key,
        sender=asked.sender,
        surface=asked.surface,
        admission=asked.admission,
        workflow=run,
    )
    return await queued_run(engine, row.message_id)


async def save_workflow(supply: AgentSupply, given: Mapping[str, Any], agent: str) -> SavedWorkflow:
    """Keep a graph as a new revision, checked against the tools of the agent that is to run it. Raises
    InvalidWorkflow, and then nothing is kept."""
    await addressed(supply.engine.store, agent)
    graph = graph_of(dict(given))
    if not isinstance(graph, WorkflowGraph):
        raise InvalidWorkflow("the given value is not a workflow", graph)
    return await (await _registry_for(supply, agent, graph)).keep(graph)


async def queued_run(engine: Engine, run_id: str) -> QueuedWorkflowRun:
    """A run as it is now, by its id or enough of its beginning. Raises MessageNotFound, also for a message that runs no
    workflow."""
    row, run = await _found(engine, run_id)
    turn = await engine.store.turn(row.turn_id) if row.turn_id else None
    status, message = await _standing(engine, row, turn)
    return QueuedWorkflowRun(
        run_id=row.message_id,
        workflow=run.graph.name,
        workflow_id=run.graph.id,
        revision=run.revision,
        agent=row.agent_id,
        thread=row.thread_id,
        status=status,
        created_at=row.admitted_at / 1e6,
        turn_id=row.turn_id or None,
        message=message,
        result=await workflow_result(engine.store, turn) if turn is not None and not turn.is_open else None,
    )


async def queued_runs(engine: Engine, limit: int, before: str | None = None) -> list[QueuedWorkflowRun]:
    """The newest first, without what their nodes came to; with `before`, those that were asked for before that one.
    Raises MessageNotFound for a `before` that is no run."""
    last = None
    if before is not None:
        last = await engine.store.get_row(WORKFLOW_RUNS, before)
        if last is None:
            raise MessageNotFound(f"there is no run {before!r} of a workflow", RUNS_ONE)
    return [await _line(engine, row) for row in await engine.store.workflow_runs(limit=limit, after=last)]


async def _line(engine: Engine, found: WorkflowRunRow) -> QueuedWorkflowRun:
    """A run in a list. Of one whose log cannot be read any more, or is no longer kept, its rows say what they know: the
    others are listed all the same."""
    store, run, unreadable = engine.store, None, ""
    row = await store.message(found.message_id)
    turn = await store.turn(row.turn_id) if row is not None and row.turn_id else None
    try:
        run = await _asked_for(engine, found.message_id)
    except StoreDamaged as damage:
        unreadable = damage.message
    try:
        status, message = ("queued", "") if row is None else await _short_standing(engine, row, turn)
    except (StoreDamaged, TurnDeleted) as problem:
        status, message = "waiting", problem.message
    return QueuedWorkflowRun(
        run_id=found.message_id,
        workflow=run.graph.name if run is not None else "",
        workflow_id=run.graph.id if run is not None else None,
        revision=run.revision if run is not None else None,
        agent=found.agent_id,
        thread=row.thread_id if row is not None else "",
        status=status,
        created_at=found.admitted_at / 1e6,
        turn_id=turn.turn_id if turn is not None else None,
        message=message or unreadable,
    )


async def cancel_run(engine: Engine, run_id: str, *, by: str) -> QueuedWorkflowRun:
    """Have a run stopped, or never begun. One that is over stays as it is. Raises MessageNotFound."""
    row, _ = await _found(engine, run_id)
    await cancel_message(engine, row, requested_by=by)
    return await queued_run(engine, row.message_id)


def thread_of_run(run: WorkflowRun, run_id: str) -> str:
    """The thread of a run that names none."""
    return f"workflow-{run.graph.name}-{run_id.removeprefix('msg_')[:12]}"


async def _registry_for(supply: AgentSupply, agent: str, graph: WorkflowGraph) -> WorkflowRegistry:
    return await workflow_registry(supply.engine, await supply.agent(agent), await supply.node_agents(graph))


async def _found(engine: Engine, run_id: str) -> tuple[MessageRow, WorkflowRun]:
    row = await meant_row(engine.store, MESSAGES, run_id, "msg_", "ids", MessageNotFound)
    run = await _asked_for(engine, row.message_id) if row is not None else None
    if row is None or run is None:
        raise MessageNotFound(f"there is no run {run_id!r} of a workflow", RUNS_ONE)
    return row, run


async def _asked_for(engine: Engine, message_id: str) -> WorkflowRun | None:
    """What a message runs; None: no workflow, or it is no longer kept. Raises StoreDamaged."""
    entry = await admitted_message(engine.store, message_id)
    event = entry.fact.event if entry is not None else None
    if not isinstance(event, MessageAdmitted) or event.workflow_ref is None:
        return None
    return WorkflowRun.model_validate_json(await engine.store.get_blob(event.workflow_ref.digest))


async def _short_standing(engine: Engine, row: MessageRow, turn: TurnRow | None) -> tuple[QueuedRunStatus, str]:
    """The same as `_standing`; of a run that is over the end alone is read."""
    if turn is None or turn.is_open:
        return await _standing(engine, row, turn)
    if turn.state == "completed":
        return "succeeded", ""
    status: QueuedRunStatus = "cancelled" if turn.state == "cancelled" else "failed"
    if turn.deleted_at is not None:
        return status, f"its thread {turn.thread_id!r} was deleted"
    last = await engine.store.read(turn.agent_id, after=turn.last_seq - 1, limit=1)
    event = last[0].fact.event if last else None
    return status, event.message if isinstance(event, TurnFailed) else ""


async def _standing(engine: Engine, row: MessageRow, turn: TurnRow | None) -> tuple[QueuedRunStatus, str]:
    if turn is None:
        return ("cancelled", "it was cancelled before it began") if row.state == "expired" else ("queued", "")
    if turn.state in ("admitted", "running"):
        return "running", ""
    told = await recall(engine, turn, None)
    if turn.is_open:
        return "waiting", told.message
    if turn.state == "cancelled":
        return "cancelled", told.message
    return ("succeeded", "") if told.completed else ("failed", told.message)
