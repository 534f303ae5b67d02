"""One command of an agent: where it runs, how it is started, and what went wrong in words an agent can act on."""

import os
from pathlib import Path
from typing import Any

from wakeful.contracts.content import BlobRef
from wakeful.contracts.errors import ToolReported
from wakeful.contracts.tools import ToolError
from wakeful.sandbox.confined import NotConfined, Sandbox
from wakeful.sandbox.places import is_below
from wakeful.sandbox.running import Ended, SpawnFailed
from wakeful.tools.context import RunContext
from wakeful.tools.local import denials
from wakeful.tools.local.output_budget import both_ends

MAX_TIMEOUT_MS = 600_000
_SAID_CHARS = 1_200
"""Of each stream, in the details of an error."""
_SHELLS = ("bash", "sh")


def working_directory(sandbox: Sandbox, workdir: str | None) -> str:
    """The folder a command runs in, links resolved. Raises ToolReported for one outside the workspace."""
    asked = Path(sandbox.root, workdir or ".")
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
    program = shell or next((name for name in _SHELLS if _on_usual_path(name)), "sh")
    return [program, *(["-l"] if login else []), "-c", cmd]


async def run_command(
    sandbox: Sandbox,
    ctx: RunContext[Any],
    cmd: str,
    cwd: str,
    *,
    shell: str | None,
    login: bool,
    tty: bool,
    timeout_ms: int,
) -> Ended:
    """Run it to its end. Raises ToolReported for everything but an end of its own, whatever its status."""
    line = shell_line(cmd, shell, login)
    if "\x00" in cmd:
        raise _not_spawned(sandbox, "the command has a NUL character in it", field="cmd")
    try:
        ended = await sandbox.run(line, cwd, timeout=timeout_ms / 1000, tty=tty, show=lambda _, text: ctx.show(text))
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
    if ended.stopped is not None:
        raise await _stopped(sandbox, ctx, ended, timeout_ms)
    if ended.exit_status:
        await _tell_denial(sandbox, ctx, ended, cwd)
    return ended


async def kept(ctx: RunContext[Any], ended: Ended) -> tuple[list[BlobRef], int | None, int | None]:
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


async def _tell_denial(sandbox: Sandbox, ctx: RunContext[Any], ended: Ended, cwd: str) -> None:
    confinement = sandbox.confinement(cwd)
    said = ended.stderr.data or ended.stdout.data
    denial = denials.told(said, confinement, sandbox.hidden)
    if denial is None:
        return
    what = {
        "write": "it may write in the workspace and in its temporary folder only",
        "read": "this place is hidden from commands",
        "network": "it has no network",
    }[denial.boundary]
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
            recovery_hint="work inside the workspace, or tell the person what you need and why",
        )
    )


async def _stopped(sandbox: Sandbox, ctx: RunContext[Any], ended: Ended, timeout_ms: int) -> ToolReported:
    limits = sandbox.confinement(sandbox.root).process_limits
    kind, message, hint = {
        "timeout": (
            "timeout",
            f"the command did not end within {timeout_ms:,} ms and was killed with everything it had started",
            f"make it do less, or give a longer timeout_ms, up to {MAX_TIMEOUT_MS:,}",
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
    }[ended.stopped or "timeout"]
    details = {"limit": ended.stopped, "duration_ms": round(ended.duration_ms), **await _said(ctx, ended)}
    return ToolReported(ToolError(kind=kind, message=message, details=details, recovery_hint=hint))


async def _said(ctx: RunContext[Any], ended: Ended) -> dict[str, Any]:
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


def _on_usual_path(name: str) -> bool:
    return any(Path(folder, name).exists() for folder in ("/bin", "/usr/bin", "/usr/local/bin"))
