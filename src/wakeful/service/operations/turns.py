"""What may be asked about turns: which there are, one of them, and its events in pages."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wakeful.service.operations.operation import OpenStore, Operation

if TYPE_CHECKING:
    from wakeful.contracts.envelope import RuntimeEvent
    from wakeful.ports import TurnRow, TurnState
    from wakeful.views.store_records import TurnContinuation, TurnRecord

PAGE = 100
"""How many lines of a list are answered unless more are asked for."""


@dataclass(frozen=True, slots=True)
class TurnName:
    """One turn by its id, its key, or enough of the beginning of its id; None: the newest."""

    turn: str | None = None


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
class EventQuery:
    """The events of a turn after a sequence number."""

    turn: str | None = None
    after: int = 0
    limit: int | None = None
    reveal: bool = False


async def named_turn(opened: OpenStore, turn: str | None) -> "TurnRow":
    """Raises TurnNotFound where no turn, or more than one, has that name."""
    from wakeful.service.queries.turns import find_turn

    return await find_turn(opened.store, turn)


async def told_turn(opened: OpenStore, turn: str | None) -> "TurnRow":
    """A turn of which what was said is to be shown. Raises TurnNotFound, or TurnDeleted with its thread."""
    from wakeful.service.queries import turns

    return await turns.told_turn(opened.store, turn)


async def turn_ahead(opened: OpenStore, turn_id: str) -> "TurnContinuation | None":
    """A turn as somebody may take it up; None when it is over, or a runtime goes on with it by itself."""
    from wakeful.service.commands.agent_rebuild import code_needed
    from wakeful.views.store_records import TurnContinuation

    row = await opened.store.turn(turn_id)
    if row is None or not row.is_open:
        return None
    if opened.living is not None and await opened.store.runtime_agent(row.agent_id) is not None:
        return None
    needed = await code_needed(opened.store, row, opened.engine.resolve_model)
    if needed is None:
        return None
    return TurnContinuation(turn_id=row.turn_id, state=row.state, code_needed=tuple(needed))


async def _turns(opened: OpenStore, asked: TurnQuery) -> "list[TurnRecord]":
    from wakeful.ports import TurnFilter
    from wakeful.service.queries.history import turns

    which = TurnFilter(asked.state, asked.agent, asked.thread)
    return await turns(opened.store, which, asked.key, asked.limit, asked.before)


async def _turn(opened: OpenStore, asked: TurnName) -> "TurnRecord":
    from wakeful.service.queries.history import turn_record

    return turn_record(await named_turn(opened, asked.turn))


async def _events(opened: OpenStore, asked: EventQuery) -> "list[RuntimeEvent]":
    return [event async for event in read_events(opened, asked)]


async def read_events(
    opened: OpenStore, asked: EventQuery, *, follow_it: bool = False
) -> "AsyncGenerator[RuntimeEvent, None]":
    """The events of a turn, secrets hidden; with `follow_it`, also those that come, until the turn is over."""
    from wakeful.service.queries.event_cursors import check_reached
    from wakeful.service.queries.turns import EventReader, find_turn, follow, turn_events

    row = await find_turn(opened.store, asked.turn)
    await check_reached(opened.store, row.agent_id, asked.after)
    reader = EventReader(opened.store, reveal=asked.reveal, keys=() if asked.reveal else opened.keys())
    left, until = asked.limit, 0.0
    facts = follow(opened.store, row) if follow_it else None
    if facts is None:
        stored = await turn_events(opened.store, row)
        await reader.learn(stored)
        for recorded in stored:
            if recorded.seq > asked.after and left != 0:
                left = None if left is None else left - 1
                until = await opened.replays.turn(until)
                yield await reader.read(recorded)
        return
    async for recorded in facts:
        until = await opened.replays.turn(until)
        event = await reader.read(recorded)  # also when it is not wanted: it may say what is secret
        if recorded.seq > asked.after:
            yield event
            left = None if left is None else left - 1
            if left == 0:
                return


_RECORDS = "wakeful.views.store_records"
LIST_TURNS = Operation("turns.list", "observe", TurnQuery, f"{_RECORDS}.TurnRecord", _turns, many=True)
SHOW_TURN = Operation("turns.show", "observe", TurnName, f"{_RECORDS}.TurnRecord", _turn)
LIST_EVENTS = Operation(
    "turns.events", "observe", EventQuery, "wakeful.contracts.envelope.RuntimeEvent", _events, many=True
)
