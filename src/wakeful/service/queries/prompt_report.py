"""What an agent is told: of a turn, from its log; of an agent, worked out as a turn would, with its skills. No model is
asked."""

import asyncio
import inspect
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.envelope import MAIN_THREAD
from wakeful.contracts.errors import InvalidRequest, TurnNotFound
from wakeful.contracts.events import ContextOmission, ContextResolved, TurnConfigChanged, TurnStarted
from wakeful.contracts.prompts import ExecutionRoots, InstructionSource, LoadedAgentsMd
from wakeful.contracts.skills import SkillEntry
from wakeful.decisions.prompt import STABILITY, cut
from wakeful.decisions.prompt_size import tokens
from wakeful.decisions.secret_shapes import hide_shapes
from wakeful.decisions.secret_values import keys_only
from wakeful.engine.admission import allowed
from wakeful.engine.agent import Agent
from wakeful.engine.prepare.memory import memory_of
from wakeful.engine.prepare.prompt import (
    TurnMaterial,
    around,
    look_around,
    looks_around,
    prompt_of,
    roots_of,
)
from wakeful.engine.prepare.tools import Belt, toolbelt
from wakeful.engine.prepare.turn import memory_desk_of
from wakeful.engine.prepare.work_items import projection_of
from wakeful.engine.prepare.workspace import BoundAgent, bind_agent
from wakeful.engine.run_request import Engine, RunRequest
from wakeful.engine.state_loader import load_config
from wakeful.guidance.guidance_files import AGENTS_MD
from wakeful.ports import Store, TurnRow
from wakeful.skills import read_skill
from wakeful.tools.context import RunContext
from wakeful.views.prompt_report import PromptReport, ShownBlock
from wakeful.views.skill_records import SkillText
from wakeful.workspaces import workspace_id

HINT = "Look at the file: it is listed with its path."
MOST_BYTES = 100_000
"""Of a skill that is shown."""


async def prompt_of_agent(engine: Engine, agent: Agent[Any, Any]) -> PromptReport:
    """What the agent would be told now. Of an agent of a runtime: where it works now, with its work items and its
    working memory; what its memory would be searched for is not known before there is a message."""
    keys = keys_only(engine.surroundings.secrets())
    home = engine.agent_home(agent.name)
    bound = BoundAgent(agent)
    if engine.surroundings.wakes:
        bound = await bind_agent(engine, agent, agent.name, None, ())
        agent = bound.agent
    looks = looks_around(agent, home, lives=engine.surroundings.lives)
    roots = bound.roots or roots_of(agent, home)
    found = await asyncio.to_thread(look_around, agent, home, keys.hide_keys, roots) if looks else TurnMaterial(roots)
    if engine.surroundings.wakes:
        items = await projection_of(engine.store, agent, home, agent.name, engine.clock.now())
        found = replace(found, work_items=items)
    if engine.surroundings.wakes and agent.memory:
        desk = memory_desk_of(engine, bound, agent.name)
        found = replace(found, memory=await memory_of(engine.store, desk, MAIN_THREAD, None))
    async with AsyncExitStack() as stack:
        now = engine.clock.now() / 1_000_000
        surroundings = around(engine.surroundings, found)
        belt = await toolbelt(agent, await engine.store.rules(agent.name), now, surroundings, stack)
        policy = _execution_policy(agent, belt)
    offered = [tool.name for tool in belt.offered]
    limits = allowed(engine, RunRequest(agent, ""))
    prompt = prompt_of(agent, found, None, await _instructions(agent), offered, limits.depth)
    config = TurnConfig(
        agent_name=agent.name, model_ref="", instructions=prompt.text, prompt_blocks=prompt.blocks, skills=found.skills
    )
    return PromptReport(
        agent=agent.name,
        **_folders(found.roots),
        execution_policy=policy,
        loaded_agents_md=found.guidance.sources,
        skills=found.skills,
        left_out=_left_out(found.omissions),
        blocks=_shown(config),
        system_prompt=hide_shapes(prompt.text),
    )


async def prompt_of_turn(store: Store, row: TurnRow) -> PromptReport:
    """What a turn was told. Raises TurnNotFound for one that has not begun."""
    facts = [entry.fact.event for entry in await store.read(row.agent_id, turn_id=row.turn_id)]
    begun = [event for event in facts if isinstance(event, TurnStarted | TurnConfigChanged)]
    if not begun:
        raise TurnNotFound(f"turn {row.turn_id} has not begun, so nothing was told yet", "wakeful resume takes it up")
    config = await load_config(store, begun[-1].config_ref.digest)
    context = next((event for event in reversed(facts) if isinstance(event, ContextResolved)), None)
    digests = {item.ref: item.digest for item in context.instruction_refs} if context is not None else {}
    agent_home = next((block.source for block in cut(config) if block.kind == "agent_guidance"), None)
    return PromptReport(
        agent=row.agent_name,
        turn_id=row.turn_id,
        agent_home=str(Path(agent_home).parent) if agent_home is not None else None,
        workspace_id=workspace_id(config.workspace) if config.workspace is not None else None,
        workspace_anchor=config.workspace,
        execution_root=config.workspace,
        cwd=config.workspace,
        execution_policy={"profile": config.profile, **({"sandbox": config.sandbox} if config.sandbox else {})},
        loaded_agents_md=_sources(config, digests),
        skills=config.skills,
        left_out=_left_out(context.omissions if context is not None else ()),
        blocks=_shown(config),
        system_prompt=hide_shapes(config.instructions),
    )


def _left_out(omissions: Sequence[ContextOmission]) -> tuple[str, ...]:
    return tuple(f"{each.ref}: {each.reason}{f' ({each.detail})' if each.detail else ''}" for each in omissions)


def _folders(roots: ExecutionRoots) -> dict[str, str | None]:
    return roots.model_dump(exclude={"user_home"})


def _shown(config: TurnConfig) -> tuple[ShownBlock, ...]:
    return tuple(
        ShownBlock(
            kind=block.kind,
            stability=STABILITY[block.kind],
            source=block.source,
            tokens=tokens(len(block.text)),
            text=hide_shapes(block.text),
        )
        for block in cut(config)
    )


def _sources(config: TurnConfig, digests: dict[str, str | None]) -> LoadedAgentsMd:
    found: dict[str, InstructionSource] = {}
    for block in config.prompt_blocks:
        if block.source is not None and block.kind in ("agent_guidance", "workspace_guidance"):
            scope = "agent" if block.kind == "agent_guidance" else "workspace"
            found[f"{scope}_source"] = InstructionSource.model_validate(
                {
                    "scope": scope,
                    "kind": "agents_md" if Path(block.source).name == AGENTS_MD else "claude_md",
                    "path": block.source,
                    "digest": digests.get(block.source) or block.digest,
                    "size_bytes": block.length,
                }
            )
    return LoadedAgentsMd(**found)


async def _instructions(agent: Agent[Any, Any]) -> str:
    if isinstance(agent.instructions, str):
        return agent.instructions
    if agent.needs_deps:
        return "[the instructions are made by a function that needs the run's deps]"
    told = agent.instructions(RunContext(None, agent=agent.name))
    return await told if inspect.isawaitable(told) else told


def _execution_policy(agent: Agent[Any, Any], belt: Belt) -> dict[str, Any]:
    """What holds for commands, in short."""
    said: dict[str, Any] = {"profile": agent.profile or "chat", "tools": len(belt.offered)}
    for name, tool in belt.tools.items():
        if tool.declaration.permission == "execute":
            confinement = tool.confinement({})
            if confinement is not None:
                held = confinement.model_dump(mode="json", exclude_defaults=True)
                return {**said, "tool": name, "mode": confinement.mode, "network": confinement.network, **held}
    return said


async def skills_of(engine: Engine, agent: Agent[Any, Any]) -> list[SkillEntry]:
    """By name; empty for an agent that is told of none."""
    home = engine.agent_home(agent.name)
    if not looks_around(agent, home, lives=True):
        return []
    found = await asyncio.to_thread(look_around, agent, home, engine.keys().hide)
    return sorted(found.skills, key=lambda each: (each.name, each.entrypoint_path))


async def skill_text(engine: Engine, agent: Agent[Any, Any], name: str) -> SkillText:
    """Raises InvalidRequest for one that the agent does not have."""
    known = {each.name: each for each in await skills_of(engine, agent)}
    if name not in known:
        near = get_close_matches(name, known, n=3, cutoff=0.5) or [*known][:5]
        told = f"It has: {', '.join(near)}." if near else "It has none."
        raise InvalidRequest(f"agent {agent.name!r} has no skill {name!r}", told)
    found = await asyncio.to_thread(_read, known[name], agent, engine.agent_home(agent.name))
    if not isinstance(found, bytes):
        why = found.detail or found.reason if found is not None else "it is gone"
        raise InvalidRequest(f"skill {name!r} of agent {agent.name!r} cannot be read: {why}", HINT)
    text = engine.keys().hide(found[:MOST_BYTES].decode("utf-8", "replace"))
    return SkillText(**known[name].model_dump(), text=text, is_cut=len(found) > MOST_BYTES)


def _read(skill: SkillEntry, agent: Agent[Any, Any], home: Path) -> bytes | ContextOmission | None:
    """As the catalogue was read: what became of the file since then may lead elsewhere."""
    beneath = {"workspace": agent.workspace, "agent": home}.get(skill.scope)
    return read_skill(
        Path(skill.entrypoint_path), Path(beneath if beneath is not None else skill.root), lambda file: file.data
    )
