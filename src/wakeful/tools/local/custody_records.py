"""What repositories were before a command, as a value and as a file.

A command that goes on as a task may outlive the runtime that looked before it. So the picture is written into the
folder of the task, where no command reaches, and whoever takes the task up compares with that one: what stands there
after a restart may be the work of the command.
"""

import base64
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wakeful.sandbox.repositories import Repository
from wakeful.tools.local.held_files import HeldContent
from wakeful.tools.local.repository_copy import RepositoryCopy
from wakeful.tools.local.repository_history import Note

FILE = "repositories.json"


@dataclass(slots=True, eq=False)
class RepositoryBefore:
    """One repository before a command."""

    repository: Repository
    areas: tuple[str, ...]
    """Files and folders that are held."""
    held: dict[str, HeldContent]
    tips: dict[str, str]
    """What its references named; empty for a repository that commands made."""
    copy: RepositoryCopy | None

    @property
    def key(self) -> str:
        return key_of(self.repository)


@dataclass(slots=True, eq=False, weakref_slot=True)
class CustodyRecord:
    """Everything that was there before a command."""

    repositories: dict[str, RepositoryBefore] = field(default_factory=dict)
    links: frozenset[str] = frozenset()
    notes: list[Note] = field(default_factory=list)
    is_whole: bool = True
    """False where there were too many folders to look through."""


def key_of(repository: Repository) -> str:
    return repository.link or repository.git


def write_record(record: CustodyRecord, folder: str | Path) -> None:
    """Keep it in the folder of a task: whole or not at all. Copies of histories are not in it. Raises OSError."""
    file = Path(folder, FILE)
    beside = file.with_suffix(".tmp")
    with beside.open("w", encoding="ascii") as written:
        json.dump(_as_dict(record), written)
        written.flush()
        os.fsync(written.fileno())
    beside.replace(file)


def read_record(folder: str | Path) -> CustodyRecord | None:
    """The one of a task; None where none was kept. Raises OSError, also for one that is damaged."""
    try:
        found = json.loads(Path(folder, FILE).read_text("ascii"))
        return _from_dict(found)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as problem:
        raise OSError(f"{folder}/{FILE} is damaged: {problem}") from problem


def forget_record(folder: str | Path) -> None:
    Path(folder, FILE).unlink(missing_ok=True)


def _as_dict(record: CustodyRecord) -> dict[str, Any]:
    return {
        "links": sorted(record.links),
        "is_whole": record.is_whole,
        "repositories": [
            {
                "git": before.repository.git,
                "folder": before.repository.folder,
                "link": before.repository.link,
                "areas": before.areas,
                "tips": before.tips,
                "held": {
                    path: [base64.b64encode(content.data).decode(), content.mode, content.is_link, content.is_whole]
                    for path, content in before.held.items()
                },
            }
            for before in record.repositories.values()
        ],
    }


def _from_dict(found: dict[str, Any]) -> CustodyRecord:
    record = CustodyRecord(links=frozenset(found["links"]), is_whole=found["is_whole"])
    for each in found["repositories"]:
        repository = Repository(each["git"], each["folder"], each["link"])
        held = {
            path: HeldContent(base64.b64decode(data), mode, is_link, is_whole)
            for path, (data, mode, is_link, is_whole) in each["held"].items()
        }
        before = RepositoryBefore(repository, tuple(each["areas"]), held, each["tips"], None)
        record.repositories[before.key] = before
    return record
