"""Runs of the engine, seen from outside: their facts, their folded state, and copies of a log that end early."""

from collections.abc import Sequence
from typing import Any

from wakeful import RunResult
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.events import AssistantRecorded, Terminal, ToolFailed, ToolResult, ToolStarted
from wakeful.decisions.state import TurnState
from wakeful.engine.state_loader import fold
from wakeful.ports import Store, TurnRow
from wakeful.store.encoding import decode, encode
from wakeful.store.memory import Memory, MemoryStore


def calls(*named: str | tuple[str, Any]) -> dict[str, Any]:
    """A scripted round of tool calls, by name or with arguments (a mapping, or the text a model would write)."""
    asked = [(each, {}) if isinstance(each, str) else each for each in named]
    return {"calls": [{"name": name, "arguments": arguments} for name, arguments in asked]}


def kinds(facts: Sequence[StoredFact]) -> list[str]:
    return [entry.fact.event.kind for entry in facts]


def of_kind(result: RunResult[Any], kind: type[Any]) -> list[Any]:
    """The events of one class among a result's facts."""
    return [entry.fact.event for entry in result.facts() if isinstance(entry.fact.event, kind)]


async def facts_of(store: Store, turn_id: str) -> list[StoredFact]:
    row = await store.turn(turn_id)
    assert row is not None
    return await store.read(row.agent_id, turn_id=turn_id)


async def folded(store: Store, row: TurnRow) -> TurnState:
    row = await store.turn(row.turn_id) or row
    recorded = await store.read(row.agent_id, after=row.window_from - 1, thread_id=row.thread_id)
    return (await fold(store, row, recorded)).state


def essence(state: TurnState) -> dict[str, Any]:
    """What a state says, without times and without the names that are new in each run."""
    return {
        "phase": state.phase,
        "items": [item.model_dump(mode="json") for item in state.conversation.items],
        "notes": [note.text for note in state.next_request.notes],
        "counters": (
            state.step,
            state.model_usage.answers,
            state.round.running,
            state.round.front,
            state.tree.in_flight,
            state.round.untaken,
        ),
        "ledger": state.ledger,
        "calls": [
            (call.call_id, call.taken_up, call.dispatches, call.effect, call.answer is not None)
            for call in state.round.batch
        ],
        "unknown": dict(state.unknown),
        "retries": dict(state.retries_asked),
        "rejections": state.answer.rejections,
        "stop": (state.stop.status, state.stop.reason, state.stop.applied) if state.stop is not None else None,
        "texts": (state.answer.final_text, state.answer.last_text),
        "usage": state.model_usage.tokens.model_dump(),
        "end": (state.terminal.status, state.terminal.stop_reason, len(state.terminal.unknown))
        if state.terminal is not None
        else None,
    }


def check_ends(facts: Sequence[StoredFact], *, once: bool = True) -> None:
    """One end for the turn, one beginning and one end for each call, and the turn's end last.

    Without `once` a call may have begun twice: its log was cut off between a refusal and what it was refused with.
    """
    events = [entry.fact.event for entry in facts]
    assert sum(isinstance(event, Terminal) for event in events) == 1
    end = next(place for place, event in enumerate(events) if isinstance(event, Terminal))
    assert not any(isinstance(event, ToolResult | ToolFailed) for event in events[end:])
    asked = [part.call_id for event in events if isinstance(event, AssistantRecorded) for part in event.item.calls]
    for kind in ((ToolStarted,), (ToolResult, ToolFailed)):
        named = [entry.fact.call_id for entry in facts if isinstance(entry.fact.event, kind)]
        found = map(str, named if once or kind != (ToolStarted,) else set(named))
        assert sorted(found) == sorted(asked), f"{kind}: {named} for {asked}"


def cut(memory: Memory, agent_id: str, upto: int) -> Memory:
    """A copy of what is kept, whose log of this agent ends after `upto` events."""
    copy = Memory()
    copy.blobs = dict(memory.blobs)
    agent = copy.new_agent(agent_id)
    for entry in memory.agents[agent_id].entries():
        if entry.seq <= upto:
            writer: Any = entry.head.writer
            fact = decode(entry.head, entry.payload)
            agent.extend([fact], encode([fact], writer))
    copy.agents[agent_id] = agent
    return copy


async def until_known(store: Store) -> None:
    """Until no outcome in the store is unknown any more."""
    watches = [store.watch(agent_id) for agent_id in await store.agents()]
    while await store.unknown():
        for watch in watches:
            await watch.wait(timeout=0.05)
    for watch in watches:
        watch.close()


class Dying(MemoryStore):
    """A store whose owner dies, in effect, at one of its appends: from then on it takes nothing any more."""

    def __init__(self, memory: Memory, *, before: int = 0, after: int = 0) -> None:
        super().__init__(memory)
        self._before, self._after = before, after
        self._appends = 0
        self.memory = memory

    async def append(self, claim: Any, facts: Sequence[Fact], **options: Any) -> list[StoredFact]:
        self._appends += 1
        if self._before and self._appends >= self._before:
            raise Died
        others = await super().append(claim, facts, **options)
        if self._after and self._appends >= self._after:
            self._before = self._appends
            raise Died
        return others


class Died(Exception):
    """The process is gone, as far as the engine can see."""
