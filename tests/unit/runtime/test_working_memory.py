"""Working memory and episodes through `Runtime`: derived from records, and shown by revision."""

from pathlib import Path
from typing import Any

import pytest

from kit.runs.engine_runs import calls
from unit.runtime.test_memory import AGENT, Mind, ask
from unit.runtime.test_memory import home as home  # the fixture
from wakeful import Runtime, tool
from wakeful.contracts.events import MemoryEpisodeFinalized, MemoryProjected, MemoryTurnRecorded
from wakeful.testing import FixedClock

FOLLOWS = "Working memory: this changed, and is now:"


def worker(text: str, results: list[Any]) -> Any:
    """Creates and picks an item when it is told `take WORDS`, completes its item at `done`, waits at `wait`."""
    verb, _, words = text.partition(" ")
    if verb == "take" and not results:
        return calls(("create_work_item", {"objective": words, "todo_list": [{"text": "look"}]}))
    if verb == "take" and len(results) == 1:
        return calls(("pick_work_item", {"work_item_id": results[0]["work_item_id"]}))
    if verb == "done" and not results:
        return {"text": "All of it is done.", **calls(("complete_work_item", {"work_item_id": words}))}
    if verb == "wait" and not results:
        return calls(("wait_for", {"reason": words, "wake": "external"}))
    return f"Heard {text}."


def system_of(mind: Mind) -> str:
    return mind.requests[-1].frame.system_prompt


async def asked(rt: Runtime, text: str) -> None:
    """Once nothing is left to do: an open work item wakes its agent after the answer, and that turn is over, too."""
    await ask(rt, text)
    await rt.settled()


def followed(mind: Mind) -> list[str]:
    """What stands behind the conversation about working memory, in the newest request."""
    return [item.text for item in mind.requests[-1].history if item.role == "user" and item.text.startswith(FOLLOWS)]


@pytest.mark.spec("HOL-MEM-01", "HOL-MEM-03", "HOL-MEM-04", "HOL-MEM-05")
@pytest.mark.spec("HOL-STATE-13")
async def test_what_changed_is_shown_once_with_the_next_turn(tmp_path: Path) -> None:
    mind = Mind(worker)
    async with Runtime(tmp_path / "rt", agents=[mind.agent(work_items=True)], clock=FixedClock()) as rt:
        await ask(rt, "hello")
        state = await rt.memory(AGENT).working()
        assert (state.working_memory_revision, state.last_prompted_working_memory_revision) == (1, None)
        assert state.pending_working_memory_delta is not None
        assert state.pending_working_memory_delta.changed_fields == ("recent_decisions",)
        pending = state.pending_working_memory_delta
        assert (pending.from_revision, pending.to_revision) == (0, 1)
        assert followed(mind) == []
        await ask(rt, "again")
        assert followed(mind) == [f"{FOLLOWS}\nRecent decisions and results:\n- result: Heard hello."]
        state = await rt.memory(AGENT).working()
        assert (state.working_memory_revision, state.last_prompted_working_memory_revision) == (2, 1)
        await ask(rt, "third")
        assert [each.count("- result") for each in followed(mind)] == [1, 2], "each turn is told what is new to it"
        await ask(rt, "elsewhere", thread="chat")
        assert [each.count("- result") for each in followed(mind)] == [3], "another thread was told nothing before"


@pytest.mark.spec("HOL-MEM-02", "HOL-MEM-07", "HOL-MEM-10")
async def test_it_follows_from_records_at_the_end_of_a_turn(tmp_path: Path) -> None:
    mind = Mind(worker)
    async with Runtime(tmp_path / "rt", agents=[mind.agent(work_items=True)], clock=FixedClock()) as rt:
        await ask(rt, "take mend the build")
        (item,) = await rt.work_items(AGENT)
        now = (await rt.memory(AGENT).working()).current_working_memory
        assert (now.current_work_item_id, now.objective, now.todo_list) == (item.id, "mend the build", ("look",))
        assert now.work_summary == "plan draft; 0 of 1 steps done"
        events = [each async for each in _stored(rt)]
        ended = next(place for place, event in enumerate(events) if event.kind == "turn.completed")  # its work goes on
        recorded = [place for place, event in enumerate(events[:ended]) if isinstance(event, MemoryTurnRecorded)]
        assert len(recorded) == 1, "once for the turn, whatever its calls changed"
        before, *_, last = [request.frame.system_prompt for request in mind.requests[:3]]
        assert before == last, "the prompt is the same in every round of a turn"
        told = events[recorded[0]]
        assert isinstance(told, MemoryTurnRecorded)
        assert told.turn.active_work_changed and told.turn.todo_list_changed and told.turn.messages == 1


async def _stored(rt: Runtime) -> Any:
    for entry in await rt._here.engine.store.read(AGENT):
        yield entry.fact.event


@pytest.mark.spec("HOL-MEM-06", "HOL-MEM-08", "HOL-MEM-09", "HOL-MEM-11")
async def test_an_episode_ends_at_a_boundary_and_stays_as_it_is(tmp_path: Path, home: Path) -> None:
    @tool
    def exec_command(cmd: str) -> str:
        """Run it."""
        return '"ok"'

    def say(text: str, results: list[Any]) -> Any:
        if text == "check" and not results:
            return calls(("exec_command", {"cmd": "make test"}))
        return worker(text, results)

    mind = Mind(say)
    agent = mind.agent(work_items=True, tools=[exec_command])
    async with Runtime(tmp_path / "rt", agents=[agent], clock=FixedClock()) as rt:
        await asked(rt, "take mend the build")
        await asked(rt, "check")
        state = await rt.memory(AGENT).working()
        builder = state.active_episode_builder
        assert builder is not None and (builder.id, builder.turns) == (state.active_episode_id, 8), "its work woke it"
        assert (builder.start_turn_index, builder.end_turn_index) == (1, 8)
        assert "# Working memory" not in system_of(mind), "until then the prompt stays what it was"
        (item,) = await rt.work_items(AGENT)
        await asked(rt, f"done {item.id}")
        state = await rt.memory(AGENT).working()
        assert (state.active_episode_id, state.archived_episode_count) == (None, 1)
        assert state.snapshot_revision == state.working_memory_revision
        (episode,) = await rt._here.engine.store.episodes(AGENT)
        assert (episode.boundary_reason, episode.start_turn_index, episode.end_turn_index) == ("result", 1, 9)
        assert (episode.start_message_count, episode.end_message_count) == (0, 9)
        assert (episode.current_work_item_id, episode.objective) == (item.id, "mend the build")
        assert episode.commands == ("make test",) and episode.verification == ("make test: exit status None",)
        assert "result: All of it is done." in [line["text"] for line in episode.decisions]
        before = followed(mind)
        await asked(rt, "hello")
        assert "# Working memory\n" in system_of(mind) and "All of it is done." in system_of(mind)
        assert followed(mind) == before, "nothing changed since the snapshot"
        found = [each for each in await rt.memory(AGENT).list("mend build") if each.kind == "episode"]
        assert "Verification:\n- make test" in found[0].text
        await asked(rt, "wait for the courier")
        (first, second) = await rt._here.engine.store.episodes(AGENT)
        assert first == episode and second.boundary_reason == "waiting"
        assert [line["text"] for line in second.waiting_on] == ["external: for the courier"]
        await rt.send(AGENT, "go on")
        for number in range(12):
            await asked(rt, f"number {number}")
        assert (await rt._here.engine.store.episodes(AGENT))[-1].boundary_reason == "turn_cap"


async def test_the_cache_key_changes_with_the_snapshot_alone(tmp_path: Path) -> None:
    """W33: what changes from turn to turn stands behind the conversation."""
    mind = Mind(worker)
    async with Runtime(tmp_path / "rt", agents=[mind.agent()], clock=FixedClock()) as rt:
        keys, episodes = [], []
        for number in range(14):
            await ask(rt, f"number {number}")
            keys.append(mind.requests[-1].frame.cache.prompt_cache_key)
            assert mind.requests[-1].frame.cache.working_memory_revision == number, "which is no part of the key"
            episodes.append((await rt.memory(AGENT).working()).archived_episode_count)
        assert len(set(keys[:12])) == 1, "eleven changes, and one prompt"
        assert (episodes[11], keys[12] != keys[11], keys[13] == keys[12]) == (1, True, True)
        events = [each async for each in _stored(rt)]
        shown = [event for event in events if isinstance(event, MemoryProjected)]
        assert [event.snapshot_revision for event in shown] == [0] * 11 + [12, 12]
        assert sum(isinstance(event, MemoryEpisodeFinalized) for event in events) == 1
