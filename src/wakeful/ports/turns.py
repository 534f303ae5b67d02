"""Turns: one row each, from what opened it to its end."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

from wakeful.ports.tables import Condition, Match, RowQuery, Rows, Table, TableIndex, Value

TurnState: TypeAlias = Literal["admitted", "running", "suspended", "completed", "incomplete", "failed", "cancelled"]
_PAGE = 200
_LAST = "\U0010ffff"
"""Sorts behind every other character."""
OPEN_STATES: frozenset[TurnState] = frozenset({"admitted", "running", "suspended"})


class TurnRow(NamedTuple):
    """What the store knows of a turn without folding anything."""

    turn_id: str
    agent_id: str
    agent_name: str
    thread_id: str
    state: TurnState
    first_seq: int
    """Its first event: the `message.admitted` that opened it, or its `turn.started`."""
    last_seq: int
    """Its newest event that changed this row; of an ended turn, its newest event."""
    window_from: int
    """The first event its conversation rests on."""
    turn_index: int
    """From 1 within its thread; 0 until it started."""
    key: str | None
    fingerprint: str
    prompt_preview: str
    waiting_for: tuple[str, ...]
    created_at: int
    ended_at: int | None
    heard: int = 0
    """Its newest event of a kind that others than its owner may write."""
    deleted_at: int | None = None
    """When its thread was deleted: no later turn of that name knows of it."""

    @property
    def is_open(self) -> bool:
        return self.state in OPEN_STATES


class TurnFilter(NamedTuple):
    """Which turns are meant; None: any."""

    state: TurnState | None = None
    agent_name: str | None = None
    thread_id: str | None = None
    prefix: str | None = None
    """The beginning of the id."""

    def fits(self, row: TurnRow) -> bool:
        return (
            self.state in (None, row.state)
            and self.agent_name in (None, row.agent_name)
            and self.thread_id in (None, row.thread_id)
            and (self.prefix is None or row.turn_id.startswith(self.prefix))
        )


_OPEN = Condition("ended_at", "IS NULL")
_ENDED = Condition("ended_at", "IS NOT NULL")
_THERE = Condition("deleted_at", "IS NULL")
_DELETED = Condition("deleted_at", "IS NOT NULL")
_BY_AGE = ("created_at", "agent_id", "first_seq")
TURN_OF_KEY = RowQuery(("turn_id",), equal=("key",), where=Condition("key", "IS NOT NULL"), served_by="turns_by_key")
TURNS_BY_AGE = RowQuery(_BY_AGE, served_by="turns_by_age")
OPEN_TURNS = RowQuery(_BY_AGE, where=_OPEN, served_by="turns_open")
TURNS_OF_AGENT = RowQuery(("first_seq",), equal=("agent_id",), served_by="turns_of_agent")
TURNS_OF_THREAD = RowQuery(("first_seq",), equal=("thread_id", "agent_id"), where=_THERE, served_by="turns_by_thread")
OPEN_TURNS_OF_THREAD = RowQuery(
    ("first_seq",), equal=("thread_id", "agent_id"), where=_OPEN, served_by="turns_open_in_thread"
)
THREAD_BY_LAST_EVENT = RowQuery(
    ("last_seq",), equal=("thread_id", "agent_id"), where=_THERE, served_by="turns_by_last_event"
)
THREAD_BY_AGENT = RowQuery(("agent_id", "first_seq"), equal=("thread_id",), where=_THERE, served_by="turns_by_thread")
TURNS_OF_NAME = RowQuery(_BY_AGE, equal=("agent_name",), served_by="turns_of_name")
ENDED_OF_NAME = RowQuery(
    ("ended_at", "turn_id"), equal=("agent_name",), where=_ENDED, served_by="turns_by_name_and_end"
)
TURNS_BY_END = RowQuery(("ended_at", "turn_id"), where=_ENDED, served_by="turns_by_end")
TURNS_BY_DELETION = RowQuery(("deleted_at", "turn_id"), where=_DELETED, served_by="turns_deleted")
DELETED_OF_THREAD = RowQuery(
    ("deleted_at", "first_seq"), equal=("thread_id", "agent_id"), where=_DELETED, served_by="turns_deleted_of_thread"
)
DELETED_BY_AGENT = RowQuery(
    ("agent_id", "deleted_at", "first_seq"),
    equal=("thread_id",),
    where=_DELETED,
    served_by="turns_deleted_of_thread",
)

TURNS = Table(
    "turns",
    TurnRow,
    key=("turn_id",),
    indexes=(
        TableIndex("turns_by_key", ("key",), where=Condition("key", "IS NOT NULL"), unique=True),
        TableIndex("turns_by_age", _BY_AGE),
        TableIndex("turns_open", _BY_AGE, where=_OPEN),
        TableIndex("turns_of_agent", ("agent_id", "first_seq")),
        TableIndex("turns_by_thread", ("thread_id", "agent_id", "first_seq"), where=_THERE),
        TableIndex("turns_open_in_thread", ("thread_id", "agent_id", "first_seq"), where=_OPEN),
        TableIndex("turns_by_last_event", ("thread_id", "agent_id", "last_seq"), where=_THERE),
        TableIndex("turns_of_name", ("agent_name", *_BY_AGE)),
        TableIndex("turns_by_name_and_end", ("agent_name", "ended_at"), where=_ENDED),
        TableIndex("turns_by_end", ("ended_at",), where=_ENDED),
        TableIndex("turns_deleted", ("deleted_at",), where=_DELETED),
        TableIndex("turns_deleted_of_thread", ("thread_id", "agent_id", "deleted_at", "first_seq"), where=_DELETED),
    ),
    queries=(
        TURN_OF_KEY,
        TURNS_BY_AGE,
        OPEN_TURNS,
        TURNS_OF_AGENT,
        TURNS_OF_THREAD,
        OPEN_TURNS_OF_THREAD,
        THREAD_BY_LAST_EVENT,
        THREAD_BY_AGENT,
        TURNS_OF_NAME,
        ENDED_OF_NAME,
        TURNS_BY_END,
        TURNS_BY_DELETION,
        DELETED_OF_THREAD,
        DELETED_BY_AGENT,
    ),
    fixed=("agent_id", "thread_id", "first_seq", "key", "fingerprint", "created_at"),
    numbered=True,
)


class Turns(Rows, Protocol):
    """Reads which turns there are."""

    async def turn(self, turn_id: str) -> TurnRow | None:
        return await self.get_row(TURNS, turn_id)

    async def turn_of_key(self, key: str) -> TurnRow | None:
        return next(iter(await self.list_rows(TURNS, TURN_OF_KEY, key)), None)

    async def count_turns(self) -> int:
        """How many there are, open and ended."""
        return await self.count_rows(TURNS)

    async def turns(self, *, open_only: bool = False, limit: int = _PAGE) -> list[TurnRow]:
        """The newest, newest first."""
        return await self.list_rows(TURNS, OPEN_TURNS if open_only else TURNS_BY_AGE, limit=limit, backwards=True)

    async def open_turns(self) -> AsyncIterator[TurnRow]:
        """All that have not ended, oldest first: page by page."""
        last: TurnRow | None = None
        while True:
            after = () if last is None else TURNS.values_of(last, OPEN_TURNS.order)
            page = await self.list_rows(TURNS, OPEN_TURNS, after=after, limit=_PAGE)
            for row in page:
                yield row
            if len(page) < _PAGE:
                return
            last = page[-1]
            await asyncio.sleep(0)

    async def find_turns(self, which: TurnFilter, *, limit: int, before: str | None = None) -> list[TurnRow]:
        """A page of the turns that fit, newest first; with `before`, of those older than the turn with that id."""
        if before is not None and await self.turn(before) is None:
            return []
        if which.prefix is not None:
            wanted = [Match({}, ("turn_id", which.prefix, f"{which.prefix}{_LAST}"))]
            wanted += [] if before is None else [Match({"turn_id": [before]})]
            rows = (await self.find_rows(TURNS, wanted, order=_BY_AGE))[::-1]
            older = rows[1 + [row.turn_id for row in rows].index(before) :] if before is not None else rows
            return [row for row in older if which.fits(row)][:limit]
        last = None if before is None else await self.turn(before)
        agents = [] if which.thread_id is None else await self.agents_of_thread(which.thread_id, limit=2)
        if which.thread_id is not None and len(agents) == 1 and (last is None or last.agent_id == agents[0]):
            return await _fitting(self, which, TURNS_OF_THREAD, (which.thread_id, agents[0]), last, limit)
        if which.state in OPEN_STATES:
            return await _fitting(self, which, OPEN_TURNS, (), last, limit)
        if which.agent_name is not None:
            return await _fitting(self, which, TURNS_OF_NAME, (which.agent_name,), last, limit)
        return await _fitting(self, which, TURNS_BY_AGE, (), last, limit)

    async def turns_of_agent(self, agent_id: str, *, limit: int, before: int | None = None) -> list[TurnRow]:
        """A page of the turns of one stream, newest first; with `before`, of those admitted before that event."""
        return await self.list_rows(TURNS, TURNS_OF_AGENT, agent_id, after=_place(before), limit=limit, backwards=True)

    async def ended_turns(self, agent_name: str, *, limit: int, before: TurnRow | None = None) -> list[TurnRow]:
        """A page of the turns that ended, of all agents of that name, last ended first; `before`: after that row."""
        place = () if before is None else (before.ended_at, before.turn_id)
        return await self.list_rows(TURNS, ENDED_OF_NAME, agent_name, after=place, limit=limit, backwards=True)

    async def turns_of_thread(
        self,
        agent_id: str,
        thread_id: str,
        *,
        open_only: bool = False,
        last: int | None = None,
        before: int | None = None,
    ) -> list[TurnRow]:
        """Oldest first; with `last`, so many of the newest; with `before`, of those admitted before that event."""
        query = OPEN_TURNS_OF_THREAD if open_only else TURNS_OF_THREAD
        found = await self.list_rows(
            TURNS, query, thread_id, agent_id, after=_place(before), limit=last, backwards=True
        )
        return found[::-1]

    async def deleted_turns(self, agent_id: str, thread_id: str) -> list[TurnRow]:
        """Those that went with the newest deletion of a thread of that name, oldest first."""
        query = DELETED_OF_THREAD
        newest = await self.list_rows(TURNS, query, thread_id, agent_id, limit=1, backwards=True)
        place = [(row.deleted_at or 0) - 1 for row in newest]
        return await self.list_rows(TURNS, query, thread_id, agent_id, after=place) if newest else []

    async def turns_reaching_past(self, agent_id: str, thread_id: str, seq: int) -> list[TurnRow]:
        """The turns of a thread that may have something after an event, oldest first: open ones may, whatever
        their rows say."""
        if not seq:
            return await self.turns_of_thread(agent_id, thread_id)
        # Open ones first: one that ends meanwhile is found by its last event.
        rows = {row.turn_id: row for row in await self.turns_of_thread(agent_id, thread_id, open_only=True)}
        late = await self.list_rows(TURNS, THREAD_BY_LAST_EVENT, thread_id, agent_id, after=(seq,))
        rows |= {row.turn_id: row for row in late}
        return sorted(rows.values(), key=lambda row: row.first_seq)

    async def agents_of_thread(self, thread_id: str, *, limit: int, deleted: bool = False) -> list[str]:
        """The agents that had a turn in a thread of that name, in the order in which they came to this store; with
        `deleted`, in one that was deleted."""
        query = DELETED_BY_AGENT if deleted else THREAD_BY_AGENT
        found: list[str] = []
        while len(found) < limit:
            page = await self.list_rows(TURNS, query, thread_id, after=found[-1:], limit=1)
            if not page:
                break
            found.append(page[0].agent_id)
        return found


def _place(before: int | None) -> Sequence[Value]:
    return () if before is None else (before,)


async def _fitting(
    turns: Rows, which: TurnFilter, query: RowQuery, equal: Sequence[Value], last: TurnRow | None, limit: int
) -> list[TurnRow]:
    """Those of a query that fit, newest first: page by page, and no more than it takes."""
    found: list[TurnRow] = []
    while len(found) < limit:
        after = () if last is None else TURNS.values_of(last, query.order)
        page = await turns.list_rows(TURNS, query, *equal, after=after, limit=_PAGE, backwards=True)
        found += [row for row in page if which.fits(row)]
        if len(page) < _PAGE:
            break
        last = page[-1]
        await asyncio.sleep(0)  # whoever shares the loop has a turn
    return found[:limit]
