"""`wakeful/exec_command` of a runtime: one shell command, which goes on as a task when it takes longer.

One envelope, told apart by `disposition`: it has ended (`completed`), it goes on (`promoted_to_task`), or the very same
command runs already (`already_running`). Fields of one never stand in another.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from wakeful.contracts.tasks import PROMOTED, CommandSpec
from wakeful.ports.tasks import TaskBoard, TaskRow
from wakeful.sandbox.confinement import Sandbox
from wakeful.tools.context import RunContext
from wakeful.tools.local import command_runs, task_envelopes
from wakeful.tools.local.commands import PARAMETERS, ExecCommand, Milliseconds, Tokens, Words, completed
from wakeful.tools.local.output_budget import OutputBudget
from wakeful.tools.local.repository_custody import RepositoryCustody
from wakeful.tools.local.supervised_runs import INITIAL_CHARS, run_supervised
from wakeful.tools.results import ToolOutput

DEFAULT_YIELD_MS = 10_000


class ExecTaskCommand(ExecCommand):
    """The tool for one command, where a command may outlive its call."""

    description: ClassVar[str] = (
        "Run a shell command in the workspace. It runs confined: it can write in the workspace and a private temporary "
        "folder, and it has no network unless that was granted. When it ends within yield_time_ms the result has "
        "disposition completed, exit_status, stdout_preview and stderr_preview; what is too long is cut in the middle "
        "and whole in an artifact. When it takes longer it goes on as a task (promoted_to_task): go on with other work "
        "or end your turn, its result comes as a message. task_status, task_output, task_input and task_stop take its "
        "task_id. The same command that runs already is not started twice (already_running). A virtual environment in "
        "the workspace (.venv) is on its PATH. Use it to look around as well: ls, rg, sed -n, git log."
    )
    parameters: ClassVar[Mapping[str, str]] = {
        **PARAMETERS,
        "tty": "Give it a terminal. Its output is then one transcript.",
        "yield_time_ms": "After this time it goes on as a task, and you are told its task_id.",
        "accepts_input": "Keep its input open for task_input. Left out: as tty says.",
        "duplicate_policy": "reuse_running: when the same command runs already, that task is named instead of a second "
        "one. start_new: start another one.",
    }

    def __init__(
        self,
        sandbox: Sandbox,
        board: TaskBoard,
        budget: OutputBudget | None = None,
        custody: RepositoryCustody | None = None,
    ) -> None:
        super().__init__(sandbox, budget, custody)
        self._board = board

    async def _run(
        self,
        ctx: RunContext[object],
        cmd: Words,
        workdir: str | None = None,
        shell: str | None = None,
        login: bool = False,
        tty: bool = False,
        yield_time_ms: Milliseconds = DEFAULT_YIELD_MS,
        max_output_tokens: Tokens | None = None,
        accepts_input: bool | None = None,
        duplicate_policy: Literal["reuse_running", "start_new"] = "reuse_running",
    ) -> ToolOutput:
        spec = CommandSpec(
            cmd=cmd,
            workdir=command_runs.working_directory(self._sandbox, workdir),
            shell=shell,
            login=login,
            tty=tty,
            yield_time_ms=yield_time_ms,
            max_output_tokens=max_output_tokens,
            accepts_input=tty if accepts_input is None else accepts_input,
        )
        if duplicate_policy == "reuse_running":
            running = await self._board.same_command(ctx.turn_id, spec)
            if running is not None:
                return told(already_running(running), running)
        found = await run_supervised(self._board, self._sandbox, self._custody, ctx, spec)
        if isinstance(found, TaskRow):
            return told(promoted_to_task(found), found)
        return await completed(ctx, found, self._budget, max_output_tokens, tty=tty)


def promoted_to_task(row: TaskRow) -> dict[str, Any]:
    return {
        "disposition": PROMOTED,
        "task_handle": task_envelopes.task_handle(row),
        "initial_output_preview": row.initial_output,
        "initial_output_truncated": len(row.initial_output) >= INITIAL_CHARS - 200,
        "summary_text": f"It runs on as {row.task_id}. Its result comes as a message; there is no need to wait for it.",
    }


def already_running(row: TaskRow) -> dict[str, Any]:
    return {
        "disposition": "already_running",
        "task_handle": task_envelopes.task_handle(row),
        "command": task_envelopes.command_snapshot(row),
        "summary_text": f"The same command runs already as {row.task_id}: task_status and task_output say how it is.",
    }


def told(envelope: dict[str, Any], row: TaskRow) -> ToolOutput:
    """What the model reads, and what others want to know of it."""
    return ToolOutput(envelope, metadata={"task_id": row.task_id, "disposition": envelope["disposition"]})
