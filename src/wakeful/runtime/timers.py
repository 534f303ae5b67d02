"""Timers of a runtime: due times are set, fire as messages, and are told of once, however many passed at a time.

A due time and its message are one transaction, and the message's id follows from both: each due time makes one message
for ever. While the message before is not dealt with, further due times are folded into it; but where each has a thread
of its own, a turn that waits for a person holds up no later one, up to a number of such turns.
"""

import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import NamedTuple, TypeAlias

from wakeful.contracts.authority import Authority
from wakeful.contracts.envelope import MAIN_THREAD, Fact, iso
from wakeful.contracts.errors import EventRefused, InvalidRequest, TimerNotFound
from wakeful.contracts.events import (
    AnyEvent,
    TimerArmed,
    TimerCancelled,
    TimerFired,
    TimerFolded,
    TimerMissed,
    TimerSkipped,
)
from wakeful.contracts.events.waking import FRESH_THREAD
from wakeful.contracts.messages import TimerOrigin
from wakeful.contracts.waking import CatchUp, WakeEntry
from wakeful.decisions.ingress import MAX_REFERENCE_CHARS
from wakeful.decisions.waking.due_times import DueTimes, NoDueTime, Schedule, next_due, schedule_of, settle
from wakeful.decisions.waking.wake_words import timer_words
from wakeful.engine.run_request import Engine
from wakeful.ports import Store, WakeRow
from wakeful.ports.timers import TimerRow
from wakeful.runtime.inbox import check_text
from wakeful.runtime.wake_messages import WakeMessage, message_id_of
from wakeful.settings.spend_windows import zone_named

DEFINED = ("file", "code", "api")
"""Where definitions of agents come from."""
MOST_WORDS = 4_000
MOST_NAME = 200
"""Characters: the names of its threads begin with it."""
MOST_ASKING = 24
"""Turns of one timer that wait for a person, each in a thread of its own. With so many, further times are folded."""
SHORTEST = 6
"""Letters of an id that are enough to name it."""
COMPARED = 1_000
"""Names that a misspelt one is compared with at most."""
_AT_ONCE = 1_000
"""Microseconds: a timer's time is never past when it is set."""
_UNDER_WAY = ("queued", "deferred", "taken", "interjected")
_CANNOT_RUN = ("configuration", "failure", "provider")
"""Why an agent is paused that could not be run."""


@dataclass(frozen=True, slots=True)
class TimerTerms:
    """When an agent is to be woken, and with which words: once at a time, or by a cron line."""

    at: int | None = None
    """Unix microseconds."""
    cron: str | None = None
    timezone: str = "UTC"
    say: str = ""
    name: str = ""
    thread: str = FRESH_THREAD
    """A thread, or a new one for each due time."""
    catch_up: CatchUp = "one"
    armed_by: str = "program"
    derived_from: Authority | None = None
    check: str | None = None
    """A command that is run at each due time; only when it has something to say, the agent is woken."""


class WakeCheckOutcome(NamedTuple):
    """What a timer's check came to."""

    turn_id: str
    said: str
    """Blank: nothing is to be done."""
    derived_from: Authority | None = None


RunCheck: TypeAlias = Callable[[TimerRow, int], Awaitable[WakeCheckOutcome]]
"""Runs the check of a timer for one due time; the same one again gives what it came to."""


async def arm_timer(engine: Engine, agent_id: str, terms: TimerTerms, timer_id: str | None = None) -> TimerRow:
    """Set a due time. Raises InvalidRequest or InvalidConfig with what is wrong and what would be right."""
    now = engine.clock.now()
    event = _armed(terms, timer_id or engine.ids.new("timer"), now)
    await engine.store.admit(agent_id, [Fact(event, now, MAIN_THREAD)])
    row = await engine.store.timer(event.timer_id)
    assert row is not None
    return row


def _armed(terms: TimerTerms, timer_id: str, now: int) -> TimerArmed:
    due_at = _first_due(terms, now)
    check_text("say", terms.say, MOST_WORDS)
    check_text("name", terms.name, MOST_NAME)
    check_text("thread", terms.thread, MAX_REFERENCE_CHARS)
    if terms.check is not None:
        check_text("check", terms.check, MOST_WORDS)
        if not terms.check.strip():
            raise InvalidRequest("the timer's check is blank", 'Give a command: check="find inbox -newer .seen".')
    return TimerArmed(
        timer_id=timer_id,
        due_at=due_at,
        name=terms.name,
        cron=terms.cron,
        timezone=terms.timezone,
        say=terms.say,
        thread=terms.thread,
        catch_up=terms.catch_up,
        armed_by=terms.armed_by,
        derived_from=terms.derived_from,
        check=terms.check,
    )


async def cancel_timer(engine: Engine, timer_id: str, *, by: str, reason: str = "") -> TimerRow:
    """Let a timer be due no more. Raises InvalidRequest for one that is not there, or is over."""
    row = await engine.store.timer(timer_id)
    if row is None:
        raise TimerNotFound(
            f"there is no timer {timer_id!r}", "List the timers: wakeful timer list, or `rt.timers()` in a program."
        )
    event = TimerCancelled(timer_id=timer_id, cancelled_by=by, reason=reason)
    try:
        await engine.store.admit(row.agent_id, [Fact(event, engine.clock.now(), row.thread_id)])
    except EventRefused:
        raise InvalidRequest(f"timer {timer_id!r} is {row.state}", "There is nothing to cancel.") from None
    return await engine.store.timer(timer_id) or row


async def run_timer(engine: Engine, named: str, *, by: str) -> TimerRow:
    """Have a timer run now: a second one with the same words, thread and check, due at once, set by whoever asked.

    So it goes the way of every due time, and the schedule of the first one stays. Raises InvalidRequest where no timer
    is meant, or more than one.
    """
    row = meant_timer(await engine.store.timers(), named)
    behind: Authority | None = row.derived_from
    if behind is None and row.armed_by == "agent":
        behind = "runtime_instruction"  # the agent's own words, whoever has them said now
    terms = TimerTerms(
        at=engine.clock.now() + _AT_ONCE,
        say=row.say,
        name=row.name,
        thread=row.thread,
        armed_by=by,
        derived_from=behind,
        check=row.check_command,
    )
    return await arm_timer(engine, row.agent_id, terms)


def meant_timer(rows: Sequence[TimerRow], named: str) -> TimerRow:
    """The one that an id, the beginning of it, a name, or an agent with no other means. Raises InvalidRequest."""
    armed = [row for row in rows if row.state == "armed"]
    scheduled = [row for row in armed if row.cron is not None]
    ways = (
        [row for row in armed if row.timer_id == named],
        [row for row in scheduled if row.name == named],
        [row for row in scheduled if row.agent_id == named],
        [row for row in armed if named in (row.name, row.agent_id)],
        [row for row in armed if row.timer_id.startswith(named)] if len(named) >= SHORTEST else [],
    )
    found = next((each for each in ways if each), [])
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(row.name or row.timer_id for row in found[:10])
        raise InvalidRequest(f"{named!r} has {len(found)} timers", f"Name one of them: {names}")
    known = sorted({name for row in armed for name in (row.name, row.agent_id) if name})
    near = get_close_matches(named, known[:COMPARED], n=3, cutoff=0.6)
    meant = f"Did you mean {' or '.join(near)}? " if near else ""
    raise TimerNotFound(
        f"there is no timer {named!r}, and no agent {named!r} with one", f"{meant}List the timers: wakeful timer list"
    )


async def defined_wakes(engine: Engine, agent_id: str, entries: Sequence[WakeEntry], source: str) -> list[Fact]:
    """What makes an agent's timers those that its definition says. One that stays the same keeps its due time.

    Raises InvalidRequest or InvalidConfig.
    """
    now = engine.clock.now()
    wanted = {_timer_id(agent_id, entry): entry for entry in entries}
    known = [row for row in await engine.store.timers(agent_id) if row.armed_by in DEFINED]
    armed = {row.timer_id: row for row in known if row.state == "armed"}
    facts = [
        Fact(
            TimerCancelled(timer_id=timer_id, cancelled_by=source, reason="it was removed from the agent's definition"),
            now,
            row.thread_id,
        )
        for timer_id, row in armed.items()
        if timer_id not in wanted
    ]
    for timer_id, entry in wanted.items():
        if timer_id not in armed:
            terms = TimerTerms(
                cron=entry.cron,
                timezone=entry.timezone,
                say=entry.say,
                name=entry.name,
                thread=entry.thread,
                catch_up=entry.catch_up,
                armed_by=source,
                check=entry.check,
            )
            facts.append(Fact(_armed(terms, timer_id, now), now, MAIN_THREAD))
    return facts


def _timer_id(agent_id: str, entry: WakeEntry) -> str:
    """One id for one line of one agent: read again, it is the same timer."""
    named = f"{agent_id}\0{entry.model_dump_json()}"
    return "timer_" + hashlib.sha256(named.encode()).hexdigest()[:24]


async def fire_timer(engine: Engine, run_check: RunCheck, wake: WakeRow) -> None:
    """Settle every due time of a timer up to now; whoever did so before is not contradicted."""
    row, now = await engine.store.timer(wake.cause_id), engine.clock.now()
    if row is None or row.state != "armed" or row.due_at is None or row.due_at > now:
        return
    facts = await _settled(engine, run_check, row, row.due_at)
    with suppress(EventRefused):  # these due times have ended meanwhile
        await engine.store.admit(row.agent_id, facts)


async def _settled(engine: Engine, run_check: RunCheck, row: TimerRow, due_at: int) -> Sequence[Fact]:
    now = engine.clock.now()
    schedule = None if row.cron is None else Schedule(row.cron, zone_named(row.timezone, f"timer {row.timer_id}:"))
    found = settle(due_at, now, row.catch_up, schedule)
    events: list[AnyEvent] = []
    if found.missed is not None:
        following = found.folded.first if found.folded is not None else found.fires
        events.append(_missed(row, found.missed, following if following is not None else found.next_at))
    if found.fires is None:
        return [Fact(event, now, row.thread_id) for event in events]
    pending = await _under_way(engine, row)
    folded = found.folded
    if pending is not None and row.catch_up != "all":
        events.append(_folded(row, _with(folded, found.fires), pending, found.next_at))
        return [Fact(event, now, row.thread_id) for event in events]
    told = message_id_of("timer", row.timer_id, found.fires)
    if await engine.store.message(told) is not None:
        # It came before, when the clock was ahead: nothing fires twice.
        events.append(_folded(row, _with(folded, found.fires), told, found.next_at))
        return [Fact(event, now, row.thread_id) for event in events]
    check: WakeCheckOutcome | None = None
    if row.check_command is not None:
        check = await run_check(row, found.fires)
        if not check.said:
            events.append(_skipped(row, found.fires, folded, check, found.next_at))
            return [Fact(event, engine.clock.now(), row.thread_id) for event in events]
    message = _message(row, found.fires, folded.number if folded is not None else 0, check)
    if folded is not None:
        events.append(_folded(row, folded, message.message_id, found.fires))
    fired = TimerFired(
        timer_id=row.timer_id,
        due_at=found.fires,
        message_id=message.message_id,
        failures=await failures_in_a_row(engine.store, row, now),
        next_at=found.next_at,
        check_turn=check.turn_id if check is not None else "",
    )
    thread = fresh_thread(row, found.fires) if row.thread == FRESH_THREAD else row.thread
    return [
        *(Fact(event, now, row.thread_id) for event in (*events, fired)),
        message.fact(row.agent_id, thread, now),
    ]


def _with(folded: DueTimes | None, newest: int) -> DueTimes:
    """The due times that a newer one stood for, and that one."""
    if folded is None:
        return DueTimes(newest, newest, 1)
    return DueTimes(folded.first, newest, folded.number + 1)


def fresh_thread(row: TimerRow, due_at: int) -> str:
    """The thread of one due time."""
    return _fresh_name(row) + datetime.fromtimestamp(due_at / 1_000_000, UTC).strftime("%Y%m%dT%H%M%SZ")


def _fresh_name(row: TimerRow) -> str:
    """What the names of a timer's own threads begin with."""
    return f"{row.name or row.timer_id}-"


def _message(row: TimerRow, due_at: int, folded: int, check: WakeCheckOutcome | None) -> WakeMessage:
    words, derived_from = timer_words(row.say, row.name, due_at, folded), row.derived_from
    if check is not None:
        words = f"{words}\n\n{check.said}"
        derived_from = derived_from or check.derived_from
    return WakeMessage(
        message_id_of("timer", row.timer_id, due_at),
        words,
        "timer_tick",
        TimerOrigin(timer_id=row.timer_id),
        "runtime_instruction" if row.armed_by == "agent" else "operator_instruction",
        derived_from,
        surface="timer_scheduler",
        source_refs={"timer": row.timer_id, "due_at": iso(due_at)},
    )


def _skipped(
    row: TimerRow, due_at: int, folded: DueTimes | None, check: WakeCheckOutcome, next_at: int | None
) -> TimerSkipped:
    return TimerSkipped(
        timer_id=row.timer_id,
        due_at=folded.first if folded is not None else due_at,
        last=due_at,
        number=1 + (folded.number if folded is not None else 0),
        check_turn=check.turn_id,
        next_at=next_at,
    )


def _missed(row: TimerRow, passed: DueTimes, next_at: int | None) -> TimerMissed:
    return TimerMissed(
        timer_id=row.timer_id,
        due_at=passed.first,
        last=passed.last,
        number=passed.number,
        because="late" if row.catch_up == "none" else "too_many",
        next_at=next_at,
    )


def _folded(row: TimerRow, passed: DueTimes, into: str, next_at: int | None) -> TimerFolded:
    return TimerFolded(
        timer_id=row.timer_id,
        due_at=passed.first,
        last=passed.last,
        number=passed.number,
        into=into,
        next_at=next_at,
    )


async def _under_way(engine: Engine, row: TimerRow) -> str | None:
    """The message of the newest due time, as long as it is not dealt with and the next one has to wait for it."""
    message = await engine.store.message(row.last_message) if row.last_message is not None else None
    if message is None or message.state not in _UNDER_WAY:
        return None
    if row.thread == FRESH_THREAD and message.turn_id and await _is_asking(engine, row, message.turn_id):
        return None
    return message.message_id


async def _is_asking(engine: Engine, row: TimerRow, turn_id: str) -> bool:
    """Does the turn rest until a person decides, in its own thread, and are there not too many like it?"""
    turn = await engine.store.turn(turn_id)
    if turn is None or turn.state != "suspended" or not await engine.store.actions(pending_only=True, turn_id=turn_id):
        return False
    own = _fresh_name(row)
    threads = await engine.store.busy_threads(row.agent_id)
    return sum(thread.turns > 0 and thread.thread_id.startswith(own) for thread in threads) < MOST_ASKING


async def failures_in_a_row(store: Store, row: TimerRow, now: int) -> int:
    """Due times in a row that came to nothing, the newest included: their turn failed, or could not begin because the
    agent's code, a tool of it or its key is missing. One that is still at work counts neither way. Those that came due
    since the agent was paused for it are kept, and count as one."""
    message = await store.message(row.last_message) if row.last_message is not None else None
    turn = await store.turn(message.turn_id) if message is not None and message.turn_id else None
    failures = row.failures
    if turn is not None and not turn.is_open:
        failures = row.failures + 1 if turn.state not in ("completed", "cancelled") else 0
    is_due = row.state == "armed" and row.due_at is not None and row.due_at <= now
    is_queued = turn is None and message is not None and message.state in _UNDER_WAY
    if (is_due or is_queued) and await _is_stuck(store, row.agent_id):
        return failures + 1
    return failures


async def _is_stuck(store: Store, agent_id: str) -> bool:
    agent = await store.runtime_agent(agent_id)
    return agent is not None and agent.control == "paused" and agent.cause in _CANNOT_RUN


def _first_due(terms: TimerTerms, now: int) -> int:
    if (terms.at is None) == (terms.cron is None):
        given = "neither a time nor a cron line" if terms.at is None else "a time and a cron line"
        raise InvalidRequest(f"the timer was given {given}", 'Give one: at=datetime(...), or cron="0 7 * * 1-5".')
    if terms.at is not None:
        if terms.at <= now:
            raise InvalidRequest(f"the timer's time {iso(terms.at)} is past", f"Give one after {iso(now)}.")
        return terms.at
    zone = zone_named(terms.timezone, "the timer:")
    try:
        found = next_due(schedule_of(terms.cron or "", zone, now), now)
    except NoDueTime as error:
        raise InvalidRequest(f"the timer's cron line {error}", 'For example "0 7 * * 1-5": weekdays at 7.') from None
    assert found is not None
    return found


def next_time(cron: str, timezone: str) -> float:
    """When a line is due next, in seconds since the epoch. Raises InvalidConfig for a zone, NoDueTime for a line."""
    now = time.time_ns() // 1_000
    found = next_due(schedule_of(cron, zone_named(timezone, "the timer:"), now), now)
    assert found is not None
    return found / 1_000_000
