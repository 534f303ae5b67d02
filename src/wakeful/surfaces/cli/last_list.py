"""The rows of the last list of each kind, so that the next command can name one by its number: `wakeful approve 1`.

They are kept for each place that was asked, a store or a daemon elsewhere, in the user's state folder. A number means
what the person saw there; a list that is older than a day is not believed.
"""

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from wakeful.surfaces.cli.places import StoreAddress
from wakeful.surfaces.cli.problems import WrongRequest
from wakeful.views.presentation.plain_text import short

DAY = 86_400
DIGITS = 4
"""A number with more of them is no row; one with as many may be the beginning of an id."""
LISTS = {
    "approvals": "wakeful approvals",
    "artifacts": "wakeful artifacts",
    "calls": "wakeful unknown",
    "channels": "wakeful channel list",
    "dispatches": "wakeful dispatch list",
    "memory entries": "wakeful memory list AGENT",
    "notices": "wakeful notices",
    "requests": "wakeful requests",
    "revisions": "wakeful agent history AGENT",
    "rules": "wakeful approvals rules",
    "skills": "wakeful skills AGENT",
    "tasks": "wakeful task list",
    "templates": "wakeful template list",
    "timers": "wakeful timer list",
    "tokens": "wakeful token list",
    "triggers": "wakeful trigger list",
    "turns": "wakeful events",
    "workflow runs": "wakeful workflow runs",
    "workflows": "wakeful workflow list",
    "workspaces": "wakeful workspace list AGENT",
    "worktrees": "wakeful workspace list AGENT",
}
"""Kinds of rows, and the command that lists them. With AGENT: the rows are one agent's."""
NAMED = ("channels", "dispatches", "skills", "templates", "tokens", "triggers", "turns", "workflows")
"""Kinds whose rows have names of their users' own, which may be numbers: what is no row is taken as a name."""


class _List(NamedTuple):
    """A list as it was shown."""

    at: float
    ids: list[str]
    taken: list[str]
    of: str
    cut: list[str]
    """Ids of rows that stand for something that was not shown whole."""


def remember(
    kind: str,
    ids: Sequence[str],
    place: StoreAddress,
    taken: Sequence[str] = (),
    *,
    of: str = "",
    cut: Sequence[str] = (),
) -> None:
    """Keep the ids of a list in its order. `taken` are names that may be numbers themselves; `of` is the agent whose
    rows they are; `cut` are rows of which only a part is shown now. Does not raise."""
    before = _read(_path(place)).get(kind)
    seen = set() if before is None else set(before.ids) - set(before.cut)
    unseen = [each for each in cut if each not in seen]
    _keep(kind, _List(time.time(), [*ids], [each for each in taken if each.isdigit()], of, unseen), place)


def remember_shown(kind: str, row: str, place: StoreAddress) -> None:
    """The call that was cut in the last list has been shown whole since. Does not raise."""
    known = _read(_path(place)).get(kind)
    if known is not None and row in known.cut:
        _keep(kind, known._replace(cut=[each for each in known.cut if each != row]), place)


def _keep(kind: str, shown: _List, place: StoreAddress) -> None:
    with contextlib.suppress(OSError):
        path = _path(place)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lists = {name: each._asdict() for name, each in {**_read(path), kind: shown}.items()}
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(lists, file)
        fresh.replace(path)


def is_number(word: Any) -> bool:
    """May it be the number of a row?"""
    return isinstance(word, str) and word.isascii() and word.isdigit() and len(word) <= DIGITS


def id_of(word: str, kinds: Sequence[str], place: StoreAddress, *, agent: str = "", must_be_shown: bool = False) -> str:
    """The id in the row with this number, of the newest list of these kinds; else the word itself, where it may be a
    name or the beginning of an id. With `must_be_shown`, a row is refused that was cut. Raises WrongRequest."""
    lists = _read(_path(place))
    shown = max((lists[kind] for kind in kinds if kind in lists), key=lambda each: each.at, default=None)
    if shown is not None and word in shown.taken:
        return word
    problem = _problem(word, shown, agent if LISTS[kinds[0]].endswith(" AGENT") else "")
    if not problem and shown is not None:
        found = shown.ids[int(word) - 1]
        if must_be_shown and found in shown.cut:
            raise WrongRequest(
                f"the call of row {word} was not shown whole",
                f"see it first: {LISTS[kinds[0]]} show {short(found)}{place.flag}",
            )
        return found
    if len(word) == DIGITS or any(kind in NAMED for kind in kinds):
        return word
    listing = LISTS[kinds[0]].replace("AGENT", agent)
    raise WrongRequest(problem, f"list them again: {listing}")


def _problem(word: str, shown: _List | None, agent: str) -> str:
    if shown is None:
        return f"row {word} of which list? No list was shown yet"
    if agent and shown.of != agent:
        return f"row {word} of which list? The last one was about agent {shown.of}"
    if not shown.ids:
        return f"the last list was empty, and {word} is no row of it"
    if not 1 <= int(word) <= len(shown.ids):
        many = len(shown.ids)
        return f"there is no row {word}: the last list had {many} row{'' if many == 1 else 's'}"
    if time.time() - shown.at > DAY:
        return f"the list that row {word} is of is older than a day"
    return ""


def _path(place: StoreAddress) -> Path:
    where = place.daemon.where if place.daemon is not None and place.is_far else os.path.realpath(place.path)
    base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return base / "wakeful" / f"lists-{hashlib.sha256(where.encode()).hexdigest()[:16]}.json"


def _read(path: Path) -> Mapping[str, _List]:
    try:
        return {
            kind: _List(
                float(each["at"]),
                [*map(str, each["ids"])],
                [*map(str, each["taken"])],
                str(each["of"]),
                [*map(str, each["cut"])],
            )
            for kind, each in json.loads(path.read_text("utf-8")).items()
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}
