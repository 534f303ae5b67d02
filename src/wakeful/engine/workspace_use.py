"""Which folders an agent may work in, and in which one it works: attached, used, detached.

A workspace is the folder that somebody named, and no folder above it: a repository around it does not come with it.
Nothing here removes anything from the disk.
"""

import asyncio
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from wakeful.contracts.envelope import MAIN_THREAD, Fact
from wakeful.contracts.errors import EventRefused, InvalidRequest
from wakeful.contracts.events import AnyEvent, WorkspaceAttached, WorkspaceDetached, WorkspaceUsed
from wakeful.contracts.workspaces import AGENT_HOME, MAX_LABEL, ProjectionKind, WorkspaceMode, WorkspacePlace
from wakeful.engine.run_request import Engine
from wakeful.engine.worktrees import WorktreeOrder, create_worktree
from wakeful.ports.workspaces import ActiveWorkspaceRow, AttachedWorkspaceRow, WorktreeRow
from wakeful.settings.agent_homes import refuse_home
from wakeful.workspaces import workspace_id
from wakeful.workspaces.worktrees import branch_at, is_same_folder, is_worktree_of

MODES = ("direct", "isolated")
ADVICE = "For a worktree that the runtime makes and cleans up, use mode 'isolated' with workspace_id '{}'."


class WorkspaceChoice(NamedTuple):
    """Where an agent is to work: by path or by id, and how."""

    path: str | None = None
    workspace_id: str | None = None
    mode: WorkspaceMode = "direct"
    cwd: str | None = None
    """A folder inside, where commands begin; None: the path that was given, or the top."""
    label: str = ""
    """A word in the name of the branch of an isolated one."""


class WorkspacePlan(NamedTuple):
    """What is to be put on record, and what is said of it."""

    events: list[AnyEvent]
    advice: str = ""


async def attach_workspace(engine: Engine, agent_id: str, path: str, *, by: str) -> AttachedWorkspaceRow:
    """Let an agent work in a folder. Raises InvalidRequest for one that is not there."""
    folder = await asyncio.to_thread(_folder, path)
    refuse_home(folder, agent_id, engine.home())
    event = _attachment(folder, by)
    await _admit(engine, agent_id, [event])
    row = await engine.store.attached_workspace(agent_id, event.workspace_id)
    assert row is not None, event.workspace_id
    return row


async def use_workspace(
    engine: Engine, agent_id: str, choice: WorkspaceChoice, *, by: str
) -> tuple[ActiveWorkspaceRow, str]:
    """Have an agent work somewhere from its next turn on; where that is, and advice. Raises InvalidRequest."""
    plan = await plan_use(engine, agent_id, choice, by=by, key=engine.ids.new("use"))
    try:
        await _admit(engine, agent_id, plan.events)
    except EventRefused as refused:  # it was detached, or its worktree removed, in this moment
        raise InvalidRequest(refused.message, refused.hint) from None
    row = await engine.store.active_workspace(agent_id)
    assert row is not None, agent_id
    return row, plan.advice


async def detach_workspace(engine: Engine, agent_id: str, workspace: str, *, by: str) -> None:
    """Have an agent work in a folder no more. Raises InvalidRequest for the one in use, and for one that is not there.
    The folder need not exist any more; nothing on disk is touched."""
    if workspace == AGENT_HOME:
        raise InvalidRequest("agent_home cannot be detached", "It is the workspace of an agent that has no other.")
    await _attached(engine, agent_id, workspace)
    active = await engine.store.active_workspace(agent_id)
    if active is not None and active.workspace_id == workspace:
        raise InvalidRequest(
            f"workspace {workspace} is the one that agent {agent_id!r} works in",
            f"Have it use another one first: use_workspace({agent_id!r}, workspace_id={AGENT_HOME!r}).",
        )
    try:
        await _admit(engine, agent_id, [WorkspaceDetached(workspace_id=workspace, detached_by=by)])
    except EventRefused as refused:
        raise InvalidRequest(refused.message, refused.hint) from None


async def plan_use(engine: Engine, agent_id: str, choice: WorkspaceChoice, *, by: str, key: str) -> WorkspacePlan:
    """What has to be put on record so that the agent works where it was told. The folder of an isolated one is made
    here; made again under the same key, it is the same folder. Raises InvalidRequest."""
    if (choice.path is None) == (choice.workspace_id is None):
        given = "neither was given" if choice.path is None else "both were given"
        raise InvalidRequest(f"use_workspace takes a path or a workspace_id, and {given}", "Give exactly one of them.")
    if choice.mode not in MODES:
        raise InvalidRequest(f"mode={choice.mode!r}", "Give 'direct' or 'isolated'.")
    if len(choice.label) > MAX_LABEL:
        raise InvalidRequest(f"the label has {len(choice.label)} characters", f"Give at most {MAX_LABEL}.")
    if choice.workspace_id == AGENT_HOME:
        return _home_plan(choice, by)
    if choice.workspace_id is not None:
        row = await _attached(engine, agent_id, choice.workspace_id)
        anchor = row.workspace_anchor
        if not _is_folder(anchor):
            raise InvalidRequest(
                f"the folder of workspace {row.workspace_id} is not there: {anchor}",
                "Bring it back, or use another workspace; agent_home is always there.",
            )
        return await _plan_inside(engine, agent_id, choice, (row.workspace_id, anchor), by=by, key=key)
    assert choice.path is not None
    return await _plan_path(engine, agent_id, choice, await asyncio.to_thread(_folder, choice.path), by=by, key=key)


def is_given(path: str, folder: Path, rows: Sequence[AttachedWorkspaceRow]) -> bool:
    """Does a path belong to what an agent has: a workspace, its home, or a worktree of one of its repositories? Blocks
    on the disk."""
    real = os.path.realpath(path)
    given = [str(folder), *(row.workspace_anchor for row in rows)]
    return any(_is_inside(real, each) for each in given) or _repository_of(real, rows) is not None


# --- plans ---------------------------------------------------------------------------------------------------------


def _home_plan(choice: WorkspaceChoice, by: str) -> WorkspacePlan:
    if choice.mode != "direct":
        raise InvalidRequest("agent_home takes no mode", "Leave mode out, or name another workspace.")
    if choice.cwd is not None:
        raise InvalidRequest("agent_home takes no cwd", "Leave it out: commands begin at its top.")
    return WorkspacePlan([home_use(by=by)])


async def _plan_path(
    engine: Engine, agent_id: str, choice: WorkspaceChoice, real: str, *, by: str, key: str
) -> WorkspacePlan:
    """A folder inside a workspace is that workspace; a worktree of an attached repository is a place to work on it;
    anything else is attached as it is."""
    if real == str(engine.agent_home(agent_id).resolve()):
        return _home_plan(choice, by)
    for tree in await engine.store.worktrees_of(agent_id):
        if tree.is_there and not tree.task_id and is_same_folder(tree.worktree_path, real):
            return WorkspacePlan([_isolated(tree, _inside(real, choice.cwd), by)])
    rows = await engine.store.attached_workspaces(agent_id)
    if (repository := await asyncio.to_thread(_repository_of, real, rows)) is not None:
        return await _adopted(choice, repository, real, by)
    for row in rows:
        if _is_inside(real, row.workspace_anchor):
            place = row.workspace_id, row.workspace_anchor
            inside = choice._replace(cwd=choice.cwd or _below(real, row.workspace_anchor))
            return await _plan_inside(engine, agent_id, inside, place, by=by, key=key)
    refuse_home(real, agent_id, engine.home())
    attached = _attachment(real, by)
    place = attached.workspace_id, attached.workspace_anchor
    if choice.mode == "isolated":  # the worktree's facts name a workspace: it is attached before them
        await _admit(engine, agent_id, [attached])
    plan = await _plan_inside(engine, agent_id, choice, place, by=by, key=key)
    return WorkspacePlan([attached, *plan.events], plan.advice)


async def _plan_inside(
    engine: Engine, agent_id: str, choice: WorkspaceChoice, place: tuple[str, str], *, by: str, key: str
) -> WorkspacePlan:
    workspace, anchor = place
    if choice.mode == "direct":
        return WorkspacePlan([_used(workspace, anchor, anchor, _inside(anchor, choice.cwd), by)])
    below = _below(_inside(anchor, choice.cwd), anchor)
    active = await engine.store.active_workspace(agent_id)
    if active is not None and active.worktree_id is not None and active.workspace_id == workspace and not choice.label:
        tree = await engine.store.worktree(active.worktree_id)
        if tree is not None and tree.state == "ready" and _is_folder(tree.worktree_path):
            return WorkspacePlan([_isolated(tree, _inside_or_top(tree.worktree_path, below), by)])
    order = WorktreeOrder(key, workspace, anchor, choice.label)
    tree = await create_worktree(engine, agent_id, order)
    return WorkspacePlan([_isolated(tree, _inside_or_top(tree.worktree_path, below), by)])


async def _adopted(choice: WorkspaceChoice, row: AttachedWorkspaceRow, real: str, by: str) -> WorkspacePlan:
    """Somebody else's worktree of a repository that the agent has: used as it is, and never removed."""
    if choice.mode == "isolated":
        raise InvalidRequest(f"{real} is a worktree already", ADVICE.format(row.workspace_id))
    used = _used(row.workspace_id, row.workspace_anchor, real, _inside(real, choice.cwd), by, "git_worktree_root")
    branch = await asyncio.to_thread(branch_at, real)
    return WorkspacePlan([used.model_copy(update={"worktree_branch": branch})], ADVICE.format(row.workspace_id))


def home_use(*, by: str) -> WorkspaceUsed:
    """An agent works in its home."""
    return WorkspaceUsed(
        workspace_id=AGENT_HOME,
        workspace_anchor="",
        execution_root="",
        execution_root_id=AGENT_HOME,
        cwd="",
        used_by=by,
    )


def place_of(used: WorkspaceUsed | ActiveWorkspaceRow) -> WorkspacePlace:
    """The place that a fact or a row is about."""
    return WorkspacePlace(**{name: getattr(used, name) for name in WorkspacePlace.model_fields})


def use_of(place: WorkspacePlace, *, by: str) -> WorkspaceUsed:
    """An agent works where another one works. A worktree stays the other one's."""
    return WorkspaceUsed(**place.model_copy(update={"worktree_id": None}).model_dump(), used_by=by)


def direct_use(workspace: str, anchor: str, *, by: str) -> WorkspaceUsed:
    """An agent works at the top of a workspace."""
    return _used(workspace, anchor, anchor, anchor, by)


def _used(
    workspace: str, anchor: str, root: str, cwd: str, by: str, kind: ProjectionKind = "canonical_root"
) -> WorkspaceUsed:
    return WorkspaceUsed(
        workspace_id=workspace,
        workspace_anchor=anchor,
        execution_root=root,
        execution_root_id="root_" + hashlib.sha256(root.encode()).hexdigest()[:16],
        cwd=cwd,
        projection_kind=kind,
        used_by=by,
    )


def _isolated(tree: WorktreeRow, cwd: str, by: str) -> WorkspaceUsed:
    return WorkspaceUsed(
        workspace_id=tree.workspace_id,
        workspace_anchor=tree.workspace_anchor,
        execution_root=tree.worktree_path,
        execution_root_id=tree.worktree_id,
        cwd=cwd,
        mode="isolated",
        projection_kind="git_worktree_root",
        worktree_id=tree.worktree_id,
        original_branch=tree.base_branch,
        worktree_branch=tree.worktree_branch,
        used_by=by,
    )


# --- what they rest on ---------------------------------------------------------------------------------------------


def _folder(path: str) -> str:
    """Raises InvalidRequest."""
    try:
        real = Path(path).expanduser().resolve(strict=True)
    except (OSError, ValueError, RuntimeError) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise InvalidRequest(f"{path!r} cannot be a workspace: {why}", "Name a folder that exists.") from None
    if not real.is_dir():
        raise InvalidRequest(f"{path!r} cannot be a workspace: it is not a folder", "Name a folder that exists.")
    return str(real)


def _repository_of(folder: str, rows: Sequence[AttachedWorkspaceRow]) -> AttachedWorkspaceRow | None:
    """The attached repository that a folder is a worktree of. Blocks on git."""
    if not Path(folder, ".git").is_file():
        return None
    return next((row for row in rows if is_worktree_of(folder, row.workspace_anchor)), None)


def _inside(root: str, cwd: str | None) -> str:
    """The folder where commands begin. Raises InvalidRequest for one outside the root."""
    if cwd is None:
        return root
    real = os.path.realpath(Path(root, cwd))
    if not _is_inside(real, root) or not Path(real).is_dir():
        raise InvalidRequest(f"cwd={cwd!r} is not a folder in {root}", "Name one inside, or leave it out.")
    return real


def _inside_or_top(root: str, below: str) -> str:
    """The same folder of a copy; its top, where no commit has the folder."""
    return os.path.normpath(Path(root, below)) if Path(root, below).is_dir() else root


def _below(path: str, root: str) -> str:
    return os.path.relpath(os.path.realpath(path), os.path.realpath(root))


def _is_inside(path: str, root: str) -> bool:
    real, top = os.path.realpath(path), os.path.realpath(root)
    return real == top or real.startswith(f"{top.rstrip('/')}/")


def _is_folder(path: str) -> bool:
    return Path(path).is_dir()


def _attachment(anchor: str, by: str) -> WorkspaceAttached:
    return WorkspaceAttached(workspace_id=workspace_id(anchor), workspace_anchor=anchor, attached_by=by)


async def _attached(engine: Engine, agent_id: str, workspace: str) -> AttachedWorkspaceRow:
    row = await engine.store.attached_workspace(agent_id, workspace)
    if row is None:
        known = [each.workspace_id for each in await engine.store.attached_workspaces(agent_id)]
        raise InvalidRequest(
            f"agent {agent_id!r} has no workspace {workspace!r}", f"It has: {', '.join([AGENT_HOME, *known])}."
        )
    return row


async def _admit(engine: Engine, agent_id: str, events: list[AnyEvent]) -> None:
    now = engine.clock.now()
    await engine.store.admit(agent_id, [Fact(event, now, MAIN_THREAD) for event in events])
