"""One command of an agent: where it runs, how it is started, and what went wrong in words an agent can act on."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from wakeful.contracts.content import BlobRef
from wakeful.contracts.errors import ToolReported
from wakeful.contracts.tools import ToolError
from wakeful.sandbox.command_process import CommandEnd
from wakeful.sandbox.command_start import SpawnFailed
from wakeful.sandbox.confinement import NotConfined, Sandbox
from wakeful.sandbox.own_code import NEW_ENVIRONMENT
from wakeful.sandbox.places import is_below
from wakeful.tools.context import RunContext
from wakeful.tools.local import denials
from wakeful.tools.local.custody_records import CustodyRecord
from wakeful.tools.local.output_budget import both_ends
from wakeful.tools.local.repository_custody import RepositoryCustody
from wakeful.tools.local.repository_history import Note

MAX_TIMEOUT_MS = 600_000
STOPPED_KIND = "command_stopped"
"""The kind of failure of a command that somebody outside its turn had ended."""
STOPPED_HINT = "see how far it came before you run it again"
_SAID_CHARS = 1_200
"""Of each stream, in the details of an error."""
_SHELLS = ("bash", "sh")
_SYSTEM_FOLDERS = ("/bin", "/usr/bin", "/usr/local/bin")


def working_directory(sandbox: Sandbox, workdir: str | None) -> str:
    """The folder a command runs in, links resolved. Raises ToolReported for one outside the workspace."""
    asked = Path(sandbox.root, workdir) if workdir else Path(sandbox.cwd)
    resolved = os.path.realpath(asked)
    if not is_below(resolved, sandbox.write_roots):
        raise ToolReported(
            ToolError(
                kind="execution_root_violation",
                message=f"workdir {workdir!r} is {resolved}, which is outside the workspace {sandbox.root}",
                details={
                    "field": "workdir",
                    "workdir": workdir,
                    "resolved": resolved,
                    "execution_root": sandbox.root,
                    "allowed_roots": list(sandbox.write_roots),
                },
                recovery_hint="leave workdir out to run in the workspace, or name a folder below it",
            )
        )
    if not Path(resolved).is_dir():
        what = "is not a folder" if Path(resolved).exists() else "does not exist"
        raise _not_spawned(sandbox, f"the workdir {resolved} {what}", workdir=workdir, field="workdir")
    return resolved


def shell_line(cmd: str, shell: str | None, login: bool) -> list[str]:
    """The program and its arguments."""
    program = shell or next((found for name in _SHELLS if (found := _in_the_system(name))), "/bin/sh")
    return [program, *(["-l"] if login else []), "-c", cmd]


class FinishedCommand(NamedTuple):
    """A command that came to its end, and what was found in repositories after it."""

    ended: CommandEnd
    notes: tuple[str, ...]


async def run_command(
    sandbox: Sandbox,
    custody: RepositoryCustody,
    ctx: RunContext[Any],
    cmd: str,
    cwd: str,
    *,
    shell: str | None,
    login: bool,
    tty: bool,
    timeout_ms: int,
) -> FinishedCommand:
    """Run it to its end. Raises ToolReported for everything but an end of its own, whatever its status."""
    line = checked_line(sandbox, cmd, shell, login)
    async with _looked_after(custody) as notes:
        with reported(sandbox, line, cwd):
            ended = await sandbox.run(
                line, cwd, timeout=timeout_ms / 1000, tty=tty, show=lambda _, text: ctx.show(text)
            )
    return await judged(sandbox, ctx, ended, notes, cwd, timeout_ms)


def checked_line(sandbox: Sandbox, cmd: str, shell: str | None, login: bool) -> list[str]:
    """The program and its arguments. Raises ToolReported for what cannot be a command."""
    if "\x00" in cmd:
        raise _not_spawned(sandbox, "the command has a NUL character in it", field="cmd")
    return shell_line(cmd, shell, login)


@contextmanager
def reported(sandbox: Sandbox, line: Sequence[str], cwd: str) -> Iterator[None]:
    """What keeps a command from beginning is told to the model."""
    try:
        yield
    except SpawnFailed as problem:
        raise _not_spawned(sandbox, str(problem), shell=line[0], workdir=cwd) from problem
    except NotConfined as problem:
        raise ToolReported(
            ToolError(
                kind="confinement_unavailable",
                message=str(problem),
                details={"level": sandbox.level.mode, "reason": sandbox.level.reason},
                recovery_hint="commands cannot run here until the owner changes this; use other tools",
            )
        ) from problem


async def judged(
    sandbox: Sandbox, ctx: RunContext[Any], ended: CommandEnd, notes: Sequence[Note], cwd: str, timeout_ms: int
) -> FinishedCommand:
    """A command that ended by itself. Raises ToolReported for every other end, and for what was undone or refused."""
    if undone := [note for note in notes if note.is_undone]:
        raise await _undone(sandbox, ctx, ended, undone, cwd)
    if ended.stopped is not None:
        raise await _stopped(sandbox, ctx, ended, timeout_ms)
    if ended.exit_status is None:
        raise await _without_status(ctx, ended)
    if ended.exit_status:
        await _tell_denial(sandbox, ctx, ended, cwd)
    return FinishedCommand(ended, tuple(note.text for note in notes))


@asynccontextmanager
async def _looked_after(custody: RepositoryCustody) -> AsyncIterator[list[Note]]:
    """Repositories are looked at before and after, whatever ends the command. What was found is there afterwards."""
    notes: list[Note] = []
    record = await look_before(custody)
    try:
        yield notes
    finally:
        notes += await look_after(custody, record)


async def look_before(custody: RepositoryCustody) -> CustodyRecord:
    try:
        return await asyncio.to_thread(custody.before)
    except OSError as problem:
        raise _not_looked_after(problem, "nothing has run; the owner has to look at this") from problem


async def look_after(custody: RepositoryCustody, record: CustodyRecord) -> list[Note]:
    """Also when nobody waits any more."""
    try:
        return await asyncio.shield(asyncio.ensure_future(asyncio.to_thread(custody.after, record)))
    except OSError as problem:
        raise _not_looked_after(problem, "the command has run; the owner has to look at this") from problem


def _not_looked_after(problem: OSError, hint: str) -> ToolReported:
    return ToolReported(
        ToolError(
            kind="repository_check_failed",
            message=f"the repositories in the workspace could not be checked: {problem}",
            details={"problem": str(problem)},
            recovery_hint=hint,
        )
    )


async def _undone(
    sandbox: Sandbox, ctx: RunContext[Any], ended: CommandEnd, notes: Sequence[Note], cwd: str
) -> ToolReported:
    return ToolReported(
        ToolError(
            kind="sandbox_violation",
            message="; ".join(note.text for note in notes)[:1_500],
            details={
                "boundary": "repository",
                "target": notes[0].path,
                "undone": [note.path for note in notes[:20]],
                "mode": sandbox.confinement(cwd).mode,
                **await _said(ctx, ended),
            },
            recovery_hint="the rest of what it did stands; ask the person you work for to change this themselves",
        )
    )


async def kept(ctx: RunContext[Any], ended: CommandEnd) -> tuple[list[BlobRef], int | None, int | None]:
    """The whole output as artifacts, and where among them each stream is."""
    found: list[BlobRef] = []
    where: list[int | None] = []
    for stream in (ended.stdout, ended.stderr):
        if stream.kept_bytes:
            where.append(len(found))
            found.append(await ctx.keep(stream.data, "text/plain; charset=utf-8"))
        else:
            where.append(None)
    return found, where[0], where[1]


async def _tell_denial(sandbox: Sandbox, ctx: RunContext[Any], ended: CommandEnd, cwd: str) -> None:
    confinement = sandbox.confinement(cwd)
    said = ended.stderr.data or ended.stdout.data
    denial = denials.told(said, confinement, sandbox.hidden, sandbox.protected, sandbox.split_folders)
    if denial is None:
        return
    what, hint = _explained(sandbox, denial)
    raise ToolReported(
        ToolError(
            kind="sandbox_violation",
            message=f"the sandbox refused the command: {what}" + (f" ({denial.target})" if denial.target else ""),
            details={
                "boundary": denial.boundary,
                "target": denial.target,
                "mode": confinement.mode,
                "write_roots": list(confinement.write_roots),
                **await _said(ctx, ended),
            },
            recovery_hint=hint,
        )
    )


def _explained(sandbox: Sandbox, denial: denials.Denial) -> tuple[str, str]:
    """What the boundary is, and what to do instead."""
    usual = "work inside the workspace, or tell the person what you need and why"
    target = denial.target or ""
    if denial.boundary == "network":
        return "it has no network", usual
    if denial.boundary == "read":
        return "this place is hidden from commands", usual
    if is_below(target, [path.rstrip("/") for path in sandbox.code]):
        return (
            "the environment and the code that wakeful itself runs from are read-only for commands",
            f"install packages into an environment of your own: {NEW_ENVIRONMENT}",
        )
    if str(Path(target).parent) in sandbox.split_folders:
        return (
            "files of the runtime lie in this folder, and on this machine commands can then make, move and remove "
            "nothing directly in it",
            "make the file with a file tool, or work in a folder below this one; the owner can put the store outside "
            "the workspace",
        )
    return "it may write in the workspace and in its temporary folder only", usual


async def _stopped(sandbox: Sandbox, ctx: RunContext[Any], ended: CommandEnd, timeout_ms: int) -> ToolReported:
    limits = sandbox.confinement(sandbox.root).process_limits
    kind, message, hint = {
        "timeout": (
            "timeout",
            f"the command did not end within {timeout_ms:,} ms and was killed with everything it had started",
            f"make it do less, or give a longer yield_time_ms, up to {MAX_TIMEOUT_MS:,}",
        ),
        "processes": (
            "resource_limit",
            f"the command had more than {limits['processes']:,} processes and threads and was killed with all of them",
            "start fewer at a time",
        ),
        "memory": (
            "resource_limit",
            f"the command used more than {limits['memory_bytes']:,} bytes of memory and was killed",
            "make it use less, for example by working on a part at a time",
        ),
        "growth": (
            "resource_limit",
            f"the folders that the command may write grew by more than {limits['growth_bytes']:,} bytes; it was killed",
            "write less, and remove what is not needed; what it wrote is still there",
        ),
        "request": (
            STOPPED_KIND,
            "everything was paused or stopped, and the command was ended with everything it had started",
            STOPPED_HINT,
        ),
    }[ended.stopped or "timeout"]
    details = {"duration_ms": round(ended.duration_ms), **await _said(ctx, ended)}
    if ended.stopped != "request":
        details = {"limit": ended.stopped, **details}
    return ToolReported(ToolError(kind=kind, message=message, details=details, recovery_hint=hint))


async def _without_status(ctx: RunContext[Any], ended: CommandEnd) -> ToolReported:
    """What holds it could not say how it ended: the sandbox was not made, or was killed."""
    said = (ended.stderr.data or ended.stdout.data).decode(errors="replace").strip().splitlines()
    return ToolReported(
        ToolError(
            kind="no_exit_status",
            message="the command ended without an exit status" + (f": {said[-1][:300]}" if said else ""),
            details={"duration_ms": round(ended.duration_ms), **await _said(ctx, ended)},
            recovery_hint="it is not known how far it came, or whether it began: look before you run it again",
        )
    )


async def _said(ctx: RunContext[Any], ended: CommandEnd) -> dict[str, Any]:
    """What a command that failed had said, short enough for an error, and where all of it is."""
    found, stdout, stderr = await kept(ctx, ended)
    return {
        "exit_status": ended.exit_status,
        "stdout_preview": both_ends(ended.stdout.data, ended.stdout.dropped_bytes, _SAID_CHARS)[0],
        "stderr_preview": both_ends(ended.stderr.data, ended.stderr.dropped_bytes, _SAID_CHARS)[0],
        "artifacts": [ref.digest for ref in found],
        "stdout_artifact": stdout,
        "stderr_artifact": stderr,
    }


def _not_spawned(sandbox: Sandbox, problem: str, **details: Any) -> ToolReported:
    return ToolReported(
        ToolError(
            kind="command_spawn_failed",
            message=f"the command did not start: {problem}",
            details={**details, "execution_root": sandbox.root, "problem": problem},
            recovery_hint="nothing has run; correct what is named here and call again",
        )
    )


def _in_the_system(name: str) -> str | None:
    """By its whole path: the first of its name on PATH may be one that the workspace brings."""
    return next((f"{folder}/{name}" for folder in _SYSTEM_FOLDERS if Path(folder, name).exists()), None)
