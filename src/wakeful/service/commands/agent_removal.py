"""Put an agent away, or delete it. Neither is done while something of it is open: that is told, and has to end first.

Both are facts. An archived agent is stopped and in no listing, and `resume` brings it back. A deleted one is no more:
its log stays for audits, its home is moved aside, and its name is not given again. The index of its memory is taken
away; where a kill comes before it, retention does it.
"""

import asyncio
import contextlib
from pathlib import Path
from typing import NamedTuple

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import DefinedInCode, EventRefused, InvalidRequest
from wakeful.contracts.events import (
    AgentArchived,
    AgentDeleted,
    AgentStateChanged,
    TimerCancelled,
    TriggerRevoked,
    WaitCancelled,
)
from wakeful.engine.agent_memory import drop_index
from wakeful.engine.run_request import Engine
from wakeful.ports import Store
from wakeful.ports.runtime_agents import RuntimeAgentRow
from wakeful.service.commands.agents import agent_named

ASIDE = ".deleted"
"""Beside the homes of agents: those of agents that were deleted."""
MOST_NAMED = 5
MOST_TRIES = 3
"""To delete an agent that is spoken to meanwhile."""


async def archive_agent(engine: Engine, name: str, *, by: str, reason: str = "") -> RuntimeAgentRow:
    """Raises AgentNotFound, or InvalidRequest with what is open. Its due times are kept, those of waits no less than
    those of timers: what was due meanwhile is told when it runs again."""
    await agent_named(engine.store, name)
    _check_nothing_open(name, "archived", await _open_matters(engine.store, name))
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
            f"agent {name!r} is defined in {where}", f"Remove it there, then archive it: wakeful agent archive {name}"
        )
    if row.kind == "default":
        raise InvalidRequest(f"{name!r} is the default agent", f"Archive it instead: wakeful agent archive {name}")
    for tries_left in reversed(range(MOST_TRIES)):
        await agent_named(engine.store, name)
        _check_nothing_open(name, "deleted", await _open_matters(engine.store, name, hints=True))
        try:
            await engine.store.admit(name, await _end_of(engine, name, by, reason))
            break
        except EventRefused:  # a message came meanwhile, or somebody else deleted it
            if not tries_left:
                raise
    await asyncio.to_thread(_move_aside, engine.agent_home(name), engine.clock.now())
    with contextlib.suppress(OSError):
        await drop_index(engine.store, name)


async def _end_of(engine: Engine, name: str, by: str, reason: str) -> list[Fact]:
    """The end of an agent, and of everything that would be due."""
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
    over += [
        Fact(WaitCancelled(wait_id=wait.wait_id, cancelled_by=by, reason="the agent was deleted"), now, wait.thread_id)
        for wait in await engine.store.open_waits(name)
    ]
    return [
        *over,
        Fact(_stopped(by, "deleted"), now),
        Fact(AgentDeleted(deleted_by=by, reason=reason), now),
    ]


class _OpenMatter(NamedTuple):
    """What is open, and how that is ended."""

    words: str
    way: str


async def _open_matters(store: Store, name: str, *, hints: bool = False) -> list[_OpenMatter]:
    """What of an agent is open; with `hints`, also that something changed which it has not looked at."""
    busy = await store.busy_threads(name)
    turns = [
        turn.turn_id
        for thread in busy
        if thread.turns
        for turn in await store.turns_of_thread(name, thread.thread_id, open_only=True)
    ]
    wakes = await store.wakes_of(name)
    tasks = [task.task_id for task in await store.tasks_of(name) if not task.is_over]
    items = [item.work_item_id for item in await store.open_work_items(name, limit=MOST_NAMED + 1)]
    children = [child.agent_id for child in await store.children_of(name) if await _is_open(store, child)]
    runs = f"wakeful agent resume {name}, whose turns take them"
    asked = f'wakeful send {name} "Complete your work items, or drop them."'
    listed: list[tuple[str, str, int | list[str]]] = [
        ("open turns", "wakeful cancel TURN", turns),
        ("queued messages", runs, sum(thread.queued for thread in busy)),
        ("deferred messages", runs, [wake.subject for wake in wakes if wake.cause == "deferral"]),
        ("pending hints", runs, len([wake for wake in wakes if hints and wake.cause == "hint"])),
        ("tasks", "wakeful task stop TASK", tasks),
        ("work items", asked, items),
        ("child agents", "wakeful agent stop CHILD, or archive those that are public", children),
    ]
    return [
        _OpenMatter(f"{found} {what}" if isinstance(found, int) else f"{what}: {_some(found)}", way)
        for what, way, found in listed
        if found
    ]


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


def _check_nothing_open(name: str, done: str, found: list[_OpenMatter]) -> None:
    if found:
        raise InvalidRequest(
            f"agent {name!r} cannot be {done} now: {'; '.join(each.words for each in found)}",
            "Let it finish, or end it first: " + "; ".join(dict.fromkeys(each.way for each in found)),
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
