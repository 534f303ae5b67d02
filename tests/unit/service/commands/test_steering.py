"""Pausing a turn, letting it go on, and saying something to it while it is under way."""

import asyncio
from typing import Any

import pytest

from kit.runs.engine_runs import calls, check_ends, facts_of, kinds, of_kind
from wakeful import Agent, cancel, interject, pause, resume, resume_all, run, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.errors import TurnNotFound, TurnOver
from wakeful.contracts.events import TurnInterjected, TurnSuspended
from wakeful.ports import AdmissionAnswer, ModelRequest
from wakeful.service.commands.steering import interject as say_to
from wakeful.service.commands.steering import unpause_turn
from wakeful.service.queries.replay import replay_turn
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted
from wakeful.testing.wrapped_store import WrappedStore


class Working:
    """A turn of three rounds whose second call waits until it is let go on."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()
        self.asked: list[list[str]] = []

        @tool(effect="irreversible")
        async def act() -> str:
            self.begun.set()
            await self.go_on.wait()
            return "acted"

        async def answer(request: ModelRequest) -> Any:
            self.asked.append([item.text for item in request.history if item.role == "user"])
            return [calls("act"), calls("act"), "done"][min(request.answered, 2)]

        self.agent = Agent("any", scripted(answer), tools=[act])

    async def start(self) -> str:
        self.task = asyncio.create_task(run(self.agent, "go", store=self.store, thread="t", key="k"))
        await self.begun.wait()
        row = await self.store.turn_of_key("k")
        assert row is not None
        return row.turn_id


async def test_a_paused_turn_finishes_what_is_under_way_and_begins_nothing_until_it_is_resumed() -> None:
    working = Working()
    turn_id = await working.start()
    assert await pause(working.store, turn_id) is True
    assert await pause(working.store, turn_id) is False, "once is enough"
    working.go_on.set()
    result = await working.task
    assert (result.status, result.stop_reason) == ("waiting", "paused")
    assert "paused" in result.message and len(working.asked) == 1
    row = await working.store.turn(turn_id)
    assert row is not None and row.state == "suspended"
    before = kinds(await facts_of(working.store, turn_id))
    assert before[-2:] == ["tool.result", "turn.suspended"]
    # Neither the same line again nor taking up all there is lets it go on, and neither writes anything.
    assert (await run(working.agent, "go", store=working.store, thread="t", key="k")).stop_reason == "paused"
    assert [one.stop_reason for one in await resume_all(working.store, [working.agent])] == ["paused"]
    assert kinds(await facts_of(working.store, turn_id)) == before
    finished = await resume(working.store, turn_id, [working.agent])
    assert finished.output == "done" and len(working.asked) == 3
    assert len(of_kind(finished, TurnSuspended)) == 1
    check_ends(finished.facts())
    assert (await replay_turn(working.store, row)).identical
    assert await pause(working.store, turn_id) is False, "it is over"


async def test_a_pause_that_is_lifted_in_time_stops_nothing() -> None:
    working = Working()
    turn_id = await working.start()
    around = new_engine(working.store)
    assert await unpause_turn(around, turn_id) is False, "it was not paused"
    await pause(working.store, turn_id)
    assert await unpause_turn(around, turn_id) is True
    working.go_on.set()
    assert (await working.task).output == "done"


async def test_a_paused_turn_can_be_cancelled_without_its_code() -> None:
    working = Working()
    turn_id = await working.start()
    await pause(working.store, turn_id)
    working.go_on.set()
    await working.task
    assert await cancel(working.store, turn_id)
    row = await working.store.turn(turn_id)
    assert row is not None and row.state == "cancelled"
    check_ends(await facts_of(working.store, turn_id))
    assert (await replay_turn(working.store, row)).identical


async def test_what_is_said_to_a_turn_is_taken_along_with_its_next_request() -> None:
    working = Working()
    turn_id = await working.start()
    message_id = await interject(working.store, turn_id, "Also B.", said_by="ann")
    facts = [entry.fact.event for entry in await facts_of(working.store, turn_id)]
    (said,) = [event for event in facts if isinstance(event, TurnInterjected)]
    assert (said.message_id, said.item.text, said.said_by) == (message_id, "Also B.", "ann"), "safe before it is told"
    working.go_on.set()
    result = await working.task
    assert result.output == "done"
    assert working.asked == [["go"], ["go", "Also B."], ["go", "Also B."]]
    row = await working.store.turn(turn_id)
    assert row is not None and (await replay_turn(working.store, row)).identical


async def test_what_is_said_while_the_last_answer_is_on_its_way_gets_an_answer_of_its_own() -> None:
    store = MemoryStore()
    asked: list[int] = []

    async def answer(request: ModelRequest) -> str:
        asked.append(len(list(request.history)))
        if len(asked) == 1:
            await interject(store, request.turn_id, "One more thing.")
        return f"answer {len(asked)}"

    result = await run(Agent("any", scripted(answer)), "go", store=store)
    assert (result.output, asked) == ("answer 2", [1, 3])


async def test_a_message_to_a_turn_that_has_ended_is_refused() -> None:
    store = MemoryStore()
    result = await run(Agent("any", scripted(["done"])), "go", store=store, thread="t")
    before = await facts_of(store, result.turn_id)
    with pytest.raises(TurnOver, match="is over \\(completed\\): nothing would read the message") as refused:
        await interject(store, result.turn_id, "Also B.")
    assert "thread='t'" in refused.value.hint
    assert await facts_of(store, result.turn_id) == before
    for ask in (pause, cancel):
        with pytest.raises(TurnNotFound):
            await ask(store, "turn_none")
    with pytest.raises(TurnNotFound):
        await interject(store, "turn_none", "hello")


class EndsFirst(WrappedStore):
    """The turn ends just before a message to it is written."""

    ending: Any = None

    async def admit(
        self, agent_id: str, facts: Any, *, reserve: bool = False, claim: bool = False
    ) -> AdmissionAnswer | None:
        if self.ending is not None and isinstance(facts[0].event, TurnInterjected):
            await self.ending()
        return await super().admit(agent_id, facts, reserve=reserve, claim=claim)


async def test_a_message_that_came_too_late_by_a_moment_is_not_acknowledged() -> None:
    working = Working()
    turn_id = await working.start()
    racing = EndsFirst(working.store)

    async def it_ends() -> None:
        working.go_on.set()
        await working.task

    racing.ending = it_ends
    with pytest.raises(TurnOver):
        await say_to(new_engine(racing), turn_id, "Also B.")


async def test_what_was_said_to_a_turn_that_was_stopped_is_read_by_the_next_one() -> None:
    working = Working()
    turn_id = await working.start()
    await interject(working.store, turn_id, "Also B.")
    await cancel(working.store, turn_id)
    assert (await working.task).status == "cancelled"
    later = Agent("any", scripted(["seen"]), tools=working.agent.tools)
    result = await run(later, "and now?", store=working.store, thread="t")
    assert [item.text for item in result.history() if item.role == "user"] == ["go", "Also B.", "and now?"]
