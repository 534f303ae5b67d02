"""Why a message, a timer, a notice or a turn is as it is; and every agent that is neither idle nor asleep."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime

from wakeful.contracts.errors import AgentNotFound, InvalidRequest, StoreDamaged, TurnNotFound
from wakeful.contracts.events import LimitChanged, ModelWaiting, TurnSuspended, WarningIssued
from wakeful.decisions.limit_words import full_window_words, money_words
from wakeful.engine.run_request import Engine
from wakeful.ports import MessageRow, Store, TurnRow
from wakeful.ports.mailbox import MESSAGES
from wakeful.ports.notices import NOTICES, NoticeRow
from wakeful.ports.runtime_agents import RuntimeAgentRow
from wakeful.ports.tables import Row, Table
from wakeful.ports.timers import TIMERS, TimerRow
from wakeful.runtime.timers import failures_in_a_row
from wakeful.service.queries.agent_lives import why_agent
from wakeful.service.queries.record_names import meant_row, several
from wakeful.service.queries.turns import find_turn, turn_events
from wakeful.views.runtime_records import AgentLife
from wakeful.views.subject_story import SubjectStory

QUIET = ("idle",)
"""Asleep until a timer is idle, too: nothing is owed."""


async def restless_agents(engine: Engine) -> list[AgentLife]:
    """Every agent that owes something, or is kept from it; the broken ones first. Of agents that are idle or asleep
    nothing is looked up."""
    store, found = engine.store, []
    hold = await store.runtime_hold()
    is_held = hold is not None and hold.control != "running"
    names = {row.agent_id for row in await store.runtime_agents()}
    for name in names if is_held else names & await _may_be_restless(store):
        life = await why_agent(engine, name)
        if life.state not in QUIET:
            found.append(life)
    order = ("broken", "waiting", "stopped", "paused", "queued", "running")
    return sorted(found, key=lambda life: (order.index(life.state), life.agent))


def _is_done(row: RuntimeAgentRow) -> bool:
    """A child that is over stays stopped for ever. One that could not be run is for a person to see."""
    return (row.ownership, row.control) == ("parent_supervised", "stopped") and row.cause != "failure"


async def _may_be_restless(store: Store) -> set[str]:
    """Agents with anything open, from rows that are read as a whole: none is left out, and few are among them that are
    quiet after all. A timer is nothing open, unless no wake would look at it."""
    wakes = await store.all_timed_wakes()
    looked_at = {(row.agent_id, row.subject) for row in wakes}
    timers = await store.armed_timers()
    return {
        *(row.agent_id for row in await store.busy_threads()),
        *(row.agent_id for row in await store.open_waits()),
        *(row.agent_id for row in await store.all_pending_hints()),
        *(row.agent_id for row in await store.all_deferred()),
        *(row.agent_id for row in await store.held_agents() if not _is_done(row)),
        *(row.agent_id for row in wakes if row.cause != "timer"),
        *(row.agent_id for row in timers if (row.agent_id, f"timer:{row.timer_id}") not in looked_at),
    }


async def why_subject(engine: Engine, name: str) -> SubjectStory:
    """A message, a timer, a notice or a turn by its id or the beginning of it; a turn by its key, a timer that is armed
    by its name. Raises TurnNotFound, or InvalidRequest for a name that fits several."""
    store = engine.store
    if (message := await _named(store, MESSAGES, name, "msg_")) is not None:
        return await _of_message(engine, message)
    if (timer := await _named(store, TIMERS, name, "timer_")) is not None:
        return await _of_timer(engine, timer)
    if (notice := await _named(store, NOTICES, name, "ntc_")) is not None:
        return _of_notice(notice)
    try:
        turn = await find_turn(store, name)
    except TurnNotFound:
        timers = [row for row in await store.armed_timers() if name and row.name == name]
        scheduled = [row for row in timers if row.cron is not None] or timers
        if len(scheduled) > 1:
            candidates = [f"{row.timer_id}  {row.agent_id}" for row in scheduled]
            raise InvalidRequest(*several(name, "timers", candidates)) from None
        if not scheduled:
            raise
        return await _of_timer(engine, scheduled[0])
    return await _of_turn(engine, turn)


async def _named(store: Store, table: Table[Row], name: str, word: str) -> Row | None:
    """The row with this id, or the one whose id begins so. Raises InvalidRequest where several do."""
    return await meant_row(store, table, name, word, "ids") if name.startswith(word) else None


async def _of_message(engine: Engine, row: MessageRow) -> SubjectStory:
    since = _at(row.admitted_at)
    match row.state:
        case "queued" | "deferred":
            said = f"is {row.state} since {since}"
        case "taken" | "interjected":
            said = f"was taken by turn {row.turn_id}"
        case _:
            said = f"is {row.state}"
    evidence = await _of_thread(engine, row.agent_id, row.thread_id) if row.ended_at is None else ()
    article = "An" if row.kind[0] in "aeio" else "A"
    return SubjectStory(
        kind="message",
        id=row.message_id,
        agent=row.agent_id,
        thread=row.thread_id,
        state=row.state,
        sentence=f"{article} {row.kind} for {row.agent_id}, admitted {since} with the authority {row.authority}, "
        f"{said}.",
        evidence=evidence,
        next_command=f"wakeful events {row.turn_id}" if row.turn_id else f"wakeful why {row.agent_id}",
    )


async def _of_timer(engine: Engine, row: TimerRow) -> SubjectStory:
    schedule = f"by {row.cron!r} in {row.timezone}" if row.cron is not None else "once"
    following = f"due next at {_at(row.due_at)}" if row.due_at is not None and row.state == "armed" else row.state
    evidence = [f"set by {row.armed_by} at {_at(row.armed_at)}", f"fired {row.fired}, missed {row.missed}"]
    if row.last_due is not None:
        evidence.append(f"the due time {_at(row.last_due)} was {row.last_end}")
    failures = await failures_in_a_row(engine.store, row, engine.clock.now())
    if failures:
        evidence.append(f"{failures} due times in a row came to nothing")
    if row.last_message is not None:
        evidence.append(f"message {row.last_message}")
    return SubjectStory(
        kind="timer",
        id=row.timer_id,
        agent=row.agent_id,
        thread=row.thread,
        state=row.state,
        sentence=f"Timer {row.name or row.timer_id} of {row.agent_id}, {schedule}: {following}.",
        evidence=tuple(evidence),
        next_command=f"wakeful timer run {row.timer_id}" if row.state == "armed" else "wakeful timer list",
    )


def _of_notice(row: NoticeRow) -> SubjectStory:
    tries = f" after {row.attempts} tries" if row.attempts > 1 else ""
    evidence = [f"it follows from {row.cause}", f"it says: {row.words}"]
    evidence += [f"it is about {row.about}"] if row.about else []
    evidence += [f"turn {row.turn_id}"] if row.turn_id else []
    evidence += [f"the last try: {row.error}"] if row.error else []
    return SubjectStory(
        kind="notice",
        id=row.notice_id,
        agent=row.agent_id,
        thread=row.thread_id,
        state=row.state,
        sentence=f"A notice about {row.agent_id} ({row.kind}) of {_at(row.created_at)} is {row.state}{tries}"
        + (f", to {row.to}." if row.to else "."),
        evidence=tuple(evidence),
        next_command=f"wakeful notices {row.agent_id}",
    )


async def _of_turn(engine: Engine, row: TurnRow) -> SubjectStory:
    open_since = f", open since {_at(row.created_at)}" if row.is_open else ""
    about = f": {row.prompt_preview[:80]!r}" if row.deleted_at is None else f". Thread {row.thread_id} was deleted"
    pending = await engine.store.actions(pending_only=True, turn_id=row.turn_id)
    evidence = [f"{each.kind} {each.action_id} is pending: {each.tool_name}" for each in pending]
    if row.deleted_at is None and row.first_seq:
        evidence += await _of_log(engine.store, row)
    if row.is_open:
        evidence += await _of_thread(engine, row.agent_id, row.thread_id)
    return SubjectStory(
        kind="turn",
        id=row.turn_id,
        agent=row.agent_name,
        thread=row.thread_id,
        state=row.state,
        sentence=f"Turn {row.turn_id} of {row.agent_name} is {row.state}{open_since}{about}.",
        evidence=tuple(evidence),
        next_command="wakeful approvals" if pending else f"wakeful {_NEXT.get(row.state, 'events')} {row.turn_id}",
    )


_NEXT = {"suspended": "resume"}
"""What somebody may do about a turn in a state that nobody has to decide anything about."""


async def _of_log(store: Store, row: TurnRow) -> list[str]:
    """What the turn was warned of, the limits on money that a request did not fit into, and what it waits for."""
    found: list[str] = []
    rest: TurnSuspended | None = None
    lost: dict[str, ModelWaiting] = {}
    with suppress(StoreDamaged):
        for entry in await turn_events(store, row):
            match entry.fact.event:
                case TurnSuspended() as event:
                    rest = event
                case ModelWaiting() as event:
                    lost[event.model_ref.partition(":")[0]] = event
                case WarningIssued(message=message):
                    found.append(message)
                case LimitChanged(window=window) if window is not None:
                    found.append(full_window_words(window))
                case LimitChanged() as event if event.needed is not None:
                    found.append(money_words(event))
    if row.state == "suspended" and rest is not None:
        found += _rest_words(rest, lost)
    return list(dict.fromkeys(found))


def _rest_words(rest: TurnSuspended, lost: Mapping[str, ModelWaiting]) -> list[str]:
    """What a turn at rest waits for, where no approval and no limit says so already."""
    names = ", ".join(rest.waiting_for)
    match rest.reason:
        case "provider":
            again = f"; it is asked again at {_at(rest.next_try)}" if rest.next_try is not None else ""
            said = [f"the last try: {lost[name].message}" for name in rest.waiting_for if name in lost]
            return [f"it waits for the provider {names}{again}", *said]
        case "paused":
            return ["it was paused"]
        case "tool_missing" | "agent_missing":
            return [f"it waits for code that was not supplied: {names}"]
    return []


async def _of_thread(engine: Engine, agent: str, thread: str) -> tuple[str, ...]:
    """What the agent's thread is at; nothing for an agent of no runtime."""
    try:
        life = await why_agent(engine, agent)
    except (AgentNotFound, TurnNotFound):
        return ()
    found = next((each for each in life.threads if each.thread == thread), None)
    return (life.sentence,) if found is None else (found.sentence, *found.evidence)


def _at(moment: int) -> str:
    return datetime.fromtimestamp(moment / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
