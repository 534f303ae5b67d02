"""Definitions of agents as data: from files of a home, and from the store.

A definition is kept under its hash, and that hash is the agent's revision, so that every revision can be read again. A
file that cannot be loaded harms nobody: its agent runs on with the last definition that could, and the problem is told.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from wakeful.contracts.agent_identity import AgentSource
from wakeful.contracts.errors import ForTheCaller, InvalidConfig, inside
from wakeful.contracts.file_problems import FileProblem
from wakeful.engine.agent import Agent
from wakeful.engine.agent_checks import MISSING, NamedFolder, is_folder
from wakeful.engine.agent_file import AgentFile, read_agent_file
from wakeful.engine.named_servers import find_server
from wakeful.runtime.agent_roster import RosterEntry
from wakeful.settings.agent_homes import refuse_home
from wakeful.settings.file_lines import FieldPath, FileLines
from wakeful.settings.notify_targets import check_target
from wakeful.tools.tool import Tool

MEDIA_TYPE = "application/json"
SUFFIXES = (".yaml", ".yml", ".json")
_STAND_INS = {"name": "unnamed", "model": "scripted:demo"}
"""For fields without which nothing else could be checked."""


def definition_files(folder: Path) -> list[Path]:
    """The files in a folder that define agents, by name."""
    there = folder.iterdir() if folder.is_dir() else ()
    return sorted(path for path in there if path.suffix in SUFFIXES and not path.is_dir())


def read_folder(
    folder: Path, tools: Sequence[Tool[Any]], *, is_strict: bool = False
) -> tuple[list[RosterEntry], list[FileProblem]]:
    """The agents of a home's files, by file name; and everything that is wrong with files that cannot be loaded.

    `is_strict`: a workspace that is not there is wrong, too. A runtime waits for it.
    """
    found: list[RosterEntry] = []
    problems: list[FileProblem] = []
    for path in definition_files(folder):
        entry, wrong = read_definition(path, tools, is_strict=is_strict)
        problems += wrong
        if entry is None:
            continue
        name = entry.agent.name
        if any(other.agent.name == name for other in found):
            message = f"another file has an agent called {name!r}"
            problems.append(FileProblem(place=str(path), agent=name, message=message, hint="Rename one of them."))
        else:
            found.append(entry)
    return found, problems


def read_definition(
    path: Path, tools: Sequence[Tool[Any]], *, is_strict: bool = False
) -> tuple[RosterEntry | None, list[FileProblem]]:
    """The agent of one file of a home, or what is wrong with it."""
    name, shown = path.stem, os.fsencode(path).decode("utf-8", "backslashreplace")
    if shown != str(path):  # no fact and no list could hold it
        return None, [FileProblem(place=shown, message="the name of the file is not UTF-8 text", hint="Rename it.")]
    try:
        file = read_agent_file(path, path.parent.parent)
    except ForTheCaller as problem:
        line = problem.line if isinstance(problem, InvalidConfig) else None
        return None, [FileProblem(place=str(path), line=line, agent=name, message=problem.message, hint=problem.hint)]
    name = str(file.data.get("name", name))
    data, home = file.data if is_strict else _with_named_folder(file.data), path.parent.parent
    wrong = [_problem(file, name, *each) for each in _problems_of(data, tools, home)]
    return (None, wrong) if wrong else (entry_of(data, tools, home, "file", str(path)), [])


def entry_of(
    data: Mapping[str, Any], tools: Sequence[Tool[Any]], home: str | Path, source: AgentSource, place: str | None = None
) -> RosterEntry:
    """An agent of a home from its definition. Raises InvalidConfig or UnknownTool."""
    agent = _checked(data, tools, home)
    return RosterEntry(agent, source, place, _canonical(data))


def entry_from(definition: bytes, tools: Sequence[Tool[Any]], home: str | Path, source: AgentSource) -> RosterEntry:
    """An agent from a stored definition. Raises InvalidConfig or UnknownTool."""
    return entry_of(_with_named_folder(json.loads(definition)), tools, home, source)


def _with_named_folder(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same definition; its workspace may be missing, and a turn that needs it waits until it is back."""
    named = data.get("workspace")
    return {**data, "workspace": NamedFolder(named)} if isinstance(named, str) else data


def _checked(data: Mapping[str, Any], tools: Sequence[Tool[Any]], home: str | Path) -> Agent[Any, str]:
    """An agent whose names all lead somewhere: tools, servers, and where its notices go."""
    agent = Agent.from_dict(data, tools)
    check_target(agent.notify)
    if agent.workspace is not None:
        with inside("workspace"):
            refuse_home(agent.workspace, agent.name, home)
    is_there = agent.workspace is None or is_folder(agent.workspace)  # its mcp.json may name them: a turn looks
    for place, server in enumerate(agent.mcp) if is_there else ():
        with inside("mcp", place):
            find_server(server, agent.workspace)
    return agent


def _problems_of(
    given: Mapping[str, Any], tools: Sequence[Tool[Any]], home: Path
) -> Iterator[tuple[ForTheCaller, FieldPath]]:
    """Everything that is wrong with a definition, each with its field: it is left out to find the next."""
    data: dict[str, Any] = deepcopy(dict(given))
    removed: dict[FieldPath, list[int]] = {}
    told: set[str | int] = set()
    while True:
        try:
            _checked(data, tools, home)
        except ForTheCaller as problem:
            field = problem.field
            if field[:1] and field[0] in told and problem.message.endswith(MISSING):
                field = field[:1]  # it is missing because it was left out
            else:
                yield problem, _as_written(field, removed)
                told.update(field[:1])
            if field and field[0] in _STAND_INS:
                data[str(field[0])] = _STAND_INS[str(field[0])]
            elif not leave_out(data, field, removed):
                return
        else:
            return


def leave_out(data: dict[str, Any], field: FieldPath, removed: dict[FieldPath, list[int]]) -> bool:
    """Take a field out of a definition, of a list the whole entry; whether that was possible."""
    field = field[: next((place + 1 for place, part in enumerate(field) if isinstance(part, int)), len(field))]
    around: Any = data
    for part in field[:-1]:
        inner = around[part] if _has(around, part) else None
        if not isinstance(inner, dict | list):
            return False
        around = inner
    if not field or not _has(around, field[-1]):
        return False
    if isinstance(around, list):
        written = _as_written(field[:-1], removed)
        places = removed.setdefault(written, list(range(len(around))))
        places.pop(int(field[-1]))
    del around[field[-1]]
    return True


def _has(around: Any, part: str | int) -> bool:
    if isinstance(around, list):
        return isinstance(part, int) and part < len(around)
    return isinstance(around, dict) and part in around


def _as_written(field: FieldPath, removed: Mapping[FieldPath, list[int]]) -> FieldPath:
    """The same field, with its places in lists as the file has them."""
    found: FieldPath = ()
    for part in field:
        places = removed.get(found)
        found = (*found, places[part] if places is not None and isinstance(part, int) and part < len(places) else part)
    return found


def _problem(file: AgentFile, name: str, problem: ForTheCaller, field: FieldPath) -> FileProblem:
    line = line_of(file.lines, field)
    named = ".".join(map(str, field))
    return FileProblem(
        place=str(file.path), line=line, agent=name, field=named, message=problem.message, hint=problem.hint
    )


def line_of(lines: FileLines, field: FieldPath) -> int | None:
    """The line that a problem with a field is on. A server may be named among the tools."""
    return lines.line(field) or (lines.line(("tools",)) if field[:1] == ("mcp",) else None)


def _canonical(data: Mapping[str, Any]) -> bytes:
    """The same definition, the same bytes."""
    return json.dumps(data, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()
