"""The workspaces of a runtime's agents, as methods of `Runtime`."""

from os import PathLike, fspath
from typing import TYPE_CHECKING

from wakeful.surfaces.library.argument_checks import checked_arguments
from wakeful.surfaces.library.tool_refusals import open_to_tools

if TYPE_CHECKING:
    from wakeful.contracts.workspaces import WorkspaceMode
    from wakeful.service.living_runtime import LivingRuntime
    from wakeful.views.execution_snapshot import AgentWorkspaces


@checked_arguments
@open_to_tools("workspaces")
class RuntimeWorkspaces:
    """A part of `Runtime`."""

    @property
    def _here(self) -> "LivingRuntime":
        raise NotImplementedError

    async def attach_workspace(
        self, agent: str, path: str | PathLike[str], *, by: str = "program"
    ) -> "AgentWorkspaces":
        """Let an agent work in a folder. It works where it did until `use_workspace`, or its own call, changes that.

        Raises AgentNotFound, or InvalidRequest for a folder that is not there.
        """
        from wakeful.service.commands.workspaces import attach

        return await attach(self._here.engine, agent, fspath(path), by=by)

    async def use_workspace(
        self,
        agent: str,
        path: str | PathLike[str] | None = None,
        *,
        workspace_id: str | None = None,
        mode: "WorkspaceMode" = "direct",
        cwd: str | None = None,
        label: str = "",
        by: str = "program",
    ) -> "AgentWorkspaces":
        """Have an agent work in a folder or an attached workspace, from its next turn on. Give exactly one of the two;
        `workspace_id="agent_home"` is its own folder.

        `mode="isolated"` makes a git worktree with a branch of its own, in which the agent stays over restarts. It is
        left by using another workspace: removed when it is clean and merged, and kept otherwise. Raises AgentNotFound
        or InvalidRequest.
        """
        from wakeful.service.commands.workspaces import choose, use

        choice = choose(None if path is None else fspath(path), workspace_id, mode, cwd, label)
        return await use(self._here.engine, agent, choice, by=by)

    async def detach_workspace(self, agent: str, workspace_id: str, *, by: str = "program") -> "AgentWorkspaces":
        """Have an agent work in a folder no more. Nothing on disk is touched, and the folder may be gone already.

        Raises AgentNotFound, or InvalidRequest for the workspace that it works in.
        """
        from wakeful.service.commands.workspaces import detach

        return await detach(self._here.engine, agent, workspace_id, by=by)

    async def clean_up_worktree(self, agent: str, worktree_id: str, *, by: str = "program") -> "AgentWorkspaces":
        """Look again at a worktree that was kept, and remove it where no work is lost by that."""
        from wakeful.service.commands.workspaces import clean_up

        return await clean_up(self._here.engine, agent, worktree_id, by=by)

    async def workspaces(self, agent: str) -> "AgentWorkspaces":
        """Where an agent may work, where it works, its worktrees, and what holds its commands."""
        from wakeful.service.commands.agents import agent_named
        from wakeful.service.queries.workspaces import workspaces_of

        here = self._here
        await agent_named(here.engine.store, agent)
        known = (await here.supply.agent(agent)).sandbox if await here.supply.has(agent) else None
        return await workspaces_of(
            here.engine, agent, grants_network=None if known is None else known.network == "full"
        )
