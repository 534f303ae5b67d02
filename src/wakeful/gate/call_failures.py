"""How a call that was begun ends without a result: what its tool raised, or why it was stopped, as a failure.

A tool that failed said so: what it changed before that is its own affair, not an open question. What was cut off in the
middle is unknown unless the tool's effect class says otherwise (`gate.running_call`).
"""

import asyncio
import logging
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from wakeful.contracts.errors import OutcomeUnknown, ToolReported, ToolRetry
from wakeful.contracts.events import AnyEvent, ErrorCategory, SandboxViolation, ToolFailed, UnknownResolved
from wakeful.contracts.events.tools import AbortReason
from wakeful.contracts.tools import Effects, FailedStatus, ToolError
from wakeful.decisions.run_secrets import RunSecrets
from wakeful.decisions.secret_values import SecretValues
from wakeful.gate.call_at_gate import CallAtGate
from wakeful.gate.outcomes import failed, unknown_error
from wakeful.tools.results import ResultRefused, clean, show
from wakeful.tools.schema import ArgumentsRefused

MAX_CHARS = 8_000
"""Of a traceback."""
_PACKAGE = str(Path(__file__).parent.parent)
_LOG = logging.getLogger("wakeful.tools")
logging.getLogger("wakeful").addHandler(logging.NullHandler())  # a program that configures no logging is told nothing

Abort: TypeAlias = Literal["timeout", "cancel", "budget", "sibling", "shutdown", "changed", "locked"]
"""sibling: another call of the round failed. changed: what a person let through is not what would run. locked: its
locks did not become free. The last two only stop a call from being run again after a crash."""
ABORT_REASON: dict[Abort, AbortReason] = {
    "timeout": "timeout",
    "cancel": "user_interrupt",
    "budget": "budget",
    "sibling": "sibling_failed",
    "shutdown": "runtime_shutdown",
    "changed": "runtime_shutdown",
    "locked": "runtime_shutdown",
}
INTERRUPTS: frozenset[Abort] = frozenset({"cancel", "budget", "sibling"})
"""Nobody wants the call any more: it is told, and what it makes of that is on record."""

_NOT_AGAIN: dict[Abort, str] = {
    "changed": "it is no longer what was approved",
    "locked": "another call holds its locks",
}
CATEGORY_OF_KIND: dict[str, ErrorCategory] = {
    "sandbox_violation": "sandbox_violation",
    "outside_workspace": "sandbox_violation",
    "dependency_unavailable": "dependency_unavailable",
    "credential_missing": "credential_missing",
    "setup_required": "setup_required",
    "rate_limited": "rate_limited",
    "result_too_large": "result_too_large",
    "executor_target_unavailable": "dependency_unavailable",
    "command_stopped": "canceled",
}
"""Failures that a tool reports by a kind of its own, as the log classes them."""


class AbortCause(NamedTuple):
    """Why a call was told to stop."""

    why: Abort
    reason: AbortReason

    @property
    def is_interrupt(self) -> bool:
        return self.why in INTERRUPTS

    @property
    def status(self) -> FailedStatus:
        """cancelled is stopped on request; interrupted is cut off without anybody's wish."""
        if self.why == "timeout":
            return "timed_out"
        return "interrupted" if self.why == "cancel" and self.reason == "runtime_shutdown" else "cancelled"

    @property
    def category(self) -> ErrorCategory:
        return "timeout" if self.why == "timeout" else "sibling_canceled" if self.why == "sibling" else "canceled"

    def words(self, at: CallAtGate) -> str:
        """What became of the call, for the model."""
        name, seconds = at.tool_name, at.declaration.timeout
        if self.why == "timeout" and seconds:
            return f"{name} ran longer than its {seconds:g} s."
        if self.why in _NOT_AGAIN:
            return f"The process ended while {name} ran, and it is not run again: {_NOT_AGAIN[self.why]}."
        return f"{name} was stopped."


def raised(at: CallAtGate, error: BaseException, now: float, retries_left: Callable[[str, int], int]) -> ToolFailed:
    """What a tool raised, as the end of its call. `retries_left` is asked of one that wants to be called again."""
    if isinstance(error, ToolRetry):
        return _asked_retry(at, error, now, retries_left(at.tool_name, at.declaration.retries))
    if isinstance(error, ArgumentsRefused):
        return _refused(at, error, now)
    if isinstance(error, ToolReported):
        return failure(at, error.error, now)
    details = getattr(error, "details", None)
    hint = getattr(error, "recovery_hint", None) or getattr(error, "hint", None)
    told = ToolError(
        kind="executor_exception",
        message=_said(error)[:2000],
        details=details if isinstance(details, dict) else None,
        recovery_hint=hint if isinstance(hint, str) and hint else None,
    )
    return failure(at, told, now, traceback=traceback_text(error, secrets_of(at)))


def failure(
    at: CallAtGate, error: ToolError, now: float, *, effects: Effects | None = None, traceback: str | None = None
) -> ToolFailed:
    """The tool failed."""
    if effects is None:
        effects = "none" if at.declaration.effect == "pure" else "possible"
    category = CATEGORY_OF_KIND.get(error.kind, "execution_failed")
    return failed(at.record, error, now=now, status="failed", category=category, effects=effects, traceback=traceback)


def refused_result(at: CallAtGate, refused: ResultRefused, now: float) -> ToolFailed:
    """The tool returned what has no form a model could read."""
    error = ToolError(kind="invalid_result", message=refused.message, recovery_hint=refused.hint or None)
    return failure(at, error, now)


def _refused(at: CallAtGate, error: ArgumentsRefused, now: float) -> ToolFailed:
    """They fit the schema and not the function: its own types want more. Nothing has run."""
    told = ToolError(
        kind="invalid_parameters",
        message=error.message,
        details={"errors": [f"{path}: {words}" for path, words in error.problems], "field": error.problems[0][0]},
        recovery_hint="Correct these fields and call the tool again.",
        retryable=True,
    )
    return failed(at.record, told, now=now, status="invalid", category="schema_validation_failed", effects="none")


def _asked_retry(at: CallAtGate, ask: ToolRetry, now: float, left: int) -> ToolFailed:
    allowed = at.declaration.retries
    hint = "Try differently." if left >= 0 else f"{at.tool_name} was retried {allowed} times: do without it."
    error = ToolError(
        kind="retry_requested" if left >= 0 else "retries_exhausted",
        message=ask.message,
        recovery_hint=ask.hint or hint,
        retryable=left >= 0,
    )
    return failed(
        at.record, error, now=now, status="failed", category="execution_failed", effects="none", asked_retry=True
    )


def unknown(at: CallAtGate, why: str, now: float, abort: AbortCause | None = None) -> ToolFailed:
    """Closed without knowing. If the tool is still busy, its late answer will say."""
    return failed(
        at.record,
        unknown_error(at.tool_name, why),
        now=now,
        status=abort.status if abort is not None else "failed",
        category=abort.category if abort is not None else "execution_failed",
        effects="unknown",
        abort_reason=abort.reason if abort is not None else None,
    )


def stopped(at: CallAtGate, told: str, now: float, abort: AbortCause) -> ToolFailed:
    """It was told to stop, and nothing has happened that matters."""
    timeout = abort.why == "timeout"
    return failed(
        at.record,
        ToolError(kind="timeout" if timeout else "cancelled", message=told, retryable=timeout),
        now=now,
        status=abort.status,
        category=abort.category,
        effects="none",
        abort_reason=abort.reason,
    )


def late_answer(at: CallAtGate, work: "asyncio.Future[Any]", keys: SecretValues) -> UnknownResolved | None:
    """What became of a call that was closed as unknown; None: it cannot say either, and the question stays open."""
    error = work.exception()
    if isinstance(error, OutcomeUnknown):
        return None
    words = clean(_said(error)) if error is not None else _words(work.result())
    return UnknownResolved(
        call_id=at.call_id,
        tool_name=at.tool_name,
        happened=error is None,
        result=keys.hide_keys(words)[:2000],
        source="late_answer",
    )


# --- words ---------------------------------------------------------------------------------------------------------


def traceback_text(raised: BaseException, secrets: RunSecrets) -> str:
    """The traceback of what a tool raised, without the frames of the runtime that called it."""
    frames = raised.__traceback__
    while frames is not None and frames.tb_next is not None and _is_ours(frames.tb_frame.f_code.co_filename):
        frames = frames.tb_next
    text = secrets.hide(clean("".join(traceback.format_exception(type(raised), raised, frames)).rstrip()))
    return text if len(text) <= MAX_CHARS else f"[...] {text[-MAX_CHARS:]}"


def secrets_of(at: CallAtGate) -> RunSecrets:
    """What one call was given as secrets, by name and by what its tool declares."""
    secrets = RunSecrets()
    secrets.given(at.arguments, at.declaration)
    return secrets


def _is_ours(filename: str) -> bool:
    return filename.startswith(_PACKAGE)


def log_failure(event: ToolFailed, at: CallAtGate) -> None:
    """Tell the log of the process about a tool that raised; keys of the runtime are hidden in the event already."""
    words = secrets_of(at).hide(event.message)
    _LOG.warning("tool %s raised (call %s): %s\n%s", event.tool_name, at.call_id, words, event.traceback)


def violations(raised: BaseException) -> list[AnyEvent]:
    """What the sandbox stopped, as a fact of its own."""
    if not isinstance(raised, ToolReported) or raised.error.kind not in ("sandbox_violation", "outside_workspace"):
        return []
    details = raised.error.details or {}
    boundary, target = details.get("boundary", raised.error.kind), details.get("target", details.get("path", ""))
    return [SandboxViolation(boundary=clean(str(boundary))[:200], target=clean(str(target))[:500])]


def _said(raised: BaseException) -> str:
    """What was raised, in words; an exception that cannot even say that is named."""
    name = type(raised).__name__
    try:
        return f"{name}: {raised}"
    except Exception:
        return name


def _words(value: Any) -> str:
    try:
        return "".join(part.text for part in show(value).parts if part.type == "text")
    except ResultRefused as refused:
        return refused.message
