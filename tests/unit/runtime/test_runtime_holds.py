"""Everything at once through `Runtime`: paused or stopped durably, before the next step, with no model."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kit.runs.engine_runs import of_kind
from wakeful import Agent, Runtime, tool
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import TaskStatusChanged, ToolFailed
from wakeful.errors import AgentStopped, StoreFull
from wakeful.ports import AdmissionAnswer, Store
from wakeful.ports.tasks import OPEN_TASKS
from wakeful.processes.supervised_command import SupervisedCommand
from wakeful.sandbox.confinement import Sandbox
from wakeful.service.commands.steering import pause_turn, unpause_turn
from wakeful.store.sqlite import SqliteStore
from wakeful.testing import FixedClock, scripted
from wakeful.testing.wrapped_store import WrappedStore


class Work:
    """A tool that goes on for as long as somebody calls it again, and says when it was called."""

    def __init__(self) -> None:
        self.began, self.goes_on, self.calls = asyncio.Event(), asyncio.Event(), 0

        @tool(effect="pure")
        async def step() -> str:
            """One step."""
            self.calls += 1
            self.began.set()
            await self.goes_on.wait()
            return "once more"

        self.tool = step


def busy(work: Work, name: str = "busy") -> Agent[None, str]:
    return Agent(name, scripted(lambda request: {"calls": [{"name": "step"}]}), tools=[work.tool], max_steps=100)


async def test_everything_is_paused_before_the_next_step_and_goes_on_when_it_is_taken_back(tmp_path: Path) -> None:
    clock, work, asked = FixedClock(), Work(), list[str]()

    def reply(request: Any) -> Any:
        asked.append("asked")
        return {"calls": [{"name": "step"}]} if len(asked) < 3 else "done"

    agents = [Agent("busy", scripted(reply), tools=[work.tool]), Agent("desk", scripted(["hello"]))]
    async with Runtime(tmp_path, agents=agents, clock=clock) as rt:
        sent = await rt.send("busy", "Work.")
        await work.began.wait()
        held = await rt.pause_all(by="ann", reason="wrong prices")
        assert (held.control, held.changed_by, held.reason) == ("paused", "ann", "wrong prices")
        work.goes_on.set()
        waiting = await rt.send("desk", "Are you there?")
        await rt.settled()
        assert (len(asked), work.calls) == (1, 1)
        assert (await rt.why("desk")).sentence == "desk is paused: everything was, wrong prices (ann)."
        (turn,) = [row async for row in rt._here.engine.store.open_turns()]
        assert turn.state == "suspended"
        await rt.resume_all(by="ann")
        assert (await rt.answer(waiting)).output == "hello"
        await rt.settled()  # a turn at rest would be an answer, too
        assert (await rt.answer(sent)).output == "done"


async def test_it_holds_over_a_restart_and_for_agents_that_are_made_later(tmp_path: Path) -> None:
    clock = FixedClock()
    async with Runtime(tmp_path, agents=[Agent("desk", scripted(["hello"]))], clock=clock) as rt:
        await rt.pause_all()
    agents = [Agent("desk", scripted(["hello"])), Agent("late", scripted(["here"]))]
    async with Runtime(tmp_path, agents=agents, clock=clock) as rt:
        waiting = [await rt.send("desk", "Hello?"), await rt.send("late", "Hello?")]
        clock.advance(3600)
        await rt.settled()
        assert [(await rt._here.engine.store.message(each.message_id)).state for each in waiting] == ["queued"] * 2  # type: ignore[union-attr]
        await rt.resume_all()
        assert [(await rt.answer(each)).output for each in waiting] == ["hello", "here"]


async def test_stopped_agents_refuse_messages_and_their_turns_are_cancelled(tmp_path: Path) -> None:
    work = Work()
    async with Runtime(tmp_path, agents=[busy(work)], clock=FixedClock()) as rt:
        sent = await rt.send("busy", "Work.")
        await work.began.wait()
        await rt.stop_all(reason="enough")
        work.goes_on.set()
        result = await rt.answer(sent)
        assert (result.status, work.calls) == ("cancelled", 1)
        with pytest.raises(AgentStopped, match="all agents are stopped by program: enough"):
            await rt.send("busy", "More.")
        with pytest.raises(AgentStopped):
            await rt.wake("busy", body="More.")
        await rt.resume_all()
        await rt.send("busy", "More.")
        await rt.stop_all()


async def test_while_everything_is_stopped_deliveries_are_refused_counted_and_change_nothing(tmp_path: Path) -> None:
    agent = Agent("ops", scripted(["seen"]))
    async with Runtime(tmp_path, agents=[agent], clock=FixedClock()) as rt:
        await rt.create_trigger("ops", "ci", say="Look.")
        addresses = [await rt.trigger_url("ops"), await rt.trigger_url("ops/ci")]
        await rt.stop_all(reason="enough")
        for address in addresses:
            receipt = await rt.deliver(address, b"red", {"webhook-id": "one"})
            assert (receipt.outcome, receipt.reason) == ("refused", "agent_stopped")
            assert receipt.message.startswith("all agents are stopped by program: enough")
        newest = [entry.fact.event.kind for entry in (await rt._here.engine.store.read("ops"))[-2:]]
        assert newest == ["input.refused"] * 2, "nothing was stored but their number"
        assert (await rt.agent("ops")).refused == {"agent_stopped": 2}
        await rt.resume_all()
        receipt = await rt.deliver(addresses[1], b"red", {"webhook-id": "one"})
        assert receipt.outcome == "accepted", "it was not taken for a copy of the one that was refused"
        assert receipt.message_id is not None
        assert (await rt.answer(receipt.message_id)).output == "seen"


async def test_an_agent_that_was_paused_by_name_stays_paused(tmp_path: Path) -> None:
    agents = [Agent("desk", scripted(["hello"])), Agent("ops", scripted(["yes"]))]
    async with Runtime(tmp_path, agents=agents, clock=FixedClock()) as rt:
        await rt.pause("ops")
        await rt.pause_all()
        await rt.resume_all()
        assert {each.agent: each.control for each in await rt.agents()} == {"desk": "running", "ops": "paused"}


async def test_a_turn_that_was_paused_by_name_stays_paused(tmp_path: Path) -> None:
    work, asked = Work(), list[str]()

    def reply(request: Any) -> Any:
        asked.append("asked")
        return {"calls": [{"name": "step"}]} if len(asked) == 1 else "done"

    agent = Agent("busy", scripted(reply), tools=[work.tool])
    async with Runtime(tmp_path, agents=[agent], clock=FixedClock()) as rt:
        sent = await rt.send("busy", "Work.")
        await work.began.wait()
        engine = rt._here.engine
        (turn,) = [row async for row in engine.store.open_turns()]
        await pause_turn(engine, turn.turn_id, requested_by="ann")
        work.goes_on.set()
        await rt.settled()
        for _ in range(2):
            await rt.pause_all()
            await rt.resume_all()
            await rt.settled()
        assert len(asked) == 1
        await unpause_turn(engine, turn.turn_id, requested_by="ann")
        await rt.settled()
        assert (await rt.answer(sent)).output == "done"


@pytest.mark.parametrize("what", ["agent", "turn"])
async def test_a_turn_under_way_that_is_resumed_by_name_rests_until_everything_runs(tmp_path: Path, what: str) -> None:
    """It would go on without asking, beside agents that all rest."""
    work, asked = Work(), list[str]()

    def reply(request: Any) -> Any:
        asked.append("asked")
        return {"calls": [{"name": "step"}]} if len(asked) == 1 else "done"

    async with Runtime(tmp_path, agents=[Agent("busy", scripted(reply), tools=[work.tool])], clock=FixedClock()) as rt:
        sent = await rt.send("busy", "Work.")
        await work.began.wait()
        await rt.pause("busy")
        await rt.pause_all()
        engine = rt._here.engine
        (turn,) = [row async for row in engine.store.open_turns()]
        if what == "agent":
            await rt.resume("busy")
        else:
            await unpause_turn(engine, turn.turn_id, requested_by="ann")
        work.goes_on.set()
        await rt.settled()
        assert len(asked) == 1, "everything is paused"
        await rt.resume_all()
        await rt.settled()
        if what == "turn":
            assert len(asked) == 1, "its agent is paused"
            await rt.resume("busy")
            await rt.settled()
        assert (await rt.answer(sent)).output == "done"


async def test_running_commands_are_ended(tmp_path: Path) -> None:
    """One that a call waits for, and one that has become a task."""
    (tmp_path / "work").mkdir()
    command = "echo began >> log; sleep {}; echo ended >> log"

    def reply(request: Any) -> Any:
        if request.history[-1].role == "tool":
            return "done"
        wait = 600_000 if "wait" in request.history[-1].text else 250
        arguments = {"cmd": command.format(600 + wait), "yield_time_ms": wait}
        return {"calls": [{"name": "exec_command", "arguments": arguments}]}

    agent = Agent("ops", scripted(reply), workspace=tmp_path / "work")
    async with Runtime(tmp_path / "home", agents=[agent]) as rt:
        await rt.answer(await rt.send("ops", "Begin a task."))
        await rt.send("ops", "Begin, and wait for it.", thread="other")
        log = tmp_path / "work" / "log"
        async with asyncio.timeout(60):
            while not log.exists() or log.read_text().count("began") < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        await rt.stop_all()
        assert await rt._here.engine.store.open_tasks() == []
        assert rt._here.tasks._foreground == []
        assert "ended" not in log.read_text()


class RefusesTwice(WrappedStore):
    """A store that refuses something twice, as on a disk that was full for a moment."""

    left = 0

    def __init__(self, inner: Store, what: str) -> None:
        super().__init__(inner)
        self._what = what

    async def admit(self, agent_id: str, facts: Sequence[Fact], **options: Any) -> AdmissionAnswer | None:
        self._refuse("write", any(isinstance(fact.event, TaskStatusChanged) for fact in facts))
        return await super().admit(agent_id, facts, **options)

    async def list_rows(self, table: Any, query: Any, *equal: Any, **options: Any) -> list[Any]:
        self._refuse("read", query is OPEN_TASKS)
        return await super().list_rows(table, query, *equal, **options)

    def _refuse(self, what: str, is_meant: bool) -> None:
        if what == self._what and is_meant and self.left:
            self.left -= 1
            raise StoreFull("the disk is full", "make room")


@pytest.mark.parametrize("what", ["write", "read"])
async def test_a_command_is_ended_also_where_the_store_refuses_something_at_first(tmp_path: Path, what: str) -> None:
    """Asked for once, and tried by the runtime until it is done."""
    (tmp_path / "work").mkdir()
    call = {"name": "exec_command", "arguments": {"cmd": "sleep 600", "yield_time_ms": 1}}
    agent = Agent("ops", scripted([{"calls": [call]}, "it runs"], leftover="ignore"), workspace=tmp_path / "work")
    store = RefusesTwice(await SqliteStore.open(tmp_path / "wakeful.db"), what)
    async with Runtime(store=store, agents=[agent]) as rt:
        await rt.answer(await rt.send("ops", "Begin."))
        store.left = 2
        with suppress(StoreFull):  # unless the runtime itself had both refusals
            await rt.stop_all()
        assert (await store.runtime_hold()).control == "stopped"  # type: ignore[union-attr]
        async with asyncio.timeout(60):
            while await store.inner.open_tasks():  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        (task,) = await rt.tasks("ops", over=True)
        assert (task.status, store.left) == ("cancelled", 0)
    await store.close()


async def test_a_command_that_was_ended_by_a_pause_is_told_as_that_and_not_as_completed(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()

    def reply(request: Any) -> Any:
        if request.history[-1].role == "tool":
            return request.history[-1].text
        arguments = {"cmd": "echo hello; touch began; sleep 600", "yield_time_ms": 600_000}
        return {"calls": [{"name": "exec_command", "arguments": arguments}]}

    async with Runtime(tmp_path / "home", agents=[Agent("ops", scripted(reply), workspace=work)]) as rt:
        sent = await rt.send("ops", "Begin.")
        async with asyncio.timeout(60):
            while not (work / "began").exists():  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        await rt.pause_all()
        await rt.settled()
        await rt.resume_all()
        await rt.settled()
        result = await rt.answer(sent)
    (call,) = result.calls()
    assert (call.status, "everything was paused or stopped" in result.output) == ("error", True)
    assert '"kind":"command_stopped"' in result.output and '"disposition"' not in result.output
    assert "hello" in result.output
    (failed,) = of_kind(result, ToolFailed)
    assert (failed.error_category, failed.effects) == ("canceled", "possible")


async def test_a_command_that_has_just_begun_when_everything_is_paused_is_ended(tmp_path: Path) -> None:
    """It was let through before, and was not known to its runtime when that ended what ran."""
    where = Sandbox(tmp_path)
    async with Runtime(tmp_path / "home", agents=[Agent("ops", scripted(["yes"]))]) as rt:
        command = await SupervisedCommand.start(where, ["sleep", "600"], where.root)
        try:
            await rt.pause_all()
            async with asyncio.timeout(60):
                with rt._here.tasks.running(command):
                    ended = await command.ended()
        finally:
            await command.end()
    assert ended.stopped == "request"


async def test_a_batch_of_commands_is_ended(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()

    def reply(request: Any) -> Any:
        if request.history[-1].role == "tool":
            return request.history[-1].text
        items = [{"cmd": "touch began; sleep 600; touch ended"}, {"cmd": "touch next"}]
        return {"calls": [{"name": "exec_command_batch", "arguments": {"items": items}}]}

    agent = Agent("ops", scripted(reply), workspace=work)
    async with Runtime(tmp_path / "home", agents=[agent]) as rt:
        sent = await rt.send("ops", "Begin.")
        async with asyncio.timeout(60):
            while not (work / "began").exists():  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            await rt.pause_all()
            await rt.settled()
        assert sorted(path.name for path in work.iterdir() if path.name in ("began", "ended", "next")) == ["began"]
        await rt.resume_all()
        await rt.settled()
        assert "everything was paused or stopped" in (await rt.answer(sent)).output
