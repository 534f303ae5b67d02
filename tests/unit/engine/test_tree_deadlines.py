"""The time of a whole tree: it bounds what is under way at any depth, and waiting for a person takes none of it."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from kit.runs.engine_runs import calls, check_ends, of_kind
from kit.runs.level_scripts import LevelModel, Shown, child_ends, ends, subtask
from wakeful import Agent, Approve, Budget, RunResult, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.budgets import MAX_WALL_CLOCK_MS
from wakeful.contracts.events import LimitChanged, ModelFailed, ModelRequested, ToolFailed, TurnFailed
from wakeful.engine.run_request import RunRequest
from wakeful.service.commands.turns import run_turn
from wakeful.store.memory import MemoryStore
from wakeful.testing import FixedClock

CHAT = Budget(profile="interactive")


async def played(script: dict[str, Any], clock: FixedClock, tools: list[Any], **options: Any) -> RunResult[Any]:
    agent = Agent("boss", LevelModel(script), tools=tools, subtasks=True)
    timed = replace(new_engine(MemoryStore()), clock=clock)
    async with asyncio.timeout(60):
        return await run_turn(timed, RunRequest(agent, "go", budget=CHAT, **options))


@pytest.mark.spec("LOOP-BUD-08", "LOOP-BUD-18")
async def test_at_the_deadline_whatever_runs_is_cancelled_and_a_person_may_take_as_long_as_they_like() -> None:
    clock = FixedClock()
    inside: set[str] = set()
    cancelled: set[str] = set()
    all_in = asyncio.Event()

    async def linger(name: str) -> None:
        inside.add(name)
        if len(inside) == 2:
            all_in.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.add(name)
            raise

    @tool(effect="pure")
    async def slow() -> str:
        await linger("tool")
        return "never"

    async def think(shown: Shown) -> Any:
        await linger("model")

    script = {
        "go": [calls(subtask("act"), subtask("think")), "never said"],
        "act": [calls(subtask("below"))],
        "below": [calls("slow")],
        "think": [think],
    }
    running = asyncio.ensure_future(played(script, clock, [slow]))
    async with asyncio.timeout(60):
        await all_in.wait()
        clock.advance(MAX_WALL_CLOCK_MS / 1_000 - 1)
        await asyncio.sleep(0)
        assert not cancelled, "there is a second left"
        clock.advance(1)
        result = await running
    assert cancelled == {"model", "tool"} and MAX_WALL_CLOCK_MS == 180_000
    assert (result.status, result.stop_reason) == ("incomplete", "wall_clock")
    (reached,) = of_kind(result, LimitChanged)
    assert (reached.limit, reached.observed) == (180, 180)
    (ended,) = ends(result, "slow")
    assert isinstance(ended, ToolFailed) and ended.status == "cancelled"
    assert [failure.failure_kind for failure in of_kind(result, ModelFailed)] == ["cancelled"]
    assert {end.error for end in child_ends(result)} == {"budget_exceeded"}  # type: ignore[union-attr]
    check_ends(result.facts())

    # Looked at before each round, too: nothing is asked when the time is over.
    @tool(effect="pure")
    def jump() -> str:
        clock.advance(180)
        return "later"

    late = await played({"go": [calls(subtask("dig")), "never"], "dig": [calls("jump"), "never"]}, clock, [jump])
    assert (late.stop_reason, len(of_kind(late, ModelRequested))) == ("wall_clock", 2)

    @tool(effect="pure", approval=True)
    def pay() -> str:
        return "paid"

    async def person(record: Any) -> Approve:
        clock.advance(100_000)
        return Approve()

    asked = {"go": [calls(subtask("buy")), "done"], "buy": [calls("pay"), "bought"]}
    waited = await played(asked, clock, [pay], approver=person)
    assert (waited.status, of_kind(waited, LimitChanged)) == ("completed", [])


@pytest.mark.spec("CTL-INV-04")
@pytest.mark.parametrize(
    ("reason", "agent_options", "budget", "model_options"),
    [
        ("max_steps", {"max_steps": 2}, Budget(), {}),
        ("context_budget", {"budget_awareness": "limit:0"}, Budget(), {"window": 4_000}),
        ("cost", {}, Budget(usd="30"), {"priced": True, "most": 20, "spends": 20}),
        ("wall_clock", {}, Budget(seconds=5), {}),
    ],
)
async def test_a_stop_is_said_as_what_it_is_and_never_a_completion(
    reason: str, agent_options: dict[str, Any], budget: Budget, model_options: dict[str, Any]
) -> None:
    clock = FixedClock()

    @tool(effect="pure")
    def look() -> str:
        clock.advance(3)
        return "seen"

    agent = Agent("boss", LevelModel({"go": [calls("look")]}, **model_options), tools=[look], **agent_options)
    timed = replace(new_engine(MemoryStore()), clock=clock)
    async with asyncio.timeout(60):
        result = await run_turn(timed, RunRequest(agent, "go", budget=budget))
    assert (result.status, result.stop_reason) == ("incomplete", reason)
    end = result.facts()[-1].fact.event
    assert isinstance(end, TurnFailed) and (end.status, end.stop_reason) == ("incomplete", reason) and end.message
