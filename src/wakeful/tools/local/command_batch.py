"""`wakeful/exec_command_batch`: several short commands, one after the other, with one receipt.

Nothing but plain commands: no terminal, no input, nothing in the background. What goes wrong with one of them is that
item's own failure, and the others have theirs. The model reads a text in which only our own lines begin at the margin;
the whole record of each item is beside it.
"""

import asyncio
import time
from collections.abc import Coroutine
from contextlib import nullcontext
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from wakeful.contracts.errors import ToolReported
from wakeful.contracts.tools import Confinement, ToolError
from wakeful.ports.tasks import TaskBoard
from wakeful.sandbox.confinement import Sandbox
from wakeful.tools import schema
from wakeful.tools.call_runner import CallHandle, begin
from wakeful.tools.context import RunContext
from wakeful.tools.local import command_runs
from wakeful.tools.local.commands import Milliseconds, Tokens, Words, declared
from wakeful.tools.local.output_budget import OutputBudget, both_ends, share
from wakeful.tools.local.repository_custody import RepositoryCustody, custody_of
from wakeful.tools.results import MAX_SHOWN_BYTES, ToolOutput
from wakeful.tools.tool import DeclaredTool

NAME = "wakeful/exec_command_batch"
MOST_ITEMS = 12
DEFAULT_ITEM_MS = 60_000
_LINES_BYTES = 400
"""What the lines around an item need."""

Status = Literal["completed", "failed", "rejected", "skipped"]


class BatchItem(TypedDict):
    """One command of a batch."""

    cmd: Words
    workdir: NotRequired[Annotated[str | None, Field(description="As in exec_command.")]]
    shell: NotRequired[Annotated[str | None, Field(description="As in exec_command.")]]
    login: NotRequired[Annotated[bool, Field(description="Start it as a login shell; false when left out.")]]
    yield_time_ms: NotRequired[
        Annotated[Milliseconds, Field(description=f"It is killed after this time; {DEFAULT_ITEM_MS} when left out.")]
    ]
    max_output_tokens: NotRequired[Tokens | None]
    tty: NotRequired[Annotated[bool, Field(description="Refused in a batch: use exec_command.")]]
    accepts_input: NotRequired[Annotated[bool, Field(description="Refused in a batch.")]]


BatchItem.__pydantic_config__ = {"extra": "forbid"}  # type: ignore[attr-defined]


class ExecCommandBatch(DeclaredTool):
    """The tool for several commands."""

    def __init__(
        self,
        sandbox: Sandbox,
        budget: OutputBudget | None = None,
        custody: RepositoryCustody | None = None,
        board: TaskBoard | None = None,
    ) -> None:
        """`board`: of a runtime, which may end what runs."""
        self._board = board
        self._sandbox = sandbox
        self._custody = custody if custody is not None else custody_of(sandbox)
        self._budget = budget if budget is not None else OutputBudget()
        self.__signature__, self._compiled = schema.compile_method(self._run, _PARAMETERS)
        self._declaration = declared(NAME, _DESCRIPTION, self._compiled, sandbox)

    @property
    def workspace_root(self) -> str:
        return self._sandbox.root

    @property
    def write_roots(self) -> tuple[str, ...]:
        return self._sandbox.write_roots

    def confinement(self, arguments: dict[str, Any]) -> Confinement:
        """What every item is held to; each has its own folder below the workspace."""
        return self._sandbox.confinement(self._sandbox.root)

    def working_directory(self, arguments: dict[str, Any]) -> str:
        return self._sandbox.root

    def start(self, ctx: RunContext[object], arguments: dict[str, Any]) -> CallHandle:
        return begin(self._run, True, (ctx,), self._compiled.arguments(arguments))

    async def _run(
        self,
        ctx: RunContext[object],
        items: Annotated[list[BatchItem], Field(min_length=1, max_length=MOST_ITEMS)],
        stop_on_error: bool = False,
    ) -> ToolOutput:
        until = time.monotonic() + command_runs.MAX_TIMEOUT_MS / 1000
        done: list[dict[str, Any]] = []
        artifacts: list[Any] = []
        most = self._budget.most_bytes(None) // len(items) - _LINES_BYTES
        for number, item in enumerate(items, 1):
            if any(_was_stopped(one) for one in done):
                record = _record(item, "skipped", error=_STOPPED)
            elif stop_on_error and any(_went_wrong(one) for one in done):
                record = _record(item, "skipped", error="an earlier item went wrong, and stop_on_error is set")
            elif time.monotonic() >= until:
                record = _record(item, "skipped", error="the time of the whole batch is over")
            else:
                ctx.progress(f"{number}/{len(items)}: {item['cmd'][:100]}", done=number - 1, total=len(items))
                record = await self._one(ctx, item, until, most, artifacts)
            done.append(record)
        counts = {status: sum(one["status"] == status for one in done) for status in _STATUSES}
        metadata: dict[str, Any] = {"batch": {"calls": 1, "items": len(done), **counts}, "items": done}
        text = "\n".join(_receipt(number, len(done), one) for number, one in enumerate(done, 1))
        return ToolOutput(
            f"{_summary(counts)}\n{text}\n=== end of the batch ===",
            artifacts=tuple(artifacts),
            truncated=any(one["stdout_truncated"] or one["stderr_truncated"] for one in done),
            partial=any(one["status"] != "completed" for one in done),
            metadata=metadata,
            most_bytes=max(self._budget.most_bytes(None), MAX_SHOWN_BYTES),
        )

    async def _one(
        self, ctx: RunContext[object], item: BatchItem, until: float, most: int, artifacts: list[Any]
    ) -> dict[str, Any]:
        for name in ("tty", "accepts_input"):
            if item.get(name):
                return _record(item, "rejected", error=f"{name} is not for a batch: use wakeful/exec_command")
        left_ms = max(1, int((until - time.monotonic()) * 1000))
        began = time.monotonic()
        try:
            cwd = command_runs.working_directory(self._sandbox, item.get("workdir"))
            running = _RunningItem(
                command_runs.run_command(
                    self._sandbox,
                    self._custody,
                    ctx,
                    item["cmd"],
                    cwd,
                    shell=item.get("shell"),
                    login=item.get("login", False),
                    tty=False,
                    timeout_ms=min(item.get("yield_time_ms", DEFAULT_ITEM_MS), left_ms),
                )
            )
            with self._board.running(running) if self._board is not None else nullcontext():
                ended, notes = await running.ended()
        except ToolReported as problem:
            return _failed(item, problem.error, (time.monotonic() - began) * 1000)
        asked = item.get("max_output_tokens")
        room = max(200, most if asked is None else min(most, self._budget.most_bytes(asked)))
        for_stdout, for_stderr = share(ended.stdout.total_bytes * 2, ended.stderr.total_bytes * 2, room)
        stdout, cut_out = both_ends(ended.stdout.data, ended.stdout.dropped_bytes, for_stdout)
        stderr, cut_err = both_ends(ended.stderr.data, ended.stderr.dropped_bytes, for_stderr)
        record = _record(item, "completed", workdir=cwd, exit_status=ended.exit_status)
        record |= {"repositories": list(notes)} if notes else {}
        if cut_out or cut_err:
            found, at_stdout, at_stderr = await command_runs.kept(ctx, ended)
            for key, at in (("stdout_artifact", at_stdout), ("stderr_artifact", at_stderr)):
                record[key] = None if at is None else len(artifacts) + at
            artifacts += found
        return record | {
            "stdout_preview": stdout,
            "stderr_preview": stderr,
            "stdout_truncated": cut_out,
            "stderr_truncated": cut_err,
            "duration_ms": round(ended.duration_ms),
        }


class _RunningItem:
    """The command of one item, which may be ended from outside."""

    def __init__(self, run: Coroutine[Any, Any, command_runs.FinishedCommand]) -> None:
        self._running, self._is_stopped = asyncio.ensure_future(run), False

    async def stop(self, grace: float) -> None:
        self._is_stopped = True
        self._running.cancel()
        await asyncio.wait({self._running})

    async def ended(self) -> command_runs.FinishedCommand:
        try:
            return await self._running
        except asyncio.CancelledError:
            this = asyncio.current_task()
            if not self._is_stopped or this is None or this.cancelling():
                raise
            raise ToolReported(
                ToolError(kind=command_runs.STOPPED_KIND, message=_STOPPED, recovery_hint=command_runs.STOPPED_HINT)
            ) from None


def _was_stopped(record: dict[str, Any]) -> bool:
    error = record.get("error")
    return isinstance(error, dict) and error.get("kind") == command_runs.STOPPED_KIND


_STOPPED = "everything was paused or stopped"
_STATUSES: tuple[Status, ...] = ("completed", "failed", "rejected", "skipped")


def _record(item: BatchItem, status: Status, *, error: str | None = None, **more: Any) -> dict[str, Any]:
    """The canonical result of one item."""
    told = None if error is None else {"kind": status, "message": error}
    return {
        "status": status,
        "cmd": item["cmd"],
        "workdir": item.get("workdir"),
        "exit_status": None,
        "stdout_preview": "",
        "stderr_preview": "",
        "stdout_truncated": False,
        "stderr_truncated": False,
        "stdout_artifact": None,
        "stderr_artifact": None,
        "duration_ms": 0,
        "error": told,
    } | more


def _failed(item: BatchItem, error: ToolError, duration_ms: float) -> dict[str, Any]:
    details = error.details or {}
    told = {"kind": error.kind, "message": error.message, "recovery_hint": error.recovery_hint, "details": details}
    return _record(item, "failed") | {
        "exit_status": details.get("exit_status"),
        "stdout_preview": details.get("stdout_preview", ""),
        "stderr_preview": details.get("stderr_preview", ""),
        "duration_ms": round(duration_ms),
        "error": told,
    }


def _went_wrong(record: dict[str, Any]) -> bool:
    return bool(record["status"] != "completed" or record["exit_status"] != 0)


def _summary(counts: dict[Status, int]) -> str:
    return ", ".join(f"{count} {status}" for status, count in counts.items() if count)


def _receipt(number: int, total: int, record: dict[str, Any]) -> str:
    """An item as text. Output is indented: a line at the margin is ours."""
    ended = f" exit_status={record['exit_status']}" if record["exit_status"] is not None else ""
    first, *others = record["cmd"].splitlines() or [""]
    more = f" (and {len(others)} more lines)" if others else ""
    lines = [f"=== {number}/{total} {record['status']}{ended} {record['duration_ms']} ms: {first[:200]}{more}"]
    if record["error"] is not None:
        hint = record["error"].get("recovery_hint")
        lines.append(f"error {record['error']['kind']}: {record['error']['message']}" + (f" ({hint})" if hint else ""))
    lines += [f"note {note}" for note in record.get("repositories", ())]
    for name in ("stdout", "stderr"):
        if text := record[f"{name}_preview"]:
            cut = ", cut" if record[f"{name}_truncated"] else ""
            lines += [f"--- {name}{cut}", *(f"    {line}" for line in text.splitlines())]
    return "\n".join(lines)


_DESCRIPTION = (
    f"Run up to {MOST_ITEMS} shell commands one after the other, each confined as in exec_command, and get "
    "one receipt. For short commands that need no terminal and no input. An item that fails does not stop the others "
    "unless stop_on_error is set."
)
_PARAMETERS = {
    "items": "The commands, in the order they run.",
    "stop_on_error": "Skip the rest when an item fails or ends with a status that is not zero.",
}
