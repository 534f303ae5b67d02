"""Verdicts: the strictest holds, whatever the order, and says why."""

from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.contracts.verdicts import STRICTNESS, Verdict, combined

verdicts = st.builds(
    Verdict,
    decision=st.sampled_from(["allow", "ask", "deny"]),
    source=st.sampled_from(["rule", "mode", "hook", "host_policy", "human", "sandbox"]),
    reason=st.sampled_from(["because", "it is so", "somebody said so"]),
    rule_refs=st.lists(st.sampled_from(["a", "b", "c"]), max_size=2).map(tuple),
    approvers=st.lists(st.sampled_from(["ann", "bob"]), max_size=2, unique=True).map(tuple),
    standing_answer=st.sampled_from(["any", "exact", "none"]),
)


def never_looser(combine: Callable[[Iterable[Verdict]], Verdict], met: list[Verdict]) -> bool:
    """After each further layer, the verdict is at least as strict as before."""
    reached = [STRICTNESS[combine(met[: count + 1]).decision] for count in range(len(met))]
    return reached == sorted(reached)


@given(st.lists(verdicts, min_size=1, max_size=6))
def test_no_sequence_of_layers_loosens_what_was_said(met: list[Verdict]) -> None:
    assert never_looser(combined, met)


@given(st.lists(verdicts, min_size=1, max_size=6))
def test_one_deny_anywhere_denies(met: list[Verdict]) -> None:
    denied = Verdict("deny", "rule", "no")
    for place in range(len(met) + 1):
        assert combined([*met[:place], denied, *met[place:]]).decision == "deny"


@given(st.lists(verdicts, min_size=1, max_size=5), st.randoms())
def test_the_order_of_the_layers_decides_nothing(met: list[Verdict], shuffling: object) -> None:
    mixed = list(met)
    shuffling.shuffle(mixed)  # type: ignore[attr-defined]
    assert combined(mixed).decision == combined(met).decision


def test_a_combination_in_which_the_last_word_wins_is_found_out() -> None:
    """Inversion: the property above fails for a gate that lets a later layer overrule."""
    met = [Verdict("deny", "rule", "no"), Verdict("allow", "hook", "yes")]
    assert never_looser(combined, met)
    assert not never_looser(lambda some: list(some)[-1], met)


def test_all_that_object_alike_give_their_reasons_and_their_rules() -> None:
    met = [
        Verdict("ask", "mode", "its class asks", layer="class"),
        Verdict("allow", "rule", "a rule allows", ("r1",)),
        Verdict("ask", "rule", "a rule asks", ("r2",), "rules", approvers=("ann", "bob")),
        Verdict("ask", "rule", "another asks", ("r3",), "rules", approvers=("bob",), standing_answer="none"),
    ]
    assert combined(met) == Verdict(
        "ask",
        "mode",
        "its class asks; a rule asks; another asks",
        ("r2", "r3"),
        "class",
        approvers=("bob",),
        standing_answer="none",
    )


def test_asks_that_leave_nobody_who_may_answer_are_a_deny() -> None:
    met = [Verdict("ask", "rule", "x", approvers=("ann",)), Verdict("ask", "rule", "y", approvers=("bob",))]
    verdict = combined(met)
    assert (verdict.decision, "ann and bob" in verdict.reason) == ("deny", True)
    assert combined(met[:1]).decision == "ask"


def test_a_call_that_nobody_judged_is_denied() -> None:
    assert combined([]).decision == "deny"


def test_a_decision_that_is_no_decision_is_not_combined() -> None:
    with pytest.raises(KeyError):
        combined([Verdict("alow", "hook", "a slip"), Verdict("allow", "mode", "fine")])  # type: ignore[arg-type]
