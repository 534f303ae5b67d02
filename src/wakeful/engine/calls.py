"""The calls of a turn that are under way, and what each of them may ask of the turn."""

import asyncio
import math
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import CancelledError
from datetime import datetime
from typing import Any, NamedTuple

from wakeful.contracts.approvals import Approval
from wakeful.contracts.content import BlobRef
from wakeful.contracts.envelope import Fact, before, event_id
from wakeful.contracts.errors import InvalidConfig, OwnerFenced, ToolAsks
from wakeful.contracts.events import (
    ActionRequired,
    AnyEvent,
    HookStarted,
    ToolDispatched,
    ToolFailed,
    ToolProgress,
    ToolResult,
    UnknownResolved,
)
from wakeful.contracts.events.tools import AbortReason
from wakeful.decisions.levels import Level
from wakeful.decisions.secret_values import SecretValues
from wakeful.engine.turn_work import TurnWork
from wakeful.engine.watchers import OutputGlimpsed, ProgressGlimpsed
from wakeful.gate.call_at_gate import Admission, CallAtGate
from wakeful.gate.call_failures import Abort
from wakeful.gate.hook_facts import outcomes_of
from wakeful.gate.outside_requests import approval_from_inside
from wakeful.gate.running_call import RunningCall
from wakeful.gate.turn_gate import AfterCall
from wakeful.tools.context import OutputSink, ProgressSink, RunContext
from wakeful.tools.eager_start import EagerStarts
from wakeful.tools.results import clean
from wakeful.views.approval_record import approval_of

SECONDS_BETWEEN_FACTS = 1.0
MAX_MESSAGE_CHARS = 500
ACKNOWLEDGED = "cancel_acknowledged"
"""The message of the note that says: the call has seen that it is to stop."""


class _Notes:
    __slots__ = ("began", "count", "pending", "written")

    def __init__(self, now: float) -> None:
        self.began = now
        self.count = 0
        self.written = float("-inf")
        self.pending: ToolProgress | None = None


class ProgressNotes:
    """Which notes become facts."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._calls: dict[str, _Notes] = {}

    def take(
        self, call_id: str, message: str, done: float | None, total: float | None, partial: str = ""
    ) -> ToolProgress | None:
        """A new note; returned when it is due as a fact."""
        now = self._monotonic()
        notes = self._calls.setdefault(call_id, _Notes(now))
        notes.count += 1
        notes.pending = ToolProgress(
            progress_seq=notes.count,
            message=clean(message[:MAX_MESSAGE_CHARS]) or None,
            progress=_finite(done),
            total=_finite(total),
            partial_preview=clean(partial[:MAX_MESSAGE_CHARS]) or None,
            elapsed_ms=int((now - notes.began) * 1000),
        )
        if now - notes.written < SECONDS_BETWEEN_FACTS:
            return None
        notes.written = now
        due, notes.pending = notes.pending, None
        return due

    def acknowledged(self, call_id: str) -> list[ToolProgress]:
        """The call has seen that it is to stop: a fact at once, after what it said before that."""
        now = self._monotonic()
        notes = self._calls.setdefault(call_id, _Notes(now))
        notes.count += 1
        elapsed = int((now - notes.began) * 1000)
        seen = ToolProgress(progress_seq=notes.count, message=ACKNOWLEDGED, elapsed_ms=elapsed)
        before, notes.pending, notes.written = notes.pending, None, now
        return [before, seen] if before is not None else [seen]

    def last(self, call_id: str) -> list[ToolProgress]:
        """The call is over: its last note, when it has not been written."""
        notes = self._calls.pop(call_id, None)
        return [notes.pending] if notes is not None and notes.pending is not None else []


def _finite(number: float | None) -> float | None:
    """JSON has no place for the others."""
    return number if number is not None and math.isfinite(number) else None


HOLD_SECONDS = 60.0
"""How long a tool's thread waits to hear that the turn is still ours: twice as long as a lease lasts."""


def _nobody_answers(turn_id: str) -> OwnerFenced:
    return OwnerFenced(
        f"nobody can say that turn {turn_id} still belongs to this process", "Stop working on it; begin nothing more."
    )


class Repeat(NamedTuple):
    """A second run to come."""

    dispatch: CallAtGate
    probe_first: bool = False
    may_begin: bool = True
    """False: a person let it through and it is another call by now. What its first run came to is settled, no more."""


class Calls:
    """Running calls, by id. Their outcomes are posted to the runner."""

    def __init__(self, work: TurnWork, post: Callable[[list[Fact]], None]) -> None:
        self._work = work
        self._post = post
        self._running: dict[str, RunningCall] = {}
        self._abandoned: list[RunningCall] = []
        """Calls that the runtime went on without while they were still busy."""
        self._notes = ProgressNotes(work.clock.monotonic)
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self.unwritten: dict[str, Fact | None] = {}
        """Calls whose unknown outcome is on its way to disk, and the late answer that has to wait for it."""
        self._stopping: tuple[Abort, AbortReason | None] | None = None
        self.asked = False
        """A running tool had a question: its record comes as an outcome."""
        self.with_locks: set[str] = set()
        """Calls that were begun and have locks: they are given back when the work is over."""
        self._at_locks: set[asyncio.Task[None]] = set()
        """Second runs that wait for their locks."""
        self._keys: SecretValues | None = None
        self.repeats: dict[str, Repeat] = {}
        """Calls whose second intent is on its way to disk."""

    def run(self, dispatch: CallAtGate, admission: Admission, first_seq: int) -> None:
        """Let a call run; its intent is on disk, and the first fact of its admission has this number."""
        self.written_down(dispatch, admission, first_seq)
        self._run(dispatch, probe_first=False)

    def run_ahead(self, dispatch: CallAtGate, admission: Admission) -> None:
        """Let a lone pure call run before its intent is on disk: its outcome may go there with it."""
        assert admission.permission_at is not None
        dispatch.permission_ref = before(len(admission.events) - admission.permission_at)
        self._run(dispatch, probe_first=False, eager=self._work.tasks.eager)

    def is_running(self, call_id: str) -> bool:
        return call_id in self._running

    def written_down(self, dispatch: CallAtGate, admission: Admission, first_seq: int) -> None:
        """The facts that let a call through have their numbers: its outcome will name them by those."""
        agent_id = self._work.place.claim.agent_id
        if admission.permission_at is not None:
            dispatch.permission_ref = event_id(agent_id, first_seq + admission.permission_at)
        if admission.sandbox_at is not None:
            dispatch.sandbox_ref = event_id(agent_id, first_seq + admission.sandbox_at)
        if isinstance(admission.events[0], HookStarted):
            dispatch.hook_outcomes = outcomes_of(admission.events, lambda index: event_id(agent_id, first_seq + index))

    def run_again(self, repeat: "Repeat", _: int) -> None:
        """Let a call run whose intent was an outcome of its own."""
        self.repeats.pop(repeat.dispatch.call_id, None)
        self._run(repeat.dispatch, probe_first=repeat.probe_first, may_begin=repeat.may_begin)

    def _run(
        self, dispatch: CallAtGate, *, probe_first: bool, may_begin: bool = True, eager: EagerStarts | None = None
    ) -> None:
        call = RunningCall(dispatch, self, self._outcome)
        self._running[dispatch.call_id] = call
        if dispatch.lock_owner is not None:
            self.with_locks.add(dispatch.call_id)
        if not may_begin:
            call.abandon("changed")
        elif self._stopping is not None and dispatch.attempt > 1 and not self._is_let_finish(dispatch):
            call.abandon(*self._stopping)  # a second run that the turn's end came before
        elif self._has_locks(dispatch):
            call.begin(probe_first=probe_first, eager=eager)
        else:
            self._at_locks.add(self.spawn(self._start_with_locks(call, probe_first)))

    def _has_locks(self, dispatch: CallAtGate) -> bool:
        """The gate took them for a first run; one after a crash has to take them itself."""
        if dispatch.lock_owner is None:
            return True
        locks = self._work.gate.locks
        assert locks is not None
        return locks.try_claim(dispatch.lock_owner, dispatch.declaration.locks)

    async def _start_with_locks(self, call: RunningCall, probe_first: bool) -> None:
        dispatch, gate = call.at, self._work.gate
        assert gate.locks is not None and dispatch.lock_owner is not None
        try:
            has_them = await gate.locks.claim(dispatch.lock_owner, dispatch.declaration.locks, gate.lock_seconds)
        except asyncio.CancelledError:
            if self._stopping is None or self._stopping[0] == "shutdown":
                raise  # its intent stays open
            call.abandon(*self._stopping)
            return
        if has_them:
            call.begin(probe_first=probe_first)
        else:
            call.abandon("locked")

    def stop(self, why: Abort, reason: AbortReason | None = None, spared: Sequence[str] = ()) -> None:
        """Tell every running call that nobody waits any more; those that are spared are let finish."""
        self._stopping = why, reason
        for task in self._at_locks:
            task.cancel()
        for call_id, call in list(self._running.items()):
            if call_id not in spared:
                call.stop(why, reason)

    def call_off(self, call_id: str) -> None:
        """Tell one call that another one of its round failed."""
        call = self._running.get(call_id)
        if call is not None:
            call.stop("sibling")

    def _is_let_finish(self, dispatch: CallAtGate) -> bool:
        """One that was cut off by a crash and has to be finished, although the turn was told to stop."""
        stopping = self._stopping
        return dispatch.declaration.interrupt_behavior == "block" and stopping is not None and stopping[0] == "cancel"

    async def late_answers(self) -> None:
        """Wait for what is still busy after the runtime went on without it, and for its facts to be written."""
        waiting = [future for call in self._abandoned if (future := call.late_answer) is not None]
        if waiting:
            await asyncio.wait(waiting)
            await asyncio.sleep(0)  # the answers' own facts are on their way now
            await asyncio.gather(*self._work.tasks.pending(), return_exceptions=True)

    @property
    def is_awaiting_late_answers(self) -> bool:
        return any(call.late_answer is not None for call in self._abandoned)

    async def shut_down(self) -> None:
        """The process or the caller goes away: what runs is told, and what finishes in time is still taken in."""
        self.stop("shutdown")
        await asyncio.gather(*(call.stopped() for call in list(self._running.values())))
        # Their intents stay open, and their locks may not: others in this process want them.
        for call in self._running.values():
            if call.at.lock_owner is not None:
                self._release(call.at.lock_owner, call)
        for repeat in self.repeats.values():
            if repeat.dispatch.lock_owner is not None:
                self._release(repeat.dispatch.lock_owner, None)

    def _outcome(self, dispatch: CallAtGate, events: list[AnyEvent]) -> None:
        work = self._work
        call = self._running.pop(dispatch.call_id, None)
        if call is not None and call.late_answer is not None:
            self._abandoned.append(call)
        if dispatch.lock_owner is not None and not isinstance(events[-1], ToolDispatched):
            self._release(dispatch.lock_owner, call)
        last = events[-1]
        if isinstance(last, ToolFailed) and last.effects == "unknown":
            self.unwritten[dispatch.call_id] = None
        if isinstance(last, ToolDispatched):
            dispatch.attempt = last.attempt
            self.repeats[dispatch.call_id] = Repeat(dispatch)
        notes: list[AnyEvent] = [*self._notes.last(dispatch.call_id), *events]
        level = self._level_of(dispatch.call_id)
        self._post([work.fact(event, dispatch.step, dispatch.call_id, level) for event in notes])

    def _level_of(self, call_id: str) -> Level:
        """The level whose call it is."""
        call = self._work.state.tree.calls.get(call_id)
        return call.level if call is not None else self._work.state

    def _release(self, owner: str, call: RunningCall | None) -> None:
        """Give the locks back when the work is truly over: a thread that was abandoned is still at it."""
        locks = self._work.gate.locks
        assert locks is not None
        busy = call.busy if call is not None else None
        if busy is None:
            locks.release(owner)
        else:
            busy.add_done_callback(lambda _: locks.release(owner))

    def release_locks(self) -> None:
        """This runner is done. What it left running keeps its locks until it is over; an outcome gave back the rest."""
        for call in self._running.values():
            if call.at.lock_owner is not None:
                self._release(call.at.lock_owner, call)

    # --- what a running call asks of the turn (`gate.turn_gate.CallSurroundings`) ---------------------------------

    def now(self) -> float:
        return self._work.now()

    @property
    def keys(self) -> SecretValues:
        if self._keys is None:
            self._keys = self._work.gate.keys()
        return self._keys

    @property
    def result_bytes(self) -> int | None:
        return self._work.gate.result_bytes()

    async def keep(self, data: bytes, media_type: str) -> BlobRef:
        return await self._work.place.store.put_blob(self.keys.hide_bytes(data), media_type)

    def retries_left(self, tool_name: str, allowed: int) -> int:
        """How many retries are left after this one; negative when it is one too many."""
        return allowed - self._work.state.retries_asked.get(tool_name, 0) - 1

    def late(self, event: UnknownResolved, step: int) -> None:
        """An answer after the outcome: appended past the owner, because the turn may be over."""
        fact = self._work.fact(event, step)
        if event.call_id in self.unwritten:
            self.unwritten[event.call_id] = fact  # nothing can be resolved that is not on record
        else:
            self.spawn(self._admit(fact))

    def written(self, facts: Sequence[Fact]) -> None:
        """These are on disk: answers that waited for them may follow."""
        for fact in facts:
            if isinstance(fact.event, ToolFailed) and fact.call_id in self.unwritten:
                waiting = self.unwritten.pop(fact.call_id)
                if waiting is not None:
                    self.spawn(self._admit(waiting))

    async def _admit(self, fact: Fact) -> None:
        await self._work.place.store.admit(self._work.place.claim.agent_id, [fact])

    def spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        return self._work.tasks.spawn(work)

    def asks(self, dispatch: CallAtGate, wants: ToolAsks) -> AnyEvent:
        call = self._work.state.tree.calls.get(dispatch.call_id)
        config = call.level.config if call is not None else None  # another agent's, where one works for the turn
        declared = (config or self._work.config).tool(dispatch.declaration.name) or dispatch.declaration
        self.asked = True
        return approval_from_inside(dispatch, declared, wants, self._work.gate)

    @property
    def after_call(self) -> AfterCall | None:
        return self._work.after_call

    def context(self, dispatch: CallAtGate, deadline: datetime | None) -> RunContext[Any]:
        work = self._work
        call = work.state.tree.calls.get(dispatch.call_id)
        return RunContext(
            work.code.deps if call is None else work.code.deps_of(call.level),
            context=work.gate.context,
            principal=work.gate.principal,
            agent=work.gate.agent_of(dispatch.call),
            thread=work.place.row.thread_id,
            turn_id=work.place.row.turn_id,
            call_id=dispatch.call_id,
            attempt=dispatch.attempt,
            idempotency_key=dispatch.idempotency_key,
            budget=work.budget_left,
            usage=lambda: work.state.model_usage.tokens,
            deadline=deadline,
            progress=self._sink(dispatch),
            output=self._output(dispatch),
            keep=self.keep,
            approval=self._approval(dispatch),
            hold=self._hold,
        )

    def _hold(self) -> None:
        """Ask for the lease from a tool's own thread; the loop answers."""
        if threading.get_ident() == self._thread:
            raise InvalidConfig(
                "ctx.hold() was called on the event loop, which has to answer it",
                "call it from a tool that is not async, or in a thread: await asyncio.to_thread(ctx.hold)",
            )
        work = self._work
        asked = work.place.store.hold(work.place.claim)
        try:
            answer = asyncio.run_coroutine_threadsafe(asked, self._loop)
        except RuntimeError:  # the loop is closed: whoever owns the turn now, it is not us
            asked.close()
            raise _nobody_answers(work.place.row.turn_id) from None
        try:
            answer.result(HOLD_SECONDS)
        except (TimeoutError, CancelledError):
            answer.cancel()
            raise _nobody_answers(work.place.row.turn_id) from None

    def _sink(self, dispatch: CallAtGate) -> ProgressSink:
        def progress(message: str, done: float | None, total: float | None, partial: str) -> None:
            if threading.get_ident() == self._thread:
                self._progress(dispatch, message, done, total, partial)
            elif not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._progress, dispatch, message, done, total, partial)

        return progress

    def _output(self, dispatch: CallAtGate) -> OutputSink | None:
        if self._work.audience.watcher is None:
            return None

        def output(text: str) -> None:
            words = self.keys.hide_keys(text)
            level = dispatch.call.level.id
            glimpse = OutputGlimpsed(dispatch.step, dispatch.call_id, dispatch.tool_name, words, level)
            if threading.get_ident() == self._thread:
                self._work.audience.glimpse(glimpse)
            elif not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._work.audience.glimpse, glimpse)

        return output

    def _approval(self, dispatch: CallAtGate) -> Approval | None:
        if dispatch.approval_id is None:
            return None
        call = self._work.state.tree.calls.get(dispatch.call_id)
        if call is None or call.pending is None or not isinstance(call.pending.asked, ActionRequired):
            return None
        return approval_of(self._work.place.row, call, call.pending)

    def acknowledged(self, dispatch: CallAtGate) -> None:
        """The call has seen that it is to stop. From any thread."""
        if threading.get_ident() == self._thread:
            self._acknowledged(dispatch)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._acknowledged, dispatch)

    def _acknowledged(self, dispatch: CallAtGate) -> None:
        if dispatch.call_id in self._running:
            notes = self._notes.acknowledged(dispatch.call_id)
            level = self._level_of(dispatch.call_id)
            self._post([self._work.fact(note, dispatch.step, dispatch.call_id, level) for note in notes])

    def _progress(
        self, dispatch: CallAtGate, message: str, done: float | None, total: float | None, partial: str
    ) -> None:
        if dispatch.call_id not in self._running:
            return  # its outcome is known: a note after that would be about nothing
        if not self._work.config.emit_mcp_progress and dispatch.declaration.runtime_owner == "mcp_server":
            return  # asked for and drained all the same: nobody is told
        name, message = dispatch.tool_name, self.keys.hide_keys(message)
        self._work.audience.glimpse(ProgressGlimpsed(dispatch.step, dispatch.call_id, name, message, done, total))
        due = self._notes.take(dispatch.call_id, message, done, total, self.keys.hide_keys(partial))
        if due is not None:
            level = self._level_of(dispatch.call_id)
            self._post([self._work.fact(due, dispatch.step, dispatch.call_id, level)])


def name_verdict(facts: Sequence[Fact], verdict_at: int, call_id: str) -> None:
    """An outcome that is written with the verdict on its call says how far before it that stands."""
    for place in range(verdict_at + 1, len(facts)):
        fact = facts[place]
        event = fact.event
        if fact.call_id == call_id and isinstance(event, ToolResult | ToolFailed):
            ref = before(place - verdict_at)
            if event.permission_ref != ref:
                fact.event = event.model_copy(update={"permission_ref": ref})
