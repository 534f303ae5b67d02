"""Checks the files of a home: `agents/*.yaml` and `wakeful.toml`. Reads them as a runtime does, and writes nothing.

Each problem has its file, its line, and what to do. A tool that no code was given for can only be warned about: whoever
runs the agents supplies it.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, TypeAlias, get_args

from wakeful.contracts.errors import ForTheCaller
from wakeful.contracts.file_problems import FileProblem, FilesReport
from wakeful.engine.agent_data import find_tool
from wakeful.engine.agent_file import read_agent_file
from wakeful.retrieval.named_collections import named_collection
from wakeful.runtime.agent_definitions import definition_files, leave_out, line_of, read_folder
from wakeful.runtime.agent_roster import RosterEntry
from wakeful.service.owner_hooks import read_hooks
from wakeful.settings.agent_homes import FOLDER
from wakeful.settings.connect_profiles import connect_profiles
from wakeful.settings.daemon import owner_drain
from wakeful.settings.file_lines import FieldPath, toml_lines, yaml_lines
from wakeful.settings.heartbeat import check_heartbeat
from wakeful.settings.model_rules import model_rules
from wakeful.settings.notify_targets import owner_targets
from wakeful.settings.owner_file import SECTIONS, OwnerFile, check_names, read_owner_file
from wakeful.settings.retention import owner_retention
from wakeful.settings.retry import owner_patience
from wakeful.settings.spend_windows import owner_windows
from wakeful.settings.store_file import default_store
from wakeful.settings.telemetry import owner_log, owner_telemetry
from wakeful.telemetry.packages import check_packages
from wakeful.tools.decorator import tool
from wakeful.tools.local.names import Profile
from wakeful.tools.local.output_budget import OutputBudget
from wakeful.tools.tool import Tool

CheckModel: TypeAlias = Callable[[str], str]
"""Looks a model up. Blank: it can be asked; else what is missing until it can. Raises ForTheCaller for none."""
CheckPart: TypeAlias = Callable[[OwnerFile], object]
"""Reads one part of the owner's file. Raises InvalidConfig with the field."""
_LINE = re.compile(r"\(at line (\d+)")
_NOTHING: Mapping[str, str] = {}


def check_agent_files(
    home: Path, tools: Sequence[Tool[Any]] | None, check_model: CheckModel
) -> tuple[list[str], list[FileProblem]]:
    """The agents whose files are right, and what is wrong. Without `tools`, every tool is taken to be there."""
    folder = home / FOLDER
    missing: list[FileProblem] = []
    given = list(tools or ())
    if tools is None:
        for name, problem in _named_tools(folder):
            missing.append(problem)
            if find_tool(name, given) is None:
                given.append(_stand_in(name))
    entries, problems = read_folder(folder, given, is_strict=True)
    for entry in entries:
        problems += _beyond(entry, check_model)
    wrong = {each.agent for each in problems if each.level == "error"}
    right = [entry.agent.name for entry in entries if entry.agent.name not in wrong]
    return right, [*problems, *missing]


def check_owner_file(path: Path, providers: CheckPart, keys: Callable[[], frozenset[str]]) -> list[FileProblem]:
    """What is wrong with an owner's file; every problem of every part."""
    try:
        text, file = path.read_text("utf-8", "replace"), read_owner_file(path)
    except ForTheCaller as problem:
        found = _LINE.search(problem.message)
        line = int(found[1]) if found is not None else None
        hint = problem.hint or "Fix the line, then check again."
        return [FileProblem(place=str(path), line=line, message=problem.message, hint=hint)]
    lines = toml_lines(text)

    def collections(part: OwnerFile) -> None:
        for name in part.table("collections"):
            named_collection(name, _NOTHING, part)

    parts: list[CheckPart] = [
        lambda part: check_names(part.data, SECTIONS, f"{path}: there is"),
        lambda part: default_store(_NOTHING, part),
        lambda part: model_rules(_NOTHING, part),
        lambda part: owner_windows(_NOTHING, part),
        lambda part: owner_retention(_NOTHING, part),
        lambda part: owner_targets(_NOTHING, part),
        lambda part: check_packages(owner_telemetry(_NOTHING, part)),
        lambda part: owner_log(_NOTHING, part),
        check_heartbeat,
        lambda part: owner_patience(_NOTHING, part),
        lambda part: owner_drain(_NOTHING, part),
        lambda part: read_hooks(part, keys),
        connect_profiles,
        lambda part: OutputBudget.from_settings(part.table("runtime"), _NOTHING),
        collections,
        providers,
    ]
    return [
        FileProblem(
            place=str(path),
            line=lines.line(problem.field),
            field=".".join(map(str, problem.field)),
            message=problem.message.removeprefix(f"{path}: "),
            hint=problem.hint,
        )
        for part in parts
        for problem in _problems_of(file, part)
    ]


def files_report(home: Path, files: Sequence[Path], agents: Sequence[str], found: Sequence[FileProblem]) -> FilesReport:
    """The whole report, by file and line."""
    valid = not any(each.level == "error" for each in found)
    ordered = sorted(found, key=lambda each: (each.place, each.line or 0))
    return FilesReport(
        home=str(home), files=tuple(map(str, files)), agents=tuple(agents), problems=tuple(ordered), valid=valid
    )


def _problems_of(file: OwnerFile, part: CheckPart) -> Iterator[ForTheCaller]:
    data: dict[str, Any] = deepcopy(dict(file.data))
    removed: dict[FieldPath, list[int]] = {}
    while True:
        try:
            part(OwnerFile(file.path, data))
        except ForTheCaller as problem:
            at = problem.field
            yield problem
            if not leave_out(data, at, removed):
                return
        else:
            return


def _beyond(entry: RosterEntry, check_model: CheckModel) -> list[FileProblem]:
    """What can be said of an agent that is right by itself: is there such a model, and may it be asked?"""
    agent, path = entry.agent, Path(entry.place or "")
    found = []
    choices: list[tuple[FieldPath, Any]] = [(("model",), agent.model), (("planning_model",), agent.planning_model)]
    choices += [(("fallbacks", place), model) for place, model in enumerate(agent.fallbacks)]
    lines = yaml_lines(path.read_text("utf-8", "replace"))
    for field, model in choices:
        if not isinstance(model, str):
            continue
        said = {"place": str(path), "line": line_of(lines, field), "agent": agent.name}
        said["field"] = ".".join(map(str, field))
        try:
            missing = check_model(model)
        except ForTheCaller as problem:
            found.append(FileProblem(message=problem.message, hint=problem.hint, **said))
        else:
            if missing:
                found.append(FileProblem(message=missing, level="warning", **said))
    return found


def _named_tools(folder: Path) -> Iterator[tuple[str, FileProblem]]:
    """Tools that files name and that somebody has to supply."""
    for path in definition_files(folder):
        try:
            file = read_agent_file(path)
        except ForTheCaller:
            continue
        named = file.data.get("tools")
        for place, name in enumerate(named if isinstance(named, list) else ()):
            if not isinstance(name, str) or name in get_args(Profile) or name.startswith("mcp."):
                continue
            yield (
                name,
                FileProblem(
                    place=str(path),
                    line=file.lines.line(("tools", place)),
                    agent=str(file.data.get("name", path.stem)),
                    field=f"tools.{place}",
                    message=f"the tool {name!r} has to be supplied by the program that runs the agent",
                    hint="To check that it is there: --tools MODULE:NAME",
                    level="warning",
                ),
            )


def _stand_in(name: str) -> Tool[Any]:
    def supplied() -> None:
        """Somebody supplies it."""

    return tool(supplied, name=name)
