"""One command of a runtime: under a supervisor from its first moment, to its end or until it goes on as a task.

Whatever happens before the task's board has it, no process of the command is left when `run_supervised` raises.
"""

import asyncio
from functools import partial
from typing import Any

from wakeful.contracts.errors import ToolReported
from wakeful.contracts.tasks import CommandSpec
from wakeful.contracts.tools import ToolError
from wakeful.ports.tasks import TaskBoard, TaskOrder, TaskRow
from wakeful.processes.supervised_command import SupervisedCommand
from wakeful.sandbox.command_process import CommandEnd
from wakeful.sandbox.confinement import Sandbox
from wakeful.tools.context import RunContext
from wakeful.tools.local import command_runs
from wakeful.tools.local.custody_records import CustodyRecord, write_record
from wakeful.tools.local.output_budget import both_ends
from wakeful.tools.local.repository_custody import RepositoryCustody
from wakeful.tools.local.repository_history import Note

INITIAL_CHARS = 2_000
"""Of what a command had said when it became a task."""


async def run_supervised(
    board: TaskBoard, sandbox: Sandbox, custody: RepositoryCustody, ctx: RunContext[Any], spec: CommandSpec
) -> command_runs.FinishedCommand | TaskRow:
    """Run it until it ends or its time to yield has come: then it is a task. Raises ToolReported, as `run_command`."""
    line = command_runs.checked_line(sandbox, spec.cmd, spec.shell, spec.login)
    record = await command_runs.look_before(custody)
    is_handed_over = False
    notes: list[Note] = []
    try:
        with command_runs.reported(sandbox, line, spec.workdir):
            command = await SupervisedCommand.start(
                sandbox,
                line,
                spec.workdir,
                tty=spec.tty,
                accepts_input=spec.accepts_input,
                show=lambda _, text: ctx.show(text),
            )
            try:
                with board.running(command):  # until it is a task that the board knows: it can be ended at any moment
                    ended = await _until(command, spec.yield_time_ms / 1000)
                    if ended is None:
                        is_handed_over = True
                        return await _promoted(board, command, sandbox, custody, record, ctx, spec)
            finally:
                if not is_handed_over:
                    await asyncio.shield(asyncio.ensure_future(command.end()))
    finally:
        if not is_handed_over:
            notes += await command_runs.look_after(custody, record)
    return await command_runs.judged(sandbox, ctx, ended, notes, spec.workdir, spec.yield_time_ms)


async def _until(command: SupervisedCommand, seconds: float) -> CommandEnd | None:
    """How it ended within this time; None: it has not."""
    ending = asyncio.ensure_future(command.ended())
    try:
        await asyncio.wait({ending}, timeout=seconds)
        return ending.result() if ending.done() else None
    finally:
        ending.cancel()


async def _promoted(
    board: TaskBoard,
    command: SupervisedCommand,
    sandbox: Sandbox,
    custody: RepositoryCustody,
    record: CustodyRecord,
    ctx: RunContext[Any],
    spec: CommandSpec,
) -> TaskRow:
    """Hand it over. Once that has begun it is not given up half way, whoever stops waiting."""

    async def settle() -> list[str]:
        return [note.text for note in await command_runs.look_after(custody, record) if note.is_undone]

    order = TaskOrder(
        turn_id=ctx.turn_id,
        call_id=ctx.call_id,
        derived_from=ctx.derived_from,
        spec=spec,
        write_roots=sandbox.write_roots,
        initial_output=initial_output(command)[0],
        keep=partial(write_record, record),
    )
    try:
        return await asyncio.shield(asyncio.ensure_future(board.promote(command, order, settle)))
    except OSError as problem:
        raise ToolReported(
            ToolError(
                kind="task_not_made",
                message=f"after {spec.yield_time_ms:,} ms the command could not go on as a task, and was ended with "
                f"everything it had started: {problem}",
                details={"problem": str(problem)},
                recovery_hint="look how far it came before you run it again, with a longer yield_time_ms; the owner "
                "has to look at the folder of tasks",
            )
        ) from problem


def initial_output(command: SupervisedCommand) -> tuple[str, bool]:
    """What it has said so far, and whether that is less than all of it."""
    said = command.stdout.data + command.stderr.data
    return both_ends(said, command.stdout.dropped_bytes + command.stderr.dropped_bytes, INITIAL_CHARS)
