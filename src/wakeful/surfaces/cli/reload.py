"""`wakeful reload`: have the files of a home read again by the runtime that is at work there.

The request is a fact in the store; the runtime finds it, in whatever process it is, and answers with another one.
"""

import typer

from wakeful.service.operations.runtime import RELOAD, ReloadRequest
from wakeful.surfaces.cli.file_words import problem_lines
from wakeful.surfaces.cli.options import JsonOption, StoreOption
from wakeful.surfaces.cli.places import ask, place_to_ask
from wakeful.surfaces.cli.problems import WrongRequest
from wakeful.surfaces.cli.screen import prose
from wakeful.surfaces.cli.shown_values import counted, json_text, out


def command(json: JsonOption = False, store: StoreOption = None) -> None:
    """Read agents/*.yaml and wakeful.toml again. Files with an error change nothing, and are named.

    Exit status 2: a file has an error.
    """
    report = ask(RELOAD, ReloadRequest(), place_to_ask(store))
    errors = [each for each in report.problems if each.level == "error"]
    if json:
        out(json_text(report.model_dump(mode="json"), indent=2))
    elif not report.loaded:
        prose("no runtime is at work on this store; the next one reads the files when it starts")
    else:
        out(problem_lines(report.problems))
        out(f"the files were read: {counted(len(errors), 'error') if errors else 'no errors'}")
    if errors:
        raise typer.Exit(WrongRequest.exit_code)
