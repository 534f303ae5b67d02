"""What a running call may ask of its turn: its context, its lease, room for output, notes and questions."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import CancelledError
from datetime import datetime
from typing import Any

from wakeful.contracts.approvals import Approval
from wakeful.contracts.authority import known_authority
from wakeful.contracts.content import BlobRef
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import InvalidConfig, OwnerFenced, ToolAsks
from wakeful.contracts.events import ActionRequired, AnyEvent, ToolFailed, UnknownResolved
from wakeful.decisions.levels import Level
from wakeful.decisions.secret_values import SecretValues
from wakeful.engine.progress_notes import ProgressNotes
from wakeful.engine.turn_work import TurnWork
from wakeful.engine.watchers import OutputGlimpsed, OutputLines, ProgressGlimpsed
from wakeful.gate.call_at_gate import CallAtGate
from wakeful.gate.outside_requests import approval_from_inside
from wakeful.gate.turn_gate import AfterCall
from wakeful.tools.context import OutputSink, ProgressSink, RunContext
from wakeful.views.approval_record import approval_of

HOLD_SECONDS = 60.0
"""How long a tool's thread waits to hear that the turn is still ours: twice as long as a lease lasts."""


class TurnSurroundings:
    """The turn as its running calls know it (`gate.turn_gate.CallSurroundings`)."""

    def __init__(self, work: TurnWork, post: Callable[[list[Fact]], None], is_running: Callable[[str], bool]) -> None:
        self._work = work
        self._post = post
        self._is_running = is_running
        self.notes = ProgressNotes(work.clock.monotonic)
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self.unwritten: dict[str, Fact | None] = {}
        """Calls whose unknown outcome is on its way to disk, and the late answer that has to wait for it."""
        self.asked = False
        """A running tool had a question: its record comes as an outcome."""
        self._keys: SecretValues | None = None

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
            derived_from=known_authority(work.state.terms.derived_from),
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
        """Pieces for whoever watches, whole lines for whoever listens."""
        audience, lines = self._work.audience, OutputLines(self.keys.hide_keys)
        if not audience.may_come:
            return None

        def glimpse(text: str) -> OutputGlimpsed:
            return OutputGlimpsed(dispatch.step, dispatch.call_id, dispatch.tool_name, text, dispatch.call.level.id)

        def show(text: str) -> None:
            if audience.watcher is not None:
                audience.glimpse(glimpse(self.keys.hide_keys(text)))
            if audience.seats is not None and (whole := lines.take(text)):
                audience.hear(glimpse(whole))

        def output(text: str) -> None:
            if threading.get_ident() == self._thread:
                show(text)
            elif not self._loop.is_closed():
                self._loop.call_soon_threadsafe(show, text)

        return output

    def _approval(self, dispatch: CallAtGate) -> Approval | None:
        if dispatch.record.approval_id is None:
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
        if self._is_running(dispatch.call_id):
            notes = self.notes.acknowledged(dispatch.call_id)
            level = self.level_of(dispatch.call_id)
            self._post([self._work.fact(note, dispatch.step, dispatch.call_id, level) for note in notes])

    def _progress(
        self, dispatch: CallAtGate, message: str, done: float | None, total: float | None, partial: str
    ) -> None:
        if not self._is_running(dispatch.call_id):
            return  # its outcome is known: a note after that would be about nothing
        if not self._work.config.emit_mcp_progress and dispatch.declaration.runtime_owner == "mcp_server":
            return  # asked for and drained all the same: nobody is told
        name, message = dispatch.tool_name, self.keys.hide_keys(message)
        self._work.audience.glimpse(ProgressGlimpsed(dispatch.step, dispatch.call_id, name, message, done, total))
        due = self.notes.take(dispatch.call_id, message, done, total, self.keys.hide_keys(partial))
        if due is not None:
            level = self.level_of(dispatch.call_id)
            self._post([self._work.fact(due, dispatch.step, dispatch.call_id, level)])

    def level_of(self, call_id: str) -> Level:
        """The level whose call it is."""
        call = self._work.state.tree.calls.get(call_id)
        return call.level if call is not None else self._work.state


def _nobody_answers(turn_id: str) -> OwnerFenced:
    return OwnerFenced(
        f"turn {turn_id} may no longer belong to this process", "Stop working on it; begin nothing more."
    )
