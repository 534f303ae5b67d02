"""The skills that an agent would be told of now, and what one says. They are read from the disk, as a turn would."""

import asyncio
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from wakeful.contracts.errors import InvalidRequest
from wakeful.contracts.skills import SkillEntry
from wakeful.engine.agent import Agent
from wakeful.engine.prepare.prompt import look_around, looks_around
from wakeful.engine.run_request import Engine
from wakeful.views.skill_records import SkillText

MOST_BYTES = 100_000
"""Of a skill that is shown."""


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
    data = await asyncio.to_thread(_beginning, Path(known[name].entrypoint_path))
    text = engine.keys().hide(data[:MOST_BYTES].decode("utf-8", "replace"))
    return SkillText(**known[name].model_dump(), text=text, is_cut=len(data) > MOST_BYTES)


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MOST_BYTES + 1)
