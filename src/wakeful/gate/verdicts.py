"""Many voices, one verdict: the pure policy, the tool's own predicate, hooks. Deny wins, and whatever raises denies."""

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import replace
from typing import Any

from wakeful.contracts.events.tools import ErrorCategory, Said
from wakeful.contracts.policies import ToolPolicy
from wakeful.contracts.tools import ToolError
from wakeful.contracts.verdicts import Verdict, combined
from wakeful.decisions.policy.permissions import confinement_verdict
from wakeful.gate.turn_gate import Consultation, GateParts, Proposal

NOTHING_AGAINST = Verdict("allow", "mode", "the tool is offered in this turn and no rule forbids it", layer="gate")
PREDICATE = "approval predicate"
CONFINEMENT = "confinement"
CALL_GATES = "tool_call_rules"
ACTION_POLICY = "action_policy"
LOCKS = "locks"
BINDING = "binding"
NOBODY_SAID = Consultation()
MAX_REASON_CHARS = 1_000

_CATEGORIES: dict[str, ErrorCategory] = {
    "lock_timeout": "dependency_unavailable",
    "capability_denied": "capability_gap",
    "pre_tool_mediation_rejected": "hook_blocked",
    "pre_tool_mediation_error": "hook_blocked",
    "hook_blocked": "hook_blocked",
    "permission_denied": "permission_denied",
}


def predicate(proposal: Proposal, parts: GateParts) -> Consultation:
    """What the tool itself says about being asked for: `approval=` of `@tool`."""
    if not proposal.tool.may_ask:
        return NOBODY_SAID
    try:
        asks: Any = proposal.tool.asks(parts.proposed(proposal))
    except Exception as raised:
        reason = words(
            f"the approval predicate of {proposal.declaration.name} raised {type(raised).__name__}: {raised}", parts
        )
        return Consultation((Said(by=PREDICATE, decision="deny", reason=reason),))
    if asks is False:
        return NOBODY_SAID
    if asks is True or isinstance(asks, str):
        reason = asks if isinstance(asks, str) else f"{proposal.declaration.name} asks before this call"
        return Consultation((Said(by=PREDICATE, decision="ask", reason=reason),))
    reason = f"the approval predicate of {proposal.declaration.name} returned {asks!r}, not True, False or a reason"
    return Consultation((Said(by=PREDICATE, decision="deny", reason=reason),))


def unconfined(proposal: Proposal, policy: ToolPolicy) -> Consultation:
    """What a command needs because nothing here can hold it: which machine this is, is not in the log."""
    against = confinement_verdict(policy, proposal.declaration.name, proposal.confinement)
    if against is None or against.allowed:
        return NOBODY_SAID
    return Consultation((Said(by=CONFINEMENT, decision=against.decision, reason=against.reason),))


async def word_of(consulted: Awaitable[Consultation], parts: GateParts) -> Consultation:
    """What somebody outside says about a call. Whoever raises has denied, and so has whoever is cancelled by its own
    doing: only the call's own wait may be cancelled."""
    try:
        heard = await consulted
    except Exception as error:
        return raised(error, parts)
    except asyncio.CancelledError as error:
        waiting = asyncio.current_task()
        if waiting is None or waiting.cancelling():
            raise
        return raised(error, parts)
    if not any(said.reason for said in heard.said):
        return heard
    safe = tuple(said.model_copy(update={"reason": words(said.reason, parts)}) for said in heard.said)
    return replace(heard, said=safe)


def raised(error: BaseException, parts: GateParts) -> Consultation:
    """Whoever has a say and raises has denied."""
    reason = words(f"what is asked before a call raised {type(error).__name__}: {error}", parts)
    return Consultation((Said(by="hooks", decision="deny", reason=reason),))


def words(text: str, parts: GateParts) -> str:
    """Words of foreign code for the log and the model: without the runtime's own keys, and not too many."""
    return parts.keys().hide_keys(text)[:MAX_REASON_CHARS]


def not_as_edited() -> Said:
    return Said(by="hooks", decision="deny", reason="a hook would change what a person wrote, and may not")


def only_denies(said: Said) -> Said:
    """A person has answered what is asked; what is denied stays denied."""
    return said if said.decision == "deny" else said.model_copy(update={"decision": "allow", "arguments": None})


def judge_alone(consulted: Consultation) -> Verdict:
    """The verdict of those who were heard, about a call that no policy knows."""
    return combined(tuple(_voice(each) for each in consulted.said))


def locked(holders: Mapping[str, str], seconds: float) -> Consultation:
    """What a call is told whose locks did not become free."""
    held = ", ".join(f"{name} (held by {owner})" for name, owner in sorted(holders.items())) or "its locks"
    return Consultation(
        (Said(by=LOCKS, decision="deny", reason=f"waited {seconds:g} s for {held} and did not get it"),)
    )


def judge(proposal: Proposal, consulted: Consultation, parts: GateParts) -> Verdict:
    """The verdict of everybody."""
    said = tuple(map(_voice, consulted.said))
    if parts.policy is not None:
        try:
            verdict = parts.policy(proposal, said)
        except Exception as raised:
            why = words(f"the policy raised {type(raised).__name__}: {raised}", parts)
            return Verdict("deny", "rule", why, layer="policy")
    elif said:
        verdict = combined(said)
    else:
        return NOTHING_AGAINST
    return NOTHING_AGAINST if verdict.decision == "allow" and not verdict.rule_refs else verdict


def _voice(said: Said) -> Verdict:
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


def refusal(tool: str, verdict: Verdict) -> tuple[ToolError, ErrorCategory]:
    """A denied call, in words for the model."""
    kind = "lock_timeout" if verdict.layer == "locks" else verdict.error_type
    error = ToolError(
        kind=kind,
        message=f"{tool} was not run: {verdict.reason}",
        details={"layer": verdict.layer, **({"rules": list(verdict.rule_refs)} if verdict.rule_refs else {})},
        recovery_hint="Try again later." if kind == "lock_timeout" else "Do without it, or ask the person in charge.",
        retryable=kind == "lock_timeout",
    )
    return error, _CATEGORIES.get(kind, "policy_blocked")
