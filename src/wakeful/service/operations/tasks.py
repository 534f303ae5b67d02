"""What may be asked about tasks of agents: which there are, one in full, what it said, and to end it.

None of them needs the process that looks after the tasks. A stop is a fact: that process, or the next one, acts on it.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wakeful.service.operations.operation import OpenStore, Operation, check_no_tool
from wakeful.service.operations.turns import PAGE

if TYPE_CHECKING:
    from wakeful.views.task_records import OutputChunk, TaskOutput, TaskRecord

_RECORDS = "wakeful.views.task_records"


@dataclass(frozen=True, slots=True)
class TaskQuery:
    """Tasks of one agent, or those of all agents that go on."""

    agent: str | None = None
    over: bool = False
    """Those that ended too, of one agent."""
    limit: int = PAGE
    after: str | None = None
    """The last task of the page before."""


@dataclass(frozen=True, slots=True)
class TaskName:
    """One task by its id, or enough of its beginning."""

    task: str


@dataclass(frozen=True, slots=True)
class TaskToStop:
    """A task that is to end, and who wants it."""

    task: str
    by: str = ""
    reason: str = ""


async def _list(opened: OpenStore, asked: TaskQuery) -> "list[TaskRecord]":
    from wakeful.service.queries.tasks import tasks_of

    return await tasks_of(opened.engine, asked.agent, over=asked.over, limit=asked.limit, after=asked.after)


async def _show(opened: OpenStore, asked: TaskName) -> "TaskRecord":
    from wakeful.service.commands.agents import task_named
    from wakeful.service.queries.tasks import task_record

    return await task_record(opened.engine, await task_named(opened.store, asked.task))


async def _output(opened: OpenStore, asked: TaskName) -> "TaskOutput":
    from wakeful.service.queries.tasks import output_of

    return await output_of(opened.engine, asked.task)


async def follow_output(
    opened: OpenStore, asked: TaskName, after: int = 0
) -> "AsyncGenerator[OutputChunk | TaskOutput, None]":
    """What a task says, from a place on, then what comes, until it is over: surfaces make streams of it."""
    from wakeful.service.queries.task_output import follow_output as follow

    async with aclosing(follow(opened.watcher_of(asked.task), after)) as items:
        async for item in items:
            yield item


async def _stop(opened: OpenStore, asked: TaskToStop) -> "TaskRecord":
    from wakeful.service.commands.agents import stop_task
    from wakeful.service.queries.tasks import task_record

    check_no_tool("tasks")
    row = await stop_task(opened.engine, asked.task, by=asked.by, reason=asked.reason)
    return await task_record(opened.engine, row)


LIST_TASKS = Operation("task.list", "observe", TaskQuery, f"{_RECORDS}.TaskRecord", _list, many=True)
SHOW_TASK = Operation("task.show", "observe", TaskName, f"{_RECORDS}.TaskRecord", _show)
SHOW_OUTPUT = Operation("task.output", "observe", TaskName, f"{_RECORDS}.TaskOutput", _output)
STOP_TASK = Operation("task.stop", "operate", TaskToStop, f"{_RECORDS}.TaskRecord", _stop, repeatable=True)
