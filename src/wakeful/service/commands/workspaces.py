"""Workspaces of an agent of the runtime: attach, use, detach, and clean up what was kept. Facts in the log, whoever
runs the agent: a turn that runs goes on where it is, and the next one begins where the newest fact says."""

from pathlib import Path
from typing import Any

from wakeful.contracts.events import AnyEvent, WorkspaceAttached
from wakeful.contracts.workspaces import WorkspaceMode
from wakeful.engine.agent import Agent
from wakeful.engine.run_request import Engine
from wakeful.engine.workspace_use import (
    WorkspaceChoice,
    attach_workspace,
    detach_workspace,
    direct_use,
    use_workspace,
)
from wakeful.engine.worktrees import clean_up_worktree
from wakeful.service.commands.agents import agent_named
from wakeful.service.queries.record_names import meant
from wakeful.service.queries.workspaces import workspaces_of
from wakeful.settings.agent_homes import refuse_home
from wakeful.views.execution_snapshot import AgentWorkspaces
from wakeful.workspaces import workspace_id

DEFINITION = "definition"
"""Who attached the workspace that an agent's own definition names."""


async def attach(engine: Engine, agent: str, path: str, *, by: str) -> AgentWorkspaces:
    """Raises AgentNotFound or InvalidRequest."""
    await agent_named(engine.store, agent)
    await attach_workspace(engine, agent, path, by=by)
    return await workspaces_of(engine, agent)


async def use(engine: Engine, agent: str, choice: WorkspaceChoice, *, by: str) -> AgentWorkspaces:
    """Raises AgentNotFound or InvalidRequest."""
    await agent_named(engine.store, agent)
    if choice.workspace_id is not None:
        choice = choice._replace(workspace_id=await _meant(engine, agent, choice.workspace_id))
    _, advice = await use_workspace(engine, agent, choice, by=by)
    return (await workspaces_of(engine, agent)).model_copy(update={"advice": advice})


async def detach(engine: Engine, agent: str, workspace: str, *, by: str) -> AgentWorkspaces:
    """Raises AgentNotFound or InvalidRequest."""
    await agent_named(engine.store, agent)
    await detach_workspace(engine, agent, await _meant(engine, agent, workspace), by=by)
    return await workspaces_of(engine, agent)


async def clean_up(engine: Engine, agent: str, worktree_id: str, *, by: str) -> AgentWorkspaces:
    """Look again at a worktree that was kept, and remove it where nothing is lost by that. Raises InvalidRequest."""
    await agent_named(engine.store, agent)
    there = [tree.worktree_id for tree in await engine.store.worktrees_of(agent) if tree.is_there]
    await clean_up_worktree(engine, meant(worktree_id, there, "wt_", "worktrees"), by=by)
    return await workspaces_of(engine, agent)


async def _meant(engine: Engine, agent: str, workspace: str) -> str:
    """The whole id of a workspace of the agent that is named by the beginning of it."""
    known = [each.workspace_id for each in await engine.store.attached_workspaces(agent)]
    return meant(workspace, known, "ws_", "workspaces")


def choose(
    path: str | None, workspace: str | None, mode: WorkspaceMode = "direct", cwd: str | None = None, label: str = ""
) -> WorkspaceChoice:
    return WorkspaceChoice(path, workspace, mode, cwd, label)


async def defined_workspace(engine: Engine, agent: Agent[Any, Any]) -> list[AnyEvent]:
    """What attaches the workspace that an agent's definition names. It is used, unless somebody chose another one.

    Raises InvalidRequest for the home, a folder that holds it, and a folder of the runtime in it.
    """
    if agent.workspace is None or agent.profile == "chat":
        return []
    refuse_home(agent.workspace, agent.name, engine.home())
    anchor = _real_folder(agent.workspace)
    name = workspace_id(anchor)
    active = await engine.store.active_workspace(agent.name)
    events: list[AnyEvent] = []
    if await engine.store.attached_workspace(agent.name, name) is None:
        events.append(WorkspaceAttached(workspace_id=name, workspace_anchor=anchor, attached_by=DEFINITION))
    if active is None or (active.used_by == DEFINITION and active.workspace_id != name):
        events.append(direct_use(name, anchor, by=DEFINITION))
    return events


def _real_folder(path: Path) -> str:
    return str(path.resolve())
