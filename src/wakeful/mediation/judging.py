"""Many voices, one verdict: the pure policy, the tool's own predicate, hooks. Deny wins, and whatever raises denies."""

from typing import Any

from wakeful.contracts.events.tools import ErrorCategory, Said
from wakeful.contracts.tools import ToolError
from wakeful.contracts.verdicts import DecisionSource, Verdict, combined
from wakeful.mediation.gate import Consulted, GateParts, Proposal

NOTHING_AGAINST = Verdict("allow", "mode", "the tool is offered in this turn and no rule forbids it", layer="gate")
PREDICATE = "approval predicate"
NOBODY_SAID = Consulted()

_CATEGORIES: dict[str, ErrorCategory] = {
    "lock_timeout": "dependency_unavailable",
    "capability_denied": "capability_gap",
    "pre_tool_mediation_rejected": "hook_blocked",
    "pre_tool_mediation_error": "hook_blocked",
    "hook_blocked": "hook_blocked",
    "permission_denied": "permission_denied",
}


def predicate(proposal: Proposal, parts: GateParts) -> Consulted:
    """What the tool itself says about being asked for: `approval=` of `@tool`."""
    if not proposal.tool.may_ask:
        return NOBODY_SAID
    try:
        asks: Any = proposal.tool.asks(parts.proposed(proposal))
    except Exception as raised:
        reason = f"the approval predicate of {proposal.declaration.name} raised {type(raised).__name__}: {raised}"
        return Consulted((Said(by=PREDICATE, decision="deny", reason=reason),))
    if asks is False or asks is None:
        return NOBODY_SAID
    if asks is True or isinstance(asks, str):
        reason = asks if isinstance(asks, str) else f"{proposal.declaration.name} asks before this call"
        return Consulted((Said(by=PREDICATE, decision="ask", reason=reason),))
    reason = f"the approval predicate of {proposal.declaration.name} returned {asks!r}, not True, False or a reason"
    return Consulted((Said(by=PREDICATE, decision="deny", reason=reason),))


def judge(proposal: Proposal, consulted: Consulted, parts: GateParts) -> Verdict:
    """The verdict of everybody."""
    verdicts = []
    if parts.policy is not None:
        try:
            found = parts.policy(proposal)
        except Exception as raised:
            found = Verdict("deny", "rule", f"the policy raised {type(raised).__name__}: {raised}", layer="policy")
        if found is not None:
            verdicts.append(found)
    for said in consulted.said:
        source: DecisionSource = "rule" if said.by == PREDICATE else "hook"
        error_type = said.error_type or ("permission_denied" if said.by == PREDICATE else "hook_blocked")
        layer = "predicate" if said.by == PREDICATE else "hooks"
        verdicts.append(Verdict(said.decision, source, said.reason, layer=layer, error_type=error_type))
    if not verdicts:
        return NOTHING_AGAINST
    verdict = combined(verdicts)
    return NOTHING_AGAINST if verdict.decision == "allow" and not verdict.rule_refs else verdict


def refusal(proposal: Proposal, verdict: Verdict) -> tuple[ToolError, ErrorCategory]:
    """A denied call, in words for the model."""
    kind = "lock_timeout" if verdict.layer == "locks" else verdict.error_type
    error = ToolError(
        kind=kind,
        message=f"{proposal.declaration.name} was not run: {verdict.reason}",
        details={"layer": verdict.layer, **({"rules": list(verdict.rule_refs)} if verdict.rule_refs else {})},
        recovery_hint="Try again later." if kind == "lock_timeout" else "Do without it, or ask the person in charge.",
        retryable=kind == "lock_timeout",
    )
    return error, _CATEGORIES.get(kind, "policy_blocked")
