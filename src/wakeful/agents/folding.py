"""From the log to a state: what a turn knows when it is taken up, here or anywhere else.

The conversation begins at the turn's window (the first event it rests on) and holds the thread's earlier turns. Turns
of a thread never overlap, so they are folded one after another, each handing its conversation to the next.
"""

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.conversation import ITEM, AssistantItem
from wakeful.contracts.envelope import Fact, Recorded
from wakeful.contracts.events import (
    AssistantRecorded,
    HistoryImported,
    SubagentStarted,
    TurnConfigChanged,
    TurnStarted,
)
from wakeful.decisions.state import TurnState, after, evolve
from wakeful.ports import Store, TurnRow


class Folded(NamedTuple):
    """A turn as the log knows it."""

    state: TurnState
    started: TurnStarted | None
    last_seq: int
    """The newest event that was read."""
    call_ids: set[str]
    """Every call id the conversation has seen."""
    turns_before: int


async def load_config(store: Store, digest: str) -> TurnConfig:
    return TurnConfig.model_validate_json(await store.get_blob(digest))


async def hydrated(store: Store, fact: Fact) -> Fact:
    """A fact with what it brings along from a blob."""
    event = fact.event
    if isinstance(event, HistoryImported) and event.items_ref is not None:
        loaded = json.loads(await store.get_blob(event.items_ref.digest))
        items = tuple(ITEM.validate_python(item) for item in loaded)
        return replace(fact, event=event.model_copy(update={"items": items}))
    return fact


def turn_after_turn(recorded: Iterable[Recorded]) -> list[Recorded]:
    """A thread's facts, each turn's together. The next message may be admitted while a turn still runs; in the
    conversation it comes after that turn's end all the same."""
    turns: dict[str, list[Recorded]] = {}
    for entry in recorded:
        if entry.fact.turn_id is not None:
            turns.setdefault(entry.fact.turn_id, []).append(entry)
    return [entry for entries in turns.values() for entry in entries]


async def fold(store: Store, row: TurnRow, recorded: list[Recorded]) -> Folded:
    """Fold a thread's events up to and including this turn's."""
    configs: dict[str, TurnConfig] = {}
    states: dict[str, TurnState] = {}
    newest = TurnState(configs=configs)
    started: TurnStarted | None = None
    below: set[str] = set()
    last = recorded[-1].seq if recorded else 0
    for entry in turn_after_turn(recorded):
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
                configs[digest] = await load_config(store, digest)
            if isinstance(event, TurnStarted) and fact.turn_id == row.turn_id:
                started = event
        elif isinstance(event, SubagentStarted) and event.config_ref is not None:
            if event.config_ref.digest not in configs:
                configs[event.config_ref.digest] = await load_config(store, event.config_ref.digest)
        elif isinstance(event, AssistantRecorded) and fact.level is not None:
            below.update(asked.call_id for asked in event.calls)
        evolve(state, await hydrated(store, fact))
    ids = {part.call_id for item in newest.items if isinstance(item, AssistantItem) for part in item.calls}
    ids |= below
    return Folded(states.get(row.turn_id, newest), started, last, ids, sum(1 for turn in states if turn != row.turn_id))
