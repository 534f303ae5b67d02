"""The rows of the last list of each kind, so that the next command can name one by its number: `wakeful approve 1`.

They are kept for each store in the user's state folder. A number means what the person saw; a list that is older than a
day is not believed.
"""

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wakeful.surfaces.cli.problems import WrongRequest

DAY = 86_400
SHORTEST = 6
LISTS = {
    "approvals": "wakeful approvals",
    "tasks": "wakeful task list",
    "timers": "wakeful timer list",
    "turns": "wakeful events",
    "notices": "wakeful notices",
    "dispatches": "wakeful dispatch list",
    "workflow runs": "wakeful workflow runs",
}
"""Kinds of rows, and the command that lists them."""
NAMED = ("turns", "dispatches")
"""Kinds whose rows have names of their users' own, which may be numbers: what is no row is taken as a name."""


def remember(kind: str, ids: Sequence[str], store: Path | None, taken: Sequence[str] = ()) -> None:
    """Keep the ids of a list in its order. `taken` are names that are numbers themselves. Does not raise."""
    with contextlib.suppress(OSError):
        path = _path(store)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lists = _read(path)
        lists[kind] = {"at": time.time(), "ids": [*ids], "taken": [each for each in taken if each.isdigit()]}
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(lists, file)
        fresh.replace(path)


def with_ids(kind: str, arguments: list[str]) -> list[str]:
    """The arguments with the id in place of a row number, or of the beginning of an id. Raises WrongRequest."""
    at = next((place for place, word in enumerate(arguments) if not word.startswith("-")), None)
    if at is None or (at > 0 and arguments[at - 1] == "--store"):
        return arguments
    word = arguments[at]
    known = _read(_path(_store_of(arguments))).get(kind)
    found = _row(word, kind, known) if word.isdigit() and len(word) <= 4 else _beginning(word, known)
    return [*arguments[:at], found, *arguments[at + 1 :]]


def _row(word: str, kind: str, known: dict[str, Any] | None) -> str:
    number, again = int(word), f"list them again: {LISTS[kind]}"
    if known is None or word in known["taken"]:
        if kind in NAMED:
            return word
        raise WrongRequest(f"row {word} of which list? None was shown yet", again)
    if not 1 <= number <= len(known["ids"]):
        if kind in NAMED:
            return word
        many = len(known["ids"])
        raise WrongRequest(f"the last list had {many} row{'' if many == 1 else 's'}, and {word} is none of them", again)
    if time.time() - known["at"] > DAY:
        if kind in NAMED:
            return word
        raise WrongRequest(f"the list that row {word} is of is older than a day", again)
    return str(known["ids"][number - 1])


def _beginning(word: str, known: dict[str, Any] | None) -> str:
    fitting = [each for each in (known or {"ids": ()})["ids"] if len(word) >= SHORTEST and each.startswith(word)]
    return fitting[0] if len(fitting) == 1 else word


def _store_of(arguments: list[str]) -> Path | None:
    for place, word in enumerate(arguments):
        if word == "--store" and place + 1 < len(arguments):
            return Path(arguments[place + 1])
        if word.startswith("--store="):
            return Path(word.partition("=")[2])
    return None


def _path(store: Path | None) -> Path:
    named = os.environ.get("WAKEFUL_STORE") or os.environ.get("WAKEFUL_HOME") or "home"
    where = str(store.absolute()) if store is not None else str(Path(named).absolute()) if named != "home" else named
    base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return base / "wakeful" / f"lists-{hashlib.sha256(where.encode()).hexdigest()[:16]}.json"


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text("utf-8"))
        return {
            kind: {"at": float(each["at"]), "ids": [*map(str, each["ids"])], "taken": [*map(str, each["taken"])]}
            for kind, each in found.items()
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}
