"""`wakeful skills` and `skills show`: the skills that an agent would be told of now, and what one says."""

from typing import Annotated

import typer

from wakeful.service.operations.skills import LIST_SKILLS, SHOW_SKILL, SkillName, SkillsOf
from wakeful.surfaces.cli.agent_control import AgentArgument
from wakeful.surfaces.cli.last_list import remember
from wakeful.surfaces.cli.options import JsonOption, StoreOption, WideOption
from wakeful.surfaces.cli.places import ask, place_to_ask
from wakeful.surfaces.cli.screen import columns
from wakeful.surfaces.cli.shown_values import json_text, one_line, out, plain


def listed(agent: AgentArgument, json: JsonOption = False, wide: WideOption = False, store: StoreOption = None) -> None:
    """List the skills that an agent of the daemon would be told of now, and where each is from."""
    place = place_to_ask(store)
    found = ask(LIST_SKILLS, SkillsOf(agent), place)
    names = [each.name for each in found]
    remember("skills", names, place, names, of=agent)
    if json:
        out(json_text([each.model_dump(mode="json") for each in found], indent=2))
    elif not found:
        out("no skills")
    else:
        cells = [
            (plain(each.name), each.scope, one_line(each.description, 200), plain(each.entrypoint_path))
            for each in found
        ]
        out(columns(cells, ("SKILL", "SCOPE", "DESCRIPTION", "FILE"), wide=wide))


def show(
    agent: AgentArgument,
    skill: Annotated[str, typer.Argument(metavar="SKILL", help="The name of the skill.")],
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Print the SKILL.md of one skill."""
    found = ask(SHOW_SKILL, SkillName(agent, skill), place_to_ask(store))
    if json:
        out(json_text(found.model_dump(mode="json"), indent=2))
        return
    out([plain(line) for line in found.text.splitlines()])
    if found.is_cut:
        out(f"(cut; the whole file is {plain(found.entrypoint_path)})")
