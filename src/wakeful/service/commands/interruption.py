"""Asking a turn to stop. One that runs is told by whoever runs it; one that rests is ended here and now.

A request is answered at once: `accepted`, or `no_op` with the reason. Each one that is on record is followed by exactly
one of `turn.interrupt.applied` and `turn.interrupt.ignored`. What names nothing in the store has no log to stand in:
it is answered, and that is all.
"""

from contextlib import suppress
from typing import Literal

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import EventRefused, InvalidValue, TurnNotFound
from wakeful.contracts.events import (
    MessageExpired,
    Terminal,
    TurnInterruptApplied,
    TurnInterruptIgnored,
    TurnInterruptRequested,
)
from wakeful.contracts.events.turns import IgnoreReason, InterruptReason
from wakeful.contracts.values import Value
from wakeful.engine.run_request import Engine
from wakeful.ports import MessageRow, TurnRow, Turns
from wakeful.service.commands.turns_at_rest import end_at_rest

PAGE = 100
NAMED = 20
"""At most so many agents are looked at to say whose a thread may be."""


class InterruptAnswer(Value):
    """What became of a request to stop, as far as it is known at once."""

    answer: Literal["accepted", "no_op"]
    interrupt_id: str
    turn_id: str | None = None
    ignore_reason: IgnoreReason | None = None
    """Of a `no_op`: why nothing is done."""

    @property
    def accepted(self) -> bool:
        return self.answer == "accepted"


async def interrupt_turn(
    engine: Engine,
    *,
    turn_id: str | None = None,
    thread_id: str | None = None,
    agent: str | None = None,
    reason: InterruptReason = "user_interrupt",
    queue: Literal["keep", "clear"] = "keep",
    requested_by: str = "caller",
    interrupt_id: str | None = None,
) -> InterruptAnswer:
    """Ask a turn, or the turn that a thread is at, to stop. Does not wait until it has.

    `queue="clear"` also stops the turns of the thread that wait for it, and no turn takes the messages that wait in
    its queue. The same `interrupt_id` again is the same
    request: it is answered as before, and nothing is written. Raises InvalidValue for a target that is none or several.
    """
    wanted = interrupt_id if interrupt_id is not None else engine.ids.new("int")
    row = await _target(engine.store, turn_id, thread_id, agent)
    if row is None:
        ignored: IgnoreReason = "unknown_target"
        if agent is not None and thread_id is not None and await engine.store.thread(agent, thread_id) is not None:
            ignored = "no_active_turn"  # messages wait in it, and no turn was opened yet
            if queue == "clear":
                await _clear(engine, agent, thread_id, requested_by)
        return InterruptAnswer(answer="no_op", interrupt_id=wanted, ignore_reason=ignored)
    answer = await _ask(
        engine, row, TurnInterruptRequested(interrupt_id=wanted, requested_by=requested_by, reason=reason, queue=queue)
    )
    if queue == "clear":
        for waiting in await engine.store.turns_of_thread(row.agent_id, row.thread_id, open_only=True):
            if waiting.first_seq > row.first_seq:
                event = TurnInterruptRequested(
                    interrupt_id=engine.ids.new("int"), requested_by=requested_by, reason=reason, queue=queue
                )
                await _ask(engine, waiting, event)
        await _clear(engine, row.agent_id, row.thread_id, requested_by)
    return answer


async def _clear(engine: Engine, agent_id: str, thread_id: str, requested_by: str) -> None:
    """Let no turn take the messages that wait in a thread, deferred ones included. Their callers' turns are stopped
    one by one; what comes from now on is not meant."""
    store, upto = engine.store, engine.clock.now()
    while True:
        names = [row.message_id for row in await _queued(engine, agent_id, thread_id) if row.admitted_at <= upto]
        names += [wake.subject for wake in await store.deferrals(agent_id, thread_id)]
        if not names:
            return
        events = [MessageExpired(message_id=name, reason=f"{requested_by} cleared the queue") for name in names]
        try:
            await store.admit(agent_id, [Fact(event, engine.clock.now(), thread_id) for event in events])
        except EventRefused:
            continue  # a turn has taken one of them meanwhile: it is left to that


async def _queued(engine: Engine, agent_id: str, thread_id: str) -> list[MessageRow]:
    """The messages of a thread's queue that no turn was opened for."""
    found: list[MessageRow] = []
    page: list[MessageRow] = []
    while page := await engine.store.queued(agent_id, thread_id, after=page[-1] if page else None, limit=PAGE):
        found += [row for row in page if not row.turn_id]
    return found


async def cancel_turn(
    engine: Engine, turn_id: str, *, requested_by: str = "caller", reason: InterruptReason = "user_interrupt"
) -> bool:
    """Ask a turn to stop. False when it is over already. Raises TurnNotFound."""
    answer = await interrupt_turn(engine, turn_id=turn_id, requested_by=requested_by, reason=reason)
    if answer.ignore_reason == "unknown_target":
        raise TurnNotFound(f"there is no turn {turn_id} in {engine.store.location}")
    return answer.ignore_reason != "no_active_turn"


async def cancel_message(engine: Engine, row: MessageRow, *, requested_by: str) -> None:
    """Have the turn of a message stopped, or let none take it. What is over stays as it is."""
    while not row.turn_id and row.state in ("queued", "deferred"):
        event = MessageExpired(message_id=row.message_id, reason=f"{requested_by} cancelled it")
        with suppress(EventRefused):  # a turn has taken it meanwhile
            await engine.store.admit(row.agent_id, [Fact(event, engine.clock.now(), row.thread_id)])
        row = await engine.store.message(row.message_id) or row
    if row.turn_id:
        await cancel_turn(engine, row.turn_id, requested_by=requested_by)


async def supersede(
    engine: Engine, agent_id: str, thread_id: str, *, requested_by: str, before: int | None = None
) -> None:
    """Have every open turn of a thread stopped: a newer message takes their place. `before`: those that began before
    that event."""
    for row in await engine.store.turns_of_thread(agent_id, thread_id, open_only=True):
        if before is not None and row.first_seq > before:
            continue
        event = TurnInterruptRequested(
            interrupt_id=engine.ids.new("int"), requested_by=requested_by, reason="superseded"
        )
        await _ask(engine, row, event)


async def _target(store: Turns, turn_id: str | None, thread_id: str | None, agent: str | None) -> TurnRow | None:
    """The turn that is meant: one by its id, or of a thread its oldest open one, or its last."""
    if (turn_id is None) == (thread_id is None):
        given = f"turn_id={turn_id!r}, thread_id={thread_id!r}"
        raise InvalidValue(
            "invalid_target", "turn_id", f"{given}: exactly one of the two is needed", "give a turn or a thread"
        )
    if turn_id is not None:
        return await store.turn(turn_id)
    assert thread_id is not None
    agents = [agent] if agent is not None else await store.agents_of_thread(thread_id, limit=NAMED)
    if len(agents) > 1:
        last = [row for each in agents for row in await store.turns_of_thread(each, thread_id, last=1)]
        named = ", ".join(sorted({row.agent_name for row in last}))
        raise InvalidValue(
            "invalid_target", "thread_id", f"{thread_id!r} is a thread of {named}", "name the agent, or give a turn_id"
        )
    if not agents:
        return None
    is_open = await store.turns_of_thread(agents[0], thread_id, open_only=True)
    rows = is_open or await store.turns_of_thread(agents[0], thread_id, last=1)
    return rows[0] if rows else None


async def _ask(engine: Engine, row: TurnRow, event: TurnInterruptRequested) -> InterruptAnswer:
    """Put the request on record, and with it that it changes nothing where that is known already."""
    store = engine.store
    before = await store.read(row.agent_id, turn_id=row.turn_id)
    asked = [one.fact.event for one in before if isinstance(one.fact.event, TurnInterruptRequested)]
    if any(earlier.interrupt_id == event.interrupt_id for earlier in asked):
        return await _answered(engine, row, event.interrupt_id)
    ignored: IgnoreReason | None = None
    if not row.is_open:
        ignored = "no_active_turn"
    elif asked:
        ignored = "already_ending"
    await _write(engine, row, event, *([_ignored(event, ignored)] if ignored is not None else []))
    row = await store.turn(row.turn_id) or row
    if row.state == "suspended":
        await end_at_rest(engine, row)
    elif ignored is None and not row.is_open:
        return await _answered(engine, row, event.interrupt_id)
    return InterruptAnswer(
        answer="accepted" if ignored is None else "no_op",
        interrupt_id=event.interrupt_id,
        turn_id=row.turn_id,
        ignore_reason=ignored,
    )


async def _answered(engine: Engine, row: TurnRow, interrupt_id: str) -> InterruptAnswer:
    """What the log says about a request that is in it. One that came after the turn's end is told so here."""
    ended = asked = False
    ignored: IgnoreReason | None = None
    for one in await engine.store.read(row.agent_id, turn_id=row.turn_id):
        event = one.fact.event
        if isinstance(event, Terminal) and not asked:
            ended = True
        elif isinstance(event, TurnInterruptRequested) and event.interrupt_id == interrupt_id:
            asked = True
        elif isinstance(event, TurnInterruptIgnored) and event.interrupt_id == interrupt_id:
            ignored = event.ignore_reason
        elif isinstance(event, TurnInterruptApplied) and event.interrupt_id == interrupt_id:
            break
    if ended and ignored is None:
        ignored = "no_active_turn"
        await _write(engine, row, TurnInterruptIgnored(interrupt_id=interrupt_id, ignore_reason=ignored))
    return InterruptAnswer(
        answer="accepted" if ignored is None else "no_op",
        interrupt_id=interrupt_id,
        turn_id=row.turn_id,
        ignore_reason=ignored,
    )


def _ignored(event: TurnInterruptRequested, reason: IgnoreReason) -> TurnInterruptIgnored:
    return TurnInterruptIgnored(interrupt_id=event.interrupt_id, ignore_reason=reason)


async def _write(engine: Engine, row: TurnRow, *events: TurnInterruptRequested | TurnInterruptIgnored) -> None:
    now = engine.clock.now()
    await engine.store.admit(row.agent_id, [Fact(event, now, row.thread_id, row.turn_id) for event in events])
