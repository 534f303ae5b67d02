"""The built-in tools of one workspace, as a source among an agent's tools."""

import asyncio
import os
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wakeful import programs
from wakeful.sandbox.settings import SandboxSettings
from wakeful.tools.local.names import Profile
from wakeful.tools.source import Offer, Surroundings, ToolSource
from wakeful.tools.tool import Tool

if TYPE_CHECKING:
    from wakeful.sandbox.confinement import Sandbox
    from wakeful.tools.local.repository_custody import RepositoryCustody


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
        self._custody: RepositoryCustody | None = None
        self._placed: dict[Surroundings, LocalTools] = {}
        # Before anything of the agent is started: its servers and hooks are not taken from where it may write.
        programs.add_write_roots((root, *self._settings.write_roots))

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
            await asyncio.to_thread(self._close_imports)
        if self._tools is None:  # still: another turn may have asked meanwhile, and only one sandbox is closed
            self._tools = tuple(self._made())
        return Offer(self._tools)

    async def close(self) -> None:
        """Take back what stood in for places that no command may make. The next command makes it again."""
        if self._sandbox is not None:
            self._sandbox.close()
        if self._custody is not None:
            self._custody.close()

    def _close_imports(self) -> None:
        """Before anything can be written: what an agent puts on `sys.path` does not come to run in the runtime."""
        from wakeful.sandbox.import_guard import installed
        from wakeful.sandbox.late_imports import load_late_imports
        from wakeful.sandbox.own_code import importable

        roots = [os.path.realpath(path) for path in (str(self.root), *self._settings.write_roots)]
        if importable(roots):
            load_late_imports()
        guard = installed()
        if guard is not None:
            guard.watch(roots)

    def _made(self) -> list[Tool[Any]]:
        # Here, because an agent without a workspace has no use for any of it.
        from wakeful.sandbox.confinement import Sandbox
        from wakeful.sandbox.places import store_files, stores_in
        from wakeful.sandbox.repositories import repository_at, run_by_git
        from wakeful.settings.owner_file import owner_file
        from wakeful.tools.local.command_batch import ExecCommandBatch
        from wakeful.tools.local.commands import ExecCommand
        from wakeful.tools.local.output_budget import OutputBudget
        from wakeful.tools.local.profiles import local_tools
        from wakeful.tools.local.repository_custody import custody_of
        from wakeful.workspaces import PROTECTED, Workspace, covering, exactly
        from wakeful.workspaces.git import user_settings

        roots = (str(self.root), *self._settings.write_roots)
        stores = [path for root in roots for path in stores_in(root)]
        own = [Path(path) for path in dict.fromkeys((*self._surroundings.own_files, *stores))]
        owners = _of_the_owner(roots, self._surroundings.home)
        board = self._surroundings.tasks
        hidden = tuple(name for path in own for name in store_files(str(path)))
        if board is not None:
            hidden = (*hidden, f"{board.folder}/")
        readable = self._surroundings.readable
        settings = replace(
            self._settings,
            hidden=(*self._settings.hidden, *hidden, *_to_be_hidden(owners)),
            read_roots=(*self._settings.read_roots, *readable),
        )
        sandbox = self._sandbox = Sandbox(
            self.root,
            settings,
            keys=self._surroundings.keys(),
            git_settings=partial(user_settings, self.root),
            cwd=self._surroundings.cwd,
        )
        files = tuple(Path(path) for path in (*hidden, *owners) if not path.endswith("/"))
        hooks = run_by_git(repository_at(sandbox.root), [sandbox.root], os.environ.get("HOME"))
        held = exactly(Path(sandbox.root), map(Path, (*hooks, *sandbox.code, *owners)))
        workspace = Workspace.at(self.root, protected=(*PROTECTED, *covering(self.root, own), *held), unseen=files)
        budget = OutputBudget.from_settings(owner_file().table("runtime"), os.environ)
        custody = self._custody = custody_of(sandbox)
        commands: list[Tool[Any]] = [ExecCommandBatch(sandbox, budget, custody, board)]
        if board is None:
            commands.append(ExecCommand(sandbox, budget, custody))
        else:
            from wakeful.tools.local.task_commands import ExecTaskCommand
            from wakeful.tools.local.task_tools import task_tools

            commands += [ExecTaskCommand(sandbox, board, budget, custody), *task_tools(sandbox, board)]
        return local_tools(workspace, self.profile, commands, [Workspace.at(folder) for folder in readable])


class TaskTools(ToolSource):
    """The tools for tasks, for an agent that runs no commands and has child agents."""

    def __init__(self, surroundings: Surroundings | None = None) -> None:
        self._surroundings = surroundings if surroundings is not None else Surroundings()

    @property
    def name(self) -> str:
        return "tasks"

    def within(self, surroundings: Surroundings) -> "TaskTools":
        return TaskTools(surroundings)

    async def offer(self) -> Offer:
        if self._surroundings.tasks is None:
            return Offer(())
        from wakeful.tools.local.task_tools import task_tools

        return Offer(task_tools(None, self._surroundings.tasks))


def _of_the_owner(roots: Iterable[str], runtime_home: str | None) -> tuple[str, ...]:
    """The homes and the owner's settings, as far as they lie where an agent may write: what stands there is obeyed
    outside every sandbox, at the next start. A folder ends with a slash."""
    from wakeful.programs import is_below
    from wakeful.settings.home import OF_THE_HOME, home
    from wakeful.settings.owner_file import settings_path

    real = [os.path.realpath(root) for root in roots]
    named = [os.path.realpath(settings_path())]
    for place in dict.fromkeys(os.path.realpath(each) for each in (home(), runtime_home) if each is not None):
        # A home that is the workspace itself, or above it, cannot be closed whole.
        whole = [f"{place}/"] if not any(is_below(root, [place]) for root in real) else []
        named += [*whole, *(f"{place}/{name}" for name in OF_THE_HOME)]
    return tuple(dict.fromkeys(path for path in named if is_below(path.rstrip("/"), real)))


def _to_be_hidden(owners: Iterable[str]) -> list[str]:
    """Of those, what commands are kept from. A file that is not there is not made for it: an empty file of settings is
    no settings. In a home that is closed whole none can be made either."""
    return [path for path in owners if path.endswith("/") or Path(path).exists()]
