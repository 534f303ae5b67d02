"""The feed over all agents, for readers: pages, and what is stored followed by what comes, each entry once.

A `FeedReader` may be shared by any number of followers. While somebody follows, one task reads what is new, once for
all of them; each takes it from memory at its own pace, and one that fell behind reads pages of the store. Nothing is
kept for a slow reader.
"""

import asyncio
import hashlib
from bisect import bisect_right
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from wakeful.contracts.envelope import StoredFact, named
from wakeful.contracts.errors import CursorGone, InvalidRequest
from wakeful.contracts.events import BriefCreated, TurnStarted, WorkItemCompleted
from wakeful.engine.brief_texts import brief_text
from wakeful.engine.turn_messages import admitted_message
from wakeful.ports import Store
from wakeful.ports.operator_feed import FEED, FeedRow
from wakeful.ports.retention import left_upto
from wakeful.service.queries.turns import EventReader
from wakeful.views.presentation.display_modes import DisplayMode, display_mode, is_shown
from wakeful.views.presentation.feed_entries import FeedEntry
from wakeful.views.presentation.replayed_events import ReplayedEvent, provenance_of, replayed

PAGE = 200
"""Rows that are read at once."""
RECENT = 256
"""Entries that are kept for those who follow: each holds its whole event, which may be large."""
TURNS = 256
"""Turns whose secrets are remembered, so that their facts are read once."""
LOOK_AGAIN_SECONDS = 30.0


def _count(limit: int) -> int:
    if limit < 1:
        raise InvalidRequest(f"limit={limit}", "Give a whole number, at least 1.")
    return limit


class _Entry(NamedTuple):
    position: int
    shown: FeedEntry


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


class FeedReader:
    """Reads one store's feed, for one reader or for many."""

    def __init__(self, store: Store, *, keys: Iterable[str] = (), recent: int = RECENT) -> None:
        self._store = store
        self._most = recent
        self._presenter = EventPresenter(store, keys=keys)
        self._tag = hashlib.sha256(store.runtime_id.encode()).hexdigest()[:8]
        self._followers = 0
        self._pump: asyncio.Task[None] | None = None
        self._recent: deque[_Entry] = deque()
        self._from = self._upto = 0
        """Every entry behind the first position and up to the second is in memory."""
        self._news = asyncio.Event()
        self._result_news = asyncio.Event()
        """For those who follow results alone: rows of rounds do not wake them."""
        self._failure: Exception | None = None

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
        return [entry.shown for entry in await self._entries(rows)]

    async def newest(
        self, agent: str | None = None, *, limit: int = PAGE, display: DisplayMode = "verbose"
    ) -> list[FeedEntry]:
        """The newest entries, of all agents or of one, the oldest of them first."""
        results = display_mode(display) == "info"
        rows = await self._store.newest_of_feed(agent, limit=_count(limit), results=results)
        return [entry.shown for entry in await self._entries(rows[::-1])]

    # --- following ---------------------------------------------------------------------------------------------------

    async def follow(self, after: str | None = None, *, display: DisplayMode = "verbose") -> AsyncIterator[FeedEntry]:
        """What is stored behind a cursor, then what comes: no gap, each once. Raises CursorGone."""
        mode = display_mode(display)
        results = mode == "info"
        position = await self._position(after)
        await self._join()
        try:
            while True:
                news, kept_from = self._result_news if results else self._news, self._from
                if self._failure is not None:
                    raise self._failure
                is_behind = position < kept_from
                found = await self._stored(position, results) if is_behind else self._in_memory(position)
                for entry in found:
                    position = entry.position
                    if is_shown(entry.shown.presentation, mode):
                        yield entry.shown
                if is_behind and len(found) < PAGE:
                    position = max(position, kept_from)  # nothing that is wanted stands before that
                elif not found:
                    await news.wait()
        finally:
            await self._leave()

    def _in_memory(self, position: int) -> list[_Entry]:
        if not self._recent or position >= self._upto:
            return []
        first = bisect_right(self._recent, position, key=lambda entry: entry.position)
        return [self._recent[place] for place in range(first, min(len(self._recent), first + PAGE))]

    async def _stored(self, position: int, results: bool) -> list[_Entry]:
        """The next page of a follower that is behind. Raises CursorGone where retention overtook it."""
        rows = await self._store.feed_after(position, limit=PAGE, results=results)
        await self._check(position)
        return await self._entries(rows)

    async def _join(self) -> None:
        self._followers += 1
        if self._pump is None:
            newest = await self._store.newest_of_feed(limit=1)
            if self._pump is None:  # another follower may have been faster
                self._from = self._upto = newest[0].position if newest else 0
                self._recent.clear()
                self._failure = None
                self._pump = asyncio.create_task(self._read_on())

    async def _leave(self) -> None:
        self._followers -= 1
        if not self._followers and self._pump is not None:
            pump, self._pump = self._pump, None
            pump.cancel()
            with suppress(asyncio.CancelledError):
                await pump

    async def _read_on(self) -> None:
        """Read what is new and tell those who wait, until nobody follows any more."""
        watch = self._store.watch_feed()
        try:
            while True:
                rows = await self._store.feed_after(self._upto, limit=PAGE)
                if rows:
                    self._recent.extend(await self._entries(rows))
                    self._upto = rows[-1].position
                    while len(self._recent) > self._most:
                        self._from = self._recent.popleft().position
                    self._tell(results=any(row.is_result for row in rows))
                if len(rows) < PAGE:
                    await watch.wait(timeout=LOOK_AGAIN_SECONDS)
        except Exception as problem:  # those who follow are told
            self._failure = problem
            self._tell(results=True)
        finally:
            watch.close()

    def _tell(self, *, results: bool) -> None:
        self._news.set()
        self._news = asyncio.Event()
        if results:
            self._result_news.set()
            self._result_news = asyncio.Event()

    async def _entries(self, rows: Sequence[FeedRow]) -> list[_Entry]:
        found: list[_Entry] = []
        for row in rows:
            facts = await self._store.read(row.agent_id, after=row.seq - 1, limit=1)
            for recorded in facts:
                event = await self._presenter.present(recorded)
                shown = FeedEntry(
                    cursor=self.cursor(row.position),
                    envelope=event.envelope,
                    presentation=event.presentation,
                    payload=event.payload,
                )
                found.append(_Entry(row.position, shown))
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
                f"{cursor!r} is no cursor of the feed of {self._store.location}", "Begin again without a cursor."
            )
        await self._check(int(number))
        return int(number)

    async def _check(self, position: int) -> None:
        """Raises CursorGone unless every row behind the position is there."""
        left = left_upto(await self._store.retention.retention_mark(FEED.name))
        if position < left:
            raise CursorGone(
                "rows of the feed behind this cursor have reached their age and left",
                f"Begin again without a cursor, or after {self.cursor(left)}; the logs of agents have everything.",
            )
        newest = await self._store.newest_of_feed(limit=1)
        if position > (newest[0].position if newest else left):
            raise CursorGone(
                "the feed does not reach this cursor: it is of a newer store", "Begin again without a cursor."
            )
