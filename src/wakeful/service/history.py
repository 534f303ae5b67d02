"""Operations that read the past of a store: turns, threads, messages, artifacts, and the events of a turn in pages."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wakeful.service.operation import OpenStore, Operation

if TYPE_CHECKING:
    from wakeful.contracts.envelope import RuntimeEvent
    from wakeful.ports import TurnState
    from wakeful.views.store_records import Artifact, ArtifactContent, ThreadRecord, TurnRecord
    from wakeful.views.tree import ThreadMessage

PAGE = 100


@dataclass(frozen=True, slots=True)
class TurnQuery:
    """Which turns, and which page of them."""

    state: "TurnState | None" = None
    thread: str | None = None
    agent: str | None = None
    key: str | None = None
    limit: int = PAGE
    before: str | None = None
    """The last turn of the page before."""


@dataclass(frozen=True, slots=True)
class OneTurn:
    """A turn by its id, its key, or enough of the beginning of its id; None: the newest."""

    turn: str | None = None


@dataclass(frozen=True, slots=True)
class ThreadQuery:
    """The threads of all agents, or of one."""

    agent: str | None = None
    limit: int = PAGE


@dataclass(frozen=True, slots=True)
class MessageQuery:
    """The newest messages of a thread."""

    thread: str
    agent: str | None = None
    limit: int = PAGE
    before: int | None = None
    """The `event_seq` of the first message of the page after."""


@dataclass(frozen=True, slots=True)
class ArtifactName:
    """An artifact by its id or enough of its beginning, and its turn where that is known."""

    artifact: str
    turn: str | None = None
    reveal: bool = False
    """Show secrets instead of [redacted]."""


@dataclass(frozen=True, slots=True)
class EventQuery:
    """The events of a turn after a sequence number."""

    turn: str | None = None
    after: int = 0
    limit: int | None = None
    reveal: bool = False


async def _turns(opened: OpenStore, asked: TurnQuery) -> "list[TurnRecord]":
    from wakeful.ports import TurnFilter
    from wakeful.service.queries.history import turns

    which = TurnFilter(asked.state, asked.agent, asked.thread)
    return await turns(opened.store, which, asked.key, asked.limit, asked.before)


async def _turn(opened: OpenStore, asked: OneTurn) -> "TurnRecord":
    from wakeful.service.queries.history import turn_record
    from wakeful.service.queries.turns import find_turn

    return turn_record(await find_turn(opened.store, asked.turn))


async def _threads(opened: OpenStore, asked: ThreadQuery) -> "list[ThreadRecord]":
    from wakeful.service.queries.history import thread_record

    return [thread_record(row) for row in await opened.store.threads(asked.agent, limit=asked.limit)]


async def _messages(opened: OpenStore, asked: MessageQuery) -> "list[ThreadMessage]":
    from wakeful.service.queries.history import messages

    return await messages(opened.store, asked.thread, asked.agent, asked.limit, asked.before, keys=opened.keys())


async def _artifacts(opened: OpenStore, asked: OneTurn) -> "list[Artifact]":
    from wakeful.service.queries.artifacts import list_artifacts

    return await list_artifacts(opened.store, asked.turn, keys=opened.keys())


async def _artifact(opened: OpenStore, asked: ArtifactName) -> "ArtifactContent":
    from wakeful.service.queries.artifacts import read_artifact

    return await read_artifact(opened.store, asked.artifact, asked.turn, reveal=asked.reveal, keys=opened.keys())


async def _events(opened: OpenStore, asked: EventQuery) -> "list[RuntimeEvent]":
    return [event async for event in read_events(opened, asked)]


async def read_events(
    opened: OpenStore, asked: EventQuery, *, follow_it: bool = False
) -> "AsyncIterator[RuntimeEvent]":
    """The events of a turn, secrets hidden; with `follow_it`, also those that come, until the turn is over."""
    from wakeful.service.queries.turns import EventReader, find_turn, follow, turn_events

    row = await find_turn(opened.store, asked.turn)
    reader = EventReader(opened.store, reveal=asked.reveal, keys=() if asked.reveal else opened.keys())
    left = asked.limit
    facts = follow(opened.store, row) if follow_it else None
    if facts is None:
        stored = await turn_events(opened.store, row)
        await reader.learn(stored)
        for recorded in stored:
            if recorded.seq > asked.after and left != 0:
                left = None if left is None else left - 1
                yield await reader.read(recorded)
        return
    async for recorded in facts:
        event = await reader.read(recorded)  # also when it is not wanted: it may say what is secret
        if recorded.seq > asked.after:
            yield event
            left = None if left is None else left - 1
            if left == 0:
                return


_RECORDS = "wakeful.views.store_records"
FIND_TURNS = Operation("turns.find", "observe", TurnQuery, f"{_RECORDS}.TurnRecord", _turns, many=True)
SHOW_TURN = Operation("turns.show", "observe", OneTurn, f"{_RECORDS}.TurnRecord", _turn)
LIST_THREADS = Operation("threads.list", "observe", ThreadQuery, f"{_RECORDS}.ThreadRecord", _threads, many=True)
LIST_MESSAGES = Operation(
    "threads.messages", "observe", MessageQuery, "wakeful.views.tree.ThreadMessage", _messages, many=True
)
LIST_ARTIFACTS = Operation("artifacts.list", "observe", OneTurn, f"{_RECORDS}.Artifact", _artifacts, many=True)
SHOW_ARTIFACT = Operation("artifacts.show", "observe", ArtifactName, f"{_RECORDS}.ArtifactContent", _artifact)
LIST_EVENTS = Operation(
    "turns.events", "observe", EventQuery, "wakeful.contracts.envelope.RuntimeEvent", _events, many=True
)
HISTORY = (FIND_TURNS, SHOW_TURN, LIST_THREADS, LIST_MESSAGES, LIST_ARTIFACTS, SHOW_ARTIFACT, LIST_EVENTS)
