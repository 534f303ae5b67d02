"""Looking into a store."""

import asyncio
from typing import Annotated

import pytest
from pydantic import Field

from wakeful import Agent, run, tool
from wakeful.contracts.errors import InvalidConfig, TurnNotFound
from wakeful.service.queries.turns import EventReader, find_turn, follow, kinds_named, turn_events, wire
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted


async def test_the_newest_turn_is_found_and_an_empty_store_says_so() -> None:
    store = MemoryStore()
    with pytest.raises(TurnNotFound, match="there is no turn in :memory: yet"):
        await find_turn(store, None)
    await run(Agent("a", "scripted:demo"), "one", store=store)
    second = await run(Agent("a", "scripted:demo"), "two", store=store)
    assert (await find_turn(store, None)).turn_id == second.turn_id
    with pytest.raises(TurnNotFound, match=f"Did you mean {second.turn_id}"):
        await find_turn(store, second.turn_id + "x")


async def test_following_ends_with_the_turn_and_misses_nothing() -> None:
    store, begun, go = MemoryStore(), asyncio.Event(), asyncio.Event()

    @tool(effect="pure")
    async def wait() -> str:
        begun.set()
        await go.wait()
        return "went"

    agent = Agent("a", scripted([{"calls": [{"name": "wait"}]}, "done"]), tools=[wait])
    running = asyncio.create_task(run(agent, "hello", store=store))
    await begun.wait()
    row = await find_turn(store, None)
    seen = []
    async for recorded in follow(store, row):
        seen.append(recorded)
        if recorded.fact.event.kind == "tool.started":
            go.set()
    await running
    assert seen == await turn_events(store, row)
    assert seen[-1].fact.event.kind == "turn.completed"


async def test_what_a_tool_calls_sensitive_is_hidden_by_its_own_turns_configuration() -> None:
    @tool(effect="pure")
    def log_in(name: str, pin: Annotated[str, Field(json_schema_extra={"writeOnly": True})]) -> str:
        return "in"

    store = MemoryStore()
    steps = [{"calls": [{"name": "log_in", "arguments": {"name": "ann", "pin": "1234"}}]}, "done"]
    await run(Agent("a", scripted(steps), tools=[log_in]), "hello", store=store)
    row = await find_turn(store, None)
    facts = await turn_events(store, row)
    hidden, open_ = EventReader(store), EventReader(store, reveal=True)
    assert "1234" not in str([wire(await hidden.read(recorded)) for recorded in facts])
    assert "1234" in str([wire(await open_.read(recorded)) for recorded in facts])


def test_a_name_stands_for_all_kinds_that_share_it() -> None:
    assert kinds_named("tool_executed") == {"tool.result", "tool.failed"}
    assert kinds_named("turn.started") == {"turn.started"}
    with pytest.raises(InvalidConfig, match=r"did you mean turn\.started"):
        kinds_named("turn.strted")
