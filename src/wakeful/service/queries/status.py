"""How the agents of a store stand, from the rows that the store keeps of them.

An agent is known by its name: what its threads and its single runs have used is added up. No more turns are read than
are open, and those that tell what the last one used.
"""

from collections import Counter
from typing import Any

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.events import TurnCompleted
from wakeful.contracts.models import AgentTokenUsageSummary, TokenUsage
from wakeful.ports import Log, Store, TurnRow
from wakeful.ports.mailbox import BusyThread
from wakeful.service.queries.known_agents import names_like
from wakeful.views.agent_status import AgentStatus, MessageBehind, WaitingThread

PAGE = 20
"""So many turns that ended are looked up at a time: the newest one answers, unless its provider reported nothing."""

SHOWN = 5
"""Messages that are named of those that queue in a thread."""

TAIL = 20
"""A turn's end is among so many of its stream's newest events, unless much was written to it later."""


async def agents_status(
    store: Store, agent: str | None = None, *, after: str | None = None, limit: int | None = None
) -> list[AgentStatus]:
    """Every agent that had a turn, by name; or one by its name, private agents of a runtime and those without a turn
    too. Raises InvalidConfig for one that there is not."""
    names = [agent] if agent is not None else await _listed(store, after, limit)
    if agent is not None and not await store.agents_of_name(agent) and await store.runtime_agent(agent) is None:
        raise InvalidConfig(f"there is no agent {agent!r} in {store.location}", await names_like(store, agent))
    is_open = Counter([row.agent_name async for row in store.open_turns()])
    actions = Counter(row.agent_name for row in await store.actions(pending_only=True))
    queued = Counter[str]()
    waiting: list[WaitingThread] = []
    for busy in await store.busy_threads():
        thread = await store.thread(busy.agent_id, busy.thread_id) if busy.queued else None
        name = thread.agent_name if thread is not None else ""
        queued[name] += busy.queued
        if name == agent and busy.queued and busy.turns:
            waiting += await _waiting(store, busy)
    turns = Counter(row.turn_id for row in await store.unknown())
    unknown = Counter[str]()
    for turn_id, count in turns.items():
        row = await store.turn(turn_id)
        unknown[row.agent_name if row is not None else ""] += count
    return [
        AgentStatus(
            agent=name,
            open_turns=is_open[name],
            queued_messages=queued[name],
            waiting_threads=tuple(waiting),
            pending_actions=actions[name],
            unknown_outcomes=unknown[name],
            token_usage=await _usage(store, name),
            **await _revision(store, name),
        )
        for name in names
    ]


async def _listed(store: Store, after: str | None, limit: int | None) -> list[str]:
    """Names in order, behind one of them; those of private agents are left out."""
    found: list[str] = []
    while limit is None or len(found) < limit:
        page = await store.agent_names(after=after, limit=limit)
        for name in page:
            row = await store.runtime_agent(name)
            if row is None or row.visibility == "public":
                found.append(name)
        if limit is None or len(page) < limit:
            break
        after = page[-1]
    return found[:limit]


async def _waiting(store: Store, busy: BusyThread) -> list[WaitingThread]:
    """What queues behind the turn of a thread, where that turn waits for somebody."""
    turns = await store.turns_of_thread(busy.agent_id, busy.thread_id, open_only=True)
    resting = next((turn for turn in turns if turn.state == "suspended"), None)
    if resting is None:
        return []
    shown = await messages_behind(store, busy.agent_id, busy.thread_id)
    return [WaitingThread(thread=busy.thread_id, turn_id=resting.turn_id, queued=busy.queued, messages=shown)]


async def messages_behind(store: Store, agent_id: str, thread_id: str) -> tuple[MessageBehind, ...]:
    """The first messages that queue in a thread."""
    rows = await store.queued(agent_id, thread_id, limit=SHOWN)
    return tuple(
        MessageBehind(message_id=row.message_id, kind=row.kind, queued_at=row.admitted_at / 1e6) for row in rows
    )


async def _revision(store: Store, name: str) -> dict[str, Any]:
    """Since when an agent of a runtime is as it is, and how often it ran since."""
    newest = await store.agent_revisions(name, limit=1)
    if not newest or await store.runtime_agent(name) is None:
        return {}
    turns = (await store.figures_of(name)).turns
    return {"revised_at": newest[0].revised_at / 1e6, "turns_since_revision": turns - newest[0].turns_before}


async def _usage(store: Store, name: str) -> AgentTokenUsageSummary:
    used = await store.usage_of_name(name)
    last = used.last_turn if used.reporting < 2 else await _last(store, name)
    return AgentTokenUsageSummary(total=used.total, total_model_rounds=used.rounds, last_turn=last)


async def _last(store: Store, name: str) -> TokenUsage | None:
    """Of the turns that completed, in whichever conversation, the last one with token data."""
    page: list[TurnRow] = await store.ended_turns(name, limit=1)
    while page:
        for row in page:
            if row.state == "completed" and (tokens := await _tokens(store, row)) is not None:
                return tokens
        page = await store.ended_turns(name, limit=PAGE, before=page[-1])
    return None


async def _tokens(store: Log, row: TurnRow) -> TokenUsage | None:
    for after in (max(0, row.last_seq - TAIL), 0):
        for entry in await store.read(row.agent_id, after=after, turn_id=row.turn_id):
            event = entry.fact.event
            if isinstance(event, TurnCompleted):
                return event.token_usage
    return None
