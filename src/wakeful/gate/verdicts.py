"""Many voices, one verdict: the pure policy, the tool's own predicate, hooks. Deny wins, and whatever raises denies."""

from collections.abc import Mapping
from typing import Any

from wakeful.contracts.events.tools import Opinion
from wakeful.contracts.policies import ToolPolicy
from wakeful.contracts.verdicts import Verdict, combined
from wakeful.decisions.policy.permissions import confinement_verdict
from wakeful.gate.call_at_gate import NOBODY_SAID, CallAtGate, Consultation
from wakeful.gate.turn_gate import GateParts

NOTHING_AGAINST = Verdict("allow", "mode", "the tool is offered in this turn and no rule forbids it", layer="gate")
PREDICATE = "approval predicate"
CONFINEMENT = "confinement"
CALL_GATES = "tool_call_rules"
ACTION_POLICY = "action_policy"
LOCKS = "locks"
BINDING = "binding"


def predicate(at: CallAtGate, parts: GateParts) -> Consultation:
    """What the tool itself says about being asked for: `approval=` of `@tool`."""
    if not at.tool.may_ask:
        return NOBODY_SAID
    try:
        asks: Any = at.tool.asks(parts.proposed(at))
    except Exception as raised:
        reason = parts.safe_words(
            f"the approval predicate of {at.declaration.name} raised {type(raised).__name__}: {raised}"
        )
        return Consultation((Opinion(by=PREDICATE, decision="deny", reason=reason),))
    if asks is False:
        return NOBODY_SAID
    if asks is True or isinstance(asks, str):
        reason = asks if isinstance(asks, str) else f"{at.declaration.name} asks before this call"
        return Consultation((Opinion(by=PREDICATE, decision="ask", reason=reason),))
    reason = f"the approval predicate of {at.declaration.name} returned {asks!r}, not True, False or a reason"
    return Consultation((Opinion(by=PREDICATE, decision="deny", reason=reason),))


def unconfined(at: CallAtGate, policy: ToolPolicy) -> Consultation:
    """What a command needs because nothing here can hold it: which machine this is, is not in the log."""
    against = confinement_verdict(policy, at.declaration.name, at.confinement)
    if against is None or against.allowed:
        return NOBODY_SAID
    return Consultation((Opinion(by=CONFINEMENT, decision=against.decision, reason=against.reason),))


def judge_alone(heard: Consultation) -> Verdict:
    """The verdict of those who were heard, about a call that no policy knows."""
    return combined(tuple(map(_voice, heard.said)))


def locked(holders: Mapping[str, str], seconds: float) -> Consultation:
    """What a call is told whose locks did not become free."""
    held = ", ".join(f"{name} (held by {owner})" for name, owner in sorted(holders.items())) or "its locks"
    return Consultation(
        (Opinion(by=LOCKS, decision="deny", reason=f"waited {seconds:g} s for {held} and did not get it"),)
    )


def judge(at: CallAtGate, heard: tuple[Opinion, ...], parts: GateParts) -> Verdict:
    """The verdict of everybody."""
    said = tuple(map(_voice, heard))
    if parts.policy is not None:
        try:
            verdict = parts.policy(at, said)
        except Exception as raised:
            why = parts.safe_words(f"the policy raised {type(raised).__name__}: {raised}")
            return Verdict("deny", "rule", why, layer="policy")
    elif said:
        verdict = combined(said)
    else:
        return NOTHING_AGAINST
    return NOTHING_AGAINST if verdict.decision == "allow" and not verdict.rule_refs else verdict


def _voice(said: Opinion) -> Verdict:
    """What code outside the policy said, as a verdict among others."""
    if said.by == PREDICATE:
        return Verdict(said.decision, "rule", said.reason, ("tool:approval",), "person")
    if said.by == CONFINEMENT:
        return Verdict(said.decision, "sandbox", said.reason, layer="confinement", error_type="sandbox_unavailable")
    if said.by == CALL_GATES:
        return Verdict(said.decision, "rule", said.reason, layer="call_gates", error_type=said.error_type or "")
    if said.by == ACTION_POLICY:
        return Verdict(said.decision, "host_policy", said.reason, layer="action", error_type=said.error_type or "")
    if said.by in (LOCKS, BINDING):
        return Verdict(said.decision, "mode", said.reason, layer=said.by)
    return Verdict(said.decision, "hook", said.reason, layer="hooks", error_type=said.error_type or "hook_blocked")
