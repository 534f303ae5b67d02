"""The ledger of a tree: held back, settled, and never free where nobody knows."""

from decimal import Decimal
from typing import Any

import pytest

from wakeful.contracts.budgets import BudgetLeft, Limits
from wakeful.contracts.events import ModelFailed, ModelRequested
from wakeful.contracts.models import TokenUsage
from wakeful.decisions.ledger import PassedLimit, Reservation, TurnLedger, left_of
from wakeful.decisions.levels import OpenRequest


def asked(ledger: TurnLedger, **reserved: Any) -> OpenRequest:
    request = OpenRequest(1, 0, 1, "m", 0)
    held = {"reserved_input": 100, "reserved_output": 40, **reserved}
    ledger.hold(request, ModelRequested(model_ref="m", items=1, **held))
    return request


def lost(**how: Any) -> ModelFailed:
    given = {"failure_kind": "stream_interrupted", "stage": "body", "disposition": "retry", "message": "cut", **how}
    return ModelFailed(model_ref="m", candidate=0, attempt=1, **given)


def figures(ledger: TurnLedger) -> tuple[int, int, Decimal, int]:
    return ledger.input_tokens, ledger.output_tokens, ledger.usd, ledger.unpriced_tokens


def held(ledger: TurnLedger) -> tuple[int, int, Decimal, int]:
    return ledger.held_input, ledger.held_output, ledger.held_usd, ledger.held_unpriced


NOTHING = (0, 0, Decimal(0), 0)
USED = TokenUsage(input_tokens=90, output_tokens=10)


def test_a_settlement_touches_only_what_was_held_for_its_own_request() -> None:
    ledger = TurnLedger()
    first, second = asked(ledger, reserved_usd="3"), asked(ledger, reserved_usd="5")
    assert held(ledger) == (200, 80, Decimal(8), 0) and ledger.model_calls == 2
    ledger.answered(first, USED)
    ledger.cost(first, Decimal(1), lost=False)
    ledger.recorded(first)
    assert held(ledger) == (100, 40, Decimal(5), 0)
    assert figures(ledger) == (90, 10, Decimal(1), 0)
    ledger.recorded(first)
    ledger.answered(second, USED)
    ledger.recorded(second)
    assert held(ledger) == NOTHING, "settled once is settled"
    assert figures(ledger) == (180, 20, Decimal(6), 0), "a price that nobody named is what was held"


def test_what_nobody_says_settles_at_what_was_held() -> None:
    ledger = TurnLedger()
    request = asked(ledger, reserved_usd="3")
    ledger.answered(request, None)
    ledger.recorded(request)
    assert (figures(ledger), held(ledger)) == ((100, 40, Decimal(3), 0), NOTHING)
    unpriced = TurnLedger()
    request = asked(unpriced)
    assert held(unpriced) == (100, 40, Decimal(0), 140)
    unpriced.answered(request, None)
    unpriced.recorded(request)
    assert (figures(unpriced), held(unpriced)) == ((100, 40, Decimal(0), 140), NOTHING)


@pytest.mark.parametrize(
    ("failure", "spent"),
    [
        (lost(), (100, 40, Decimal(3), 0)),
        (lost(stage="crash"), (100, 40, Decimal(3), 0)),
        (lost(token_usage=USED), (90, 10, Decimal(3), 0)),
        (lost(status=503, failure_kind="overloaded", stage="headers"), NOTHING),
        (lost(failure_kind="connection", stage="connect"), NOTHING),
    ],
    ids=["cut off", "crash", "cut off, and said", "refused", "never there"],
)
def test_a_lost_request_costs_all_that_was_held_unless_it_never_began(failure: ModelFailed, spent: Any) -> None:
    ledger = TurnLedger()
    request = asked(ledger, reserved_usd="3")
    ledger.lost(request, failure)
    assert (figures(ledger), held(ledger)) == (spent, NOTHING)
    if failure.token_usage is not None:
        ledger.cost(request, Decimal("0.5"), lost=True)
        assert ledger.usd == Decimal("0.5"), "its price is known now, and stands in the place of what was held"


def test_a_lost_request_without_a_price_counts_against_the_ceiling() -> None:
    ledger = TurnLedger()
    ledger.lost(asked(ledger), lost())
    assert (ledger.unpriced_tokens, ledger.held_unpriced) == (140, 0)
    ledger.lost(asked(ledger), lost(status=503, failure_kind="overloaded", stage="headers"))
    assert (ledger.unpriced_tokens, ledger.held_unpriced) == (140, 0)


@pytest.mark.parametrize(
    ("limits", "passed"),
    [
        (Limits(input_tokens=199), PassedLimit("tokens", 199, 200, "input_tokens")),
        (Limits(output_tokens=79), PassedLimit("tokens", 79, 80, "output_tokens")),
        (Limits(tokens=279), PassedLimit("tokens", 279, 280, "tokens")),
        (Limits(usd="5.99"), PassedLimit("cost", 5.99, 6.0)),
        (Limits(input_tokens=200, output_tokens=80, tokens=280, usd="6"), None),
        (Limits(), None),
    ],
)
def test_one_more_is_refused_when_with_what_is_held_it_would_pass(limits: Limits, passed: PassedLimit | None) -> None:
    ledger = TurnLedger()
    asked(ledger, reserved_usd="3")
    needs = Reservation(100, 40, Decimal(3))
    assert ledger.passed_by(limits, needs) == passed
    assert ledger.passed_by(limits, needs, with_held=False) is None, "alone it would fit"


def test_a_model_without_a_price_is_refused_where_money_is_limited_unless_there_is_a_ceiling() -> None:
    ledger, needs = TurnLedger(), Reservation(100, 40, None)
    refused = ledger.passed_by(Limits(usd="100"), needs)
    assert refused is not None and refused.name == "cost" and "price" in refused.what
    ceiling = Limits(usd="100", unpriced_token_ceiling=279)
    assert ledger.passed_by(ceiling, needs) is None
    asked(ledger)
    over = ledger.passed_by(ceiling, needs)
    assert over is not None and (over.limit, over.observed) == (279, 280), "what is under way counts"
    assert ledger.passed_by(Limits(), needs) is None


def test_what_is_left_is_what_is_neither_spent_nor_held() -> None:
    ledger = TurnLedger()
    asked(ledger, reserved_usd="3")
    ledger.tool_called("look")
    ledger.tool_called("look")
    ledger.subtasks = 4
    limits = Limits(
        model_calls=5, tool_calls=5, seconds=10.0, tokens=200, input_tokens=90, output_tokens=50, usd="4.5",
        subtasks=9, per_tool={"look": 3, "pay": 2},
    )  # fmt: skip
    assert left_of(ledger, limits, 4.0) == BudgetLeft(
        model_calls=4,
        tool_calls=3,
        seconds=6.0,
        tokens=60,
        input_tokens=0,
        output_tokens=10,
        usd="1.5",
        subtasks=5,
        per_tool={"look": 1, "pay": 2},
    )
    assert left_of(ledger, Limits(), 4.0) == BudgetLeft(model_calls=None, tool_calls=None, seconds=None)
