"""The facts a call begins with: the verdict, its beginning with its intent, and what was changed about it.

What is not given is not written down: the common verdict is the same object each time.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

from wakeful.contracts.envelope import before
from wakeful.contracts.events import (
    AnyEvent,
    HookCompleted,
    PermissionEvaluated,
    ToolArgs,
    ToolFailed,
    ToolResult,
    ToolStarted,
)
from wakeful.contracts.events.tools import Policy
from wakeful.contracts.values import unchecked
from wakeful.contracts.verdicts import DecisionSource, Verdict
from wakeful.decisions.redaction import redact_parameters, stable_hash
from wakeful.gate.call_at_gate import CallAtGate, Consultation
from wakeful.gate.hook_facts import outcomes_of
from wakeful.gate.outcomes import PREVIOUS_EVENT
from wakeful.gate.verdicts import NOTHING_AGAINST

_tool_started = unchecked(ToolStarted)
_ALLOWED = PermissionEvaluated(decision="allow", decision_reason=NOTHING_AGAINST.reason)
_ALLOWED_DESTRUCTIVE = _ALLOWED.model_copy(update={"destructive": True})


def idempotency_key(turn_id: str, call_id: str) -> str:
    """One key for one call, over retries, restarts and workers. All of one length: none is a prefix of another."""
    return "wk-" + hashlib.sha256(f"{turn_id}\n{call_id}".encode()).hexdigest()[:32]


def safe_arguments(at: CallAtGate) -> dict[str, Any]:
    """The arguments as every reader may see them."""
    declaration = at.declaration
    safe: dict[str, Any] = redact_parameters(at.arguments, declaration.input_schema, declaration.sensitive_parameters)
    return safe


def started(at: CallAtGate, policy: Policy, *, dispatched: bool = False) -> ToolStarted:
    """The beginning of a call; with `dispatched`, its intent."""
    call, declaration, safe = at.call, at.declaration, safe_arguments(at)
    return _tool_started(
        tool_name=call.part.name,
        safe_args=safe if call.part.arguments_ref is None else None,
        args_ref=call.part.arguments_ref.digest if call.part.arguments_ref is not None else None,
        args_sha256=stable_hash(safe),
        policy=policy,
        permission_ref=PREVIOUS_EVENT if policy != "unavailable" else None,
        is_read_only=declaration.is_read_only,
        is_concurrency_safe=not declaration.serial,
        is_destructive=declaration.is_destructive,
        interrupt_behavior=declaration.interrupt_behavior,
        batch_id=at.batch_id,
        position=call.position,
        scheduling=at.scheduling,
        dispatched=dispatched,
        effect=declaration.effect,
        idempotency_key=at.idempotency_key,
        timeout_ms=int(declaration.timeout * 1000) if declaration.timeout is not None else None,
    )


def permission(at: CallAtGate, verdict: Verdict, heard: Consultation, **more: Any) -> PermissionEvaluated:
    """The verdict as a fact."""
    if verdict is NOTHING_AGAINST and not heard.said and not more:
        return _ALLOWED_DESTRUCTIVE if at.declaration.is_destructive else _ALLOWED
    fields: dict[str, Any] = {"layer": verdict.layer, **more}
    if verdict.rule_refs:
        fields["rule_refs"] = verdict.rule_refs
    if at.declaration.is_destructive:
        fields["destructive"] = True
    if heard.said:
        fields["said"] = heard.said
    rewritten = [event.updated_input_ref for event in heard.events if isinstance(event, HookCompleted)]
    if any(rewritten):
        fields["updated_input_ref"] = [ref for ref in rewritten if ref][-1]
    return PermissionEvaluated(
        decision=verdict.decision, decision_source=verdict.source, decision_reason=verdict.reason, **fields
    )


def answer_as_verdict(at: CallAtGate, *, is_destructive: bool) -> PermissionEvaluated:
    """What a person said, of a call that ends with it."""
    assert at.answer is not None
    source: DecisionSource = "human" if at.record.approval_status != "timed_out" else "mode"
    return PermissionEvaluated(
        decision="deny" if at.answer.is_refused else "allow",
        decision_source=source,
        decision_reason=at.answer.reason,
        layer="approval",
        approval_action_id=at.answer.action_id,
        destructive=is_destructive,
    )


def opening(at: CallAtGate, policy: Policy, *, dispatched: bool = False, **more: Any) -> list[AnyEvent]:
    """What every call begins with: what hooks said, the verdict, the beginning, and whether it was rewritten."""
    heard = at.heard
    begins, verdict = started(at, policy, dispatched=dispatched), permission(at, at.verdict, heard, **more)
    if not heard.said and not heard.events:
        return [verdict, begins]
    events: list[AnyEvent] = [*heard.events, verdict, begins]
    if heard.events:
        outcomes = outcomes_of(heard.events, lambda index: before(len(events) - 1 - index))
        events[-1] = begins.model_copy(update={"hook_outcomes": outcomes})
    if heard.is_rewritten:
        events.append(ToolArgs(safe_args=safe_arguments(at), changed_by="hook"))
    return events


def edited(at: CallAtGate) -> list[AnyEvent]:
    """Arguments that a person changed, as a fact."""
    if at.answer is None or not at.answer.is_edited:
        return []
    return [ToolArgs(safe_args=safe_arguments(at), changed_by="approver")]


def ended(outcome: Sequence[AnyEvent], heard: Consultation, opened: int = 2) -> list[AnyEvent]:
    """An end that is written together with its beginning refers to what stands before it."""
    if not outcome:
        return []
    *notes, last = outcome
    assert isinstance(last, ToolResult | ToolFailed)
    back = opened + heard.is_rewritten + len(notes)
    outcomes = outcomes_of(heard.events, lambda index: before(len(heard.events) - index + back))
    refs = {"permission_ref": before(back), "hook_outcomes": (*last.hook_outcomes, *outcomes)}
    return [*notes, last.model_copy(update=refs)]
