"""Before a turn is opened: what each queued message means to its agent, which may be waiting for something else.

A message that the agent does not wait for, and that says something, is deferred: the next turn shows it, and it starts
one itself after a while. One that says nothing is settled, and no model is asked. An agent that starts turn after turn
by itself and gets nowhere is made to wait longer each time.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import NamedTuple

from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.errors import EventRefused
from wakeful.contracts.events import (
    AnyEvent,
    BriefCreated,
    ContinuationResolved,
    GrantReserved,
    MessageAdmitted,
    MessageDeferred,
    MessageSettled,
    ProgressStalled,
    ToolResult,
    ToolStarted,
    TurnStarted,
    WaitResolved,
)
from wakeful.contracts.events.waking import Treatment
from wakeful.contracts.messages import trigger_of
from wakeful.contracts.waking import ClosureDecision, ContinuationResolution, WaitWake
from wakeful.decisions.intake import DEFER_DEADLINE
from wakeful.decisions.task_ends import is_child_result
from wakeful.decisions.waking.backoff import (
    MOST_TURNS,
    PLANS_IN_A_ROW,
    BackoffPause,
    Sign,
    TurnSigns,
    is_self_started,
    pause_after,
)
from wakeful.decisions.waking.continuation import (
    is_contentful,
    kind_to_agent,
    resolve_continuation,
    trigger_from,
)
from wakeful.decisions.work_items.activation import work_signs
from wakeful.decisions.work_items.blockers import no_progress_blocker
from wakeful.engine.run_request import Engine, ThreadRows
from wakeful.engine.turn_messages import admitted_messages
from wakeful.ports import Log, TurnRow
from wakeful.ports.waits import WaitRow
from wakeful.runtime.closures import standing_of
from wakeful.runtime.waits import WAIT, freed_item

LOOKED_BACK = MOST_TURNS + 1 + 2 * PLANS_IN_A_ROW
"""Turns of a thread that are looked at: enough to reach the last step of the backoff behind plans that counted."""
_ENDS: dict[str, tuple[WaitWake, ...]] = {
    "operator_input": ("operator_input",),
    "task_result": ("task_result",),
    "external_event": ("external",),
    "system_tick": ("external",),
}
"""Which waits a message ends, by what it is."""


class ThreadPause(NamedTuple):
    """How long the next self-started turn of a thread has to wait, and what those before it were about."""

    backoff: BackoffPause
    work_items: frozenset[str | None]
    """The items of the messages that began the turns without progress; None: a message had none."""


class ResolvedQueue(NamedTuple):
    """What the messages of a thread mean, and what that was decided by."""

    resolutions: Mapping[str, ContinuationResolution] = MappingProxyType({})
    """By message."""
    rows: ThreadRows | None = None
    """None: something was written since they were read."""


async def resolve_queue(
    engine: Engine, agent_id: str, thread_id: str, queue: Sequence[StoredFact]
) -> ResolvedQueue | None:
    """Decide about the messages of a thread in which nothing runs: what each of them means, by its id.

    None: some of them left the queue, and it has to be looked at again.
    """
    store, now = engine.store, engine.clock.now()
    prior, turns, waits, every_wait = await standing_of(engine, agent_id, thread_id, turns=LOOKED_BACK)
    open_before = len(waits)
    pause: ThreadPause | None = None
    has_changed = False
    found: dict[str, ContinuationResolution] = {}
    for entry in queue:
        message = entry.fact.event
        assert isinstance(message, MessageAdmitted)
        resolution = resolve_continuation(_prior(prior, message), trigger_from(message))
        if resolution is None:
            await _write(store, agent_id, thread_id, now, [MessageSettled(message_id=message.message_id)])
            has_changed = True
        elif resolution.model_visible:
            until = now
            is_own = is_self_started([(kind_to_agent(message), message.authority_class)])
            if turns and (is_own or is_child_result(message)):
                pause = pause or await _pause(engine, agent_id, turns)
                # Where somebody set the clock back, the turn before ended in the future.
                until = min(turns[-1].ended_at or now, now) + pause.backoff.microseconds
            if pause is not None and until > now:
                await _hold_back(engine, agent_id, thread_id, message, pause, until)
                has_changed = True
            else:
                found[message.message_id] = resolution
                await _end_waits(engine, agent_id, thread_id, message, waits)
        else:
            await _set_aside(engine, agent_id, thread_id, message, resolution)
            has_changed = True
    if has_changed:
        return None
    return ResolvedQueue(found, ThreadRows(turns, every_wait) if len(waits) == open_before else None)


def _prior(closure: ClosureDecision, message: MessageAdmitted) -> ClosureDecision:
    """Where the agent stood before the message. What ends a wait of its own was waited for, whatever else is."""
    ended = message.source_refs.get(WAIT)
    if ended is None:
        return closure
    evidence = (f"wait {ended} was due",)
    return ClosureDecision(
        outcome="waiting",
        waiting_reason="awaiting_timer",
        runtime_posture=closure.runtime_posture,
        evidence=evidence,
    )


async def _set_aside(
    engine: Engine, agent_id: str, thread_id: str, message: MessageAdmitted, resolution: ContinuationResolution
) -> None:
    now = engine.clock.now()
    left: MessageDeferred | MessageSettled = MessageSettled(message_id=message.message_id, reason="it says nothing")
    if is_contentful(message):
        why = f"the agent is {resolution.prior_waiting_reason}"
        left = MessageDeferred(message_id=message.message_id, deadline=now + DEFER_DEADLINE, reason=why)
    treatment: Treatment = "deferred" if isinstance(left, MessageDeferred) else "settled"
    resolved = ContinuationResolved(
        message_id=message.message_id,
        message_kind=message.message_kind,
        resolution=resolution,
        treatment=treatment,
    )
    await _write(engine.store, agent_id, thread_id, now, [resolved, left])


async def _hold_back(
    engine: Engine, agent_id: str, thread_id: str, message: MessageAdmitted, pause: ThreadPause, until: int
) -> None:
    turns, name = pause.backoff.turns, message.work_item_id
    words = f"{turns} turns in a row that the agent started itself came to nothing"
    events: list[AnyEvent] = [MessageDeferred(message_id=message.message_id, deadline=until, reason=words)]
    if turns == MOST_TURNS:
        events.append(ProgressStalled(turns=turns, resumes_at=until, work_item_id=name))
        item = await engine.store.work_item(name) if name is not None and pause.work_items == {name} else None
        blocker = no_progress_blocker(item) if item is not None else None
        events += [] if blocker is None else [blocker]
    await _write(engine.store, agent_id, thread_id, engine.clock.now(), events)


async def _end_waits(
    engine: Engine, agent_id: str, thread_id: str, message: MessageAdmitted, waits: list[WaitRow]
) -> None:
    """A turn begins with what was waited for: those waits are over."""
    ends = _ENDS.get(trigger_of(kind_to_agent(message)), ())
    named = {message.task_id, *message.source_refs.values()}
    over = [row for row in waits if row.wake in ends and (row.resource is None or row.resource in named)]
    for row in over:
        waits.remove(row)
        now = engine.clock.now()
        freed = [fact.event for fact in await freed_item(engine.store, row, now)]
        event = WaitResolved(wait_id=row.wait_id, message_id=message.message_id)
        await _write(engine.store, agent_id, thread_id, now, [event, *freed])


async def _write(store: Log, agent_id: str, thread_id: str, now: int, events: Sequence[AnyEvent]) -> None:
    with suppress(EventRefused):  # a turn took the message meanwhile, or the wait has ended
        await store.admit(agent_id, [Fact(event, now, thread_id) for event in events])


# --- progress ------------------------------------------------------------------------------------------------------


async def _pause(engine: Engine, agent_id: str, turns: Sequence[TurnRow]) -> ThreadPause:
    """How long the thread's next self-started turn has to wait. Turns are looked at until one got somewhere."""
    signs: list[TurnSigns] = []
    items: list[set[str | None]] = []
    for turn in turns[::-1]:
        found, named = await _signs(engine, agent_id, turn)
        signs.append(found)
        items.append(named)
        if not found.is_self_started or found.signs - {"plan"}:
            break
    backoff = pause_after(signs)
    return ThreadPause(backoff, frozenset[str | None]().union(*items[: backoff.turns]))


async def _signs(engine: Engine, agent_id: str, turn: TurnRow) -> tuple[TurnSigns, set[str | None]]:
    facts = await engine.store.read(agent_id, turn_id=turn.turn_id)
    started = next((entry.fact.event for entry in facts if isinstance(entry.fact.event, TurnStarted)), None)
    entries = await admitted_messages(engine.store, list(started.message_ids)) if started is not None else []
    messages = [entry.fact.event for entry in entries if isinstance(entry.fact.event, MessageAdmitted)]
    is_own = is_self_started([(kind_to_agent(each), each.authority_class) for each in messages])
    if not is_own and messages and all(map(is_child_result, messages)):
        # Whoever answers the end of one child with another child goes round in a circle.
        is_own = any(isinstance(entry.fact.event, GrantReserved) for entry in facts)
    changing = {
        entry.fact.call_id
        for entry in facts
        if isinstance(entry.fact.event, ToolStarted) and not entry.fact.event.is_read_only
    }
    signs: set[Sign] = work_signs(entry.fact.event for entry in facts)
    for entry in facts:
        event = entry.fact.event
        if isinstance(event, ToolResult) and entry.fact.call_id in changing:
            signs.add("effect")
        elif isinstance(event, BriefCreated) and event.brief_kind == "progress" and entry.fact.call_id is not None:
            signs.add("brief")  # words of the agent; those of the runtime belong to no call
    return TurnSigns(is_own, frozenset(signs)), {message.work_item_id for message in messages}
