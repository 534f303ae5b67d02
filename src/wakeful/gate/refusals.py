"""Calls that are not run: the facts they begin and end with, and the words for the model."""

from collections.abc import Sequence

from wakeful.contracts.events import AnyEvent, PermissionEvaluated, ToolFailed
from wakeful.contracts.events.tools import ErrorCategory
from wakeful.contracts.tools import FailedStatus, ToolError
from wakeful.contracts.verdicts import Verdict
from wakeful.gate import verdicts
from wakeful.gate.call_at_gate import Admission, CallAtGate
from wakeful.gate.call_facts import ended, opening, permission, started
from wakeful.gate.outcomes import ONE_BEFORE, failed
from wakeful.gate.turn_gate import GateParts

_CATEGORY_OF_ERROR: dict[str, ErrorCategory] = {
    "tool_not_found": "unknown_tool",
    "invalid_arguments": "invalid_arguments",
    "capability_denied": "capability_gap",
    "lock_timeout": "dependency_unavailable",
}
_CATEGORY_OF_DENY: dict[str, ErrorCategory] = {
    "lock_timeout": "dependency_unavailable",
    "capability_denied": "capability_gap",
    "pre_tool_mediation_rejected": "hook_blocked",
    "pre_tool_mediation_error": "hook_blocked",
    "hook_blocked": "hook_blocked",
    "permission_denied": "permission_denied",
}


def failure(at: CallAtGate, parts: GateParts) -> ToolFailed:
    """The end of a call that cannot be made."""
    assert at.error is not None
    return failed(
        at.record,
        at.error,
        now=at.record.taken_up_at if at.record.approval_id is None else parts.now(),
        status="invalid",
        category=_CATEGORY_OF_ERROR.get(at.error.kind, "schema_validation_failed"),
        effects="none",
    )


def unfit(at: CallAtGate, parts: GateParts, forbidden: Verdict | None, outcome: Sequence[AnyEvent] = ()) -> Admission:
    """A call that cannot be made. What a mediator said of it stands in the place of what is wrong with it.

    `forbidden` is the owner's rule for which the tool is not there: the model is told what anybody is told who calls a
    tool that is not there, and the log says why it is not.
    """
    heard, begins = at.heard, started(at, "unavailable")
    if not heard.said and forbidden is None:
        return Admission([*heard.events, begins, failure(at, parts)])
    if not heard.said:
        assert forbidden is not None
        verdict = PermissionEvaluated(
            decision="deny",
            decision_source=forbidden.source,
            decision_reason=forbidden.reason,
            rule_refs=forbidden.rule_refs,
            layer=forbidden.layer,
            destructive=at.declaration.is_destructive,
        )
        outcome = [failure(at, parts)]
    else:
        at.verdict = verdicts.judge_alone(heard)
        verdict = PermissionEvaluated(
            decision=at.verdict.decision,
            decision_source=at.verdict.source,
            decision_reason=at.verdict.reason,
            layer=at.verdict.layer,
            said=heard.said,
        )
        if at.verdict.decision == "deny":
            outcome = [_denial(at, parts)]
    return Admission([*heard.events, verdict, begins, *ended(outcome, heard)], permission_at=len(heard.events))


def denied(at: CallAtGate, parts: GateParts) -> Admission:
    """The verdict, the call's beginning unless it has begun to wait before, and its end."""
    heard, outcome = at.heard, [_denial(at, parts)]
    if at.call.pending is not None:
        return Admission([*heard.events, permission(at, at.verdict, heard), *ended(outcome, heard, opened=1)])
    return Admission([*opening(at, "denied"), *ended(outcome, heard)])


def nobody_to_ask(at: CallAtGate, parts: GateParts) -> Admission:
    """A question in a run in which nobody could ever answer it."""
    error = ToolError(
        kind="nobody_to_ask",
        message="there is nobody to ask in this run",
        recovery_hint="Decide yourself with what you know, and say in your answer what you assumed.",
    )
    at.record.permission_ref = ONE_BEFORE
    outcome = failed(at.record, error, now=parts.now(), status="failed", category="setup_required", effects="none")
    return Admission([*opening(at, "allowed"), outcome])


def _denial(at: CallAtGate, parts: GateParts) -> ToolFailed:
    verdict = at.verdict
    kind = "lock_timeout" if verdict.layer == "locks" else verdict.error_type
    error = ToolError(
        kind=kind,
        message=f"{at.tool_name} was not run: {verdict.reason}",
        details={"layer": verdict.layer, **({"rules": list(verdict.rule_refs)} if verdict.rule_refs else {})},
        recovery_hint="Try again later." if kind == "lock_timeout" else "Do without it, or ask the person in charge.",
        retryable=kind == "lock_timeout",
    )
    status: FailedStatus = "timed_out" if kind == "lock_timeout" else "denied"
    category = _CATEGORY_OF_DENY.get(kind, "policy_blocked")
    return failed(at.record, error, now=parts.now(), status=status, category=category, effects="none")
