"""Agents of a runtime for readers: what each is, and how it stands now. Every word of it follows from rows."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from wakeful.contracts.errors import CursorGone
from wakeful.contracts.file_problems import FileProblem
from wakeful.engine.run_request import Engine
from wakeful.ports import Store
from wakeful.ports.mailbox import BusyThread
from wakeful.ports.notices import RuntimeHoldRow
from wakeful.ports.runtime_agents import RUNTIME_AGENTS, RuntimeAgentRow
from wakeful.ports.triggers import RefusedInputRow
from wakeful.ports.waits import WaitRow
from wakeful.runtime.refusals import by_reason
from wakeful.service.commands.agents import agent_named
from wakeful.service.file_reloads import file_problems
from wakeful.views.agent_state import LifeStatus, StatusFacts, status_of, waited_for
from wakeful.views.runtime_records import AgentRecord

STEP = 500
"""Agents that are read at once where a page of them is asked for."""
Mine = TypeVar("Mine", BusyThread, WaitRow, RefusedInputRow)


def is_listed(row: RuntimeAgentRow) -> bool:
    """Is it shown where all agents are? A private one belongs to whoever made it, and is shown by its name."""
    return row.visibility == "public" and row.archived_at is None


async def agent_record(engine: Engine, name: str) -> AgentRecord:
    """One agent, private ones as well. Raises AgentNotFound."""
    return await record_of(engine, await agent_named(engine.store, name))


async def record_of(engine: Engine, row: RuntimeAgentRow) -> AgentRecord:
    """An agent whose row is at hand."""
    busy, waits = await engine.store.busy_threads(row.agent_id), await engine.store.open_waits(row.agent_id)
    refused = await engine.store.refused_input(row.agent_id)
    problems = await file_problems(engine.store)
    hold = await engine.store.runtime_hold()
    return _record(engine, row, await _life(engine, row, busy, waits), refused, problems, hold)


async def agent_records(
    engine: Engine,
    *,
    private: bool = False,
    archived: bool = False,
    after: str | None = None,
    limit: int | None = None,
) -> list[AgentRecord]:
    """The agents, the oldest first: those that are listed, and with them private or archived ones. Raises CursorGone
    for an `after` that never was."""
    store = engine.store

    def is_meant(row: RuntimeAgentRow) -> bool:
        return is_listed(row) or (private and row.archived_at is None) or (archived and row.archived_at is not None)

    rows = await page_of_agents(store, is_meant, after, limit)
    lives = await lives_of(engine, rows, is_page=limit is not None)
    refused = _by_agent(await store.refused_input())
    problems = await file_problems(store)
    hold = await store.runtime_hold()
    return [_record(engine, row, lives[row.agent_id], refused.get(row.agent_id, ()), problems, hold) for row in rows]


class AgentLifeNow(NamedTuple):
    """How an agent stands."""

    status: LifeStatus
    queued: int
    """Messages that no turn has taken."""
    waiting_for: str
    """The provider that its turns wait for."""


async def lives_of(engine: Engine, rows: Sequence[RuntimeAgentRow], *, is_page: bool) -> dict[str, AgentLifeNow]:
    """How agents stand, by name. For a page of them, what is read is about these alone."""
    store = engine.store
    busy: dict[str, list[BusyThread]] = {}
    waits: dict[str, list[WaitRow]] = {}
    if not is_page:
        busy, waits = _by_agent(await store.busy_threads()), _by_agent(await store.open_waits())
    found = {}
    for row in rows:
        name = row.agent_id
        if is_page:
            busy[name], waits[name] = await store.busy_threads(name), await store.open_waits(name)
        found[name] = await _life(engine, row, busy.get(name, []), waits.get(name, []))
    return found


async def page_of_agents(
    store: Store, is_meant: Callable[[RuntimeAgentRow], bool], after: str | None, limit: int | None
) -> list[RuntimeAgentRow]:
    """Those that are meant, the oldest first, behind one of them, which may have been deleted since. Raises
    CursorGone for one that never was."""
    last = None if after is None else await store.get_row(RUNTIME_AGENTS, after)
    if after is not None and last is None:
        raise CursorGone(f"there is no agent {after!r} to continue after", "Begin again with the oldest.")
    found: list[RuntimeAgentRow] = []
    while True:
        page = await store.runtime_agents(after=last, limit=None if limit is None else STEP)
        found += [row for row in page if is_meant(row)]
        if limit is None or len(page) < STEP or len(found) >= limit:
            return found[:limit]
        last = page[-1]


async def running_threads(engine: Engine, busy: Iterable[BusyThread]) -> list[BusyThread]:
    """Those with a turn that somebody runs. An open turn whose thread nobody holds was cut off, or rests."""
    return [each for each in busy if each.turns and await engine.store.is_held(each.agent_id, each.thread_id)]


async def providers_waited_for(store: Store, busy: Iterable[BusyThread]) -> list[str]:
    """Those that do not answer the turns of these threads."""
    wakes = [wake for each in busy if each.turns for wake in await store.wakes_of_thread(each.agent_id, each.thread_id)]
    return [wake.cause_id for wake in wakes if wake.cause == "provider"]


async def _life(
    engine: Engine, row: RuntimeAgentRow, busy: Sequence[BusyThread], waits: Sequence[WaitRow]
) -> AgentLifeNow:
    status = await _status(engine, row, busy, waits)
    providers = await providers_waited_for(engine.store, busy)
    return AgentLifeNow(status, sum(thread.queued for thread in busy), waited_for(status, providers))


async def _status(
    engine: Engine, row: RuntimeAgentRow, busy: Sequence[BusyThread], waits: Sequence[WaitRow]
) -> LifeStatus:
    running = row.control == "running" and await running_threads(engine, busy)
    # An agent that another one made has its maker's definition of the moment, and no revision of its own: it is there
    # as soon as it has had a turn.
    is_there = bool(row.revision or running or await engine.store.turns_of_agent(row.agent_id, limit=1))
    return status_of(StatusFacts(row.control, is_there, bool(running), [wait.wake for wait in waits]))


def _by_agent(rows: Sequence[Mine]) -> dict[str, list[Mine]]:
    found: dict[str, list[Mine]] = {}
    for row in rows:
        found.setdefault(row.agent_id, []).append(row)
    return found


def _record(
    engine: Engine,
    row: RuntimeAgentRow,
    life: AgentLifeNow,
    refused: Sequence[RefusedInputRow],
    problems: Sequence[FileProblem],
    hold: RuntimeHoldRow | None,
) -> AgentRecord:
    return AgentRecord(
        agent=row.agent_id,
        agent_home=str(engine.agent_home(row.agent_id)),
        status=life.status,
        waiting_for=life.waiting_for,
        kind=row.kind,
        visibility=row.visibility,
        ownership=row.ownership,
        profile_preset=row.profile_preset,
        lineage_parent_agent_id=row.parent,
        source=row.source,
        revision=row.revision,
        created_at=row.created_at / 1e6,
        revised_at=None if row.revised_at is None else row.revised_at / 1e6,
        control=row.control,
        cause=row.cause,
        changed_by=row.changed_by,
        changed_at=row.changed_at / 1e6,
        reason=row.reason,
        resumes_at=None if row.resumes_at is None else row.resumes_at / 1e6,
        archived_at=None if row.archived_at is None else row.archived_at / 1e6,
        hint=_hint(row, hold),
        refused=by_reason(refused),
        problems=tuple(each for each in problems if each.agent == row.agent_id and row.source == "file"),
    )


def _hint(row: RuntimeAgentRow, hold: RuntimeHoldRow | None) -> str:
    match row.control:
        case "running" if hold is not None and hold.control != "running":
            return f"Everything is {hold.control}, by {hold.changed_by}. To let it run: wakeful resume --all"
        case "running":
            return ""
        case "paused":
            return f"It keeps what is sent to it. To let it run: wakeful agent resume {row.agent_id}"
        case "stopped":
            told = "It refuses messages, and waking it changes nothing."
            if row.archived_at is not None:
                told = "It was archived, and does nothing."
            return f"{told} To let it run: wakeful agent resume {row.agent_id}"
