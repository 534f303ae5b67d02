"""What a turn's requests rest on: found out once, when the turn begins, and written down as one fact.

An agent with neither a workspace nor a profile nor skills has its instructions and nothing else; for it no file is
looked at. A turn that goes on after a crash keeps what was read for it: files that changed meanwhile are the next
turn's, and that turn says what changed.
"""

import asyncio
import hashlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.content import BlobRef
from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.events import (
    AnyEvent,
    ContextItem,
    ContextOmission,
    ContextResolved,
    MissingFact,
    SkillActivated,
    ToolResult,
)
from wakeful.contracts.prompts import ExecutionRoots
from wakeful.contracts.skills import ActiveSkill, AgentKind, SkillEntry
from wakeful.decisions.prompt import (
    AssembledPrompt,
    Guidance,
    PromptParts,
    assembled,
    changes,
    cut,
    root_blocks,
    taken_up,
)
from wakeful.decisions.prompt_size import tokens
from wakeful.decisions.skills import activated
from wakeful.engine.agent import Agent
from wakeful.engine.context_facts import history_refs, plan_ref, superseded
from wakeful.engine.state_loader import Folded
from wakeful.engine.trusted_files import TrustedFiles
from wakeful.engine.turn_work import TurnWork
from wakeful.gate.running_call import AfterCall
from wakeful.gate.turn_gate import Dispatch
from wakeful.guidance import GuidanceFile, LoadedGuidance, load_guidance
from wakeful.settings.home import home
from wakeful.skills import discover
from wakeful.tools.source import Surroundings

AGENT_HOME = "agent_home"
"""The id of the workspace of an agent that has no other."""
DEFAULT_AGENT = "main"


@dataclass(frozen=True, slots=True)
class TurnContext:
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
    took_ms: float = 0.0


def roots_of(agent: Agent[Any, Any]) -> ExecutionRoots:
    """Which folder is which for an agent, as things are now."""
    of_agent = home() / "agents" / agent.name
    agent_home = str(of_agent) if of_agent.is_dir() else None
    anchor = str(agent.workspace) if agent.workspace is not None else agent_home
    return ExecutionRoots(
        agent_home=agent_home,
        workspace_id=workspace_id(anchor) if agent.workspace is not None else AGENT_HOME if agent_home else None,
        workspace_anchor=anchor,
        execution_root=anchor,
        cwd=anchor,
        user_home=str(Path.home()),
    )


def workspace_id(anchor: str | None) -> str | None:
    """The same for the same folder, however it was named."""
    if anchor is None:
        return None
    return "ws_" + hashlib.sha256(str(Path(anchor).resolve()).encode()).hexdigest()[:16]


def kind_of(agent: Agent[Any, Any]) -> AgentKind:
    """Is it the default agent, or one with a name of its own?"""
    return "default" if agent.name == os.environ.get("WAKEFUL_AGENT_ID", DEFAULT_AGENT) else "named"


def looks_around(agent: Agent[Any, Any]) -> bool:
    """Does this agent get guidance and skills at all?"""
    return agent.workspace is not None or agent.subtasks or bool(agent.skills)


async def gather(agent: Agent[Any, Any], folded: Folded, hide: Callable[[str], str]) -> TurnContext:
    """What there is for a turn. For one that was begun already nothing is read again."""
    began = time.perf_counter()
    before = folded.state.config
    previous, compaction_id = folded.thread.config, folded.state.compaction_id
    if before is not None:
        roots = ExecutionRoots(execution_root=before.workspace, cwd=before.workspace)
        return TurnContext(roots, skills=before.skills, previous=previous, compaction_id=compaction_id)
    if not looks_around(agent):
        return TurnContext(ExecutionRoots(), previous=previous, compaction_id=compaction_id)
    found = await asyncio.to_thread(look_around, agent, hide)
    return replace(
        found,
        active=tuple(folded.state.skills.values()),
        previous=previous,
        compaction_id=compaction_id,
        took_ms=(time.perf_counter() - began) * 1000,
    )


def look_around(agent: Agent[Any, Any], hide: Callable[[str], str]) -> TurnContext:
    """Read what there is for an agent now. Blocks on the disk. `hide` takes the runtime's own keys out of a text."""
    roots = roots_of(agent)
    guidance = load_guidance(roots, hide)
    skills = discover(roots, kind_of(agent), [Path(folder) for folder in agent.skills])
    omissions = (*guidance.omissions, *skills.omissions)
    return TurnContext(
        roots, guidance, skills.skills, omissions, untrusted=_not_accepted(roots, guidance, skills.skills)
    )


def _not_accepted(roots: ExecutionRoots, guidance: LoadedGuidance, skills: Sequence[SkillEntry]) -> tuple[str, ...]:
    """What lies in the workspace came with whatever was put there. Other places are the owner's own."""
    if roots.workspace_anchor is None:
        return ()
    files = [file.source for file in (guidance.agent, guidance.workspace) if file is not None]
    found = [(file.path, file.digest) for file in files] + [(each.entrypoint_path, each.digest) for each in skills]
    anchor = Path(roots.workspace_anchor).resolve()
    inside = [(path, digest) for path, digest in found if Path(path).resolve().is_relative_to(anchor)]
    trusted = TrustedFiles()
    try:
        return tuple(path for path, digest in inside if not trusted.holds(path, digest))
    except InvalidConfig:  # what was accepted cannot be read: then nothing was
        return tuple(path for path, _ in inside)


def around(surroundings: Surroundings, found: TurnContext) -> Surroundings:
    """The surroundings of a turn's tools: its skills may be read, wherever they are."""
    inside = found.roots.execution_root
    outside = tuple(
        skill.root for skill in found.skills if inside is None or not Path(skill.root).is_relative_to(inside)
    )
    return replace(surroundings, readable=outside) if outside else surroundings


def prompt_of(
    agent: Agent[Any, Any],
    found: TurnContext,
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
        max_depth=max_depth,
    )
    return assembled(root_blocks(parts)) if before is None else taken_up(before, parts)


def _guidance(file: GuidanceFile | None) -> Guidance | None:
    return Guidance(file.source.path, file.text) if file is not None else None


# --- the fact ------------------------------------------------------------------------------------------------------


def resolved(
    work: TurnWork,
    found: TurnContext,
    config_ref: BlobRef,
    *,
    knowledge: Sequence[ContextItem] = (),
    knowledge_tokens: int = 0,
    omitted: Sequence[ContextOmission] = (),
    missing: Sequence[MissingFact] = (),
    revision: int = 1,
    before: TurnConfig | None = None,
    took_ms: float = 0.0,
) -> ContextResolved:
    """What the turn rests on. `before` is what it rested on until now; None: it begins, and follows the turn before."""
    config, row, state = work.config, work.place.row, work.state
    instructions = tuple(_instruction(block, config_ref) for block in _blocks(config))
    if state.plan is not None:  # it goes on after a crash, with the plan it has
        instructions = (*instructions, plan_ref(state.plan))
    history = history_refs(
        state.conversation.items, state.conversation.measure, found.compaction_id, f"{row.agent_id}:{row.window_from}"
    )
    folded = (superseded(found.compaction_id),) if found.compaction_id is not None else ()
    compared = before if before is not None else found.previous
    said = changes(compared.prompt_blocks, config.prompt_blocks) if compared is not None else []
    if compared is not None and not said and compared.instructions != config.instructions:
        said = ["agent instructions changed"]
    return ContextResolved(
        context_id=f"ctx_{row.turn_id}",
        revision=revision,
        knowledge_refs=tuple(knowledge),
        workspace_refs=_workspace(config, found),
        browser_refs=(ContextItem(ref=row.thread_id, kind="session"),),
        policy_facts=_policy(config, state.derived_from),
        instruction_refs=instructions,
        history_refs=history,
        omissions=(*found.omissions, *omitted, *folded),
        missing=tuple(missing),
        token_limit=config.context_window,
        tokens_used=sum(item.tokens or 0 for item in (*instructions, *history)) + knowledge_tokens,
        tokens_are_estimate=True,
        compaction_id=found.compaction_id,
        untrusted_refs=found.untrusted or (state.context.untrusted_refs if state.context is not None else ()),
        reason="; ".join(said),
        context_build_ms=round(found.took_ms + took_ms, 3),
    )


def _blocks(config: TurnConfig) -> list[tuple[str, str | None, str, int]]:
    """Of each block of the prompt: its kind, its file, its digest, its length."""
    if config.prompt_blocks:
        return [(block.kind, block.source, block.digest, block.length) for block in config.prompt_blocks]
    return [(block.kind, None, "", len(block.text)) for block in cut(config)]


def _instruction(block: tuple[str, str | None, str, int], config_ref: BlobRef) -> ContextItem:
    kind, source, digest, length = block
    return ContextItem(
        ref=source if source is not None else f"{config_ref.digest}#{kind}",
        kind="skill" if kind in ("skills", "active_skills") else "instruction",
        digest=digest or None,
        tokens=tokens(length),
        trust="workspace" if kind == "workspace_guidance" else None,
    )


def _workspace(config: TurnConfig, found: TurnContext) -> tuple[ContextItem, ...]:
    if config.workspace is None:
        return ()
    items = [ContextItem(ref=config.workspace, kind="workspace")]
    items += [ContextItem(ref=skill.entrypoint_path, kind="skill") for skill in found.skills]
    return tuple(items)


def _policy(config: TurnConfig, derived_from: str) -> tuple[ContextItem, ...]:
    """What holds for the turn's calls, by name and by digest."""
    digest = "sha256:" + hashlib.sha256(config.policy.model_dump_json(exclude_defaults=True).encode()).hexdigest()
    return (
        ContextItem(ref=f"profile:{config.profile}", kind="policy"),
        ContextItem(ref="policy:gate", kind="policy", digest=digest),
        ContextItem(ref=f"derived_from:{derived_from}", kind="policy", trust=derived_from),
    )


# --- skills in use -------------------------------------------------------------------------------------------------


def watching_skills(work: TurnWork, after: AfterCall | None) -> AfterCall | None:
    """What is heard after a call, with the skills it activated told beside its result."""
    skills = work.config.skills
    if not skills:
        return after
    said = {
        (event.load_reason, event.path)
        for entry in work.place.known()
        if isinstance(event := entry.fact.event, SkillActivated)
    }

    async def heard(dispatch: Dispatch, events: list[AnyEvent]) -> list[AnyEvent]:
        last = events[-1]
        if isinstance(last, ToolResult):
            name, arguments = dispatch.declaration.name, dispatch.arguments
            told = activated(skills, name, arguments, last, cwd=work.config.workspace, already=said)
            said.update((event.load_reason, event.path) for event in told)
            events = [*told, *events]
        return events if after is None else await after(dispatch, events)

    return heard
