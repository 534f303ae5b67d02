"""What may be asked about what an agent would be told now: its prompt, its skills, and what a skill says."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wakeful.service.operations.operation import OpenStore, Operation

if TYPE_CHECKING:
    from wakeful.contracts.skills import SkillEntry
    from wakeful.engine.agent import Agent
    from wakeful.views.prompt_report import PromptReport
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


@dataclass(frozen=True, slots=True)
class PromptOf:
    """What an agent would be told, if a turn of its own began now."""

    agent: str


async def _prompt(opened: OpenStore, asked: PromptOf) -> "PromptReport":
    from wakeful.service.queries.prompt_report import prompt_of_agent

    return await prompt_of_agent(opened.engine, await _agent(opened, asked.agent))


async def _list(opened: OpenStore, asked: SkillsOf) -> "list[SkillEntry]":
    from wakeful.service.queries.prompt_report import skills_of

    return await skills_of(opened.engine, await _agent(opened, asked.agent))


async def _show(opened: OpenStore, asked: SkillName) -> "SkillText":
    from wakeful.service.queries.prompt_report import skill_text

    return await skill_text(opened.engine, await _agent(opened, asked.agent), asked.skill)


async def _agent(opened: OpenStore, name: str) -> "Agent[Any, Any]":
    """Raises AgentNotFound before anything about its code. Without a runtime, an agent of a file is as it was last
    loaded."""
    from wakeful.service.commands.agents import agent_named
    from wakeful.service.operations.runtime_agents import supply_of

    row = await agent_named(opened.store, name)
    if opened.living is None and row.source == "file":
        return await supply_of(opened).last_loaded(row)
    return await supply_of(opened).agent(name)


LIST_SKILLS = Operation("runtime.skills", "observe", SkillsOf, "wakeful.contracts.skills.SkillEntry", _list, many=True)
SHOW_SKILL = Operation("runtime.skill", "observe", SkillName, "wakeful.views.skill_records.SkillText", _show)
PREVIEW_PROMPT = Operation("runtime.prompt", "observe", PromptOf, "wakeful.views.prompt_report.PromptReport", _prompt)
