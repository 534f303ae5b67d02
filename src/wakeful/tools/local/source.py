"""The built-in tools of one workspace, as a source among an agent's tools."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wakeful.sandbox.settings import SandboxSettings
from wakeful.tools.function import Tool
from wakeful.tools.local.names import Profile
from wakeful.tools.source import Offer, Surroundings, ToolSource

if TYPE_CHECKING:
    from wakeful.sandbox.confined import Sandbox


class LocalTools(ToolSource):
    """What a profile offers in a folder. The tools are made when they are first asked for, and kept."""

    def __init__(
        self,
        root: Path,
        profile: Profile,
        settings: SandboxSettings | None = None,
        surroundings: Surroundings | None = None,
    ) -> None:
        self.root = root
        self.profile: Profile = profile
        self._settings = settings if settings is not None else SandboxSettings()
        self._surroundings = surroundings if surroundings is not None else Surroundings()
        self._tools: tuple[Tool[Any], ...] | None = None
        self._sandbox: Sandbox | None = None
        self._placed: dict[Surroundings, LocalTools] = {}

    @property
    def name(self) -> str:
        return self.profile

    def within(self, surroundings: Surroundings) -> "LocalTools":
        """The same tools, kept away from the runtime's own files and keys."""
        known = self._placed.get(surroundings)
        if known is None:
            known = self._placed[surroundings] = LocalTools(self.root, self.profile, self._settings, surroundings)
        return known

    async def offer(self) -> Offer:
        if self._tools is None:
            self._tools = tuple(self._made())
        return Offer(self._tools)

    async def close(self) -> None:
        """Take back what stood in for places that no command may make. The next command makes it again."""
        if self._sandbox is not None:
            self._sandbox.close()

    def _made(self) -> list[Tool[Any]]:
        # Here, because an agent without a workspace has no use for any of it.
        from wakeful.sandbox.confined import Sandbox
        from wakeful.sandbox.places import store_files
        from wakeful.settings.owner_file import owner_file
        from wakeful.tools.local.command_batch import ExecCommandBatch
        from wakeful.tools.local.commands import ExecCommand
        from wakeful.tools.local.output_budget import OutputBudget
        from wakeful.tools.local.profiles import local_tools
        from wakeful.workspaces import PROTECTED, Workspace, covering

        own = [Path(path) for path in self._surroundings.own_files]
        hidden = tuple(name for path in own for name in store_files(str(path)))
        readable = self._surroundings.readable
        settings = replace(
            self._settings,
            hidden=(*self._settings.hidden, *hidden),
            read_roots=(*self._settings.read_roots, *readable),
        )
        sandbox = self._sandbox = Sandbox(self.root, settings, keys=self._surroundings.keys())
        files = tuple(Path(path) for path in hidden if not path.endswith("/"))
        workspace = Workspace.at(self.root, protected=(*PROTECTED, *covering(self.root, own)), unseen=files)
        budget = OutputBudget.from_settings(owner_file().table("runtime"), os.environ)
        commands = [ExecCommand(sandbox, budget), ExecCommandBatch(sandbox, budget)]
        return local_tools(workspace, self.profile, commands, [Workspace.at(folder) for folder in readable])
