"""Never a cent over: whatever a tree does, and however long its answers are, no run spends more than its limit.

The model answers as long as it may: every request costs all that was reserved for it. Some streams are cut, and what
those cost nobody says.
"""

import os
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from kit.runs.engine_runs import calls
from kit.runs.level_scripts import job, parallel, subtask
from wakeful import Agent, Budget, run, tool
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.events import ModelRequested
from wakeful.ports import ModelRequest
from wakeful.providers.prices import IN_CODE, ListedPrice, Price
from wakeful.providers.scripted import ScriptedModel
from wakeful.service.queries.replay import replay_turn
from wakeful.store.memory import MemoryStore

RUNS = int(os.environ.get("WAKEFUL_SIMULATED_TREES", "400")) // 6
"""How many are run; the whole check runs 333."""
SHARES = 3


@tool(effect="pure")
def look() -> str:
    """Look."""
    return "seen"


class Spendthrift(ScriptedModel):
    """Does anything for as long as it may, at list price, and counts what it is owed. A deaf one hears of no limit."""

    def __init__(self, luck: Random, *, longest: int, out: int, cut: float, is_deaf: bool = False) -> None:
        self.price = ListedPrice(Price(Decimal(5), Decimal(out)), IN_CODE)
        self.owed = Decimal(0)
        self.longest = longest

        def answer(request: ModelRequest) -> Any:
            most = longest if is_deaf else request.settings.max_tokens or longest
            assert most <= longest
            heard = 40
            self.owed += (5 * Decimal(heard) + out * Decimal(most)) / 1_000_000
            if luck.random() < cut:
                raise ModelFailure("cut", kind="stream_interrupted", stage="body")
            usage = {"input_tokens": heard, "output_tokens": most}
            if request.tool_choice == "none":
                return {"text": "the answer", "usage": usage}
            does = luck.choice(["look", "look", "run", "many", "say"])
            if does == "say" or request.depth > 1:
                return {"text": "done", "usage": usage}
            if does == "run":
                return {**calls(subtask("dig")), "usage": usage}
            if does == "many":
                return {**calls(parallel(job("one"), job("two"), job("three"))), "usage": usage}
            return {**calls("look"), "usage": usage}

        super().__init__(answer)

    def most_output(self, settings: Any) -> int | None:
        return settings.max_tokens or self.longest


async def spend(number: int, *, is_deaf: bool = False) -> tuple[str, Decimal, Decimal]:
    luck = Random(number)
    usd = luck.choice(["0.04", "0.10", "0.25", "0.5", "1", "4"])
    model = Spendthrift(
        luck,
        longest=luck.choice([2_000, 32_000, 128_000]),
        out=luck.choice([5, 30]),
        cut=luck.choice([0, 0.2]),
        is_deaf=is_deaf,
    )
    agent = Agent("boss", model, tools=[look], subtasks=True, allow_parallel_subagents=True)
    store = MemoryStore()
    budget = Budget(usd=usd, model_calls=luck.choice([None, 6, 40]), final_answer_reserve=luck.random() < 0.8)
    result = await run(agent, "go", budget=budget, store=store)
    row = await store.turn(result.turn_id)
    assert row is not None and (await replay_turn(store, row)).identical, number
    held = [entry.fact.event for entry in result.facts() if isinstance(entry.fact.event, ModelRequested)]
    assert all(event.reserved_usd is not None for event in held)
    return result.status, model.owed, Decimal(usd)


@pytest.mark.parametrize("share", range(SHARES))
async def test_no_run_spends_a_cent_more_than_its_limit(share: int) -> None:
    ends: dict[str, int] = {}
    for number in range(share, RUNS, SHARES):
        status, owed, limit = await spend(number)
        assert owed <= limit, (number, status, owed, limit)
        ends[status] = ends.get(status, 0) + 1
    assert ends["completed"] > RUNS // SHARES // 2, ends


async def test_a_model_that_hears_of_no_limit_spends_more() -> None:
    """The inversion: it is what the provider is told that holds the bill down."""
    ends = [await spend(number, is_deaf=True) for number in range(6)]
    assert any(owed > limit for _, owed, limit in ends)
