"""Agents of a runtime: make one, wake it, pause it, stop it, let it run. Facts in the log, whoever runs the agents.

A pause or a stop acts before the next step of every turn that runs, wherever it runs, and needs no model.
"""

from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

from wakeful.contracts.agent_identity import ControlCause
from wakeful.contracts.authority import Authority
from wakeful.contracts.content import Prompt, Text
from wakeful.contracts.envelope import MAIN_THREAD, Fact
from wakeful.contracts.errors import (
    AgentNotFound,
    AgentStopped,
    EventRefused,
    InvalidRequest,
    InvalidValue,
    TaskNotFound,
)
from wakeful.contracts.events import (
    AgentCreated,
    AgentStateChanged,
    TaskStatusChanged,
    TurnInterruptRequested,
    TurnPauseLifted,
    TurnPauseRequested,
)
from wakeful.contracts.messages import AdmissionContext, DeliverySurface, JsonBody, OperatorOrigin, Priority
from wakeful.contracts.values import JsonValue
from wakeful.contracts.waking import ClosureDecision, Posture
from wakeful.contracts.workflows import WorkflowRun
from wakeful.decisions.ingress import Arrival
from wakeful.engine.admission import prompt_parts
from wakeful.engine.run_request import Engine
from wakeful.ports import MessageRow, TurnRow
from wakeful.ports.runtime_agents import RuntimeAgentRow, RuntimeAgents
from wakeful.ports.tasks import TASKS, TaskRow, Tasks
from wakeful.ports.timers import TimerRow
from wakeful.runtime.closures import standing_of
from wakeful.runtime.inbox import OPERATOR, QueuedMessage, check_json, checked_id, queue_arrival, queue_message
from wakeful.runtime.timers import TimerTerms, arm_timer
from wakeful.runtime.wake_hints import WakeHint, store_hint
from wakeful.service.commands.approvals import show
from wakeful.service.commands.interruption import supersede as supersede_turns
from wakeful.service.commands.runtime_holds import refuse_if_stopped
from wakeful.service.commands.steering import pause_lifted
from wakeful.service.queries.known_agents import agents_hint
from wakeful.service.queries.record_names import meant_row

RUNTIME = "runtime"
"""Who acts when nobody asked for it."""


async def create_agent(engine: Engine, created: AgentCreated) -> RuntimeAgentRow:
    """Make an agent. Raises EventRefused when there is one of that name."""
    await engine.store.admit(created.agent_name, [Fact(created, engine.clock.now())])
    return await agent_named(engine.store, created.agent_name)


async def agent_named(store: RuntimeAgents, name: str) -> RuntimeAgentRow:
    """Raises AgentNotFound with the names there are."""
    row = await store.runtime_agent(name)
    if row is None:
        raise AgentNotFound(f"the runtime has no agent {name!r}", agents_hint(name, await store.runtime_agents()))
    return row


async def addressed(store: RuntimeAgents, name: str) -> RuntimeAgentRow:
    """An agent that others may speak to. Raises AgentNotFound, or InvalidRequest for somebody's private child."""
    row = await agent_named(store, name)
    if row.ownership == "parent_supervised":
        raise InvalidRequest(
            f"{name} is a private child of {row.parent}: only {row.parent} can send it messages",
            f"Send {row.parent} a message; it speaks to its child with task_input.",
        )
    return row


def _says_nothing(prompt: Prompt) -> bool:
    if isinstance(prompt, str):
        return not prompt.strip()
    return all(isinstance(part, Text) and not part.text.strip() for part in prompt_parts(prompt))


async def _may_receive(engine: Engine, agent: str) -> None:
    """Raises what says why not; hundreds of senders ask at the same moment."""
    if agent in engine.reads:
        return
    await engine.reads.get(agent, lambda: _received(engine, agent))


async def _received(engine: Engine, agent: str) -> None:
    await addressed(engine.store, agent)
    await refuse_if_stopped(engine.store)


async def send_message(
    engine: Engine,
    agent: str,
    prompt: Prompt,
    *,
    thread: str = MAIN_THREAD,
    key: str | None = None,
    priority: Priority = "normal",
    sender: str | None = None,
    expires_at: int | None = None,
    context: Mapping[str, Any] | None = None,
    correlation_id: str | None = None,
    causation_id: str | None = None,
    surface: DeliverySurface = "run_once",
    admission: AdmissionContext = "local_process",
    workflow: WorkflowRun | None = None,
    supersede: bool = False,
) -> MessageRow:
    """Give an agent its operator's word, or a workflow to run. What returns is safe.

    With `supersede`, turns of the thread that began before it are stopped. Raises AgentNotFound, AgentStopped,
    KeyReused, or InvalidRequest for a message without words.
    """
    if workflow is None and _says_nothing(prompt):
        raise InvalidRequest("the message is empty", f'Say something: wakeful send {agent} "hello"')
    await _may_receive(engine, agent)
    if sender is not None and not sender.strip():
        raise InvalidValue("invalid_sender", "sender", "it is blank", "Give a name, or leave it out.")
    if supersede and priority == "interject":
        problem = "an interjection is read by the turn that runs, and supersede stops that turn"
        raise InvalidValue("invalid_priority", "priority", problem, "Give one of the two.")
    message = QueuedMessage(
        prompt,
        origin=OPERATOR if sender is None else _operator(sender),
        priority=priority,
        surface=surface,
        admission=admission,
        key=key,
        expires_at=expires_at,
        context=context or None,
        correlation_id=checked_id("correlation_id", correlation_id),
        causation_id=checked_id("causation_id", causation_id),
        workflow=workflow,
    )
    row = await queue_message(engine, agent, thread, message, is_known=True)
    if supersede:
        await supersede_turns(engine, agent, thread, before=row.admitted_seq, requested_by=sender or "program")
    return row


@lru_cache(maxsize=256)
def _operator(name: str) -> OperatorOrigin:
    return OperatorOrigin(actor_id=name)


async def receive_message(
    engine: Engine,
    agent: str,
    body: JsonValue,
    arrival: Arrival,
    *,
    thread: str = MAIN_THREAD,
    key: str | None = None,
    correlation_id: str | None = None,
) -> MessageRow:
    """Take in what somebody outside sends. Words stay words, and everything else stays data."""
    await _may_receive(engine, agent)
    check_json("body", body)
    said = body if isinstance(body, str) else JsonBody(value=body)
    correlation = checked_id("correlation_id", correlation_id)
    return await queue_arrival(engine, agent, thread, arrival, said, key=key, correlation_id=correlation)


LONGEST_PAUSE = 366 * 86_400 * 100
"""Seconds: no clock of this runtime counts much further."""


def end_of_pause(engine: Engine, seconds: float | None) -> int | None:
    """When a pause ends by itself, in Unix microseconds. Raises InvalidRequest for a time that is none."""
    if seconds is None:
        return None
    if not 0 < seconds <= LONGEST_PAUSE:
        raise InvalidRequest(f"a pause cannot last {seconds:g} seconds", "Give a number above 0, or leave it out.")
    return engine.clock.now() + round(seconds * 1_000_000)


async def pause_agent(
    engine: Engine,
    name: str,
    *,
    by: str,
    reason: str = "",
    cause: ControlCause = "operator",
    resumes_at: int | None = None,
    is_damaged: bool = False,
) -> RuntimeAgentRow:
    """Keep everything that comes, and run nothing. Turns that run rest before their next step.

    An agent that its operator paused stays so, whatever else it would be paused for. Raises AgentStopped for one that
    is stopped or archived: a pause would let it take messages, and end by itself.
    """
    await agent_named(engine.store, name)
    event = AgentStateChanged(
        control="paused", cause=cause, changed_by=by, reason=reason, resumes_at=resumes_at, is_damaged=is_damaged
    )
    asked = [_in(engine, row, TurnPauseRequested(requested_by=by)) for row in await _open_turns(engine, name)]
    try:
        await engine.store.admit(name, [Fact(event, engine.clock.now()), *asked])
    except EventRefused:
        row = await agent_named(engine.store, name)
        if (row.control, row.cause) == ("paused", "operator") and cause != "operator":
            return row
        if row.control != "stopped":
            raise
        done = "stopped" if row.archived_at is None else "archived"
        raise AgentStopped(
            f"agent {name} was {done} by {row.changed_by}, and cannot be paused: it would take messages again",
            f"It runs nothing. To let it run: wakeful agent resume {name}",
        ) from None
    return await agent_named(engine.store, name)


async def stop_agent(engine: Engine, name: str, *, by: str, reason: str = "") -> RuntimeAgentRow:
    """Stop it until somebody lets it run again: turns that run are stopped, and what comes from outside is refused.

    Its private children are to end with it: that stands in the same commit, and whoever looks after them does it.
    """
    await agent_named(engine.store, name)
    asked = [
        _in(engine, row, TurnInterruptRequested(interrupt_id=engine.ids.new("int"), requested_by=by))
        for row in await _open_turns(engine, name)
        if row.state != "suspended"
    ]
    event = AgentStateChanged(control="stopped", changed_by=by, reason=reason)
    children = await _open_children(engine, name)
    while True:
        now = engine.clock.now()
        ends = [Fact(_end_with_parent(row), now, row.thread_id) for row in children]
        try:
            await engine.store.admit(name, [Fact(event, now), *ends, *asked])
            return await agent_named(engine.store, name)
        except EventRefused:
            before, children = children, await _open_children(engine, name)
            if children == before:
                raise  # it is not about a child that ended in this moment


async def resume_agent(
    engine: Engine, name: str, *, by: str, cause: ControlCause = "operator", instead_of: int | None = None
) -> RuntimeAgentRow:
    """Let it run: everything that waited is due again, once nothing holds all agents. `instead_of`: only while that
    change is the newest."""
    await agent_named(engine.store, name)
    event = AgentStateChanged(control="running", cause=cause, changed_by=by, instead_of=instead_of)
    open_turns = await _open_turns(engine, name)
    events = await pause_lifted(engine, name, by, with_agent=True) if open_turns else []
    lifted = [_in(engine, row, each) for row in open_turns for each in events]
    await engine.store.admit(name, [Fact(event, engine.clock.now()), *lifted])
    return await agent_named(engine.store, name)


async def _open_children(engine: Engine, name: str) -> list[TaskRow]:
    """Tasks that supervise a private child of an agent, and are not to end yet."""
    return [
        row
        for row in await engine.store.open_tasks()
        if row.agent_id == name and row.status != "cancelling" and row.child is not None
        if row.child.preset == "private_child"
    ]


def _end_with_parent(row: TaskRow) -> TaskStatusChanged:
    return TaskStatusChanged(task_id=row.task_id, status="cancelling", reason="its parent was stopped")


async def _open_turns(engine: Engine, name: str) -> list[TurnRow]:
    threads = [thread.thread_id for thread in await engine.store.busy_threads(name) if thread.turns]
    return [row for thread in threads for row in await engine.store.turns_of_thread(name, thread, open_only=True)]


def _in(engine: Engine, row: TurnRow, event: TurnPauseRequested | TurnPauseLifted | TurnInterruptRequested) -> Fact:
    return Fact(event, engine.clock.now(), row.thread_id, row.turn_id)


# --- tasks ---------------------------------------------------------------------------------------------------------


async def task_named(store: Tasks, task_id: str) -> TaskRow:
    """A task by its id, or by enough of its beginning. Raises TaskNotFound."""
    row = await meant_row(store, TASKS, task_id, "task_", "tasks", TaskNotFound)
    if row is None:
        raise TaskNotFound(f"there is no task {task_id!r}", "`wakeful task list` shows those that go on.")
    return row


async def stop_task(engine: Engine, task_id: str, *, by: str, reason: str = "") -> TaskRow:
    """Have a task end: a command, or a child agent with all it has begun. Its agent is told how it ended. One that is
    over stays as it is. Raises InvalidRequest for one that is not there."""
    row = await task_named(engine.store, task_id)
    if row.is_over or row.status == "cancelling":
        return row
    event = TaskStatusChanged(task_id=row.task_id, status="cancelling", reason=reason or f"asked for by {by}")
    with suppress(EventRefused):  # it ended meanwhile
        await engine.store.admit(row.agent_id, [Fact(event, engine.clock.now(), row.thread_id)])
    return await task_named(engine.store, row.task_id)


# --- timers and hints ----------------------------------------------------------------------------------------------

CATCH_UP = ("one", "all", "none")


async def arm_for_agent(engine: Engine, agent: str, **terms: Any) -> TimerRow:
    """Set a due time for an agent of the runtime. Raises AgentNotFound, InvalidRequest or InvalidConfig."""
    await addressed(engine.store, agent)
    if terms["catch_up"] not in CATCH_UP:
        raise InvalidRequest(f"catch_up={terms['catch_up']!r}", f"Give one of {', '.join(CATCH_UP)}.")
    if terms["at"] is not None and terms["cron"] is None and terms["timezone"] != "UTC":
        problem = f"timezone={terms['timezone']!r} has no effect on a single time"
        raise InvalidRequest(problem, "Leave it out: at= has its own zone. It is for a cron line.")
    if not terms["say"].strip():
        raise InvalidRequest("the timer has no message, so it would wake no one", 'Give one: say="Check the backups."')
    if not terms["thread"].strip():
        raise InvalidRequest("the timer's thread is blank", 'Name one, or "fresh" for one of its own each time.')
    return await arm_timer(engine, agent, TimerTerms(**terms))


async def closure_of_agent(engine: Engine, agent: str, thread: str = MAIN_THREAD) -> ClosureDecision:
    """Where a thread of an agent stands. Raises AgentNotFound."""
    row = await agent_named(engine.store, agent)
    could_not_run = row.control == "paused" and row.cause in ("failure", "configuration")
    found = await standing_of(engine, agent, thread, runtime_error=row.reason if could_not_run else "")
    works = bool(found.turns) and found.turns[-1].state in ("admitted", "running")
    posture: Posture = "awake" if works or await engine.store.queued(agent, thread, limit=1) else "sleeping"
    return found.closure.model_copy(update={"runtime_posture": posture})


async def hint_agent(
    engine: Engine, agent: str, *, reason: str = "", body: str | None = None, source: str | None = None
) -> str:
    """Tell an agent that something changed. What comes with it is nobody's instruction. Raises AgentNotFound or
    AgentStopped."""
    await addressed(engine.store, agent)
    await refuse_if_stopped(engine.store)
    derived: Authority | None = "external_evidence" if body else None
    hint = WakeHint(reason=reason, source=source, body=body, content_type="text/plain", derived_from=derived)
    return await store_hint(engine, agent, hint)


async def reask(engine: Engine, approval_id: str, *, by: str) -> MessageRow:
    """Have an agent of a runtime ask again about a call whose time ran out. The same line again sends nothing new.

    Raises ApprovalNotFound, AgentNotFound, AgentStopped, or InvalidValue for one that is pending or was decided.
    """
    record = await show(engine, approval_id)
    name = record.approval_id
    if record.status != "timed_out":
        is_open = record.status == "pending"
        words = "is still pending: decide it" if is_open else f"was {record.status} by {record.decided_by}"
        raise InvalidValue("invalid_decision", "approval", f"{name} {words}", f"wakeful approvals show {name}")
    row = await engine.store.action(name)
    assert row is not None
    await agent_named(engine.store, row.agent_id)
    await refuse_if_stopped(engine.store)
    message = QueuedMessage(
        f"Nobody decided in time about your call of {row.tool_name} ({row.call_id}); that was not a rejection. If it "
        "is still needed, make the call again: somebody is here to decide now.",
        origin=OperatorOrigin(actor_id=by),
        surface="cli_prompt",
        admission="local_process",
        key=f"reask:{name}",
    )
    return await queue_message(engine, row.agent_id, row.thread_id, message)
