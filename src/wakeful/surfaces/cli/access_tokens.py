"""`wakeful token create|list|revoke`: who may call over the network."""

import os
from typing import Annotated

import typer

from wakeful.service.access import create_token, list_tokens, revoke_token
from wakeful.surfaces.cli.last_list import remember
from wakeful.surfaces.cli.options import JsonOption, WideOption
from wakeful.surfaces.cli.places import place_of_rows
from wakeful.surfaces.cli.screen import columns
from wakeful.surfaces.cli.shown_values import age_cell, json_text, out, plain

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The name of the token: who has it.")]


def create(
    name: NameArgument,
    scope: Annotated[
        list[str] | None,
        typer.Option("--scope", metavar="SCOPE", help="observe, operate or reveal. Repeatable."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Create a token for a caller over the network. It is shown once."""
    made = create_token(name, tuple(scope or ("operate",)), by=f"local:{os.getuid()}")
    if json:
        out(json_text(made.model_dump(mode="json"), indent=2))
    else:
        out([made.token, f"token {plain(made.name)} may {', '.join(made.scopes)}; it is not shown again"])


def listed(json: JsonOption = False, wide: WideOption = False) -> None:
    """List the tokens of callers. The tokens themselves are not kept."""
    found = list_tokens()
    names = [each.name for each in found]
    remember("tokens", names, place_of_rows(None, is_file=True), names)
    if json:
        out(json_text([each.model_dump(mode="json") for each in found], indent=2))
    elif not found:
        out("no tokens")
    else:
        cells = [(plain(each.name), ", ".join(each.scopes), age_cell(int(each.created_at * 1e6))) for each in found]
        out(columns(cells, ("NAME", "MAY", "AGE"), wide=wide))


def revoke(name: NameArgument, json: JsonOption = False) -> None:
    """Revoke a token. Requests with it are refused from now on."""
    gone = revoke_token(name)
    out(json_text(gone.model_dump(mode="json"), indent=2) if json else f"token {plain(gone.name)} is revoked")
