"""Any conversation folds the same on every store, and goes on from wherever its log was cut off."""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit.runs.engine_runs import check_ends, cut, essence, facts_of, folded
from wakeful import Agent, OutcomeUnknown, RunContext, ToolRetry, resume, run, tool
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.events import ToolFailed, ToolResult, ToolStarted
from wakeful.ports import Claim, Store
from wakeful.providers.scripted import ScriptedModel
from wakeful.service.queries.replay import replay_turn
from wakeful.store.memory import Memory, MemoryStore
from wakeful.store.sqlite import SqliteStore

EFFECTS = ("pure", "keyed", "irreversible")
ODD: list[Any] = [None, "", b"\xff\x00", float("nan"), "\ud800", [1, {"a": (2, 3)}], object(), 10**40, "ü\x00"]


async def _behave(how: str, pick: int) -> Any:
    match how:
        case "returns":
            return "fine"
        case "later":
            await asyncio.sleep(0.001)
            return "late"
        case "raises":
            raise ValueError("no")
        case "retries":
            raise ToolRetry("try differently")
        case "unsure":
            raise OutcomeUnknown("no idea")
        case "hangs":
            return await asyncio.sleep(600)
        case _:
            return ODD[pick % len(ODD)]


HOW = ("returns", "later", "raises", "retries", "unsure", "hangs", "odd")
HANGS = 0.02
"""Seconds for what hangs, and for nothing else: on a busy machine any other call may take longer than that."""


def agent(rounds: list[list[tuple[str, Any]]], done: Counter[str]) -> Agent[None, str]:
    """An agent whose tools do as their calls say, and note what they have done under the call's key."""

    def make(effect: Any, name: str, timeout: float) -> Any:
        @tool(name=name, effect=effect, timeout=timeout)
        async def act(ctx: RunContext[None], how: str, pick: int = 0) -> Any:
            done[ctx.idempotency_key] += 1
            return await _behave(how, pick)

        return act

    def named(name: str, given: Any) -> str:
        return f"{name}_hangs" if isinstance(given, dict) and given.get("how") == "hangs" else name

    steps = [
        {"calls": [{"name": named(name, given), "arguments": given} for name, given in calls]}
        for calls in rounds
        if calls
    ]
    quick = [make(effect, effect, 60) for effect in EFFECTS]
    slow = [make(effect, f"{effect}_hangs", HANGS) for effect in EFFECTS]
    return Agent("any", ScriptedModel([*steps, "done"]), tools=[*quick, *slow])


call = st.one_of(
    st.tuples(
        st.sampled_from(EFFECTS), st.fixed_dictionaries({"how": st.sampled_from(HOW), "pick": st.integers(0, len(ODD))})
    ),
    st.tuples(st.just("nowhere"), st.just({})),
    st.tuples(st.sampled_from(EFFECTS), st.sampled_from(["not json", "[1]", '{"how": 5}', "{}"])),
)
conversation = st.lists(st.lists(call, max_size=4), max_size=3)


async def played(store: Store, rounds: list[list[tuple[str, Any]]]) -> tuple[dict[str, Any], str, Counter[str]]:
    done: Counter[str] = Counter()
    result = await run(agent(rounds, done), "go", store=store)
    row = await store.turn(result.turn_id)
    assert row is not None
    state = await folded(store, row)
    assert [item.model_dump() for item in state.conversation.items] == [
        item.model_dump() for item in result.history()
    ], "what ran and what folds have different conversations"
    check_ends(await facts_of(store, result.turn_id))
    replayed = await replay_turn(store, row)
    assert replayed.identical, replayed.divergence
    return essence(state), result.turn_id, done


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(conversation)
def test_a_conversation_folds_the_same_on_memory_and_sqlite(rounds: list[list[tuple[str, Any]]]) -> None:
    async def both() -> None:
        memory, _, _ = await played(MemoryStore(), rounds)
        with tempfile.TemporaryDirectory() as folder:
            store = await SqliteStore.open(Path(folder) / "runs.db")
            sqlite, _, _ = await played(store, rounds)
            await store.close()
        assert memory == sqlite

    asyncio.run(both())


# Each example is run again from dozens of cuts.
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(conversation)
def test_a_conversation_goes_on_from_wherever_its_log_was_cut_off(rounds: list[list[tuple[str, Any]]]) -> None:
    async def every_cut() -> None:
        memory = Memory()
        store = Committing(memory)
        _, turn_id, _ = await played(store, rounds)
        (agent_id,) = memory.agents
        for upto in range(2, memory.agents[agent_id].seq):
            await _goes_on(cut(memory, agent_id, upto), turn_id, rounds, whole=upto in store.commits)

    asyncio.run(every_cut())


class Committing(MemoryStore):
    """Remembers where its commits end: a real log is only ever cut there."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self.commits: set[int] = set()

    async def append(self, claim: Claim, facts: Sequence[Fact], **options: Any) -> list[StoredFact]:
        others = await super().append(claim, facts, **options)
        self.commits.add(claim.seen)
        return others


async def _goes_on(memory: Memory, turn_id: str, rounds: list[list[tuple[str, Any]]], *, whole: bool) -> None:
    store = MemoryStore(memory)
    before = await facts_of(store, turn_id)
    begun = {
        entry.fact.call_id: entry.fact.event
        for entry in before
        if isinstance(entry.fact.event, ToolStarted) and entry.fact.event.dispatched
    }
    ended = {entry.fact.call_id for entry in before if isinstance(entry.fact.event, ToolResult | ToolFailed)}
    done: Counter[str] = Counter()
    async with asyncio.timeout(60):
        result = await resume(store, turn_id, [agent(rounds, done)])
    assert result.status == "completed"
    check_ends(await facts_of(store, turn_id), once=whole)
    for call_id, started in begun.items():
        if call_id in ended or started.effect == "irreversible":
            assert not done[started.idempotency_key], f"{call_id} ran again"
        if call_id not in ended and started.effect == "irreversible":
            assert call_id in {call.call_id for call in result.unknown}, "nobody is told"
    row = await store.turn(turn_id)
    assert row is not None
    replayed = await replay_turn(store, row)
    assert replayed.identical or not whole, replayed.divergence
    await store.close()
