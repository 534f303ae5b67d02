"""Agents that live, through `Runtime`: what is sent is answered, also after a restart, a pause and a stop."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from wakeful import Agent, RunContext, Runtime, open_store, run, tool
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import AgentStateChanged
from wakeful.errors import AgentNotFound, AgentStopped, InvalidConfig, InvalidRequest, KeyReused, StoreLocked
from wakeful.ports import AdmissionAnswer
from wakeful.store.memory import MemoryStore
from wakeful.testing import FixedClock, scripted
from wakeful.testing.wrapped_store import WrappedStore


def clerk(*replies: object, name: str = "clerk") -> Agent[None, str]:
    return Agent(name, scripted(list(replies) or ["done"] * 9))


async def test_a_message_is_answered_and_its_receipt_says_where_it_stands(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[clerk("hello")]) as rt:
        receipt = await rt.send("clerk", "Say hello.")
        assert (receipt.agent, receipt.thread, receipt.position) == ("clerk", "main", 3)
        result = await rt.answer(receipt)
        assert (result.output, result.status) == ("hello", "completed")


async def test_what_was_sent_before_a_runtime_was_there_is_answered_when_one_is(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[clerk()]) as rt:
        await rt.pause("clerk")
        receipt = await rt.send("clerk", "Say hello.")
    async with Runtime(tmp_path, agents=[clerk("hello")]) as rt:
        await rt.settled()
        (agent,) = await rt.agents()
        assert (agent.control, agent.changed_by) == ("paused", "program"), "a restart changes nothing about it"
        await rt.resume("clerk")
        assert (await rt.answer(receipt.message_id)).output == "hello"


async def test_threads_of_an_agent_run_at_the_same_time(tmp_path: Path) -> None:
    gate = asyncio.Event()

    @tool(effect="pure")
    async def wait() -> str:
        """Wait for the others."""
        await gate.wait()
        return "waited"

    agent = Agent("clerk", scripted([{"calls": [{"name": "wait", "arguments": {}}]}, "done"]), tools=[wait])
    async with Runtime(tmp_path, agents=[agent]) as rt:
        sent = [await rt.send("clerk", f"Task {n}.", thread=f"chat-{n}") for n in range(3)]
        async with asyncio.TaskGroup() as group:
            answers = [group.create_task(rt.answer(each)) for each in sent]
            gate.set()
        assert [task.result().output for task in answers] == ["done"] * 3


async def test_a_key_is_one_message_and_other_words_under_it_are_refused(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[clerk("once")]) as rt:
        first = await rt.send("clerk", "Pay the bill.", key="bill-7")
        again = await rt.send("clerk", "Pay the bill.", key="bill-7")
        assert again.message_id == first.message_id
        with pytest.raises(KeyReused, match="bill-7"):
            await rt.send("clerk", "Pay another bill.", key="bill-7")
        await rt.answer(first)
        await rt.settled()
    async with open_store(tmp_path / "wakeful.db") as store:
        assert len(await store.turns()) == 1


@pytest.mark.spec("HOL-STOP-01", "HOL-STOP-03", "HOL-STOP-06")
async def test_a_stopped_agent_refuses_messages_until_it_is_resumed_also_after_a_restart(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[clerk()]) as rt:
        stopped = await rt.stop("clerk", by="ada", reason="enough")
        assert (stopped.control, stopped.changed_by, stopped.reason) == ("stopped", "ada", "enough")
        assert stopped.hint == (
            "It refuses messages, and waking it changes nothing. To let it run: wakeful agent resume clerk"
        )
    async with Runtime(tmp_path, agents=[clerk("back")]) as rt:
        with pytest.raises(AgentStopped) as refused:
            await rt.send("clerk", "Hello?")
        assert refused.value.message == (
            "agent clerk was stopped by ada: it takes no messages, and waking it changes nothing"
        )
        assert refused.value.hint == "Let it run again first: wakeful agent resume clerk"
        with pytest.raises(AgentStopped):
            await run(clerk("no"), "Hello?", store=tmp_path / "wakeful.db", thread="side")
        await rt.resume("clerk")
        assert (await rt.answer(await rt.send("clerk", "Hello?"))).output == "back"
    async with open_store(tmp_path / "wakeful.db") as store:
        assert [turn.prompt for turn in await store.turns()] == ["Hello?"], "nothing was kept of what was refused"


async def test_a_pause_opens_no_agent_that_is_stopped_or_archived(tmp_path: Path) -> None:
    """A pause takes messages and may end by itself: neither is for an agent that only a person lets run again."""
    clock = FixedClock()
    async with Runtime(tmp_path, agents=[clerk("back")], clock=clock) as rt:
        for put_away, done in ((rt.stop, "stopped"), (rt.archive, "archived")):
            await put_away("clerk", by="ada")
            with pytest.raises(AgentStopped, match=f"was {done} by ada, and cannot be paused") as refused:
                await rt.pause("clerk", seconds=5)
            assert refused.value.hint == "It runs nothing. To let it run: wakeful agent resume clerk"
            clock.advance(60)
            await rt.settled()
            with pytest.raises(AgentStopped):
                await rt.send("clerk", "Hello?")
        assert (await rt.resume("clerk")).archived_at is None


async def test_an_agent_that_is_stopped_while_its_turn_fails_stays_stopped(tmp_path: Path) -> None:
    """Missing code pauses an agent until it is back: nobody who stopped it meant that."""
    store = StoppedMeanwhile(MemoryStore())
    async with Runtime(store=store, agents=[clerk("never")], clock=FixedClock()) as rt:
        await rt.pause("clerk")
        await rt.send("clerk", "Hello?")
    async with Runtime(store=store, clock=FixedClock()) as rt:
        store.rt = rt
        await rt.resume("clerk")
        await rt.settled()
        assert [each.control for each in await rt.agents()] == ["stopped"]
    async with Runtime(store=store, agents=[clerk("never")], clock=FixedClock()) as rt:
        assert [each.control for each in await rt.agents()] == ["stopped"]


class StoppedMeanwhile(WrappedStore):
    """Its agent is stopped by somebody in the moment in which the runtime pauses it."""

    rt: Runtime | None = None

    async def admit(self, agent_id: str, facts: Sequence[Fact], **options: Any) -> AdmissionAnswer | None:
        event, rt = facts[0].event, self.rt
        if isinstance(event, AgentStateChanged) and event.cause == "configuration" and rt is not None:
            self.rt = None
            await rt.stop(agent_id)
        return await self.inner.admit(agent_id, facts, **options)


@pytest.mark.spec("HOL-STOP-02")
async def test_a_turn_that_was_cut_off_by_a_closed_runtime_is_taken_up_by_the_next(tmp_path: Path) -> None:
    begun, calls = asyncio.Event(), []

    @tool(effect="pure")
    async def look(ctx: RunContext[None]) -> str:
        """Look it up."""
        calls.append(ctx.call_id)
        begun.set()
        if len(calls) == 1:
            await asyncio.Event().wait()
        return "found"

    agent = Agent("clerk", scripted([{"calls": [{"name": "look", "arguments": {}}]}, "it is there"]), tools=[look])
    async with Runtime(tmp_path, agents=[agent], grace=0) as rt:
        receipt = await rt.send("clerk", "Look it up.")
        await begun.wait()
    async with Runtime(tmp_path, agents=[agent]) as rt:
        assert (await rt.answer(receipt)).output == "it is there"
    assert len(calls) == 2


async def test_a_pause_holds_a_running_turn_before_its_next_step(tmp_path: Path) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    @tool(effect="pure")
    async def look() -> str:
        """Look it up."""
        begun.set()
        await go_on.wait()
        return "found"

    agent = Agent("clerk", scripted([{"calls": [{"name": "look", "arguments": {}}]}, "it is there"]), tools=[look])
    async with Runtime(tmp_path, agents=[agent]) as rt:
        receipt = await rt.send("clerk", "Look it up.")
        await begun.wait()
        await rt.pause("clerk")
        go_on.set()
        await rt.settled()
        paused = await rt.answer(receipt)
        assert paused.status != "completed"
        await rt.resume("clerk")
        assert (await rt.answer(receipt)).output == "it is there"


async def test_a_pause_with_an_end_ends_by_itself(tmp_path: Path) -> None:
    clock = FixedClock()
    async with Runtime(tmp_path, agents=[clerk("hello")], clock=clock) as rt:
        await rt.pause("clerk", seconds=60)
        receipt = await rt.send("clerk", "Say hello.")
        await rt.settled()
        clock.advance(59)
        await rt.settled()
        assert (await rt.agents())[0].control == "paused"
        clock.advance(1)
        await rt.settled()
        (agent,) = await rt.agents()
        assert (agent.control, agent.changed_by) == ("running", "runtime")
        assert (await rt.answer(receipt)).output == "hello"


async def test_one_runtime_runs_the_agents_of_a_store(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[clerk()]):
        with pytest.raises(StoreLocked, match="another runtime runs the agents of"):
            async with Runtime(tmp_path, agents=[clerk()]):
                pass
    async with Runtime(tmp_path, agents=[clerk()]):
        pass


async def test_an_agent_whose_code_is_not_here_keeps_its_messages_and_the_others_run(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[clerk("hello"), clerk(name="other")]) as rt:
        await rt.pause("clerk")
        await rt.send("clerk", "Say hello.")
    async with Runtime(tmp_path, agents=[clerk("ok", name="other")]) as rt:
        await rt.resume("clerk")
        assert (await rt.answer(await rt.send("other", "Go on."))).output == "ok"
        await rt.settled()
        found = {agent.agent: agent for agent in await rt.agents()}
        assert (found["clerk"].control, found["clerk"].cause) == ("paused", "configuration")
        assert found["clerk"].reason.startswith("the code of agent 'clerk' was not supplied (supplied: other)")
    async with Runtime(tmp_path, agents=[clerk("hello")]) as rt:
        await rt.settled()
        (turn,) = [turn for turn in await _turns(tmp_path) if turn.agent == "clerk"]
        assert turn.state == "completed", "it is here again, and so it runs again"


async def test_a_message_to_an_agent_that_is_not_there_is_refused_with_the_names(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[clerk()]) as rt:
        with pytest.raises(AgentNotFound, match="the runtime has no agent 'clark'") as unknown:
            await rt.send("clark", "Hello?")
        assert unknown.value.hint == "Did you mean clerk?"


async def test_follow_shows_an_agents_events_once_and_in_order(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[clerk("hello")]) as rt:
        await rt.answer(await rt.send("clerk", "Say hello."))
        seen: list[tuple[int, str]] = []
        async with aclosing(rt.follow("clerk")) as events:
            assert isinstance(events, AsyncIterator)
            async for event in events:
                seen.append((event.sequence, event.type))
                if event.type == "turn.completed":
                    break
        assert [number for number, _ in seen] == list(range(1, len(seen) + 1))
        assert [kind for _, kind in seen[:3]] == ["agent.created", "agent.revised", "message.admitted"]


async def test_a_runtime_says_what_is_wrong_with_what_it_is_given(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="needs a home or a store"):
        Runtime()
    with pytest.raises(InvalidRequest, match="a home and a store"):
        Runtime(tmp_path, store=tmp_path / "runs.db")
    with pytest.raises(InvalidRequest, match="nothing could run"):
        Runtime(tmp_path, max_turns=0)
    with pytest.raises(InvalidRequest, match="this runtime is not open"):
        await Runtime(tmp_path).send("clerk", "Hello?")
    with pytest.raises(InvalidConfig, match="two agents are called 'clerk'"):
        async with Runtime(tmp_path, agents=[clerk(), clerk()]):
            pass

    @tool(effect="pure")
    def look(ctx: RunContext[dict[str, int]]) -> int:
        """Look it up."""
        return ctx.deps["a"]

    with pytest.raises(InvalidConfig, match="needs deps, and a runtime has none to give it"):
        async with Runtime(tmp_path, agents=[Agent("clerk", scripted(["x"]), tools=[look], deps_type=dict[str, int])]):
            pass


async def _turns(home: Path) -> list[object]:
    async with open_store(home / "wakeful.db") as store:
        return await store.turns()
