"""From the log to a state: what a turn knows when it is taken up, here or anywhere else.

The conversation begins at the turn's window (the first event it rests on) and holds the thread's earlier turns. Turns
of a thread never overlap, so they are folded one after another, each handing its conversation to the next.

Once a summary stands in the place of the thread's beginning, nobody has to read that beginning again: the window of
later turns begins with the oldest turn of which something is shown word for word. Until the fold comes to the summary,
what lies before is there by its length alone (`UNREAD`), so that places and counts in the facts hold.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.conversation import ITEM, AssistantItem, ToolItem, UserItem
from wakeful.contracts.envelope import Fact, Recorded
from wakeful.contracts.errors import StoreDamaged, TurnUnreadable
from wakeful.contracts.events import (
    AssistantRecorded,
    CompactionCompleted,
    HistoryImported,
    MessageAdmitted,
    SubagentStarted,
    TurnConfigChanged,
    TurnStarted,
)
from wakeful.contracts.events.context import WindowStart
from wakeful.decisions.evolving.one_fact import evolve
from wakeful.decisions.state import TurnState, after
from wakeful.ports import Store, TurnRow

ReadT = TypeVar("ReadT")
UNREAD = UserItem(parts=(), origin="runtime")
"""An item that is not read any more: a summary will take its place before anybody looks at it."""


class Folded(NamedTuple):
    """A turn as the log knows it."""

    state: TurnState
    started: TurnStarted | None
    last_seq: int
    """The newest event that was read."""
    call_ids: set[str]
    """Every call id the conversation has seen."""


async def load_config(store: Store, digest: str) -> TurnConfig:
    return await loaded(store, digest, TurnConfig.model_validate_json)


async def loaded(store: Store, digest: str, read: Callable[[bytes], ReadT]) -> ReadT:
    """What a turn rests on beside the log. Raises TurnUnreadable when it is gone, not when the store fails just now."""
    try:
        return read(await store.get_blob(digest))
    except StoreDamaged as gone:
        raise TurnUnreadable(gone.message, gone.hint) from gone
    except ValueError as strange:
        words = str(strange).splitlines()[0]
        raise TurnUnreadable(f"blob {digest} is not what a turn can be read from: {words}") from strange


async def hydrated(store: Store, fact: Fact) -> Fact:
    """A fact with what it brings along from a blob."""
    event = fact.event
    if isinstance(event, HistoryImported) and event.items_ref is not None:
        items = await loaded(store, event.items_ref.digest, _items)
        return replace(fact, event=event.model_copy(update={"items": items}))
    return fact


def _items(data: bytes) -> tuple[UserItem | AssistantItem | ToolItem, ...]:
    return tuple(ITEM.validate_python(item) for item in json.loads(data))


def turn_after_turn(recorded: Iterable[Recorded]) -> list[Recorded]:
    """A thread's facts, each turn's together. The next message may be admitted while a turn still runs; in the
    conversation it comes after that turn's end all the same. A turn that began before the window is no part of it."""
    turns: dict[str, list[Recorded]] = {}
    for entry in recorded:
        turn_id = entry.fact.turn_id
        if turn_id in turns:
            turns[turn_id].append(entry)
        elif turn_id is not None and isinstance(entry.fact.event, MessageAdmitted):
            turns[turn_id] = [entry]
    return [entry for entries in turns.values() for entry in entries]


def start_of_window(row: TurnRow, thread: Sequence[TurnRow], recorded: Sequence[Recorded]) -> int:
    """The first event that a turn which has not begun rests on, given what its predecessor rested on."""
    firsts = {turn.turn_id: turn.first_seq for turn in thread}
    for entry in reversed(recorded):
        window = _window(entry)
        if window is not None and entry.fact.turn_id != row.turn_id and window.from_turn in firsts:
            return firsts[window.from_turn]
    return recorded[0].seq if recorded else row.first_seq


def predecessor(row: TurnRow, thread: Sequence[TurnRow]) -> TurnRow | None:
    """The turn of the thread before this one that has begun."""
    earlier = [turn for turn in thread if turn.first_seq < row.first_seq and turn.turn_index]
    return max(earlier, key=lambda turn: turn.first_seq, default=None)


def begun_unread(recorded: Sequence[Recorded], configs: dict[str, TurnConfig]) -> TurnState:
    """What a thread's fold begins with: nothing, or so many items as lie before the window."""
    first = recorded[0].fact.turn_id if recorded else None
    windows = (window for entry in recorded if (window := _window(entry)) is not None)
    unread = next((window.items for window in windows if window.from_turn == first), 0)
    return TurnState(configs=configs, items=[UNREAD] * unread)


def _window(entry: Recorded) -> WindowStart | None:
    event = entry.fact.event
    return event.window if isinstance(event, CompactionCompleted) else None


async def fold(
    store: Store,
    row: TurnRow,
    recorded: list[Recorded],
    before: Callable[[Recorded, TurnState], None] | None = None,
    *,
    lost: bool = False,
) -> Folded:
    """Fold a thread's events up to and including this turn's. `before` is shown each of them with the state before.

    Raises TurnUnreadable when something that the events refer to is gone. With `lost` it is done without: enough to
    show a turn or to end it, and never to run it.
    """
    configs: dict[str, TurnConfig] = {}

    async def learn(digest: str) -> None:
        try:
            configs[digest] = await load_config(store, digest)
        except TurnUnreadable:
            if not lost:
                raise
            configs[digest] = TurnConfig(agent_name=row.agent_name, model_ref="")

    async def whole(fact: Fact) -> Fact:
        try:
            return await hydrated(store, fact)
        except TurnUnreadable:
            if not lost:
                raise
            return fact

    states: dict[str, TurnState] = {}
    ordered = turn_after_turn(recorded)
    newest = begun_unread(ordered, configs)
    started: TurnStarted | None = None
    spoken: set[str] = set()
    last = recorded[-1].seq if recorded else 0
    for entry in ordered:
        fact = entry.fact
        assert fact.turn_id is not None
        state = states.get(fact.turn_id)
        if state is None:
            if row.turn_id in states:
                continue  # a later turn of the thread: no part of what this one knew
            state = states[fact.turn_id] = newest = after(newest, configs)
        event = fact.event
        if isinstance(event, TurnStarted | TurnConfigChanged):
            # Of earlier turns, too: what their tools do is what the conversation has seen. Most share one.
            digest = event.config_ref.digest
            if digest not in configs:
                await learn(digest)
            if isinstance(event, TurnStarted) and fact.turn_id == row.turn_id:
                started = event
        elif isinstance(event, SubagentStarted) and event.config_ref is not None:
            if event.config_ref.digest not in configs:
                await learn(event.config_ref.digest)
        elif isinstance(event, AssistantRecorded):
            spoken.update(asked.call_id for asked in event.calls)  # of rounds that a summary stands for, too
        if before is not None:
            before(entry, state)
        evolve(state, await whole(fact))
    ids = {part.call_id for item in newest.items if isinstance(item, AssistantItem) for part in item.calls}
    ids |= spoken
    return Folded(states.get(row.turn_id, newest), started, last, ids)
