"""Child agents as their parents see them: who looks after one, how it is doing, and what is at work now.

Pure functions of what is known: `runtime.child_agents` reads that from a store.
"""

from collections.abc import Sequence
from typing import NamedTuple

from wakeful.contracts.agent_identity import AgentControl, Ownership, ProfilePreset, Visibility
from wakeful.contracts.children import ChildObservability, ChildPhase, ChildSpec, ChildSupervision
from wakeful.contracts.tasks import TaskStatus
from wakeful.contracts.values import Value
from wakeful.contracts.waking import ClosureDecision
from wakeful.contracts.workspaces import TaskWorktree

REASON_CHARS = 200
BRIEF_CHARS = 500


class ChildFacts(NamedTuple):
    """What is known of a child at one moment."""

    task_id: str
    parent: str
    spec: ChildSpec
    status: TaskStatus
    """Of the task that supervises it."""
    is_over: bool
    control: AgentControl
    reason: str
    """Why it is paused or stopped."""
    closure: ClosureDecision
    resting: tuple[str, ...] = ()
    """What a turn of it that rests waits for: an approval, a window."""
    is_at_work: bool = False
    """A turn runs, or a message waits for one."""
    open_task: str = ""
    """A task of its own that is not over, in words."""
    work_item_id: str | None = None
    work_summary: str | None = None
    progress: str | None = None
    """The newest brief that is no end."""
    result: str | None = None
    """The newest brief that is one."""
    worktree: TaskWorktree | None = None
    """The worktree that its task made for it."""
    waits_for: str | None = None
    """The reason of its newest wait."""


class ActiveChild(Value):
    """A child in the summary of its parent: what it is, and how it is doing."""

    agent_id: str
    supervision_task_id: str
    task_status: TaskStatus
    label: str
    visibility: Visibility = "private"
    ownership: Ownership = "parent_supervised"
    profile_preset: ProfilePreset = "private_child"
    lineage_parent_agent_id: str
    control: AgentControl
    created_at: float
    child_observability: ChildObservability
    child_supervision: ChildSupervision


def supervision_of(child: ChildFacts) -> ChildSupervision:
    return ChildSupervision(
        parent_agent_id=child.parent,
        child_agent_id=child.spec.agent_id,
        supervision_task_id=child.task_id,
        workspace_mode=child.spec.workspace_mode,
        worktree=child.worktree,
    )


def observability_of(child: ChildFacts) -> ChildObservability:
    """How a child is doing."""
    phase, blocked, waiting = _phase(child)
    return ChildObservability(
        phase=phase,
        blocked_reason=blocked,
        waiting_reason=waiting,
        waits_for=_cut(child.waits_for, REASON_CHARS) if waiting is not None else None,
        active_work_item_id=child.work_item_id,
        work_summary=_cut(child.work_summary, REASON_CHARS),
        last_progress_brief=_cut(child.progress, BRIEF_CHARS),
        last_result_brief=_cut(child.result, BRIEF_CHARS),
    )


def active_child(child: ChildFacts, label: str, created_at: float) -> ActiveChild:
    """A line of `active_children`."""
    return ActiveChild(
        agent_id=child.spec.agent_id,
        supervision_task_id=child.task_id,
        task_status=child.status,
        label=label,
        lineage_parent_agent_id=child.parent,
        control=child.control,
        created_at=created_at,
        child_observability=observability_of(child),
        child_supervision=supervision_of(child),
    )


def _phase(child: ChildFacts) -> tuple[ChildPhase, str | None, str | None]:
    """The phase, why it is blocked, and why it waits."""
    if child.is_over:
        return "terminal", None, None
    if child.control != "running":
        why = f"the child is {child.control}" + (f": {child.reason}" if child.reason else "")
        return "blocked", _cut(why, REASON_CHARS), None
    if child.resting:
        return "blocked", _cut(f"a turn rests on {_listed(child.resting)}", REASON_CHARS), None
    if child.is_at_work:
        return "running", None, None
    reason = child.closure.waiting_reason
    if child.open_task and reason in (None, "awaiting_task_result"):
        return "blocked", _cut(child.open_task, REASON_CHARS), None
    return ("waiting", None, reason) if reason is not None else ("running", None, None)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:3])


def _cut(words: str | None, most: int) -> str | None:
    return None if words is None else words[:most]
