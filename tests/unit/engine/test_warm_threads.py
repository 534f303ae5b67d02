"""A thread costs the same on every day: kept in memory while it is in use, and in pages for whoever comes later."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from pydantic_core import to_json

from kit.runs.long_runs import events_of, look
from wakeful import Agent, Approve, cancel, run, tool
from wakeful.contracts.content import BlobRef
from wakeful.contracts.conversation import ITEM
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.events import (
    AssistantRecorded,
    CompactionCompleted,
    RateLimitHit,
    ThreadCheckpointed,
    TurnStarted,
)
from wakeful.contracts.models import ModelGlimpse, Reply
from wakeful.decisions.state import TurnState
from wakeful.decisions.thread_pages import told_by
from wakeful.engine.prepare.conversation import CHECKPOINT_FACTS
from wakeful.engine.state_loader import Thread, fold, load_pages
from wakeful.engine.warm_threads import WarmThreads, warm_threads
from wakeful.ports import ModelRequest, Store, TurnRow
from wakeful.providers.scripted import ScriptedModel
from wakeful.service.queries.replay import replay_facts, replay_turn
from wakeful.testing import scripted
from wakeful.testing.wrapped_store import WrappedStore


@tool(effect="pure")
def note(x: str) -> str:
    """Note."""
    return f"noted {x}"


@tool(effect="keyed", approval=True)
def pay(x: str) -> str:
    """Pay."""
    return f"paid {x}"


async def approve(_: Any) -> Approve:
    return Approve(note="because I say so")


def shown(items: Any) -> bytes:
    return to_json([ITEM.dump_python(item, mode="json") for item in items])


class Talk:
    """A thread with turns drawn by lot, and every request that was sent, byte for byte."""

    def __init__(self, store: Store, seed: int, window: int | None) -> None:
        self.store = store
        self.draw = Random(seed)
        self.sent: dict[str, list[bytes]] = {}
        self.results: list[Any] = []
        model = scripted(self._answer, context_window=window)
        self.agent = Agent("clerk", model, "Serve.", tools=[note, pay, look], subtasks=True)

    def _answer(self, request: ModelRequest) -> Any:
        self.sent.setdefault(request.turn_id, []).append(shown(request.history))
        if request.level and "~compaction:" in request.level:
            return "a summary"
        if request.answered >= self.draw.choice((0, 0, 1, 2)):
            return "yes"
        what = self.draw.choice(("note", "note", "look", "pay", "child") if request.level is None else ("note",))
        number = self.draw.randrange(1000)
        if what == "child":
            return {
                "calls": [{"name": "run_subtask", "arguments": {"title": f"job {number}", "instructions": "do it"}}]
            }
        return {"calls": [{"name": what, "arguments": {"x": str(number + each)}} for each in range(3)]}

    async def say(self, *, cold: bool) -> TurnRow:
        if cold:
            await restart(self.store, "clerk", "t")
        words = f"message {len(self.results)} " + "word " * self.draw.randrange(60)
        self.results.append(await run(self.agent, words, store=self.store, thread="t", approver=approve))
        row = await self.store.turn(self.results[-1].turn_id)
        assert row is not None and row.state == "completed", self.results[-1].message
        return row


async def restart(store: Store, agent_id: str, thread_id: str) -> None:
    """Nothing of the thread is in memory any more."""
    (*_, row) = await store.turns_of_thread(agent_id, thread_id) or [None]
    if row is not None:
        warm_threads.take(store, row, None)


async def requests_of(store: Store, row: TurnRow, recorded: list[StoredFact]) -> tuple[list[bytes], TurnState]:
    """What the turn's requests held, as folding these facts says."""
    found: list[bytes] = []

    def look_at(entry: StoredFact, state: TurnState) -> None:
        if entry.fact.turn_id == row.turn_id and isinstance(entry.fact.event, AssistantRecorded):
            found.append(shown(state.level(entry.fact.level).conversation.items))

    return found, (await fold(store, row, recorded, before=look_at)).state


def without_pages(recorded: list[StoredFact]) -> list[StoredFact]:
    return [entry for entry in recorded if not isinstance(entry.fact.event, ThreadCheckpointed)]


def next_begins_with(state: TurnState) -> dict[str, Any]:
    return {
        "items": state.conversation.items,
        "heard": state.conversation.heard,
        "begins": state.thread.begins,
        "references": state.conversation.references,
        "conserved": state.conversation.conserved,
        "advised": state.conversation.advised,
        "exposure": state.thread.exposure,
        "said": state.thread.owner_said,
        "files": state.thread.owner_files,
        "skills": state.thread.skills,
        "compaction": (state.conversation.compactions, state.thread.compaction_id),
    }


@pytest.mark.parametrize(("seed", "window"), [(1, None), (2, None), (3, 6_000)])
async def test_a_model_is_sent_the_same_bytes_warm_cold_and_from_the_first_event(
    store: Store, seed: int, window: int | None
) -> None:
    talk = Talk(store, seed, window)
    rows = [await talk.say(cold=talk.draw.random() < 0.4) for _ in range(40)]
    pages = [place for place, result in enumerate(talk.results) if events_of(result, ThreadCheckpointed)]
    assert len(pages) >= 2
    assert bool(window) == any(events_of(result, CompactionCompleted) for result in talk.results)
    for row in rows[-8:]:
        everything = await store.read(row.agent_id, thread_id="t")
        here = [entry for entry in everything if entry.seq >= row.window_from]
        (cold, state), (whole, start) = [
            await requests_of(store, row, facts) for facts in (here, without_pages(everything))
        ]
        assert talk.sent[row.turn_id] == cold == whole
        if window is None:  # behind a summary both hold what `test_thread_window` compares
            assert next_begins_with(state) == next_begins_with(start)
        assert (await replay_turn(store, row)).identical


class Counting(WrappedStore):
    """Notes how many facts each reading gave."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.read_facts: list[int] = []

    async def read(self, agent_id: str, **options: Any) -> list[StoredFact]:
        found = await super().read(agent_id, **options)
        if options.keys() & {"thread_id", "turn_id"}:
            self.read_facts.append(len(found))
        return found


async def test_a_thread_in_use_reads_what_is_new_and_a_cold_one_a_bounded_part(store: Store) -> None:
    counting = Counting(store)
    agent = Agent("clerk", scripted(["yes"]))
    for _ in range(90):
        await run(agent, "hello", store=counting, thread="t")
    assert counting.read_facts[1:] == [], "the message is known to whoever took it"
    facts = len(await store.read("clerk", thread_id="t"))
    assert facts > 2 * CHECKPOINT_FACTS
    counting.read_facts.clear()
    for _ in range(40):
        await restart(store, "clerk", "t")
        result = await run(agent, "hello", store=counting, thread="t")
    assert max(counting.read_facts) <= CHECKPOINT_FACTS + 50
    assert len(result.history()) == 2 * 130
    (started,) = events_of(result, TurnStarted)
    assert started.turn_index == 130


async def test_a_thread_that_somebody_else_went_on_with_is_read_again(store: Store) -> None:
    agent = Agent("clerk", scripted(lambda request: str(len(request.history))))
    first = await run(agent, "one", store=store, thread="t")
    row = await store.turn(first.turn_id)
    assert row is not None
    kept = warm_threads.take(store, row, row)
    assert kept is not None
    stale = Thread(kept.thread.so_far)
    assert (await run(agent, "two", store=store, thread="t")).output == "3"
    warm_threads.keep(store, row, kept._replace(thread=stale))
    assert (await run(agent, "three", store=store, thread="t")).output == "5"
    # The inversion: whoever does not compare the last event goes on with a conversation that lacks a turn.
    warm_threads.keep(store, row, kept._replace(thread=stale))
    found = warm_threads.take(store, row, row)
    assert found is not None and found.turn_id == first.turn_id


async def test_a_message_whose_turn_never_began_is_part_of_the_conversation_all_the_same(store: Store) -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def answer(request: ModelRequest) -> str:
        if len(request.history) == 1:
            entered.set()
            await leave.wait()
        return str(len(request.history))

    agent = Agent("clerk", scripted(answer))
    first = asyncio.create_task(run(agent, "one", store=store, thread="t"))
    await entered.wait()
    second = asyncio.create_task(run(agent, "two", store=store, thread="t"))
    watch = store.watch("clerk")
    while len(rows := await store.turns_of_thread("clerk", "t")) < 2:
        await watch.wait()
    watch.close()
    assert await cancel(store, rows[1].turn_id)
    leave.set()
    assert (await first).output == "1" and (await second).status == "cancelled"
    third = await run(agent, "three", store=store, thread="t")
    everything = await store.read("clerk", thread_id="t")
    row = await store.turn(third.turn_id)
    assert row is not None and row.turn_index == 3
    assert third.output == str(len((await fold(store, row, everything)).state.conversation.items) - 1)


async def test_a_page_that_is_not_what_the_thread_says_is_found_by_replay(store: Store) -> None:
    agent = Agent("clerk", scripted(["yes"]))
    results = [await run(agent, "hello", store=store, thread="t") for _ in range(40)]
    (place, *_) = [place for place, result in enumerate(results) if events_of(result, ThreadCheckpointed)]
    row = await store.turn(results[place].turn_id)
    assert row is not None
    recorded = await store.read(row.agent_id, after=row.window_from - 1, thread_id="t")
    report = await replay_facts(store, row, recorded)
    assert report.identical and report.checked["thread.checkpointed"] == 1
    other = BlobRef(digest="sha256:" + "0" * 64, size=1, media_type="application/json")
    forged = [
        entry._replace(fact=_with(entry, event.model_copy(update={"conversation_ref": other})))
        if isinstance(event := entry.fact.event, ThreadCheckpointed)
        else entry
        for entry in recorded
    ]
    divergence = (await replay_facts(store, row, forged)).divergence
    assert divergence is not None and divergence.kind == "thread.checkpointed"


def _with(entry: StoredFact, event: Any) -> Fact:
    return replace(entry.fact, event=event)


async def test_as_many_threads_are_kept_as_there_is_room_for(store: Store) -> None:
    rows = []
    for number in range(3):
        result = await run(Agent("clerk", scripted(["yes"])), "x" * 1000, store=store, thread=f"t{number}")
        row = await store.turn(result.turn_id)
        assert row is not None
        rows.append(row)
    taken = [warm_threads.take(store, row, row) for row in rows]
    for few in (WarmThreads(most=2), WarmThreads(most_characters=5_000)):
        for row, found in zip(rows, taken, strict=True):
            assert found is not None
            few.keep(store, row, found)
        assert [few.take(store, row, row) is not None for row in rows] == [False, True, True]


class Busy(ScriptedModel):
    """Over its limit once, and then there for everybody."""

    is_over = True

    async def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        if self.is_over:
            self.is_over = False
            raise ModelFailure("too many requests", kind="rate_limited", stage="headers", retry_after=0.0)
        async for piece in super().respond(request):
            yield piece


@pytest.mark.parametrize("ended_at_rest", [False, True])
async def test_what_a_turn_was_told_of_a_limit_stands_in_the_pages_of_a_later_one(
    store: Store, ended_at_rest: bool
) -> None:
    def answer(request: ModelRequest) -> Any:
        if request.answered == 0:
            return {"calls": [{"name": "note", "arguments": {"x": str(each)}} for each in range(CHECKPOINT_FACTS // 3)]}
        return {"calls": [{"name": "pay", "arguments": {"x": "all"}}]} if ended_at_rest else "yes"

    model = Busy(lambda request: "hello" if len(request.history) == 1 else answer(request))
    agent = Agent("clerk", model, tools=[note, pay])
    assert events_of(await run(agent, "hello", store=store, thread="t"), RateLimitHit)
    result = await run(agent, "go on", store=store, thread="t")
    assert await cancel(store, result.turn_id) is ended_at_rest
    row = await store.turn(result.turn_id)
    assert row is not None and row.state == ("cancelled" if ended_at_rest else "completed")
    report = await replay_turn(store, row)
    assert report.identical and report.checked["thread.checkpointed"] == 1
    # Whoever goes on from the pages knows as much as whoever reads it all.
    everything = await store.read(row.agent_id, thread_id="t")
    told = next(entry for entry in everything if isinstance(entry.fact.event, ThreadCheckpointed))
    assert isinstance(told.fact.event, ThreadCheckpointed)
    newest = (await load_pages(store, told.fact.event.conversation_ref.digest))[-1][1]
    kinds = [each.kind for each in told_by(newest).limits]
    assert kinds[0] == "rate_limit.hit" and set(kinds[1:]) == {"model.completed"}
