"""What may be asked about everything that operators see: the feed over all agents, transcripts, an agent's own events.

`follow_feed` is the feed with what comes. A surface with many followers makes one `FeedReader` for all of them.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wakeful.service.operations.operation import OpenStore, Operation

if TYPE_CHECKING:
    from wakeful.service.queries.operator_feed import FeedReader
    from wakeful.views.presentation.display_modes import DisplayMode
    from wakeful.views.presentation.feed_entries import FeedEntry, TranscriptLine
    from wakeful.views.presentation.replayed_events import ReplayedEvent

_PRESENTATION = "wakeful.views.presentation"
PAGE = 100


@dataclass(frozen=True, slots=True)
class FeedQuery:
    """A page of the feed, the oldest first."""

    after: str | None = None
    """The cursor of the last entry that is known. None: from the oldest that is kept."""
    limit: int = PAGE
    display: "DisplayMode" = "verbose"


@dataclass(frozen=True, slots=True)
class TailQuery:
    """The newest entries of the feed, of one agent or of all."""

    agent: str | None = None
    limit: int = 20
    display: "DisplayMode" = "info"


@dataclass(frozen=True, slots=True)
class ReplayQuery:
    """Events of one agent."""

    agent: str
    after: int = 0
    """The `event_seq` of the last event that is known."""
    limit: int = PAGE


@dataclass(frozen=True, slots=True)
class TranscriptQuery:
    """The conversation of an agent with its operator."""

    agent: str
    thread: str | None = None
    turns: int = 20
    """How many of the newest turns."""


async def _feed(opened: OpenStore, asked: FeedQuery) -> "list[FeedEntry]":
    return await _reader(opened).page(asked.after, limit=asked.limit, display=asked.display)


async def _tail(opened: OpenStore, asked: TailQuery) -> "list[FeedEntry]":
    from wakeful.service.commands.agents import agent_named

    if asked.agent is not None:
        await agent_named(opened.store, asked.agent)
    return await _reader(opened).newest(asked.agent, limit=asked.limit, display=asked.display)


async def _replay(opened: OpenStore, asked: ReplayQuery) -> "list[ReplayedEvent]":
    from wakeful.service.commands.agents import agent_named
    from wakeful.service.queries.event_cursors import check_reached
    from wakeful.service.queries.operator_feed import EventPresenter

    await agent_named(opened.store, asked.agent)
    await check_reached(opened.store, asked.agent, asked.after)
    presenter = EventPresenter(opened.store, keys=opened.keys())
    facts = await opened.store.read(asked.agent, after=asked.after, limit=asked.limit)
    found, until = [], 0.0
    for recorded in facts:
        until = await opened.replays.turn(until)
        found.append(await presenter.present(recorded))
    return found


async def follow_events(opened: OpenStore, asked: ReplayQuery) -> "AsyncGenerator[ReplayedEvent, None]":
    """The events of an agent behind one of them, then those that come, each once. The limit is not looked at.

    Raises AgentNotFound, and CursorGone where the log does not reach that event.
    """
    from wakeful.service.commands.agents import agent_named
    from wakeful.service.queries.event_cursors import check_reached

    await agent_named(opened.store, asked.agent)
    await check_reached(opened.store, asked.agent, asked.after)
    async for event in opened.events_of(asked.agent).follow(asked.after):
        yield event


async def _transcript(opened: OpenStore, asked: TranscriptQuery) -> "list[TranscriptLine]":
    from wakeful.service.queries.agent_transcript import transcript_of

    return await transcript_of(opened.store, asked.agent, thread=asked.thread, turns=asked.turns, keys=opened.keys())


async def follow_feed(opened: OpenStore, asked: FeedQuery) -> "AsyncGenerator[FeedEntry, None]":
    """The feed behind a cursor, then what comes, each entry once. The limit is not looked at."""
    async for entry in _reader(opened).follow(asked.after, display=asked.display):
        yield entry


def _reader(opened: OpenStore) -> "FeedReader":
    return opened.feed


LIST_FEED = Operation("feed.list", "observe", FeedQuery, f"{_PRESENTATION}.feed_entries.FeedEntry", _feed, many=True)
SHOW_TAIL = Operation("feed.tail", "observe", TailQuery, f"{_PRESENTATION}.feed_entries.FeedEntry", _tail, many=True)
REPLAY_EVENTS = Operation(
    "runtime.events",
    "observe",
    ReplayQuery,
    f"{_PRESENTATION}.replayed_events.ReplayedEvent",
    _replay,
    many=True,
)
SHOW_TRANSCRIPT = Operation(
    "runtime.transcript",
    "observe",
    TranscriptQuery,
    f"{_PRESENTATION}.feed_entries.TranscriptLine",
    _transcript,
    many=True,
)
