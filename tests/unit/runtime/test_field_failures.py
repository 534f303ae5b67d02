"""Failures that were reported from the field of such runtimes, through `Runtime`: none of them can happen here."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kit.runs.engine_runs import calls
from wakeful import Agent, Runtime, tool
from wakeful.contracts.approvals import Approve
from wakeful.contracts.events import MessageDeferred
from wakeful.ports import WakeRow
from wakeful.runtime.inbox import defer_message
from wakeful.service.commands.approvals import decide
from wakeful.store.memory import MemoryStore
from wakeful.testing import FixedClock, scripted
from wakeful.testing.wrapped_store import WrappedStore

MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)
HOUR, DAY = 3600, 86_400


async def passes(rt: Runtime, clock: FixedClock, seconds: float) -> None:
    await rt.settled()
    clock.advance(seconds)
    await rt.settled()


async def kinds(rt: Runtime, *wanted: str) -> list[str]:
    found = await rt._here.engine.store.read("ops")
    return [entry.fact.event.kind for entry in found if entry.fact.event.kind.startswith(wanted)]


async def test_an_agent_that_waits_again_and_again_is_spaced_out_and_told_of(tmp_path: Path) -> None:
    """775 waits in a row, each ended at once by its own timer."""
    clock, asked = FixedClock(MIDNIGHT), list[int]()

    def reply(request: Any) -> Any:
        asked.append(clock.now())
        arguments = {"reason": "soon", "wake": "timer", "deadline_ms": 1_000}
        return {"calls": [{"name": "wait_for", "arguments": arguments}]}

    async with Runtime(tmp_path, agents=[Agent("ops", scripted(reply))], clock=clock) as rt:
        await rt.send("ops", "Wait.")
        for _ in range(24 * 60):
            await passes(rt, clock, 60)
        assert len(asked) < 45, "a day of waiting costs some tens of turns, not thousands"
        assert await kinds(rt, "progress.stalled") == ["progress.stalled"]
        assert [notice.cause for notice in await rt.notices()] == ["progress.stalled"]
        assert len(await rt._here.engine.store.open_waits("ops")) <= 1


def id_of_work(request: Any) -> str | None:
    said = "".join(item.text for item in request.history if item.role == "tool")
    return re.search(r"wi_\w+", said)[0] if "wi_" in said else None  # type: ignore[index]


async def test_a_changed_checklist_does_not_keep_an_agent_awake_that_wakes_itself(tmp_path: Path) -> None:
    """It changed its list, slept a second, changed its list: a plan alone is progress twice, whatever wakes it."""
    clock, turns = FixedClock(MIDNIGHT), list[int]()

    def reply(request: Any) -> Any:
        name = id_of_work(request)
        if name is None:
            return calls(("create_work_item", {"objective": "Mend it."}))
        turns.append(clock.now())
        change = (
            "update_work_item",
            {"work_item_id": name, "todo_list": [{"text": f"{len(turns)}", "state": "pending"}]},
        )
        rest = ("sleep", {"reason": "a moment", "duration_ms": 1_000})
        return calls(change, rest) if len(turns) % 3 else calls(rest)

    async with Runtime(tmp_path, agents=[Agent("ops", scripted(reply), work_items=True)], clock=clock) as rt:
        await rt.send("ops", "Work.")
        for _ in range(24 * 12):
            await passes(rt, clock, 300)
        assert len(turns) < 50, "a day of changed lists costs some tens of turns"
        assert await kinds(rt, "progress.stalled") == ["progress.stalled"]


async def test_an_agent_that_has_something_to_tell_each_time_is_not_slowed_down(tmp_path: Path) -> None:
    clock, turns = FixedClock(MIDNIGHT), list[int]()

    def reply(request: Any) -> Any:
        turns.append(clock.now())
        return calls(
            ("notify_operator", {"text": f"Reading {len(turns)}."}),
            ("sleep", {"reason": "next", "duration_ms": 60_000}),
        )

    async with Runtime(tmp_path, agents=[Agent("ops", scripted(reply), work_items=True)], clock=clock) as rt:
        await rt.send("ops", "Tell me each minute.")
        for _ in range(20):
            await passes(rt, clock, 60)
        assert len(turns) == 21
        assert await kinds(rt, "progress.stalled") == []


def used(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def waits_for_it(item: str) -> list[dict[str, Any]]:
    return [used("wait_for", reason="the build", wake="timer", deadline_ms=1_000, work_item_id=item)]


def says_again_what_blocks_it(item: str) -> list[dict[str, Any]]:
    return [used("update_work_item", work_item_id=item, blocked_by="the build", recheck_after=1_000)]


@pytest.mark.parametrize(
    ("does", "blocked_by"),
    [
        (waits_for_it, "no progress"),
        (says_again_what_blocks_it, "the build"),
    ],
)
async def test_an_agent_that_only_tends_its_work_item_does_not_spin(
    tmp_path: Path, does: Callable[[str], list[dict[str, Any]]], blocked_by: str
) -> None:
    """To wait for it again, or to say again what blocks it, is no progress, however often the agent does it."""
    clock, turns = FixedClock(MIDNIGHT), list[str]()

    def reply(request: Any) -> Any:
        if request.history[-1].role == "tool":
            return "Later."
        turns.append(request.history[-1].text)
        assert len(turns) < 60, "it spins"
        item = re.search(r"wi_\w+", request.instructions + turns[-1])
        assert item is not None
        begun = [used("pick_work_item", work_item_id=item[0])] if len(turns) == 1 else []
        return {"text": "Later.", "calls": [*begun, *does(item[0])]}

    async with Runtime(tmp_path, agents=[Agent("ops", scripted(reply), work_items=True)], clock=clock) as rt:
        await rt.enqueue("ops", "Ship it.")
        for _ in range(6 * 60):
            await passes(rt, clock, 60)
        (item,) = await rt.work_items("ops")
        assert item.blocked_by == blocked_by
        assert 10 < len(turns) < 30, "six hours cost some turns, not one a minute"
        told = {notice.cause for notice in await rt.notices()}
        assert told == {"progress.stalled"}


async def test_a_year_of_due_times_that_passed_in_an_outage_is_one_message(tmp_path: Path) -> None:
    """Timer storm: every minute of a year was due when the machine came back."""
    clock, asked = FixedClock(MIDNIGHT), list[str]()

    def reply(request: Any) -> Any:
        asked.append(request.history[-1].text)
        return "done"

    agent = Agent("ops", scripted(reply), wake=[{"cron": "* * * * *", "say": "Look."}])
    async with Runtime(tmp_path, agents=[agent], clock=clock) as rt:
        await rt.settled()
    clock.advance(365 * DAY)
    async with Runtime(tmp_path, agents=[agent], clock=clock) as rt:
        await rt.settled()
        assert len(asked) == 1
        (timer,) = await rt.timers("ops")
        assert (timer.fired, timer.folded) == (1, 9_999)


async def test_a_message_that_wakes_for_something_else_does_not_end_a_wait(tmp_path: Path) -> None:
    """Wrong wake type: an agent that waits for its operator was woken by a tick, and took it for the answer."""
    clock, asked = FixedClock(MIDNIGHT), list[str]()

    def reply(request: Any) -> Any:
        asked.append(request.history[-1].text)
        if len(asked) == 1:
            return {"calls": [{"name": "wait_for", "arguments": {"reason": "which?", "wake": "operator_input"}}]}
        return "the blue one"

    async with Runtime(tmp_path, agents=[Agent("ops", scripted(reply))], clock=clock) as rt:
        await rt.answer(await rt.send("ops", "Ask me."))
        await rt.wake("ops", reason="something changed")
        await rt.receive("ops", "The build is green.", channel="ci")
        await passes(rt, clock, 60)
        assert len(asked) == 1
        (wait,) = await rt._here.engine.store.open_waits("ops")
        assert wait.wake == "operator_input"
        assert (await rt.answer(await rt.send("ops", "The blue one."))).output == "the blue one"
        assert await rt._here.engine.store.open_waits("ops") == []


async def test_a_turn_that_cannot_begin_is_tried_again_with_growing_pauses(tmp_path: Path) -> None:
    """Requeue without backoff: a message whose turn could not begin was put back and taken again, without end."""
    clock, tried = FixedClock(MIDNIGHT), list[int]()

    def deps(context: Any) -> None:
        tried.append(clock.now())
        raise RuntimeError("the vault is closed")

    agent = Agent("ops", scripted(["done"], leftover="ignore"), deps=deps)
    async with Runtime(tmp_path, agents=[agent], clock=clock) as rt:
        await rt.send("ops", "Hello.")
        for _ in range(60):
            await passes(rt, clock, 60)
        assert 0 < len(tried) <= 6
        facts = [entry.fact for entry in await rt._here.engine.store.read("ops")]
        pauses = [fact.event.deadline - fact.at for fact in facts if isinstance(fact.event, MessageDeferred)]
        assert pauses[0] >= 30_000_000 and pauses == sorted(pauses) and pauses[-1] > pauses[0]
        (record,) = await rt.agents()
        assert (record.control, record.cause) == ("paused", "failure")
        assert "failure" in [notice.kind for notice in await rt.notices()]


class LookedAt(WrappedStore):
    """Counts how often somebody looks for what is due."""

    looks = 0

    async def due_wakes(self, now: int, *, limit: int, after: WakeRow | None = None) -> list[WakeRow]:
        self.looks += 1
        return await self.inner.due_wakes(now, limit=limit, after=after)


def asks_and_waits_for_a_decision() -> Agent[None, str]:
    """Its first turn waits for an answer, its second one for a decision."""
    asked = list[int]()

    @tool(approval=True)
    def pay() -> str:
        return "paid"

    def reply(request: Any) -> Any:
        asked.append(1)
        if len(asked) == 1:
            return calls(("wait_for", {"reason": "which?", "wake": "operator_input"}))
        return calls(("pay", {})) if len(asked) == 2 else "paid"

    return Agent("ops", scripted(reply), tools=[pay])


@pytest.mark.parametrize("overdue", [1, 2, 40])
async def test_overdue_messages_behind_a_decision_are_looked_at_with_growing_pauses(overdue: int) -> None:
    """A hot loop: each of two messages that a thread could not take yet made it due because of the other one."""
    store, clock = LookedAt(MemoryStore()), FixedClock(MIDNIGHT)
    async with Runtime(store=store, agents=[asks_and_waits_for_a_decision()], clock=clock) as rt:
        await rt.answer(await rt.send("ops", "Ask me."))
        for number in range(overdue):
            await rt.receive("ops", f"note {number}", channel="mail", key=f"note-{number}")
        await rt.settled()
        waiting = await rt.answer(await rt.send("ops", "The blue one."))
        assert waiting.status == "approval_required"
        assert len(await store.deferred("ops", "main")) == overdue
        before = store.looks
        await passes(rt, clock, 16 * 60)
        assert store.looks - before < 10
        for _ in range(60):
            await passes(rt, clock, 60)
        assert store.looks - before < 300, "an hour costs some looks a minute"
        await decide(rt._here.engine, waiting.approvals[0].approval_id, Approve())
        await passes(rt, clock, 60)
        assert await store.deferred("ops", "main") == []


async def test_a_thread_that_somebody_else_runs_is_looked_at_with_growing_pauses() -> None:
    store, clock = LookedAt(MemoryStore()), FixedClock(MIDNIGHT)
    async with Runtime(store=store, agents=[Agent("ops", scripted(lambda request: "done"))], clock=clock) as rt:
        await rt.answer(await rt.send("ops", "Hello."))
        await rt.settled()
        claim = await store.claim_thread("ops", "main", "turn_elsewhere")
        sent = await rt.send("ops", "Two.")
        for words in ("Three.", "Four."):
            later = await rt.send("ops", words)
            await defer_message(rt._here.engine, later.message_id, within=0)
        before = store.looks
        await passes(rt, clock, 10)
        assert store.looks - before < 10
        await store.release(claim)
        await passes(rt, clock, 60)
        assert (await rt.answer(sent)).output == "done"
        assert await store.deferred("ops", "main") == []


class CountingStore(WrappedStore):
    """Counts the events that readers are given."""

    given = 0

    async def read(self, agent_id: str, **options: Any) -> Any:
        found = await self.inner.read(agent_id, **options)
        self.given += len(found)
        return found


async def test_reading_where_an_agent_stands_costs_the_same_after_months_of_messages(tmp_path: Path) -> None:
    """Giant state read: to ask for the state of an agent read everything that it had ever said."""
    store = CountingStore(MemoryStore())
    agent = Agent("ops", scripted(lambda request: "x" * 2_000), work_items=True, memory=True)
    async with Runtime(store=store, agents=[agent]) as rt:

        async def read_state() -> tuple[int, int]:
            """How many events are read for it, and how long it is."""
            before = store.given
            said = [await rt.agent("ops"), *await rt.agents(), await rt.why("ops"), *await rt.timers("ops")]
            return store.given - before, sum(len(each.model_dump_json()) for each in said)

        async def talk(messages: int) -> None:
            for _ in range(messages):
                await rt.answer(await rt.send("ops", "y" * 2_000))
            await rt.settled()

        await talk(3)
        first = await read_state()
        await talk(60)
        later = await read_state()
        assert later[0] == first[0], "events read"
        assert abs(later[1] - first[1]) < 100, "characters told"
        assert later[1] < 10_000


async def test_one_more_message_that_an_agent_cannot_take_yet_costs_the_same_however_many_wait() -> None:
    """A flood: each message for an agent that waits for its operator read all that had come before it."""
    store = CountingStore(MemoryStore())
    async with Runtime(store=store, agents=[asks_and_waits_for_a_decision()], clock=FixedClock(MIDNIGHT)) as rt:
        await rt.answer(await rt.send("ops", "Ask me."))

        async def comes() -> int:
            before = store.given
            await rt.receive("ops", "hello", channel="mail")
            await rt.settled()
            return store.given - before

        first = [await comes() for _ in range(20)][-1]
        assert [await comes() for _ in range(43)][-1] == first
        assert len(await store.deferred("ops", "main")) == 63
        before = store.given
        await rt.answer(await rt.send("ops", "The blue one."))
        assert len(await store.deferred("ops", "main")) == 63 - 16, "so many are shown with the next turn"
        assert store.given - before < 100
