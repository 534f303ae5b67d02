"""The liveness invariant through `Runtime`: a wake that is lost is found, written down and written again."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from wakeful import Agent, Runtime, tool
from wakeful.errors import AgentNotFound
from wakeful.ports.mailbox import BusyThread
from wakeful.store.memory import MemoryStore
from wakeful.testing import FixedClock, scripted

MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE, HOUR, DAY = 60, 3600, 86_400


def ops(*replies: Any) -> Agent[None, str]:
    said = [*replies] or ["done"]

    def reply(request: Any) -> Any:
        return said.pop(0) if len(said) > 1 else said[0]

    return Agent("ops", scripted(reply))


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": tool, "arguments": arguments}]}


def lose_wakes(home: Path, where: str = "1") -> int:
    """What a lost row looks like: somebody's hand, or a bug of ours."""
    return by_hand(home, f"DELETE FROM wakes WHERE {where}")


def by_hand(home: Path, sql: str) -> int:
    base = apsw.Connection(str(home / "wakeful.db"))
    base.set_busy_timeout(10_000)
    base.execute(sql)
    changed = base.changes()
    base.close()
    return changed


async def violations(rt: Runtime) -> list[Any]:
    found = [entry.fact.event for entry in await rt._here.engine.store.read("ops")]
    return [event for event in found if event.kind == "liveness.violated"]


async def passes(rt: Runtime, clock: FixedClock, seconds: float) -> None:
    await rt.settled()
    clock.advance(seconds)
    await rt.settled()


async def looks(rt: Runtime, clock: FixedClock) -> None:
    """Until the watchdog has looked once more."""
    await rt._here.watchdog.look()
    await passes(rt, clock, 1)


async def test_a_timer_whose_wake_was_lost_is_found_and_fires_at_its_time(tmp_path: Path) -> None:
    clock = FixedClock(MIDNIGHT)
    async with Runtime(tmp_path, agents=[ops()], clock=clock) as rt:
        await rt.arm_timer("ops", "Check.", at=MIDNIGHT + timedelta(hours=1))
        await rt.settled()
        assert lose_wakes(tmp_path) == 1
        life = await rt.why("ops")
        assert life.state == "broken"
        assert "nothing would have looked at the timer" in life.sentence
        await looks(rt, clock)
        (found,) = await violations(rt)
        assert (found.violation, found.owed, found.cause) == ("no_wake", "timer", "timer")
        assert (await rt.why("ops")).state == "idle"
        await passes(rt, clock, HOUR)
        (timer,) = await rt.timers("ops")
        assert (timer.fired, timer.state) == (1, "done")
        await looks(rt, clock)
        assert len(await violations(rt)) == 1, "what is repaired is not told again"


async def test_inversion_without_the_watchdog_a_lost_wake_is_never_found(tmp_path: Path) -> None:
    clock = FixedClock(MIDNIGHT)
    async with Runtime(tmp_path, agents=[ops()], clock=clock) as rt:
        await rt.arm_timer("ops", "Check.", at=MIDNIGHT + timedelta(hours=1))
        await rt.settled()
        rt._here._loops[1].cancel()
        lose_wakes(tmp_path)
        for _ in range(5):
            await passes(rt, clock, DAY)
        (timer,) = await rt.timers("ops")
        assert timer.fired == 0


async def test_a_queue_whose_wake_was_lost_is_answered(tmp_path: Path) -> None:
    clock = FixedClock(MIDNIGHT)
    async with Runtime(tmp_path, agents=[ops("hello")], clock=clock) as rt:
        await rt.pause("ops")
        sent = await rt.send("ops", "Are you there?")
        lose_wakes(tmp_path)
        await rt.resume("ops")
        await rt.settled()
        assert (await rt.why("ops")).state == "broken"
        await looks(rt, clock)
        assert (await rt.answer(sent)).output == "hello"
        assert [each.owed for each in await violations(rt)] == ["queue"]


async def test_a_wake_without_an_alarm_is_found(tmp_path: Path) -> None:
    """Stale running state: the row says when, and nobody would have looked."""
    clock = FixedClock(MIDNIGHT)
    async with Runtime(tmp_path, agents=[ops()], clock=clock) as rt:
        await rt.arm_timer("ops", "Check.", at=MIDNIGHT + timedelta(hours=1))
        await rt.settled()
        assert by_hand(tmp_path, "UPDATE wakes SET alarm = NULL") == 1
        await looks(rt, clock)
        assert [each.violation for each in await violations(rt)] == ["no_alarm"]
        await passes(rt, clock, HOUR)
        assert (await rt.timers("ops"))[0].fired == 1


async def test_a_wait_whose_wake_was_lost_still_ends_at_its_deadline(tmp_path: Path) -> None:
    clock = FixedClock(MIDNIGHT)
    wait = call("wait_for", reason="the build", wake="external", deadline_ms=HOUR * 1000)
    async with Runtime(tmp_path, agents=[ops(wait, "in vain")], clock=clock) as rt:
        await rt.answer(await rt.send("ops", "Wait for the build."))
        await rt.settled()
        life = await rt.why("ops")
        assert (life.state, life.threads[0].until) == ("waiting", (MIDNIGHT + timedelta(hours=1)).timestamp())
        assert "waits: the build (for external), until 2026-01-01T01:00:00" in life.sentence
        assert lose_wakes(tmp_path, "subject LIKE 'wait:%'") == 1
        await looks(rt, clock)
        await passes(rt, clock, HOUR)
        assert [each.owed for each in await violations(rt)] == ["wait"]
        store = rt._here.engine.store
        assert [entry.fact.event.kind for entry in await store.read("ops")].count("wait.expired") == 1


async def test_an_approval_whose_expiry_was_lost_still_runs_out(tmp_path: Path) -> None:
    @tool(effect="irreversible", approval=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    clock = FixedClock(MIDNIGHT)
    agent = Agent("ops", scripted([call("pay"), "not paid"]), tools=[pay], approval_expiry=HOUR)
    async with Runtime(tmp_path, agents=[agent], clock=clock) as rt:
        asked = await rt.answer(await rt.send("ops", "Pay."))
        assert asked.status == "approval_required"
        life = await rt.why("ops")
        assert life.state == "waiting"
        assert asked.turn_id in life.sentence
        assert any(fact.startswith("wake expiry appr_") for fact in life.threads[0].evidence)
        lose_wakes(tmp_path)
        await looks(rt, clock)
        await passes(rt, clock, HOUR)
        assert [each.owed for each in await violations(rt)] == ["turn"]
        turn = await rt._here.engine.store.turn(asked.turn_id)
        assert turn is not None
        assert turn.state == "completed"


async def test_a_pause_whose_end_was_lost_still_ends(tmp_path: Path) -> None:
    clock = FixedClock(MIDNIGHT)
    async with Runtime(tmp_path, agents=[ops()], clock=clock) as rt:
        await rt.pause("ops", seconds=HOUR, reason="maintenance")
        assert (await rt.why("ops")).sentence == "ops is paused, until 2026-01-01T01:00:00.000Z: maintenance (program)."
        lose_wakes(tmp_path)
        await looks(rt, clock)
        await passes(rt, clock, HOUR)
        assert [each.owed for each in await violations(rt)] == ["pause"]
        assert (await rt.agents())[0].control == "running"


async def test_a_turn_that_was_cut_off_under_a_pause_goes_on_when_the_pause_ends_by_itself(tmp_path: Path) -> None:
    clock, begun, late = FixedClock(MIDNIGHT), asyncio.Event(), asyncio.Event()

    @tool(effect="keyed")
    async def pay() -> str:
        """Pay, and take a while to say so."""
        begun.set()
        await late.wait()
        return "paid"

    agent = Agent("ops", scripted([call("pay"), "done"]), tools=[pay])
    async with Runtime(tmp_path, agents=[agent], clock=clock, grace=0) as rt:
        sent = await rt.send("ops", "Pay.")
        await begun.wait()
        await rt.pause("ops", seconds=5)
    late.set()
    async with Runtime(tmp_path, agents=[agent], clock=clock) as rt:
        await passes(rt, clock, 5)  # less than the watchdog's minute
        assert (await rt.answer(sent)).output == "done"
        assert await violations(rt) == []


class LooksBetween(MemoryStore):
    """Has somebody look after an agent was let run, and before its turns are looked at."""

    look: Callable[[], Awaitable[Any]] | None = None

    async def busy_threads(self, agent_id: str | None = None, **page: Any) -> list[BusyThread]:
        row = await self.runtime_agent(agent_id) if agent_id is not None else None
        if self.look is not None and row is not None and row.control == "running":
            look, self.look = self.look, None
            await look()
        return await super().busy_threads(agent_id, **page)


@pytest.mark.parametrize("how", ["by itself", "resumed"])
async def test_a_turn_that_is_just_about_to_be_taken_up_is_not_called_cut_off(how: str) -> None:
    clock, begun, late, store = FixedClock(MIDNIGHT), asyncio.Event(), asyncio.Event(), LooksBetween()

    @tool(effect="keyed")
    async def pay() -> str:
        """Pay, and take a while to say so."""
        begun.set()
        await late.wait()
        return "paid"

    agent = Agent("ops", scripted([call("pay"), "done"]), tools=[pay])
    async with Runtime(store=store, agents=[agent], clock=clock, grace=0) as rt:
        sent = await rt.send("ops", "Pay.")
        await begun.wait()
        await rt.pause("ops", seconds=5)
    late.set()
    async with Runtime(store=store, agents=[agent], clock=clock) as rt:
        await rt.settled()
        store.look = rt._here.watchdog.look
        await (passes(rt, clock, 5) if how == "by itself" else rt.resume("ops"))
        assert (await rt.answer(sent)).output == "done"
        assert store.look is None, "it looked"
        assert await violations(rt) == []


async def test_a_deferred_message_whose_deadline_was_lost_is_still_shown(tmp_path: Path) -> None:
    clock = FixedClock(MIDNIGHT)
    wait = call("wait_for", reason="the operator", wake="operator_input")
    async with Runtime(tmp_path, agents=[ops(wait, "seen")], clock=clock) as rt:
        await rt.answer(await rt.send("ops", "Wait for me."))
        sent = await rt.receive("ops", "The disk is full.", channel="mail", sender="eve")
        await rt.settled()
        assert lose_wakes(tmp_path, "cause = 'deferral'") == 1
        await looks(rt, clock)
        await passes(rt, clock, 1)
        assert [each.owed for each in await violations(rt)] == ["deferral"]
        assert (await rt.answer(sent)).output == "seen"


async def test_the_states_of_an_agent_are_told_with_their_facts(tmp_path: Path) -> None:
    clock = FixedClock(MIDNIGHT)
    async with Runtime(tmp_path, agents=[ops()], clock=clock) as rt:
        assert (await rt.why("ops")).sentence == "ops owes nothing."
        done = await rt.answer(await rt.send("ops", "Hello."))
        await rt.settled()
        life = await rt.why("ops")
        assert (life.state, life.sentence) == ("idle", f"ops owes nothing; turn {done.turn_id} completed.")
        assert life.threads[0].evidence == (f"turn {done.turn_id} completed",)
        await rt.stop("ops", reason="enough")
        assert (await rt.why("ops")).sentence == "ops is stopped: enough (program)."
        with pytest.raises(AgentNotFound):
            await rt.why("nobody")


async def test_the_watchdog_looks_at_what_is_owed_and_not_at_agents(tmp_path: Path) -> None:
    """Bounded: of a thousand agents that owe nothing it reads none."""
    agents = [Agent(f"a{number}", scripted(["done"])) for number in range(50)]
    async with Runtime(tmp_path, agents=agents, clock=FixedClock(MIDNIGHT)) as rt:
        await rt.settled()
        assert await rt._here.watchdog._owing() == []


class DeafClock(FixedClock):
    """Wakes nobody: whoever sleeps until something is due sleeps on."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.get_running_loop().create_future()


async def test_a_wake_that_is_due_and_that_nothing_begins_is_no_life_that_is_well(tmp_path: Path) -> None:
    clock = DeafClock(MIDNIGHT)
    async with Runtime(tmp_path, agents=[ops()], clock=clock) as rt:
        await rt.arm_timer("ops", "Check.", at=MIDNIGHT + timedelta(hours=1))
        await rt.settled()
        clock.advance(HOUR + 2 * MINUTE)
        assert await rt._here.is_well("test"), "a moment ago it was not due"
        clock.advance(2 * MINUTE)
        assert not await rt._here.is_well("test")
        await rt.settled()  # somebody stirs the scheduler
        assert await rt._here.is_well("test")
        assert [timer.state for timer in await rt.timers("ops")] == ["done"]
