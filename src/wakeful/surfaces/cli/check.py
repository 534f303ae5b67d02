"""`wakeful check`: the files of a home, before anything runs with them."""

from pathlib import Path
from typing import Annotated

import typer

from wakeful.bootstrap.homes import check_home
from wakeful.contracts.file_problems import FilesReport
from wakeful.service.code_loader import load
from wakeful.surfaces.cli.file_words import problem_lines
from wakeful.surfaces.cli.options import JsonOption, ToolsOption
from wakeful.surfaces.cli.problems import WrongRequest, note
from wakeful.surfaces.cli.shown_values import counted, json_text, out


def command(
    path: Annotated[
        Path | None, typer.Argument(metavar="HOME", help="The folder with agents/ and wakeful.toml. Default: your own.")
    ] = None,
    tools: ToolsOption = None,
    json: JsonOption = False,
) -> None:
    """Check agents/*.yaml and wakeful.toml of a home. Says file, line and remedy of each problem; writes nothing.

    Exit status 2: a file has an error. Warnings alone leave it at 0.
    """
    if path is not None and not path.is_dir():
        raise WrongRequest(f"{path} is not a folder", "name the home: the folder that has agents/ in it")
    loaded = load(tools or ())
    for line in loaded.notes:
        note(line)
    report = check_home(path, loaded.tools if tools else None)
    if json:
        out(json_text(report.model_dump(mode="json"), indent=2))
    else:
        out(_lines(report))
    if not report.valid:
        raise typer.Exit(WrongRequest.exit_code)


def _lines(report: FilesReport) -> list[str]:
    if not report.files:
        return [f"there are no files in {report.home}: agents go into agents/, settings into wakeful.toml"]
    errors = sum(each.level == "error" for each in report.problems)
    warnings = len(report.problems) - errors
    verdict = "no errors" if not errors else counted(errors, "error")
    warned = f", {counted(warnings, 'warning')}" if warnings else ""
    return [
        *problem_lines(report.problems),
        f"{counted(len(report.files), 'file')} of {report.home}: {verdict}{warned}",
    ]
