"""Where a turn works: the workspace its agent uses when it begins, and the one that its own calls change to.

A turn stays where it began, whoever sends its agent elsewhere meanwhile, and goes on there after a crash. Only a call
of `use_workspace` in the turn itself moves it: the tools of that turn are exchanged for those of the new place, under
the same names, and the fact stands in the commit of the call's result.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.errors import InvalidRequest, ToolReported, WorkspaceMissing
from wakeful.contracts.events import AnyEvent, ToolResult, WorkspaceUsed
from wakeful.contracts.prompts import ExecutionRoots
from wakeful.contracts.tools import ToolError
from wakeful.contracts.workspaces import AGENT_HOME, WorkspacePlace
from wakeful.engine.agent import Agent
from wakeful.engine.prepare.file_taint import tainted_roots
from wakeful.engine.prepare.tools import local_tools_of
from wakeful.engine.run_request import Engine
from wakeful.engine.turn_work import TurnWork
from wakeful.engine.workspace_use import WorkspaceChoice, is_given, place_of, plan_use
from wakeful.gate.call_at_gate import CallAtGate
from wakeful.gate.turn_gate import AfterCall
from wakeful.ports.workspaces import ActiveWorkspaceRow, AttachedWorkspaceRow
from wakeful.tools.context import RunContext
from wakeful.tools.local.names import Profile
from wakeful.tools.proposal import ProposedCall
from wakeful.tools.source import Surroundings
from wakeful.tools.workspaces import WorkspaceTool
from wakeful.workspaces import workspace_id

_bound: "WeakKeyDictionary[Agent[Any, Any], dict[tuple[str, Profile], Agent[Any, Any]]]" = WeakKeyDictionary()
"""Agents as they work in a place: what was worked out for one is kept with it."""
MOST_PLACES = 32


class BoundAgent(NamedTuple):
    """An agent at its place."""

    agent: Agent[Any, Any]
    roots: ExecutionRoots | None = None
    """None: as the agent says itself."""
    moved: WorkspaceUsed | None = None
    """Of a turn that goes on: where its own calls had brought it."""
    place: WorkspacePlace | None = None
    """Of an agent that works on files where a fact says so."""

    @property
    def workspace_id(self) -> str:
        if self.roots is not None and self.roots.workspace_id is not None:
            return self.roots.workspace_id
        return workspace_id(str(self.agent.workspace)) if self.agent.workspace is not None else ""


async def bind_agent(
    engine: Engine, agent: Agent[Any, Any], agent_id: str, before: TurnConfig | None, of_turn: Sequence[StoredFact]
) -> BoundAgent:
    """The agent where its turn works. Raises WorkspaceMissing when that is not there."""
    if before is not None:
        return await _as_begun(engine, agent, agent_id, before, of_turn)
    row = await engine.store.active_workspace(agent_id)
    if row is None:
        if agent.workspace is not None:
            _check(agent_id, str(agent.workspace), "")
        return BoundAgent(agent)
    profile = await _profile(engine, agent, agent_id)
    folder = engine.agent_home(agent_id)
    if row.workspace_id == AGENT_HOME:
        if profile == "chat":
            return BoundAgent(agent)
        await asyncio.to_thread(folder.mkdir, 0o700, True, True)
    root = row.execution_root or str(folder)
    _check(agent_id, root, row.workspace_id)
    _check_repository(row)
    return BoundAgent(_at(agent, root, profile), _roots(row, folder, root), place=place_of(row))


async def _as_begun(
    engine: Engine, agent: Agent[Any, Any], agent_id: str, before: TurnConfig, of_turn: Sequence[StoredFact]
) -> BoundAgent:
    if before.workspace is None:
        return BoundAgent(agent)
    _check(agent_id, before.workspace, "")
    used = [entry.fact.event for entry in of_turn if isinstance(entry.fact.event, WorkspaceUsed)]
    profile = await _profile(engine, agent, agent_id)
    row = await engine.store.active_workspace(agent_id)
    is_there = row is not None and (row.execution_root or str(engine.agent_home(agent_id))) == before.workspace
    place = None
    if row is not None and is_there:
        _check_repository(row)
        place = place_of(row)
    return BoundAgent(_at(agent, before.workspace, profile), None, used[-1] if used else None, place)


async def _profile(engine: Engine, agent: Agent[Any, Any], agent_id: str) -> Profile:
    """An agent that was given a folder works on files; one that says `chat` beside its own workspace does not."""
    if agent.workspace is not None:
        return agent.profile or "coding"
    return "coding" if await engine.store.attached_workspaces(agent_id) else "chat"


def _at(agent: Agent[Any, Any], root: str, profile: Profile) -> Agent[Any, Any]:
    if str(agent.workspace) == root and agent.profile == profile:
        return agent
    known = _bound.setdefault(agent, {})
    found = known.pop((root, profile), None)
    if found is None:
        found = agent.changed(workspace=root, profile=profile)
        while len(known) >= MOST_PLACES:
            del known[next(iter(known))]
    known[root, profile] = found
    return found


def _check(agent_id: str, root: str, workspace: str) -> None:
    if not Path(root).is_dir():
        named = f" (workspace {workspace})" if workspace else ""
        raise _missing(agent_id, root, f"agent {agent_id!r} works in {root}{named}, and that folder is not there")


def _check_repository(row: ActiveWorkspaceRow) -> None:
    """A worktree whose repository is away is a folder in which git does nothing but fail."""
    for folder in row.folders[1:]:
        if not Path(folder).is_dir():
            words = f"agent {row.agent_id!r} works in a worktree of {folder}, and that folder is not there"
            raise _missing(row.agent_id, folder, words)


def _missing(agent_id: str, folder: str, words: str) -> WorkspaceMissing:
    missing = WorkspaceMissing(
        words, f"Bring it back, or have the agent work elsewhere: wakeful workspace use {agent_id} {AGENT_HOME}"
    )
    missing.folder = folder
    return missing


def _roots(row: ActiveWorkspaceRow, folder: Path, root: str) -> ExecutionRoots:
    return ExecutionRoots(
        agent_home=str(folder) if folder.is_dir() else None,
        workspace_id=row.workspace_id,
        workspace_anchor=row.workspace_anchor or str(folder),
        execution_root=root,
        cwd=row.cwd or root,
        user_home=str(Path.home()),
    )


# --- calls of a turn -----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class WorkspaceDesk:
    """What the calls of `use_workspace` in one turn work with."""

    engine: Engine
    agent: Agent[Any, Any]
    agent_id: str
    surroundings: Surroundings
    stack: AsyncExitStack
    attached: list[AttachedWorkspaceRow] = field(default_factory=list)
    root: str = ""
    """Where the turn works now."""
    work: TurnWork | None = None
    facts: dict[str, list[AnyEvent]] = field(default_factory=dict)
    """What calls that are under way will put on record, by the call."""

    async def open(self, work: TurnWork, bound: BoundAgent) -> None:
        """Begin with a turn that is ready, or go on where its calls had brought it."""
        self.work, self.root = work, str(self.agent.workspace)
        self.attached = await self.engine.store.attached_workspaces(self.agent_id)
        if bound.moved is not None:
            await self.move(bound.moved)

    def tool(self) -> WorkspaceTool:
        return WorkspaceTool(self._use, self._asks)

    async def move(self, used: WorkspaceUsed) -> None:
        """Have the turn's tools work there from the next call on."""
        assert self.work is not None
        folder = self.engine.agent_home(self.agent_id)
        if used.workspace_id == AGENT_HOME:
            await asyncio.to_thread(folder.mkdir, 0o700, True, True)
        root = used.execution_root or str(folder)
        _check(self.agent_id, root, used.workspace_id)
        there = _at(self.agent, root, self.agent.profile or "coding")
        tools = await local_tools_of(there, replace(self.surroundings, cwd=used.cwd or root), self.stack)
        known = self.work.code.tools
        assert isinstance(known, dict)
        known.update((tool.name, tool) for tool in tools if tool.name in known)
        self.work.tainted_roots.update(await tainted_roots(self.engine.store, tools))
        self.work.workspace_id, self.work.works_at = used.workspace_id, place_of(used)
        self.root = root

    def heard(self, after: AfterCall | None) -> AfterCall:
        """Whoever is heard after a call, with where it brought its agent told beside its result."""

        async def told(at: CallAtGate, events: list[AnyEvent]) -> list[AnyEvent]:
            facts = self.facts.pop(at.call_id, [])
            if facts and isinstance(events[-1], ToolResult):
                events = [*facts, *events]
            return events if after is None else await after(at, events)

        return told

    def _asks(self, call: ProposedCall) -> bool | str:
        path = call.arguments.get("path")
        if not isinstance(path, str) or call.arguments.get("workspace_id") is not None:
            return False
        if is_given(self._absolute(path), self.engine.agent_home(self.agent_id), self.attached):
            return False
        return f"{path} is not among the workspaces of {self.agent_id}"

    def _absolute(self, path: str) -> str:
        """A relative path counts from where the turn works."""
        return str(Path(self.root, Path(path).expanduser()))

    async def _use(self, ctx: RunContext[Any], given: dict[str, Any]) -> dict[str, Any]:
        path = given.get("path")
        choice = WorkspaceChoice(
            path=self._absolute(path) if path is not None else None,
            workspace_id=given.get("workspace_id"),
            mode=given.get("mode", "direct"),
            cwd=given.get("cwd"),
            label=given.get("isolation_label", ""),
        )
        try:
            plan = await plan_use(
                self.engine, self.agent_id, choice, by="agent", key=f"call/{ctx.turn_id}/{ctx.call_id}"
            )
        except InvalidRequest as wrong:
            raise ToolReported(
                ToolError(kind="invalid_input", message=wrong.message, recovery_hint=wrong.hint)
            ) from None
        used = next(event for event in plan.events if isinstance(event, WorkspaceUsed))
        await self.move(used)
        self.facts[ctx.call_id] = plan.events
        root = used.execution_root or str(self.engine.agent_home(self.agent_id))
        told = {
            "workspace_id": used.workspace_id,
            "workspace_anchor": used.workspace_anchor or root,
            "execution_root": root,
            "cwd": used.cwd or root,
            "mode": used.mode,
            "projection_kind": used.projection_kind,
            "summary_text": _summary(used, root),
        }
        return {**told, "advice": plan.advice} if plan.advice else told


def _summary(used: WorkspaceUsed, root: str) -> str:
    where = f"You work in {root}"
    if used.worktree_id is not None:
        return f"{where}, a copy of {used.workspace_anchor} on branch {used.worktree_branch}."
    if used.projection_kind == "git_worktree_root":
        return f"{where}, a worktree of {used.workspace_anchor}."
    return f"{where}."
