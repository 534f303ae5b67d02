"""How a task ended, in words: its status, what failed, and the message that tells its agent.

The message is the runtime's own and quotes nothing that the command said: who wants to read that asks for it, through
the gate. Its id follows from the task, so that one task has one result for ever; one that failed and was tried again
has another one for each time.
"""

import hashlib
from typing import NamedTuple

from wakeful.contracts.authority import Authority, lowest
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.events import MessageAdmitted, TaskEnded
from wakeful.contracts.failures import FailureArtifact
from wakeful.contracts.messages import TaskOrigin
from wakeful.contracts.tasks import LOST_ON_RESTART, EndStatus
from wakeful.contracts.tools import PREVIEW_CHARS

SUMMARY_CHARS = 4_000
"""Of its output, in the record of its end."""
_CMD_CHARS = 200
CHILD = "child_agent_id"
"""In the references of a result: the child that it tells of."""


class CommandOutcome(NamedTuple):
    """What is known of a command that is over."""

    exit_status: int | None = None
    limit: str | None = None
    """The limit of the machine that it passed."""
    stop_requested: bool = False
    is_lost: bool = False
    """Nobody knows how it ended."""
    is_after_restart: bool = False
    """Whoever looks is not who started it."""
    problem: str = ""
    """Why the runtime gave up looking after it."""
    undone: tuple[str, ...] = ()
    """What it did to repositories and was undone."""
    duration_ms: int = 0


class OutputExcerpt(NamedTuple):
    """Both ends of what a command said."""

    text: str = ""
    total_bytes: int = 0
    is_cut: bool = False


def end_of_command(task_id: str, outcome: CommandOutcome, output: OutputExcerpt) -> TaskEnded:
    """The record of the end."""
    status, kind, words = _judged(outcome)
    failure = None
    if kind:
        failure = FailureArtifact(
            category="task", kind=kind, summary=words, task_id=task_id, exit_status=outcome.exit_status
        )
    return TaskEnded(
        task_id=task_id,
        status=status,
        exit_status=outcome.exit_status,
        result_summary=words,
        failure_artifact=failure,
        output_summary=output.text,
        output_bytes=output.total_bytes,
        output_truncated=output.is_cut,
        duration_ms=outcome.duration_ms,
    )


def _judged(outcome: CommandOutcome) -> tuple[EndStatus, str, str]:
    """Status, kind of failure, and what happened. Whoever asked for the end gets it, whatever the exit status is."""
    if outcome.undone:
        return "failed", "sandbox_violation", f"what it did was undone: {'; '.join(outcome.undone)}"[:PREVIEW_CHARS]
    if outcome.problem:
        return "failed", "not_looked_after", f"the runtime could not supervise it: {outcome.problem}"[:PREVIEW_CHARS]
    if outcome.is_lost and outcome.is_after_restart:
        return (
            "failed",
            LOST_ON_RESTART,
            "it did not survive the end of the runtime that started it; how it ended is not known",
        )
    if outcome.is_lost:
        return "failed", "supervisor_lost", "the process that held it was ended from outside, and the command with it"
    if outcome.limit is not None:
        return "failed", "resource_limit", f"it passed its limit of {outcome.limit} and was killed"
    if outcome.stop_requested:
        how = "" if outcome.exit_status is None else f", exit status {outcome.exit_status}"
        return "cancelled", "cancelled", f"it was stopped on request{how}"
    if outcome.exit_status is None:
        return "failed", "no_exit_status", "it ended without an exit status; how far it came is not known"
    if outcome.exit_status:
        return "failed", "exit_status", f"it ended with exit status {outcome.exit_status}"
    return "completed", "", "it ended with exit status 0"


def result_message_id(task_id: str, retried_at: int | None = None) -> str:
    """`retried_at`: of the end that followed when it was tried again then."""
    again = "" if retried_at is None else f"\0{retried_at}"
    return "msg_" + hashlib.sha256(f"task\0{task_id}\0ended{again}".encode()).hexdigest()[:32]


class TaskParent(NamedTuple):
    """What its result needs to know of a task besides its end."""

    summary: str
    derived_from: Authority = "operator_instruction"
    """The lowest authority in the chain of causes of the turn that began it."""
    work_item_id: str | None = None
    child_agent_id: str | None = None
    """Of a task that supervised a child."""
    retried_at: int | None = None
    """When it was tried again last, after its agent was told that it had failed."""


def result_message(parent: TaskParent, ended: TaskEnded) -> MessageAdmitted:
    """What its agent is told. It carries the lower of the turn's word and the runtime's own."""
    text = _told(parent, ended)
    return MessageAdmitted(
        message_id=result_message_id(ended.task_id, parent.retried_at),
        item=UserItem(parts=(Text(text),)),
        message_kind="task_result",
        origin=TaskOrigin(task_id=ended.task_id),
        authority_class="runtime_instruction",
        derived_from=lowest((parent.derived_from, "runtime_instruction")),
        delivery_surface="task_rejoin",
        admission_context="runtime_owned",
        source_refs={"task_id": ended.task_id, **_child(parent)},
        causation_id=ended.task_id,
        work_item_id=parent.work_item_id,
        task_id=ended.task_id,
        prompt_preview=text[:PREVIEW_CHARS],
    )


def _child(parent: TaskParent) -> dict[str, str]:
    return {} if parent.child_agent_id is None else {CHILD: parent.child_agent_id}


def is_child_result(message: MessageAdmitted) -> bool:
    """Does it tell of the end of a child agent?"""
    return message.message_kind == "task_result" and CHILD in message.source_refs


_LATER = (
    "This is a later result. You were told before that the task had failed; since then it was tried again, and this is "
    "how it ended now."
)


def _told(parent: TaskParent, ended: TaskEnded) -> str:
    seconds = f"{ended.duration_ms / 1000:.1f} s"
    lines = [
        f"Task {ended.task_id} is {ended.status} after {seconds}: {parent.summary[:_CMD_CHARS]}",
        f"{ended.result_summary[:1].upper()}{ended.result_summary[1:]}.",
    ]
    if parent.retried_at is not None:
        lines.append(_LATER)
    if ended.output_bytes:
        lines.append(f"It said {ended.output_bytes:,} bytes; task_output shows them.")
    return "\n".join(lines)
