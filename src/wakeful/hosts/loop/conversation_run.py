"""One run of a conversation, from the host's messages to its result. The order, written once:

1. declarations that are not fit are named     as events, before anything else
2. the transcript's lock is taken              contended: a result, and no turn
3. the run is claimed                          claimed before: a failed result, and no turn
4. the one runner runs the turns               the turn runner is its model, the executor its tools; what a client
                                               is to run becomes a request, and the run pauses on it
5. the result is made from the log
6. the persister gets it
7. the lock is let go                          on every way out
8. `completed` is told, last
"""

import contextlib
import json
import secrets
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from wakeful.contracts.audit import ToolAudit
from wakeful.contracts.errors import KeyReused
from wakeful.contracts.events import (
    SessionStarted,
    ToolDeclarationsRejected,
    ToolMediationDisabled,
    TranscriptClosed,
    TranscriptLockContended,
    TranscriptLockReleaseFailed,
    TranscriptPersistFailed,
)
from wakeful.contracts.outcomes import RunFailure
from wakeful.hosts.host_calls import in_its_place
from wakeful.hosts.loop.audit import Auditor
from wakeful.hosts.loop.conversation_result import ConversationResult
from wakeful.hosts.loop.loop_events import describe
from wakeful.hosts.loop.result_export import (
    RunStop,
    contended,
    conversation_result,
    failed_stop,
)
from wakeful.hosts.loop.run_turns import RunGround, RunTurns
from wakeful.hosts.ports import ConversationLock


class LockContention(NamedTuple):
    """Somebody else has the transcript, or the lock cannot be asked."""

    error: str | None = None


class HeldLock:
    """A lock that was taken. `release` may be asked any number of times and lets go once."""

    def __init__(self, lock: ConversationLock, session_id: str, token: str) -> None:
        self._lock = lock
        self._session_id = session_id
        self._token: str | None = token

    async def release(self) -> None:
        """Raises what the host's lock raises."""
        token, self._token = self._token, None
        if token is not None:
            await in_its_place(self._lock.release_session_lock, self._session_id, token)

    async def release_quietly(self) -> None:
        """For a way out on which nobody listens any more."""
        with contextlib.suppress(Exception):
            await self.release()


async def acquire(lock: ConversationLock, session_id: str, ttl: int) -> HeldLock | LockContention:
    """Take the lock. One that raises, or answers with anything but a token, is as good as taken by another."""
    try:
        token = await in_its_place(lock.acquire_session_lock, session_id, ttl)
    except Exception as error:
        return LockContention(f"{type(error).__name__}: {error}")
    if not isinstance(token, str) or not token:
        return LockContention()
    return HeldLock(lock, session_id, token)


class _Held(NamedTuple):
    token: str
    expires: float


class MemoryConversationLock:
    """A `ConversationLock` for the loops of one process."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._held: dict[str, _Held] = {}

    async def acquire_session_lock(self, session_id: str, ttl_seconds: int = 300) -> str | None:
        """A token, or None while another one holds and its time is not over."""
        now = self._monotonic()
        held = self._held.get(session_id)
        if held is not None and held.expires > now:
            return None
        token = secrets.token_hex(16)
        self._held[session_id] = _Held(token, now + max(1, ttl_seconds))
        return token

    async def release_session_lock(self, session_id: str, token: str) -> bool:
        """False, and nothing changes, when the lock belongs to another token by now."""
        held = self._held.get(session_id)
        if held is None or not secrets.compare_digest(held.token, token):
            return False
        del self._held[session_id]
        return True


class OneRun:
    """Everything of one run, while it lasts."""

    def __init__(self, ground: RunGround, turns: RunTurns, claimed: set[str]) -> None:
        self._ground = ground
        self._turns = turns
        self._claimed = claimed
        """Runs that were claimed here: what a store that is gone after its run cannot remember."""
        self._options = ground.options
        self._view = ground.view
        self._sources = ground.sources
        self._teller = ground.teller
        self._auditor = Auditor(ground.hooks, ground.view, ground.sources, ground.teller, turns.context)

    async def carry_out(self) -> ConversationResult:
        """The run, whole. Raises InvalidValue when the host's hook names a principal that is none."""
        await self._turns.learn_principal()
        await self._open()
        held = await self._lock()
        if held is None and self._options.transcript.lock is not None and self._options.session_id:
            return await self._end(contended(), [])
        try:
            stop = await self._claim_and_run()
            await self._teller.catch_up()
            audits = await self._auditor.entries()
            if self._turns.turn_id or stop.budget is not None:
                await self._persist(self._result(stop, audits))
            await self._let_go(held)
            return await self._end(stop, audits)
        finally:
            if held is not None:
                await held.release_quietly()

    # --- before the first turn --------------------------------------------------------------------------------------

    async def _open(self) -> None:
        """The stream of this run begins, with what is to be said about its tools."""
        found, options = self._options.tools.declarations, self._options
        events: list[Any] = [SessionStarted(agent_name=self._ground.agent_id, temporary=True)]
        if found.rejected:
            counts = {"rejected": found.rejected, "rejected_count": len(found.rejected)}
            events.append(ToolDeclarationsRejected(accepted_count=len(found.accepted), **counts))
            if options.tools.executor is not None and not found.accepted:
                events.append(ToolMediationDisabled(reason="all_declarations_rejected", **counts))
        await self._teller.record(*events)
        await self._teller.catch_up()

    async def _lock(self) -> HeldLock | None:
        lock, session_id = self._options.transcript.lock, self._options.session_id
        if lock is None or not session_id:
            return None
        held = await acquire(lock, session_id, self._options.transcript.lock_ttl)
        if isinstance(held, HeldLock):
            return held
        await self._teller.record(TranscriptLockContended(session_id=session_id, error=held.error))
        await self._teller.catch_up()
        return None

    async def _claim_and_run(self) -> RunStop:
        """A run that names itself is run once, here and by everybody who shares the store."""
        options = self._options
        is_named = bool(options.session_id and options.run_id)
        key = json.dumps(["conversation", options.session_id, options.run_id]) if is_named else None
        if key in self._claimed:
            return self._claimed_before()
        if key is not None:
            self._claimed.add(key)
        try:
            return await self._turns.run(key)
        except KeyReused:  # every run has an agent of its own, so the key of another run never fits
            return self._claimed_before()

    def _claimed_before(self) -> RunStop:
        message = f"run {self._options.run_id!r} of session {self._options.session_id!r} was started before"
        return failed_stop(RunFailure(type="run_control", message=message, turn_count=0), retryable=False)

    # --- after the last turn ----------------------------------------------------------------------------------------

    def _result(self, stop: RunStop, audits: list[ToolAudit]) -> ConversationResult:
        metadata = {**self._ground.metadata, **self._turns.compactor.metadata()}
        return conversation_result(self._turns.result, self._view, stop, audits, self._sources.declarations, metadata)

    async def _persist(self, result: ConversationResult) -> None:
        persister = self._options.transcript.persister
        if persister is None:
            return
        try:
            kept = await in_its_place(persister.persist, result.messages, self._ground.request, result)
        except Exception as error:
            await self._teller.record(TranscriptPersistFailed(surface="transcript_persister", error=describe(error)))
            await self._teller.catch_up()
            return
        if isinstance(kept, str) and kept:
            self._ground.metadata["transcript_id"] = kept

    async def _let_go(self, held: HeldLock | None) -> None:
        if held is None:
            return
        try:
            await held.release()
        except Exception as error:
            await self._teller.record(TranscriptLockReleaseFailed(surface="transcript_lock", error=describe(error)))
            await self._teller.catch_up()

    async def _end(self, stop: RunStop, audits: list[ToolAudit]) -> ConversationResult:
        view = self._view
        closed = TranscriptClosed(
            turn=view.turn,
            message_count=len(view.messages),
            tool_results=len(view.calls.executed),
            run_outcome=stop.outcome,
        )
        await self._teller.record(closed)
        await self._teller.catch_up()
        return self._result(stop, audits)
