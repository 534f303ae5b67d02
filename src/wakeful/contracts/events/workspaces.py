"""Facts about the workspaces of an agent: what it may work in, where it works, and worktrees that were made for it.

A worktree's facts come in pairs: what is about to be done to the disk, and what came of it. Between the two a process
may die; whoever comes next finds the first, and looks.
"""

from typing import ClassVar

from wakeful.contracts.events.base import RuntimeFact
from wakeful.contracts.workspaces import CleanupReason, CleanupStatus, ProjectionKind, WorkspaceMode


class WorkspaceAttached(RuntimeFact):
    """An agent may work in a folder."""

    kind: ClassVar[str] = "workspace.attached"

    workspace_id: str
    workspace_anchor: str
    attached_by: str
    """Who attached it: `definition` where the agent names it, `agent` where a person approved its call."""


class WorkspaceUsed(RuntimeFact):
    """An agent works in another place from here on. Turns that run go on where they are, but for the one that asked."""

    kind: ClassVar[str] = "workspace.used"
    aliases: ClassVar[tuple[str, ...]] = ("workspace_entered",)

    workspace_id: str
    workspace_anchor: str
    """Blank: the agent's home, wherever that is."""
    execution_root: str
    """Where files are read and written, and commands run. Blank: the agent's home."""
    execution_root_id: str
    cwd: str
    mode: WorkspaceMode = "direct"
    projection_kind: ProjectionKind = "canonical_root"
    worktree_id: str | None = None
    """The managed worktree that it is; None: the runtime made none, and removes none."""
    original_branch: str = ""
    worktree_branch: str = ""
    used_by: str


class WorkspaceDetached(RuntimeFact):
    """An agent may work in a folder no more. Nothing on disk is touched by it."""

    kind: ClassVar[str] = "workspace.detached"

    workspace_id: str
    detached_by: str


class _WorktreeFact(RuntimeFact):
    worktree_id: str


class WorktreeRequested(_WorktreeFact):
    """A worktree is about to be made."""

    kind: ClassVar[str] = "worktree.requested"

    workspace_id: str
    workspace_anchor: str
    worktree_path: str
    worktree_branch: str
    base_branch: str
    """The branch that it begins from; blank: none was checked out."""
    base_commit: str
    task_id: str = ""
    """The task it belongs to; blank: the agent itself."""


class WorktreeCreated(_WorktreeFact):
    """A worktree is there, whole."""

    kind: ClassVar[str] = "worktree.created"


class WorktreeFailed(_WorktreeFact):
    """A worktree could not be made. What was left of it was removed."""

    kind: ClassVar[str] = "worktree.failed"

    reason: str


class WorktreeCleanupRequested(_WorktreeFact):
    """A worktree is about to be looked at, and removed if nothing is lost by it."""

    kind: ClassVar[str] = "worktree.cleanup_requested"

    requested_by: str


class WorktreeRemoved(_WorktreeFact):
    """A worktree and its branch are gone, and no work with them."""

    kind: ClassVar[str] = "worktree.removed"
    aliases: ClassVar[tuple[str, ...]] = ("worktree_auto_cleaned_up",)

    cleanup_status: CleanupStatus
    cleanup_reason: CleanupReason


class WorktreeRetained(_WorktreeFact):
    """A worktree stays: removing it would lose work, or it is not as it was left."""

    kind: ClassVar[str] = "worktree.retained"
    aliases: ClassVar[tuple[str, ...]] = ("worktree_retained_for_review",)

    cleanup_status: CleanupStatus = "retained"
    cleanup_reason: CleanupReason
    changed_files: tuple[str, ...] = ()
    """At most 200 of them."""
    detail: str = ""
