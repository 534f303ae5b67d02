"""Where a thread's next turn begins to read: at its newest summary, and in the same state as after reading all."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kit.runs.long_runs import Asked, events_of, look, looking
from wakeful import Agent, run, tool
from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.events import CompactionCompleted, ThreadCheckpointed, TurnStarted
from wakeful.decisions.state import TurnState
from wakeful.engine.state_loader import UNREAD, fold
from wakeful.ports import ModelRequest, Store, TurnRow
from wakeful.service.queries.replay import replay_turn
from wakeful.testing.wrapped_store import WrappedStore


@tool(effect="pure", leaves_machine=True)
def fetch(x: str) -> str:
    """Fetch."""
    return f"page {x}"


class Counting(WrappedStore):
    """Notes how many facts each reading of a thread or a turn gave."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.read_facts: list[int] = []

    async def read(self, agent_id: str, **options: Any) -> list[StoredFact]:
        found = await super().read(agent_id, **options)
        if options.keys() & {"thread_id", "turn_id"}:
            self.read_facts.append(len(found))
        return found


def clerk(asked: Asked, answer: Any = None, **options: Any) -> Agent[Any, str]:
    return Agent("clerk", asked.model(answer or looking(0)), "Serve.", tools=[look, fetch], **options)


async def talked(store: Store, agent: Agent[Any, str], numbers: Sequence[int], words: int = 200) -> list[Any]:
    return [await run(agent, f"message {n} " + "word " * words, store=store, thread="t") for n in numbers]


def seals(result: Any) -> list[int]:
    """Where the turn put the conversation into pages."""
    return [entry.seq for entry in result.facts() if isinstance(entry.fact.event, ThreadCheckpointed)]


async def both_folds(store: Store, row: TurnRow) -> tuple[TurnState, TurnState]:
    """The turn's state from its window, and from the thread's first event."""
    everything = await store.read(row.agent_id, thread_id=row.thread_id)
    window = [entry for entry in everything if entry.seq >= row.window_from]
    return (await fold(store, row, window)).state, (await fold(store, row, everything)).state


def conversation(state: TurnState) -> dict[str, Any]:
    """Everything the next turn goes on with."""
    kept = {part.call_id for item in state.conversation.items if item.role == "assistant" for part in item.calls}
    return {
        "items": state.conversation.items,
        "heard": state.conversation.heard,
        "references": {call: refs for call, refs in state.conversation.references.items() if call in kept},
        "conserved": state.conversation.conserved,
        "advised": state.conversation.advised,
        "exposure": (state.thread.exposure.untrusted, state.thread.exposure.private),
        "compaction": state.thread.compaction_id,
        "begins": state.thread.begins,
        "skills": state.thread.skills,
        "index": state.terms.turn_index,
    }


async def test_the_next_turn_begins_at_the_newest_summary(store: Store) -> None:
    asked = Asked()
    agent = clerk(asked, budget_awareness="per-message")
    results = await talked(store, agent, range(30))
    folded = [place for place, result in enumerate(results) if events_of(result, CompactionCompleted)]
    assert len(folded) >= 3
    firsts = {row.turn_id: row.first_seq for row in await store.turns()}
    windows = []
    for place, result in enumerate(results):
        row = await store.turn(result.turn_id)
        assert row is not None
        (started,) = events_of(result, TurnStarted)
        assert started.window_from == row.window_from and started.turn_index == place + 1
        windows.append(row.window_from)
        earlier = [each for each in folded if each < place]
        if earlier:
            (completed,) = events_of(results[earlier[-1]], CompactionCompleted)
            sealed = [seal for each in results[:place] for seal in seals(each)]
            wanted = max(firsts[completed.window.from_turn], *sealed)
            assert row.window_from == wanted, "derived from that fact alone, or from newer pages"
            assert results.index(next(r for r in results if r.turn_id == completed.window.from_turn)) <= earlier[-1]
        here, whole = await both_folds(store, row)
        assert conversation(here) == conversation(whole)
        assert UNREAD not in here.conversation.items
        assert (await replay_turn(store, row)).identical
    assert windows == sorted(windows) and windows[-1] > firsts[results[10].turn_id]


async def test_reading_a_thread_costs_its_window_and_not_its_length(store: Store) -> None:
    counting, agent = Counting(store), clerk(Asked())
    results, read = [], []
    for number in range(40):
        counting.read_facts.clear()
        results += await talked(counting, agent, [number])
        read.append(sum(counting.read_facts))
    assert any(events_of(result, CompactionCompleted) for result in results)
    whole = len(await store.read(results[0].agent_id, thread_id="t"))
    assert max(read) < whole / 2, "no turn read everything"
    assert max(read[20:]) <= max(read[:20]) * 1.5, "and late ones no more than earlier"


async def test_a_turn_that_was_cut_inside_itself_is_read_from_its_own_beginning(store: Store) -> None:
    await talked(store, clerk(Asked()), range(3), words=5)
    long = await run(clerk(Asked(), looking(14)), "look around", store=store, thread="t")
    (*_, completed) = events_of(long, CompactionCompleted)
    assert completed.window.from_turn == long.turn_id and completed.window.items == 6
    asked = Asked()
    after = await run(clerk(asked), "and now?", store=store, thread="t")
    row, first = await store.turn(after.turn_id), await store.turn(long.turn_id)
    assert row is not None and first is not None and row.window_from == first.first_seq
    here, whole = await both_folds(store, row)
    assert conversation(here) == conversation(whole)
    assert asked[0].items[: len(long.history())] == long.history()
    assert (await replay_turn(store, row)).identical


async def test_what_the_folded_part_has_seen_still_counts(store: Store) -> None:
    def answer(request: ModelRequest) -> Any:
        return "ok" if request.answered else {"calls": [{"name": "fetch", "arguments": {"x": "1"}}]}

    await run(clerk(Asked(), answer), "get it", store=store, thread="t")
    results = await talked(store, clerk(Asked()), range(20))
    row = await store.turn(results[-1].turn_id)
    first = (await store.turns_of_thread(results[0].agent_id, "t"))[0]
    assert row is not None and row.window_from > first.last_seq, "the turn that fetched is not read any more"
    here, whole = await both_folds(store, row)
    assert here.thread.exposure.untrusted == whole.thread.exposure.untrusted == "fetch"
    # The inversion: without what the summary's fact carries, nobody would know. Newer pages say it, too.
    (*_, completed) = [event for result in results for event in events_of(result, CompactionCompleted)]
    begins = await store.turn(completed.window.from_turn)
    assert begins is not None
    everything = await store.read(row.agent_id, after=begins.first_seq - 1, thread_id="t")
    forgotten = [_without_exposure(each) for each in everything if not isinstance(each.fact.event, ThreadCheckpointed)]
    assert (await fold(store, row, forgotten)).state.thread.exposure.untrusted == ""


async def test_skills_that_the_folded_part_used_are_still_told_of(store: Store, tmp_path: Path) -> None:
    skill = tmp_path / "repo" / ".agents" / "skills" / "notes"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: notes\ndescription: keeps notes\n---\nBODY\n")

    def answer(request: ModelRequest) -> Any:
        if request.answered:
            return "ok"
        return {"calls": [{"name": "wakeful/read_file", "arguments": {"path": ".agents/skills/notes/SKILL.md"}}]}

    def coder(asked: Asked, script: Any) -> Agent[Any, str]:
        return Agent("coder", asked.model(script, window=12_000), workspace=tmp_path / "repo")

    first = await run(coder(Asked(), answer), "read it", store=store, thread="t")
    asked = Asked()
    results = await talked(store, coder(asked, looking(0)), range(20), words=500)
    row, opened = await store.turn(results[-1].turn_id), await store.turn(first.turn_id)
    assert row is not None and opened is not None and row.window_from > opened.last_seq
    assert f"- notes (restored: {skill / 'SKILL.md'})" in asked[-1].instructions
    here, whole = await both_folds(store, row)
    assert conversation(here) == conversation(whole)


def _without_exposure(entry: StoredFact) -> StoredFact:
    event = entry.fact.event
    if isinstance(event, CompactionCompleted) and event.window is not None:
        window = event.window.model_copy(update={"untrusted": ""})
        fact = type(entry.fact)(**{name: getattr(entry.fact, name) for name in entry.fact.__slots__})
        fact.event = event.model_copy(update={"window": window})
        return entry._replace(fact=fact)
    return entry


@pytest.mark.parametrize("ahead", [1, 3])
async def test_messages_that_came_while_a_turn_ran_are_read_in_their_place(store: Store, ahead: int) -> None:
    asked = Asked()
    agent = clerk(asked)
    for start in range(0, 24, ahead + 1):
        numbers = range(start, start + ahead + 1)
        await asyncio.gather(*(run(agent, f"message {n} " + "word " * 200, store=store, thread="t") for n in numbers))
    for row in await store.turns():
        here, whole = await both_folds(store, row)
        assert conversation(here) == conversation(whole)
        assert (await replay_turn(store, row)).identical
    assert asked.summaries
