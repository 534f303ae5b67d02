"""`wakeful artifacts` and `artifacts show`: the stored outputs of a turn's tools, which were too long for the model."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from wakeful.service.operations.artifacts import LIST_ARTIFACTS, SHOW_ARTIFACT, ArtifactName
from wakeful.service.operations.turns import TurnName
from wakeful.surfaces.cli.last_list import remember
from wakeful.surfaces.cli.options import JsonOption, StoreOption, TurnArgument, WideOption
from wakeful.surfaces.cli.places import ask, place_to_ask
from wakeful.surfaces.cli.problems import WrongRequest, unreadable
from wakeful.surfaces.cli.screen import columns
from wakeful.surfaces.cli.shown_values import json_text, one_line, out, plain, size

HASH = "sha256:"
SHORT = 12


def listed(
    turn: TurnArgument = None, store: StoreOption = None, json: JsonOption = False, wide: WideOption = False
) -> None:
    """List the artifacts of a turn: outputs that were too long for the model, and data that tools kept."""
    place = place_to_ask(store)
    found = ask(LIST_ARTIFACTS, TurnName(turn), place)
    remember("artifacts", [each.artifact_id for each in found], place)
    if json:
        out(json_text([each.model_dump(mode="json") for each in found], indent=2))
    elif not found:
        out("no artifacts")
    else:
        rows = [
            (
                each.artifact_id.removeprefix(HASH)[:SHORT],
                size(each.size_bytes) if each.size_bytes is not None else "-",
                each.tool or each.call_id,
                each.media_type,
                one_line(each.preview, 200),
            )
            for each in found
        ]
        out(columns(rows, ("ID", "SIZE", "TOOL", "TYPE", "BEGINS WITH"), wide=wide))
        out(["", f"print one: wakeful artifacts show {rows[0][0]}{place.flag}"])


def show(
    artifact: Annotated[str, typer.Argument(metavar="ID", help="The artifact's id, or its beginning.")],
    turn: Annotated[str | None, typer.Option("--turn", metavar="TURN", help="Look only in this turn.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the bytes to a new file.")
    ] = None,
    reveal: Annotated[bool, typer.Option("--reveal", help="Show secrets instead of [redacted].")] = False,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Print an artifact, or write it to a file. In text, secrets of the run are redacted unless you give --reveal.

    In JSON the bytes are base64, in the alphabet for URLs.
    """
    if json and output is not None:
        raise WrongRequest("--json and --output: one of the two", "leave one out")
    found = ask(SHOW_ARTIFACT, ArtifactName(artifact, turn, reveal), place_to_ask(store))
    if json:
        out(json_text(found.model_dump(mode="json"), indent=2))
    elif output is not None:
        try:
            with output.open("xb") as file:
                file.write(found.data)
        except OSError as error:
            raise unreadable(output, error, "name a file that does not exist yet") from None
        out(f"{output}: {size(len(found.data))}")
    elif found.is_text:
        text = found.text if not sys.stdout.isatty() else plain(found.text)
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
    else:
        short = found.artifact_id.removeprefix(HASH)[:SHORT]
        raise WrongRequest(
            f"{short} is not text but {found.media_type}", f"write it to a file: wakeful artifacts show {short} -o FILE"
        )
