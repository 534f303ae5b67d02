"""What a turn that begins is shown of its agent's work items, looked up once: rows, the plan and the trace of the
current one, reports of completed ones. An agent without work items costs nothing here."""

import asyncio
from pathlib import Path
from typing import Any

from wakeful.contracts.conversation import AssistantItem
from wakeful.contracts.events import AssistantRecorded, ToolFailed, ToolResult, WorkQueueProjected
from wakeful.contracts.work_items import WorkItem
from wakeful.decisions.work_items.projection import CAPS, CurrentDetails, Projection, project
from wakeful.engine.agent import Agent
from wakeful.engine.plan_files import read_plan
from wakeful.engine.work_items import active_waits, report_of
from wakeful.ports import Store

NOTHING = Projection("")
MOST_ITEMS = 200
"""How many open items are looked at, those left alone for the longest time first."""
MOST_FACTS = 200
"""How many facts of a turn are read for the trace: its newest."""
MOST_LINES = 12
LINE = 160


async def projection_of(store: Store, agent: Agent[Any, Any], agent_home: Path, agent_id: str, now: int) -> Projection:
    """The block for a turn that begins; blank for an agent that has no items, or no use for them."""
    if not agent.work_items:
        return NOTHING
    items = await store.open_work_items(agent_id, limit=MOST_ITEMS)
    done = [item for item in await store.completed_work_items(agent_id, limit=MOST_ITEMS) if item.report_event_id]
    done = done[: CAPS["completed_recent"]]
    if not items and not done:
        return NOTHING
    focus = await store.current_work_item_id(agent_id)
    current = await store.work_item(focus) if focus is not None else None
    if current is not None and current not in items:
        items.append(current)
    details = await _details(store, agent_home, current) if current is not None else None
    reports = {item.work_item_id: await report_of(store, item) or "" for item in done}
    waits = await active_waits(store, agent_id)
    return project([*items, *done], focus, now, waits=waits, details=details, reports=reports)


def projected(found: Projection) -> WorkQueueProjected | None:
    """The fact about it; None where nothing is shown."""
    if not found.text:
        return None
    return WorkQueueProjected(
        current=found.current.work_item_id if found.current is not None else None,
        others=tuple(item.work_item_id for item in found.others),
        triggered=tuple(item.work_item_id for item in found.triggered),
        untrusted=found.untrusted,
    )


async def _details(store: Store, agent_home: Path, item: WorkItem) -> CurrentDetails:
    plan = await asyncio.to_thread(read_plan, agent_home, item.work_item_id)
    trace = [line for turn_id in item.turns[::-1] for line in await _trace(store, item.agent_id, turn_id)]
    if plan is None:
        return CurrentDetails(trace=trace[-MOST_LINES:])
    return CurrentDetails(plan.path, plan.preview, plan.preview_complete, trace[-MOST_LINES:])


async def _trace(store: Store, agent_id: str, turn_id: str) -> list[str]:
    """What a turn did: its words and how its calls ended. Thinking is no part of it, nor are levels below the root."""
    turn = await store.turn(turn_id)
    if turn is None or turn.agent_id != agent_id:
        return []
    first = max(turn.first_seq, turn.last_seq - MOST_FACTS)
    lines: list[str] = []
    for entry in await store.read(agent_id, after=first - 1, turn_id=turn_id, limit=MOST_FACTS):
        event = entry.fact.event
        if entry.fact.level is not None:
            continue
        if isinstance(event, AssistantRecorded):
            assert isinstance(event.item, AssistantItem)
            if said := " ".join(event.item.text.split()):
                lines.append(f"you said: {said[:LINE]}")
        elif isinstance(event, ToolResult):
            lines.append(f"{event.tool_name}: {' '.join(event.preview.split())[:LINE]}")
        elif isinstance(event, ToolFailed):
            lines.append(f"{event.tool_name} failed: {event.tool_error.message[:LINE]}")
    return lines
