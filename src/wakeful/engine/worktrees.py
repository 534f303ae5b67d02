"""Managed worktrees: asked for, made, left, removed where nothing is lost. Facts around what is done to the disk.

    worktree.requested > git > worktree.created            or worktree.failed
    worktree.cleanup_requested > git > worktree.removed    or worktree.retained

Killed between two of them, the same call again goes on from what it finds: the id of a worktree follows from what it is
made for, and its wake is looked at by the runtime (`settle_worktree`).
"""

import asyncio
import hashlib
import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from weakref import WeakValueDictionary

from wakeful.contracts.envelope import MAIN_THREAD, Fact
from wakeful.contracts.errors import EventRefused, InvalidRequest
from wakeful.contracts.events import (
    AnyEvent,
    WorkspaceAttached,
    WorkspaceUsed,
    WorktreeCleanupRequested,
    WorktreeCreated,
    WorktreeFailed,
    WorktreeRemoved,
    WorktreeRequested,
    WorktreeRetained,
)
from wakeful.contracts.workspaces import MAX_LABEL, CleanupReason, CleanupStatus
from wakeful.engine.run_request import Engine
from wakeful.ports import TurnRow, WakeRow
from wakeful.ports.workspaces import WorktreeRow
from wakeful.settings.agent_homes import home_of_store
from wakeful.workspaces.git import GitFailed
from wakeful.workspaces.worktrees import (
    Base,
    NotARepository,
    WorktreePlace,
    base_of,
    is_same_folder,
    make_worktree,
    remove_worktree,
    take_back,
)

FOLDER = "worktrees"
BRANCHES = "wakeful"
"""Branches of managed worktrees are called `wakeful/...`."""
RUNTIME = "runtime"
_locks: "WeakValueDictionary[str, asyncio.Lock]" = WeakValueDictionary()


class WorktreeOrder(NamedTuple):
    """A worktree that somebody wants."""

    key: str
    """What it is made for: the same key, the same worktree."""
    workspace_id: str
    workspace_anchor: str
    label: str = ""
    """A word in the name of its branch."""
    task_id: str = ""


class WorktreeCleanup(NamedTuple):
    """What became of a worktree, as the task that it belongs to records it."""

    worktree_id: str
    worktree_path: str
    worktree_branch: str
    cleanup_status: CleanupStatus
    cleanup_reason: CleanupReason
    changed_files: tuple[str, ...] = ()
    detail: str = ""


# --- for whoever has children --------------------------------------------------------------------------------------


async def create_task_worktree(
    engine: Engine, agent_id: str, task_id: str, *, workspace_id: str, workspace_anchor: str, label: str = ""
) -> WorktreeRow:
    """A worktree with a branch of its own for a task of this agent; the same one when it is asked for again.

    Raises InvalidRequest where the anchor is no repository with a commit, or git refuses.
    """
    order = WorktreeOrder(f"task/{task_id}", workspace_id, workspace_anchor, label, task_id)
    return await create_worktree(engine, agent_id, order)


def task_workspace_events(row: WorktreeRow, by: str) -> list[AnyEvent]:
    """What is put on record of the child that works in a task's worktree. What becomes of the worktree is the task's
    affair, and never the child's."""
    return [
        WorkspaceAttached(workspace_id=row.workspace_id, workspace_anchor=row.workspace_anchor, attached_by=by),
        WorkspaceUsed(
            workspace_id=row.workspace_id,
            workspace_anchor=row.workspace_anchor,
            execution_root=row.worktree_path,
            execution_root_id=row.worktree_id,
            cwd=row.worktree_path,
            mode="isolated",
            projection_kind="git_worktree_root",
            original_branch=row.base_branch,
            worktree_branch=row.worktree_branch,
            used_by=by,
        ),
    ]


async def clean_up_task_worktree(engine: Engine, task_id: str, *, by: str = RUNTIME) -> WorktreeCleanup | None:
    """Remove the worktree of a task that is over where nothing is lost by it, else keep it. Does not raise for a
    worktree that cannot be removed: the task's end is not held up by it. None: the task has none."""
    rows = await engine.store.worktrees_of_task(task_id)
    return await _clean_up(engine, rows[-1].worktree_id, by) if rows else None


# --- the life of a worktree ----------------------------------------------------------------------------------------


async def create_worktree(engine: Engine, agent_id: str, order: WorktreeOrder) -> WorktreeRow:
    """Make a worktree; one that is there already for the same key is the answer. Raises InvalidRequest."""
    store = engine.store
    worktree_id = "wt_" + hashlib.sha256(f"{agent_id}/{order.key}".encode()).hexdigest()[:16]
    async with _one_at_a_time(worktree_id):
        row = await store.worktree(worktree_id)
        if row is None or not row.is_there:
            base = await _base(order.workspace_anchor)
            event = _request(engine, worktree_id, order, base)
            await _admit(engine, agent_id, event)
            row = await _row(engine, worktree_id)
        if row.state != "requested":
            return row
        try:
            await asyncio.to_thread(make_worktree, place_of(row))
        except (GitFailed, OSError) as problem:
            await _admit(engine, agent_id, WorktreeFailed(worktree_id=worktree_id, reason=str(problem)[:500]))
            raise InvalidRequest(
                f"no worktree of {row.workspace_anchor} could be made: {problem}",
                "Work in the workspace itself (mode 'direct'), or fix what git complains about.",
            ) from problem
        await _admit(engine, agent_id, WorktreeCreated(worktree_id=worktree_id))
        return await _row(engine, worktree_id)


async def clean_up_worktree(engine: Engine, worktree_id: str, *, by: str = RUNTIME) -> WorktreeCleanup:
    """Remove a worktree where nothing is lost by it, and keep it otherwise. Raises InvalidRequest for one that is not
    there, or that its agent, a turn of it, a task or a child works in."""
    row = await engine.store.worktree(worktree_id)
    if row is not None:
        await _refuse_at_work(engine, row)
    return await _clean_up(engine, worktree_id, by)


async def _refuse_at_work(engine: Engine, row: WorktreeRow) -> None:
    """Raises InvalidRequest where somebody works in a worktree, whatever their agent uses by now."""
    for task in await engine.store.open_tasks():
        child, command = task.child, task.command
        place = child.place if child is not None else None
        if row.task_id == task.task_id or (place is not None and place.worktree_id == row.worktree_id):
            who = f"the child of task {task.task_id}"
        elif command is not None and Path(command.workdir).is_relative_to(row.worktree_path):
            who = f"task {task.task_id}"
        else:
            continue
        raise InvalidRequest(
            f"{who} works in worktree {row.worktree_id}", f"Wait for it, or stop it: wakeful task stop {task.task_id}"
        )
    active = await engine.store.active_workspace(row.agent_id)
    for thread in await engine.store.busy_threads(row.agent_id):
        for turn in await engine.store.turns_of_thread(row.agent_id, thread.thread_id, open_only=True):
            if active is None or turn.created_at > active.used_at or await _has_left(engine, turn, row.worktree_id):
                continue
            raise InvalidRequest(
                f"turn {turn.turn_id} works in worktree {row.worktree_id}, or may: it began before its agent left",
                f"Wait for its end, or cancel it: wakeful cancel {turn.turn_id}",
            )


async def _has_left(engine: Engine, turn: TurnRow, worktree_id: str) -> bool:
    """Did the turn itself go on elsewhere? One that somebody else moved its agent away from stays where it is."""
    facts = await engine.store.read(turn.agent_id, turn_id=turn.turn_id)
    used = [entry.fact.event for entry in facts if isinstance(entry.fact.event, WorkspaceUsed)]
    return bool(used) and used[-1].worktree_id != worktree_id


async def _clean_up(engine: Engine, worktree_id: str, by: str) -> WorktreeCleanup:
    """Another process may look at it in the same moment, and its word may come first: then it is looked at again."""
    for _ in range(_LOOKS - 1):
        with suppress(EventRefused):
            return await _look_after(engine, worktree_id, by)
    return await _look_after(engine, worktree_id, by)


async def _look_after(engine: Engine, worktree_id: str, by: str) -> WorktreeCleanup:
    async with _one_at_a_time(worktree_id):
        row = await engine.store.worktree(worktree_id)
        if row is None:
            raise InvalidRequest(f"there is no worktree {worktree_id!r}", "`wakeful workspace list` shows them.")
        if not row.is_there:
            return _cleanup(row)
        if row.state == "requested":  # its creation was interrupted, and nobody was ever told of it
            await asyncio.to_thread(take_back, place_of(row))
            await _admit(
                engine, row.agent_id, WorktreeFailed(worktree_id=worktree_id, reason="its creation was interrupted")
            )
            return _cleanup(await _row(engine, worktree_id))
        if row.state != "cleaning":
            try:
                await _admit(engine, row.agent_id, WorktreeCleanupRequested(worktree_id=worktree_id, requested_by=by))
            except EventRefused as refused:
                raise InvalidRequest(refused.message, refused.hint) from None
        removal = await asyncio.to_thread(remove_worktree, place_of(row))
        if removal.is_gone:
            status: CleanupStatus = "cleaned" if removal.reason != "worktree_path_missing" else "already_removed"
            event: AnyEvent = WorktreeRemoved(
                worktree_id=worktree_id, cleanup_status=status, cleanup_reason=removal.reason
            )
        else:
            event = WorktreeRetained(
                worktree_id=worktree_id,
                cleanup_status="failed" if removal.reason in _COULD_NOT_LOOK else "retained",
                cleanup_reason=removal.reason,
                changed_files=removal.changed_files,
                detail=removal.detail,
            )
        await _admit(engine, row.agent_id, event)
        return _cleanup(await _row(engine, worktree_id))


async def settle_worktree(engine: Engine, wake: WakeRow) -> None:
    """Look at a worktree whose time has come: its agent left it, or whoever made or removed it was cut off. While
    somebody works there it is looked at again later."""
    row = await engine.store.worktree(wake.cause_id)
    active = await engine.store.active_workspace(wake.agent_id)
    if row is not None and active is not None and active.worktree_id == row.worktree_id:
        return  # it is in use again
    with suppress(InvalidRequest):  # it was entered in this moment
        await clean_up_worktree(engine, wake.cause_id)


def place_of(row: WorktreeRow) -> WorktreePlace:
    return WorktreePlace(row.workspace_anchor, row.worktree_path, row.worktree_branch, row.base_branch, row.base_commit)


# --- what they rest on ---------------------------------------------------------------------------------------------

_LOOKS = 3
_COULD_NOT_LOOK = ("branch_inspection_failed", "change_detection_failed", "removal_refused")


async def _base(anchor: str) -> Base:
    try:
        base = await asyncio.to_thread(base_of, anchor)
    except (NotARepository, OSError) as problem:
        raise InvalidRequest(
            f"{anchor} cannot be isolated: {problem}",
            "Use it with mode 'direct', or make it a git repository with a commit.",
        ) from None
    if not is_same_folder(base.root, anchor):
        raise InvalidRequest(
            f"{anchor} cannot be isolated: it is a part of the repository {base.root}",
            f"Attach {base.root} and use that, or use this one with mode 'direct'.",
        )
    return base


def _request(engine: Engine, worktree_id: str, order: WorktreeOrder, base: Base) -> WorktreeRequested:
    word = re.sub(r"[^a-z0-9]+", "-", order.label.lower()).strip("-")[:MAX_LABEL].strip("-")
    unique = worktree_id.removeprefix("wt_")
    return WorktreeRequested(
        worktree_id=worktree_id,
        workspace_id=order.workspace_id,
        workspace_anchor=base.root,
        worktree_path=str(worktrees_folder(engine) / worktree_id),
        worktree_branch=f"{BRANCHES}/{word}-{unique}" if word else f"{BRANCHES}/{unique}",
        base_branch=base.branch,
        base_commit=base.commit,
        task_id=order.task_id,
    )


def worktrees_folder(engine: Engine) -> Path:
    """Where managed worktrees are: in the home of the agents."""
    return Path(home_of_store(engine.store.location)).resolve() / FOLDER


async def _admit(engine: Engine, agent_id: str, event: AnyEvent) -> None:
    await engine.store.admit(agent_id, [Fact(event, engine.clock.now(), MAIN_THREAD)])


async def _row(engine: Engine, worktree_id: str) -> WorktreeRow:
    row = await engine.store.worktree(worktree_id)
    assert row is not None, worktree_id
    return row


def _cleanup(row: WorktreeRow) -> WorktreeCleanup:
    return WorktreeCleanup(
        row.worktree_id,
        row.worktree_path,
        row.worktree_branch,
        row.cleanup_status or "already_removed",
        row.cleanup_reason or "worktree_path_missing",
        row.changed_files,
        row.detail,
    )


def _one_at_a_time(worktree_id: str) -> asyncio.Lock:
    lock = _locks.get(worktree_id)
    if lock is None:
        lock = _locks[worktree_id] = asyncio.Lock()
    return lock
