"""The tasks of agents, from their rows: those that go on, those of one agent, and what one said."""

import asyncio

from wakeful.contracts.errors import CursorGone, InvalidRequest
from wakeful.engine.run_request import Engine
from wakeful.ports.tasks import TaskRow, Tasks
from wakeful.runtime.child_agents import child_facts, newest_words
from wakeful.service.commands.agents import agent_named, task_named
from wakeful.tools.local.output_budget import both_ends
from wakeful.tools.local.task_tools import PREVIEW_BYTES, output_preview
from wakeful.views.child_agents import observability_of, supervision_of
from wakeful.views.task_records import OutputState, TaskOutput, TaskRecord

PAGE = 200
"""Rows that are read at once."""


async def tasks_of(
    engine: Engine, agent: str | None, *, over: bool, limit: int, after: str | None = None
) -> list[TaskRecord]:
    """Tasks that go on, the newest first; with `over` also those that ended, of one agent. `after`: behind that task.

    Raises AgentNotFound, and CursorGone for a task that is not there any more.
    """
    store = engine.store
    last = await store.task(after) if after is not None else None
    if after is not None and last is None:
        raise CursorGone(f"there is no task {after} to continue after", "Begin again with the newest.")
    if agent is None:
        if over:
            raise InvalidRequest("tasks that ended are listed by agent", "Name it: wakeful task list AGENT --all")
        rows = await store.newest_open_tasks(limit=limit, after=last)
    else:
        await agent_named(store, agent)
        rows = await (store.tasks_of(agent, limit=limit, after=last) if over else _open(store, agent, limit, last))
    return [await task_record(engine, row) for row in rows]


async def _open(store: Tasks, agent: str, limit: int, last: TaskRow | None) -> list[TaskRow]:
    """Those of one agent, among the few that go on: what ended may be a hundred times as much, and is not read."""
    found: list[TaskRow] = []
    while len(found) < limit and (page := await store.newest_open_tasks(limit=PAGE, after=last)):
        last = page[-1]
        found += [row for row in page if row.agent_id == agent]
    return found[:limit]


async def task_record(engine: Engine, row: TaskRow) -> TaskRecord:
    hide, spec, child = engine.keys().hide, row.command, row.child
    facts = await child_facts(engine, row)
    return TaskRecord(
        task_id=row.task_id,
        agent=row.agent_id,
        thread=row.thread_id,
        kind=row.kind,
        status=row.status,
        summary=hide(row.summary),
        turn_id=row.parent_turn_id,
        work_item_id=row.work_item_id,
        derived_from=row.derived_from,
        command=None if spec is None else hide(spec.cmd),
        workdir=None if spec is None else spec.workdir,
        child_agent_id=None if child is None else child.agent_id,
        child_observability=None if facts is None else observability_of(facts),
        child_supervision=None if facts is None else supervision_of(facts),
        exit_status=row.exit_status,
        result_summary=hide(row.result_summary),
        output_bytes=row.output_bytes,
        created_at=row.created_at / 1e6,
        updated_at=row.updated_at / 1e6,
        ended_at=None if row.ended_at is None else row.ended_at / 1e6,
    )


async def output_of(engine: Engine, task_id: str) -> TaskOutput:
    """What a task has said so far, or in all. Raises InvalidRequest."""
    row = await task_named(engine.store, task_id)
    facts = await child_facts(engine, row)
    if facts is not None:
        words = (await newest_words(engine.store, facts)).text.encode(errors="replace")
        text, is_cut = both_ends(words, 0, PREVIEW_BYTES)
        is_there, is_expired = bool(text), False
    else:
        preview = await asyncio.to_thread(output_preview, row)
        text, is_cut, is_there = preview.text, preview.is_cut, preview.is_from_file or bool(preview.text)
        is_expired = preview.is_expired
    state: OutputState = "not_ready" if not row.is_over else "success" if is_there else "unavailable"
    return TaskOutput(
        task_id=row.task_id,
        status=row.status,
        retrieval_status=state,
        output=engine.keys().hide(text),
        output_truncated=is_cut,
        output_expired=is_expired,
        result_summary=engine.keys().hide(row.result_summary),
        exit_status=row.exit_status,
    )
