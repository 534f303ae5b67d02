"""Which models a turn may ask: the pure decision, on what is known of each."""

from decimal import Decimal
from typing import Any

import pytest

from kit.runs.event_samples import model_failed
from wakeful.contracts.content import Image, Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.events import (
    ExcludedModel,
    LimitState,
    ModelCandidate,
    RoutingCandidatesResolved,
    RoutingDecided,
    RoutingNotPossible,
    RoutingSingleCandidate,
)
from wakeful.contracts.events.routing import ExclusionReason
from wakeful.decisions.routing import (
    KnownLimit,
    ModelFacts,
    MoneyLeft,
    Requirements,
    Route,
    moved_limits,
    requirements,
    route,
    same_candidates,
)

NOW = 1_800_000_000_000
ALL = frozenset({"tools", "vision", "structured_output"})
FIRST = ModelFacts("one:a", ALL, 200_000, True, Decimal("0.01"))
SECOND = ModelFacts("two:b", ALL, 100_000, True, Decimal("0.001"))
THIRD = ModelFacts("three:c", ALL)
NO_LIMIT = MoneyLeft()


def decide(*models: ModelFacts, needs: Requirements | None = None, money: MoneyLeft = NO_LIMIT, **more: Any) -> Route:
    return route("route_1", models, needs or Requirements(), money, NOW, **more)


def left_out(decided: Route) -> dict[str, str]:
    resolved = decided.facts[0]
    assert isinstance(resolved, RoutingCandidatesResolved)
    return {each.model_ref: each.reason for each in resolved.excluded}


def until(state: Any, ms: int) -> KnownLimit:
    return KnownLimit(state, NOW + ms)


@pytest.mark.spec("STD-ROUTE-02", "STD-ROUTE-03", "STD-ROUTE-04", "STD-ROUTE-05")
def test_the_facts_show_what_was_asked_for_what_is_needed_who_can_be_asked_and_who_is() -> None:
    blind = SECOND._replace(capabilities=frozenset({"tools"}))
    decided = decide(FIRST, blind, THIRD, needs=Requirements(("vision",)))
    resolved, decision = decided.facts
    assert resolved == RoutingCandidatesResolved(
        routing_id="route_1",
        requested_provider="one",
        requested_model="a",
        required_capabilities=("vision",),
        candidates=(
            ModelCandidate(
                model_ref="one:a",
                capabilities=("tools", "vision", "structured_output"),
                context_window=200_000,
                price_known=True,
            ),
            ModelCandidate(
                model_ref="three:c", capabilities=("tools", "vision", "structured_output"), price_known=False
            ),
        ),
        excluded=(ExcludedModel(model_ref="two:b", reason="capability_gap", detail="it has no vision"),),
    )
    assert isinstance(decision, RoutingDecided)
    assert (decision.requested_provider, decision.requested_model) == ("one", "a")
    assert decision.required_capabilities == ("vision",)
    assert (decision.selected_model_ref, decision.candidate_count) == ("one:a", 2)
    assert decided.places == (0, 2)


@pytest.mark.spec("STD-ROUTE-06", "STD-ROUTE-07", "STD-ROUTE-08")
def test_the_decision_shows_its_chain_the_limits_and_its_reason() -> None:
    low = FIRST._replace(limit=until("low", 5_000))
    (_, decision) = decide(low, SECOND, money=MoneyLeft(Decimal("2.50"), Decimal("0.25"))).facts
    assert isinstance(decision, RoutingDecided)
    assert decision.fallback_chain == ("two:b",)
    assert decision.limit_state == LimitState(budget_limit="2.50", budget_spent="0.25", quota="low")
    assert (decision.mode, decision.decision_source) == ("explicit", "agent_config")
    assert decision.decision_reason == "it is the model that was asked for"

    limited = FIRST._replace(limit=until("limited", 5_000))
    (_, _, decision) = decide(limited).facts
    assert isinstance(decision, RoutingDecided)
    assert decision.limit_state == LimitState(rate_limit="limited", retry_after_ms=5_000)
    assert "over its rate limit, and no other can be asked" in decision.decision_reason
    barred = FIRST._replace(barred="no_credential", detail="ONE_KEY is not set")
    (_, decision) = decide(barred, SECOND, THIRD).facts
    assert isinstance(decision, RoutingDecided)
    assert (decision.mode, decision.decision_source) == ("fallback", "runtime")
    assert decision.decision_reason == (
        "it is the first of the chain that can be asked in the place of one:a; "
        "left out: one:a: no_credential (ONE_KEY is not set)"
    )


@pytest.mark.parametrize(
    ("model", "needs", "money", "reason"),
    [
        (FIRST._replace(capabilities=frozenset()), Requirements(("tools",)), NO_LIMIT, "capability_gap"),
        (FIRST._replace(context_window=10), Requirements(prompt_tokens=11), NO_LIMIT, "capability_gap"),
        (FIRST._replace(barred="no_credential"), Requirements(), NO_LIMIT, "no_credential"),
        (FIRST._replace(barred="policy_denied"), Requirements(), NO_LIMIT, "policy_denied"),
        (FIRST._replace(barred="unsupported_transport"), Requirements(), NO_LIMIT, "unsupported_transport"),
        (FIRST._replace(barred="offline"), Requirements(), NO_LIMIT, "offline"),
        (FIRST._replace(limit=until("blocked", 5)), Requirements(), NO_LIMIT, "quota_blocked"),
        (FIRST._replace(limit=until("limited", 5)), Requirements(), NO_LIMIT, "rate_limited"),
        (FIRST._replace(prompt_cost=Decimal("1.01")), Requirements(), MoneyLeft(Decimal(1)), "over_budget"),
        (FIRST, Requirements(), MoneyLeft(Decimal(1), Decimal(1)), "over_budget"),
        (FIRST._replace(price_known=False), Requirements(), MoneyLeft(Decimal(1)), "unpriced"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_model_that_cannot_be_asked_is_left_out_with_its_reason(
    model: ModelFacts, needs: Requirements, money: MoneyLeft, reason: ExclusionReason
) -> None:
    other = ModelFacts("two:b", price_known=True)
    if money.spent:
        assert left_out(decide(model, needs=needs, money=money)) == {"one:a": reason}
        return
    decided = decide(model, other, needs=needs, money=money)
    assert left_out(decided) == {"one:a": reason} and decided.places == (1,)
    # The inversion: without what speaks against it, it is asked.
    assert decide(FIRST, other, needs=Requirements(), money=NO_LIMIT).places == (0, 1)


def test_a_model_at_the_edge_of_what_it_can_do_is_asked() -> None:
    assert decide(FIRST._replace(context_window=10), needs=Requirements(prompt_tokens=10)).places == (0,)
    assert decide(FIRST._replace(prompt_cost=Decimal(1)), money=MoneyLeft(Decimal(1))).places == (0,)
    assert decide(FIRST._replace(limit=until("blocked", 0))).places == (0,), "its time is over"
    unpriced = FIRST._replace(price_known=False)
    assert decide(unpriced, money=MoneyLeft(Decimal(1), unpriced_allowed=True)).places == (0,)


@pytest.mark.spec("STD-ROUTE-12")
def test_one_candidate_is_a_normal_path() -> None:
    decided = decide(FIRST)
    resolved, single, decision = decided.facts
    assert isinstance(resolved, RoutingCandidatesResolved)
    assert isinstance(single, RoutingSingleCandidate) and isinstance(decision, RoutingDecided)
    assert single.model_dump() == decision.model_dump()
    assert (decision.mode, decision.candidate_count, decision.fallback_chain) == ("single_candidate", 1, ())
    assert [fact.kind for fact in decide(FIRST, SECOND).facts] == ["routing.candidates.resolved", "routing.decided"]


def test_without_a_candidate_nothing_is_decided_and_every_reason_is_named() -> None:
    elsewhere = SECOND._replace(barred="policy_denied", detail="by its owner")
    decided = decide(FIRST._replace(barred="offline", detail="no network"), elsewhere, needs=Requirements(("tools",)))
    assert decided.places == ()
    resolved, refused = decided.facts
    assert isinstance(resolved, RoutingCandidatesResolved) and resolved.candidates == ()
    assert isinstance(refused, RoutingNotPossible)
    assert refused.required_capabilities == ("tools",) and refused.excluded == resolved.excluded
    assert refused.decision_reason == (
        "no model can be asked: one:a: offline (no network); two:b: policy_denied (by its owner)"
    )


def test_who_is_over_a_rate_limit_waits_only_when_nobody_else_can_be_asked() -> None:
    slow, slower = FIRST._replace(limit=until("limited", 9_000)), SECOND._replace(limit=until("limited", 2_000))
    assert decide(slow, slower, THIRD).places == (2,)
    assert left_out(decide(slow, slower, THIRD)) == {"one:a": "rate_limited", "two:b": "rate_limited"}
    assert decide(slow, slower).places == (1, 0), "who is free first is asked first"
    for_hours = FIRST._replace(limit=until("limited", 5 * 3_600_000))
    blocked = FIRST._replace(limit=until("blocked", 9_000))
    assert decide(for_hours).places == decide(blocked).places == (0,), "the request waits, if it has to"


@pytest.mark.spec("STD-ROUTE-16")
def test_a_requirement_is_lowered_only_with_the_callers_word_and_then_the_gap_is_named() -> None:
    blind = FIRST._replace(capabilities=frozenset({"tools"}))
    needs = Requirements(("tools", "vision"))
    assert decide(blind, SECOND, needs=needs).places == (1,), "also no later candidate lacks what is needed"
    assert decide(SECOND, blind, needs=needs).places == (0,)
    assert decide(blind, needs=needs).places == ()
    accepted = decide(SECOND, blind, needs=needs._replace(accepted_gap=frozenset({"vision"})))
    (_, decision) = accepted.facts
    assert isinstance(decision, RoutingDecided)
    assert (decision.capability_gap, decision.requires_user_override) == (("vision",), True)
    (_, decision) = decide(SECOND, FIRST, needs=needs).facts
    assert isinstance(decision, RoutingDecided)
    assert (decision.capability_gap, decision.requires_user_override) == ((), False)
    assert decide(blind, needs=needs._replace(accepted_gap=frozenset({"tools"}))).places == (), "another gap is not"


def test_a_model_of_which_nobody_has_said_what_it_can_do_is_asked_for_whatever_is_needed() -> None:
    decided = decide(ModelFacts("mine:m"), needs=Requirements(("tools", "vision"), prompt_tokens=1_000_000))
    assert decided.places == (0,)
    resolved = decided.facts[0]
    assert isinstance(resolved, RoutingCandidatesResolved)
    (candidate,) = resolved.candidates
    assert (candidate.declared, candidate.capabilities) == (False, ())


def test_two_models_with_one_name_are_two_candidates() -> None:
    assert decide(FIRST, FIRST).places == (0, 1)


def test_what_is_needed_follows_from_the_prompt_the_tools_and_the_callers_word() -> None:
    words = UserItem(parts=(Text("look"),))
    picture = UserItem(parts=(Text("look"), Image(url="https://example.org/a.png")))
    assert requirements([words], ["read_file", "run_subtask"]) == ()
    assert requirements([words, picture]) == ("vision",)
    assert requirements([picture], ["build_workflow"]) == ("tools", "vision")
    assert requirements([words], ["finish_subtask"]) == ("tools",)
    assert requirements([words], (), ["structured_output", "tools"]) == ("tools", "structured_output")


@pytest.mark.parametrize(
    ("source", "mode"), [("user", "explicit"), ("agent_config", "explicit"), ("runtime", "default")]
)
def test_who_named_the_model_is_in_the_decision(source: Any, mode: str) -> None:
    (_, decision) = decide(FIRST, SECOND, source=source).facts
    assert isinstance(decision, RoutingDecided)
    assert (decision.decision_source, decision.mode) == (source, mode)


def test_a_move_to_the_next_candidate_says_what_was_spent_and_what_the_lost_one_said() -> None:
    money = MoneyLeft(Decimal("2.50"), Decimal("0.25"))
    slow = model_failed().model_copy(update={"failure_kind": "rate_limited", "retry_after_ms": 700})
    assert moved_limits(slow, money) == LimitState(
        budget_limit="2.50", budget_spent="0.25", rate_limit="limited", retry_after_ms=700
    )
    broke = model_failed().model_copy(update={"failure_kind": "quota_exhausted"})
    assert moved_limits(broke, NO_LIMIT) == LimitState(quota="blocked")


def test_a_decision_stands_while_only_limits_have_changed() -> None:
    def resolved(*models: ModelFacts, needs: Requirements | None = None) -> RoutingCandidatesResolved:
        fact = decide(*models, needs=needs).facts[0]
        assert isinstance(fact, RoutingCandidatesResolved)
        return fact

    before = resolved(FIRST._replace(limit=until("limited", 9)), SECOND)
    assert same_candidates(before, resolved(FIRST, SECOND))
    assert not same_candidates(before, resolved(FIRST, SECOND._replace(barred="no_credential")))
    assert not same_candidates(before, resolved(FIRST))
    assert not same_candidates(before, resolved(FIRST, SECOND, needs=Requirements(("tools",))))
