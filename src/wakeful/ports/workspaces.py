"""Workspaces: the folders an agent may work in, the one it works in, and the worktrees that were made for it."""

from typing import NamedTuple, Protocol

from wakeful.contracts.workspaces import (
    CleanupReason,
    CleanupStatus,
    ProjectionKind,
    WorkspaceMode,
    WorktreeSession,
    WorktreeState,
)
from wakeful.ports.tables import Condition, RowQuery, Rows, Table, TableIndex


class AttachedWorkspaceRow(NamedTuple):
    """A folder that an agent may work in. Its home is not among them: that one is always there."""

    agent_id: str
    workspace_id: str
    workspace_anchor: str
    attached_by: str
    attached_at: int


OF_AGENT = RowQuery(("workspace_id",), equal=("agent_id",), served_by="key")

ALL_ATTACHED = RowQuery(("agent_id", "workspace_id"), few="an agent has a handful of workspaces")

ATTACHED_WORKSPACES = Table(
    "attached_workspaces", AttachedWorkspaceRow, key=("agent_id", "workspace_id"), queries=(OF_AGENT, ALL_ATTACHED)
)


class ActiveWorkspaceRow(NamedTuple):
    """Where an agent works. An agent without a row works in its home."""

    agent_id: str
    workspace_id: str
    workspace_anchor: str
    """Blank: the agent's home."""
    execution_root: str
    execution_root_id: str
    cwd: str
    mode: WorkspaceMode
    projection_kind: ProjectionKind
    worktree_id: str | None
    original_branch: str
    worktree_branch: str
    used_by: str
    used_at: int

    @property
    def folders(self) -> tuple[str, ...]:
        """What has to be there for a turn: where it works, and of a worktree the repository that it belongs to."""
        is_worktree = self.projection_kind == "git_worktree_root" and self.workspace_anchor
        return (self.execution_root, *([self.workspace_anchor] if is_worktree else []))

    @property
    def worktree_session(self) -> WorktreeSession | None:
        """Only of a worktree that the runtime made for this agent."""
        if self.worktree_id is None:
            return None
        return WorktreeSession(
            original_working_directory=self.workspace_anchor,
            original_branch=self.original_branch,
            worktree_path=self.execution_root,
            worktree_branch=self.worktree_branch,
        )


ACTIVE_WORKSPACES = Table("active_workspaces", ActiveWorkspaceRow, key=("agent_id",))


class WorktreeRow(NamedTuple):
    """A worktree that the runtime made."""

    worktree_id: str
    agent_id: str
    workspace_id: str
    workspace_anchor: str
    """The repository that it is a worktree of."""
    worktree_path: str
    worktree_branch: str
    base_branch: str
    base_commit: str
    task_id: str
    """The task it belongs to; blank: the agent itself."""
    state: WorktreeState
    cleanup_status: CleanupStatus | None
    cleanup_reason: CleanupReason | None
    changed_files: tuple[str, ...]
    detail: str
    created_at: int
    updated_at: int

    @property
    def is_there(self) -> bool:
        return self.state not in ("removed", "failed")


_OF_TASKS = Condition("task_id", "<>", "")
WORKTREES_OF_AGENT = RowQuery(("created_at", "worktree_id"), equal=("agent_id",), served_by="worktrees_of_agent")
WORKTREES_OF_TASK = RowQuery(
    ("created_at", "worktree_id"), equal=("task_id",), where=_OF_TASKS, served_by="worktrees_of_task"
)

WORKTREES = Table(
    "worktrees",
    WorktreeRow,
    key=("worktree_id",),
    indexes=(
        TableIndex("worktrees_of_agent", ("agent_id", "created_at", "worktree_id")),
        TableIndex("worktrees_of_task", ("task_id", "created_at", "worktree_id"), where=_OF_TASKS),
    ),
    queries=(WORKTREES_OF_AGENT, WORKTREES_OF_TASK),
)


class Workspaces(Rows, Protocol):
    """Reads the workspaces of agents."""

    async def attached_workspaces(self, agent_id: str) -> list[AttachedWorkspaceRow]:
        """The oldest first."""
        found = await self.list_rows(ATTACHED_WORKSPACES, OF_AGENT, agent_id)
        return sorted(found, key=lambda row: (row.attached_at, row.workspace_id))

    async def all_attached_workspaces(self) -> list[AttachedWorkspaceRow]:
        """Of every agent."""
        return await self.list_rows(ATTACHED_WORKSPACES, ALL_ATTACHED)

    async def attached_workspace(self, agent_id: str, workspace_id: str) -> AttachedWorkspaceRow | None:
        return await self.get_row(ATTACHED_WORKSPACES, agent_id, workspace_id)

    async def active_workspace(self, agent_id: str) -> ActiveWorkspaceRow | None:
        """None: it works in its home."""
        return await self.get_row(ACTIVE_WORKSPACES, agent_id)

    async def worktree(self, worktree_id: str) -> WorktreeRow | None:
        return await self.get_row(WORKTREES, worktree_id)

    async def worktrees_of(self, agent_id: str) -> list[WorktreeRow]:
        """The oldest first, those that are gone included."""
        return await self.list_rows(WORKTREES, WORKTREES_OF_AGENT, agent_id)

    async def worktrees_of_task(self, task_id: str) -> list[WorktreeRow]:
        return await self.list_rows(WORKTREES, WORKTREES_OF_TASK, task_id)
