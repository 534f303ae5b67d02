"""What a turn cost, from facts made by hand: every level, every attempt, and what nobody knows."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.runs.event_samples import NOON, THREAD, TURN, completed, model_failed, requested, tool_started, turn_completed
from kit.runs.event_samples import turn_started as started
from wakeful.contracts.budgets import Limits
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.events import CostEstimated, CostRecorded, ModelFailed, PlanningStarted, SubagentStarted
from wakeful.contracts.models import TokenUsage
from wakeful.views.cost import CostLine, CostSummary, cost_report, cost_summary, decimal_text
from wakeful.views.model_calls import PriceListUsed, call_groups, model_calls

LIST = "genai-prices 0.2.1"
USED = TokenUsage(input_tokens=100, output_tokens=20, total_tokens=120, cached_input_tokens=40, reasoning_tokens=5)


class Log:
    """A turn's facts, written one after another."""

    def __init__(self) -> None:
        self.facts: list[StoredFact] = []
        self.at = NOON

    def put(self, event: Any, *, depth: int = 0, level: str | None = None, turn: str = TURN) -> None:
        self.at += 1_000
        fact = Fact(event, self.at, THREAD, turn, 1, None, depth=depth, level=level)
        self.facts.append(StoredFact("agent_1", len(self.facts) + 1, fact))

    def call(
        self,
        model: str = "a:m",
        cost: str | None = "0.1",
        usage: TokenUsage | None = USED,
        *,
        depth: int = 0,
        level: str | None = None,
    ) -> None:
        """A request that was answered."""
        where: dict[str, Any] = {"depth": depth, "level": level}
        self.put(requested().model_copy(update={"model_ref": model}), **where)
        self.put(completed(usage).model_copy(update={"model_ref": model}), **where)
        if cost is not None:
            self.put(paid(model, cost), **where)

    def summary(self) -> CostSummary:
        return cost_summary(TURN, self.facts)


def paid(model: str, cost: str, **more: Any) -> CostRecorded:
    return CostRecorded(model_ref=model, amount=cost, price_list=LIST, price_date="2026-10-26", **more)


def lost(usage: TokenUsage | None = None, **changed: Any) -> ModelFailed:
    return model_failed(usage).model_copy(update={"model_ref": "a:m", **changed})


def added(lines: dict[str, CostLine]) -> dict[str, Any]:
    """The sum of lines, field by field."""
    total: dict[str, Any] = dict.fromkeys(CostLine.model_fields, 0) | {"cost": Decimal(0)}
    for each in lines.values():
        for name, value in each.model_dump().items():
            total[name] += Decimal(value) if isinstance(value, str) else value
    return total


def plain(line: CostLine) -> dict[str, Any]:
    return line.model_dump() | {"cost": Decimal(line.cost), "cut_off": Decimal(line.cut_off)}


def a_tree() -> Log:
    """The root, its planner, a summary, a planned workflow, a child with a retry, and a grandchild."""
    log = Log()
    log.put(started().model_copy(update={"limits": Limits(usd="2.50")}))
    log.put(PlanningStarted(level_id="plan", model_ref="p:m", task=UserItem(parts=(Text("go"),))))
    log.call("p:m", "0.01", level="plan")
    log.call("a:m", "0.1")
    child = SubagentStarted(level_id="c1", tool="run_subtask", title="one", depth=1, task=UserItem(parts=(Text("x"),)))
    log.put(child)
    log.put(requested().model_copy(update={"model_ref": "a:m"}), depth=1, level="c1")
    log.put(lost(TokenUsage(input_tokens=50, total_tokens=50), failure_kind="stream_interrupted"), depth=1, level="c1")
    log.put(paid("a:m", "0.05", lost=True), depth=1, level="c1")
    log.call("b:m", "0.2", depth=1, level="c1")
    log.put(child.model_copy(update={"level_id": "c2", "depth": 2}), depth=1, level="c1")
    log.call("a:m", "0.3", depth=2, level="c2")
    log.call("s:m", "0.001", level="compaction:1")
    log.call("w:m", "0.002", level="workflow")
    log.put(tool_started())
    log.put(turn_completed().model_copy(update={"tool_calls": 3}))
    return log


@pytest.mark.spec("LOOP-COST-04", "LOOP-COST-05")
def test_a_summary_has_totals_by_model_and_by_depth_and_every_call_of_the_tree_is_in_them() -> None:
    summary = a_tree().summary()
    one = {"input_tokens": 100, "output_tokens": 20, "cached_input_tokens": 40, "reasoning_tokens": 5}
    assert summary == CostSummary(
        thread_id=THREAD,
        turn_id=TURN,
        currency="USD",
        total=CostLine(
            calls=7,
            input_tokens=650,
            output_tokens=120,
            cached_input_tokens=240,
            reasoning_tokens=30,
            cost="0.663",
        ),
        by_model={
            "p:m": CostLine(calls=1, cost="0.01", **one),
            "a:m": CostLine(
                calls=3,
                input_tokens=250,
                output_tokens=40,
                cached_input_tokens=80,
                reasoning_tokens=10,
                cost="0.45",
            ),
            "b:m": CostLine(calls=1, cost="0.2", **one),
            "s:m": CostLine(calls=1, cost="0.001", **one),
            "w:m": CostLine(calls=1, cost="0.002", **one),
        },
        by_depth={
            "0": CostLine(
                calls=4,
                input_tokens=400,
                output_tokens=80,
                cached_input_tokens=160,
                reasoning_tokens=20,
                cost="0.113",
            ),
            "1": CostLine(
                calls=2,
                input_tokens=150,
                output_tokens=20,
                cached_input_tokens=40,
                reasoning_tokens=5,
                cost="0.25",
            ),
            "2": CostLine(calls=1, cost="0.3", **one),
        },
        tool_calls=3,
        subtasks=2,
        duration_ms=80,
        max_cost_usd="2.50",
    )
    assert plain(summary.total) == added(summary.by_model) == added(summary.by_depth)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a:m", "b:m", "c:m"]),
            st.integers(0, 3),
            st.none() | st.decimals(0, 100, places=9).map(lambda amount: f"{amount:f}"),
            st.none() | st.builds(TokenUsage, input_tokens=st.integers(0, 9), output_tokens=st.integers(0, 9)),
        ),
        max_size=20,
    )
)
def test_the_total_is_the_sum_of_its_parts_whatever_happened(calls: list[Any]) -> None:
    log = Log()
    for place, (model, depth, cost, usage) in enumerate(calls):
        log.call(model, cost, usage, depth=depth, level=f"level{place}" if depth else None)
    summary = log.summary()
    assert plain(summary.total) == added(summary.by_model) == added(summary.by_depth)
    assert Decimal(summary.total.cost) == sum(Decimal(cost) for _, _, cost, _ in calls if cost is not None)
    assert summary.cost_complete is all(cost is not None for _, _, cost, _ in calls)
    assert summary.usage_complete is all(usage is not None for *_, usage in calls)


@pytest.mark.spec("LOOP-COST-07")
def test_a_call_without_a_price_is_counted_as_that_and_tokens_that_nobody_reported_count_as_none() -> None:
    log = Log()
    log.call("a:m", "0.1")
    assert (log.summary().cost_complete, log.summary().usage_complete) == (True, True)
    log.call("mine:m", None)
    summary = log.summary()
    assert (summary.total.unpriced_calls, summary.cost_complete, summary.usage_complete) == (1, False, True)
    assert summary.by_model["mine:m"] == CostLine(
        calls=1, unpriced_calls=1, input_tokens=100, output_tokens=20, cached_input_tokens=40, reasoning_tokens=5
    )
    log.call("a:m", None, None)
    summary = log.summary()
    assert summary.usage_complete is False
    assert (summary.by_model["a:m"].calls, summary.by_model["a:m"].input_tokens) == (2, 100)


@pytest.mark.spec("LOOP-COST-08")
def test_money_is_added_as_decimals_and_shown_as_text() -> None:
    log = Log()
    for _ in range(10):
        log.call("a:m", "0.1")
    log.call("b:m", "0.000000000000000001")
    summary = log.summary()
    assert (summary.currency, summary.total.cost) == ("USD", "1.000000000000000001")
    assert summary.by_model["a:m"].cost == "1"
    assert 0.1 + 0.1 + 0.1 != 0.3, "in binary such a sum is another"
    assert [decimal_text(Decimal(text)) for text in ("0", "0.00", "100", "1E+3", "1E-7", "0.50")] == [
        "0", "0", "100", "1000", "0.0000001", "0.5",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("failure", "reported"),
    [
        ({"failure_kind": "rate_limited", "stage": "headers", "status": 429}, True),
        ({"failure_kind": "server_error", "stage": "headers", "status": 503}, True),
        ({"failure_kind": "connection", "stage": "connect"}, True),
        ({"failure_kind": "rate_limited", "stage": "body"}, False),
        ({"failure_kind": "connection", "stage": "body"}, False),
        ({"failure_kind": "timeout", "stage": "headers"}, False),
        ({"failure_kind": "unknown", "stage": "crash"}, False),
        ({"failure_kind": "cancelled", "stage": "body"}, False),
    ],
)
def test_a_lost_attempt_is_a_call_and_what_was_refused_used_nothing(failure: dict[str, Any], reported: bool) -> None:
    log = Log()
    log.put(CostEstimated(model_ref="a:m", amount="1", price_list=LIST, input_tokens=1, output_tokens=1))
    log.put(requested().model_copy(update={"model_ref": "a:m"}))
    log.put(lost(**failure))
    log.call("a:m", "0.1")
    summary = log.summary()
    assert (summary.total.calls, summary.total.cost) == (2, "0.1")
    assert (summary.usage_complete, summary.cost_complete) == (reported, reported)


def test_what_a_model_of_unknown_price_refused_is_unpriced_all_the_same() -> None:
    log = Log()
    log.put(requested().model_copy(update={"model_ref": "a:m"}))
    log.put(lost(failure_kind="rate_limited"))
    assert log.summary().total == CostLine(calls=1, unpriced_calls=1)


def test_what_was_turned_down_before_it_was_sent_is_no_call_and_what_is_under_way_is_one() -> None:
    log = Log()
    log.put(lost(failure_kind="unsupported_transport"))
    assert log.summary().total == CostLine()
    log.put(requested().model_copy(update={"model_ref": "a:m"}))
    summary = log.summary()
    assert (summary.total.calls, summary.cost_complete, summary.usage_complete) == (1, False, False)


def test_facts_of_other_turns_are_passed_over() -> None:
    log = Log()
    log.call("a:m", "0.1")
    log.put(requested(), turn="turn_2")
    assert log.summary().total.calls == 1
    assert cost_summary("turn_3", log.facts).total == CostLine()


def test_a_report_over_turns_names_the_lists_that_its_prices_are_from() -> None:
    log = Log()
    log.call("a:m", "0.1")
    log.call("b:m", None)
    groups = call_groups(model_calls(log.facts))
    report = cost_report([(str(group.depth), group) for group in groups], "depth", 1)
    assert (report.by, report.turns, report.cost_complete) == ("depth", 1, False)
    assert report.groups == {"0": report.total}
    assert report.price_lists == (PriceListUsed(name=LIST, date="2026-10-26"),)
