"""Workspaces of an agent: folders it may work in, the one it works in now, and worktrees that the runtime made for it.

A workspace is known by its anchor, which stays what it is. Files and commands follow the execution root, which a
worktree changes and the anchor does not.
"""

from typing import Final, Literal, TypeAlias

from wakeful.contracts.values import Value

AGENT_HOME: Final = "agent_home"
"""The id of the workspace of an agent that has no other. It is always there."""
USE_WORKSPACE: Final = "use_workspace"
"""The tool of that name."""
MAX_LABEL: Final = 40
MAX_CHANGED_FILES: Final = 200
"""Of a worktree that was kept, so many files are named."""

WorkspaceMode: TypeAlias = Literal["direct", "isolated"]
"""direct: in the workspace's own folder. isolated: in a copy of its own, which the runtime makes and looks after."""
ProjectionKind: TypeAlias = Literal["canonical_root", "git_worktree_root"]
WorktreeState: TypeAlias = Literal["requested", "ready", "cleaning", "kept", "removed", "failed"]
"""requested: about to be made. cleaning: about to be looked at and removed. kept: it holds work, or is not as it was
left; somebody has to look. failed: it could not be made."""
CleanupStatus: TypeAlias = Literal["cleaned", "already_removed", "retained", "failed"]
CleanupReason: TypeAlias = Literal[
    "clean_worktree",
    "worktree_path_missing",
    "branch_mismatch",
    "branch_inspection_failed",
    "change_detection_failed",
    "changed_files",
    "unmerged_commits",
    "nested_repository",
    "removal_refused",
]
"""Why a worktree was removed or kept. changed_files: something in it is in no commit. unmerged_commits: its branch has
commits that its base does not have. nested_repository: another repository is in it that git would not look at."""


class WorktreeSession(Value):
    """The managed worktree that an agent works in."""

    original_working_directory: str
    original_branch: str
    """Blank: no branch was checked out."""
    worktree_path: str
    worktree_branch: str


class WorkspacePlace(Value):
    """Where somebody works: the workspace, and the folder for files and commands."""

    workspace_id: str
    workspace_anchor: str
    """Blank: the agent's home."""
    execution_root: str
    execution_root_id: str
    cwd: str
    mode: WorkspaceMode = "direct"
    projection_kind: ProjectionKind = "canonical_root"
    worktree_id: str | None = None
    """The managed worktree that it is."""
    original_branch: str = ""
    worktree_branch: str = ""


class TaskWorktree(Value):
    """The worktree that a task had made for its child, and what became of it."""

    worktree_id: str
    worktree_path: str
    worktree_branch: str
    base_branch: str
    state: WorktreeState
    cleanup_status: CleanupStatus | None = None
    """None: nobody has looked yet."""
    cleanup_reason: CleanupReason | None = None
    changed_files: tuple[str, ...] = ()
