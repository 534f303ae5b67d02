"""The feed over all agents, for readers: pages, and what is stored followed by what comes, each entry once.

A `FeedReader` may be shared by any number of followers, and so may an `AgentEvents`: see `shared_tails`.
"""

import hashlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import aclosing
from typing import Any

from wakeful.contracts.envelope import StoredFact, named
from wakeful.contracts.errors import CursorGone, InvalidRequest, StoreDamaged
from wakeful.contracts.events import BriefCreated, TurnStarted, WorkItemCompleted
from wakeful.engine.brief_texts import brief_text
from wakeful.engine.turn_messages import admitted_message
from wakeful.ports import Store, Watch
from wakeful.ports.operator_feed import FEED, FeedRow
from wakeful.ports.retention import left_upto
from wakeful.service.queries.replay_queue import ReplayQueue
from wakeful.service.queries.shared_tails import PAGE, RECENT, SharedTail, TailEntry
from wakeful.service.queries.turns import EventReader
from wakeful.views.presentation.display_modes import DisplayMode, display_mode, is_shown
from wakeful.views.presentation.feed_entries import FeedEntry
from wakeful.views.presentation.placements import Placement
from wakeful.views.presentation.replayed_events import ReplayedEvent, provenance_of, replayed, unreadable

TURNS = 256
"""Turns whose secrets are remembered, so that their facts are read once."""


def _count(limit: int) -> int:
    if limit < 1:
        raise InvalidRequest(f"limit={limit}", "Give a whole number, at least 1.")
    return limit


class _Turn:
    """What is known of a turn whose events are shown: its secrets, and where its message came from."""

    def __init__(self, reader: EventReader) -> None:
        self.reader = reader
        self.upto = 0
        self.provenance: dict[str, Any] = {}


class EventPresenter:
    """Stored facts of any agents as replayed events, in any order: secrets of their turns are learned first."""

    def __init__(self, store: Store, *, keys: Iterable[str] = ()) -> None:
        self._store = store
        self._keys = tuple(keys)
        self._turns: OrderedDict[str, _Turn] = OrderedDict()

    async def present(self, recorded: StoredFact) -> ReplayedEvent:
        """One fact."""
        turn = await self._turn(recorded)
        event = await turn.reader.read(recorded)
        words = turn.reader.secrets.hide(await self._words(recorded))
        return replayed(event, of_turn=turn.provenance, words=words)

    async def _words(self, recorded: StoredFact) -> str:
        """Those of a brief or a report, from the event that holds them."""
        event = recorded.fact.event
        if isinstance(event, BriefCreated | WorkItemCompleted) and event.text_ref is not None:
            return await brief_text(self._store, named(event.text_ref, recorded.agent_id, recorded.seq))
        return event.text if isinstance(event, BriefCreated) else ""

    async def _turn(self, recorded: StoredFact) -> _Turn:
        name = recorded.fact.turn_id
        if name is None:
            return _Turn(EventReader(self._store, keys=self._keys))
        turn = self._turns.pop(name, None) or _Turn(EventReader(self._store, keys=self._keys))
        self._turns[name] = turn
        while len(self._turns) > TURNS:
            self._turns.popitem(last=False)
        if turn.upto < recorded.seq:
            facts = await self._store.read(recorded.agent_id, after=turn.upto, turn_id=name)
            await turn.reader.learn(facts)
            turn.upto = max([turn.upto, recorded.seq, *(each.seq for each in facts)])
            await self._learn_provenance(turn, facts)
        return turn

    async def _learn_provenance(self, turn: _Turn, facts: Sequence[StoredFact]) -> None:
        for event in (each.fact.event for each in facts):
            if isinstance(event, TurnStarted) and event.message_ids:
                message = await admitted_message(self._store, event.message_ids[0])
                if message is not None:
                    turn.provenance = provenance_of((await turn.reader.read(message)).payload)


class FeedReader(SharedTail[FeedRow, FeedEntry]):
    """Reads one store's feed, for one reader or for many."""

    def __init__(
        self, store: Store, *, keys: Iterable[str] = (), recent: int = RECENT, replays: ReplayQueue | None = None
    ) -> None:
        super().__init__(recent, replays)
        self._store = store
        self._presenter = EventPresenter(store, keys=keys)
        self._tag = hashlib.sha256(store.runtime_id.encode()).hexdigest()[:8]

    # --- pages -------------------------------------------------------------------------------------------------------

    async def page(
        self, after: str | None = None, *, limit: int = PAGE, display: DisplayMode = "verbose"
    ) -> list[FeedEntry]:
        """The next entries behind a cursor, the oldest first; without one, from the oldest that is kept on.

        Raises CursorGone.
        """
        results = display_mode(display) == "info"
        position = await self._position(after)
        rows = await self._store.feed_after(position, limit=_count(limit), results=results)
        return await self._shown(rows)

    async def newest(
        self, agent: str | None = None, *, limit: int = PAGE, display: DisplayMode = "verbose"
    ) -> list[FeedEntry]:
        """The newest entries, of all agents or of one, the oldest of them first."""
        results = display_mode(display) == "info"
        rows = await self._store.newest_of_feed(agent, limit=_count(limit), results=results)
        return await self._shown(rows[::-1])

    # --- following ---------------------------------------------------------------------------------------------------

    async def follow(self, after: str | None = None, *, display: DisplayMode = "verbose") -> AsyncIterator[FeedEntry]:
        """What is stored behind a cursor, then what comes: no gap, each once. Raises CursorGone."""
        mode = display_mode(display)
        followed = self._follow(await self._position(after), results=mode == "info")
        async with aclosing(followed):
            async for entry in followed:
                if is_shown(entry.shown.presentation, mode):
                    yield entry.shown

    async def _newest(self) -> int:
        newest = await self._store.newest_of_feed(limit=1)
        return newest[0].position if newest else 0

    async def _rows(self, position: int, *, limit: int, results: bool = False) -> Sequence[FeedRow]:
        return await self._store.feed_after(position, limit=limit, results=results)

    def _position_of(self, row: FeedRow) -> int:
        return row.position

    def _watch(self) -> Watch:
        return self._store.watch_feed()

    async def _entry(self, row: FeedRow) -> "TailEntry[FeedEntry] | None":
        for event in await self._event(row):
            shown = FeedEntry(
                cursor=self.cursor(row.position),
                envelope=event.envelope,
                presentation=event.presentation,
                payload=event.payload,
            )
            return TailEntry(row.position, shown, row.is_result)
        return None

    async def _event(self, row: FeedRow) -> "list[ReplayedEvent]":
        """What stands there; none where it is gone. A log that is damaged ends nobody's feed: it says so itself."""
        try:
            found = await self._store.read(row.agent_id, after=row.seq - 1, limit=1)
            return [await self._presenter.present(recorded) for recorded in found]
        except StoreDamaged as damage:
            at = Placement(row.visibility, row.category)
            return [unreadable(row.agent_id, row.seq, row.at, at, damage.message)]

    async def _shown(self, rows: Sequence[FeedRow]) -> list[FeedEntry]:
        found, until = [], 0.0
        for row in rows:
            until = await self._replays.turn(until)
            if (entry := await self._entry(row)) is not None:
                found.append(entry.shown)
        return found

    # --- cursors -----------------------------------------------------------------------------------------------------

    def cursor(self, position: int) -> str:
        """The name of a position, for this store alone."""
        return f"feed-{self._tag}-{position}"

    async def _position(self, cursor: str | None) -> int:
        if cursor is None:
            return left_upto(await self._store.retention.retention_mark(FEED.name))
        tag, _, number = cursor.removeprefix("feed-").partition("-")
        if tag != self._tag or not (number.isascii() and number.isdigit()) or len(number) > 18:
            raise CursorGone(
                f"{cursor!r} is not a cursor of the feed of {self._store.location}", "Begin again without a cursor."
            )
        await self._check(int(number))
        return int(number)

    async def _check(self, position: int) -> None:
        """Raises CursorGone unless every row behind the position is there."""
        left = left_upto(await self._store.retention.retention_mark(FEED.name))
        if position < left:
            raise CursorGone(
                "rows of the feed after this cursor have expired",
                f"Begin again without a cursor, or after {self.cursor(left)}; the logs of agents have everything.",
            )
        newest = await self._store.newest_of_feed(limit=1)
        if position > (newest[0].position if newest else left):
            raise CursorGone(
                "the feed does not reach this cursor: it is of a newer store", "Begin again without a cursor."
            )


class AgentEvents(SharedTail[StoredFact, ReplayedEvent]):
    """Reads the log of one agent, for one reader or for many. Positions are numbers of events."""

    def __init__(
        self,
        store: Store,
        agent: str,
        *,
        keys: Iterable[str] = (),
        recent: int = RECENT,
        replays: ReplayQueue | None = None,
    ) -> None:
        super().__init__(recent, replays)
        self._store, self._agent = store, agent
        self._presenter = EventPresenter(store, keys=keys)

    async def follow(self, after: int) -> AsyncIterator[ReplayedEvent]:
        """What is stored behind an event, then what comes: no gap, each once."""
        followed = self._follow(after)
        async with aclosing(followed):
            async for entry in followed:
                yield entry.shown

    async def _newest(self) -> int:
        return await self._store.head(self._agent)

    async def _rows(self, position: int, *, limit: int, results: bool = False) -> Sequence[StoredFact]:
        return await self._store.read(self._agent, after=position, limit=limit)

    async def _entry(self, row: StoredFact) -> "TailEntry[ReplayedEvent] | None":
        return TailEntry(row.seq, await self._presenter.present(row))

    def _position_of(self, row: StoredFact) -> int:
        return row.seq

    def _watch(self) -> Watch:
        return self._store.watch(self._agent)
