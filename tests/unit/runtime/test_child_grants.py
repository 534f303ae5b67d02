"""The budget of child agents: a part of their parents', reserved, shared by their turns, and given back."""

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from kit.runs.child_agents import (
    calls,
    family,
    heard,
    name_of,
    of_kind,
    on_task,
    only_task,
    refusals,
    spawning,
    until_over,
)
from wakeful import Agent, Budget, Runtime, SpendWindow, tool
from wakeful.contracts.budgets import Limits
from wakeful.contracts.events import GrantReserved, GrantSettled, ModelRequested, TurnStarted
from wakeful.contracts.spending import agent_scope
from wakeful.ports import ModelRequest
from wakeful.providers.prices import IN_CODE, ListedPrice, Price
from wakeful.runtime.child_agents import limits_left
from wakeful.service.commands.interruption import cancel_turn
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted


async def test_a_grant_is_out_of_the_turn_until_the_child_is_over() -> None:
    store = MemoryStore()
    parent = spawning(on_task("task_output"), "done", budget={"model_calls": 6})
    async with Runtime(store=store, agents=[family(parent, budget=Budget(model_calls=10))]) as rt:
        await rt.answer(await rt.send("ops", "Have a hole dug."))
    row = await only_task(store)
    (given,) = await of_kind(store, "ops", GrantReserved)
    (back,) = await of_kind(store, "ops", GrantSettled)
    (started,) = await of_kind(store, name_of(row), TurnStarted)
    assert (given.grant.model_calls, started.limits.model_calls, back.left.model_calls) == (6, 6, 5)


async def test_a_turn_that_gave_its_budget_away_has_no_more_of_it() -> None:
    """The inversion: without the reservation the parent would make ten model calls beside the child's eight."""
    store, go = MemoryStore(), asyncio.Event()

    async def child(request: ModelRequest) -> Any:
        await go.wait()
        return "A hole."

    def reply(request: ModelRequest) -> Any:
        if "Dig" in heard(request)[0]:
            return child(request)
        if "Task task_" in heard(request)[-1]:
            return "told"
        if not request.answered:
            return calls("spawn_agent", initial_message="Dig.", budget={"model_calls": 8})
        return on_task("task_status")(request) if request.tools and request.answered < 9 else "final"

    agent: Agent[None, str] = Agent("ops", scripted(reply), spawn=True, budget=Budget(model_calls=10))
    async with Runtime(store=store, agents=[agent]) as rt:
        await rt.answer(await rt.send("ops", "Have a hole dug."))
        go.set()
        await rt.settled()
    turns = await store.turns_of_thread("ops", "main")
    asked = [e for e in await store.read("ops", turn_id=turns[0].turn_id) if isinstance(e.fact.event, ModelRequested)]
    assert len(asked) == 2, "ten were allowed, and eight of them are the child's"


@pytest.mark.parametrize(
    ("asked", "reason"),
    [({"model_calls": 10}, "model_calls"), ({"usd": 2}, "usd"), ({"tokens": 100_000}, "tokens")],
)
async def test_no_child_is_given_more_than_its_parent_has_left(asked: dict[str, Any], reason: str) -> None:
    store = MemoryStore()
    budget = Budget(model_calls=10, usd=1, tokens=50_000, unpriced_token_ceiling=50_000)
    parent = spawning("No.", budget=asked)
    async with Runtime(store=store, agents=[family(parent, budget=budget)]) as rt:
        await rt.answer(await rt.send("ops", "Have a hole dug."))
    (told,) = await refusals(store)
    assert (told["error"], told["reason"]) == ("budget_exceeded", reason)
    assert await store.tasks_of("ops") == []
    assert [row.agent_id for row in await store.runtime_agents()] == ["ops"]


async def test_turns_of_a_child_share_its_grant() -> None:
    store = MemoryStore()

    def child(request: ModelRequest) -> Any:
        return calls("sleep", reason="rest", duration_ms=1) if len(heard(request)) < 3 else "A hole."

    parent = spawning("It digs.", budget={"model_calls": 5})
    async with Runtime(store=store, agents=[family(parent, child)]) as rt:
        await rt.answer(await rt.send("ops", "Have a hole dug."))
        await until_over(store)
    row = await only_task(store)
    started = await of_kind(store, name_of(row), TurnStarted)
    assert [each.limits.model_calls for each in started] == [5, 4, 3]
    assert row.status == "completed"


async def test_a_child_that_used_its_grant_up_has_failed_and_its_parent_is_told() -> None:
    store = MemoryStore()

    def child(request: ModelRequest) -> Any:
        return calls("sleep", reason="rest", duration_ms=1)

    parent = spawning("It digs.", budget={"model_calls": 2})
    async with Runtime(store=store, agents=[family(parent, child)]) as rt:
        await rt.answer(await rt.send("ops", "Have a hole dug."))
        await until_over(store)
        await rt.settled()
    row = await only_task(store)
    assert (row.status, (row.failure or {})["kind"]) == ("failed", "llm_calls")
    assert len(await store.turns_of_thread("ops", "main")) == 2


async def test_what_a_child_spends_counts_in_its_parents_windows() -> None:
    store = MemoryStore()
    agent = family(spawning("It digs."), spend_windows=[SpendWindow("day", 5)])
    agent.model.price = ListedPrice(Price(Decimal(1), Decimal(10)), IN_CODE)  # type: ignore[union-attr]
    async with Runtime(store=store, agents=[agent]) as rt:
        await rt.answer(await rt.send("ops", "Have a hole dug."))
        await rt.settled()
        child = name_of(await only_task(store))
    (row,) = await store.spending()
    own = [
        entry.fact.event.windows for entry in await store.read(child) if isinstance(entry.fact.event, ModelRequested)
    ]
    assert row.scope == agent_scope("ops")
    assert [[window.scope for window in each] for each in own] == [[agent_scope("ops")]]


async def test_a_child_whose_turn_is_cancelled_while_it_waits_for_approval_keeps_the_rest_of_its_grant() -> None:
    store = MemoryStore()

    @tool(effect="irreversible", approval=True)
    def blast() -> str:
        """Use dynamite."""
        raise AssertionError("nobody allowed it")

    parent = spawning("It digs.", budget={"model_calls": 6})
    agent = family(parent, lambda request: calls("blast"), tools=[blast], budget=Budget(model_calls=10))
    async with Runtime(store=store, agents=[agent]) as rt:
        await rt.answer(await rt.send("ops", "Have a hole dug."))
        await rt.settled()
        child = name_of(await only_task(store))
        (turn,) = await store.turns_of_thread(child, "main")
        assert turn.state == "suspended"
        await cancel_turn(rt._here.engine, turn.turn_id, requested_by="operator")
        await rt.settled()
        left = await limits_left(store, child, Limits(model_calls=6))
    assert left.model_calls == 5, "it had asked once"
