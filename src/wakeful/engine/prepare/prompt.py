"""What a turn's requests rest on: found out once, when the turn begins, and written down as one fact.

An agent with neither a workspace nor a profile nor skills nor guidance in its home has its instructions and nothing
else; for it no file is read. A turn that goes on after a crash keeps what was read for it: files that changed meanwhile
are the next turn's, and that turn says what changed.
"""

import asyncio
import inspect
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.events import (
    ContextOmission,
)
from wakeful.contracts.prompts import ExecutionRoots
from wakeful.contracts.skills import ActiveSkill, AgentKind, SkillEntry
from wakeful.contracts.workspaces import AGENT_HOME
from wakeful.decisions.prompt import (
    AssembledPrompt,
    Guidance,
    PromptParts,
    assembled,
    own_instructions,
    root_blocks,
    taken_up,
)
from wakeful.decisions.work_items.projection import Projection
from wakeful.engine.agent import Agent
from wakeful.engine.prepare.memory import NO_MEMORY, MemoryMaterial
from wakeful.engine.prepare.tools import Belt
from wakeful.engine.prepare.work_items import NOTHING
from wakeful.engine.state_loader import FoldedTurn
from wakeful.engine.trusted_files import TrustedFiles
from wakeful.guidance import AGENTS_MD, GuidanceFile, LoadedGuidance, load_guidance
from wakeful.programs import is_below
from wakeful.settings.agent_homes import default_agent_id
from wakeful.skills import discover
from wakeful.tools.context import RunContext
from wakeful.tools.source import Surroundings
from wakeful.workspaces import workspace_id


@dataclass(frozen=True, slots=True)
class TurnMaterial:
    """What was found out for a turn before it is run."""

    roots: ExecutionRoots
    guidance: LoadedGuidance = field(default_factory=LoadedGuidance)
    skills: tuple[SkillEntry, ...] = ()
    omissions: tuple[ContextOmission, ...] = ()
    active: tuple[ActiveSkill, ...] = ()
    """Skills that earlier turns of the thread used."""
    previous: TurnConfig | None = None
    """What the thread's turn before this one was begun with."""
    compaction_id: str | None = None
    untrusted: tuple[str, ...] = ()
    """Files among them that the owner has not accepted."""
    work_items: Projection = NOTHING
    """What the turn is shown of its agent's work items."""
    looked: bool = False
    """Files were looked for: the prompt follows from more than the agent."""
    memory: MemoryMaterial = NO_MEMORY
    """What it is shown of its agent's memory."""
    took_ms: float = 0.0


class _Kept(NamedTuple):
    names: tuple[str, ...]
    """Of the tools."""
    instructions: str
    max_depth: int | None
    prompt: AssembledPrompt


_prompts: "WeakKeyDictionary[Agent[Any, Any], _Kept]" = WeakKeyDictionary()
"""Of each agent the last prompt that follows from it alone, and what it rests on."""


def roots_of(agent: Agent[Any, Any], home: Path) -> ExecutionRoots:
    """Which folder is which for an agent with this home, as things are now."""
    agent_home = str(home) if home.is_dir() else None
    anchor = str(agent.workspace) if agent.workspace is not None else agent_home
    return ExecutionRoots(
        agent_home=agent_home,
        workspace_id=(
            workspace_id(str(agent.workspace)) if agent.workspace is not None else AGENT_HOME if agent_home else None
        ),
        workspace_anchor=anchor,
        execution_root=anchor,
        cwd=anchor,
        user_home=str(Path.home()),
    )


def kind_of(agent: Agent[Any, Any]) -> AgentKind:
    """Is it the default agent, or one with a name of its own?"""
    return "default" if agent.name == default_agent_id() else "named"


def looks_around(agent: Agent[Any, Any], home: Path, *, lives: bool) -> bool:
    """Does this agent get guidance and skills at all? An agent of a runtime has what is in its home."""
    has_use = agent.workspace is not None or agent.subtasks or bool(agent.skills)
    return has_use or (lives and (home / AGENTS_MD).is_file())


async def gather(
    agent: Agent[Any, Any],
    home: Path,
    folded: FoldedTurn,
    hide: Callable[[str], str],
    roots: ExecutionRoots | None = None,
    *,
    lives: bool = False,
) -> TurnMaterial:
    """What there is for a turn. For one that was begun already nothing is read again. `roots`: where the agent works,
    when that is not what it says itself."""
    began = time.perf_counter()
    before = folded.state.config
    previous, compaction_id = folded.thread.config, folded.state.thread.compaction_id
    if before is not None:
        known = roots or ExecutionRoots(execution_root=before.workspace, cwd=before.workspace)
        return TurnMaterial(known, skills=before.skills, previous=previous, compaction_id=compaction_id)
    if not looks_around(agent, home, lives=lives):
        return TurnMaterial(ExecutionRoots(), previous=previous, compaction_id=compaction_id)
    found = await asyncio.to_thread(look_around, agent, home, hide, roots)
    return replace(
        found,
        active=tuple(folded.state.thread.skills.values()),
        previous=previous,
        compaction_id=compaction_id,
        took_ms=(time.perf_counter() - began) * 1000,
    )


def look_around(
    agent: Agent[Any, Any], home: Path, hide: Callable[[str], str], roots: ExecutionRoots | None = None
) -> TurnMaterial:
    """Read what there is for an agent now. Blocks on the disk. `hide` takes the runtime's own keys out of a text."""
    roots = roots or roots_of(agent, home)
    guidance = load_guidance(roots, hide)
    skills = discover(roots, kind_of(agent), [Path(folder) for folder in agent.skills])
    omissions = (*guidance.omissions, *skills.omissions)
    return TurnMaterial(
        roots,
        guidance,
        skills.skills,
        omissions,
        untrusted=() if agent.workspace is None else _not_accepted(roots, guidance, skills.skills),
        looked=True,
    )


def _not_accepted(roots: ExecutionRoots, guidance: LoadedGuidance, skills: Sequence[SkillEntry]) -> tuple[str, ...]:
    """What lies in the workspace came with whatever was put there. Other places are the owner's own."""
    if roots.workspace_anchor is None:
        return ()
    files = [file.source for file in (guidance.agent, guidance.workspace) if file is not None]
    found = [(file.path, file.digest) for file in files] + [(each.entrypoint_path, each.digest) for each in skills]
    anchor = os.path.realpath(roots.workspace_anchor)
    inside = [(path, digest) for path, digest in found if is_below(os.path.realpath(path), [anchor])]
    trusted = TrustedFiles()
    try:
        return tuple(path for path, digest in inside if not trusted.holds(path, digest))
    except InvalidConfig:  # what was accepted cannot be read: then nothing was
        return tuple(path for path, _ in inside)


def around(surroundings: Surroundings, found: TurnMaterial, roots: ExecutionRoots | None = None) -> Surroundings:
    """The surroundings of a turn's tools: its skills may be read, wherever they are, and commands begin in `roots`."""
    if roots is not None and roots.cwd != roots.execution_root:
        surroundings = replace(surroundings, cwd=roots.cwd)
    inside = found.roots.execution_root
    outside = tuple(
        skill.root for skill in found.skills if inside is None or not Path(skill.root).is_relative_to(inside)
    )
    return replace(surroundings, readable=outside) if outside else surroundings


async def instructions_of(
    agent: Agent[Any, Any], before: TurnConfig | None, around: Callable[[str], RunContext[Any]]
) -> str:
    """What the agent's own program says. What a function said when the turn began holds for the whole turn."""
    if isinstance(agent.instructions, str):
        return agent.instructions
    if before is not None:
        return own_instructions(before)
    told = agent.instructions(around(agent.name))
    return await told if inspect.isawaitable(told) else told


def turn_prompt(
    agent: Agent[Any, Any],
    found: TurnMaterial,
    before: TurnConfig | None,
    instructions: str,
    belt: Belt,
    max_depth: int | None,
) -> AssembledPrompt:
    """The system prompt of a turn. Where nothing but the agent has a say in it, the last one is kept with the agent."""
    is_lasting = before is None and not found.looked and not (found.work_items.text or found.memory.is_shown)
    known = _prompts.get(agent) if is_lasting else None
    rests_on = tuple(belt.tools), instructions, max_depth
    if known is None or known[:3] != rests_on:
        prompt = prompt_of(agent, found, before, instructions, rests_on[0], max_depth)
        if not is_lasting:
            return prompt
        known = _prompts[agent] = _Kept(*rests_on, prompt)
    return known.prompt


def prompt_of(
    agent: Agent[Any, Any],
    found: TurnMaterial,
    before: TurnConfig | None,
    instructions: str,
    belt: Sequence[str],
    max_depth: int | None,
) -> AssembledPrompt:
    """The system prompt of a turn."""
    parts = PromptParts(
        instructions=instructions,
        belt=belt,
        works_on_files=agent.workspace is not None or (agent.profile or "chat") != "chat",
        agent_guidance=_guidance(found.guidance.agent),
        workspace_guidance=_guidance(found.guidance.workspace),
        skills=found.skills,
        active=found.active,
        work_items=found.work_items.text,
        working_memory=found.memory.snapshot,
        memories=found.memory.recalled.text,
        long_term_memory=agent.memory,
        max_depth=max_depth,
    )
    return assembled(root_blocks(parts)) if before is None else taken_up(before, parts)


def _guidance(file: GuidanceFile | None) -> Guidance | None:
    return Guidance(file.source.path, file.text) if file is not None else None
