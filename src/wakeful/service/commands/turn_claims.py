"""A turn in our hands: taken, run until it rests and let go; or told from the log, when there is nothing to run.

While somebody else is at it, or at another turn of its thread, it is waited for by whoever has a caller on the line.
"""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

from wakeful.contracts.approvals import Approval, Decided
from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.errors import AgentBusy, TurnUnreadable
from wakeful.contracts.events import ModelFailed, ModelRequested, ModelWaiting, TurnSuspended
from wakeful.engine.admission import (
    NewTurn,
)
from wakeful.engine.agent import Agent
from wakeful.engine.prepare.conversation import keep_warm
from wakeful.engine.prepare.models import ModelChoices
from wakeful.engine.prepare.start_facts import start_facts
from wakeful.engine.prepare.turn import prepare
from wakeful.engine.run_request import Engine, Patience, RunRequest
from wakeful.engine.runner import TurnRunner
from wakeful.engine.state_loader import fold
from wakeful.engine.turn_end import close_turn
from wakeful.engine.turn_messages import in_log_order
from wakeful.ports import Claim, Store, TurnRow
from wakeful.service.commands.approvals import decide
from wakeful.service.commands.client_requests import announce
from wakeful.service.commands.cut_off_turns import close_cut_off
from wakeful.service.commands.run_report import report
from wakeful.service.commands.spend_windows import still_full
from wakeful.service.commands.turns_at_rest import SOON, end_unreadable, rest_until_due
from wakeful.service.hooks import HookRegistry
from wakeful.service.hooks import hooks as default_hooks
from wakeful.service.run_result import RunResult
from wakeful.views.conversation_export import turn_facts


async def recall(engine: Engine, row: TurnRow, agent: Agent[Any, Any] | None) -> RunResult[Any]:
    """A turn that is over or at rest, from the log, for free. Raises TurnDeleted where its thread was deleted."""
    if row.deleted_at is not None:
        from wakeful.service.queries.turns import check_told

        check_told(row)
    recorded = await engine.store.read(row.agent_id, after=row.window_from - 1, thread_id=row.thread_id)
    folded = await fold(engine.store, row, recorded, lost=True)
    facts = await in_log_order(engine.store, row.turn_id, turn_facts(recorded, row.turn_id))
    return await report(engine.store, row, folded.state, lambda: facts, agent)


async def run_on(
    engine: Engine,
    row: TurnRow,
    request: RunRequest,
    choices: ModelChoices | None = None,
    *,
    waits: bool = False,
    new: NewTurn | None = None,
) -> RunResult[Any]:
    """Run it until it rests. A spend window that turns in a moment is waited for, and a provider that is away as long
    as the caller's patience lasts: with the turn at rest meanwhile, and nothing in our hands."""
    result = await _run(engine, row, request, choices, waits, new)
    while (longest := _worth_waiting(result, request.patience)) is not None:
        # Before looking: nothing is missed in between.
        watch = engine.store.watch(row.agent_id, thread_id=row.thread_id, feed="outsiders")
        began = engine.clock.monotonic()
        try:
            now = await engine.store.turn(row.turn_id) or row
            if not now.is_open:
                return await recall(engine, now, request.agent)
            if not await rest_until_due(engine, now, watch, longest):
                break
        finally:
            watch.close()
            if result.waiting_for == "provider":
                request.patience.seconds -= engine.clock.monotonic() - began
        try:
            result = await _run(engine, row, request, choices, waits, None)
        except AgentBusy:
            break  # somebody else was faster with it, and goes on
    return result


def _worth_waiting(result: RunResult[Any], patience: Patience) -> float | None:
    """Seconds for which whoever called may wait for a turn at rest; None: not at all."""
    if result.waiting_for == "money":
        return SOON
    return patience.seconds if result.waiting_for == "provider" and result.mends_by_itself else None


async def _run(
    engine: Engine,
    row: TurnRow,
    request: RunRequest,
    choices: ModelChoices | None,
    waits: bool,
    new: NewTurn | None,
) -> RunResult[Any]:
    """Claim the turn and run it until it rests, after what another process left open in the thread's turns.

    While somebody else runs it, or another turn of its thread, it is waited for: in this process always, in another one
    by those whose caller wants the answer. Raises AgentBusy for all others.
    """
    store, watch = engine.store, None
    reservation = new.reservation if new is not None else None
    claim = new.claim if new is not None else None
    try:
        while claim is None:
            try:
                await close_cut_off(engine, row)
                claim = await store.claim(row.turn_id, reservation=reservation)
                break
            except AgentBusy as busy:
                if not waits and not busy.here:
                    raise
            if watch is None:  # and look again: nothing is missed in between
                watch = store.watch(row.agent_id, thread_id=row.thread_id, feed="lease")
                continue
            now = await store.turn(row.turn_id)
            if now is not None and not now.is_open:
                return await recall(engine, now, request.agent)
            await watch.wait()
    finally:
        if watch is not None:
            watch.close()
    return await run_claimed(engine, row, request, choices, claim, new.facts if new is not None else ())


async def run_claimed(
    engine: Engine,
    row: TurnRow,
    request: RunRequest,
    choices: ModelChoices | None,
    claim: Claim,
    facts: Sequence[StoredFact],
) -> RunResult[Any]:
    """Run a turn that is in our hands until it rests, and let go of it. `facts` are its own, where they are known; of a
    turn that is to be opened, the messages that it takes."""
    store = engine.store
    stack = AsyncExitStack()
    try:
        if not claim.opens and (
            not facts or claim.head != facts[-1].seq
        ):  # somebody has written since, or nobody knows
            facts, row = (), await store.turn(row.turn_id) or row
        if not row.is_open or await _still_waits(engine, row, request):
            return await recall(engine, row, request.agent)
        try:
            prepared = await prepare(engine, row, claim, request, stack, partial(_decided, engine), choices, facts)
        except TurnUnreadable as gone:
            if claim.opens:
                raise  # its messages stay in the queue
            await end_unreadable(engine, row, claim, gone)
            return await recall(engine, await store.turn(row.turn_id) or row, request.agent)
        work, record = prepared
        runner = TurnRunner(work, partial(close_turn, work, record.conversation))
        if work.audience.watcher is not None:
            work.audience.tell(await work.place.known.all())  # what is known already, before what is new
        known = work.place.known.last_seq
        await runner.run(await start_facts(request, work, record, runner.steps))
        if work.state.phase == "ended":
            keep_warm(work.place, work.state, record.conversation)
        if runner.steps.calls.is_awaiting_late_answers:
            engine.linger(runner.steps.calls.late_answers())
        if request.host.announce_requests and any(tool.answered_by == "client" for tool in work.config.tools):
            await announce(engine, [entry for entry in await work.place.known.all() if entry.seq > known])
        if work.state.bill.lost:  # without a lost attempt there is nothing to look for
            await tell_retries([entry for entry in await work.place.known.all() if entry.seq > known])
        return await report(store, row, work.state, work.place.known.for_result, request.agent)
    finally:
        await stack.aclose()
        await store.release(claim)


async def _decided(engine: Engine, record: Approval, decided: Decided, by: str) -> None:
    """An approver at hand decides as anybody would from outside."""
    await decide(engine, record.approval_id, decided, by=by)


DUE_AT_ONCE = ("interrupt", "unpaused", "decision", "retry")
"""Wakes of a turn at rest that is to go on now."""
TAIL = 20
"""What a turn rests on is said among so many of its newest events, unless much was said to it since."""


async def _last_facts(engine: Engine, row: TurnRow) -> list[StoredFact]:
    """The facts of a turn at rest, from the one that says what filled its spend window."""
    last = await engine.store.read(row.agent_id, after=max(0, row.last_seq - TAIL), turn_id=row.turn_id)
    if any(isinstance(entry.fact.event, TurnSuspended) for entry in last[1:]):
        return last
    return await engine.store.read(row.agent_id, turn_id=row.turn_id)


async def _still_waits(engine: Engine, row: TurnRow, request: RunRequest) -> bool:
    """Does everything it rests on still rest with somebody outside? Then taking it up would change nothing."""
    if row.state != "suspended":
        return False
    wake = await engine.store.wake(row.agent_id, row.thread_id, row.turn_id)
    if wake is None or wake.cause in DUE_AT_ONCE:
        return False
    if wake.cause == "paused":
        return True
    now = engine.clock.now()
    if wake.cause in ("window", "provider") and (wake.due_at is None or wake.due_at <= now):
        return False  # what is due goes on, or comes to rest anew, with a later time
    if wake.cause == "provider":
        if await _is_pressed(engine, row, request.patience):
            return False
        if not await engine.store.actions(pending_only=True, turn_id=row.turn_id):
            return True
    if wake.cause in ("window", "somebody") and await still_full(engine, request.agent, await _last_facts(engine, row)):
        return True
    if request.approver is not None:
        return False
    pending = {
        action.action_id
        for action in await engine.store.actions(pending_only=True, turn_id=row.turn_id)
        if action.expires_at > now
    }
    return bool(row.waiting_for) and pending.issuperset(row.waiting_for)


async def _is_pressed(engine: Engine, row: TurnRow, patience: Patience) -> bool:
    """Is the provider to be asked before it is time? Where somebody has to change something, whoever runs the turn may
    just have done so."""
    pressing, patience.is_pressing = patience.is_pressing, False
    if pressing:
        return True
    events = [entry.fact.event for entry in await _last_facts(engine, row)]
    return any(isinstance(event, ModelWaiting) and (event.rests or event.absent) for event in events)


async def rests_for_somebody(store: Store, row: TurnRow) -> bool:
    """Of a turn that waits for a provider: will time alone hardly mend it?"""
    last = await store.read(row.agent_id, after=max(0, row.last_seq - TAIL), turn_id=row.turn_id)
    waits = [entry.fact.event for entry in last if isinstance(entry.fact.event, ModelWaiting)]
    return bool(waits) and waits[-1].rests


HOOK = "provider_turn_retry"


async def tell_retries(facts: Sequence[StoredFact], hooks: HookRegistry = default_hooks) -> None:
    """Tell the observers of `provider_turn_retry` of every attempt that followed a lost one, in the log's order."""
    lost: dict[str | None, ModelFailed] = {}
    for entry in facts:
        event, level = entry.fact.event, entry.fact.level
        if isinstance(event, ModelFailed):
            lost[level] = event
        elif isinstance(event, ModelRequested) and event.attempt > 1 and level in lost:
            failure = lost[level]
            provider, _, model = event.model_ref.partition(":")
            payload = {
                "provider_id": provider,
                "model_id": model,
                "attempt": event.attempt,
                "max_attempts": event.max_attempts,
                "delay_seconds": event.backoff_ms / 1000,
                "status": failure.status,
                "retry_after": failure.retry_after_ms / 1000 if failure.retry_after_ms is not None else None,
                "message": failure.message,
            }
            await hooks.observe(HOOK, payload)
