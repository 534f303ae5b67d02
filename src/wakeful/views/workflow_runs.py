"""The run of a workflow as readers get it: a message that waits for its turn, a turn, and what it came to.

Times are Unix seconds.
"""

from typing import Literal, TypeAlias

from wakeful.contracts.values import Value
from wakeful.contracts.workflows import WorkflowRunResult

QueuedRunStatus: TypeAlias = Literal["queued", "running", "waiting", "succeeded", "failed", "cancelled"]


class QueuedWorkflowRun(Value):
    """A run that a runtime was asked for."""

    run_id: str
    """The id of its message."""
    workflow: str
    """The name of the workflow."""
    workflow_id: str | None
    revision: int | None
    agent: str
    """Whose tools, policy and budget hold for it."""
    thread: str
    status: QueuedRunStatus
    """`waiting`: for a person, a client or an allowance; `message` says more."""
    created_at: float
    turn_id: str | None = None
    """The turn that runs it, once there is one."""
    message: str = ""
    """Why it waits, or did not succeed."""
    result: WorkflowRunResult | None = None
    """What its nodes came to, once it is over."""
