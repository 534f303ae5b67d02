"""Rules of `tasks`: a task is created once, ends once, and nothing is said about it afterwards. Only one that failed
goes on once more, where a turn of its child is tried again.

One that somebody asked to end has a wake until it has: whichever process asked, the one that looks after it is told.
"""

from collections.abc import Sequence
from typing import TypeAlias

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import EventRefused
from wakeful.contracts.events import TaskCreated, TaskEnded, TaskRetried, TaskStatusChanged
from wakeful.ports.tasks import TASKS, TaskRow
from wakeful.ports.wakes import WAKES, WakeRow
from wakeful.store.tables.row_rules import AtHand, Gone, LogEntry, Need, RowKey, RowRule, Rules
from wakeful.store.tables.runtime_agents import NEEDS_AGENT, agent_row

AboutTask: TypeAlias = TaskStatusChanged | TaskEnded | TaskRetried


def _created(entry: LogEntry, event: TaskCreated, rows: AtHand) -> list[TaskRow]:
    if rows.get(TASKS, event.task_id) is not None:
        raise EventRefused(f"there is a task {event.task_id} already", "Give the new task an id of its own.")
    spec = None if event.recovery is None else event.recovery.spec
    return [
        TaskRow(
            task_id=event.task_id,
            agent_id=entry.agent_id,
            thread_id=entry.fact.thread_id or "",
            kind=event.task_kind,
            status=event.status,
            summary=event.summary,
            parent_turn_id=event.parent_turn_id,
            parent_call_id=event.parent_call_id,
            parent_message_id=event.parent_message_id,
            work_item_id=event.work_item_id,
            wait_policy=event.wait_policy,
            derived_from=event.derived_from,
            cmd_digest="" if spec is None else spec.digest,
            recovery=None if event.recovery is None else event.recovery.model_dump(mode="json"),
            output_path=event.output_path,
            initial_output=event.initial_output,
            result_summary="",
            exit_status=None,
            failure=None,
            output_summary="",
            output_bytes=0,
            output_truncated=False,
            duration_ms=0,
            created_at=entry.fact.at,
            updated_at=entry.fact.at,
            ended_at=None,
            retried_at=None,
        )
    ]


def _status_changed(entry: LogEntry, event: TaskStatusChanged, rows: AtHand) -> list[TaskRow]:
    return [_running(entry, event, rows)._replace(status=event.status, updated_at=entry.fact.at)]


def _ended(entry: LogEntry, event: TaskEnded, rows: AtHand) -> list[TaskRow]:
    failure = None if event.failure_artifact is None else event.failure_artifact.model_dump(mode="json")
    ended = _running(entry, event, rows)._replace(
        status=event.status,
        exit_status=event.exit_status,
        result_summary=event.result_summary,
        failure=failure,
        output_summary=event.output_summary,
        output_bytes=event.output_bytes,
        output_truncated=event.output_truncated,
        duration_ms=event.duration_ms,
        updated_at=entry.fact.at,
        ended_at=entry.fact.at,
    )
    return [ended]


def _retried(entry: LogEntry, event: TaskRetried, rows: AtHand) -> list[TaskRow]:
    """It runs again, and nothing is known of its next end."""
    row = _known(entry, event, rows)
    if row.status != "failed":
        raise EventRefused(f"task {event.task_id} is {row.status}", "One that failed can go on, and no other.")
    again = row._replace(
        status="running",
        exit_status=None,
        result_summary="",
        failure=None,
        output_summary="",
        output_bytes=0,
        output_truncated=False,
        duration_ms=0,
        updated_at=entry.fact.at,
        ended_at=None,
        retried_at=entry.fact.at,
    )
    return [again]


def _running(entry: LogEntry, event: TaskStatusChanged | TaskEnded, rows: AtHand) -> TaskRow:
    """A task that is not over. Raises EventRefused: a fact about another one is too late, or nobody's."""
    row = _known(entry, event, rows)
    if row.is_over:
        raise EventRefused(
            f"{event.kind} about task {event.task_id}, which is {row.status} since {row.ended_at}",
            "Leave it: a task ends once.",
        )
    return row


def _known(entry: LogEntry, event: AboutTask, rows: AtHand) -> TaskRow:
    """Raises EventRefused for a task that is nobody's, or another agent's."""
    row = rows.get(TASKS, event.task_id)
    if row is None or row.agent_id != entry.agent_id:
        raise EventRefused(f"agent {entry.agent_id} has no task {event.task_id}", "Create it first.")
    return row


def _of_task(agent_id: str, fact: Fact, event: TaskCreated | AboutTask) -> Sequence[Need]:
    return (RowKey(TASKS, (event.task_id,)),)


# --- wakes ---------------------------------------------------------------------------------------------------------


def task_subject(task_id: str) -> str:
    return f"task:{task_id}"


def _wake_stopping(entry: LogEntry, event: TaskStatusChanged, rows: AtHand) -> list[WakeRow]:
    if event.status != "cancelling":
        return []
    due = entry.fact.at
    alarm = due if agent_row(entry, rows) is not None else None
    return [
        WakeRow(
            entry.agent_id,
            entry.fact.thread_id or "",
            task_subject(event.task_id),
            due,
            "stop",
            event.task_id,
            alarm,
            due,
        )
    ]


def _wake_over(entry: LogEntry, event: TaskEnded, rows: AtHand) -> list[Gone]:
    found = rows.get(WAKES, *_wake_key(entry.agent_id, entry.fact, event))
    return [] if found is None else [Gone(WAKES.key_of(found))]


def _wake_key(agent_id: str, fact: Fact, event: TaskEnded) -> tuple[str, str, str]:
    return agent_id, fact.thread_id or "", task_subject(event.task_id)


def _of_wake(agent_id: str, fact: Fact, event: TaskEnded) -> Sequence[Need]:
    return (RowKey(WAKES, _wake_key(agent_id, fact, event)),)


TASK_WAKES: Rules = {
    TaskStatusChanged: RowRule(_wake_stopping, NEEDS_AGENT),
    TaskEnded: RowRule(_wake_over, (_of_wake,)),
}
TASK_RULES: Rules = {
    TaskCreated: RowRule(_created, (_of_task,)),
    TaskStatusChanged: RowRule(_status_changed, (_of_task,)),
    TaskEnded: RowRule(_ended, (_of_task,)),
    TaskRetried: RowRule(_retried, (_of_task,)),
}
