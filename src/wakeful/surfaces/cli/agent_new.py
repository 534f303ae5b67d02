"""`wakeful agent new`: the file of an agent that wakes by itself, and what comes of it."""

import os
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

import typer

from wakeful.bootstrap.homes import check_home
from wakeful.service import FORMS, NotASchedule, cron_of, local_zone, next_time
from wakeful.service.operations.runtime import RELOAD, ReloadRequest
from wakeful.service.serving.run_files import home_folder
from wakeful.service.setup_files import agent_file, agent_text, is_reachable, model_of, write_new
from wakeful.surfaces.cli.file_words import problem_lines
from wakeful.surfaces.cli.options import JsonOption
from wakeful.surfaces.cli.places import UNATTENDED, any_place, ask
from wakeful.surfaces.cli.problems import Failure, WrongRequest, note
from wakeful.surfaces.cli.shown_values import json_text, out, plain

MAIN = "main"


def command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The agent's name.")],
    say: Annotated[
        str, typer.Option("--say", metavar="TEXT", help="The agent's task: its instructions, and what a timer says.")
    ],
    at: Annotated[
        list[str] | None,
        typer.Option(
            "--at", metavar="WHEN", help='When it wakes: "weekdays 07:00", "every 2 hours", a cron line. Repeatable.'
        ),
    ] = None,
    workspace: Annotated[
        Path | None,
        typer.Option("--workspace", metavar="DIR", help="The folder it works in. Default: none, and no commands."),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="PROVIDER:MODEL", help="Default: the model of agents/main.yaml.")
    ] = None,
    timezone: Annotated[
        str | None, typer.Option("--timezone", metavar="ZONE", help="The time zone. Default: that of this machine.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Write agents/NAME.yaml, have a running daemon read it, and say when the agent wakes next and what it may do."""
    home = home_folder()
    path = agent_file(home, name)
    if not say.strip():
        raise WrongRequest("--say is empty", 'say what the agent is for: --say "Check the backups."')
    zone = timezone or local_zone()
    entries = [_entry(each, zone, say, name if len(at or ()) == 1 else "") for each in at or ()]
    folder = _folder(workspace)
    chosen = model or model_of(home, MAIN)
    if chosen is None:
        raise WrongRequest(
            f"agent {name} needs a model, and there is no agents/{MAIN}.yaml to take it from",
            "give one: --model anthropic:claude-sonnet-5, or set the home up: wakeful init",
        )
    text = agent_text(name, chosen, say, workspace=folder, wake=entries, notify=is_reachable())
    if not path.exists():
        _check(text, name)
    write_new(path, text)
    loaded = _loaded(path)
    following = min((next_time(each["cron"], zone) for each in entries), default=None)
    may = _may(folder)
    if json:
        told = {
            "agent": name,
            "file": str(path),
            "model": chosen,
            "next": following,
            "timezone": zone,
            "may": may,
            "loaded": loaded,
        }
        out(json_text(told, indent=2))
        return
    out(f"wrote {plain(str(path))}")
    if following is not None:
        out(f"next {datetime.fromtimestamp(following, ZoneInfo(zone)).strftime('%a %d %b %H:%M')} {zone}")
    out(f"may: {may}")
    if not loaded:
        out(UNATTENDED)
    elif entries:
        out(f"now: wakeful timer run {name}")
    else:
        out(f'now: wakeful send {name} "hello"')


def _entry(said: str, zone: str, say: str, name: str) -> dict[str, str]:
    try:
        cron = cron_of(said)
        next_time(cron, zone)
    except (NotASchedule, ValueError) as problem:
        forms = ", ".join(f'"{form}"' for form in FORMS)
        raise WrongRequest(f"--at {problem}", f"these work: {forms}") from None
    return {"cron": cron, "timezone": zone, "say": say} | ({"name": name} if name else {})


def _folder(given: Path | None) -> Path | None:
    if given is None:
        return None
    folder = Path(os.path.abspath(given.expanduser()))  # noqa: PTH100  (a link stays a link)
    if not folder.is_dir():
        raise WrongRequest(f"--workspace {given} is not a folder", f"mkdir -p {folder}")
    return folder


def _check(text: str, name: str) -> None:
    """As `wakeful check` would, before a daemon reads it. Raises WrongRequest for what is wrong; warnings are told."""
    with tempfile.TemporaryDirectory(prefix="wakeful-") as made:
        file = agent_file(Path(made), name)
        write_new(file, text)
        problems = check_home(Path(made)).problems
    for each in problems:
        if each.level == "error":
            raise WrongRequest(f"{each.message}; nothing was written", each.hint)
        note(f"warning: {each.message}. {each.hint}".rstrip())


def _loaded(path: Path) -> bool:
    """Have a daemon read it. Raises Failure when it says that the file is wrong."""
    place = any_place(None)
    if not Path(place.path).exists():
        return False
    report = ask(RELOAD, ReloadRequest(), place)
    wrong = [each for each in report.problems if each.place == str(path)]
    if wrong:
        raise Failure("\n".join(problem_lines(wrong)), f"the file is written; fix it: {path}")
    return report.loaded


def _may(folder: Path | None) -> str:
    if folder is None:
        return "talk; no files, no commands (give it a folder: --workspace DIR)"
    return f"read and write in {folder}, run commands in a sandbox, no network"
