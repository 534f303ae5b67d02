"""Definitions of agents as data: from files of a home, and from the store.

A definition is kept under its hash, and that hash is the agent's revision, so that every revision can be read again. A
file that cannot be loaded harms nobody: its agent runs on with the last definition that could, and the problem is told.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from wakeful.contracts.errors import ForTheCaller
from wakeful.contracts.events.agents import AgentSource
from wakeful.engine import agent_data
from wakeful.engine.agent import Agent
from wakeful.runtime.agent_roster import RosterEntry
from wakeful.tools.tool import Tool

MEDIA_TYPE = "application/json"
SUFFIXES = (".yaml", ".yml", ".json")


class FileProblem(NamedTuple):
    """A file that is not in force."""

    place: str
    agent: str
    """The agent it is about, as far as it can be told."""
    message: str
    hint: str


def read_folder(folder: Path, tools: Sequence[Tool[Any]]) -> tuple[list[RosterEntry], list[FileProblem]]:
    """The agents of a home's files, by file name; and the files that cannot be loaded."""
    found: list[RosterEntry] = []
    problems: list[FileProblem] = []
    there = folder.iterdir() if folder.is_dir() else ()
    paths = sorted(path for path in there if path.suffix in SUFFIXES and not path.is_dir())
    for path in paths:
        name = path.stem
        try:
            data = agent_data.read(path)
            name = str(data.get("name", name))
            entry = entry_of(data, tools, "file", str(path))
            if any(other.agent.name == entry.agent.name for other in found):
                message = f"another file has an agent called {entry.agent.name!r}"
                problems.append(FileProblem(str(path), name, message, "Give each agent its own name."))
            else:
                found.append(entry)
        except ForTheCaller as problem:
            problems.append(FileProblem(str(path), name, problem.message, problem.hint))
    return found, problems


def entry_of(
    data: Mapping[str, Any], tools: Sequence[Tool[Any]], source: AgentSource, place: str | None = None
) -> RosterEntry:
    """An agent from its definition. Raises InvalidConfig or UnknownTool."""
    agent = Agent.from_dict(data, tools)
    return RosterEntry(agent, source, place, _canonical(data))


def entry_from(definition: bytes, tools: Sequence[Tool[Any]], source: AgentSource) -> RosterEntry:
    """An agent from a stored definition. Raises InvalidConfig or UnknownTool."""
    return entry_of(json.loads(definition), tools, source)


def _canonical(data: Mapping[str, Any]) -> bytes:
    """The same definition, the same bytes."""
    return json.dumps(data, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()
