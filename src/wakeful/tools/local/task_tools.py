"""The tools for tasks: where one is, what it said, input for it, and its end.

`task_status` is about the life of a task and never shows output; `task_output` shows it, bounded. A wait is part of the
turn that asked for it, and bounded: a task that takes longer is waited for by ending the turn.
"""

import asyncio
from typing import Annotated, Any

from pydantic import Field

from wakeful.contracts.errors import ToolReported
from wakeful.contracts.tools import PermissionClass, ToolDeclaration, ToolError
from wakeful.ports.tasks import ChildOfTask, TaskBoard, TaskRow
from wakeful.processes.output_segments import read_output
from wakeful.sandbox.confinement import Sandbox
from wakeful.tools import schema
from wakeful.tools.call_runner import CallHandle, begin
from wakeful.tools.context import RunContext
from wakeful.tools.local.command_runs import MAX_TIMEOUT_MS
from wakeful.tools.local.commands import Words
from wakeful.tools.local.output_budget import both_ends
from wakeful.tools.local.task_envelopes import OutputPreview, input_target, task_output, task_snapshot
from wakeful.tools.results import ToolOutput
from wakeful.tools.tool import DeclaredTool, Tool

PREVIEW_BYTES = 8_000
"""Of a task's output, in one result."""
MOST_INPUT_CHARS = 64_000
DEFAULT_WAIT_MS = 30_000
_NUL = "\x00"

Wait = Annotated[int, Field(ge=0, le=MAX_TIMEOUT_MS)]
Typed = Annotated[str, Field(max_length=MOST_INPUT_CHARS)]


def task_tools(sandbox: Sandbox | None, board: TaskBoard) -> list[Tool[Any]]:
    """All of them, in the order of their names in a profile. Without a sandbox: for an agent that runs no commands."""
    return [TaskStatusTool(sandbox, board), TaskOutputTool(sandbox, board), TaskInputTool(sandbox, board),
            TaskStopTool(sandbox, board)]  # fmt: skip


_DECLARED: dict[tuple[str, bool, bool], ToolDeclaration] = {}
"""By name, and by what of the sandbox is said: tools are made anew for every turn, and what a policy comes to for a
declaration is kept by the object."""


class _TaskTool(DeclaredTool):
    """What the four have in common: a task of the turn's agent, by its id."""

    tool_name: str
    description: str
    words: dict[str, str]
    changes: bool
    """It acts on the task."""

    def __init__(self, sandbox: Sandbox | None, board: TaskBoard) -> None:
        self._sandbox = sandbox
        self._board = board
        words = {"task_id": "The task, as exec_command or spawn_agent named it.", **self.words}
        self.__signature__, self._compiled = schema.compile_method(self._run, words)
        network = sandbox is not None and sandbox.network == "full"
        key = self.tool_name, sandbox is not None, network
        if key not in _DECLARED:
            _DECLARED[key] = self._declared(network)
        self._declaration = _DECLARED[key]

    def _declared(self, network: bool) -> ToolDeclaration:
        acts: PermissionClass = "execute" if self._sandbox is not None else "subagent"
        return ToolDeclaration(
            name=self.tool_name,
            description=self.description,
            input_schema=self._compiled.schema,
            effect="pure" if not self.changes else "keyed" if self.tool_name == STOP else "irreversible",
            timeout=MAX_TIMEOUT_MS / 1000 + 30,
            parallel_safe=not self.changes,
            permission_class=acts if self.changes else "safe",
            capabilities=("read",) if not self.changes else ("shell",) if self._sandbox is not None else (),
            categories=("local",),
            reads_private=self.tool_name == OUTPUT,
            changes_state=self.changes,
            leaves_machine=self.changes and network,
            untrusted=network if self.tool_name == OUTPUT else None,
            duplicate_policy=None if self.changes else "repeatable",
        )

    @property
    def workspace_root(self) -> str | None:
        return None if self._sandbox is None else self._sandbox.root

    @property
    def write_roots(self) -> tuple[str, ...]:
        return () if self._sandbox is None else self._sandbox.write_roots

    def start(self, ctx: RunContext[object], arguments: dict[str, Any]) -> CallHandle:
        return begin(self._run, True, (ctx,), self._compiled.arguments(arguments))

    async def _run(self, ctx: RunContext[object], task_id: Words) -> ToolOutput:
        raise NotImplementedError

    async def _task(self, ctx: RunContext[object], task_id: str) -> TaskRow:
        row = await self._board.task(ctx.turn_id, task_id)
        if row is None:
            raise ToolReported(
                ToolError(
                    kind="unknown_task",
                    message=f"there is no task {task_id!r} of this agent",
                    details={"field": "task_id", "task_id": task_id},
                    recovery_hint="use the task_id that exec_command or spawn_agent gave, letter by letter",
                )
            )
        return row


STATUS, OUTPUT, INPUT, STOP = (f"wakeful/task_{name}" for name in ("status", "output", "input", "stop"))


class TaskStatusTool(_TaskTool):
    """Where a task is."""

    tool_name = STATUS
    description = "Say where a task is: its status, its command, when it began and ended. It does not show output."
    words: dict[str, str] = {}
    changes = False

    async def _run(self, ctx: RunContext[object], task_id: Words) -> ToolOutput:
        row = await self._task(ctx, task_id)
        child = await self._board.child(row)
        return ToolOutput({"task": task_snapshot(row, child)}, untrusted=_told_by(child))


class TaskOutputTool(_TaskTool):
    """What a task said."""

    tool_name = OUTPUT
    description = (
        "Show the beginning and the end of what a task said, and how it ended if it has. retrieval_status is success "
        "when it is over and the output final, not_ready while it runs, timeout when it did not end while you waited, "
        "unavailable when nothing of it was kept; with output_expired only what is shown was kept. Its result also "
        "comes as a message: do not wait in a loop."
    )
    words = {
        "block": "Wait for its end first, up to timeout_ms. False: show what there is now.",
        "timeout_ms": "How long to wait at most.",
    }
    changes = False

    async def _run(
        self, ctx: RunContext[object], task_id: Words, block: bool = True, timeout_ms: Wait = DEFAULT_WAIT_MS
    ) -> ToolOutput:
        row = await self._task(ctx, task_id)
        waits = block and not row.is_over
        if waits:
            row = await self._board.wait(task_id, timeout_ms / 1000)
        child = await self._board.child(row)
        preview = child_preview(child) if child is not None else await asyncio.to_thread(output_preview, row)
        envelope = task_output(row, preview, waited=waits, child=child)
        metadata = {"task_id": task_id, "retrieval_status": envelope["retrieval_status"]}
        return ToolOutput(envelope, truncated=False, metadata=metadata, untrusted=_told_by(child))


class TaskInputTool(_TaskTool):
    """Input for a task."""

    tool_name = INPUT
    description = (
        "Type into a task that was started with accepts_input or tty. End a line with a newline to send it. To a child "
        "agent it is a message."
    )
    words = {
        "input": "What to type, as it is; or what to say to the child.",
        "close": "The input ends after it. At a terminal this is Ctrl-D.",
    }
    changes = True

    async def _run(self, ctx: RunContext[object], task_id: Words, input: Typed = "", close: bool = False) -> ToolOutput:
        row = await self._task(ctx, task_id)
        if row.child is not None:
            return await self._say(ctx, row, input, close)
        target, data = input_target(row), input.encode(errors="replace")
        why = ""
        if target is None:
            why = "the task takes no input: it was not started with accepts_input"
        elif row.is_over:
            why = f"the task is {row.status}"
        elif _NUL in input:
            why = "the input has a NUL character in it"
        written = 0
        if not why:
            written = await self._board.send_input(task_id, data, close=close)
            if written < len(data):
                why = f"the command took {written:,} of {len(data):,} bytes: it does not read, or it has ended"
        return ToolOutput(
            {
                "task": task_snapshot(row),
                "accepted_input": not why,
                "input_target": target,
                "bytes_written": written,
                "summary_text": why or f"{written:,} bytes were typed" + (" and the input closed" if close else ""),
            },
            partial=bool(why),
        )

    async def _say(self, ctx: RunContext[object], row: TaskRow, words: str, close: bool) -> ToolOutput:
        """To a child agent, what is typed is a message: its parent speaks to it."""
        why = ""
        if row.is_over:
            why = f"the task is {row.status}"
        elif close:
            why = "the input of a child agent has no end: leave close out, or use task_stop"
        elif not words.strip():
            why = "there is nothing in the message"
        elif not await self._board.say(row.task_id, words, behind=ctx.derived_from, key=ctx.idempotency_key):
            why = "the child has ended"
        child = await self._board.child(row)
        return ToolOutput(
            {
                "task": task_snapshot(row, child),
                "accepted_input": not why,
                "input_target": "child_agent",
                "bytes_written": 0 if why else len(words.encode(errors="replace")),
                "summary_text": why or "the child has the message",
            },
            partial=bool(why),
            untrusted=_told_by(child),
        )


class TaskStopTool(_TaskTool):
    """The end of a task."""

    tool_name = STOP
    description = (
        "Stop a task: its processes are asked to end, and killed when they have not after a few seconds. A child agent "
        "is stopped with all it has begun. How it ended comes as a message."
    )
    words = {"force": "Kill it at once."}
    changes = True

    async def _run(self, ctx: RunContext[object], task_id: Words, force: bool = False) -> ToolOutput:
        row = await self._task(ctx, task_id)
        was_over = row.is_over
        if not was_over:
            row = await self._board.stop(task_id, force=force, reason="asked for by the agent")
        child = await self._board.child(row)
        return ToolOutput(
            {
                "task": task_snapshot(row, child),
                "stop_requested": not was_over,
                "force_stop_requested": force and not was_over,
            },
            untrusted=_told_by(child),
        )


def _told_by(child: ChildOfTask | None) -> str:
    """Why what is shown of a child is nobody's instruction: its briefs and its work are its own words."""
    return child.untrusted if child is not None else ""


def child_preview(child: ChildOfTask) -> OutputPreview:
    """Both ends of what a child said last."""
    text, is_cut = both_ends(child.output.encode(errors="replace"), 0, PREVIEW_BYTES)
    return OutputPreview(text, is_cut, False)


def output_preview(row: TaskRow) -> OutputPreview:
    """Both ends of a task's output: from its files, or what the record of its end has where they cannot be read."""
    recovery = row.recovered
    stored = None
    if recovery is not None and recovery.folder is not None and row.output_path is not None:
        stored = read_output(recovery.folder, PREVIEW_BYTES)
    if stored is None:
        said = row.output_summary or row.initial_output
        is_expired = row.is_over and row.output_path is not None and row.output_bytes > 0
        return OutputPreview(said, row.output_truncated, False, is_expired)
    text, is_cut = both_ends(stored.head + stored.tail, stored.dropped_bytes, PREVIEW_BYTES)
    return OutputPreview(text, is_cut, True)
