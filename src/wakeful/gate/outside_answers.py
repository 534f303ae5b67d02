"""What a person or a client answered about a call, and what follows from it.

An answer is held to what was asked: if the tool, its arguments, its directory or what holds it is another by the time
the answer is there, nothing runs and the person is asked anew.
"""

import json
from typing import Any

from wakeful.contracts.events import (
    ActionRequired,
    ActionResolved,
    AnyEvent,
    RuntimeToolResolved,
    ToolFailed,
    ToolResult,
)
from wakeful.contracts.events.tools import Opinion
from wakeful.contracts.tools import Effect, Effects, ToolError
from wakeful.decisions.levels import OutsideRequest
from wakeful.gate.approval_binding import bind, held_by, holds
from wakeful.gate.call_at_gate import CallAtGate, CallRecord, OutsideAnswer, OutsideResult
from wakeful.gate.outcomes import UNKNOWN_HINT, failed
from wakeful.gate.result_shape import at_once, makes_short_text, shaped
from wakeful.gate.turn_gate import GateParts
from wakeful.gate.verdicts import BINDING
from wakeful.tools.results import ResultRefused


def take(at: CallAtGate) -> OutsideAnswer:
    """Complete the call with the answer to what it asked."""
    pending = at.call.pending
    assert pending is not None
    at.answer = _answer_of(pending)
    if isinstance(pending.said, ActionResolved):
        at.record.approval_id, at.record.approval_status = pending.said.action_id, pending.said.status
    return at.answer


def _answer_of(pending: OutsideRequest) -> OutsideAnswer:
    said, asked_for = pending.said, pending.asked
    if isinstance(said, RuntimeToolResolved):
        if said.status == "runtime_tool_completed" and said.success:
            return OutsideAnswer(said.request_id, result=OutsideResult(said.result, said.result_ref))
        return OutsideAnswer(said.request_id, is_failure=True)
    assert isinstance(said, ActionResolved) and isinstance(asked_for, ActionRequired)
    by = f"{said.resolver}: {said.reason}" if said.reason else said.resolver
    result, is_refused, reason = None, said.status in ("rejected", "timed_out"), f"approved by {by}"
    if said.status == "rejected":
        reason = f"rejected by {by}"
    elif said.status == "timed_out":
        reason = "nobody decided in time"
    elif said.decision == "answer":
        reason, result = f"answered by {by}, so the tool is not run", OutsideResult(said.answer, said.answer_ref)
    return OutsideAnswer(
        said.action_id,
        reason,
        said.binding if said.decision == "edit" and said.binding is not None else asked_for.binding,
        asked_for.binding,
        asked_for.working_directory,
        asked_for.confinement,
        is_edited=said.decision == "edit",
        is_refused=is_refused,
        is_failure=is_refused,
        result=result,
    )


def holds_for(at: CallAtGate, secret: bytes, said: tuple[Opinion, ...] | None) -> bool:
    """Is what would run now what was decided about?

    Whoever edits may do so where the tool's code is not, and cannot say where it will work. So what they saw has to be
    as it was, directory and all, and what they wrote in its place has to be what they wrote. With `said`, a recorded
    call is judged again: the directory of then is not in the log, whether it had changed is.
    """
    answer, call = at.answer, at.call
    assert answer is not None
    shown = call.rewritten if call.rewritten is not None else at.written
    if said is not None:
        if any(each.by == BINDING for each in said):
            return False
        directory, held = answer.directory, answer.held
    else:
        directory, held = _place(at, shown)
    if not holds(answer.seen, bind(secret, at.declared, shown, directory, held)):
        return False
    return not answer.is_edited or holds(answer.binding, bind(secret, at.declared, at.arguments, None))


def _place(at: CallAtGate, shown: dict[str, Any]) -> tuple[str | None, str | None]:
    """Where what the person saw would work, and what would hold it there."""
    try:
        return at.tool.working_directory(shown), held_by(at.tool.confinement(shown))
    except Exception as raised:  # it cannot be where it was
        return f"unknown: {type(raised).__name__}", None


# --- a call that ends with its answer ------------------------------------------------------------------------------


def short_result(at: CallAtGate, parts: GateParts) -> ToolResult | None:
    """The end of a call with a result for which nothing has to be waited for; None: it is another."""
    result = at.answer.result if at.answer is not None else None
    if result is None or result.ref is not None or not makes_short_text(result.value, parts.result_bytes()):
        return None
    return at_once(at.record, result.value, parts.now(), parts.keys())


async def long_result(at: CallAtGate, parts: GateParts, verdict_before: int | None) -> list[AnyEvent]:
    """The same for any other result. `verdict_before` is how many events before these its verdict is written."""
    assert at.answer is not None and at.answer.result is not None
    result = at.answer.result
    value = result.value if result.ref is None else json.loads(await parts.fetch(result.ref.digest))
    try:
        return await shaped(
            *(at.record, value),
            now=parts.now,
            keep=parts.keep,
            keys=parts.keys(),
            verdict_before=verdict_before,
            most=parts.result_bytes(),
        )
    except ResultRefused as refused:
        error = ToolError(kind="invalid_result", message=refused.message, recovery_hint=refused.hint or None)
        return [failed(at.record, error, now=parts.now(), status="failed", category="execution_failed", effects="none")]


def failure(at: CallAtGate, now: float) -> ToolFailed:
    """The end of a call that nobody let through, or that whoever was to run it did not."""
    pending = at.call.pending
    assert pending is not None
    if isinstance(pending.said, RuntimeToolResolved):
        return unanswered(at.record, pending.said, at.call.effect, now)
    assert isinstance(pending.said, ActionResolved) and isinstance(pending.asked, ActionRequired)
    if pending.said.status == "rejected":
        return _rejected(at, pending.asked, pending.said, now)
    return _timed_out(at, now)


def _rejected(at: CallAtGate, asked_for: ActionRequired, said: ActionResolved, now: float) -> ToolFailed:
    words = f": {said.reason}" if said.reason else ""
    cancelled = said.decision == "cancel"
    what = "was not answered" if asked_for.action_type == "question" else "was rejected and not run"
    error = ToolError(
        kind="approval_rejected",
        message=f"{at.tool_name} {what} ({said.resolver}){words}",
        recovery_hint="Do what was said, or do without this call; do not repeat it unchanged.",
    )
    return failed(
        at.record,
        error,
        now=now,
        status="rejected",
        category="approval_rejected",
        effects="none",
        abort_reason="user_interrupt" if cancelled else None,
    )


def _timed_out(at: CallAtGate, now: float) -> ToolFailed:
    error = ToolError(
        kind="approval_timed_out",
        message=f"nobody decided about {at.tool_name} in time, so it was not run",
        recovery_hint="Do without it, or say what you need and why.",
    )
    return failed(
        at.record,
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
    name, known = record.tool_name, effect == "pure"
    if said.status == "runtime_tool_completed":
        kind = said.metadata.get("error_type")
        error = ToolError(
            kind=kind if isinstance(kind, str) and kind else "executor_exception",
            message=said.error or f"{name} failed",
        )
        effects: Effects = "none" if known or said.not_sent else "possible"
        return failed(record, error, now=now, status="failed", category="execution_failed", effects=effects)
    told = f"The request for {name} was cancelled" if said.cancelled else f"The client did not answer {name} in time"
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
