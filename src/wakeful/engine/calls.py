"""The calls of a turn that are under way: begun, told to stop, and over."""

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from wakeful.contracts.envelope import Fact, event_id
from wakeful.contracts.events import (
    AnyEvent,
    HookStarted,
    ToolDispatched,
    ToolFailed,
)
from wakeful.contracts.events.tools import AbortReason
from wakeful.engine.call_surroundings import TurnSurroundings
from wakeful.engine.turn_work import TurnWork
from wakeful.gate.call_at_gate import Admission, CallAtGate
from wakeful.gate.call_failures import Abort
from wakeful.gate.hook_facts import outcomes_of
from wakeful.gate.running_call import RunningCall


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
        self.surroundings = TurnSurroundings(work, post, self._running.__contains__)
        self._stopping: tuple[Abort, AbortReason | None] | None = None
        self.with_locks: set[str] = set()
        """Calls that were begun and have locks: they are given back when the work is over."""
        self._at_locks: set[asyncio.Task[None]] = set()
        """Second runs that wait for their locks."""
        self.repeats: dict[str, Repeat] = {}
        """Calls whose second intent is on its way to disk."""

    def run(self, dispatch: CallAtGate, admission: Admission, first_seq: int) -> None:
        """Let a call run; its intent is on disk, and the first fact of its admission has this number."""
        agent_id = self._work.place.claim.agent_id
        if admission.permission_at is not None:
            dispatch.record.permission_ref = event_id(agent_id, first_seq + admission.permission_at)
        if admission.sandbox_at is not None:
            dispatch.record.sandbox_ref = event_id(agent_id, first_seq + admission.sandbox_at)
        if isinstance(admission.events[0], HookStarted):
            dispatch.record.hook_outcomes = outcomes_of(
                admission.events, lambda index: event_id(agent_id, first_seq + index)
            )
        self._run(dispatch, probe_first=False)

    def under_way(self) -> list[tuple[str, float]]:
        """The tools that are running, and for how many seconds."""
        return [(call.at.tool_name, call.seconds) for call in self._running.values()]

    def run_again(self, repeat: "Repeat", _: int) -> None:
        """Let a call run whose intent was an outcome of its own."""
        self.repeats.pop(repeat.dispatch.call_id, None)
        self._run(repeat.dispatch, probe_first=repeat.probe_first, may_begin=repeat.may_begin)

    def _run(self, dispatch: CallAtGate, *, probe_first: bool, may_begin: bool = True) -> None:
        call = RunningCall(dispatch, self.surroundings, self._outcome)
        self._running[dispatch.call_id] = call
        if dispatch.lock_owner is not None:
            self.with_locks.add(dispatch.call_id)
        if not may_begin:
            call.abandon("changed")
        elif self._stopping is not None and dispatch.attempt > 1 and not self._is_let_finish(dispatch):
            call.abandon(*self._stopping)  # a second run that the turn's end came before
        elif self._has_locks(dispatch):
            call.begin(probe_first=probe_first)
        else:
            self._at_locks.add(self._work.tasks.spawn(self._start_with_locks(call, probe_first)))

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
            self.surroundings.unwritten[dispatch.call_id] = None
        if isinstance(last, ToolDispatched):
            dispatch.attempt = last.attempt
            self.repeats[dispatch.call_id] = Repeat(dispatch)
        notes: list[AnyEvent] = [*self.surroundings.notes.last(dispatch.call_id), *events]
        level = self.surroundings.level_of(dispatch.call_id)
        self._post([work.fact(event, dispatch.step, dispatch.call_id, level) for event in notes])

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
