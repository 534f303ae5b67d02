"""Files that hold what a conversation with untrusted input wrote."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from wakeful.ports.tables import Condition, Match, RowQuery, Rows, Table, TableIndex


class TaintRow(NamedTuple):
    """Files that hold what a conversation with untrusted input wrote (`files.tainted`)."""

    workspace: str
    path: str
    """Below the root; with a `/` at its end a folder with all that is in it; blank: the whole workspace."""
    since: int
    """Only what was changed at this time (Unix microseconds) or later; 0: whenever."""
    digest: str
    """Of what was written; blank: whatever stands there."""
    cause: str
    agent_id: str
    turn_id: str
    at: int


_WITH_DIGEST = Condition("digest", "<>", "")
OLDEST_TAINT_FIRST = ("at", "agent_id", "path", "since", "workspace")
TAINT_OF_DIGEST = RowQuery(
    OLDEST_TAINT_FIRST, equal=("workspace", "digest"), where=_WITH_DIGEST, served_by="tainted_files_by_digest"
)
TAINT_OF_PATH = RowQuery(OLDEST_TAINT_FIRST, equal=("workspace", "path"), served_by="key")

TAINTED_FILES = Table(
    "tainted_files",
    TaintRow,
    key=("workspace", "path", "since", "agent_id"),
    indexes=(TableIndex("tainted_files_by_digest", ("workspace", "digest"), where=_WITH_DIGEST),),
    queries=(TAINT_OF_DIGEST, TAINT_OF_PATH),
    order=("agent_id", "workspace", "path", "since", "digest", "cause", "turn_id", "at"),
)


class TaintedFiles(Rows, Protocol):
    """Reads which files are tainted."""

    async def tainted_files(
        self, place: str, *, digest: str = "", below: bool = False, limit: int | None = None
    ) -> list[TaintRow]:
        """What holds for the file or folder at an absolute path, whichever workspace it was written in: by its path, by
        a folder above it, or by its digest in a workspace around it. With `below`, also for anything in it. Oldest
        first.
        """
        return await self.find_rows(
            TAINTED_FILES, _matches(place, digest, below), order=OLDEST_TAINT_FIRST, limit=limit
        )


def _matches(place: str, digest: str, below: bool) -> list[Match]:
    around = _workspaces_around(place)
    found: list[Match] = []
    if digest:
        wanted = {"workspace": [workspace for workspace, _ in around], "digest": [digest]}
        found.append(Match(wanted, where=_WITH_DIGEST, served_by="tainted_files_by_digest"))
    for workspace, paths in around:
        found.append(Match({"workspace": [workspace], "path": paths}))
        if below:
            inside = ("path", f"{paths[0]}/", _after_all_below(paths[0])) if paths[0] else None
            found.append(Match({"workspace": [workspace]}, inside))
    if below:
        root = place.rstrip("/")
        found.append(Match({}, ("workspace", f"{root}/", _after_all_below(root))))
    return found


def _after_all_below(folder: str) -> str:
    """The first name after everything in a folder: the character after "/" is "0"."""
    return f"{folder}0"


def _workspaces_around(place: str) -> list[tuple[str, Sequence[str]]]:
    """Every folder that the place lies in, itself included, as a workspace; and how rows of that workspace would name
    the place: its path first, then the folders on the way there."""
    parts = [part for part in place.split("/") if part]
    found: list[tuple[str, Sequence[str]]] = []
    for count in range(len(parts), -1, -1):
        within = parts[count:]
        above = [f"{'/'.join(within[:depth])}/" for depth in range(len(within), 0, -1)]
        found.append((f"/{'/'.join(parts[:count])}", ["/".join(within), *above, *([""] if within else [])]))
    return found
