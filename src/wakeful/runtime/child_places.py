"""Where a child agent works: where its parent works, or in a worktree that belongs to the task that supervises it.

A child has the workspaces of its parent and no others: one that the parent loses is taken from its private children
before their next turn. A worktree is made before its child, and looked at before the task ends; a task never waits for
one that cannot be removed.
"""

import contextlib
import logging

from wakeful.contracts.children import PARENT, ChildSpec
from wakeful.contracts.envelope import MAIN_THREAD, Fact
from wakeful.contracts.errors import EventRefused, InvalidRequest, WakefulError
from wakeful.contracts.events import AnyEvent, WorkspaceAttached, WorkspaceDetached
from wakeful.contracts.workspaces import AGENT_HOME, TaskWorktree
from wakeful.engine.run_request import Engine
from wakeful.engine.workspace_use import home_use, use_of
from wakeful.engine.worktrees import clean_up_task_worktree, create_task_worktree, task_workspace_events
from wakeful.ports.runtime_agents import RuntimeAgentRow
from wakeful.ports.tasks import TaskRow
from wakeful.ports.workspaces import Workspaces

LOG = logging.getLogger(__name__)


async def workspaces_for_child(engine: Engine, row: TaskRow, spec: ChildSpec) -> list[AnyEvent]:
    """What is put on record of a new child: its parent's workspaces, and of a private one the place where it works.

    A worktree is made here; made again, it is the same one. Raises InvalidRequest where it cannot be made.
    """
    attached = await engine.store.attached_workspaces(row.agent_id)
    events = [
        WorkspaceAttached(workspace_id=each.workspace_id, workspace_anchor=each.workspace_anchor, attached_by=PARENT)
        for each in attached
    ]
    place = spec.place
    if place is None:
        return list(events)
    is_attached = any(each.workspace_id == place.workspace_id for each in attached)
    if spec.workspace_mode == "worktree":
        if not is_attached:
            raise InvalidRequest(
                f"workspace {place.workspace_id} is no longer one of {row.agent_id}'s", "Spawn it somewhere else."
            )
        tree = await create_task_worktree(
            engine,
            row.agent_id,
            row.task_id,
            workspace_id=place.workspace_id,
            workspace_anchor=place.workspace_anchor,
            label=row.summary,
        )
        others = [each for each in events if each.workspace_id != tree.workspace_id]
        return [*others, *task_workspace_events(tree, PARENT)]
    if place.workspace_id == AGENT_HOME or not is_attached:
        return [*events, home_use(by=PARENT)] if attached else []
    return [*events, use_of(place, by=PARENT)]


async def keep_to_parent(engine: Engine, child: RuntimeAgentRow) -> None:
    """Take from a private child what it had from its parent and its parent has no more."""
    if child.parent is None or child.ownership != "parent_supervised":
        return
    given = [
        row.workspace_id
        for row in await engine.store.attached_workspaces(child.agent_id)
        if row.attached_by == PARENT
        if await engine.store.attached_workspace(child.parent, row.workspace_id) is None
    ]
    if not given:
        return
    active = await engine.store.active_workspace(child.agent_id)
    events: list[AnyEvent] = []
    if active is not None and active.workspace_id in given:
        events.append(home_use(by=PARENT))
    events += [WorkspaceDetached(workspace_id=workspace, detached_by=PARENT) for workspace in given]
    now = engine.clock.now()
    with contextlib.suppress(EventRefused):  # somebody has taken it in this moment
        await engine.store.admit(child.agent_id, [Fact(event, now, MAIN_THREAD) for event in events])


async def leave_worktree(engine: Engine, row: TaskRow) -> str:
    """Remove the worktree of a task that is about to end, where nothing is lost by it. In words, if it was kept."""
    spec = row.child
    if spec is None or spec.workspace_mode != "worktree":
        return ""
    try:
        found = await clean_up_task_worktree(engine, row.task_id)
    except (WakefulError, OSError) as problem:
        LOG.exception("the worktree of task %s could not be checked; the runtime looks again", row.task_id)
        return f"its worktree could not be checked: {problem}"
    if found is None or found.cleanup_status in ("cleaned", "already_removed"):
        return ""
    why = f"{found.cleanup_status}, {found.cleanup_reason}"
    return f"its worktree {found.worktree_path} on branch {found.worktree_branch} was kept ({why})"


async def worktree_of(store: Workspaces, row: TaskRow) -> TaskWorktree | None:
    """The worktree of a task, as its detail shows it."""
    spec = row.child
    rows = await store.worktrees_of_task(row.task_id) if spec is not None and spec.workspace_mode == "worktree" else []
    if not rows:
        return None
    tree = rows[-1]
    return TaskWorktree(
        worktree_id=tree.worktree_id,
        worktree_path=tree.worktree_path,
        worktree_branch=tree.worktree_branch,
        base_branch=tree.base_branch,
        state=tree.state,
        cleanup_status=tree.cleanup_status,
        cleanup_reason=tree.cleanup_reason,
        changed_files=tree.changed_files,
    )
