"""Where a runtime has its agents from: the program, the files of its home, and definitions that the store keeps.

Every revision is kept under its hash and named in the log. Of an agent whose file cannot be loaded, the last definition
that could be is in force, and the problem is told until it is gone.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wakeful.contracts.agent_identity import AgentKind, AgentSource
from wakeful.contracts.children import MOST_GENERATIONS
from wakeful.contracts.envelope import MAIN_THREAD, Fact
from wakeful.contracts.errors import (
    AgentMissing,
    AgentNameTaken,
    DefinedInCode,
    EventRefused,
    ForTheCaller,
    InvalidRequest,
)
from wakeful.contracts.events import AgentCreated, AgentRevised, FilesLoaded
from wakeful.contracts.events.holds import RUNTIME_STREAM
from wakeful.contracts.file_problems import FileProblem
from wakeful.contracts.triggers import TriggerEntry
from wakeful.contracts.waking import WakeEntry
from wakeful.contracts.workflows import WorkflowGraph
from wakeful.decisions.salted_secrets import SALT
from wakeful.decisions.workflows.children import agent_names
from wakeful.engine.agent import Agent
from wakeful.engine.run_request import Engine, RunRequest, WorkflowTerms
from wakeful.ports.runtime_agents import RUNTIME_AGENTS, RuntimeAgentRow
from wakeful.ports.wakes import RELOAD
from wakeful.runtime.agent_definitions import MEDIA_TYPE, entry_from, entry_of, read_folder
from wakeful.runtime.agent_roster import AgentRoster, RosterEntry
from wakeful.runtime.builtin_templates import DEFAULT_TEMPLATE
from wakeful.runtime.parked_providers import append_to_runtime
from wakeful.runtime.timers import defined_wakes
from wakeful.runtime.triggers import defined_triggers
from wakeful.service.agent_models import ancestry, check_models, with_model
from wakeful.service.commands.agent_homes import guide_default, new_home
from wakeful.service.commands.agent_removal import delete_agent
from wakeful.service.commands.agents import RUNTIME, agent_named, create_agent, pause_agent, resume_agent
from wakeful.service.commands.spend_windows import go_on_with_new_limits
from wakeful.service.commands.workspaces import defined_workspace
from wakeful.service.file_reloads import file_problems
from wakeful.service.owner_terms import OwnerTerms
from wakeful.settings.agent_homes import default_agent_id
from wakeful.tools.tool import Tool

MOST_TRIES = 3
"""To put a definition into force while somebody changes timers of the same agent."""


def created_agent(engine: Engine, name: str, source: AgentSource, by: str, template: str | None = None) -> AgentCreated:
    """The fact about a new public agent that belongs to nobody but its owner."""
    kind: AgentKind = "default" if name == default_agent_id() else "named"
    salt = engine.ids.new(SALT)
    return AgentCreated(agent_name=name, agent_kind=kind, source=source, created_by=by, template=template, salt=salt)


@dataclass(slots=True)
class AgentSupply:
    """The agents of one runtime."""

    engine: Engine
    roster: AgentRoster
    tools: tuple[Tool[Any], ...] = ()
    """What definitions may name."""
    folder: Path | None = None
    """Where the files of agents are."""
    owner: OwnerTerms | None = None
    """The owner's file; None: nobody holds it."""
    problems: list[FileProblem] = field(default_factory=list)
    _children: "dict[str, tuple[Agent[Any, Any], RosterEntry]]" = field(default_factory=dict)
    """Agents that others made, by name, each with the agent it was made from."""
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def introduce(self) -> None:
        """Make every agent known that the program or a file has, with its revision."""
        for entry in self.roster:
            await self._introduce(entry)
            await self._run_with_code(entry.agent.name)
        await self.reload()
        await self._resume_made("api", "agent")
        await self._go_on_with_new_limits()

    async def reload(self) -> list[FileProblem]:
        """Read the files again: what changed is in force for turns that begin from here on. What cannot be loaded."""
        async with self._reading:
            owner_changed = self.owner.reload() if self.owner is not None else False
            changed: list[str] = []
            found: list[FileProblem] = []
            if self.folder is not None:
                entries, found = read_folder(self.folder, self.tools)
                changed = await self._take_over(entries, found)
            self.problems = [*found, *(self.owner.problems if self.owner is not None else ())]
            await self._tell(changed, owner_changed)
            if changed or owner_changed:
                await self._go_on_with_new_limits()
        return self.problems

    async def _take_over(self, entries: Sequence[RosterEntry], problems: list[FileProblem]) -> list[str]:
        """Put definitions that are new or changed into force; the names of their agents."""
        changed = []
        for entry in entries:
            known = self.roster.get(entry.agent.name)
            if known is not None and known.source == "code":
                message = f"the program has an agent called {entry.agent.name!r}"
                problems.append(_problem_with(entry, InvalidRequest(message, "Rename one of them.")))
            elif known is None or known.revision != entry.revision or not known.place:
                try:
                    await self._introduce(entry)
                except ForTheCaller as wrong:
                    problems.append(_problem_with(entry, wrong))
                    continue
                self.roster.put(entry)
                await self._run_with_code(entry.agent.name)
                changed.append(entry.agent.name)
        problems[:] = [await self._named(problem) for problem in problems]
        for problem in problems:
            await self._keep_last(problem)
        await self._let_go({entry.agent.name for entry in entries} | {problem.agent for problem in problems})
        return changed

    async def _named(self, problem: FileProblem) -> FileProblem:
        """With the agent that the file had when it could be read: one that cannot be read says no name."""
        store = self.engine.store
        if problem.field or self.roster.get(problem.agent) is not None or await store.runtime_agent(problem.agent):
            return problem
        for row in await store.runtime_agents():
            if row.source == "file" and row.archived_at is None:
                revisions = await store.agent_revisions(row.agent_id)
                if revisions and revisions[0].place == problem.place:
                    return problem.model_copy(update={"agent": row.agent_id})
        return problem

    async def _let_go(self, there: set[str]) -> None:
        """Pause agents whose file is gone: nothing runs with a definition that nobody can see."""
        for row in await self.engine.store.runtime_agents():
            if row.source != "file" or row.agent_id in there or row.archived_at is not None:
                continue
            known = self.roster.get(row.agent_id)
            if known is not None and known.source != "file":
                continue
            self.roster.drop(row.agent_id)
            if row.control == "running":
                place = known.place if known is not None and known.place else f"its file in {self.folder}"
                reason = f"{place} is gone. Put it back, or archive the agent: wakeful agent archive {row.agent_id}"
                await pause_agent(self.engine, row.agent_id, by=RUNTIME, cause="configuration", reason=reason)

    async def _tell(self, changed: Sequence[str], owner_changed: bool) -> None:
        """A fact where something is different, or where somebody asked."""
        store = self.engine.store
        before = await store.runtime_files()
        problems = tuple(self.problems)
        told = await file_problems(store)
        asked = await store.wake(RUNTIME_STREAM, MAIN_THREAD, RELOAD)
        if asked is None and not changed and not owner_changed and told == problems and (before or not problems):
            return
        event = FilesLoaded(changed=tuple(changed), owner_changed=owner_changed, problems=problems)
        await append_to_runtime(self.engine, Fact(event, self.engine.clock.now()))

    async def agent(self, name: str) -> Agent[Any, Any]:
        """Raises AgentMissing, InvalidConfig or UnknownTool where it cannot be had here."""
        return (await self.entry(name)).agent

    async def as_it_runs(self, name: str) -> Agent[Any, Any]:
        """The same, with the model that its operator gave it for turns to come."""
        row = await self.engine.store.runtime_agent(name)
        return await with_model(self.engine, (await self._entry(name, row)).agent, "", row)

    async def entry(self, name: str) -> RosterEntry:
        """An agent as it is defined. Raises AgentMissing, InvalidConfig or UnknownTool where it cannot be had here."""
        return await self._entry(name, await self.engine.store.runtime_agent(name))

    async def maker(self, name: str) -> RosterEntry:
        """An agent that made another one, which outlives it: one that was deleted since is as it was last."""
        row = await self.engine.store.get_row(RUNTIME_AGENTS, name)
        if row is not None and row.deleted_at is not None and row.source == "api":
            return await self._stored(row)
        return await self._entry(name, row)

    async def _entry(self, name: str, row: RuntimeAgentRow | None) -> RosterEntry:
        known = self.roster.get(name)
        if row is not None and row.source == "agent" and row.parent is not None:
            return await self._spawned(row, row.parent)
        if row is not None and row.source == "api" and (known is None or known.revision != row.revision):
            known = await self._stored(row)
            self.roster.put(known)
        return known if known is not None else self.roster.entry(name)

    async def has(self, name: str) -> bool:
        """Can the agent be run here?"""
        return await self.find(name) is not None

    async def find(self, name: str) -> Agent[Any, Any] | None:
        """None: it cannot be run here."""
        try:
            return await self.agent(name)
        except (ForTheCaller, AgentMissing):
            return None

    async def lineage(self, row: RuntimeAgentRow) -> list[str]:
        """The agents that made this one, its own maker first."""
        return [each.agent_id for each in (await ancestry(self.engine.store, row.agent_id))[1:]]

    async def _spawned(self, row: RuntimeAgentRow, parent: str) -> RosterEntry:
        """An agent that another one made: that one's definition as it is now, and nothing more."""
        base = (await self.maker(parent)).agent
        known = self._children.get(row.agent_id)
        if known is None or known[0] is not base:
            generation = len(await self.lineage(row))
            spawn = base.spawn if generation < MOST_GENERATIONS else None
            child = base.changed(name=row.agent_id, wake=(), spend_windows=(), spawn=spawn)
            known = self._children[row.agent_id] = base, RosterEntry(child, "agent")
        return known[1]

    async def request(self, name: str, thread: str, row: RuntimeAgentRow | None) -> RunRequest:
        """What a thread of an agent is run with next: its definition, and the model that its operator gave it.

        `row` is the agent's, as it was read a moment ago.
        """
        entry = await self._entry(name, row)
        agent = await with_model(self.engine, entry.agent, thread, row)
        workflows = WorkflowTerms(find=self.node_agents)
        return RunRequest(agent, "", thread=thread, revision=entry.revision, workflows=workflows)

    async def node_agents(self, graph: WorkflowGraph) -> list[Agent[Any, Any]]:
        """The agents that nodes of a workflow name, as far as they are there: of this runtime, or from packages.

        Raises InvalidConfig or UnknownTool for one that cannot be made here.
        """
        found = []
        for name in agent_names(graph):
            imported = await self.engine.store.imported_agents.get(name)
            if self.roster.get(name) is not None or await self.engine.store.runtime_agent(name) is not None:
                found.append(await self.agent(name))
            elif imported is not None:
                found.append(Agent.from_dict(json.loads(imported.definition)["config"], self.tools))
        return found

    async def create(self, definition: Mapping[str, Any], *, by: str, template: str | None = None) -> RuntimeAgentRow:
        """A new agent from data, with a home from a template where one is named.

        Raises InvalidConfig, UnknownTool, or InvalidRequest for a name that is taken and for a template that cannot be
        had; then there is neither an agent nor a home.
        """
        entry = entry_of(definition, self.tools, self.engine.home(), "api")
        check_models(self.engine, entry.agent)
        name = entry.agent.name
        row = await self.engine.store.runtime_agent(name)
        if row is not None and not _is_half_made(row):
            raise AgentNameTaken(f"there is an agent called {name!r} already", "Give the new agent another name.")
        created = created_agent(self.engine, name, "api", by, template)
        async with new_home(self.engine, name, template):
            await self._introduce(entry, created)
        self.roster.put(entry)
        await self._run_with_code(name)
        return await agent_named(self.engine.store, name)

    async def addressee(self, name: str | None, model: str | None) -> str:
        """Who is meant. The default agent is made on first use, where a model for it is known; no other one is."""
        if name is not None and model is None:
            return name
        default = default_agent_id()
        row = await self.engine.store.runtime_agent(default) if name in (None, default) else None
        is_there = name not in (None, default) or (row is not None and not _is_half_made(row))
        if not is_there and model is not None:
            await self.create({"name": default, "model": model}, by=RUNTIME, template=DEFAULT_TEMPLATE)
        return name if name is not None else default

    async def update(self, name: str, changes: Mapping[str, Any]) -> RuntimeAgentRow:
        """Another revision of an agent that was made from data. Raises InvalidRequest for any other."""
        row = await agent_named(self.engine.store, name)
        if row.source != "api":
            known = self.roster.get(name)
            where = known.place if known is not None and known.place is not None else "the program"
            raise DefinedInCode(f"agent {name!r} is defined in {where}", "Change it there.")
        if changes.get("name", name) != name:
            raise InvalidRequest(f"agent {name!r} cannot be renamed", "Create another agent instead.")
        entry = entry_of({**await self.definition(row.revision), **changes}, self.tools, self.engine.home(), "api")
        if {"model", "fallbacks"} & set(changes):
            check_models(self.engine, entry.agent)
        await self._introduce(entry)
        self.roster.put(entry)
        await self._run_with_code(name)
        await self._go_on_with_new_limits()
        return await agent_named(self.engine.store, name)

    async def _go_on_with_new_limits(self) -> None:
        """Turns that rest on a spending limit go on where somebody raised it."""
        engine = self.engine if self.owner is None else self.owner.applied(self.engine)
        await go_on_with_new_limits(engine, self.find, by=RUNTIME)

    async def delete(self, name: str, *, by: str, reason: str = "") -> None:
        """Raises InvalidRequest for an agent of a file or of the program, and with what is open."""
        known = self.roster.get(name)
        is_ours = known is not None and known.source != "api"
        place = (known.place or "the program") if known is not None and is_ours else None
        await delete_agent(self.engine, name, by=by, reason=reason, place=place)
        self.roster.drop(name)

    async def definition(self, revision: str) -> dict[str, Any]:
        """A revision as data. Raises InvalidRequest for one that holds code."""
        try:
            found: dict[str, Any] = json.loads(await self.engine.store.get_blob(revision))
        except ForTheCaller:
            hint = "Only agents of files and of the API are kept as data."
            raise InvalidRequest(f"no definition is kept for revision {revision}", hint) from None
        return found

    async def last_loaded(self, row: RuntimeAgentRow) -> Agent[Any, Any]:
        """An agent as its revision in force says. Raises AgentMissing, InvalidConfig, or UnknownTool for a tool of code
        that is not here."""
        return (await self._stored(row)).agent

    async def _stored(self, row: RuntimeAgentRow) -> RosterEntry:
        if not row.revision:
            raise AgentMissing(f"agent {row.agent_id!r} has no definition yet", "Create it again.")
        kept = await self.engine.store.get_blob(row.revision)
        return entry_from(kept, self.tools, self.engine.home(), row.source)

    async def _keep_last(self, problem: FileProblem) -> None:
        """Let the agent of a bad file run on as it was; park it where that cannot be had either, or never was."""
        store = self.engine.store
        row = await store.runtime_agent(problem.agent)
        is_named = bool(problem.field) and problem.field != "name"
        if row is None and is_named and self.roster.get(problem.agent) is None and not await self._was(problem.agent):
            row = await create_agent(self.engine, created_agent(self.engine, problem.agent, "file", "file"))
        if row is None or row.source != "file" or self.roster.get(problem.agent) is not None:
            return
        try:
            self.roster.put(await self._stored(row))
        except (ForTheCaller, AgentMissing):
            if row.control == "running":
                reason = f"{problem.where}: {problem.message}"
                await pause_agent(self.engine, row.agent_id, by=RUNTIME, cause="configuration", reason=reason)

    async def _introduce(self, entry: RosterEntry, created: AgentCreated | None = None) -> None:
        """Make an agent known, with its revision and all that its definition says, in one transaction."""
        engine, name = self.engine, entry.agent.name
        row = await engine.store.runtime_agent(name)
        if row is None:
            if await self._was(name):
                raise AgentNameTaken(
                    f"the name {name!r} belonged to an agent that was deleted, and cannot be used again",
                    "Give the new agent another name.",
                )
            created = created or created_agent(engine, name, entry.source, entry.source)
            made, kind, source = [Fact(created, engine.clock.now())], created.agent_kind, created.source
        else:
            made, kind, source = [], row.kind, row.source
        if kind == "default" and source != "api":
            await guide_default(engine, name)
        for tries_left in reversed(range(MOST_TRIES)):
            facts = [*made, *await self._facts_about(entry, row)]
            try:
                if facts:
                    await engine.store.admit(name, facts)
                return
            except EventRefused:  # a timer or a trigger was changed in this moment
                if made or not tries_left:
                    raise

    async def _was(self, name: str) -> bool:
        """Was an agent of this name deleted?"""
        row = await self.engine.store.get_row(RUNTIME_AGENTS, name)
        return row is not None and row.deleted_at is not None

    async def _facts_about(self, entry: RosterEntry, row: RuntimeAgentRow | None) -> list[Fact]:
        """What a definition says that is not so yet. Raises InvalidRequest or InvalidConfig."""
        engine, name, wake = self.engine, entry.agent.name, entry.agent.wake
        now = engine.clock.now()
        facts: list[Fact] = []
        if row is None or row.revision != entry.revision:
            kept = await engine.store.put_blob(entry.described, MEDIA_TYPE)
            field = "definition" if entry.definition is not None else "described"
            event = AgentRevised(revision=entry.revision, source=entry.source, place=entry.place, **{field: kept})
            facts.append(Fact(event, now))
        times = [each for each in wake if isinstance(each, WakeEntry)]
        facts += await defined_wakes(engine, name, times, entry.source)
        addresses = [each for each in wake if isinstance(each, TriggerEntry)]
        facts += [Fact(each, now) for each in await defined_triggers(engine, name, addresses, entry.source)]
        return facts + [Fact(each, now, MAIN_THREAD) for each in await defined_workspace(engine, entry.agent)]

    async def _run_with_code(self, name: str) -> None:
        """Let an agent run that was paused for want of its code, and those that it made.

        The code is in the roster by now: an agent that is let go earlier is begun without it, and paused again.
        """
        row = await self.engine.store.runtime_agent(name)
        if row is not None and row.control == "paused" and row.cause == "configuration":
            await self._run_again(row)
            await self._resume_made()

    async def _resume_made(self, *sources: AgentSource) -> None:
        """Let agents run that were paused for want of what is here by now: those that others made, for want of their
        makers, and when a runtime begins those that were made from data, for want of a tool, say."""
        for row in await self.engine.store.held_agents():
            is_parked = (row.control, row.cause) == ("paused", "configuration") and row.source in (
                sources or ("agent",)
            )
            if is_parked and await self.has(row.agent_id):
                await self._run_again(row)

    async def _run_again(self, row: RuntimeAgentRow) -> None:
        with suppress(EventRefused):  # somebody else decided about it meanwhile
            await resume_agent(self.engine, row.agent_id, by=RUNTIME, cause="configuration", instead_of=row.changed_at)


def _is_half_made(row: RuntimeAgentRow) -> bool:
    """Was it begun to be made from data by an older version, and never given its definition? It may be made again."""
    return row.source == "api" and not row.revision


def _problem_with(entry: RosterEntry, problem: ForTheCaller) -> FileProblem:
    place, message, hint = entry.place or "", problem.message, problem.hint
    return FileProblem(place=place, agent=entry.agent.name, message=message, hint=hint)
