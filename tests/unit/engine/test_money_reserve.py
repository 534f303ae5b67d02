"""Money keeps a reserve for the final answer: a run whose money runs short still answers."""

from decimal import Decimal
from typing import Any

import pytest

from kit.runs.engine_runs import calls, of_kind
from kit.runs.level_scripts import LevelModel, subtask
from wakeful import Agent, Budget, RunResult, run, tool
from wakeful.contracts.amounts import InvalidBudget
from wakeful.contracts.events import ModelRequested, SubagentFailed
from wakeful.decisions.ledger import affordable
from wakeful.ports import Store
from wakeful.service.queries.replay import replay_turn
from wakeful.store.memory import MemoryStore


@tool(effect="pure")
def look() -> str:
    """Look."""
    return "seen"


async def played(model: LevelModel, usd: str, store: Store, **options: Any) -> RunResult[Any]:
    """A dollar a token of output: an answer may have `most` of them, and has as many as the model spends."""
    agent = Agent("boss", model, tools=[look], subtasks=True)
    result = await run(agent, "go", budget=Budget(usd=usd, **options), store=store)
    row = await store.turn(result.turn_id)
    assert row is not None and (await replay_turn(store, row)).identical
    return result


def of_root(result: RunResult[Any]) -> list[ModelRequested]:
    """The requests of the root, in order."""
    return [
        entry.fact.event
        for entry in result.facts()
        if isinstance(entry.fact.event, ModelRequested) and entry.fact.level is None
    ]


def looking(shown: Any) -> Any:
    """Looks for as long as it may; then answers."""
    return "the answer" if shown.tool_choice == "none" else calls("look")


async def test_the_last_request_that_the_money_allows_is_the_final_answer() -> None:
    """2,000 tokens at most, 500 each: with 4,000 dollars there is room for some looks, and then for an answer."""
    model = LevelModel({"go": [looking]}, priced=True, most=2_000, spends=500)
    result = await played(model, "4000", MemoryStore())
    assert (result.status, result.output) == ("completed", "the answer")
    *before, last = of_root(result)
    assert last.final and not any(event.final for event in before) and len(before) >= 2
    assert last.reserved_output is not None and 1_024 <= last.reserved_output <= 2_000
    assert result.cost_usd is not None and result.cost_usd <= 4_000


async def test_the_answer_is_held_to_what_is_left() -> None:
    seen: list[int | None] = []

    class Noting(LevelModel):
        def respond(self, request: Any) -> Any:
            seen.append(request.settings.max_tokens)
            return super().respond(request)

    model = Noting({"go": [looking]}, priced=True, most=2_000, spends=1_000)
    result = await played(model, "4500", MemoryStore())
    assert result.status == "completed"
    *before, last = of_root(result)
    left = 4_500 - 1_000 * len(before)
    assert last.reserved_output == min(left, 2_000) == seen[-1]
    kept, thirds = 1_024, [(4_500 - 1_000 * made - 1_024) // 3 for made in range(len(before))]
    assert seen[:-1] == [event.reserved_output for event in before] == [max(kept, third) for third in thirds]
    assert {event.shortened_by for event in before} == {"the budget of 4500 USD"}


async def test_without_the_reserve_the_same_run_returns_nothing() -> None:
    model = LevelModel({"go": [looking]}, priced=True, most=2_000, spends=500)
    result = await played(model, "4000", MemoryStore(), final_answer_reserve=False)
    assert (result.status, result.stop_reason) == ("incomplete", "cost")


async def test_a_subtask_ends_before_it_uses_what_is_kept_for_the_answer() -> None:
    script = {"go": [calls(subtask("dig")), "half an answer"], "dig": [calls("look")]}
    model = LevelModel(script, priced=True, most=1_500, spends=400)
    result = await played(model, "5000", MemoryStore())
    assert (result.status, result.output) == ("completed", "half an answer")
    (ended,) = of_kind(result, SubagentFailed)
    assert "kept for the final answer" in ended.message and len(model.of("dig")) >= 3


async def test_a_budget_below_one_short_answer_is_refused_at_the_start() -> None:
    store = MemoryStore()
    model = LevelModel({"go": ["done"]}, priced=True, most=2_000)
    with pytest.raises(InvalidBudget, match=r"Budget\(usd=1000\) is less than one short answer costs: about 1024"):
        await run(Agent("boss", model), "go", budget=Budget(usd="1000"), store=store)
    assert await store.turns() == [] and model.seen == []
    assert (await run(Agent("boss", model), "go", budget=Budget(usd="1024"), store=store)).output == "done"


@pytest.mark.parametrize(("left", "tokens"), [("5", 10), ("10", 10), ("55", 55), ("100", 100), ("999", 100)])
def test_as_much_output_as_the_money_is_enough_for(left: str, tokens: int) -> None:
    assert affordable(Decimal(left), Decimal(10), Decimal(100), 10, 100) == tokens
