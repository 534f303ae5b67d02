"""`wakeful template list|show|add`: what homes of agents are made from."""

from pathlib import Path
from typing import Annotated

import typer

from wakeful.service.operations.operation import NoRequest
from wakeful.service.operations.templates import ADD_TEMPLATE, LIST_TEMPLATES, SHOW_TEMPLATE, NewTemplate, TemplateName
from wakeful.surfaces.cli.last_list import remember
from wakeful.surfaces.cli.options import JsonOption, WideOption
from wakeful.surfaces.cli.places import THIS_MACHINE, ask, place_of_rows, place_without_store
from wakeful.surfaces.cli.problems import note
from wakeful.surfaces.cli.screen import columns
from wakeful.surfaces.cli.shown_values import json_text, one_line, out, plain


def listed(json: JsonOption = False, wide: WideOption = False) -> None:
    """List the templates that a home of an agent can be made from."""
    place = place_without_store()
    found = ask(LIST_TEMPLATES, NoRequest(), place)
    names = [each.template for each in found]
    remember("templates", names, place_of_rows(None, is_file=place.daemon is None), names)
    if json:
        out(json_text([each.model_dump(mode="json") for each in found], indent=2))
        return
    cells = [
        (plain(each.template), each.origin, ", ".join(map(plain, each.skills)) or "-", plain(each.path))
        for each in found
    ]
    out(columns(cells, ("TEMPLATE", "ORIGIN", "SKILLS", "FOLDER"), wide=wide))
    for each in found:
        if each.problem:
            note(f"{plain(each.template)} cannot be used: {one_line(each.problem, 400)}")
    out(["", f"use one: wakeful agent create NAME --model MODEL --template {found[0].template}{place.flag}"])


def show(
    template: Annotated[str, typer.Argument(metavar="TEMPLATE", help="Its id, or the path of its folder.")],
    json: JsonOption = False,
) -> None:
    """Print the instructions of a template, and the names of its skills."""
    named = _place(template)
    found = ask(SHOW_TEMPLATE, TemplateName(named), THIS_MACHINE if "/" in named else place_without_store())
    if json:
        out(json_text(found.model_dump(mode="json"), indent=2))
        return
    out([plain(line) for line in found.text.splitlines()])
    for skill in found.skills:
        note(f"skill: {plain(skill)}")


def add(
    folder: Annotated[
        str,
        typer.Argument(metavar="DIR", help="A folder with an AGENTS.md and, where it brings skills, a skills.json."),
    ],
    name: Annotated[
        str | None, typer.Option("--name", metavar="ID", help="The template's id. Default: the folder's name.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Copy a template from a folder of this machine to ~/.agents/templates. Nothing that is there is overwritten.

    Nothing is fetched from the network: clone a repository first, and name the folder in it.
    """
    path = folder if "://" in folder else str(Path(folder).expanduser().absolute())
    place = place_without_store()
    made = ask(ADD_TEMPLATE, NewTemplate(path, name), place)
    if json:
        out(json_text(made.model_dump(mode="json"), indent=2))
        return
    out(
        [
            f"template {plain(made.template)} is in {plain(made.path)}",
            f"use it: wakeful agent create NAME --model MODEL --template {plain(made.template)}{place.flag}",
        ]
    )


def _place(given: str) -> str:
    """An id as it is; a path that was typed from here, from the root."""
    is_path = "/" in given and "://" not in given
    return str(Path(given).expanduser().absolute()) if is_path else given
