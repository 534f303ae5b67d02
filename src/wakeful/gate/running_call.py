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
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from wakeful.contracts.errors import OutcomeUnknown, ToolAsks
from wakeful.contracts.events import (
    AnyEvent,
    ToolDispatched,
    ToolFailed,
    ToolResult,
    WarningIssued,
)
from wakeful.contracts.events.tools import AbortReason
from wakeful.contracts.probes import DidNotHappen, Happened, ProbeAnswer, StillUnknown
from wakeful.contracts.tools import ToolError
from wakeful.gate import call_failures
from wakeful.gate.call_at_gate import CallAtGate
from wakeful.gate.call_failures import ABORT_REASON, Abort, AbortCause, log_failure
from wakeful.gate.outcomes import without_keys
from wakeful.gate.result_shape import at_once, makes_short_text, shaped
from wakeful.gate.turn_gate import AfterCall, CallSurroundings
from wakeful.tools.call_runner import CallHandle
from wakeful.tools.context import RunContext
from wakeful.tools.results import ResultRefused

GRACE_SECONDS = 2.0
"""How long a call that was told to stop may take to do so."""
THREAD_GRACE_SECONDS = 0.1
"""The same for a thread, which can only stop if it looks."""
PROBE_SECONDS = 30.0
"""How long a probe may take before it counts as one that cannot say."""

CANCEL_IGNORED = "cancel_ignored"
"""The warning about a call that was told to stop and did not."""

Deliver: TypeAlias = Callable[[CallAtGate, list[AnyEvent]], None]


class RunningCall:
    """One dispatched call: its work, its timers, its one outcome."""

    __slots__ = (
        "_abort",
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
        "at",
    )

    def __init__(self, at: CallAtGate, around: CallSurroundings, deliver: Deliver) -> None:
        self.at = at
        self.around = around
        self._deliver = deliver
        self._delivered = False
        self._unknown_told = False
        self._shaping = False
        """The tool has returned; its result is being made ready."""
        self._shaper: asyncio.Task[None] | None = None
        self._abort: AbortCause | None = None
        self._has_acknowledged = False
        self._goes_on = False
        """It was told to stop, and had not when its time for that was over."""
        self._timers: list[asyncio.TimerHandle] = []
        self._began = 0.0
        self._work: CallHandle | None = None
        self._ctx: RunContext[Any] | None = None

    def begin(self, *, probe_first: bool = False) -> None:
        """Begin. The intent is on disk."""
        seconds = self.at.declaration.timeout
        deadline = datetime.now(UTC) + timedelta(seconds=seconds) if seconds is not None else None
        self._ctx = self.around.context(self.at, deadline)
        if probe_first:
            self.around.spawn(self._probe_then_launch())
        else:
            self._launch()

    def stop(self, why: Abort, reason: AbortReason | None = None) -> None:
        """Nobody waits for this call any more. It is told, and its outcome is delivered within the grace period."""
        if self._delivered or self._shaping or self._abort is not None or self._ctx is None:
            return
        abort = self._abort = AbortCause(why, reason or ABORT_REASON[why])
        if abort.is_interrupt:
            self._ctx.cancelled.on_seen = self._acknowledge
        self._ctx.cancelled.set()
        work = self._work
        grace = GRACE_SECONDS
        if work is not None and not work.is_thread:
            work.result.cancel()
        elif work is not None and not (abort.is_interrupt and self.at.tool.sees_cancel):
            grace = THREAD_GRACE_SECONDS
        self._timers.append(asyncio.get_running_loop().call_later(grace, self._out_of_grace))

    def _acknowledge(self) -> None:
        if not self._has_acknowledged:
            self._has_acknowledged = True
            self.around.acknowledged(self.at)

    def abandon(self, why: Abort, reason: AbortReason | None = None) -> None:
        """Do not begin: the turn is to end. What the run before came to is settled like any other."""
        self._abort = AbortCause(why, reason or ABORT_REASON[why])
        self._ctx = self.around.context(self.at, None)
        self.around.spawn(self._settle(self._abort))

    @property
    def seconds(self) -> float:
        """For how long it has been at work."""
        return time.perf_counter() - self._began if self._began else 0.0

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

    def _launch(self) -> None:
        at, ctx = self.at, self._ctx
        assert ctx is not None
        self._began = time.perf_counter()
        try:
            work = at.tool.start(ctx, at.arguments)
        except Exception as raised:
            self._finish([self._raised(raised)])
            return
        self._work = work
        if work.result.done():
            self._done(work.result)
            return
        work.on_value = self._returned
        work.result.add_done_callback(self._done)
        if at.declaration.timeout is not None:
            loop = asyncio.get_running_loop()
            self._timers.append(loop.call_later(at.declaration.timeout, self.stop, "timeout"))

    async def _probe_then_launch(self) -> None:
        """After a crash: ask what happened before doing anything."""
        answer = await self._probe()
        abort = self._abort
        if abort is not None and abort.why == "shutdown":
            return  # the intent stays open, and nothing may begin any more
        if isinstance(answer, DidNotHappen):
            if abort is None:
                self._launch()
            else:
                self._finish([self._stopped(f"{self.at.tool_name} was stopped before it ran again.", abort)])
        elif isinstance(answer, Happened):
            await self._shape_and_finish(answer.result)
        else:
            reason = f" ({answer.reason})" if answer.reason else ""
            self._finish([self._unknown(f"The process ended while {self.at.tool_name} ran{reason}.")])

    def _done(self, work: "asyncio.Future[Any]") -> None:
        if self._delivered:
            self._answered_late(work)
            return
        if work.cancelled():
            self._measure()
            abort = self._abort
            if abort is None:
                error = ToolError(kind="cancelled", message="the tool cancelled itself")
                self._finish([call_failures.failure(self.at, error, self.around.now(), effects="possible")])
            elif abort.why != "shutdown":
                if abort.is_interrupt:
                    self._acknowledge()
                self.around.spawn(self._settle(abort))
            return  # going down: the intent stays open, and recovery settles it
        raised = work.exception()
        if raised is None:
            if not self._shaping:
                self._returned(work.result())
            return
        self._measure()
        if isinstance(raised, ToolAsks):
            try:
                question = self.around.asks(self.at, raised)
            except Exception as broken:  # the tool cannot say where it works any more: nobody can be asked about that
                question = self._raised(broken)
            self._finish([question])
            return
        self._finish([*call_failures.violations(raised), self._raised(raised)])

    def _returned(self, value: Any) -> None:
        if self._delivered:
            return
        self._shaping = True
        self._measure()
        if not self._finish_at_once(value):
            self._shaper = self.around.spawn(self._shape_and_finish(value))

    def _measure(self) -> None:
        self.at.record.execution_ms = round((time.perf_counter() - self._began) * 1000, 3)

    def _finish_at_once(self, value: Any) -> bool:
        """The common case, without a task: what makes a short text needs no artifact. False when it is another."""
        if not makes_short_text(value, self.around.result_bytes):
            return False
        self._finish([at_once(self.at.record, value, self.around.now(), self.around.keys)])
        if self._work is not None:
            self._work.result.remove_done_callback(self._done)  # all is told: it need not be called to find that out
        return True

    async def _shape_and_finish(self, value: Any) -> None:
        around = self.around
        try:
            self._finish(
                await shaped(
                    *(self.at.record, value),
                    now=around.now,
                    keep=around.keep,
                    keys=around.keys,
                    most=around.result_bytes,
                )
            )
        except ResultRefused as refused:
            self._finish([call_failures.refused_result(self.at, refused, around.now())])

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
            log_failure(last, self.at)
        known = isinstance(last, ToolResult) or (isinstance(last, ToolFailed) and last.effects != "unknown")
        if after is None or not known:
            self._deliver(self.at, events)
        else:
            self._shaper = self.around.spawn(self._heard(after, events))

    async def _heard(self, after: AfterCall, events: list[AnyEvent]) -> None:
        """The outcome, once the hooks after the call have been heard."""
        self._deliver(self.at, await after(self.at, events))

    def _raised(self, raised: BaseException) -> AnyEvent:
        if isinstance(raised, OutcomeUnknown):
            return self._unknown(f"{self.at.tool_name} said: {raised.message}.")
        return call_failures.raised(self.at, raised, self.around.now(), self.around.retries_left)

    def _unknown(self, why: str) -> AnyEvent:
        """Closed without knowing. If the tool is still busy, its late answer will say."""
        self._unknown_told = True
        return call_failures.unknown(self.at, why, self.around.now(), self._abort)

    def _stopped(self, told: str, abort: AbortCause) -> AnyEvent:
        return call_failures.stopped(self.at, told, self.around.now(), abort)

    # --- deadline and cancel: a small crash ---------------------------------------------------------------------

    def _out_of_grace(self) -> None:
        """It was told to stop and has not: the runtime goes on without it."""
        abort = self._abort
        if self._delivered or abort is None or abort.why == "shutdown":
            return
        self._measure()
        self._goes_on = abort.is_interrupt and self.busy is not None
        self.around.spawn(self._settle(abort))

    def _warning(self) -> list[AnyEvent]:
        """What an operator should know about a call that goes on although nobody wants it."""
        if not self._goes_on:
            return []
        name = self.at.tool_name
        words = f"{name} ({self.at.call_id}) was told to stop and did not: it may still be at work"
        return [WarningIssued(code=CANCEL_IGNORED, message=words)]

    async def _settle(self, abort: AbortCause) -> None:
        at, told = self.at, abort.words(self.at)
        effect = at.declaration.effect
        over = self._work is None or self._work.result.done()
        if effect == "pure" and not self._goes_on:
            self._finish([self._stopped(told, abort)])
        elif effect == "keyed" and abort.why == "timeout" and at.attempt == 1 and over:
            self._finish([ToolDispatched(attempt=2, cause="timeout")])
        elif effect == "probeable":
            answer = await self._probe()
            if isinstance(answer, DidNotHappen) and over:
                self._finish([self._stopped(f"{told} It did not take effect.", abort)])
            elif isinstance(answer, Happened):
                await self._shape_and_finish(answer.result)
            else:
                self._finish([*self._warning(), self._unknown(told)])
        else:
            self._finish([*self._warning(), self._unknown(told)])

    async def _probe(self) -> ProbeAnswer:
        """What the tool's own probe says; one that hangs cannot say."""
        assert self._ctx is not None
        asked = asyncio.ensure_future(self.at.tool.ask_probe(self._ctx, self.at.arguments))
        done, _ = await asyncio.wait({asked}, timeout=PROBE_SECONDS)
        if done:
            return StillUnknown("its probe cancelled itself") if asked.cancelled() else asked.result()
        asked.cancel()
        return StillUnknown(f"its probe did not answer within {PROBE_SECONDS:g} s")

    def _answered_late(self, work: "asyncio.Future[Any]") -> None:
        """The runtime went on without this call; now it is known what became of it."""
        if not self._unknown_told or work.cancelled():
            return
        event = call_failures.late_answer(self.at, work, self.around.keys)
        if event is not None:
            self.around.late(event, self.at.step)
