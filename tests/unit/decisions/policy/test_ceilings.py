"""A call above its principal's ceiling is told so; one below it meets no objection."""

from wakeful.contracts.principals import CapabilityCeiling
from wakeful.decisions.policy.verdict import ceiling_verdict


def test_a_call_above_the_ceiling_is_told_so() -> None:
    verdict = ceiling_verdict(CapabilityCeiling(allowed=()), "shop/refund", "money.move")
    assert verdict is not None
    assert (verdict.decision, verdict.source, verdict.error_type) == ("deny", "host_policy", "capability_denied")
    assert "'money.move'" in verdict.reason
    assert ceiling_verdict(CapabilityCeiling(allowed=("money.move",)), "shop/refund", "money.move") is None


def test_a_blank_capability_and_a_principal_without_a_ceiling_meet_no_objection() -> None:
    assert ceiling_verdict(CapabilityCeiling(allowed=()), "shop/refund", "  ") is None
    assert ceiling_verdict(None, "shop/refund", "money.move") is None
