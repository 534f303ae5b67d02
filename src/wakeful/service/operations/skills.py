"""What may be asked about the skills of an agent: which it would be told of now, and what one says."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wakeful.service.operations.operation import OpenStore, Operation

if TYPE_CHECKING:
    from wakeful.contracts.skills import SkillEntry
    from wakeful.views.skill_records import SkillText


@dataclass(frozen=True, slots=True)
class SkillsOf:
    """The skills of an agent."""

    agent: str


@dataclass(frozen=True, slots=True)
class SkillName:
    """One skill of an agent."""

    agent: str
    skill: str


async def _list(opened: OpenStore, asked: SkillsOf) -> "list[SkillEntry]":
    from wakeful.service.operations.runtime_agents import supply_of
    from wakeful.service.queries.prompt_report import skills_of

    return await skills_of(opened.engine, await supply_of(opened).agent(asked.agent))


async def _show(opened: OpenStore, asked: SkillName) -> "SkillText":
    from wakeful.service.operations.runtime_agents import supply_of
    from wakeful.service.queries.prompt_report import skill_text

    return await skill_text(opened.engine, await supply_of(opened).agent(asked.agent), asked.skill)


LIST_SKILLS = Operation("runtime.skills", "observe", SkillsOf, "wakeful.contracts.skills.SkillEntry", _list, many=True)
SHOW_SKILL = Operation("runtime.skill", "observe", SkillName, "wakeful.views.skill_records.SkillText", _show)
