"""Child agents as values: what a child is made from, what it is given of its parent's budget, and how it is doing.

A private child lives in a stream of its own and is supervised by a task of its parent's. A public named agent is made
by another agent and belongs to nobody afterwards.
"""

from typing import Final, Literal, TypeAlias

from wakeful.contracts.budgets import Limits
from wakeful.contracts.values import Value
from wakeful.contracts.workspaces import TaskWorktree, WorkspacePlace

SpawnPreset: TypeAlias = Literal["private_child", "public_named"]
WorkspaceMode: TypeAlias = Literal["inherit", "worktree"]
ChildPhase: TypeAlias = Literal["running", "blocked", "waiting", "terminal"]

MOST_GENERATIONS: Final = 3
"""A child's child's child spawns nobody."""
MOST_OPEN_CHILDREN: Final = 8
"""Children of one agent that are not over."""
MOST_NAMED_AGENTS: Final = 8
"""Public agents that one agent makes, in all."""
MOST_SPAWN_CHARS: Final = 16_000
"""Of the message that a child begins with."""
LABEL_CHARS: Final = 120
PARENT: Final = "parent_supervisor"
"""The part of the runtime that speaks to a child for its parent."""


class ChildSpec(Value):
    """What an agent was asked to make, as the task that makes it knows it."""

    agent_id: str
    preset: SpawnPreset = "private_child"
    initial_message: str = ""
    workspace_mode: WorkspaceMode = "inherit"
    place: WorkspacePlace | None = None
    """Of a private child: where its parent's turn works. None: on no files."""
    grant: Limits | None = None
    """What a private child may use, in all its turns together. A public agent has the budget of its maker's turns."""


class ChildSupervision(Value):
    """Who looks after a child, and by which handle. The same wherever it is told."""

    parent_agent_id: str
    child_agent_id: str
    supervision_task_id: str
    """What the parent names to look at the child, to speak to it and to stop it."""
    workspace_mode: WorkspaceMode
    worktree: TaskWorktree | None = None
    cleanup_owner: Literal["supervision_task"] = "supervision_task"
    followup_target: Literal["parent_supervisor"] = "parent_supervisor"


class ChildObservability(Value):
    """How a child is doing, in short."""

    phase: ChildPhase
    blocked_reason: str | None = None
    """It waits for something that others have to end: a task, an approval, a pause."""
    waiting_reason: str | None = None
    """It rests because it said so."""
    waits_for: str | None = None
    """Of one that rests: what for, in its own words."""
    active_work_item_id: str | None = None
    work_summary: str | None = None
    last_progress_brief: str | None = None
    last_result_brief: str | None = None
