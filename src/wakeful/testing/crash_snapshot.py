"""What the log says at one moment, small enough to compare: taken after a kill, and again after the recovery."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from wakeful.contracts.content import text_of
from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.errors import TurnUnreadable
from wakeful.contracts.events import (
    AssistantRecorded,
    ToolDispatched,
    ToolFailed,
    ToolResult,
    ToolStarted,
    UnknownResolved,
)
from wakeful.ports import Store, TurnFilter, TurnState
from wakeful.service.queries.replay import replay_turn
from wakeful.testing.crash_rows import find_misfits

CallName = tuple[str, str]
"""Turn and call."""


@dataclass
class CallSnapshot:
    """A call, as far as the log knows it."""

    tool: str
    effect: str
    key: str
    """Its idempotency key: what its line in the ledger carries."""
    dispatched: bool
    """The intent is in the log: the effect may have begun."""
    ended: bool = False


@dataclass(frozen=True)
class TurnSeen:
    """A turn, and what it said last."""

    state: TurnState
    answer: str


@dataclass
class Snapshot:
    """The log at one moment."""

    turns: dict[str, TurnSeen] = field(default_factory=dict)
    calls: dict[CallName, CallSnapshot] = field(default_factory=dict)
    unknown: set[CallName] = field(default_factory=set)
    """Calls that somebody is told to find out about, or was."""
    facts: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    """For each agent, its events in order: kind and time."""
    misfits: list[str] = field(default_factory=list)
    """What is wrong with the rows that follow from the log."""
    different: list[str] = field(default_factory=list)
    """Decisions that come out differently when they are made again."""

    @property
    def count(self) -> int:
        """How many facts there are."""
        return sum(map(len, self.facts.values()))

    def finished_keys(self) -> set[str]:
        """Effects whose call has its outcome in the log."""
        return {call.key for call in self.calls.values() if call.ended}

    def intents(self) -> dict[str, CallSnapshot]:
        """The calls whose effect may have begun, by key."""
        return {call.key: call for call in self.calls.values() if call.dispatched}

    def answers(self) -> list[tuple[str, str]]:
        """How the turns ended, without their names, which are new each time."""
        return sorted((turn.state, turn.answer) for turn in self.turns.values())


async def take_snapshot(store: Store) -> Snapshot:
    """Read everything; change nothing."""
    seen = Snapshot()
    answers: dict[str, str] = {}
    for agent_id in await store.agents():
        recorded = await store.read(agent_id)
        seen.facts[agent_id] = [(type(event.fact.event).kind, event.fact.at) for event in recorded]
        answers.update(_note(recorded, seen))
    for row in await store.unknown():
        seen.unknown.add((row.turn_id, row.call_id))
    for turn in await store.find_turns(TurnFilter(), limit=sys.maxsize):
        seen.turns[turn.turn_id] = TurnSeen(turn.state, answers.get(turn.turn_id, ""))
    seen.different = await find_differences(store)
    seen.misfits = await find_misfits(store)
    return seen


async def find_differences(store: Store) -> list[str]:
    """Decisions of any turn that do not come out the same when they are made again, the first of each turn."""
    found: list[str] = []
    for turn in await store.find_turns(TurnFilter(), limit=sys.maxsize):
        with suppress(TurnUnreadable):  # its configuration is gone: nothing can be decided from that log
            difference = (await replay_turn(store, turn)).divergence
            if difference is not None:
                found.append(f"turn {turn.turn_id}: {difference}")
    return found


def _note(recorded: list[StoredFact], seen: Snapshot) -> Iterator[tuple[str, str]]:
    """Take the calls down, and give each turn's texts; the last one stays."""
    for _, _, fact in recorded:
        turn_id, event = fact.turn_id or "", fact.event
        name = (turn_id, fact.call_id or "")
        match event:
            case ToolStarted():
                seen.calls[name] = CallSnapshot(event.tool_name, event.effect, event.idempotency_key, event.dispatched)
            case ToolDispatched() if name in seen.calls:
                seen.calls[name].dispatched = True
            case ToolResult() | ToolFailed() if name in seen.calls:
                seen.calls[name].ended = True
            case UnknownResolved():
                seen.unknown.add((turn_id, event.call_id))
            case AssistantRecorded():
                yield turn_id, text_of(event.item.parts)
            case _:
                pass
