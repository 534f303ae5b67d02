"""Taint travels through files: what a conversation with untrusted input wrote is untrusted input to whoever reads it.

    about to be written          before a call that writes begins: everything that changes from now on (`engine.steps`)
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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wakeful.contracts.errors import InvalidConfig, ToolReported
from wakeful.contracts.events import AnyEvent, FilesTainted, ToolFailed, ToolResult
from wakeful.engine.steps import MAX_CAUSE
from wakeful.engine.trusted_files import TrustedFiles, is_guidance, whole_digest
from wakeful.engine.turn_work import TurnWork
from wakeful.gate.running_call import AfterCall
from wakeful.gate.turn_gate import Dispatch
from wakeful.ports import Store, TaintRow
from wakeful.tools.local import unified_diff
from wakeful.workspaces.changed_files import SLACK_NS, changed_at, changed_files, digest_of

READ = "wakeful/read_file"
WRITES = ("wakeful/write_file", "wakeful/edit_file", "wakeful/apply_patch")
COMMANDS = ("wakeful/exec_command", "wakeful/exec_command_batch")


def watching_files(work: TurnWork, after: AfterCall | None) -> AfterCall | None:
    """What is heard after a call, with what it did to files and what it read from tainted ones."""
    if not work.code.others and not any(tool.workspace_root is not None for tool in work.code.tools.values()):
        return after

    async def heard(dispatch: Dispatch, events: list[AnyEvent]) -> list[AnyEvent]:
        root = dispatch.tool.workspace_root
        if root is not None:
            events = await _with_taint(work, dispatch, root, events)
        return events if after is None else await after(dispatch, events)

    return heard


async def note_tainted_roots(work: TurnWork) -> None:
    """Before the first call: which folders that commands of this turn may write have tainted files."""
    roots = {root for tool in work.code.tools.values() for root in tool.write_roots}
    for root in sorted(roots):
        found = await work.place.store.tainted_files(_text(root), below=True, limit=1)
        if found:
            work.tainted_roots[root] = found[0].cause


async def _with_taint(work: TurnWork, dispatch: Dispatch, root: str, events: list[AnyEvent]) -> list[AnyEvent]:
    name, last = dispatch.declaration.name, events[-1]
    if not isinstance(last, ToolResult | ToolFailed):
        return events
    why, since = "", dispatch.taints_since
    if name == READ or (name in WRITES and isinstance(last, ToolFailed)):
        why = await _read_from(work.place.store, root, _paths(name, dispatch.arguments))
    elif name in COMMANDS:
        why = await _may_have_read(work, dispatch)
    written: list[AnyEvent] = []
    if since is not None or (why and name in COMMANDS):
        cause = work.state.exposure.untrusted or why or name
        began = since if since is not None else work.clock.now() - round(last.duration_ms * 1_000)
        for each in dispatch.tool.write_roots:
            files = await asyncio.to_thread(_changed, each, dispatch, began)
            written.append(_settled(each, cause, files, since))
    if why:
        events = [*events[:-1], last.model_copy(update={"untrusted": why[:MAX_CAUSE]})]
    return [*written, *events]


def _settled(root: str, cause: str, files: dict[str, str] | None, since: int | None) -> FilesTainted:
    """None: too many to name, and so all of them."""
    told = cause[:MAX_CAUSE]
    if files is None:
        return FilesTainted(workspace=root, cause=told, since=0, settles=since)
    return FilesTainted(workspace=root, cause=told, files=files, settles=since)


def _changed(root: str, dispatch: Dispatch, since: int) -> dict[str, str] | None:
    if dispatch.declaration.name in WRITES:
        return _written(root, dispatch)
    return changed_files(root, since * 1_000)


async def _may_have_read(work: TurnWork, dispatch: Dispatch) -> str:
    """Why what a command says is untrusted, or nothing."""
    for root in dispatch.tool.write_roots:
        found = await work.place.store.tainted_files(_text(root), below=True, limit=1)
        if found:
            work.tainted_roots[root] = found[0].cause
            what = found[0].path or "files of the workspace"
            return f"{dispatch.declaration.name}, which may have read {what} ({found[0].cause})"
    return ""


async def _read_from(store: Store, root: str, paths: Sequence[str]) -> str:
    """Why what was read is untrusted, or nothing."""
    for given in paths:
        found = await asyncio.to_thread(_found, root, given)
        if found is None:
            continue  # a skill of the user's, which lies elsewhere
        path, relative, digest = found
        rows = await store.tainted_files(_text(path), digest=digest)
        if rows or is_guidance(relative):
            why = await asyncio.to_thread(_why, rows, path, relative)
            if why:
                return why
    return ""


def _found(root: str, given: str) -> tuple[str, str, str] | None:
    """Where a path of the workspace really leads, from `/` and from the root, and the digest of what is there."""
    try:
        path = Path(root, given).resolve()
    except (OSError, ValueError):
        return None  # no path at all: nothing was read
    if not path.is_relative_to(root):
        return None
    return str(path), str(path.relative_to(root)), digest_of(str(path))


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


def _written(root: str, dispatch: Dispatch) -> dict[str, str]:
    paths = _paths(dispatch.declaration.name, dispatch.arguments)
    found = [place for path in paths if (place := _found(root, path)) is not None]
    return {relative: digest for path, relative, digest in found if Path(path).is_file()}


def _paths(name: str, arguments: dict[str, Any]) -> Sequence[str]:
    if not name.endswith("apply_patch"):
        return [str(arguments.get("path", ""))]
    try:
        return list(unified_diff.paths_of(unified_diff.parse(str(arguments.get("patch", "")))))
    except ToolReported:
        return []
