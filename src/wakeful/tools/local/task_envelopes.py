"""Tasks as their agent and readers get them: a handle, a snapshot of where a task is, and what it said.

A snapshot is about the life of a task and has no output in it. What a task said comes apart, bounded, from its files or
from the record of its end.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from wakeful.contracts.envelope import iso
from wakeful.ports.tasks import ChildOfTask, TaskRow

RetrievalStatus: TypeAlias = Literal["success", "not_ready", "timeout", "unavailable"]
PREVIEW_CHARS = 120
"""Of a command, where it is only named."""


class OutputPreview(NamedTuple):
    """What a reader is shown of a task's output."""

    text: str
    is_cut: bool
    is_from_file: bool
    is_expired: bool = False
    """All of it was kept for a time that is over; this is what the record of the end has."""


def task_handle(row: TaskRow) -> dict[str, Any]:
    """What an agent needs to go on with a task."""
    return {"task_id": row.task_id, "task_kind": row.kind, "status": row.status}


def task_snapshot(row: TaskRow, child: ChildOfTask | None = None) -> dict[str, Any]:
    """Where a task is; of one that supervises a child, also how that is doing."""
    snapshot: dict[str, Any] = {
        "task_id": row.task_id,
        "kind": row.kind,
        "status": row.status,
        "summary": row.summary,
        "wait_policy": row.wait_policy,
        "parent": {
            "turn_id": row.parent_turn_id,
            "tool_call_id": row.parent_call_id,
            "message_id": row.parent_message_id,
        },
        "work_item_id": row.work_item_id,
        "created_at": iso(row.created_at),
        "updated_at": iso(row.updated_at),
        "ended_at": None if row.ended_at is None else iso(row.ended_at),
    }
    spec = row.child
    if spec is not None and child is not None:
        snapshot |= {
            "workspace_mode": spec.workspace_mode,
            "child_agent_id": spec.agent_id,
            "child_observability": child.observability.model_dump(mode="json"),
            "child_supervision": child.supervision.model_dump(mode="json"),
            "result_summary": row.result_summary,
        }
    command = command_snapshot(row)
    return snapshot if command is None else {**snapshot, "exit_status": row.exit_status, "command": command}


def command_snapshot(row: TaskRow) -> dict[str, Any] | None:
    """The command of a task: what it is, and where its output goes."""
    spec = row.command
    if spec is None:
        return None
    first = spec.cmd.strip().splitlines()[0] if spec.cmd.strip() else ""
    told: dict[str, Any] = {
        "cmd": spec.cmd,
        "cmd_digest": row.cmd_digest,
        "cmd_preview": first[:PREVIEW_CHARS],
        "workdir": spec.workdir,
        "shell": spec.shell,
        "login": spec.login,
        "tty": spec.tty,
        "terminal_reentry": spec.terminal_reentry,
        "output_path": row.output_path,
    }
    if spec.accepts_input:
        told |= {"accepts_input": True, "input_target": input_target(row)}
    return told


def input_target(row: TaskRow) -> Literal["stdin", "tty"] | None:
    """Where input to a task goes; None: it takes none."""
    spec = row.command
    if spec is None or not spec.accepts_input:
        return None
    return "tty" if spec.tty else "stdin"


def retrieval_status(row: TaskRow, *, waited: bool) -> RetrievalStatus:
    """Is what a task said there to stay? The row decides, whatever messages about it say."""
    if not row.is_over:
        return "timeout" if waited else "not_ready"
    return "success" if row.output_path or row.output_summary or row.initial_output else "unavailable"


def task_output(
    row: TaskRow, preview: OutputPreview, *, waited: bool, child: ChildOfTask | None = None
) -> dict[str, Any]:
    """What a task said, and how it ended if it has."""
    artifacts = [{"path": row.output_path}] if row.output_path is not None and preview.is_from_file else []
    failure: Mapping[str, Any] | None = row.failure
    return {
        "retrieval_status": retrieval_status(row, waited=waited),
        "task": {
            "task_id": row.task_id,
            "kind": row.kind,
            "status": row.status,
            "summary": row.summary,
            "output_preview": preview.text,
            "output_truncated": preview.is_cut,
            "output_expired": preview.is_expired,
            "artifacts": artifacts,
            "output_artifact": 0 if artifacts else None,
            "result_summary": row.result_summary,
            "exit_status": row.exit_status,
            "failure_artifact": failure,
            "child_supervision": None if child is None else child.supervision.model_dump(mode="json"),
        },
    }
