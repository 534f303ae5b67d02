"""What may be asked about the workspaces of an agent: where it works, and to attach, use or detach one.

Each change is a fact in the log. The process that runs the agent finds it there when the next turn begins.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wakeful.contracts.workspaces import WorkspaceMode
from wakeful.service.operations.operation import OpenStore, Operation

if TYPE_CHECKING:
    from wakeful.views.execution_snapshot import AgentWorkspaces

_WORKSPACES = "wakeful.views.execution_snapshot.AgentWorkspaces"


@dataclass(frozen=True, slots=True)
class WorkspacesOf:
    """An agent whose workspaces are asked for."""

    agent: str


@dataclass(frozen=True, slots=True)
class WorkspaceToAttach:
    """A folder that an agent may work in."""

    agent: str
    path: str
    """The absolute path of the folder."""
    by: str = ""


@dataclass(frozen=True, slots=True)
class WorkspaceToUse:
    """Where an agent is to work: exactly one of path and workspace_id."""

    agent: str
    path: str | None = None
    """The absolute path of a folder."""
    workspace_id: str | None = None
    """A workspace that the agent has."""
    mode: WorkspaceMode = "direct"
    """`direct`: in the folder. `isolated`: in a worktree of its own."""
    cwd: str | None = None
    """A folder inside it, where commands begin."""
    label: str = ""
    """A name for the worktree."""
    by: str = ""


@dataclass(frozen=True, slots=True)
class WorkspaceToDetach:
    """A workspace that an agent is to work in no more."""

    agent: str
    workspace_id: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class WorktreeToCleanUp:
    """A worktree that was kept, to be looked at again."""

    agent: str
    worktree_id: str
    by: str = ""


async def _list(opened: OpenStore, asked: WorkspacesOf) -> "AgentWorkspaces":
    from wakeful.service.commands.agents import agent_named
    from wakeful.service.queries.workspaces import workspaces_of

    await agent_named(opened.store, asked.agent)
    return await workspaces_of(opened.engine, asked.agent)


async def _attach(opened: OpenStore, asked: WorkspaceToAttach) -> "AgentWorkspaces":
    from wakeful.service.commands.workspaces import attach

    return await attach(opened.engine, asked.agent, asked.path, by=asked.by)


async def _use(opened: OpenStore, asked: WorkspaceToUse) -> "AgentWorkspaces":
    from wakeful.service.commands.workspaces import choose, use

    choice = choose(asked.path, asked.workspace_id, asked.mode, asked.cwd, asked.label)
    return await use(opened.engine, asked.agent, choice, by=asked.by)


async def _detach(opened: OpenStore, asked: WorkspaceToDetach) -> "AgentWorkspaces":
    from wakeful.service.commands.workspaces import detach

    return await detach(opened.engine, asked.agent, asked.workspace_id, by=asked.by)


async def _clean_up(opened: OpenStore, asked: WorktreeToCleanUp) -> "AgentWorkspaces":
    from wakeful.service.commands.workspaces import clean_up

    return await clean_up(opened.engine, asked.agent, asked.worktree_id, by=asked.by)


LIST_WORKSPACES = Operation("runtime.workspaces", "observe", WorkspacesOf, _WORKSPACES, _list)
ATTACH_WORKSPACE = Operation(
    "runtime.attach_workspace", "operate", WorkspaceToAttach, _WORKSPACES, _attach, repeatable=True
)
USE_WORKSPACE = Operation("runtime.use_workspace", "operate", WorkspaceToUse, _WORKSPACES, _use)
DETACH_WORKSPACE = Operation(
    "runtime.detach_workspace", "operate", WorkspaceToDetach, _WORKSPACES, _detach, repeatable=True
)
CLEAN_UP_WORKTREE = Operation(
    "runtime.clean_up_worktree", "operate", WorktreeToCleanUp, _WORKSPACES, _clean_up, repeatable=True
)
