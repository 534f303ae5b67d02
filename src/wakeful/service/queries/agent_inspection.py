"""Agents as clients inspect them: the list, one summary, one snapshot. Every word of it follows from rows."""

from collections.abc import Mapping
from typing import Any

from wakeful.engine.run_request import Engine
from wakeful.ports.waits import WaitRow
from wakeful.runtime.refusals import stored_refusals
from wakeful.service.commands.agents import agent_named
from wakeful.service.commands.approvals import approvals
from wakeful.service.commands.trigger_control import CountRefusals, list_triggers
from wakeful.service.queries.agent_details import agent_details, definition_of, identity_of, model_of
from wakeful.service.queries.agent_records import is_listed, lives_of, page_of_agents
from wakeful.service.queries.notices import notices_of
from wakeful.service.queries.runtime_agents import list_timers
from wakeful.service.queries.work_items import briefs_of, work_items_of
from wakeful.service.queries.workspaces import workspaces_of
from wakeful.views.agent_inspection import (
    AgentListEntry,
    AgentStateSnapshot,
    AgentSummary,
    ListedWorkspace,
    WaitRecord,
)

TAIL = 20
"""So many briefs and notices are in a snapshot."""


async def agent_entries(engine: Engine, *, after: str | None = None, limit: int | None = None) -> list[AgentListEntry]:
    """The public agents, the oldest first. Raises CursorGone for an `after` that never was."""
    store = engine.store
    rows = await page_of_agents(store, is_listed, after, limit)
    lives = await lives_of(engine, rows, is_page=limit is not None)
    models: dict[str, Mapping[str, Any]] = {}
    found = []
    for row in rows:
        life = lives[row.agent_id]
        if row.revision not in models:  # many have the same
            models[row.revision] = await definition_of(engine, row)
        briefs = await store.briefs(row.agent_id, limit=1)
        active = await store.active_workspace(row.agent_id)
        found.append(
            AgentListEntry(
                identity=identity_of(row),
                status=life.status,
                control=row.control,
                model=model_of([row], models[row.revision]).effective_model,
                pending=life.queued,
                last_brief_at=briefs[0].created_at / 1e6 if briefs else None,
                active_workspace=None
                if active is None
                else ListedWorkspace(workspace_id=active.workspace_id, workspace_anchor=active.workspace_anchor),
            )
        )
    return found


async def agent_summary(engine: Engine, name: str) -> AgentSummary:
    """Raises AgentNotFound."""
    row = await agent_named(engine.store, name)
    details = await agent_details(engine, name)
    asked = [each for each in await approvals(engine) if each.agent_id == name]
    workspaces = await workspaces_of(engine, name)
    return AgentSummary(
        **dict(details),
        identity=identity_of(row),
        active_workspace=workspaces.active_workspace_entry,
        needs_you=len(asked),
    )


async def agent_snapshot(engine: Engine, name: str, refused: CountRefusals | None = None) -> AgentStateSnapshot:
    """Everything a client shows of an agent at first. Raises AgentNotFound.

    Its event is taken first: what is written while the rest is read comes again with the events, and is not lost.
    """
    store = engine.store
    await agent_named(store, name)
    seq = await store.head(name)

    async def stored(agent: str, door: str | None) -> dict[str, int]:
        return await stored_refusals(store, agent, door)

    return AgentStateSnapshot(
        agent=await agent_summary(engine, name),
        event_seq=seq,
        workspaces=await workspaces_of(engine, name),
        work_items=tuple(await work_items_of(store, name)),
        waits=tuple(wait_record(row) for row in await store.open_waits(name)),
        timers=tuple(await list_timers(engine, name)),
        triggers=tuple(await list_triggers(store, refused or stored, name)),
        approvals=tuple(each for each in await approvals(engine) if each.agent_id == name),
        briefs=tuple(await briefs_of(store, name, limit=TAIL)),
        notices=tuple(await notices_of(store, name, TAIL)),
    )


def wait_record(row: WaitRow) -> WaitRecord:
    return WaitRecord(
        wait_id=row.wait_id,
        agent=row.agent_id,
        thread=row.thread_id,
        turn_id=row.turn_id,
        wake=row.wake,
        reason=row.reason,
        resource=row.resource,
        work_item_id=row.work_item_id,
        due_at=row.due_at / 1e6,
        is_sleep=row.is_sleep,
        created_at=row.created_at / 1e6,
    )
