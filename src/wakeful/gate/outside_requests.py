"""Asking somebody outside about a call: a person whether it may run, a person a question, a client to run it.

The record is created in the transaction in which the call begins to wait. The answer is held to it: what was approved
is bound to the tool as it was declared, its arguments and its directory; if any of them is another by the time the
answer is there, nothing runs and the person is asked anew.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from wakeful.contracts.content import BlobRef
from wakeful.contracts.errors import ToolAsks
from wakeful.contracts.events import (
    ActionRequired,
    ActionResolved,
    AnyEvent,
    PermissionEvaluated,
    RuntimeToolRequested,
    RuntimeToolResolved,
    ToolArgs,
    ToolFailed,
)
from wakeful.contracts.events.gate import Decision
from wakeful.contracts.events.tools import Elsewhere, Said
from wakeful.contracts.runtime_tools import request_id
from wakeful.contracts.tools import Effect, Effects, ToolDeclaration, ToolError
from wakeful.contracts.verdicts import Verdict
from wakeful.decisions.levels import Call
from wakeful.decisions.receipts import bounded
from wakeful.decisions.redaction import redact_parameters, stable_hash
from wakeful.gate.approval_binding import bind, held_by, holds
from wakeful.gate.outcomes import ONE_BEFORE, UNKNOWN_HINT, CallRecord, failed
from wakeful.gate.result_shape import at_once, makes_short_text, shaped
from wakeful.gate.turn_gate import Admission, Consultation, Dispatch, GateParts, Proposal
from wakeful.gate.verdicts import BINDING, NOBODY_SAID
from wakeful.tools.function import Tool
from wakeful.tools.results import ResultRefused, clean

if TYPE_CHECKING:
    from wakeful.gate.passage import Mediator

APPROVAL_DECISIONS: tuple[Decision, ...] = ("approve", "reject", "edit", "answer", "always")
QUESTION_DECISIONS: tuple[Decision, ...] = ("answer", "reject")
MAX_PROMPT_CHARS = 2_000


def is_outside(proposal: Proposal, consulted: Consultation = NOBODY_SAID) -> bool:
    """Is it carried out by somebody else than this process?"""
    return proposal.declaration.answered_by != "code" or _elsewhere(proposal, consulted) is not None


def _elsewhere(proposal: Proposal, consulted: Consultation) -> Elsewhere | None:
    """What a mediator said about who carries it out: now, or before a person was asked."""
    pending = proposal.call.pending
    if pending is not None and isinstance(pending.asked, ActionRequired) and pending.asked.elsewhere is not None:
        return pending.asked.elsewhere
    if not consulted.said:
        return None
    return next((said.elsewhere for said in reversed(consulted.said) if said.elsewhere is not None), None)


def asked(gate: "Mediator", proposal: Proposal, verdict: Verdict, consulted: Consultation) -> Admission:
    """The call waits for somebody outside."""
    declaration = proposal.declaration
    if verdict.decision == "ask":
        required = _approval(gate, proposal, verdict, _elsewhere(proposal, consulted))
    elif declaration.answered_by == "person":
        if not gate.parts.has_person:
            return _nobody(gate, proposal, verdict, consulted)
        required = _question(gate, proposal)
    else:
        requested = _request(gate, proposal, _elsewhere(proposal, consulted))
        return Admission([*gate.opening(proposal, verdict, consulted, "allowed"), requested])
    opened = gate.opening(
        proposal,
        replace(verdict, decision="ask", reason=required.reason),
        consulted,
        "ask",
        approval_action_id=required.action_id,
        expires_at=required.expires_at,
    )
    return Admission([*opened, required])


def asked_from_inside(
    parts: GateParts, dispatch: Dispatch, declared: ToolDeclaration, wants: ToolAsks
) -> ActionRequired:
    """A tool that was let through says that a person has to decide first."""
    declaration, arguments = dispatch.declaration, dispatch.arguments
    safe: dict[str, Any] = redact_parameters(arguments, declaration.input_schema, declaration.sensitive_parameters)
    directory = dispatch.tool.working_directory(arguments)
    held = held_by(dispatch.tool.confinement(arguments))
    more: dict[str, Any] = {"confinement": held} if held is not None else {}
    if dispatch.record.injected_args:
        more["injected_args"] = dispatch.record.injected_args
    return ActionRequired(
        run_kind=parts.run_kind,
        action_id=parts.new_id("appr"),
        tool_name=declaration.name,
        prompt=clean(wants.message)[:MAX_PROMPT_CHARS] or _words(declaration.name, safe),
        reason=f"{declaration.name} asks before it does this",
        decisions=APPROVAL_DECISIONS,
        safe_args=safe,
        args_sha256=stable_hash(safe),
        binding=bind(parts.secret, declared, arguments, directory, held),
        working_directory=directory,
        expires_at=_expiry(parts, dispatch.tool),
        **more,
    )


def handed_on(gate: "Mediator", proposal: Proposal, answer: "OutsideAnswer", consulted: Consultation) -> Admission:
    """A person let a call through that somebody else outside carries out: now they are asked."""
    verdict = Verdict("allow", "human", answer.reason, layer="approval")
    permission = gate.permission(proposal, verdict, consulted, approval_action_id=answer.action_id)
    asks = (
        _question(gate, proposal)
        if proposal.declaration.answered_by == "person"
        else _request(gate, proposal, _elsewhere(proposal, consulted))
    )
    return Admission([*consulted.events, permission, *rewritten(proposal, answer), asks])


def asked_anew(gate: "Mediator", proposal: Proposal, heard: Consultation) -> Admission:
    """What was approved is not what would run now."""
    reason = "what was approved is not what would run now: the tool, its arguments, its place or what holds it changed"
    verdict = Verdict("ask", "mode", reason, layer=BINDING)
    already = any(said.by == BINDING for said in heard.said)  # a recorded call is judged again
    consulted = heard if already else heard.and_then(Consultation((Said(by=BINDING, decision="ask", reason=reason),)))
    required = _approval(gate, proposal, verdict, _elsewhere(proposal, consulted))
    permission = gate.permission(
        proposal, verdict, consulted, approval_action_id=required.action_id, expires_at=required.expires_at
    )
    return Admission([*consulted.events, permission, required])


def rewritten(proposal: Proposal, answer: "OutsideAnswer") -> list[AnyEvent]:
    """Arguments that a person changed, as a fact."""
    if not answer.edited:
        return []
    return [ToolArgs(safe_args=safe_arguments(proposal), changed_by="approver")]


# --- the answer ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OutsideResult:
    """A result that no tool of this process produced."""

    value: Any = None
    ref: BlobRef | None = None
    """Where the value is, as JSON, when it was too large for its event."""


def given(
    gate: "Mediator",
    record: CallRecord,
    result: OutsideResult,
    before: Sequence[AnyEvent] = (),
    *,
    judged_again: bool = False,
) -> Admission:
    """The call ends with this result, which goes the way of every result. A large one has to be waited for.

    `before` is what is written before it. When a recorded call is judged again, that is all that is judged.
    """
    parts = gate.parts
    verdicts = [place for place, event in enumerate(before) if isinstance(event, PermissionEvaluated)]
    back = len(before) - verdicts[-1] if verdicts else None
    if result.ref is None and makes_short_text(result.value, parts.result_bytes()):
        record.permission_ref = f"@-{back}" if back is not None else record.permission_ref
        return Admission([*before, at_once(record, result.value, parts.now(), parts.keys())])
    if judged_again:
        return Admission(list(before))

    async def shape() -> Callable[[], Admission]:
        value = result.value if result.ref is None else json.loads(await parts.fetch(result.ref.digest))
        try:
            events = await shaped(
                *(record, value),
                now=parts.now,
                keep=parts.keep,
                keys=parts.keys(),
                verdict_before=back,
                most=parts.result_bytes(),
            )
        except ResultRefused as refused:
            error = ToolError(kind="invalid_result", message=refused.message, recovery_hint=refused.hint or None)
            record.permission_ref = f"@-{back}" if back is not None else record.permission_ref
            events = [
                failed(record, error, now=parts.now(), status="failed", category="execution_failed", effects="none")
            ]
        return lambda: Admission([*before, *events])

    return Admission([], later=shape)


@dataclass(slots=True)
class OutsideAnswer:
    """What was said, read."""

    action_id: str
    reason: str
    binding: str
    """What was decided about; of an edit, what was written instead."""
    seen: str = ""
    """What the person was shown."""
    directory: str | None = None
    held: str | None = None
    """Where it would have worked then."""
    edited: bool = False
    refused: bool = False
    """Nobody let it through."""
    outcome: Callable[[float], ToolFailed] | None = None
    """The call ends with it, at this time."""
    given: "OutsideResult | None" = None
    """The call ends with this result. Neither: the call is to run."""


def holds_for(
    answer: OutsideAnswer, proposal: Proposal, written: dict[str, Any], secret: bytes, said: tuple[Said, ...] | None
) -> bool:
    """Is what would run now what was decided about? `written` is what the model wrote.

    Whoever edits may do so where the tool's code is not, and cannot say where it will work. So what they saw has to be
    as it was, directory and all, and what they wrote in its place has to be what they wrote. With `said`, a recorded
    call is judged again: the directory of then is not in the log, whether it had changed is.
    """
    if said is not None:
        if any(each.by == BINDING for each in said):
            return False
        directory, held = answer.directory, answer.held
    else:
        directory, held = _place(proposal, written)
    if not holds(answer.seen, bind(secret, proposal.declared, written, directory, held)):
        return False
    return not answer.edited or holds(answer.binding, bind(secret, proposal.declared, proposal.arguments, None))


def _place(proposal: Proposal, written: dict[str, Any]) -> tuple[str | None, str | None]:
    """Where what the person saw would work, and what would hold it there."""
    try:
        return proposal.tool.working_directory(written), held_by(proposal.tool.confinement(written))
    except Exception as raised:  # it cannot be where it was
        return f"unknown: {type(raised).__name__}", None


def answer_of(call: Call, record: CallRecord) -> OutsideAnswer:
    """The answer to what a call asked, and what it means for the record."""
    pending = call.pending
    assert pending is not None
    said, asked_for = pending.said, pending.asked
    if isinstance(said, RuntimeToolResolved):
        if said.status == "runtime_tool_completed" and said.success:
            return OutsideAnswer(said.request_id, "", "", given=OutsideResult(said.result, said.result_ref))
        return OutsideAnswer(said.request_id, "", "", outcome=lambda now: unanswered(record, said, call.effect, now))
    assert isinstance(said, ActionResolved) and isinstance(asked_for, ActionRequired)
    record.approval_id = said.action_id
    record.approval_status = said.status
    by = f"{said.resolver}: {said.reason}" if said.reason else said.resolver
    binding = said.binding if said.decision == "edit" and said.binding is not None else asked_for.binding
    answer = OutsideAnswer(said.action_id, f"approved by {by}", binding, asked_for.binding, asked_for.working_directory)
    answer.held = asked_for.confinement
    answer.edited = said.decision == "edit"
    if said.status == "approved" and said.decision == "answer":
        answer.reason = f"answered by {by}, so the tool is not run"
        answer.given = OutsideResult(said.answer, said.answer_ref)
    elif said.status == "rejected":
        answer.refused, answer.reason = True, f"rejected by {by}"
        answer.outcome = lambda now: _rejected(record, asked_for, said, now)
    elif said.status == "timed_out":
        answer.refused, answer.reason = True, "nobody decided in time"
        answer.outcome = lambda now: _timed_out(record, asked_for, now)
    return answer


def _rejected(record: CallRecord, asked_for: ActionRequired, said: ActionResolved, now: float) -> ToolFailed:
    words = f": {said.reason}" if said.reason else ""
    cancelled = said.decision == "cancel"
    what = "was not answered" if asked_for.action_type == "question" else "was rejected and not run"
    error = ToolError(
        kind="approval_rejected",
        message=f"{record.tool_name} {what} ({said.resolver}){words}",
        recovery_hint="Do what was said, or do without this call; do not repeat it unchanged.",
    )
    return failed(
        record,
        error,
        now=now,
        status="rejected",
        category="approval_rejected",
        effects="none",
        abort_reason="user_interrupt" if cancelled else None,
    )


def _timed_out(record: CallRecord, asked_for: ActionRequired, now: float) -> ToolFailed:
    error = ToolError(
        kind="approval_timed_out",
        message=f"nobody decided about {record.tool_name} in time, so it was not run",
        recovery_hint="Do without it, or say what you need and why.",
    )
    return failed(
        record,
        error,
        now=now,
        status="timed_out",
        category="approval_rejected",
        effects="none",
        abort_reason="approval_expired",
    )


def unanswered(record: CallRecord, said: RuntimeToolResolved, effect: Effect, now: float) -> ToolFailed:
    """The client said that it failed, or it said nothing.

    A client that was asked and said nothing may have done it all the same: unless the tool is pure, nobody knows.
    """
    if said.status == "runtime_tool_completed":
        kind = said.metadata.get("error_type")
        error = ToolError(
            kind=kind if isinstance(kind, str) and kind else "executor_exception",
            message=said.error or f"{record.tool_name} failed",
        )
        effects: Effects = "none" if effect == "pure" or said.not_sent else "possible"
        return failed(record, error, now=now, status="failed", category="execution_failed", effects=effects)
    name, known = record.tool_name, effect == "pure"
    told = f"Nobody wants {name} any more" if said.cancelled else f"The client did not answer {name} in time"
    why = f" ({said.error})" if said.cancelled and said.error else ""
    doubt = "" if known else f" It was asked for, and it is unknown whether {name} took effect."
    error = ToolError(
        kind="cancelled" if said.cancelled else "client_timeout",
        message=f"{told}{why}.{doubt}",
        recovery_hint=None if known else UNKNOWN_HINT,
        retryable=known and not said.cancelled,
    )
    return failed(
        record,
        error,
        now=now,
        status="cancelled" if said.cancelled else "timed_out",
        category="canceled" if said.cancelled else "timeout",
        effects="none" if known else "unknown",
        abort_reason="user_interrupt" if said.cancelled else "timeout",
    )


# --- the question --------------------------------------------------------------------------------------------------


def _approval(
    gate: "Mediator", proposal: Proposal, verdict: Verdict, elsewhere: Elsewhere | None = None
) -> ActionRequired:
    parts, declaration = gate.parts, proposal.declaration
    safe = safe_arguments(proposal)
    more: dict[str, Any] = {}
    if proposal.record.injected_args:
        more["injected_args"] = proposal.record.injected_args
    held = held_by(proposal.confinement)
    if held is not None:
        more["confinement"] = held
    if elsewhere is not None:
        more["elsewhere"] = elsewhere
    return ActionRequired(
        run_kind=parts.run_kind,
        action_id=parts.new_id("appr"),
        tool_name=declaration.name,
        prompt=_words(declaration.name, safe),
        reason=verdict.reason,
        decisions=APPROVAL_DECISIONS,
        safe_args=_shown(proposal, safe),
        args_sha256=stable_hash(safe),
        binding=bind(parts.secret, proposal.declared, proposal.arguments, proposal.directory, held),
        working_directory=proposal.directory,
        approvers=verdict.approvers,
        expires_at=_expiry(parts, proposal.tool),
        rule_refs=verdict.rule_refs,
        **more,
    )


def _question(gate: "Mediator", proposal: Proposal) -> ActionRequired:
    parts, arguments = gate.parts, proposal.arguments
    choices = arguments.get("choices")
    return ActionRequired(
        run_kind=parts.run_kind,
        action_id=parts.new_id("ask"),
        action_type="question",
        tool_name=proposal.declaration.name,
        prompt=str(arguments.get("question", ""))[:MAX_PROMPT_CHARS],
        reason="the agent has a question",
        decisions=QUESTION_DECISIONS,
        choices=tuple(str(choice) for choice in choices) if isinstance(choices, list) else (),
        safe_args=safe_arguments(proposal),
        args_sha256=stable_hash(safe_arguments(proposal)),
        binding=bind(parts.secret, proposal.declared, arguments, None),
        expires_at=_expiry(parts, proposal.tool),
    )


def _expiry(parts: GateParts, tool: Tool[Any]) -> int:
    """When a question about a call of the tool expires, in microseconds since the epoch."""
    seconds = tool.approval_expires if tool.approval_expires is not None else parts.expiry_seconds
    return int((parts.now() + seconds) * 1_000_000)


def _nobody(gate: "Mediator", proposal: Proposal, verdict: Verdict, consulted: Consultation) -> Admission:
    error = ToolError(
        kind="nobody_to_ask",
        message="there is nobody to ask in this run",
        recovery_hint="Decide yourself with what you know, and say in your answer what you assumed.",
    )
    proposal.record.permission_ref = ONE_BEFORE
    outcome = failed(
        proposal.record, error, now=gate.parts.now(), status="failed", category="setup_required", effects="none"
    )
    return Admission([*gate.opening(proposal, verdict, consulted, "allowed"), outcome])


def _request(gate: "Mediator", proposal: Proposal, elsewhere: Elsewhere | None = None) -> RuntimeToolRequested:
    parts, declaration = gate.parts, proposal.declaration
    safe = safe_arguments(proposal)
    seconds = declaration.timeout if declaration.timeout is not None else parts.client_seconds
    sent = proposal.tool.for_client(proposal.arguments)
    more: dict[str, Any] = {name: value for name, value in sent._asdict().items() if value}
    if proposal.is_rewritten:
        more.setdefault("arguments", proposal.arguments)
    timeout_at = int((parts.now() + seconds) * 1_000_000)
    if elsewhere is not None:
        more["runtime"] = {**sent.runtime, **elsewhere.runtime}
        more["metadata"] = {**elsewhere.metadata, **sent.metadata}
        timeout_at = elsewhere.timeout_at if elsewhere.timeout_at is not None else timeout_at
    return RuntimeToolRequested(
        request_id=request_id(parts.turn_id, declaration.name, proposal.call.call_id),
        tool_name=declaration.name,
        safe_args=_shown(proposal, safe),
        args_sha256=stable_hash(safe),
        timeout_at=timeout_at,
        **more,
    )


def safe_arguments(proposal: Proposal) -> dict[str, Any]:
    """The arguments as every reader may see them."""
    declaration = proposal.declaration
    safe: dict[str, Any] = redact_parameters(
        proposal.arguments, declaration.input_schema, declaration.sensitive_parameters
    )
    return safe


def _shown(proposal: Proposal, safe: dict[str, Any]) -> dict[str, Any]:
    """What stands in the event: of arguments that are kept elsewhere because of their size, a preview and a digest."""
    return safe if proposal.call.part.arguments_ref is None else bounded(safe)


def _words(name: str, safe: dict[str, Any]) -> str:
    arguments = ", ".join(f"{key}={value!r}" for key, value in safe.items())
    return f"Run {name}({arguments})?"[:MAX_PROMPT_CHARS]
