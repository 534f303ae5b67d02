"""`wakeful models test`: one tiny live call, and in words what came of it."""

import asyncio

import typer

from wakeful.bootstrap import try_model
from wakeful.surfaces.cli.model_words import probe_lines
from wakeful.surfaces.cli.options import JsonOption, ModelArgument, TimeoutOption
from wakeful.surfaces.cli.outcomes import FAILED
from wakeful.surfaces.cli.shown import json_text, out


def command(model: ModelArgument, timeout: TimeoutOption = None, json: JsonOption = False) -> None:
    """Ask a model for one word, once, and tell what came back, how long it took and what it cost.

    Ends with 0 when it answered, 1 when it did not, 2 when it could not even be asked (no key, no such provider).
    """
    probe = asyncio.run(try_model(model, timeout=timeout))
    out(json_text(probe.model_dump(mode="json"), indent=2) if json else probe_lines(probe))
    if not probe.ok:
        raise typer.Exit(FAILED)
