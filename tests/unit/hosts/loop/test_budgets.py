"""Iteration budgets: N allows N."""

from typing import Any

import pytest

from wakeful.contracts.errors import InvalidValue
from wakeful.hosts.loop.budgets import IterationBudget, by_name


@pytest.mark.spec("API-BUD-01")
def test_a_budget_counts_up_to_its_ceiling_and_says_what_is_left() -> None:
    budget = IterationBudget("things", 2)
    assert (budget.name, budget.ceiling, budget.current, budget.remaining()) == ("things", 2, 0, 2)
    assert [budget.increment(), budget.increment()] == [1, 2]
    assert (budget.remaining(), budget.exceeded()) == (0, False)
    budget.increment()
    assert (budget.remaining(), budget.exceeded()) == (0, True)
    assert IterationBudget("things", 1, current=-4).current == 0
    for wrong in (0, -1):
        with pytest.raises(InvalidValue, match=r"^invalid_iteration_budget: ceiling: is at least 1"):
            IterationBudget("things", wrong)


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"name": " ", "ceiling": 1}, "name"),
        ({"name": 3, "ceiling": 1}, "name"),
        ({"name": "a", "ceiling": True}, "ceiling"),
        ({"name": "a", "ceiling": 1, "current": 0.5}, "current"),
    ],
)
def test_what_is_no_budget_is_named(fields: dict[str, Any], where: str) -> None:
    with pytest.raises(InvalidValue, match=f"^invalid_iteration_budget: {where}: "):
        IterationBudget(**fields)


def test_nothing_is_given_back() -> None:
    budget = IterationBudget("things", 2, 1)
    with pytest.raises(ValueError, match="never given back"):
        budget.increment(-1)
    assert budget.current == 1


def test_the_known_names_say_what_they_bound() -> None:
    found = {
        name: (IterationBudget(name, 1).dimension, IterationBudget(name, 1).is_callers)
        for name in ("turns", "tool_calls", "tool_calls_ability/search", "wall_clock_seconds", "pages")
    }
    assert found == {
        "turns": ("turns", False),
        "tool_calls": ("tool_calls", False),
        "tool_calls_ability/search": ("tool_calls", False),
        "wall_clock_seconds": ("wall_clock", False),
        "pages": ("pages", True),
    }


def test_two_budgets_of_one_name_are_an_error() -> None:
    with pytest.raises(InvalidValue, match="there are two budgets 'a'"):
        by_name([IterationBudget("a", 1), IterationBudget("a", 2)])
