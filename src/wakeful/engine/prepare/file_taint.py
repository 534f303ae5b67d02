"""Taint travels through files: what a conversation with untrusted input wrote is untrusted input to whoever reads it.

    about to be written          before a call that writes begins: all that changes from now on (`engine.call_intake`)
    written by a file tool       once the call is over: its path and digest
    changed while a command ran  the same for every file that changed since it began, in every folder it may write, or
                                 for the whole of that folder; also for a command that may have read tainted files
    read by `read_file`          a file of a recorded path or digest makes the result untrusted; so does a refusal of a
                                 file tool, which quotes the file
    read by a command            its result is untrusted as long as anything in a folder it may write is tainted

Files are found by where they are, in whatever workspace they were written. Guidance and skills inside the workspace are
untrusted until the owner accepted their digest. What the owner accepted (`wakeful trust PATH`) is never tainted. Replay
needs none of this: a result itself says that it is untrusted.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from wakeful.contracts.errors import InvalidConfig, ToolReported
from wakeful.contracts.events import AnyEvent, FilesTainted, ToolFailed, ToolResult
from wakeful.contracts.tasks import PROMOTED
from wakeful.decisions.state import TurnState
from wakeful.engine.call_intake import MAX_CAUSE
from wakeful.engine.trusted_files import TrustedFiles, is_guidance, whole_digest
from wakeful.gate.call_at_gate import CallAtGate
from wakeful.gate.turn_gate import AfterCall
from wakeful.ports import Clock, TaintedFiles, TaintRow
from wakeful.programs import is_below
from wakeful.tools.local import unified_diff
from wakeful.tools.tool import Tool
from wakeful.workspaces.changed_files import SLACK_NS, changed_at, changed_files, digest_of
from wakeful.workspaces.rooted_paths import MAX_LEVELS

READ = "wakeful/read_file"
WRITES = ("wakeful/write_file", "wakeful/edit_file", "wakeful/apply_patch")
COMMANDS = ("wakeful/exec_command", "wakeful/exec_command_batch")
TASK_OUTPUT, TASK_INPUT = "wakeful/task_output", "wakeful/task_input"


async def tainted_roots(store: TaintedFiles, tools: Iterable[Tool[Any]]) -> dict[str, str]:
    """Before the first call: which folders that commands of this turn may write have tainted files, and why."""
    noted: dict[str, str] = {}
    for root in sorted({root for tool in tools for root in tool.write_roots}):
        found = await store.tainted_files(_text(root), below=True, limit=1)
        if found:
            noted[root] = found[0].cause
    return noted


class FileTaint:
    """Looks, after each call of a turn, at what it did to files and what it read from tainted ones."""

    def __init__(
        self, store: TaintedFiles, clock: Clock, state: Callable[[], TurnState], tainted_roots: dict[str, str]
    ) -> None:
        self._store = store
        self._clock = clock
        self._state = state
        self._tainted_roots = tainted_roots
        """Of the turn: what is found here is noted in it."""

    def before(self, after: AfterCall | None) -> AfterCall:
        """What is heard after a call: this, and then whoever was heard already."""

        async def heard(at: CallAtGate, events: list[AnyEvent]) -> list[AnyEvent]:
            root = at.tool.workspace_root
            if root is not None:
                events = await self._with_taint(at, root, events)
            return events if after is None else await after(at, events)

        return heard

    async def _with_taint(self, at: CallAtGate, root: str, events: list[AnyEvent]) -> list[AnyEvent]:
        name, last = at.declaration.name, events[-1]
        if not isinstance(last, ToolResult | ToolFailed):
            return events
        why, since = "", at.taints_since
        if name == READ or (name in WRITES and isinstance(last, ToolFailed)):
            why = await why_untrusted(self._store, root, _paths(name, at.arguments))
        elif name in COMMANDS or name == TASK_OUTPUT:
            why = await self._may_have_read(at)
        written: list[AnyEvent] = []
        goes_on = name == TASK_INPUT or (isinstance(last, ToolResult) and last.details.get("disposition") == PROMOTED)
        if goes_on and since is None and why:
            now = self._clock.now() - round(last.duration_ms * 1_000)
            written = [FilesTainted(workspace=each, cause=why[:MAX_CAUSE], since=now) for each in at.tool.write_roots]
        elif not goes_on and (since is not None or (why and name in COMMANDS)):
            # Of a command that goes on, everything stays tainted that is changed from its beginning on.
            cause = self._state().thread.exposure.untrusted or why or name
            began = since if since is not None else self._clock.now() - round(last.duration_ms * 1_000)
            for each in at.tool.write_roots:
                files = await asyncio.to_thread(_changed, each, at, began)
                written.append(_settled(each, cause, files, since))
        if why:
            events = [*events[:-1], last.model_copy(update={"untrusted": why[:MAX_CAUSE]})]
        return [*written, *events]

    async def _may_have_read(self, at: CallAtGate) -> str:
        """Why what a command says is untrusted, or nothing."""
        for root in at.tool.write_roots:
            found = await self._store.tainted_files(_text(root), below=True, limit=1)
            if found:
                self._tainted_roots[root] = found[0].cause
                what = found[0].path or "files of the workspace"
                return f"{at.declaration.name}, which may have read {what} ({found[0].cause})"
        return ""


def _settled(root: str, cause: str, files: dict[str, str] | None, since: int | None) -> FilesTainted:
    """None: too many to name, and so all of them."""
    told = cause[:MAX_CAUSE]
    if files is None:
        return FilesTainted(workspace=root, cause=told, since=0, settles=since)
    return FilesTainted(workspace=root, cause=told, files=files, settles=since)


def _changed(root: str, at: CallAtGate, since: int) -> dict[str, str] | None:
    if at.declaration.name in WRITES:
        return _written(root, at)
    return changed_files(root, since * 1_000)


async def why_untrusted(store: TaintedFiles, root: str, paths: Sequence[str]) -> str:
    """Why what was read is untrusted, or nothing."""
    for given in paths:
        found = await asyncio.to_thread(_found, root, given)
        if found is None:
            continue  # a skill of the user's, which lies elsewhere
        path, relative, digest = found
        if _is_deep(path):
            return f"a file that lies too deep to be looked up: {relative}"
        rows = await store.tainted_files(_text(path), digest=digest)
        if rows or is_guidance(relative):
            why = await asyncio.to_thread(_why, rows, path, relative)
            if why:
                return why
    return ""


def _found(root: str, given: str) -> tuple[str, str, str] | None:
    """Where a path of the workspace really leads, from `/` and from the root, and the digest of what is there."""
    try:
        path = os.path.realpath(Path(root, given))
    except (OSError, ValueError):
        return None  # no path at all: nothing was read
    if not is_below(path, [root]) or (_is_deep(path) and not os.path.lexists(path)):
        return None
    return path, os.path.relpath(path, root), digest_of(path)


def _is_deep(path: str) -> bool:
    """A question about each folder on the way to it would be too long for the store."""
    return path.count("/") > MAX_LEVELS


def _text(path: str) -> str:
    """As rows have it: a name that is no text is found by its digest, or by a folder it is in."""
    return os.fsencode(path).decode("utf-8", "replace")


def _why(rows: Sequence[TaintRow], path: str, relative: str) -> str:
    tainted = next((row for row in rows if not row.since or _is_changed(row, path)), None)
    if (tainted is None and not is_guidance(relative)) or _is_accepted(path):
        return ""
    if tainted is None:
        return f"{path}, which the owner has not accepted: wakeful trust {path}"
    return f"{relative}, written after reading {tainted.cause}"


def _is_changed(row: TaintRow, path: str) -> bool:
    return changed_at(path) + SLACK_NS >= row.since * 1_000


def _is_accepted(path: str) -> bool:
    """What cannot be found out is not accepted."""
    try:
        return TrustedFiles().holds(path, whole_digest(path))
    except InvalidConfig:
        return False


def _written(root: str, at: CallAtGate) -> dict[str, str]:
    paths = _paths(at.declaration.name, at.arguments)
    found = [place for path in paths if (place := _found(root, path)) is not None]
    return {relative: digest for path, relative, digest in found if Path(path).is_file()}


def _paths(name: str, arguments: dict[str, Any]) -> Sequence[str]:
    if not name.endswith("apply_patch"):
        return [str(arguments.get("path", ""))]
    try:
        return list(unified_diff.paths_of(unified_diff.parse(str(arguments.get("patch", "")))))
    except ToolReported:
        return []
