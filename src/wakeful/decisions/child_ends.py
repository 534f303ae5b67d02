"""How a child agent stands, and how it ends: from what is known of its turns, its tasks and its control.

A child is over when it has nothing more to do: no turn, no message, no task, no wait and no work. The message that
tells its parent quotes nothing: its words are read with `task_output`, and what is behind them is known there.
"""

from typing import Literal, NamedTuple, TypeAlias

from wakeful.contracts.agent_identity import AgentControl, ControlCause
from wakeful.contracts.events import TaskEnded, TurnStatus
from wakeful.contracts.failures import FailureArtifact
from wakeful.contracts.tasks import EndStatus, TaskStatus
from wakeful.contracts.waking import ClosureDecision
from wakeful.decisions.task_ends import SUMMARY_CHARS

ChildStep: TypeAlias = Literal["stop", "end", "none"]
"""stop: it has to be told to stop. end: it is over, and that has to be written down. none: it goes on."""


class ChildStanding(NamedTuple):
    """Everything that is decided about a child from."""

    status: TaskStatus
    """Of the task that supervises it."""
    control: AgentControl
    cause: ControlCause
    reason: str
    closure: ClosureDecision
    has_begun: bool
    """It had a turn."""
    is_running: bool
    """A turn of it is being carried out now."""
    has_open_turn: bool
    """A turn of it is not over, also one at rest."""
    has_messages: bool
    """Messages wait for it."""
    open_tasks: tuple[str, ...] = ()
    turn_status: TurnStatus | None = None
    """How its newest turn ended."""
    turn_message: str = ""
    stop_reason: str = ""
    parent_control: AgentControl = "running"
    """Of the agent that it works for."""
    is_called_off: bool = False
    """No turn ever will take the message that it was made for."""
    changed_at: int = 0
    """When its control was last changed."""


def next_step(child: ChildStanding) -> ChildStep:
    """What has to be done about a child now."""
    if child.status == "cancelling" or child.control == "stopped":
        if child.open_tasks or child.is_running or (child.has_open_turn and child.control == "running"):
            return "stop"
        return "end"
    if child.control == "paused":
        is_given_up = child.cause == "failure"
        return "end" if is_given_up and not child.is_running and not child.open_tasks else "none"
    if child.is_running or child.has_open_turn or child.has_messages or child.open_tasks:
        return "none"
    if not child.has_begun:
        return "end" if child.is_called_off else "none"
    return "end" if child.closure.outcome in ("completed", "failed") else "none"


class ChildWords(NamedTuple):
    """What a child said last."""

    text: str = ""
    untrusted: str = ""
    """Why that is nobody's instruction; blank: nothing untrusted is behind it."""


def end_of_child(
    task_id: str, child: ChildStanding, said: ChildWords, duration_ms: int, left_behind: str = ""
) -> TaskEnded:
    """The record of the end, with what of the child's work is left to look at."""
    status, kind, words = _judged(child)
    words = f"{words}; {left_behind}" if left_behind else words
    failure = None
    if kind:
        failure = FailureArtifact(category="task", kind=kind, summary=words, task_id=task_id)
    size = len(said.text.encode(errors="replace"))
    return TaskEnded(
        task_id=task_id,
        status=status,
        result_summary=words,
        failure_artifact=failure,
        output_summary=said.text[:SUMMARY_CHARS],
        output_bytes=size,
        output_truncated=len(said.text) > SUMMARY_CHARS,
        duration_ms=duration_ms,
    )


def _judged(child: ChildStanding) -> tuple[EndStatus, str, str]:
    """Status, kind of failure, and what happened."""
    if child.status == "cancelling":
        who = "its parent was stopped" if child.parent_control == "stopped" else "somebody asked for it"
        return "cancelled", "cancelled", f"it was stopped because {who}"
    if child.control == "stopped" and child.cause != "runtime":
        return "cancelled", "cancelled", f"it was stopped{': ' + child.reason if child.reason else ''}"
    if not child.has_begun and child.is_called_off:
        return "cancelled", "cancelled", "the message that it was made for was taken out of its queue before it began"
    if child.control == "paused":
        return "failed", "child_not_run", f"it could not be run: {child.reason}"
    if child.closure.outcome == "failed":
        why = child.turn_message or child.stop_reason or str(child.turn_status)
        return "failed", child.stop_reason or "child_failed", f"its last turn ended as {child.turn_status}: {why}"
    return "completed", "", "it has done what it was asked for"
