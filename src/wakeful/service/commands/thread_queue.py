"""The queue of a thread: run the turn that comes next in it. Messages are put in by `runtime.inbox`.

One entrance to whoever runs agents: it looks when a wake is due, and to look too early changes nothing. What is taken
together is decided in `decisions.intake`; it is taken by the fact that opens the turn.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from wakeful.contracts.envelope import MAIN_THREAD, Fact, StoredFact
from wakeful.contracts.errors import AgentBusy, EventRefused, KeyReused, StoreProblem, WorkspaceMissing
from wakeful.contracts.events import MessageAdmitted, MessageDeferred, MessageExpired
from wakeful.contracts.waking import ContinuationResolution
from wakeful.decisions.intake import MOST_TAKEN, choose_intake, id_of_key, is_over, pause_before_retry
from wakeful.engine.run_request import Engine, RunRequest, ThreadRows
from wakeful.engine.turn_messages import admitted_message, deferred_messages, forget_new, of_turn, queued_messages
from wakeful.ports import Claim, MessageRow, TurnRow, Watch
from wakeful.runtime.continuations import ResolvedQueue, resolve_queue
from wakeful.service.commands.turn_claims import recall, run_claimed, run_on
from wakeful.service.run_result import RunResult

REASON_CHARS = 500
"""Of what kept a turn from beginning, so much is kept with its messages."""


async def take_next(engine: Engine, request: RunRequest) -> RunResult[Any] | None:
    """Run the turn that is next in the request's thread until it rests. None: nothing is due there.

    An open turn comes first: one that was cut off, that is due again, or that a caller opened and nobody waits for any
    more. A turn at rest that is not due holds its thread. Raises AgentBusy while somebody else is at the thread.
    """
    store, agent_id = engine.store, request.agent.name
    thread = request.thread if request.thread is not None else MAIN_THREAD
    refused: list[StoredFact] = []
    while True:
        for row in await store.turns_of_thread(agent_id, thread, open_only=True):
            if row.state == "suspended" and not (request.patience.is_pressing or await _is_due(engine, row)):
                return None
            return await run_on(engine, row, request)
        claim = await store.claim_thread(agent_id, thread, engine.ids.new("turn"))
        try:
            messages, continuation, rows = await _intake(engine, agent_id, thread)
            if not messages:
                return None
            forget_new(store, messages)
            asked = replace(request, continuation=continuation, rows=rows)
            taken = of_turn(claim.turn_id, messages)
            return await run_claimed(engine, _row_to_open(engine, asked, claim), asked, None, claim, taken)
        except EventRefused:
            if not claim.opens or messages == refused:
                raise
            refused = messages  # a caller opened a turn meanwhile, or a message was set aside: look again
        except StoreProblem:
            raise  # nothing can be noted, and the store says itself when to look again
        except Exception as failure:
            if claim.opens:
                await _set_aside(engine, agent_id, thread, messages, failure)
            raise
        finally:
            await store.release(claim)


async def _set_aside(
    engine: Engine, agent_id: str, thread_id: str, messages: Sequence[StoredFact], failure: Exception
) -> None:
    """The turn could not be begun: a tool is missing, say. Its messages are tried again later, and not at once."""
    now, why = engine.clock.now(), f"{type(failure).__name__}: {failure}"[:REASON_CHARS]
    folder = failure.folder if isinstance(failure, WorkspaceMissing) else ""
    events = [
        MessageDeferred(message_id=_event(entry).message_id, deadline=now + pause, reason=why, folder=folder)
        for entry in messages
        for pause in (pause_before_retry(entry.fact.at, now),)
    ]
    await engine.store.admit(agent_id, [Fact(event, now, thread_id) for event in events])


async def message_of_key(engine: Engine, agent_name: str, key: str) -> MessageRow | None:
    """The message that was queued with this key."""
    return await engine.store.message(id_of_key(agent_name, key))


async def follow_queued(engine: Engine, request: RunRequest, message: MessageRow, fingerprint: str) -> RunResult[Any]:
    """The answer to a message of a queue, for a caller with the same key: from the turn that took it, or by running the
    queue of its thread until one has. Raises KeyReused for another content, and for a message that no turn will take.
    """
    there = await admitted_message(engine.store, message.message_id)
    if there is not None and _event(there).fingerprint != fingerprint:
        raise KeyReused(
            f"key {request.key!r} belongs to a message of a queue: {_event(there).prompt_preview!r}",
            "give this run a key of its own, or repeat the message exactly",
        )
    request = replace(request, thread=message.thread_id)
    news = engine.store.watch(message.agent_id, thread_id=message.thread_id, feed="outsiders")
    release: Watch | None = None
    try:
        while not (row := await engine.store.message(message.message_id) or message).turn_id:
            if row.state == "expired":
                raise KeyReused(
                    f"key {request.key!r} belongs to a message that no turn takes any more: its time was over, or its "
                    "queue was cleared",
                    "give this run a key of its own",
                )
            try:
                if await take_next(engine, request) is not None:
                    continue
                is_held = bool(await engine.store.turns_of_thread(row.agent_id, row.thread_id, open_only=True))
            except AgentBusy:
                is_held = True
            if is_held and release is None:  # somebody else is at the thread: look again, so that nothing is missed
                release = engine.store.watch(row.agent_id, thread_id=row.thread_id, feed="lease")
                continue
            await _until_something_happens(engine, row, [news, release] if is_held and release is not None else [news])
    finally:
        for watch in (news, release):
            if watch is not None:
                watch.close()
    turn = await engine.store.turn(row.turn_id)
    assert turn is not None, f"{row.turn_id} took the message"
    if request.on_turn is not None:
        request.on_turn(turn.turn_id, turn.agent_id)
    if not turn.is_open:
        return await recall(engine, turn, request.agent)
    return await run_on(engine, turn, request, waits=True)


async def _until_something_happens(engine: Engine, row: MessageRow, watches: Sequence[Watch]) -> None:
    """In a thread: somebody says something to it or lets go of it, or what waits in it is due."""
    now = engine.clock.now()
    wakes = await engine.store.wakes_of_thread(row.agent_id, row.thread_id)
    waiting = [asyncio.ensure_future(watch.wait()) for watch in watches]
    if later := [wake.due_at for wake in wakes if wake.due_at is not None and wake.due_at > now]:
        waiting.append(asyncio.ensure_future(engine.clock.sleep((min(later) - now) / 1_000_000)))
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()


class _Intake(NamedTuple):
    """What the next turn of a thread begins with."""

    messages: list[StoredFact]
    continuation: ContinuationResolution | None
    """What the first of them means to the agent."""
    rows: ThreadRows | None


async def _intake(engine: Engine, agent_id: str, thread_id: str) -> _Intake:
    """What the next turn takes, after what expired was told so, and what its first message means to the agent."""
    store, now = engine.store, engine.clock.now()
    resolved: ResolvedQueue | None = None
    while resolved is None:
        queue = await queued_messages(store, await store.queued(agent_id, thread_id, limit=MOST_TAKEN))
        if not await _expired(engine, agent_id, thread_id, queue, now):
            wakes = engine.surroundings.wakes and bool(queue)
            resolved = await resolve_queue(engine, agent_id, thread_id, queue) if wakes else ResolvedQueue()
    lead = _event(queue[0]) if queue else None
    deferred = await deferred_messages(store, agent_id, thread_id, lead)
    while await _expired(engine, agent_id, thread_id, [entry for entry, _ in deferred], now):
        deferred = await deferred_messages(store, agent_id, thread_id, lead)
    known = {_event(entry).message_id: entry for entry in (*queue, *(entry for entry, _ in deferred))}
    taken = choose_intake([_event(entry) for entry in queue], [each for _, each in deferred], now)
    first = resolved.resolutions.get(taken[0].message_id) if taken else None
    return _Intake([known[message.message_id] for message in taken], first, resolved.rows)


async def _expired(engine: Engine, agent_id: str, thread_id: str, entries: Sequence[StoredFact], now: int) -> bool:
    """Were there any whose time is over? They are told so."""
    over = [_event(entry).message_id for entry in entries if is_over(_event(entry), now)]
    if over:
        await engine.store.admit(agent_id, [Fact(MessageExpired(message_id=name), now, thread_id) for name in over])
    return bool(over)


def _event(entry: StoredFact) -> MessageAdmitted:
    event = entry.fact.event
    assert isinstance(event, MessageAdmitted)
    return event


async def _is_due(engine: Engine, row: TurnRow) -> bool:
    wake = await engine.store.wake(row.agent_id, row.thread_id, row.turn_id)
    return wake is not None and wake.due_at is not None and wake.due_at <= engine.clock.now()


def _row_to_open(engine: Engine, request: RunRequest, claim: Claim) -> TurnRow:
    """A turn as its row will be, before its start is written."""
    first = claim.head + 1
    return TurnRow(
        turn_id=claim.turn_id,
        agent_id=claim.agent_id,
        agent_name=request.agent.name,
        thread_id=claim.thread_id,
        state="admitted",
        first_seq=first,
        last_seq=first,
        window_from=first,
        turn_index=0,
        key=None,
        fingerprint="",
        prompt_preview="",
        waiting_for=(),
        created_at=engine.clock.now(),
        ended_at=None,
    )
