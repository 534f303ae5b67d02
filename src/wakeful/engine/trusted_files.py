"""Files that the owner accepted as their own words: by path and digest, in one file of the home.

Guidance (`AGENTS.md`, `CLAUDE.md`) and skills inside a workspace come with whatever was cloned or unpacked there. They
are untrusted input until the owner accepts them as they are; a change of content has to be accepted again. The same
goes for `mcp.json` of a workspace, which names programs to start. Accepting a file also lifts its taint.
"""

import hashlib
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.values import Value
from wakeful.settings.home import home
from wakeful.skills.discovery import SKILL_MD
from wakeful.skills.roots import PLACES
from wakeful.tools.mcp.files import locked, read_json, write_json
from wakeful.workspaces.protection import TRUSTED_FILE
from wakeful.workspaces.rooted_paths import open_plain

VERSION = 1
GUIDANCE = ("AGENTS.md", "CLAUDE.md")
SERVER_FILES = ("mcp.json", ".mcp.json")
"""Files of a workspace that name MCP servers."""
MOST_FILES = 1_000
"""Of one skill, or of one call."""


class AcceptedFile(Value):
    """A file that the owner accepted."""

    path: str
    """By real path."""
    digest: str
    accepted_at: str


class TrustedFiles:
    """What this user accepted. Any number of processes share the file."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path if path is not None else home() / TRUSTED_FILE

    def holds(self, path: str, digest: str) -> bool:
        """Was the file accepted as it is? Raises InvalidConfig when what was accepted cannot be read."""
        known = self._read().get(os.path.realpath(path))
        return known is not None and known["digest"] == digest != ""

    def all(self) -> list[AcceptedFile]:
        """Everything that was accepted, by path."""
        return [AcceptedFile(path=path, **known) for path, known in sorted(self._read().items())]

    def accept(self, given: Path) -> list[AcceptedFile]:
        """Accept a file; of a folder, its guidance, skills and `mcp.json`. Raises InvalidConfig where there is none."""
        paths = list(_accepted_by(given))
        if not paths:
            raise InvalidConfig(
                f"{given} has no {', '.join(GUIDANCE)}, skills or {SERVER_FILES[0]}", "Name the file that you trust."
            )
        if len(paths) > MOST_FILES:
            raise InvalidConfig(f"{given} has more than {MOST_FILES:,} files to accept", "name a smaller folder")
        now = datetime.now(UTC).isoformat(timespec="seconds")
        accepted = [
            AcceptedFile(path=os.path.realpath(path), digest=whole_digest(path), accepted_at=now) for path in paths
        ]
        with locked(self.path):
            files = self._read()
            files.update({each.path: each.model_dump(exclude={"path"}) for each in accepted})
            write_json(self.path, {"version": VERSION, "files": files})
        return accepted

    def _read(self) -> dict[str, Any]:
        data = read_json(self.path) or {"version": VERSION, "files": {}}
        files = data.get("files")
        if data.get("version") != VERSION or not isinstance(files, dict):
            raise InvalidConfig(f"{self.path} is not of this version", "repair the file, or move it away")
        return files


def whole_digest(path: Path | str) -> str:
    """Of all that stands in the file. Raises InvalidConfig."""
    try:
        with open_plain(path) as file:
            return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InvalidConfig(f"{path} cannot be read: {error.strerror}", "Name a file or a folder.") from None


def _accepted_by(given: Path) -> Iterator[Path]:
    if not given.is_dir():
        yield given
        return
    if (given / SKILL_MD).is_file():
        yield from _files(given)
        return
    yield from (path for name in (*GUIDANCE, *SERVER_FILES) if (path := given / name).is_file())
    for place in PLACES["workspace"]:
        yield from _files(given / place)


def _files(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        yield from (path for name in sorted(names) if (path := Path(parent) / name).is_file())


def is_guidance(relative: str) -> bool:
    """Is a path below a workspace one that tells agents what to do?"""
    return Path(relative).name in GUIDANCE or any(f"/{place}/" in f"/{relative}" for place in PLACES["workspace"])
