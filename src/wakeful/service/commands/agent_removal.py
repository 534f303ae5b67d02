"""Put an agent away, or delete it. Neither is done while something of it is open: that is told, and has to end first.

Both are facts. An archived agent is stopped and in no listing, and `resume` brings it back. A deleted one is no more:
its log stays for audits, its home is moved aside, and its name is not given again. The index of its memory is taken
away; where a kill comes before it, retention does it.
"""

import asyncio
import contextlib
from pathlib import Path

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import DefinedInCode, InvalidRequest
from wakeful.contracts.events import (
    AgentArchived,
    AgentDeleted,
    AgentStateChanged,
    TimerCancelled,
    TriggerRevoked,
)
from wakeful.engine.agent_memory import drop_index
from wakeful.engine.run_request import Engine
from wakeful.ports import Store
from wakeful.ports.runtime_agents import RuntimeAgentRow
from wakeful.service.commands.agents import agent_named

ASIDE = ".deleted"
"""Beside the homes of agents: those of agents that were deleted."""
MOST_NAMED = 5


async def archive_agent(engine: Engine, name: str, *, by: str, reason: str = "") -> RuntimeAgentRow:
    """Raises AgentNotFound, or InvalidRequest with what is open."""
    await agent_named(engine.store, name)
    await _check_nothing_open(engine, name, "archived")
    now = engine.clock.now()
    archived = Fact(AgentArchived(archived_by=by, reason=reason), now)
    await engine.store.admit(name, [Fact(_stopped(by, reason or "archived"), now), archived])
    return await agent_named(engine.store, name)


async def delete_agent(engine: Engine, name: str, *, by: str, reason: str = "", place: str | None = None) -> None:
    """Raises AgentNotFound, or InvalidRequest with what is open, or with where the agent is defined.

    `place` is the file or the program that has it, where that is known.
    """
    row = await agent_named(engine.store, name)
    if row.source != "api" or place is not None:
        where = place or ("a file" if row.source == "file" else "a program")
        raise DefinedInCode(
            f"agent {name!r} is defined in {where}", f"Take it out there, and put it away: wakeful agent archive {name}"
        )
    if row.kind == "default":
        raise InvalidRequest(f"{name!r} is the default agent", f"Put it away instead: wakeful agent archive {name}")
    await _check_nothing_open(engine, name, "deleted")
    now = engine.clock.now()
    over = [
        Fact(TimerCancelled(timer_id=timer.timer_id, cancelled_by=by, reason="deleted"), now, timer.thread_id)
        for timer in await engine.store.timers(name)
        if timer.state == "armed"
    ]
    over += [
        Fact(TriggerRevoked(trigger_id=trigger.trigger_id, revoked_by=by, reason="deleted"), now)
        for trigger in await engine.store.triggers(name)
        if trigger.state == "active"
    ]
    deleted = Fact(AgentDeleted(deleted_by=by, reason=reason), now)
    await engine.store.admit(name, [*over, Fact(_stopped(by, "deleted"), now), deleted])
    await asyncio.to_thread(_move_aside, engine.agent_home(name), engine.clock.now())
    with contextlib.suppress(OSError):
        await drop_index(engine.store, name)


async def open_matters(engine: Engine, name: str) -> list[str]:
    """What of an agent is open, in words."""
    store = engine.store
    busy = await store.busy_threads(name)
    turns, queued = sum(each.turns for each in busy), sum(each.queued for each in busy)
    tasks = [task.task_id for task in await store.tasks_of(name) if not task.is_over]
    waits = [wait.wait_id for wait in await store.open_waits(name)]
    items = [item.work_item_id for item in await store.open_work_items(name, limit=MOST_NAMED + 1)]
    children = [child.agent_id for child in await store.children_of(name) if await _is_open(store, child)]
    found = [f"{turns} open turns"] if turns else []
    found += [f"{queued} queued messages"] if queued else []
    named = {"tasks": tasks, "waits": waits, "work items": items, "child agents": children}
    return found + [f"{what}: {_some(ids)}" for what, ids in named.items() if ids]


async def _is_open(store: Store, child: RuntimeAgentRow) -> bool:
    """A private child is over with its task; a public one lives until it is archived."""
    if child.archived_at is not None:
        return False
    if child.profile_preset != "private_child":
        return True
    return any(task.child is not None and task.child.agent_id == child.agent_id for task in await store.open_tasks())


def _some(ids: list[str]) -> str:
    more = len(ids) - MOST_NAMED
    return ", ".join(ids[:MOST_NAMED]) + (" and more" if more > 0 else "")


async def _check_nothing_open(engine: Engine, name: str, done: str) -> None:
    found = await open_matters(engine, name)
    if found:
        raise InvalidRequest(
            f"agent {name!r} cannot be {done} now: {'; '.join(found)}",
            f"Let it finish, or end it first: wakeful agent stop {name} cancels its turns.",
        )


def _stopped(by: str, reason: str) -> AgentStateChanged:
    return AgentStateChanged(control="stopped", changed_by=by, reason=reason)


def _move_aside(home: Path, now: int) -> None:
    """The folder is a person's to throw away."""
    if home.is_dir():
        aside = home.parent / ASIDE
        with contextlib.suppress(OSError):
            aside.mkdir(mode=0o700, exist_ok=True)
            home.rename(aside / f"{home.name}-{now}")
