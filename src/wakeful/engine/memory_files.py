"""Curated memory: `self.md` and `operator.md` of an agent's home, an entry a section, from one heading to the next.

The agent may edit them like any other file where its workspace is its home; a person may, whenever they like. So what
stands at their place may be anything: only a plain file is read and replaced there, and no link is followed.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple

from wakeful.contracts.errors import InvalidConfig, ToolReported
from wakeful.contracts.memory import OPERATOR_FILE, SELF_FILE, MemoryKind
from wakeful.workspaces import Workspace

FILES: Mapping[MemoryKind, str] = {"self": SELF_FILE, "operator": OPERATOR_FILE}
_HEADING = re.compile(r"^#{1,6}\s+(.*)$")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
"""Where a block of code begins or ends: a comment in it is no heading."""
MAX_FILE = 4_000_000
"""Bytes. A larger file is no memory, and is not changed."""


class Section(NamedTuple):
    """A stretch of a file."""

    name: str
    """Its heading, or blank before the first; a heading that is there again has its number behind it."""
    title: str
    body: str
    """The original words, with the heading."""
    begins: int
    ends: int
    """Where it stands in the file, in characters."""


def sections(text: str) -> list[Section]:
    """The sections of a file that say something, in order."""
    starts: list[tuple[int, str]] = [(0, "")]
    at = 0
    lines = text.splitlines(keepends=True)
    code = _code_lines(lines)
    for number, line in enumerate(lines):
        heading = _HEADING.match(line.rstrip("\r\n")) if number not in code else None
        if heading is not None:
            starts.append((at, heading.group(1).strip()))
        at += len(line)
    found: list[Section] = []
    names: set[str] = set()
    for (start, title), (end, _) in zip(starts, [*starts[1:], (at, "")], strict=True):
        body = text[start:end]
        said = "\n".join(line for line in body.splitlines() if _HEADING.match(line) is None)
        if not said.strip():
            continue
        name = next(each for each in _names(title) if each not in names)
        names.add(name)
        found.append(Section(name, title, body.strip("\r\n"), start, end))
    return found


def _names(title: str) -> Iterator[str]:
    """What a section with this heading may be called."""
    yield title
    yield from (f"{title} ({number})" for number in count(2))


def _code_lines(lines: Sequence[str]) -> set[int]:
    """The lines of blocks of code. A block that nobody closed is none: it would take all that follows along."""
    inside: set[int] = set()
    opened: tuple[int, str] | None = None
    for number, line in enumerate(lines):
        fence = _FENCE.match(line.rstrip("\r\n"))
        if fence is None:
            continue
        if opened is None:
            opened = (number, fence.group(1))
        elif fence.group(1).startswith(opened[1]) and not fence.group(2).strip():
            inside.update(range(opened[0], number + 1))
            opened = None
    return inside


class ReplacedText(NamedTuple):
    """A file with other words in the place of a section."""

    text: str
    name: str | None
    """What the section is called now; None: nothing of it says anything."""


class MemoryText(NamedTuple):
    """A memory file as it was read."""

    text: str = ""
    changed_at: int = 0
    """Unix microseconds."""
    problem: str = ""
    """Why it is not read, though something is there."""


def replaced(text: str, name: str, words: str) -> ReplacedText | None:
    """The file with other words in the place of a section; with none, without it. None: it has no such section.

    Words without a heading keep the one that is there.
    """
    found = next((each for each in sections(text) if each.name == name), None)
    if found is None:
        return None
    kept = words.strip("\n")
    heading = found.body.partition("\n")[0]
    if kept and _HEADING.match(heading) is not None and _HEADING.match(kept.partition("\n")[0]) is None:
        kept = f"{heading}\n{kept}"
    before, behind = text[: found.begins], text[found.ends :]
    now = before + (f"{kept}\n" + ("\n" if behind.strip() else "") if kept else "") + behind
    own = range(found.begins, found.begins + len(kept))
    return ReplacedText(now, next((each.name for each in sections(now) if each.begins in own), None))


def read_file(agent_home: Path, name: str) -> MemoryText:
    """A memory file; blank where there is none. Blocks on the disk, and on nothing else that is put there."""
    try:
        found = Workspace.of_agent(agent_home).read(name, MAX_FILE)
    except InvalidConfig:  # the agent has no home
        return MemoryText()
    except ToolReported as report:
        return MemoryText(problem="" if report.error.kind == "not_found" else report.error.message)
    return MemoryText(found.data.decode("utf-8", "replace"), found.entry.modified_ns // 1_000)


def change_section(agent_home: Path, kind: MemoryKind, name: str, words: str) -> str | None:
    """Put other words in the place of a section; none take it out. Returns what the section is called from then on,
    blank for one that was taken out; None: it is not there. Blocks on the disk.

    A crash leaves the file as it was, or as it is to be. Raises ToolReported or InvalidConfig where a plain file cannot
    be read and written there, UnicodeDecodeError for one that is no text, ValueError for words that come to no section:
    then nothing was changed.
    """
    home, path = Workspace.of_agent(agent_home), FILES[kind]
    now = replaced(home.read(path, MAX_FILE).data.decode("utf-8"), name, words)
    if now is None:
        return None
    if words and now.name is None:
        raise ValueError("a heading without text")
    home.write(path, now.text.encode(), tag="memory")
    return now.name if words and now.name is not None else ""
