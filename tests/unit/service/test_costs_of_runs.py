"""What a run cost, in its result: by model and by depth, with what nobody knows counted and not guessed."""

from decimal import Decimal
from typing import Any

import pytest

from kit.runs.engine_runs import calls
from kit.runs.level_scripts import LevelModel, subtask
from wakeful import Agent, run
from wakeful.testing import scripted
from wakeful.views.cost import CostLine

MONEY = ("cost", "cut_off")


def added(lines: dict[str, CostLine]) -> dict[str, Any]:
    total: dict[str, Any] = dict.fromkeys(CostLine.model_fields, 0) | dict.fromkeys(MONEY, Decimal(0))
    for each in lines.values():
        for name, value in each.model_dump().items():
            total[name] += Decimal(value) if name in MONEY else value
    return total


@pytest.mark.spec("LOOP-COST-04", "LOOP-COST-05", "LOOP-COST-08")
async def test_the_total_is_the_sum_over_models_and_over_depths_and_money_is_a_decimal() -> None:
    script = {"go": [calls(subtask("dig")), "done"], "dig": ["gold"]}
    result = await run(Agent("boss", LevelModel(script, priced=True, spends=3), subtasks=True), "go")
    summary = result.cost_summary
    assert (summary.currency, summary.total.calls, summary.subtasks) == ("USD", 3, 1)
    assert {depth: line.calls for depth, line in summary.by_depth.items()} == {"0": 2, "1": 1}
    plain = summary.total.model_dump()
    plain |= {name: Decimal(plain[name]) for name in MONEY}
    assert plain == added(summary.by_model) == added(summary.by_depth)
    assert (summary.total.cost, summary.total.output_tokens) == ("9", 9)
    assert summary.cost_complete and summary.usage_complete


@pytest.mark.spec("LOOP-COST-07")
async def test_a_call_without_a_price_and_tokens_that_nobody_reported_make_it_incomplete() -> None:
    class Unpriced(LevelModel):
        ref = "mine:m"

    told = await run(Agent("a", Unpriced({"go": ["hi"]}, spends=3)), "go")
    summary = told.cost_summary
    assert (summary.total.unpriced_calls, summary.cost_complete, summary.usage_complete) == (1, False, True)
    silent = (await run(Agent("a", Unpriced({"go": ["hi"]})), "go")).cost_summary
    assert (silent.total.input_tokens, silent.usage_complete) == (0, False)
    script = (await run(Agent("a", scripted(["hi"])), "go")).cost_summary
    assert (script.cost_complete, script.usage_complete) == (True, True), (
        "a script costs nothing, and uses what it says"
    )
