"""What a run cost, as its result tells it."""

from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import pytest

from wakeful import Agent, Budget, RunResult, run
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import AssistantItem, CallPart
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.events import CostRecorded, PlanningStarted
from wakeful.contracts.models import ModelGlimpse, Reply, TokenUsage
from wakeful.ports import ModelRequest
from wakeful.providers.prices import IN_CODE, ListedPrice, Price
from wakeful.service.queries.costs import costs_of
from wakeful.store.memory import MemoryStore
from wakeful.views.cost import CostLine

USED = TokenUsage(input_tokens=100, output_tokens=20, total_tokens=120)
ONE = {"input_tokens": 100, "output_tokens": 20}


class Priced:
    """A model with a price that calls a tool nobody has, for ever, after the failures it was given."""

    ref = "mine:m"
    price = ListedPrice(Price(Decimal(1), Decimal(10)), IN_CODE)

    def __init__(self, *failures: ModelFailure) -> None:
        self._failures = list(failures)

    async def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        if self._failures:
            raise self._failures.pop(0)
        call = CallPart(call_id=f"c{request.step}", name="nobody", arguments={})
        yield Reply(item=AssistantItem(parts=(Text("hm"), call)), usage=USED)


async def test_a_run_that_a_limit_ended_says_what_it_cost_retries_included() -> None:
    store = MemoryStore()
    cut = ModelFailure("cut", kind="stream_interrupted", stage="body", usage=TokenUsage(input_tokens=10))
    result = await run(Agent("a", Priced(cut)), "go", store=store, budget=Budget(model_calls=3, usd="1"))
    assert result.stop_reason == "llm_calls"
    summary = result.cost_summary
    assert summary.total == CostLine(calls=3, input_tokens=210, output_tokens=40, cost="0.00061")
    assert summary.by_model == {"mine:m": summary.total} and summary.by_depth == {"0": summary.total}
    assert (summary.thread_id, summary.turn_id) == (result.thread, result.turn_id)
    assert (summary.max_cost_usd, summary.cost_complete, summary.usage_complete) == ("1", True, True)
    assert summary.tool_calls == result.tool_calls
    report = await costs_of(store, "agent", day=str)
    assert report.groups == {"a": summary.total}


class Splitting:
    """A model that hands its task down, level by level, and loses its first attempt at the bottom."""

    ref = "mine:m"
    price = Priced.price

    def __init__(self) -> None:
        self._lost = False

    async def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        items = list(request.history)
        task = items[0].text.strip()
        level = int(task[-1])
        if level == 2 and not self._lost:
            self._lost = True
            raise ModelFailure("cut", kind="stream_interrupted", stage="body", usage=TokenUsage(input_tokens=10))
        if level < 2 and len(items) == 1:
            asked = {"title": "part", "instructions": f"level {level + 1}"}
            part: Text | CallPart = CallPart(call_id=f"call{level}", name="run_subtask", arguments=asked)
        else:
            part = Text(f"done at {level}")
        yield Reply(item=AssistantItem(parts=(part,)), usage=USED)


@pytest.mark.spec("LOOP-COST-01")
async def test_all_levels_add_to_the_cost_of_the_one_turn() -> None:
    result = await run(Agent("a", Splitting(), subtasks=True), "level 0")
    assert result.output == "done at 0"
    summary = result.cost_summary
    two = CostLine(calls=2, input_tokens=200, output_tokens=40, cost="0.0006")
    bottom = CostLine(calls=2, input_tokens=110, output_tokens=20, cost="0.00031")
    assert summary.by_depth == {"0": two, "1": two, "2": bottom}
    assert summary.total == CostLine(calls=6, input_tokens=510, output_tokens=100, cost="0.00151")
    assert summary.by_model == {"mine:m": summary.total}
    assert (summary.subtasks, summary.cost_complete, summary.usage_complete) == (2, True, True)
    recorded = [entry.fact.event for entry in result.facts() if isinstance(entry.fact.event, CostRecorded)]
    assert sum(Decimal(each.amount) for each in recorded) == Decimal(summary.total.cost)


async def test_what_planning_cost_is_in_the_sum() -> None:
    agent = Agent("a", Priced(), planning_enabled=True)
    result = await run(agent, "go", budget=Budget(model_calls=3))
    planned = [entry for entry in result.facts() if isinstance(entry.fact.event, PlanningStarted)]
    assert planned and result.cost_summary.total.calls == 3
    assert result.cost_summary.total.cost == "0.0009"


async def test_the_summary_is_in_the_written_result_and_comes_back_from_it() -> None:
    result = await run(Agent("a", Priced()), "go", budget=Budget(model_calls=1))
    written = result.to_dict()
    assert written["cost_summary"] == result.cost_summary.model_dump(mode="json")
    again: RunResult[Any] = RunResult.from_dict(written)
    assert again.cost_summary == result.cost_summary
    assert again.cost_summary.total == CostLine(calls=1, cost="0.0003", **ONE)
