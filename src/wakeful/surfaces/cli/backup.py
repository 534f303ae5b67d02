"""`wakeful backup` and `wakeful restore`: a home as one file, taken while it is in use, and back."""

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from wakeful.bootstrap.backups import back_up_home, restore_home
from wakeful.surfaces.cli.options import JsonOption
from wakeful.surfaces.cli.shown_values import counted, json_text, out, plain, size

SHOWN = 12
"""Lines of one kind that are listed."""


def backup(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="The file to write; it must not exist. Default: wakeful-DATE.tar.gz, here."
        ),
    ] = None,
    final: Annotated[
        bool,
        typer.Option(
            "--final", help="Retire this home, so that it cannot start again. For a move; stop the daemon first."
        ),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Write the home to one file: database, large contents, homes and memory of agents, agents/*.yaml, wakeful.toml.

    The daemon may run. Secrets are not in the file; they are listed by name. The file holds everything that was said,
    and only you may read it.
    """
    report = asyncio.run(back_up_home(file, final=final))
    if json:
        out(json_text(report.model_dump(mode="json"), indent=2))
        return
    held = f"{counted(len(report.agents), 'agent')}, {counted(report.files, 'file')}"
    out(f"wrote {plain(report.file)}: {size(report.size_bytes)}, {held}")
    _listed("not in the backup; put these in place after a restore:", report.secrets)
    _listed("left out:", report.left_out)
    _listed("running now, lost in a restored home:", report.running_tasks)
    _listed("damaged in this home, and in the file as it is (wakeful doctor); keep older backups:", report.damaged)
    if report.retired:
        out(f"retired {plain(report.home)}: it cannot start again")
    out(f"to restore it: WAKEFUL_HOME=NEW_FOLDER wakeful restore {plain(report.file)}")


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that wakeful backup wrote.")],
    json: JsonOption = False,
) -> None:
    """Restore a home from a backup into an empty one: $WAKEFUL_HOME, or your own. It starts paused.

    The file is checked to its end before anything is written. Restore your own backups only: a home names programs that
    are run.
    """
    report = asyncio.run(restore_home(file))
    if json:
        out(json_text(report.model_dump(mode="json"), indent=2))
        return
    taken = datetime.fromtimestamp(report.taken_at).strftime("%Y-%m-%d %H:%M")
    held = f"{counted(len(report.agents), 'agent')}, {counted(report.files, 'file')}, taken {taken}"
    out(f"restored {plain(report.home)}: {held}")
    _listed("folders that agents work in and that are not here:", report.missing_paths)
    _listed("secrets that were not in the backup:", report.missing_secrets)
    _listed("files to look at (wakeful check):", report.problems)
    _listed("commands that were running, lost; their agents are told:", report.lost_tasks)
    _listed("damaged already when the backup was taken; other agents are not affected:", report.damaged)
    out("everything is paused. When all is in place: wakeful resume --all && wakeful daemon start")


def _listed(title: str, lines: tuple[str, ...]) -> None:
    if not lines:
        return
    out(title)
    out(f"  {plain(line)}" for line in lines[:SHOWN])
    if len(lines) > SHOWN:
        out(f"  and {len(lines) - SHOWN} more: --json lists all")
