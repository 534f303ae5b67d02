"""Curated memory: `self.md` and `operator.md` of an agent's home, an entry a section, from one heading to the next.

The agent may edit them like any other file where its workspace is its home; a person may, whenever they like.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from wakeful.contracts.memory import OPERATOR_FILE, SELF_FILE, MemoryKind

FILES: Mapping[MemoryKind, str] = {"self": SELF_FILE, "operator": OPERATOR_FILE}
_HEADING = re.compile(r"^#{1,6}\s+(.*)$")
MAX_FILE = 1_000_000
"""Characters of a file that are looked at."""


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
    for line in text[:MAX_FILE].splitlines(keepends=True):
        heading = _HEADING.match(line.rstrip("\r\n"))
        if heading is not None:
            starts.append((at, heading.group(1).strip()))
        at += len(line)
    found: list[Section] = []
    seen: dict[str, int] = {}
    for (start, title), (end, _) in zip(starts, [*starts[1:], (at, "")], strict=True):
        body = text[start:end]
        said = "\n".join(line for line in body.splitlines() if _HEADING.match(line) is None)
        if not said.strip():
            continue
        seen[title] = seen.get(title, 0) + 1
        name = title if seen[title] == 1 else f"{title} ({seen[title]})"
        found.append(Section(name, title, body.strip("\r\n"), start, end))
    return found


def replaced(text: str, name: str, words: str) -> str | None:
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
    return before + (f"{kept}\n" + ("\n" if behind.strip() else "") if kept else "") + behind


def read_file(path: Path) -> tuple[str, int]:
    """A memory file and when it changed (Unix microseconds); blank where there is none. Blocks on the disk."""
    try:
        with path.open("rb") as file:
            return file.read(4 * MAX_FILE).decode("utf-8", "replace"), path.stat().st_mtime_ns // 1_000
    except OSError:
        return "", 0


def change_section(agent_home: Path, kind: MemoryKind, name: str, words: str) -> bool:
    """Put other words in the place of a section; none take it out. False: it is not there. Blocks on the disk.

    A crash leaves the file as it was, or as it is to be.
    """
    path = agent_home / FILES[kind]
    now = replaced(read_file(path)[0], name, words)
    if now is None:
        return False
    unnamed = path.with_name(f".{path.name}.new")
    with unnamed.open("w", encoding="utf-8") as file:
        file.write(now)
        file.flush()
        os.fsync(file.fileno())
    unnamed.replace(path)
    return True
