"""Rules of `attached_workspaces`, `active_workspaces` and `worktrees`, and of their wakes.

An agent works in what is attached to it, and what it works in is not detached. A worktree that an agent has left is
looked at soon; one whose making or removal was cut off, after a while.
"""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from wakeful.contracts.envelope import MAIN_THREAD, Fact
from wakeful.contracts.errors import EventRefused
from wakeful.contracts.events import (
    WorkspaceAttached,
    WorkspaceDetached,
    WorkspaceUsed,
    WorktreeCleanupRequested,
    WorktreeCreated,
    WorktreeFailed,
    WorktreeRemoved,
    WorktreeRequested,
    WorktreeRetained,
)
from wakeful.contracts.workspaces import AGENT_HOME, WorktreeState
from wakeful.ports.wakes import WAKES, WakeRow
from wakeful.ports.workspaces import (
    ACTIVE_WORKSPACES,
    ATTACHED_WORKSPACES,
    WORKTREES,
    ActiveWorkspaceRow,
    AttachedWorkspaceRow,
    WorktreeRow,
)
from wakeful.store.tables.row_rules import AtHand, Gone, LogEntry, Need, RowKey, RowRule, Rules
from wakeful.store.tables.runtime_agents import NEEDS_AGENT, agent_row

WorktreeFact: TypeAlias = (
    WorktreeCreated | WorktreeFailed | WorktreeCleanupRequested | WorktreeRemoved | WorktreeRetained
)
MAKING_US: Final = 3_600_000_000
"""A worktree that is not there after so long was given up by whoever made it."""
CLEANING_US: Final = 60_000_000
"""A removal of which nothing was heard for so long was cut off."""
_LEADS_TO: dict[type, tuple[tuple[WorktreeState, ...], WorktreeState]] = {
    WorktreeCreated: (("requested",), "ready"),
    WorktreeFailed: (("requested", "cleaning"), "failed"),
    WorktreeCleanupRequested: (("requested", "ready", "kept", "cleaning"), "cleaning"),
    WorktreeRemoved: (("cleaning",), "removed"),
    WorktreeRetained: (("cleaning",), "kept"),
}


def worktree_subject(worktree_id: str) -> str:
    """What the wake of a worktree is called."""
    return f"worktree:{worktree_id}"


# --- attached, and in use ------------------------------------------------------------------------------------------


def _attached(entry: LogEntry, event: WorkspaceAttached, rows: AtHand) -> list[AttachedWorkspaceRow]:
    if rows.get(ATTACHED_WORKSPACES, entry.agent_id, event.workspace_id) is not None:
        return []  # once is enough, whoever says it again
    return [
        AttachedWorkspaceRow(
            entry.agent_id, event.workspace_id, event.workspace_anchor, event.attached_by, entry.fact.at
        )
    ]


def _detached(entry: LogEntry, event: WorkspaceDetached, rows: AtHand) -> list[Gone]:
    key = entry.agent_id, event.workspace_id
    active = rows.get(ACTIVE_WORKSPACES, entry.agent_id)
    if active is not None and active.workspace_id == event.workspace_id:
        raise EventRefused(f"workspace {event.workspace_id} is in use", "Use another one first.")
    if rows.get(ATTACHED_WORKSPACES, *key) is None:
        raise EventRefused(f"workspace {event.workspace_id} is not attached", "Look at the workspaces again.")
    return [Gone(key)]


def _used(entry: LogEntry, event: WorkspaceUsed, rows: AtHand) -> list[ActiveWorkspaceRow]:
    attached = rows.get(ATTACHED_WORKSPACES, entry.agent_id, event.workspace_id)
    if attached is None and event.workspace_id != AGENT_HOME:
        raise EventRefused(f"workspace {event.workspace_id} is not attached", "Attach it first.")
    return [
        ActiveWorkspaceRow(
            agent_id=entry.agent_id,
            workspace_id=event.workspace_id,
            workspace_anchor=event.workspace_anchor,
            execution_root=event.execution_root,
            execution_root_id=event.execution_root_id,
            cwd=event.cwd,
            mode=event.mode,
            projection_kind=event.projection_kind,
            worktree_id=event.worktree_id,
            original_branch=event.original_branch,
            worktree_branch=event.worktree_branch,
            used_by=event.used_by,
            used_at=entry.fact.at,
        )
    ]


def _of_workspace(agent_id: str, fact: Fact, event: Any) -> Sequence[Need]:
    return (RowKey(ATTACHED_WORKSPACES, (agent_id, event.workspace_id)),)


def _of_active(agent_id: str, fact: Fact, event: Any) -> Sequence[Need]:
    return (RowKey(ACTIVE_WORKSPACES, (agent_id,)),)


ATTACHED_RULES: Rules = {
    WorkspaceAttached: RowRule(_attached, (_of_workspace,)),
    WorkspaceDetached: RowRule(_detached, (_of_workspace, _of_active)),
}
ACTIVE_RULES: Rules = {WorkspaceUsed: RowRule(_used, (_of_workspace,))}


# --- worktrees -----------------------------------------------------------------------------------------------------


def _requested(entry: LogEntry, event: WorktreeRequested, rows: AtHand) -> list[WorktreeRow]:
    there = rows.get(WORKTREES, event.worktree_id)
    if there is not None and there.is_there:
        raise EventRefused(f"there is a worktree {event.worktree_id} already", "Look at it again.")
    at = entry.fact.at
    return [
        WorktreeRow(
            worktree_id=event.worktree_id,
            agent_id=entry.agent_id,
            workspace_id=event.workspace_id,
            workspace_anchor=event.workspace_anchor,
            worktree_path=event.worktree_path,
            worktree_branch=event.worktree_branch,
            base_branch=event.base_branch,
            base_commit=event.base_commit,
            task_id=event.task_id,
            state="requested",
            cleanup_status=None,
            cleanup_reason=None,
            changed_files=(),
            detail="",
            created_at=at,
            updated_at=at,
        )
    ]


def _changed(entry: LogEntry, event: WorktreeFact, rows: AtHand) -> list[WorktreeRow]:
    row = _worktree(event, rows)
    if isinstance(event, WorktreeCleanupRequested):
        active = rows.get(ACTIVE_WORKSPACES, entry.agent_id)
        if active is not None and active.worktree_id == row.worktree_id:
            raise EventRefused(f"the agent works in worktree {row.worktree_id}", "Have it use another workspace first.")
    row = row._replace(state=_LEADS_TO[type(event)][1], updated_at=entry.fact.at)
    match event:
        case WorktreeFailed():
            row = row._replace(detail=event.reason)
        case WorktreeRemoved():
            row = row._replace(
                cleanup_status=event.cleanup_status, cleanup_reason=event.cleanup_reason, changed_files=(), detail=""
            )
        case WorktreeRetained():
            row = row._replace(
                cleanup_status=event.cleanup_status,
                cleanup_reason=event.cleanup_reason,
                changed_files=event.changed_files,
                detail=event.detail,
            )
    return [row]


def _entered(entry: LogEntry, event: WorkspaceUsed, rows: AtHand) -> list[WorktreeRow]:
    """One that was kept is in use again."""
    if event.worktree_id is None:
        return []
    row = rows.get(WORKTREES, event.worktree_id)
    if row is None or row.state not in ("ready", "kept"):
        found = "there is none" if row is None else f"it is {row.state}"
        raise EventRefused(f"worktree {event.worktree_id} cannot be used: {found}", "Look at the worktrees again.")
    return [row._replace(state="ready", updated_at=entry.fact.at)] if row.state == "kept" else []


def _worktree(event: WorktreeFact, rows: AtHand) -> WorktreeRow:
    row = rows.get(WORKTREES, event.worktree_id)
    if row is None or row.state not in _LEADS_TO[type(event)][0]:
        found = "there is none" if row is None else f"it is {row.state}"
        raise EventRefused(f"{event.kind} names worktree {event.worktree_id}, and {found}", "Look at it again.")
    return row


def _of_worktree(agent_id: str, fact: Fact, event: Any) -> Sequence[Need]:
    return () if event.worktree_id is None else (RowKey(WORKTREES, (event.worktree_id,)),)


WORKTREE_RULES: Rules = {
    WorktreeRequested: RowRule(_requested, (_of_worktree,)),
    WorktreeCreated: RowRule(_changed, (_of_worktree,)),
    WorktreeFailed: RowRule(_changed, (_of_worktree,)),
    WorktreeCleanupRequested: RowRule(_changed, (_of_worktree, _of_active)),
    WorktreeRemoved: RowRule(_changed, (_of_worktree,)),
    WorktreeRetained: RowRule(_changed, (_of_worktree,)),
    WorkspaceUsed: RowRule(_entered, (_of_worktree,)),
}


# --- wakes ---------------------------------------------------------------------------------------------------------


def _wake(entry: LogEntry, rows: AtHand, worktree_id: str, due_at: int) -> WakeRow:
    """In the agent's own thread, whichever one the fact is about."""
    agent = agent_row(entry, rows)
    alarm = due_at if agent is not None and agent.control == "running" else None
    subject = worktree_subject(worktree_id)
    return WakeRow(entry.agent_id, MAIN_THREAD, subject, due_at, "worktree", worktree_id, alarm, entry.fact.at)


def _wake_requested(entry: LogEntry, event: WorktreeRequested, rows: AtHand) -> list[WakeRow]:
    return [_wake(entry, rows, event.worktree_id, entry.fact.at + MAKING_US)]


def _wake_cleaning(entry: LogEntry, event: WorktreeCleanupRequested, rows: AtHand) -> list[WakeRow]:
    return [_wake(entry, rows, event.worktree_id, entry.fact.at + CLEANING_US)]


def _wake_over(entry: LogEntry, event: WorktreeFact, rows: AtHand) -> list[Gone]:
    return [Gone((entry.agent_id, MAIN_THREAD, worktree_subject(event.worktree_id)))]


def _wake_left(entry: LogEntry, event: WorkspaceUsed, rows: AtHand) -> list[WakeRow | Gone]:
    """A managed worktree that the agent leaves is looked at now; one that it comes back to is not."""
    changed: list[WakeRow | Gone] = []
    before = rows.get(ACTIVE_WORKSPACES, entry.agent_id)
    if before is not None and before.worktree_id is not None and before.worktree_id != event.worktree_id:
        changed.append(_wake(entry, rows, before.worktree_id, entry.fact.at))
    if event.worktree_id is not None:
        there = rows.get(WAKES, entry.agent_id, MAIN_THREAD, worktree_subject(event.worktree_id))
        changed += [] if there is None else [Gone(WAKES.key_of(there))]
    return changed


def _of_wake(agent_id: str, fact: Fact, event: WorkspaceUsed) -> Sequence[Need]:
    if event.worktree_id is None:
        return ()
    return (RowKey(WAKES, (agent_id, MAIN_THREAD, worktree_subject(event.worktree_id))),)


WORKTREE_WAKES: Rules = {
    WorktreeRequested: RowRule(_wake_requested, NEEDS_AGENT),
    WorktreeCreated: RowRule(_wake_over),
    WorktreeFailed: RowRule(_wake_over),
    WorktreeCleanupRequested: RowRule(_wake_cleaning, NEEDS_AGENT),
    WorktreeRemoved: RowRule(_wake_over),
    WorktreeRetained: RowRule(_wake_over),
    WorkspaceUsed: RowRule(_wake_left, (_of_active, _of_wake, *NEEDS_AGENT)),
}
