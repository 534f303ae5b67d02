"""`wakeful config` and `config path`: the settings that are in force, and the file to change them in.

No command writes the owner's file: it is the owner's, with the comments in it.
"""

from difflib import get_close_matches
from typing import Annotated

import typer

from wakeful.service import settings_path
from wakeful.service.operations.operation import NoRequest
from wakeful.service.operations.settings import SHOW_SETTINGS
from wakeful.surfaces.cli.file_words import problem_lines
from wakeful.surfaces.cli.options import JsonOption, WideOption
from wakeful.surfaces.cli.places import ask, place_without_store
from wakeful.surfaces.cli.problems import WrongRequest, note
from wakeful.surfaces.cli.screen import columns
from wakeful.surfaces.cli.shown_values import counted, json_text, one_line, out, plain
from wakeful.views.settings_report import SettingRecord, SettingsReport


def show(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="One setting or one table, such as budget or log.level.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Include settings that have their default.")] = False,
    json: JsonOption = False,
    wide: WideOption = False,
) -> None:
    """Show the settings that are in force, and where each comes from: a variable, a line of wakeful.toml, a default.

    Where a daemon runs, these are the daemon's: a file that has an error, or was not read again, is not in force.
    Addresses that are secret and values of headers are hidden.
    """
    report = ask(SHOW_SETTINGS, NoRequest(), place_without_store())
    found = report.settings if name is None else _named(name, report)
    if json:
        out(json_text(report.model_copy(update={"settings": found}).model_dump(mode="json"), indent=2))
        return
    shown = [each for each in found if everything or name is not None or each.source != "default"]
    if name is None:
        out(_places(report))
    if shown:
        rows = [(plain(each.name), _value(each), _source(each)) for each in shown]
        out(columns(rows, ("SETTING", "VALUE", "FROM"), wide=wide))
    if hidden := len(found) - len(shown):
        out(f"{counted(hidden, 'setting')} with a default value: wakeful config --all")
    if report.problems:
        note("\n".join(problem_lines(report.problems)))


def path(json: JsonOption = False) -> None:
    """Print the path of wakeful.toml, whether it exists or not. wakeful check checks what you write."""
    where = settings_path()
    out(json_text({"path": str(where), "exists": where.is_file()}, indent=2) if json else str(where))


def _named(name: str, report: SettingsReport) -> tuple[SettingRecord, ...]:
    found = tuple(
        each for each in report.settings if each.name == name or each.name.startswith((f"{name}.", f"{name}["))
    )
    if not found:
        tables = [each.name.partition(".")[0] for each in report.settings]
        near = get_close_matches(name, [each.name for each in report.settings] + tables, n=1)
        hint = (
            f"did you mean {near[0]}? All of them: wakeful config --all" if near else "list them: wakeful config --all"
        )
        raise WrongRequest(f"there is no setting {name!a}", hint)
    return found


def _places(report: SettingsReport) -> list[str]:
    file = plain(report.settings_file) + ("" if report.has_file else "  (not there yet)")
    who = "the running daemon" if report.is_daemon else "a command that starts now; no daemon runs"
    lines = [f"in force for  {who}", f"home          {plain(report.home)}", f"file          {file}"]
    return [*lines, *(f"variable      {name}={plain(value)}" for name, value in report.variables.items()), ""]


def _value(setting: SettingRecord) -> str:
    value = setting.value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "-" if value in (None, "") else one_line(json_text(value), 200)


def _source(setting: SettingRecord) -> str:
    if setting.source == "environment":
        return f"${setting.variable}"
    line = f", line {setting.line}" if setting.line is not None else ""
    return "default" if setting.source == "default" else f"wakeful.toml{line}"
