"""An agent's own work through `Runtime`: it is woken for it, spaced out, reminded, given more; briefs tell of it."""

import asyncio
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kit.runs.engine_runs import calls
from wakeful import Agent, Runtime, tool
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.events import MessageAdmitted, WorkItemEnqueued, WorkQueueActivated
from wakeful.errors import AgentStopped, InvalidRequest
from wakeful.ports import ModelRequest
from wakeful.service.commands.interruption import cancel_turn
from wakeful.testing import FixedClock, scripted

AGENT = "builder"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("WAKEFUL_HOME", str(folder))
    return folder


def builder(say: Callable[[str, list[Any]], Any], **options: Any) -> Agent[None, str]:
    """An agent whose model says what `say` makes of the newest message and of the results since then."""

    def script(request: ModelRequest) -> Any:
        heard = [item for item in request.history if item.role == "user" and item.origin == "person"]
        results: list[Any] = []
        for item in request.history:
            if item.role == "user" and item is heard[-1]:
                results = []
            elif item.role == "tool":
                results.append(json.loads(item.text))
        return say(heard[-1].text, results)

    return Agent(AGENT, scripted(script), work_items=True, **options)


def item_of(text: str) -> str:
    return next(word.rstrip(",.:") for word in text.split() if word.startswith("wi_"))


def worker(text: str, results: list[Any]) -> Any:
    """Picks what it is shown, works a round at each tick, and completes at the third."""
    if results:
        return "Done." if "reported" in results[-1] else "Some progress."
    name = item_of(text)
    if "Pick one" in text:
        return calls(("pick_work_item", {"work_item_id": name}))
    worked.append(name)
    if len(worked) < 3:
        todo = [{"text": f"step {number}", "state": "completed"} for number in range(len(worked))]
        return calls(
            ("update_work_item", {"work_item_id": name, "todo_list": todo, "objective": f"step {len(worked)}"})
        )
    return {"text": "The build is green.", **calls(("complete_work_item", {"work_item_id": name}))}


worked: list[str] = []


@pytest.mark.spec("HOL-WACT-01", "HOL-WACT-02", "HOL-WACT-05", "HOL-WACT-07")
@pytest.mark.spec("HOL-WENQ-02", "HOL-WENQ-04", "HOL-WENQ-05", "HOL-WENQ-06")
async def test_an_enqueued_item_is_picked_worked_on_and_completed_without_any_message(tmp_path: Path) -> None:
    worked.clear()
    async with Runtime(tmp_path / "rt", agents=[builder(worker)], clock=FixedClock()) as rt:
        enqueued = await rt.enqueue(AGENT, "Mend the nightly build.")
        assert (enqueued.state, enqueued.created_by, enqueued.readiness) == ("open", "program", "runnable")
        await rt.settled()
        assert await rt.work_items(AGENT) == []
        (done,) = await rt.work_items(AGENT, completed=True)
        assert (done.id, done.completion_report) == (enqueued.id, "The build is green.")
    async with opened_store(tmp_path / "rt" / "wakeful.db") as store:
        events = [entry.fact.event for entry in await store.read(AGENT)]
    assert sum(isinstance(event, WorkQueueActivated) for event in events) == 4, "to pick it, and three times to go on"
    assert [event.kind for event in events].index("work_item.enqueued") < [event.kind for event in events].index(
        "message.admitted"
    ), "the item is there before any message"
    (audited,) = [event for event in events if isinstance(event, WorkItemEnqueued)]
    assert (audited.enqueued_by, hasattr(audited, "delivery_surface")) == ("program", False)
    ticks = [event for event in events if isinstance(event, MessageAdmitted)]
    assert {(each.message_kind, each.origin.kind, each.priority) for each in ticks} == {
        ("system_tick", "system", "background")
    }
    assert all(each.work_item_id == enqueued.id for each in ticks), "a tick says which item it is about"


@pytest.mark.spec("HOL-WACT-03", "HOL-WACT-04")
async def test_nothing_to_work_on_wakes_nobody(tmp_path: Path) -> None:
    def say(text: str, results: list[Any]) -> Any:
        if results:
            return "Waiting."
        name = item_of(text)
        if "Pick one" in text:
            return calls(
                ("pick_work_item", {"work_item_id": name}),
                ("update_work_item", {"work_item_id": name, "plan_status": "needs_input"}),
            )
        raise AssertionError("it waits for the operator")

    async with Runtime(tmp_path / "rt", agents=[builder(say)], clock=FixedClock()) as rt:
        await rt.settled()
        assert await rt.briefs(AGENT) == [], "an agent without items is not woken"
        await rt.enqueue(AGENT, "Choose a colour.")
        await rt.settled()
        (item,) = await rt.work_items(AGENT)
        assert (item.scheduling_state, item.is_current) == ("waiting_operator", True)
        told = [(brief.kind, brief.visibility) for brief in await rt.briefs(AGENT)]
        assert told == [("result", "action_required"), ("progress", "action_required")], "it is woken once, and asks"
        words = f"Work item {item.id} needs your input: Choose a colour."
        assert [(each.kind, each.text) for each in await rt.notices(AGENT)] == [("action_required", words)]
        assert (await rt.why(AGENT)).sentence.endswith(words)


async def test_turns_that_bring_nothing_are_spaced_out_and_at_last_the_item_is_blocked(tmp_path: Path) -> None:
    """Three are free, then 30 s and doubling up to an hour; at ten the item is blocked and the operator is told."""
    clock = FixedClock()
    turns: list[int] = []

    def say(text: str, results: list[Any]) -> Any:
        turns.append(clock.now())
        return "Hmm."

    async with Runtime(tmp_path / "rt", agents=[builder(say)], clock=clock) as rt:
        await rt.enqueue(AGENT, "Square the circle.")
        await rt.settled()
        while not any(brief.visibility == "action_required" for brief in await rt.briefs(AGENT)):
            clock.advance(1_800)
            await rt.settled()
            assert len(turns) <= 10
        assert len(turns) == 10
        (item,) = await rt.work_items(AGENT)
        assert (item.blocked_by, item.scheduling_state) == ("no progress", "blocked")
        told = next(brief for brief in await rt.briefs(AGENT) if brief.visibility == "action_required")
        assert (told.kind, told.work_item_id) == ("progress", item.id)
        assert told.text.startswith(f"Work item {item.id} is blocked: turn after turn brought it no further.")
        clock.advance(86_400)
        await rt.settled()
        assert len(turns) == 10, "it spins no more"
    pauses = [(after - before) // 1_000_000 for before, after in pairwise(turns)]
    assert pauses[:2] == [0, 0]
    assert all(pause >= 1_800 for pause in pauses[2:])


async def test_an_item_that_got_stuck_does_not_hold_up_the_next_one(tmp_path: Path) -> None:
    clock = FixedClock()

    def say(text: str, results: list[Any]) -> Any:
        if results:
            return "Done."
        name = item_of(text)
        if "Pick one" in text:
            return calls(("pick_work_item", {"work_item_id": name}))
        if "Square" in text:
            return "Hmm."
        return {"text": "The room is tidy.", **calls(("complete_work_item", {"work_item_id": name}))}

    async with Runtime(tmp_path / "rt", agents=[builder(say)], clock=clock) as rt:
        stuck = await rt.enqueue(AGENT, "Square the circle.")
        await rt.settled()
        await rt.enqueue(AGENT, "Tidy up.")
        for _ in range(12):
            await rt.settled()
            clock.advance(3_600)
        await rt.settled()
        assert [(item.id, item.blocked_by) for item in await rt.work_items(AGENT)] == [(stuck.id, "no progress")]
        assert [item.completion_report for item in await rt.work_items(AGENT, completed=True)] == ["The room is tidy."]


async def test_work_goes_on_in_main_wherever_it_was_taken_on(tmp_path: Path) -> None:
    """A chat has its queue and its turns; the agent's own work is not said there."""
    clock = FixedClock()

    def say(text: str, results: list[Any]) -> Any:
        if results:
            return "Done." if "Pick one" in text or "Your current" in text else "I will."
        if "Pick one" in text:
            return calls(("pick_work_item", {"work_item_id": item_of(text)}))
        if "Your current" in text:
            return {"text": "Tidy.", **calls(("complete_work_item", {"work_item_id": item_of(text)}))}
        return calls(("create_work_item", {"objective": "Tidy up."}))

    async with Runtime(tmp_path / "rt", agents=[builder(say)], clock=clock) as rt:
        await rt.answer(await rt.send(AGENT, "Please tidy up.", thread="chat-1"))
        await rt.settled()
        assert [item.completion_report for item in await rt.work_items(AGENT, completed=True)] == ["Tidy."]
    async with opened_store(tmp_path / "rt" / "wakeful.db") as store:
        ticks = [entry.fact for entry in await store.read(AGENT) if isinstance(entry.fact.event, MessageAdmitted)]
    assert [fact.thread_id for fact in ticks] == ["chat-1", "main", "main"]


@pytest.mark.spec("HOL-WORK-12", "HOL-WORK-13", "HOL-WORK-14")
async def test_a_due_recheck_reminds_the_agent_once_and_leaves_the_blocker(tmp_path: Path) -> None:
    clock, heard = FixedClock(), list[str]()

    def say(text: str, results: list[Any]) -> Any:
        if results:
            return "Blocked."
        heard.append(text)
        if "Pick one" not in text:
            return "Still blocked."
        name = item_of(text)
        blocked = {"work_item_id": name, "blocked_by": "CI", "recheck_after": 60_000}
        return calls(("pick_work_item", {"work_item_id": name}), ("update_work_item", blocked))

    async with Runtime(tmp_path / "rt", agents=[builder(say)], clock=clock) as rt:
        await rt.enqueue(AGENT, "Merge it.")
        await rt.settled()
        clock.advance(59)
        await rt.settled()
        assert len(heard) == 1
        clock.advance(2)
        await rt.settled()
        (item,) = await rt.work_items(AGENT)
        assert f"Work item {item.id} has been blocked by 'CI': Merge it." in heard[1]
        assert (item.blocked_by, item.scheduling_state) == ("CI", "blocked")
        assert item.recheck_consumed_at is not None
        clock.advance(86_400)
        await rt.settled()
        assert len(heard) == 2, "one deadline, one reminder"


async def test_work_goes_on_after_a_restart_in_the_middle(tmp_path: Path) -> None:
    worked.clear()
    clock = FixedClock()
    async with Runtime(tmp_path / "rt", agents=[builder(worker)], clock=clock) as rt:
        await rt.pause(AGENT)
        enqueued = await rt.enqueue(AGENT, "Mend the nightly build.")
        await rt.settled()
        assert worked == []
    async with Runtime(tmp_path / "rt", agents=[builder(worker)], clock=clock) as rt:
        await rt.resume(AGENT)
        await rt.settled()
        (done,) = await rt.work_items(AGENT, completed=True)
        assert done.id == enqueued.id


async def test_items_from_outside_are_refused_where_nobody_would_work_on_them(tmp_path: Path) -> None:
    plain = Agent("plain", scripted(["never"], leftover="ignore"))
    async with Runtime(tmp_path / "rt", agents=[builder(worker), plain], clock=FixedClock()) as rt:
        with pytest.raises(InvalidRequest, match="'plain' keeps no work items"):
            await rt.enqueue("plain", "Mend it.")
        with pytest.raises(InvalidRequest, match="the objective of a work item is nothing"):
            await rt.enqueue(AGENT, "  ")
        await rt.stop(AGENT)
        with pytest.raises(AgentStopped, match="it takes no work items") as refused:
            await rt.enqueue(AGENT, "Mend it.")
        assert refused.value.hint == f"Let it run again first: wakeful agent resume {AGENT}"
        assert await rt.work_items(AGENT) == []
        assert (await rt.agent(AGENT)).refused == {"agent_stopped": 1, "invalid_request": 1}, "it is counted"


# --- the end of a turn ----------------------------------------------------------------------------------------------


@pytest.mark.spec("HOL-WEND-02", "HOL-WEND-05", "HOL-WEND-07", "HOL-WEND-01")
async def test_a_wait_for_the_item_that_a_turn_began_with_blocks_it_until_the_wait_is_over(tmp_path: Path) -> None:
    clock = FixedClock()

    def say(text: str, results: list[Any]) -> Any:
        if "Pick one" in text:
            picks = not results and not picked
            picked.append(text)
            return calls(("pick_work_item", {"work_item_id": item_of(text)})) if picks else "One thing at a time."
        if "nothing blocks it" in text and not results:
            waits = {"reason": "CI", "wake": "timer", "deadline_ms": 60_000, "work_item_id": item_of(text)}
            return calls(("wait_for", waits)) if not woken else "On it."
        woken.append(text)
        return "Awake."

    woken, picked = list[str](), list[str]()
    async with Runtime(tmp_path / "rt", agents=[builder(say)], clock=clock) as rt:
        enqueued = await rt.enqueue(AGENT, "Merge it.")
        other = await rt.enqueue(AGENT, "Another.")
        await rt.settled()
        waiting = {item.id: item for item in await rt.work_items(AGENT)}
        assert waiting[enqueued.id].blocked_by == "waiting: CI"
        assert waiting[enqueued.id].scheduling_state == "waiting_external"
        assert waiting[other.id].blocked_by is None, "only the item that the turn was bound to"
        assert waiting[enqueued.id].is_current, "the runtime never changes the focus"
        clock.advance(61)
        await rt.settled()
        assert woken
        (item,) = [item for item in await rt.work_items(AGENT) if item.id == enqueued.id]
        assert item.blocked_by != "waiting: CI", "the same words are taken away with the wait"


async def test_work_goes_on_after_its_wait_was_cancelled(tmp_path: Path) -> None:
    """The blocker that the wait had set is gone with it: nobody else would take it away."""
    heard: list[str] = []

    def say(text: str, results: list[Any]) -> Any:
        if results:
            return "Done."
        heard.append(text)
        if "Pick one" in text:
            return calls(("pick_work_item", {"work_item_id": item_of(text)}))
        if "Never mind" in text:
            return calls(("cancel_wait", {"wait_id": text.split()[-1]}))
        if len(heard) == 2:
            waits = {"reason": "CI", "wake": "external", "resource": "build 7", "work_item_id": item_of(text)}
            return calls(("wait_for", waits))
        return {"text": "Merged.", **calls(("complete_work_item", {"work_item_id": item_of(text)}))}

    async with Runtime(tmp_path / "rt", agents=[builder(say)], clock=FixedClock()) as rt:
        enqueued = await rt.enqueue(AGENT, "Merge it.")
        await rt.settled()
        (item,) = await rt.work_items(AGENT)
        (wait,) = await rt._here.engine.store.open_waits(AGENT)
        assert (item.blocked_by, item.scheduling_state) == ("waiting: CI", "waiting_external")
        await rt.send(AGENT, f"Never mind the build: {wait.wait_id}")
        await rt.settled()
        assert [item.id for item in await rt.work_items(AGENT, completed=True)] == [enqueued.id]
        assert "nothing blocks it" in heard[-1]


@pytest.mark.spec("HOL-WEND-03", "HOL-WEND-04", "HOL-WEND-06")
async def test_a_turn_without_a_current_item_or_a_completion_leaves_items_as_they_are(tmp_path: Path) -> None:
    def say(text: str, results: list[Any]) -> Any:
        if "nothing blocks it" in text or "Pick one" in text:
            return "All of it is done, believe me."
        return calls(("wait_for", {"reason": "you", "wake": "operator_input"}))

    async with Runtime(tmp_path / "rt", agents=[builder(say)], clock=FixedClock()) as rt:
        await rt.pause(AGENT)
        item = await rt.enqueue(AGENT, "Mend it.")
        sent = await rt.send(AGENT, "Hello?")
        await rt.resume(AGENT)
        await rt.answer(sent)
        await rt.settled()
        (left,) = await rt.work_items(AGENT)
        assert (left.id, left.state, left.blocked_by) == (item.id, "open", None)
        assert any(brief.visibility == "action_required" for brief in await rt.briefs(AGENT)), "it awaits the operator"


# --- briefs ------------------------------------------------------------------------------------------------------


@pytest.mark.spec("HOL-BRIEF-01", "HOL-BRIEF-02", "HOL-BRIEF-06", "HOL-BRIEF-11")
@pytest.mark.spec("HOL-BRIEF-10")
async def test_a_turn_tells_its_result_with_its_last_words(tmp_path: Path) -> None:
    @tool(effect="pure")
    def look() -> str:
        """Look."""
        return "all is well"

    agent = Agent("clerk", scripted([{"text": "I look.", **calls("look")}, "All is well."]), tools=[look])
    async with Runtime(tmp_path / "rt", agents=[agent], clock=FixedClock()) as rt:
        sent = await rt.send("clerk", "Look around.")
        result = await rt.answer(sent)
        (brief,) = await rt.briefs("clerk")  # and none of what it said on the way, nor of what the tool gave
        assert (brief.kind, brief.visibility, brief.text) == ("result", "turn_result", "All is well.")
        assert (brief.agent_id, brief.turn_id, brief.related_message_id) == ("clerk", result.turn_id, sent.message_id)
        assert (brief.work_item_id, brief.related_task_id, brief.workspace_id) == (None, None, "")


@pytest.mark.spec("HOL-BRIEF-07")
async def test_a_turn_without_words_has_an_empty_result(tmp_path: Path) -> None:
    async with Runtime(
        tmp_path / "rt", agents=[Agent("clerk", scripted([{"reasoning": "Hm."}]))], clock=FixedClock()
    ) as rt:
        await rt.answer(await rt.send("clerk", "Say nothing."))
        (brief,) = await rt.briefs("clerk")
        assert (brief.kind, brief.text) == ("result", "")


@pytest.mark.spec("HOL-BRIEF-08")
async def test_a_failed_turn_says_why_in_words_for_people(tmp_path: Path) -> None:
    @tool(effect="pure")
    def look() -> str:
        """Look."""
        return "again"

    agent = Agent("clerk", scripted([calls("look")] * 2, leftover="ignore"), tools=[look], max_steps=1)
    async with Runtime(tmp_path / "rt", agents=[agent], clock=FixedClock()) as rt:
        result = await rt.answer(await rt.send("clerk", "Look for ever."))
        assert result.status != "completed"
        (brief,) = await rt.briefs("clerk")
        assert (brief.kind, brief.text) == ("failure", "The agent stopped because it reached its limit of rounds.")


@pytest.mark.spec("HOL-BRIEF-05", "HOL-BRIEF-09", "HOL-BRIEF-12")
async def test_a_report_is_a_brief_of_its_own_and_stands_for_a_result_that_says_the_same(tmp_path: Path) -> None:
    worked.clear()
    async with Runtime(tmp_path / "rt", agents=[builder(worker)], clock=FixedClock()) as rt:
        item = await rt.enqueue(AGENT, "Mend the nightly build.")
        await rt.settled()
        last, report, *_ = await rt.briefs(AGENT)
        assert (report.visibility, report.text, report.work_item_id) == ("work_done", "The build is green.", item.id)
        assert (last.visibility, last.text, last.turn_id) == ("turn_result", "Done.", report.turn_id)
        assert last.work_item_id == item.id, "the item that the turn advanced"


async def test_the_agent_can_tell_its_operator_something_on_the_way(tmp_path: Path) -> None:
    notify = calls(("notify_operator", {"text": "The key has expired; I use the other one."}))
    agent = Agent("clerk", scripted([notify, "Done."]), work_items=True)
    async with Runtime(tmp_path / "rt", agents=[agent], clock=FixedClock()) as rt:
        await rt.answer(await rt.send("clerk", "Renew it."))
        result, progress = await rt.briefs("clerk")
        assert (progress.kind, progress.text) == ("progress", "The key has expired; I use the other one.")
        assert (result.kind, result.text) == ("result", "Done.")


async def test_a_cancelled_turn_is_followed_by_no_ticks(tmp_path: Path) -> None:
    """Field failure: after a cancel the agent was woken for the same item, 148 times in a row."""
    clock, asked = FixedClock(), asyncio.Event()

    @tool(effect="pure")
    async def ponder() -> str:
        """Think for as long as nobody stops it."""
        asked.set()
        await asyncio.Event().wait()
        return "hm"

    def say(text: str, results: list[Any]) -> Any:
        if not results:
            return calls(("pick_work_item", {"work_item_id": item_of(text)}))
        return calls(("ponder", {}))

    async with Runtime(tmp_path / "rt", agents=[builder(say, tools=[ponder], max_steps=200)], clock=clock) as rt:
        await rt.enqueue(AGENT, "Think it over.")
        await asked.wait()
        store = rt._here.engine.store
        (turn,) = [row async for row in store.open_turns()]
        await cancel_turn(rt._here.engine, turn.turn_id, requested_by="operator")
        await rt.settled()
        for _ in range(20):
            clock.advance(3600)
            await rt.settled()
        turns = await store.turns_of_agent(AGENT, limit=50)
        assert [row.state for row in turns] == ["cancelled"]
        life = await rt.why(AGENT)
        (item,) = await rt.work_items(AGENT)
        left = f"Work item {item.id} is left alone until you send {AGENT} a message: Think it over."
        assert (life.state, life.sentence) == ("idle", f"{AGENT} owes nothing; turn {turn.turn_id} cancelled. {left}")
        await rt.send(AGENT, "Go on with it.")


async def test_work_that_is_planned_again_for_the_same_moment_wakes_its_agent_again(tmp_path: Path) -> None:
    """The clock stands still: a turn of another thread plans the work that was left when its turn was cancelled."""
    asked, ticks = asyncio.Event(), list[str]()

    @tool(effect="pure")
    async def ponder() -> str:
        """Think for as long as nobody stops it."""
        asked.set()
        await asyncio.Event().wait()
        return "hm"

    def say(request: ModelRequest) -> Any:
        text = str(request.history[-1].text)
        if request.answered or "wi_" not in text:
            return "Seen."
        ticks.append(text)
        if len(ticks) == 1:
            return calls(("pick_work_item", {"work_item_id": item_of(text)}))
        return calls(("ponder", {})) if len(ticks) == 2 else "Done."

    agent = Agent(AGENT, scripted(say), tools=[ponder], work_items=True)
    async with Runtime(tmp_path / "rt", agents=[agent], clock=FixedClock()) as rt:
        await rt.enqueue(AGENT, "Think it over.")
        await asked.wait()
        (turn,) = [row async for row in rt._here.engine.store.open_turns()]
        await cancel_turn(rt._here.engine, turn.turn_id, requested_by="operator")
        await rt.settled()
        assert len(ticks) == 2
        await rt.answer(await rt.send(AGENT, "Hello?", thread="chat"))
        await rt.settled()
        assert len(ticks) > 2


async def test_work_goes_on_when_everything_may_run_again(tmp_path: Path) -> None:
    """Who stops everything ends no work, as who stops an agent by name does not."""
    asked = asyncio.Event()

    @tool(effect="pure")
    async def ponder() -> str:
        """Think for as long as nobody stops it."""
        if asked.is_set():
            return "hm"
        asked.set()
        await asyncio.Event().wait()
        return "never"

    def say(text: str, results: list[Any]) -> Any:
        if not results:
            return calls(("pick_work_item", {"work_item_id": item_of(text)}))
        if len(results) == 1:
            return calls(("ponder", {}))
        return calls(("complete_work_item", {"work_item_id": item_of(text), "report": "Thought over."}))

    async with Runtime(tmp_path / "rt", agents=[builder(say, tools=[ponder])], clock=FixedClock()) as rt:
        await rt.enqueue(AGENT, "Think it over.")
        await asked.wait()
        await rt.stop_all()
        await rt.settled()
        (turn,) = await rt._here.engine.store.turns_of_agent(AGENT, limit=50)
        assert turn.state == "cancelled"
        await rt.resume_all()
        await rt.settled()
        assert len(await rt._here.engine.store.turns_of_agent(AGENT, limit=50)) > 1, "it was woken for the item"


async def test_an_agent_that_is_let_run_before_its_stopped_turn_ended_goes_on_with_its_work(tmp_path: Path) -> None:
    asked, late = asyncio.Event(), asyncio.Event()

    @tool(effect="irreversible", interrupt_behavior="block")
    async def ponder() -> str:
        """Think, whoever wants it to stop."""
        asked.set()
        await late.wait()
        return "hm"

    def say(request: ModelRequest) -> Any:
        return calls(("ponder", {})) if "Think" in str(request.history[-1].text) else "Seen."

    agent = Agent(AGENT, scripted(say), tools=[ponder], work_items=True)
    async with Runtime(tmp_path / "rt", agents=[agent], clock=FixedClock()) as rt:
        await rt.send(AGENT, "Think it over.")
        await asked.wait()
        await rt.enqueue(AGENT, "Tidy up.")
        await rt.stop(AGENT)
        await rt.resume(AGENT)
        late.set()
        await rt.settled()
        turns = await rt._here.engine.store.turns_of_agent(AGENT, limit=50)
        assert [row.state for row in turns[-1:]] == ["cancelled"]
        assert "completed" in [row.state for row in turns], "it was woken for the item"


@pytest.mark.spec("HOL-RETRY-12", "HOL-RETRY-13")
async def test_after_a_conversation_that_is_too_long_people_are_told_and_the_item_is_not_tried_again(
    tmp_path: Path,
) -> None:
    clock = FixedClock()

    def say(text: str, results: list[Any]) -> Any:
        if not results:
            return calls(("pick_work_item", {"work_item_id": item_of(text)}))
        return {"fail": [{"kind": "context_length_exceeded", "message": "too many tokens"}]}

    async with Runtime(tmp_path / "rt", agents=[builder(say)], clock=clock) as rt:
        await rt.enqueue(AGENT, "Read everything.")
        await rt.settled()
        for _ in range(20):
            clock.advance(3600)
            await rt.settled()
        (brief,) = await rt.briefs(AGENT)
        assert (brief.kind, brief.visibility) == ("failure", "turn_result")
        turns = await rt._here.engine.store.turns_of_agent(AGENT, limit=50)
        assert [row.state for row in turns] == ["failed"]
        (item,) = await rt.work_items(AGENT)
        assert (item.state, item.is_current, item.scheduling_state) == ("open", True, "runnable")


@pytest.mark.spec("HOL-WACT-06")
async def test_a_hint_is_heard_between_the_ticks_of_an_agent_that_keeps_working(tmp_path: Path) -> None:
    heard: list[str] = []

    def say(text: str, results: list[Any]) -> Any:
        heard.append(text)
        if results or "the disk is full" in text:
            return "Some progress."
        name = item_of(text)
        if "Pick one" in text:
            return calls(("pick_work_item", {"work_item_id": name}))
        step = {"work_item_id": name, "objective": f"Keep working, {len(heard)}."}
        return calls(("update_work_item", step)) if len(heard) < 30 else calls(("complete_work_item", step))

    async with Runtime(tmp_path / "rt", agents=[builder(say)], clock=FixedClock()) as rt:
        await rt.enqueue(AGENT, "Keep working.")
        while len(heard) < 6:
            await rt._here.engine.store.watch(AGENT).wait(timeout=1)
        before = len(heard)
        await rt.wake(AGENT, body="the disk is full")
        await rt.settled()
        shown = next(place for place, text in enumerate(heard) if "the disk is full" in text)
        assert shown - before < 12, "it did not wait until all work was done"
        assert any("Keep working" in text for text in heard[shown + 1 :]), "and the work went on after it"


async def test_an_agent_that_sleeps_without_an_end_is_left_alone_with_its_work_for_an_hour(tmp_path: Path) -> None:
    """The item is blocked by "sleeping", with the default recheck; slept over again it is blocked again."""
    clock, heard = FixedClock(), list[str]()

    def sleeper(text: str, results: list[Any]) -> Any:
        if not results:
            heard.append(text)
        if text == "Rest.":
            return calls(
                ("create_work_item", {"objective": "Mend it."}), ("sleep", {"reason": "later", "duration_ms": 0})
            )
        if text == "Go on.":
            return "I am awake."
        return calls(("sleep", {"reason": "later"})) if len(heard) < 4 else "Nothing to do."

    async with Runtime(tmp_path / "rt", agents=[builder(sleeper)], clock=clock) as rt:
        await rt.answer(await rt.send(AGENT, "Rest."))
        (item,) = await rt.work_items(AGENT)
        assert (item.blocked_by, item.recheck_at) == ("sleeping", clock.now() / 1_000_000 + 3_600)
        clock.advance(3_599)
        await rt.settled()
        assert heard == ["Rest."]
        clock.advance(1)
        await rt.settled()
        assert len(heard) == 2 and "blocked by 'sleeping'" in heard[1]
        (item,) = await rt.work_items(AGENT)
        assert (item.blocked_by, item.recheck_at) == ("sleeping", clock.now() / 1_000_000 + 3_600)
        await rt.send(AGENT, "Go on.")
        await rt.settled()
        assert heard[2] == "Go on." and "is ready: Mend it." in heard[3], "who is awake goes on with the work"
        (item,) = await rt.work_items(AGENT)
        assert item.blocked_by is None


async def test_with_an_open_wait_its_deadline_wakes_an_agent_that_sleeps_without_an_end(tmp_path: Path) -> None:
    clock, heard = FixedClock(), list[str]()

    def sleeper(text: str, results: list[Any]) -> Any:
        heard.append(text)
        if text == "Take it on.":
            return calls(("create_work_item", {"objective": "Mend it."})) if not results else "Taken on."
        wait = {"reason": "the build", "wake": "external", "deadline_ms": 7_200_000}
        rest = ("sleep", {"reason": "later"})
        return calls(("wait_for", wait), rest) if "is ready: Mend it." in text else calls(rest)

    async with Runtime(tmp_path / "rt", agents=[builder(sleeper)], clock=clock) as rt:
        await rt.answer(await rt.send(AGENT, "Take it on."))
        await rt.settled()
        (item,) = await rt.work_items(AGENT)
        assert (item.blocked_by, item.recheck_at) == ("sleeping", clock.now() / 1_000_000 + 7_200 + 3_600)
        known = len(heard)
        clock.advance(7_199)
        await rt.settled()
        assert len(heard) == known
        clock.advance(1)
        await rt.settled()
        assert "the deadline has come first" in heard[-1] and len(heard) == known + 1


async def test_work_that_a_conversation_left_is_gone_on_with_when_its_turn_is_cancelled_while_it_waits(
    tmp_path: Path,
) -> None:
    @tool(effect="irreversible", approval=True)
    async def order() -> str:
        """Order the parts."""
        return "ordered"

    def say(text: str, results: list[Any]) -> Any:
        if "plan it" in text:
            return calls(("order", {})) if results else calls(("create_work_item", {"objective": "Mend the gate."}))
        if len(results) == 2:
            return "Done."
        return calls((("complete" if results else "pick") + "_work_item", {"work_item_id": item_of(text)}))

    async with Runtime(tmp_path / "rt", agents=[builder(say, tools=[order])], clock=FixedClock()) as rt:
        result = await rt.answer(await rt.send(AGENT, "Please plan it.", thread="chat"))
        assert result.status == "approval_required"
        await cancel_turn(rt._here.engine, result.turn_id, requested_by="operator")
        await rt.settled()
        assert await rt.work_items(AGENT) == [], "somebody looks at what the conversation left"
