"""Where each thread of an agent stands, read from rows, and the watchdog that looks at those which owe something.

The watchdog never goes over agents. It reads the tables of what is owed a page at a time, and goes on where it stopped
at its next look. A thread in none of the allowed states is a violation: it is written down, which repairs it, and told.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from wakeful.contracts.envelope import MAIN_THREAD, Fact
from wakeful.contracts.errors import EventRefused
from wakeful.contracts.events import LivenessViolated, TurnSuspended
from wakeful.decisions.waking.liveness import (
    Liveness,
    LivenessViolation,
    Obligation,
    ThreadFacts,
    WakeTime,
    liveness_of,
)
from wakeful.engine.run_request import Engine
from wakeful.ports import TurnRow
from wakeful.ports.runtime_agents import RuntimeAgentRow
from wakeful.ports.wakes import AGENT, HINT, QUEUE

PAGE = 200
"""Rows of each table that one look reads."""
TAIL = 20
"""What a turn rests on is said among so many of its newest events."""


class ThreadName(NamedTuple):
    agent_id: str
    thread_id: str


async def thread_life(
    engine: Engine, row: RuntimeAgentRow, thread_id: str, *, is_run: bool = False
) -> Liveness | LivenessViolation:
    """Where a thread stands. `is_run`: it is known here that a process has it."""
    return liveness_of(await _facts(engine, row, thread_id, is_run=is_run), engine.clock.now())


async def owing_threads(engine: Engine, agent_id: str) -> list[str]:
    """The threads of an agent that owe something; `main` always is among them, and first."""
    store = engine.store
    found = [MAIN_THREAD, *(thread.thread_id for thread in await store.busy_threads(agent_id))]
    found += [wake.thread_id for wake in await store.wakes_of(agent_id)]
    found += [wait.thread_id for wait in await store.open_waits(agent_id)]
    return list(dict.fromkeys(found))


async def cut_off_threads(
    engine: Engine, is_running: Callable[[str, str], bool], agent_id: str | None = None
) -> list[ThreadName]:
    """Threads whose turn no process runs, although it might: no time would make them due."""
    store = engine.store
    found = []
    for thread in await store.busy_threads(agent_id):
        name = ThreadName(thread.agent_id, thread.thread_id)
        if not thread.turns or is_running(*name):
            continue
        row = await store.runtime_agent(thread.agent_id)
        if row is None or row.control != "running" or await store.is_held(*name):
            continue
        turns = await store.turns_of_thread(*name, open_only=True)
        if any(turn.state != "suspended" for turn in turns):
            found.append(name)
    return found


async def _facts(engine: Engine, row: RuntimeAgentRow, thread_id: str, *, is_run: bool) -> ThreadFacts:
    store, agent_id = engine.store, row.agent_id
    turns = await store.turns_of_thread(agent_id, thread_id, open_only=True)
    under_way = next((turn for turn in turns if turn.state != "suspended"), None)
    held = is_run or (under_way is not None and await store.is_held(agent_id, thread_id))
    newest = await store.turns_of_thread(agent_id, thread_id, last=1)
    last = next((turn for turn in newest if not turn.is_open), None)
    owes = await _owed(engine, row, thread_id, turns)
    wakes = {
        wake.subject: WakeTime(wake.due_at, wake.cause, wake.cause_id, wake.alarm)
        for wake in await store.wakes_of_thread(agent_id, thread_id)
    }
    hold = await store.runtime_hold()
    is_held = hold is not None and hold.control != "running" and row.control == "running"
    if hold is not None and is_held:
        why = f"everything was, {hold.reason}" if hold.reason else "everything was"
        row = row._replace(control=hold.control, reason=why, changed_by=hold.changed_by)
    known = {owed.subject for owed in owes}
    owes += [
        Obligation("queue", subject, subject, wake, "work of its own")
        for subject, wake in wakes.items()
        if wake.cause in ("work", "recheck") and subject not in known
    ]
    return ThreadFacts(
        control=row.control,
        control_words=f"{row.reason} ({row.changed_by})" if row.reason else f"by {row.changed_by}",
        is_broken=row.cause == "failure",
        resumes_at=row.resumes_at,
        running_turn=under_way.turn_id if under_way is not None else "",
        is_run=held,
        owes=tuple(owes),
        wakes=wakes,
        last_turn=f"turn {last.turn_id} {last.state}" if last is not None else "",
    )


async def _owed(engine: Engine, row: RuntimeAgentRow, thread_id: str, turns: Sequence[TurnRow]) -> list[Obligation]:
    store, agent_id, now = engine.store, row.agent_id, engine.clock.now()
    found: list[Obligation] = []
    if thread_id == MAIN_THREAD and row.control == "paused" and row.resumes_at is not None:
        wake = WakeTime(row.resumes_at, "resumption", row.changed_by)
        found.append(Obligation("pause", agent_id, AGENT, wake, "the end of the pause"))
    found += [await _at_rest(engine, turn) for turn in turns if turn.state == "suspended"]
    busy = await store.busy_thread(agent_id, thread_id)
    if busy is not None and busy.queued and not busy.turns:
        words = "a message" if busy.queued == 1 else f"{busy.queued} messages"
        found.append(Obligation("queue", thread_id, QUEUE, WakeTime(now, "message", thread_id), words))
    for message in await store.deferred(agent_id, thread_id):
        wake = WakeTime(now, "deferral", message.message_id)
        found.append(
            Obligation("deferral", message.message_id, message.message_id, wake, "a message that was deferred")
        )
    hint = await store.pending_hint(agent_id, thread_id)
    if hint is not None:
        free = None if busy is not None and (busy.turns or busy.queued) else now
        wake = WakeTime(free, "hint", hint.first_hint_id)
        found.append(Obligation("hint", hint.first_hint_id, HINT, wake, "hints that something changed"))
    for wait in await store.open_waits(agent_id):
        if wait.thread_id == thread_id:
            words = f"{wait.reason} (for {wait.wake})"
            wake = WakeTime(wait.due_at, "wait", wait.wait_id)
            found.append(Obligation("wait", wait.wait_id, f"wait:{wait.wait_id}", wake, words))
    if thread_id == MAIN_THREAD:
        for timer in await store.armed_timers(agent_id):
            words = f"the timer {timer.name or timer.timer_id}"
            wake = WakeTime(timer.due_at, "timer", timer.timer_id)
            found.append(Obligation("timer", timer.timer_id, f"timer:{timer.timer_id}", wake, words))
    return found


async def _at_rest(engine: Engine, turn: TurnRow) -> Obligation:
    """What a turn at rest waits for, and the wake that it ought to have."""
    store, now = engine.store, engine.clock.now()
    pending = await store.actions(pending_only=True, turn_id=turn.turn_id)
    reason = await _reason(engine, turn)
    if reason == "paused":
        wake = WakeTime(None, "paused", turn.turn_id)
    elif pending:
        first = min(pending, key=lambda action: action.expires_at)
        wake = WakeTime(first.expires_at, "expiry", first.action_id)
    elif reason == "budget_window":
        wake = WakeTime(now, "window", turn.turn_id)
    elif reason == "provider":
        wake = WakeTime(now, "provider", turn.turn_id)
    else:
        wake = WakeTime(None, "somebody", turn.turn_id)
    asked = [f"{action.tool_name} ({action.action_id})" for action in pending]
    what = f"{_RESTS.get(reason, '')} {', '.join(asked or turn.waiting_for)}".strip() or "somebody"
    return Obligation("turn", turn.turn_id, turn.turn_id, wake, f"{what} in turn {turn.turn_id}")


async def _reason(engine: Engine, turn: TurnRow) -> str:
    last = await engine.store.read(turn.agent_id, after=max(0, turn.last_seq - TAIL), turn_id=turn.turn_id)
    events = [entry.fact.event for entry in last]
    return next((event.reason for event in reversed(events) if isinstance(event, TurnSuspended)), "at rest")


_RESTS: Final = {
    "approval_required": "a decision about",
    "runtime_tool_pending": "the result of",
    "budget_window": "the spending limit",
    "provider": "the provider",
    "tool_missing": "the tool",
    "agent_missing": "the code of agent",
}
"""What a turn at rest waits for, before its name."""


# --- the watchdog --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Watchdog:
    """Looks at threads that owe something, so many at a time, and repairs what would hang for ever."""

    engine: Engine
    has_in_hand: Callable[[str, str], bool]
    """Does the scheduler of this process run the thread, or look at it next?"""
    run_soon: Callable[[Iterable[tuple[str, str]]], None]
    """Has a thread run whose turn no process runs."""
    _places: dict[str, Any] = field(default_factory=dict)
    """By table: the last row of the page before."""
    _found: int = 0
    """Violations so far."""
    _told: dict[str, int] = field(default_factory=dict)
    """By who asks: how many of them they were told of."""

    async def is_well(self, asker: str) -> bool:
        """Has every look since their last question found nothing, and does one find nothing now?"""
        await self.look()
        known, self._told[asker] = self._told.get(asker, 0), self._found
        return self._found == known

    async def look(self) -> list[LivenessViolation]:
        """One page of each table. What was found and repaired."""
        found: list[LivenessViolation] = []
        for name in dict.fromkeys(await self._owing()):
            violation = await self._repaired(name)
            if violation is not None:
                found.append(violation)
        self._found += len(found)
        return found

    async def _owing(self) -> list[ThreadName]:
        store = self.engine.store
        rows = [
            *await self._page("busy", store.busy_threads),
            *await self._page("waits", store.all_open_waits),
            *await self._page("hints", store.all_pending_hints),
            *await self._page("deferred", store.all_deferred),
            *await self._page("timers", store.armed_timers),
        ]
        held = await self._page("held", store.held_agents)
        found = [ThreadName(row.agent_id, row.thread_id) for row in rows]
        return [*found, *(ThreadName(row.agent_id, MAIN_THREAD) for row in held if row.resumes_at is not None)]

    async def _page(self, table: str, read: Callable[..., Awaitable[list[Any]]]) -> list[Any]:
        rows = await read(after=self._places.get(table), limit=PAGE)
        self._places[table] = rows[-1] if len(rows) == PAGE else None
        return rows

    async def _repaired(self, name: ThreadName) -> LivenessViolation | None:
        engine = self.engine
        row = await engine.store.runtime_agent(name.agent_id)
        if row is None or not isinstance(await self._life(row, name), LivenessViolation):
            return None
        life = await self._life(row, name)  # rows are read one after the other: what is wrong twice is wrong
        if not isinstance(life, LivenessViolation):
            return None
        owed = life.owed
        event = LivenessViolated(
            violation=life.violation,
            owed=owed.owed,
            subject=owed.subject,
            owed_id=owed.owed_id,
            due_at=owed.wake.due_at,
            cause=owed.wake.cause,
            words=life.words,
        )
        with suppress(EventRefused):  # it was settled meanwhile
            await engine.store.admit(name.agent_id, [Fact(event, engine.clock.now(), name.thread_id)])
            if life.violation == "cut_off":
                self.run_soon([name])
            return life
        return None

    async def _life(self, row: RuntimeAgentRow, name: ThreadName) -> Liveness | LivenessViolation:
        return await thread_life(self.engine, row, name.thread_id, is_run=self.has_in_hand(*name))
