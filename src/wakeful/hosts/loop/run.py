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

import json
from typing import Any

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
from wakeful.hosts.loop.locks import HeldLock, acquire
from wakeful.hosts.loop.loop_events import describe
from wakeful.hosts.loop.results import (
    RunStop,
    contended,
    conversation_result,
    failed_stop,
)
from wakeful.hosts.loop.run_ground import RunGround
from wakeful.hosts.loop.run_turns import RunTurns


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
        if held is None and self._options.lock is not None and self._options.session_id:
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
        found, options = self._options.declarations, self._options
        events: list[Any] = [SessionStarted(agent_name=self._ground.agent_id, temporary=True)]
        if found.rejected:
            counts = {"rejected": found.rejected, "rejected_count": len(found.rejected)}
            events.append(ToolDeclarationsRejected(accepted_count=len(found.accepted), **counts))
            if options.tool_executor is not None and not found.accepted:
                events.append(ToolMediationDisabled(reason="all_declarations_rejected", **counts))
        await self._teller.record(*events)
        await self._teller.catch_up()

    async def _lock(self) -> HeldLock | None:
        lock, session_id = self._options.lock, self._options.session_id
        if lock is None or not session_id:
            return None
        held = await acquire(lock, session_id, self._options.lock_ttl)
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
        return conversation_result(self._view, stop, audits, self._sources.declarations, metadata)

    async def _persist(self, result: ConversationResult) -> None:
        persister = self._options.persister
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
