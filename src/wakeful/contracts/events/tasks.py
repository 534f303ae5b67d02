"""Facts about tasks: work in the background begins once, and ends once with what it brought."""

from typing import ClassVar

from wakeful.contracts.authority import Authority
from wakeful.contracts.budgets import Limits
from wakeful.contracts.events.base import CALL, THREAD, Event, Need, RuntimeFact
from wakeful.contracts.failures import FailureArtifact
from wakeful.contracts.tasks import EndStatus, OpenStatus, TaskKind, TaskRecovery, WaitPolicy


class TaskCreated(RuntimeFact):
    """Work goes on in the background from here on. It stands in the log before it may outlive anybody."""

    kind: ClassVar[str] = "task.created"
    aliases: ClassVar[tuple[str, ...]] = ("task_created",)
    needs: ClassVar[tuple[Need, ...]] = THREAD

    task_id: str
    task_kind: TaskKind
    status: OpenStatus = "running"
    summary: str
    parent_turn_id: str
    """The turn that began it; its thread is told of the end."""
    parent_call_id: str | None = None
    parent_message_id: str | None = None
    work_item_id: str | None = None
    wait_policy: WaitPolicy = "background"
    derived_from: Authority = "operator_instruction"
    """The lowest authority in the chain of causes of the turn that began it."""
    recovery: TaskRecovery | None = None
    output_path: str | None = None
    initial_output: str = ""
    """The beginning of what it had said by then."""


class TaskStatusChanged(RuntimeFact):
    """A task that goes on is in another state."""

    kind: ClassVar[str] = "task.status_changed"
    aliases: ClassVar[tuple[str, ...]] = ("task_status_updated",)
    needs: ClassVar[tuple[Need, ...]] = THREAD

    task_id: str
    status: OpenStatus
    reason: str = ""


class TaskEnded(RuntimeFact):
    """A task is over, and this is what is known about it: nothing changes it any more, unless it is tried again."""

    kind: ClassVar[str] = "task.ended"
    aliases: ClassVar[tuple[str, ...]] = ("task_result_received",)
    needs: ClassVar[tuple[Need, ...]] = THREAD

    task_id: str
    status: EndStatus
    exit_status: int | None = None
    result_summary: str = ""
    failure_artifact: FailureArtifact | None = None
    output_summary: str = ""
    """Both ends of what it said: the snapshot that stays when the file is gone."""
    output_bytes: int = 0
    output_truncated: bool = False
    """The summary is less than all of it."""
    duration_ms: int = 0


class TaskRetried(RuntimeFact):
    """A task that was over goes on: a failed turn of the child that it supervised is tried again.

    Its next end is told like the first, in a message of its own.
    """

    kind: ClassVar[str] = "task.retried"
    needs: ClassVar[tuple[Need, ...]] = THREAD

    task_id: str
    turn: str
    """The turn of the child that is open again."""
    requested_by: str


class GrantReserved(Event):
    """A part of the turn's budget belongs to a child agent from here on: the turn has so much less."""

    kind: ClassVar[str] = "grant.reserved"
    needs: ClassVar[tuple[Need, ...]] = CALL

    task_id: str
    """The task that supervises the child."""
    child_agent_id: str
    grant: Limits
    """What the child is held to, in all its turns together."""


class GrantCounted(Event):
    """What is left of a child's grant after one of its turns. The next one begins with that."""

    kind: ClassVar[str] = "grant.counted"

    left: Limits
    untrusted: str = ""
    """Why what the child says is nobody's instruction; blank: nothing untrusted is behind it."""


class GrantSettled(Event):
    """A child agent is over: what it left of its grant goes back to the turn that gave it, where that still runs."""

    kind: ClassVar[str] = "grant.settled"
    needs: ClassVar[tuple[Need, ...]] = THREAD
    outsider: ClassVar[bool] = True

    task_id: str
    child_agent_id: str
    left: Limits


class GrantRenewed(Event):
    """A child agent that was over is at work again, with what it had left of its grant: the turn that gave it has so
    much less again, where it still runs."""

    kind: ClassVar[str] = "grant.renewed"
    needs: ClassVar[tuple[Need, ...]] = THREAD
    outsider: ClassVar[bool] = True

    task_id: str
    child_agent_id: str
    grant: Limits
