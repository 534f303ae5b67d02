"""Runs of workflows that a runtime is asked for: each is a message of an agent that says what to run.

The answer to whoever asks is that the message is safe. The scheduler takes it like any other message, in a thread of
its own unless one is named, so that nothing waits behind it. After a kill the runtime that comes next goes on with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wakeful.contracts.errors import InvalidWorkflow, MessageNotFound
from wakeful.contracts.events import MessageAdmitted
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


async def queued_runs(engine: Engine, limit: int) -> list[QueuedWorkflowRun]:
    """The newest first, without what their nodes came to."""
    rows = await engine.store.workflow_runs(limit=limit)
    return [(await queued_run(engine, row.message_id)).model_copy(update={"result": None}) for row in rows]


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
    entry = await admitted_message(engine.store, row.message_id) if row is not None else None
    event = entry.fact.event if entry is not None else None
    if row is None or not isinstance(event, MessageAdmitted) or event.workflow_ref is None:
        raise MessageNotFound(f"there is no run {run_id!r} of a workflow", RUNS_ONE)
    return row, WorkflowRun.model_validate_json(await engine.store.get_blob(event.workflow_ref.digest))


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
