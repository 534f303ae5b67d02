"""The part of the story of all tables that is about workspaces and worktrees."""

from typing import Any

from kit.runs.store_facts import AGENT, NOON
from wakeful.contracts.envelope import Fact
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
from wakeful.contracts.workspaces import AGENT_HOME
from wakeful.ports import Store


def attached(name: str, at: int = NOON) -> Fact:
    return Fact(WorkspaceAttached(workspace_id=name, workspace_anchor=f"/srv/{name}", attached_by="ada"), at)


def used(name: str, at: int = NOON, **fields: Any) -> Fact:
    root = f"/srv/{name}" if name != AGENT_HOME else ""
    given = {"workspace_anchor": root, "execution_root": root, "cwd": root, "used_by": "ada", **fields}
    return Fact(WorkspaceUsed(workspace_id=name, execution_root_id=f"root_{name}", **given), at)


def requested(name: str, at: int = NOON, **fields: Any) -> Fact:
    event = WorktreeRequested(
        worktree_id=name,
        workspace_id="ws_1",
        workspace_anchor="/srv/ws_1",
        worktree_path=f"/srv/worktrees/{name}",
        worktree_branch=f"wakeful/{name}",
        base_branch="main",
        base_commit="a" * 40,
        **fields,
    )
    return Fact(event, at)


def cleaning(name: str, at: int = NOON) -> Fact:
    return Fact(WorktreeCleanupRequested(worktree_id=name, requested_by="runtime"), at)


def made(name: str, at: int = NOON) -> Fact:
    return Fact(WorktreeCreated(worktree_id=name), at)


WORKSPACES: list[list[Fact]] = [
    [attached("ws_1"), used("ws_1", NOON + 1)],
    [attached("ws_2"), attached("ws_2")],
    [requested("wt_1"), requested("wt_2", task_id="task_1"), requested("wt_3")],
    [made("wt_1", NOON + 2), made("wt_2", NOON + 2)],
    [Fact(WorktreeFailed(worktree_id="wt_3", reason="no space"), NOON + 3)],
    [requested("wt_3", NOON + 4), made("wt_3", NOON + 5)],
    [used("ws_1", NOON + 6, worktree_id="wt_1", mode="isolated", projection_kind="git_worktree_root")],
    [used(AGENT_HOME, NOON + 7), Fact(WorkspaceDetached(workspace_id="ws_2", detached_by="ada"), NOON + 7)],
    [cleaning("wt_1", NOON + 8)],
    [Fact(WorktreeRetained(worktree_id="wt_1", cleanup_reason="changed_files", changed_files=("a.py",)), NOON + 9)],
    [used("ws_1", NOON + 10, worktree_id="wt_1", mode="isolated", projection_kind="git_worktree_root")],
    [cleaning("wt_2", NOON + 11)],
    [Fact(WorktreeRemoved(worktree_id="wt_2", cleanup_status="cleaned", cleanup_reason="clean_worktree"), NOON + 12)],
    [cleaning("wt_3", NOON + 13)],
]
"""Whoever tells it; all of it is said between turns."""


async def tell_workspaces(store: Store) -> None:
    for facts in WORKSPACES:
        await store.admit(AGENT, facts)
    await store.admit("agent_2", [attached("ws_9"), used("ws_9", NOON + 1)])
