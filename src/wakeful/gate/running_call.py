"""One call under way.

Whatever the tool does (returns, raises, hangs, swallows its own cancellation), a running call delivers exactly one
outcome. A deadline or a cancel after the intent is a small crash, and is settled by the effect class like one:

    pure           it did not happen in any way that matters
    keyed          run once more with the same key, if the first run is truly over; else unknown
    probeable      its probe is asked
    irreversible   nobody knows

A sync tool's thread cannot be stopped. Its late answer is a fact that closes the unknown.
"""

import asyncio
import logging
import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from wakeful.contracts.content import BlobRef
from wakeful.contracts.errors import OutcomeUnknown, ToolAsks, ToolReported, ToolRetry
from wakeful.contracts.events import (
    AnyEvent,
    ErrorCategory,
    SandboxViolation,
    ToolDispatched,
    ToolFailed,
    ToolResult,
    UnknownResolved,
    WarningIssued,
)
from wakeful.contracts.events.tools import AbortReason
from wakeful.contracts.probes import DidNotHappen, Happened, ProbeAnswer, StillUnknown
from wakeful.contracts.tools import Effects, FailedStatus, ToolDeclaration, ToolError
from wakeful.decisions.run_secrets import RunSecrets
from wakeful.decisions.secret_values import SecretValues
from wakeful.gate.outcomes import failed, unknown_error, without_keys
from wakeful.gate.result_shape import at_once, makes_short_text, shaped
from wakeful.gate.turn_gate import Dispatch
from wakeful.tools.call_runner import CallHandle
from wakeful.tools.context import RunContext
from wakeful.tools.eager_start import EagerStarts
from wakeful.tools.results import ResultRefused, clean, show
from wakeful.tools.schema import ArgumentsRefused

MAX_CHARS = 8_000
_PACKAGE = str(Path(__file__).parent.parent)
_LOG = logging.getLogger("wakeful.tools")
logging.getLogger("wakeful").addHandler(logging.NullHandler())  # a program that configures no logging is told nothing


def traceback_text(raised: BaseException, secrets: RunSecrets) -> str:
    """The traceback of what a tool raised, without the frames of the runtime that called it."""
    frames = raised.__traceback__
    while frames is not None and frames.tb_next is not None and _is_ours(frames.tb_frame.f_code.co_filename):
        frames = frames.tb_next
    text = secrets.hide(clean("".join(traceback.format_exception(type(raised), raised, frames)).rstrip()))
    return text if len(text) <= MAX_CHARS else f"[...] {text[-MAX_CHARS:]}"


def secrets_of(arguments: Mapping[str, Any], declaration: ToolDeclaration) -> RunSecrets:
    """What one call was given as secrets, by name and by what its tool declares."""
    secrets = RunSecrets()
    secrets.given(arguments, declaration)
    return secrets


def _is_ours(filename: str) -> bool:
    return filename.startswith(_PACKAGE)


def log_failure(event: ToolFailed, call_id: str, secrets: RunSecrets) -> None:
    """Tell the log of the process about a tool that raised; keys of the runtime are hidden in the event already."""
    said = secrets.hide(event.message)
    _LOG.warning("tool %s raised (call %s): %s\n%s", event.tool_name, call_id, said, event.traceback)


GRACE_SECONDS = 2.0
"""How long a call that was told to stop may take to do so."""
THREAD_GRACE_SECONDS = 0.1
"""The same for a thread, which can only stop if it looks."""
PROBE_SECONDS = 30.0
"""How long a probe may take before it counts as one that cannot say."""

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


CATEGORY_OF_KIND: dict[str, ErrorCategory] = {
    "sandbox_violation": "sandbox_violation",
    "outside_workspace": "sandbox_violation",
    "dependency_unavailable": "dependency_unavailable",
    "credential_missing": "credential_missing",
    "setup_required": "setup_required",
    "rate_limited": "rate_limited",
    "result_too_large": "result_too_large",
    "executor_target_unavailable": "dependency_unavailable",
}
"""Failures that a tool reports by a kind of its own, as the log classes them."""


INTERRUPTS: frozenset[Abort] = frozenset({"cancel", "budget", "sibling"})
"""Nobody wants the call any more: it is told, and what it makes of that is on record."""
CANCEL_IGNORED = "cancel_ignored"
"""The warning about a call that was told to stop and did not."""

_NOT_AGAIN: dict[Abort, str] = {
    "changed": "it is not any more what was approved",
    "locked": "another call holds its locks",
}


class CallSurroundings(Protocol):
    """What a running call needs from the turn around it."""

    def now(self) -> float:
        """Unix seconds."""
        ...

    def context(self, dispatch: Dispatch, deadline: datetime | None) -> RunContext[Any]: ...

    async def keep(self, data: bytes, media_type: str) -> BlobRef: ...

    @property
    def keys(self) -> SecretValues:
        """The runtime's own keys, which no outcome may hold."""
        ...

    @property
    def result_bytes(self) -> int | None:
        """The most text of one result that a model is shown; None: as much as of any."""
        ...

    def retries_left(self, tool_name: str, allowed: int) -> int: ...

    def late(self, event: UnknownResolved, step: int) -> None:
        """A late answer, after the call's own outcome was delivered."""
        ...

    def spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]": ...

    def acknowledged(self, dispatch: Dispatch) -> None:
        """The call has seen that it is to stop. From any thread."""
        ...

    def asks(self, dispatch: Dispatch, wants: ToolAsks) -> AnyEvent:
        """The record of a question that a running tool has."""
        ...

    @property
    def after_call(self) -> "AfterCall | None":
        """Whoever is heard about an outcome before it is told; None: nobody."""
        ...


AfterCall: TypeAlias = Callable[[Dispatch, list[AnyEvent]], Awaitable[list[AnyEvent]]]
Deliver: TypeAlias = Callable[[Dispatch, list[AnyEvent]], None]


class RunningCall:
    """One dispatched call: its work, its timers, its one outcome."""

    __slots__ = (
        "_abort",
        "_abort_reason",
        "_began",
        "_ctx",
        "_deliver",
        "_delivered",
        "_goes_on",
        "_has_acknowledged",
        "_shaper",
        "_shaping",
        "_timers",
        "_unknown_told",
        "_work",
        "around",
        "dispatch",
    )

    def __init__(self, dispatch: Dispatch, around: CallSurroundings, deliver: Deliver) -> None:
        self.dispatch = dispatch
        self.around = around
        self._deliver = deliver
        self._delivered = False
        self._unknown_told = False
        self._shaping = False
        """The tool has returned; its result is being made ready."""
        self._shaper: asyncio.Task[None] | None = None
        self._abort: Abort | None = None
        self._abort_reason: AbortReason | None = None
        self._has_acknowledged = False
        self._goes_on = False
        """It was told to stop, and had not when its time for that was over."""
        self._timers: list[asyncio.TimerHandle] = []
        self._began = 0.0
        self._work: CallHandle | None = None
        self._ctx: RunContext[Any] | None = None

    def start(self, *, probe_first: bool = False, eager: EagerStarts | None = None) -> None:
        """Begin. The intent is on disk; with `eager`, the call is pure and its intent may follow."""
        seconds = self.dispatch.declaration.timeout
        deadline = datetime.now(UTC) + timedelta(seconds=seconds) if seconds is not None else None
        self._ctx = self.around.context(self.dispatch, deadline)
        if probe_first:
            self.around.spawn(self._probe_then_launch())
        else:
            self._launch(eager)

    def stop(self, why: Abort, reason: AbortReason | None = None) -> None:
        """Nobody waits for this call any more. It is told, and its outcome is delivered within the grace period."""
        if self._delivered or self._shaping or self._abort is not None or self._ctx is None:
            return
        self._abort, self._abort_reason = why, reason or ABORT_REASON[why]
        if why in INTERRUPTS:
            self._ctx.cancelled.on_seen = self._acknowledge
        self._ctx.cancelled.set()
        work = self._work
        grace = GRACE_SECONDS
        if work is not None and not work.is_thread:
            work.result.cancel()
        elif work is not None and not (why in INTERRUPTS and self.dispatch.tool.sees_cancel):
            grace = THREAD_GRACE_SECONDS
        self._timers.append(asyncio.get_running_loop().call_later(grace, self._out_of_grace))

    def _acknowledge(self) -> None:
        if not self._has_acknowledged:
            self._has_acknowledged = True
            self.around.acknowledged(self.dispatch)

    def abandon(self, why: Abort, reason: AbortReason | None = None) -> None:
        """Do not begin: the turn is to end. What the run before came to is settled like any other."""
        self._abort, self._abort_reason = why, reason or ABORT_REASON[why]
        self._ctx = self.around.context(self.dispatch, None)
        self.around.spawn(self._settle(why))

    @property
    def late_answer(self) -> "asyncio.Future[Any] | None":
        """What is still awaited of a call the runtime went on without."""
        work = self._work
        return work.result if self._unknown_told and work is not None and not work.result.done() else None

    @property
    def busy(self) -> "asyncio.Future[Any] | None":
        """The work itself, as long as it is not over: a thread goes on when nobody waits for it any more."""
        work = self._work
        return work.result if work is not None and not work.result.done() else None

    async def stopped(self) -> None:
        """Wait a little for the work to be over, for a runner that is going down."""
        busy: set[asyncio.Future[Any]] = set()
        if self._work is not None and not self._work.is_thread:
            busy.add(self._work.result)
        if self._shaper is not None:
            busy.add(self._shaper)
        if busy:
            await asyncio.wait(busy, timeout=GRACE_SECONDS)

    # --- running ------------------------------------------------------------------------------------------------

    def _launch(self, eager: EagerStarts | None = None) -> None:
        dispatch, ctx = self.dispatch, self._ctx
        assert ctx is not None
        self._began = time.perf_counter()
        try:
            if eager is None:
                work = dispatch.tool.start(ctx, dispatch.arguments)
            else:
                work = dispatch.tool.start_eagerly(ctx, dispatch.arguments, eager)
        except Exception as raised:
            self._finish([self._raised(raised)])
            return
        self._work = work
        if work.result.done():
            self._done(work.result)
            return
        work.on_value = self._returned
        work.result.add_done_callback(self._done)
        if dispatch.declaration.timeout is not None:
            loop = asyncio.get_running_loop()
            self._timers.append(loop.call_later(dispatch.declaration.timeout, self.stop, "timeout"))

    async def _probe_then_launch(self) -> None:
        """After a crash: ask what happened before doing anything."""
        answer = await self._probe()
        if self._abort == "shutdown":
            return  # the intent stays open, and nothing may begin any more
        if isinstance(answer, DidNotHappen):
            if self._abort is None:
                self._launch()
            else:
                self._finish([self._stopped(f"{self.dispatch.record.tool_name} was stopped before it ran again.")])
        elif isinstance(answer, Happened):
            await self._shape_and_finish(answer.result)
        else:
            reason = f" ({answer.reason})" if answer.reason else ""
            self._finish([self._unknown(f"The process ended while {self.dispatch.record.tool_name} ran{reason}.")])

    def _done(self, work: "asyncio.Future[Any]") -> None:
        if self._delivered:
            self._answered_late(work)
            return
        self._measure()
        if work.cancelled():
            if self._abort is None:
                self._finish(
                    [self._failed(ToolError(kind="cancelled", message="the tool cancelled itself"), "possible")]
                )
            elif self._abort != "shutdown":
                if self._abort in INTERRUPTS:
                    self._acknowledge()
                self.around.spawn(self._settle(self._abort))
            return  # going down: the intent stays open, and recovery settles it
        raised = work.exception()
        if isinstance(raised, ToolAsks):
            try:
                question = self.around.asks(self.dispatch, raised)
            except Exception as broken:  # the tool cannot say where it works any more: nobody can be asked about that
                question = self._raised(broken)
            self._finish([question])
            return
        if raised is not None:
            self._finish([*_violations(raised), self._raised(raised)])
            return
        if not self._shaping:
            self._returned(work.result())

    def _returned(self, value: Any) -> None:
        if self._delivered:
            return
        self._shaping = True
        self._measure()
        if not self._finish_at_once(value):
            self._shaper = self.around.spawn(self._shape_and_finish(value))

    def _measure(self) -> None:
        self.dispatch.record.execution_ms = round((time.perf_counter() - self._began) * 1000, 3)

    def _finish_at_once(self, value: Any) -> bool:
        """The common case, without a task: what makes a short text needs no artifact. False when it is another."""
        if not makes_short_text(value, self.around.result_bytes):
            return False
        self._finish([at_once(self.dispatch.record, value, self.around.now(), self.around.keys)])
        if self._work is not None:
            self._work.result.remove_done_callback(self._done)  # all is told: it need not be called to find that out
        return True

    async def _shape_and_finish(self, value: Any) -> None:
        around = self.around
        try:
            self._finish(
                await shaped(
                    *(self.dispatch.record, value),
                    now=around.now,
                    keep=around.keep,
                    keys=around.keys,
                    most=around.result_bytes,
                )
            )
        except ResultRefused as refused:
            error = ToolError(kind="invalid_result", message=refused.message, recovery_hint=refused.hint or None)
            self._finish([self._failed(error, self._effects_of_failure())])

    # --- the one outcome ----------------------------------------------------------------------------------------

    def _finish(self, events: list[AnyEvent]) -> None:
        if self._delivered:
            return
        self._delivered = True
        for timer in self._timers:
            timer.cancel()
        if self._work is not None:
            self._work.on_value = None  # it leads back here: without it, no call waits for the garbage collector
        after, last = self.around.after_call, events[-1]
        if isinstance(last, ToolFailed) and self.around.keys:
            last = events[-1] = without_keys(last, self.around.keys)
        if isinstance(last, ToolFailed) and last.traceback:
            log_failure(last, self.dispatch.record.call_id, self._secrets())
        known = isinstance(last, ToolResult) or (isinstance(last, ToolFailed) and last.effects != "unknown")
        if after is None or not known:
            self._deliver(self.dispatch, events)
        else:
            self._shaper = self.around.spawn(self._heard(after, events))

    async def _heard(self, after: AfterCall, events: list[AnyEvent]) -> None:
        """The outcome, once the hooks after the call have been heard."""
        self._deliver(self.dispatch, await after(self.dispatch, events))

    def _raised(self, raised: BaseException) -> AnyEvent:
        if isinstance(raised, ToolRetry):
            return self._asked_retry(raised)
        if isinstance(raised, ArgumentsRefused):
            return self._refused(raised)
        if isinstance(raised, OutcomeUnknown):
            return self._unknown(f"{self.dispatch.record.tool_name} said: {raised.message}.")
        if isinstance(raised, ToolReported):
            return self._failed(raised.error, self._effects_of_failure())
        details = getattr(raised, "details", None)
        hint = getattr(raised, "recovery_hint", None) or getattr(raised, "hint", None)
        error = ToolError(
            kind="executor_exception",
            message=_said(raised)[:2000],
            details=details if isinstance(details, dict) else None,
            recovery_hint=hint if isinstance(hint, str) and hint else None,
        )
        return self._failed(error, self._effects_of_failure(), traceback_text(raised, self._secrets()))

    def _secrets(self) -> RunSecrets:
        return secrets_of(self.dispatch.arguments, self.dispatch.declaration)

    def _refused(self, raised: ArgumentsRefused) -> AnyEvent:
        """They fit the schema and not the function: its own types want more. Nothing has run."""
        error = ToolError(
            kind="invalid_parameters",
            message=raised.message,
            details={"errors": [f"{path}: {words}" for path, words in raised.problems], "field": raised.problems[0][0]},
            recovery_hint="Correct these fields and call the tool again.",
            retryable=True,
        )
        return failed(
            self.dispatch.record,
            error,
            now=self.around.now(),
            status="invalid",
            category="schema_validation_failed",
            effects="none",
        )

    def _effects_of_failure(self) -> Effects:
        """A tool that failed said so: what it changed before that is its own affair, not an open question."""
        return "none" if self.dispatch.declaration.effect == "pure" else "possible"

    def _failed(self, error: ToolError, effects: Effects, traceback: str | None = None) -> AnyEvent:
        return failed(
            self.dispatch.record,
            error,
            now=self.around.now(),
            status="failed",
            category=CATEGORY_OF_KIND.get(error.kind, "execution_failed"),
            effects=effects,
            traceback=traceback,
        )

    def _asked_retry(self, ask: ToolRetry) -> AnyEvent:
        record, allowed = self.dispatch.record, self.dispatch.declaration.retries
        left = self.around.retries_left(record.tool_name, allowed)
        hint = "Try differently." if left >= 0 else f"{record.tool_name} was retried {allowed} times: do without it."
        error = ToolError(
            kind="retry_requested" if left >= 0 else "retries_exhausted",
            message=ask.message,
            recovery_hint=ask.hint or hint,
            retryable=left >= 0,
        )
        return failed(
            record,
            error,
            now=self.around.now(),
            status="failed",
            category="execution_failed",
            effects="none",
            asked_retry=True,
        )

    def _unknown(self, why: str) -> AnyEvent:
        """Closed without knowing. If the tool is still busy, its late answer will say."""
        self._unknown_told = True
        abort = self._abort
        return failed(
            self.dispatch.record,
            unknown_error(self.dispatch.record.tool_name, why),
            now=self.around.now(),
            status=self._status() if abort else "failed",
            category=self._category() if abort else "execution_failed",
            effects="unknown",
            abort_reason=self._abort_reason,
        )

    def _status(self) -> FailedStatus:
        """cancelled is stopped on request; interrupted is cut off without anybody's wish."""
        if self._abort == "timeout":
            return "timed_out"
        return "interrupted" if self._abort == "cancel" and self._abort_reason == "runtime_shutdown" else "cancelled"

    def _category(self) -> ErrorCategory:
        return "timeout" if self._abort == "timeout" else "sibling_canceled" if self._abort == "sibling" else "canceled"

    # --- deadline and cancel: a small crash ---------------------------------------------------------------------

    def _out_of_grace(self) -> None:
        """It was told to stop and has not: the runtime goes on without it."""
        if self._delivered or self._abort is None or self._abort == "shutdown":
            return
        self._measure()
        self._goes_on = self._abort in INTERRUPTS and self.busy is not None
        self.around.spawn(self._settle(self._abort))

    def _warning(self) -> list[AnyEvent]:
        """What an operator should know about a call that goes on although nobody wants it."""
        if not self._goes_on:
            return []
        name = self.dispatch.record.tool_name
        words = f"{name} ({self.dispatch.call_id}) was told to stop and did not: it may still be at work"
        return [WarningIssued(code=CANCEL_IGNORED, message=words)]

    async def _settle(self, abort: Abort) -> None:
        dispatch = self.dispatch
        name, effect = dispatch.record.tool_name, dispatch.declaration.effect
        seconds = dispatch.declaration.timeout
        told = f"{name} was stopped."
        if abort == "timeout" and seconds:
            told = f"{name} ran longer than its {seconds:g} s."
        elif abort in _NOT_AGAIN:
            told = f"The process ended while {name} ran, and it is not run again: {_NOT_AGAIN[abort]}."
        over = self._work is None or self._work.result.done()
        if effect == "pure" and not self._goes_on:
            self._finish([self._stopped(told)])
        elif effect == "keyed" and abort == "timeout" and dispatch.attempt == 1 and over:
            self._finish([ToolDispatched(attempt=2, cause="timeout")])
        elif effect == "probeable":
            answer = await self._probe()
            if isinstance(answer, DidNotHappen) and over:
                self._finish([self._stopped(f"{told} It did not take effect.")])
            elif isinstance(answer, Happened):
                await self._shape_and_finish(answer.result)
            else:
                self._finish([*self._warning(), self._unknown(told)])
        else:
            self._finish([*self._warning(), self._unknown(told)])

    def _stopped(self, told: str) -> AnyEvent:
        timeout = self._abort == "timeout"
        return failed(
            self.dispatch.record,
            ToolError(kind="timeout" if timeout else "cancelled", message=told, retryable=timeout),
            now=self.around.now(),
            status=self._status(),
            category=self._category(),
            effects="none",
            abort_reason=self._abort_reason or ABORT_REASON[self._abort or "cancel"],
        )

    async def _probe(self) -> ProbeAnswer:
        """What the tool's own probe says; one that hangs cannot say."""
        assert self._ctx is not None
        asked = asyncio.ensure_future(self.dispatch.tool.ask_probe(self._ctx, self.dispatch.arguments))
        done, _ = await asyncio.wait({asked}, timeout=PROBE_SECONDS)
        if done:
            return StillUnknown("its probe cancelled itself") if asked.cancelled() else asked.result()
        asked.cancel()
        return StillUnknown(f"its probe did not answer within {PROBE_SECONDS:g} s")

    def _answered_late(self, work: "asyncio.Future[Any]") -> None:
        """The runtime went on without this call; now it is known what became of it."""
        if not self._unknown_told or work.cancelled():
            return
        raised = work.exception()
        if isinstance(raised, OutcomeUnknown):
            return  # it cannot say either: the question stays open
        words = clean(_said(raised)) if raised is not None else _words(work.result())
        self.around.late(
            UnknownResolved(
                call_id=self.dispatch.call_id,
                tool_name=self.dispatch.record.tool_name,
                happened=raised is None,
                result=self.around.keys.hide_keys(words)[:2000],
                source="late_answer",
            ),
            self.dispatch.step,
        )


def _violations(raised: BaseException) -> list[AnyEvent]:
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
