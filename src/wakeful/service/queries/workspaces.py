"""What readers are shown of an agent's workspaces: rows, whether the folders are there, and what holds commands."""

import asyncio
import json
from pathlib import Path
from typing import Literal

from wakeful import programs
from wakeful.contracts.errors import ForTheCaller
from wakeful.contracts.workspaces import AGENT_HOME
from wakeful.engine.run_request import Engine
from wakeful.ports.workspaces import ActiveWorkspaceRow, AttachedWorkspaceRow, WorktreeRow
from wakeful.sandbox.level_probe import probe
from wakeful.views.execution_snapshot import (
    ActiveWorkspaceEntry,
    AgentWorkspaces,
    CommandConfinement,
    WorkspaceRecord,
    WorktreeRecord,
    execution_snapshot,
)

MOST_WORKTREES = 50


async def workspaces_of(engine: Engine, agent: str, *, grants_network: bool | None = None) -> AgentWorkspaces:
    """Where an agent may work, and where it works. Worktrees that are gone are left out.

    `grants_network`: its commands may use the network, as the code of the agent says; None: its code is not at hand.
    """
    store = engine.store
    row, attached = await store.active_workspace(agent), await store.attached_workspaces(agent)
    trees = [tree for tree in await store.worktrees_of(agent) if tree.is_there]
    has_network = await _grants_network(engine, agent) if grants_network is None else grants_network
    return await asyncio.to_thread(_record, agent, engine.agent_home(agent), row, attached, trees, has_network)


async def _grants_network(engine: Engine, agent: str) -> bool | None:
    """As the stored definition says; None: it is in code, or in that of whoever made the agent."""
    row = await engine.store.runtime_agent(agent)
    if row is None or not row.revision or row.source not in ("file", "api"):
        return None
    try:
        sandbox = json.loads(await engine.store.get_blob(row.revision)).get("sandbox") or {}
    except ForTheCaller:
        return None
    return bool(sandbox.get("network") == "full")


def _record(
    agent: str,
    folder: Path,
    row: ActiveWorkspaceRow | None,
    attached: list[AttachedWorkspaceRow],
    trees: list[WorktreeRow],
    has_network: bool | None,
) -> AgentWorkspaces:
    entry = _entry(row, folder)
    programs.add_write_roots(each.workspace_anchor for each in attached)
    level = probe()
    held = CommandConfinement(level.mode, level.reason, has_network)
    return AgentWorkspaces(
        agent=agent,
        attached_workspaces=(
            WorkspaceRecord(
                workspace_id=AGENT_HOME,
                workspace_anchor=str(folder),
                active=entry.workspace_id == AGENT_HOME,
                state="ready",
                attached_by="runtime",
            ),
            *(
                WorkspaceRecord(
                    workspace_id=each.workspace_id,
                    workspace_anchor=each.workspace_anchor,
                    active=entry.workspace_id == each.workspace_id,
                    state=_state(each.workspace_anchor),
                    attached_by=each.attached_by,
                    attached_at=each.attached_at / 1e6,
                )
                for each in attached
            ),
        ),
        active_workspace_id=entry.workspace_id,
        active_workspace_entry=entry,
        cwd=entry.cwd,
        worktree_session=row.worktree_session if row is not None else None,
        worktrees=tuple(map(_worktree, trees[-MOST_WORKTREES:])),
        execution=execution_snapshot(entry, held, works_on_files=bool(attached)),
    )


def _entry(row: ActiveWorkspaceRow | None, folder: Path) -> ActiveWorkspaceEntry:
    if row is None or row.workspace_id == AGENT_HOME:
        top = str(folder)
        return ActiveWorkspaceEntry(
            workspace_id=AGENT_HOME, workspace_anchor=top, execution_root=top, execution_root_id=AGENT_HOME, cwd=top
        )
    return ActiveWorkspaceEntry(
        workspace_id=row.workspace_id,
        workspace_anchor=row.workspace_anchor,
        execution_root=row.execution_root,
        execution_root_id=row.execution_root_id,
        cwd=row.cwd,
        mode=row.mode,
        projection_kind=row.projection_kind,
        state=_state(*row.folders),
    )


def _worktree(row: WorktreeRow) -> WorktreeRecord:
    return WorktreeRecord(
        worktree_id=row.worktree_id,
        workspace_id=row.workspace_id,
        worktree_path=row.worktree_path,
        worktree_branch=row.worktree_branch,
        base_branch=row.base_branch,
        base_commit=row.base_commit,
        task_id=row.task_id or None,
        state=row.state,
        cleanup_status=row.cleanup_status,
        cleanup_reason=row.cleanup_reason,
        changed_files=row.changed_files,
        detail=row.detail,
        created_at=row.created_at / 1e6,
        updated_at=row.updated_at / 1e6,
    )


def _state(*folders: str) -> Literal["ready", "missing"]:
    return "ready" if all(Path(folder).is_dir() for folder in folders) else "missing"
