"""`wakeful task list`, `show`, `output` and `stop`: commands in the background and child agents, from a terminal.

None of them needs the process that looks after the tasks; a stop is carried out by it, or by the next one.
"""

import asyncio
import sys
from functools import partial
from typing import Annotated

import typer

from wakeful.bootstrap.store_operations import reading_store
from wakeful.service.operations.tasks import (
    LIST_TASKS,
    SHOW_OUTPUT,
    SHOW_TASK,
    STOP_TASK,
    TaskName,
    TaskQuery,
    TaskToStop,
    follow_output,
)
from wakeful.surfaces.cli.agent_control import LoggedReasonOption
from wakeful.surfaces.cli.exit_codes import INTERRUPTED
from wakeful.surfaces.cli.last_list import remember
from wakeful.surfaces.cli.options import JsonOption, StoreOption, WideOption
from wakeful.surfaces.cli.places import StoreAddress, ask, await_daemon, client_of, place_to_ask
from wakeful.surfaces.cli.problems import note
from wakeful.surfaces.cli.screen import columns, prose, short
from wakeful.surfaces.cli.shown_values import age_cell, json_text, out, plain
from wakeful.views.task_records import OutputChunk, TaskOutput, TaskRecord

TaskArgument = Annotated[str, typer.Argument(metavar="TASK", help="Its id, or its beginning.")]


def listed(
    agent: Annotated[str | None, typer.Argument(metavar="AGENT", help="Default: all agents.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Also tasks of the agent that have ended.")] = False,
    json: JsonOption = False,
    wide: WideOption = False,
    store: StoreOption = None,
) -> None:
    """List tasks that are not over: commands in the background, and child agents. The newest first."""
    place = place_to_ask(store)
    found = ask(LIST_TASKS, TaskQuery(agent, everything), place)
    remember("tasks", [each.task_id for each in found], place)
    if json:
        out(json_text([each.model_dump(mode="json") for each in found], indent=2))
    elif not found:
        out("no tasks")
    else:
        cells = [
            (short(each.task_id), plain(each.agent), each.status, age_cell(int(each.created_at * 1e6)), _named(each))
            for each in found
        ]
        out(columns(cells, ("TASK", "AGENT", "STATUS", "AGE", "WORK"), wide=wide))


def show(task: TaskArgument, json: JsonOption = False, store: StoreOption = None) -> None:
    """Show a task: what it is, its status or how it ended, and how its child agent is doing."""
    found = ask(SHOW_TASK, TaskName(task), place_to_ask(store))
    out(json_text(found.model_dump(mode="json"), indent=2) if json else [plain(line) for line in _lines(found)])


def output(
    task: TaskArgument,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Print its lines as they come, until it is over.")
    ] = False,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Print both ends of a task's output; of a child agent, its last words.

    With --follow everything that is kept of a command's output is printed, and --json prints a line of JSON for each
    piece of it; the last line says how the task ended.
    """
    place = place_to_ask(store)
    if follow:
        try:
            _follow(TaskName(task), place, json=json)
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        return
    found = ask(SHOW_OUTPUT, TaskName(task), place)
    if json:
        out(json_text(found.model_dump(mode="json"), indent=2))
        return
    if found.output:
        out([plain(line) for line in found.output.splitlines()])
    if found.retrieval_status != "success":
        why = f"it is {found.status}" if found.retrieval_status == "not_ready" else "its output was not kept"
        prose(f"task {found.task_id}: {why}")
    elif found.output_expired:
        prose(f"task {found.task_id}: its output has expired; these are the ends of it that the log has")


def _follow(asked: TaskName, place: StoreAddress, *, json: bool) -> None:
    if place.daemon is None:
        asyncio.run(_follow_file(asked, place, json=json))
        return
    from wakeful.service.serving.remote_operations import stream_output

    away = partial(await_daemon, place, quiet=json)
    for item in stream_output(client_of(place), asked, away=away):
        _print(item, json=json)


async def _follow_file(asked: TaskName, place: StoreAddress, *, json: bool) -> None:
    async with reading_store(place.path) as opened:
        async for item in follow_output(opened, asked):
            _print(item, json=json)


def _print(item: OutputChunk | TaskOutput, *, json: bool) -> None:
    """Lines of a task; of its end a person is told on stderr."""
    if json:
        out(json_text(item.model_dump(mode="json", exclude_none=True)))
    elif isinstance(item, OutputChunk):
        if item.skipped_bytes:
            note(f"{item.skipped_bytes} bytes are not kept, or belong to a line that is too long")
        out([plain(line) for line in item.text.splitlines()])
    else:
        note(f"task {item.task_id} is {item.status}{f': {item.result_summary}' if item.result_summary else ''}")
    sys.stdout.flush()


def stop(
    task: TaskArgument,
    reason: LoggedReasonOption = "",
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Stop a task: a command, or a child agent with everything it has begun. Its agent is told how it ended."""
    found = ask(STOP_TASK, TaskToStop(task, reason=reason), place_to_ask(store))
    if json:
        out(json_text(found.model_dump(mode="json"), indent=2))
    elif found.ended_at is not None:
        out(f"task {found.task_id} is {found.status} already")
    else:
        out(f"task {found.task_id} was asked to stop")
        prose("The runtime of this store ends it; if none is at work, the next one does.")


def _named(task: TaskRecord) -> str:
    name = f"{task.child_agent_id}: " if task.child_agent_id is not None else ""
    return plain(f"{name}{task.summary}")


def _lines(task: TaskRecord) -> list[str]:
    lines = [
        task.task_id,
        f"  agent      {task.agent}, thread {task.thread}, {task.kind}",
        f"  status     {task.status}{f': {task.result_summary}' if task.result_summary else ''}",
        f"  work       {task.command or task.summary}",
    ]
    if task.workdir is not None:
        lines.append(f"  folder     {task.workdir}")
    if task.exit_status is not None:
        lines.append(f"  exit       {task.exit_status}")
    if task.child_agent_id is not None:
        lines.append(f"  child      {task.child_agent_id}")
    seen, supervision = task.child_observability, task.child_supervision
    if seen is not None:
        why = seen.blocked_reason or seen.waiting_reason
        lines.append(f"  phase      {seen.phase}{f' ({why})' if why else ''}")
        told = seen.last_result_brief or seen.last_progress_brief
        lines += [f"  told       {told.splitlines()[0]}"] if told else []
    tree = supervision.worktree if supervision is not None else None
    if tree is not None:
        lines.append(f"  worktree   {tree.state}: {tree.worktree_path} on {tree.worktree_branch}")
    return lines
