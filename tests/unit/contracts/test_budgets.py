"""Budgets as values: profiles, what a caller may name, and the limits that follow."""

from decimal import Decimal
from typing import Any

import pytest

from wakeful.contracts import budgets
from wakeful.contracts.amounts import InvalidBudget
from wakeful.contracts.budgets import AUTONOMOUS, INTERACTIVE, UNLIMITED, Budget, BudgetLeft, Limits, SpendWindow
from wakeful.contracts.errors import InvalidConfig


def test_the_interactive_profile_has_the_numbers_of_the_loop() -> None:
    assert (
        Limits(
            depth=3,
            max_steps=20,
            width=8,
            subtasks=32,
            model_calls=60,
            tool_calls=200,
            seconds=180.0,
            result_bytes=50_000,
            history_tokens=128_000,
        )
        == INTERACTIVE
    )
    assert INTERACTIVE.schema_retries == budgets.MAX_SCHEMA_RETRIES == 3


def test_the_autonomous_profile_is_the_default_and_wider() -> None:
    assert Budget().limits() == AUTONOMOUS
    assert (
        Limits(
            depth=3,
            max_steps=200,
            width=8,
            subtasks=128,
            model_calls=200,
            tool_calls=1_000,
            seconds=1_800.0,
            result_bytes=50_000,
        )
        == AUTONOMOUS
    )


def test_without_limits_the_shape_of_the_tree_is_still_bounded() -> None:
    assert Budget.unlimited().limits() == UNLIMITED == Limits(depth=3, width=8, result_bytes=50_000)


def test_limits_do_not_change_when_a_constant_does() -> None:
    """What is stored leaves defaults out: a default that followed a constant would change what old logs say."""
    defaults = {name: field.default for name, field in Limits.model_fields.items()}
    assert {name for name, value in defaults.items() if value is not None} == {
        "per_tool",
        "final_answer_reserve",
        "schema_retries",
    }
    # The retries are written out, so that the profile says them even when the constant has another value.
    assert "schema_retries" in INTERACTIVE.model_fields_set & UNLIMITED.model_fields_set


FULL: dict[str, Any] = {
    "usd": "0.5",
    "tokens": 9_000,
    "input_tokens": 8_000,
    "output_tokens": 1_000,
    "model_calls": 8,
    "tool_calls": 0,
    "seconds": 60.0,
    "depth": 1,
    "subtasks": 4,
    "per_tool": {"search": 3, "refund": 0},
    "unpriced_token_ceiling": 500,
    "final_answer_reserve": False,
}


@pytest.mark.parametrize("profile", ["autonomous", "interactive", "unlimited"])
@pytest.mark.parametrize("field", FULL)
def test_each_field_of_a_budget_becomes_that_limit_and_nothing_else(profile: Any, field: str) -> None:
    base = Budget(profile=profile).limits()
    assert getattr(base, field) != FULL[field]
    assert Budget(profile=profile, **{field: FULL[field]}).limits() == base.model_copy(update={field: FULL[field]})


def test_a_whole_budget_holds() -> None:
    limits = Budget(profile="interactive", **FULL).limits(max_steps=7)
    assert limits == INTERACTIVE.model_copy(update={**FULL, "max_steps": 7})
    assert Budget(**FULL) == Budget.model_validate_json(Budget(**FULL).model_dump_json())


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (0.25, "0.25"),
        ("0.50", "0.5"),
        (Decimal("1.10"), "1.1"),
        (2, "2"),
        (100, "100"),
        ("1e2", "100"),
        (0.1 + 0.2, "0.3"),
        (0, "0"),
        ("-0", "0"),
        ("0.000001", "0.000001"),
        (1e-9, "0.000000001"),
    ],
)
def test_money_is_a_decimal_text_and_the_same_text_for_the_same_amount(given: Any, kept: str) -> None:
    assert Budget(usd=given).usd == Budget(usd=given).limits().usd == kept
    assert Budget(usd=kept) == Budget(usd=given)
    assert SpendWindow("day", given).usd == kept


def test_minutes_are_seconds() -> None:
    assert Budget(minutes=20).seconds == 1_200.0
    assert Budget(minutes=0.5) == Budget(seconds=30)
    with pytest.raises(InvalidBudget, match="one of the two"):
        Budget(minutes=1, seconds=60)


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        *(("usd", wrong) for wrong in (-0.01, "much", float("nan"), float("inf"), True, [1], 10**10, "")),
        *((name, wrong) for name in ("tokens", "input_tokens", "output_tokens") for wrong in (0, 1.5, "9", True)),
        *(("model_calls", wrong) for wrong in (0, -1, 2.0, "8", True)),
        *((name, wrong) for name in ("tool_calls", "depth", "subtasks") for wrong in (-1, 1.5, "1", False)),
        *(
            (name, wrong)
            for name in ("seconds", "minutes")
            for wrong in (0, -5, float("inf"), float("nan"), "60", True)
        ),
        *(("per_tool", wrong) for wrong in (["search"], {"search": -1}, {"search": None}, {"": 1}, {3: 1}, "search")),
        *(("unpriced_token_ceiling", wrong) for wrong in (0, 0.5)),
        *(("profile", wrong) for wrong in ("wild", None)),
        ("final_answer_reserve", "yes"),
    ],
)
def test_what_is_no_amount_is_refused_with_its_field_and_value(field: str, wrong: Any) -> None:
    with pytest.raises(InvalidBudget, match=field) as refused:
        Budget(**{field: wrong})
    assert refused.value.hint
    assert issubclass(InvalidBudget, InvalidConfig) and issubclass(InvalidBudget, ValueError)


def test_an_unknown_field_is_named_with_near_ones() -> None:
    with pytest.raises(InvalidBudget, match=r"no field 'modelcalls'\ndid you mean model_calls"):
        Budget(modelcalls=3)
    with pytest.raises(InvalidBudget, match=r"no field 'zzz'\nknown are: usd, tokens"):
        Budget(zzz=3)


def test_a_changed_budget_keeps_the_rest() -> None:
    budget = Budget(profile="interactive", **FULL)
    assert budget.changed(model_calls=2) == Budget(profile="interactive", **{**FULL, "model_calls": 2})
    assert budget.changed(minutes=2).seconds == 120
    assert budget.changed() == budget
    with pytest.raises(InvalidBudget, match="model_calls"):
        budget.changed(model_calls=0)


def test_what_is_left_names_the_same_dimensions() -> None:
    left = BudgetLeft(model_calls=1, tool_calls=None, seconds=2.5)
    assert (left.tokens, left.input_tokens, left.output_tokens, left.usd, left.subtasks) == (None,) * 5
    assert BudgetLeft(model_calls=1, tool_calls=2, seconds=None, usd="0.25", per_tool={"search": 1}).usd == "0.25"
    used_up = Limits.model_fields.keys() & BudgetLeft.model_fields.keys()
    assert used_up == set(BudgetLeft.model_fields)


@pytest.mark.parametrize(("period", "usd"), [("week", 1), ("day", None), ("day", -1), (None, 1)])
def test_a_window_that_makes_no_sense_is_refused(period: Any, usd: Any) -> None:
    with pytest.raises(InvalidBudget, match="SpendWindow"):
        SpendWindow(period, usd)
