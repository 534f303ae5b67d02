"""What must hold at the end of a story of agents, whatever happened in it: each check says what is wrong, in words."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from wakeful.contracts.authority import Authority
from wakeful.contracts.envelope import MAIN_THREAD, StoredFact
from wakeful.contracts.events import (
    AgentStateChanged,
    LivenessViolated,
    MessageAdmitted,
    TimerFired,
    TimerFolded,
    TimerMissed,
    ToolStarted,
    TurnStarted,
    WaitCancelled,
    WaitCreated,
    WaitExpired,
    WaitResolved,
    WorkItemCompleted,
    WorkItemPicked,
)
from wakeful.decisions.policy.provenance import is_instruction
from wakeful.ports.wakes import WORK
from wakeful.store.memory import MemoryStore

FROM_OUTSIDE = ("operator_prompt", "channel_event", "webhook_event", "callback_event")
MOST_TURNS_BY_ITSELF = 12
"""Within an hour, of one thread, with nothing to show for it: three are free, then the pauses grow."""
HOUR = 3_600_000_000


def what_is_wrong_with(agent: str, entries: Sequence[StoredFact], acting: str) -> Iterator[str]:
    """In the log of one agent. `acting` is the tool that changes something."""
    yield from _let_in_while_stopped(agent, entries)
    yield from _due_times(entries)
    yield from _waits(agent, entries)
    yield from _raised_authority(agent, entries, acting)
    yield from _spinning(agent, entries)
    yield from _lost_wakes(agent, entries)


async def what_is_left(
    store: MemoryStore, agents: Sequence[str], sent: Mapping[str, tuple[str, str]], now: int
) -> list[str]:
    """Among the rows: messages lost or taken twice, threads that nobody runs, waits and work without an end."""
    found: list[str] = []
    admitted: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    for agent in agents:
        for entry in await store.read(agent):
            event = entry.fact.event
            if isinstance(event, MessageAdmitted):
                admitted[event.message_id] += 1
            elif isinstance(event, TurnStarted):
                taken.update(event.message_ids)
        late = [wait for wait in await store.open_waits(agent) if wait.due_at < now]
        found += [f"wait {wait.wait_id} of {agent} is open past its deadline" for wait in late]
        is_planned = await store.wake(agent, MAIN_THREAD, WORK) is not None
        free = [item for item in await store.open_work_items(agent) if item.blocked_by is None and not is_planned]
        found += [f"work item {item.work_item_id} of {agent} could go on, and nobody goes on with it" for item in free]
    for message, (agent, _) in sent.items():
        row = await store.message(message)
        if row is None or admitted[message] != 1:
            found.append(f"message {message} of {agent} was acknowledged and is not in the log once")
        elif row.state != "processed":
            found.append(f"message {message} of {agent} was acknowledged and is {row.state}")
        if taken[message] > 1:
            found.append(f"message {message} of {agent} was taken by {taken[message]} turns")
    busy = await store.busy_threads()
    return found + [f"thread {thread.thread_id} of {thread.agent_id} is open and nobody runs it" for thread in busy]


def _let_in_while_stopped(agent: str, entries: Sequence[StoredFact]) -> Iterator[str]:
    control = "running"
    for entry in entries:
        event = entry.fact.event
        if isinstance(event, AgentStateChanged):
            control = event.control
        elif isinstance(event, MessageAdmitted) and control == "stopped" and event.message_kind in FROM_OUTSIDE:
            yield f"message {event.message_id} was let in while {agent} was stopped"


def _due_times(entries: Sequence[StoredFact]) -> Iterator[str]:
    settled: dict[str, int] = {}
    for entry in entries:
        event = entry.fact.event
        if isinstance(event, TimerFired | TimerFolded | TimerMissed):
            if event.due_at <= settled.get(event.timer_id, 0):
                yield f"due time {event.due_at} of {event.timer_id} was settled again, by {event.kind}"
            settled[event.timer_id] = event.due_at if isinstance(event, TimerFired) else event.last


def _waits(agent: str, entries: Sequence[StoredFact]) -> Iterator[str]:
    ends: Counter[str] = Counter()
    for entry in entries:
        event = entry.fact.event
        if isinstance(event, WaitCreated):
            ends.setdefault(event.wait_id, 0)
        elif isinstance(event, WaitResolved | WaitExpired | WaitCancelled):
            ends[event.wait_id] += 1
    yield from (f"wait {wait} of {agent} ended {count} times" for wait, count in ends.items() if count > 1)


def _raised_authority(agent: str, entries: Sequence[StoredFact], acting: str) -> Iterator[str]:
    """A turn that comes from outside, however long the way, changes nothing that nobody approved."""
    lowest: dict[str, Authority] = {}
    from_outside: set[str] = set()
    began: list[str] = []
    for entry in entries:
        event = entry.fact.event
        if isinstance(event, MessageAdmitted):
            lowest[event.message_id] = event.derived_from or event.authority_class
        elif isinstance(event, TurnStarted):
            if any(lowest.get(message) == "external_evidence" for message in event.message_ids):
                from_outside.add(entry.fact.turn_id or "")
        elif isinstance(event, ToolStarted) and event.dispatched and event.tool_name.endswith(acting):
            began.append(entry.fact.turn_id or "")
    for turn in began:
        if turn in from_outside:
            yield f"{acting} of {agent} began unasked in {turn}, which comes from outside"


def _lost_wakes(agent: str, entries: Sequence[StoredFact]) -> Iterator[str]:
    """Nothing was ever without a wake: the watchdog found nothing to repair."""
    for entry in entries:
        event = entry.fact.event
        if isinstance(event, LivenessViolated):
            yield f"{agent}: {event.words}"


def _spinning(agent: str, entries: Sequence[StoredFact]) -> Iterator[str]:
    """Turns that only the agent itself asked for, in a row, close together, with nothing to show for them."""
    own: dict[str, bool] = {}
    rows: dict[str, list[int]] = {}
    for entry in entries:
        event = entry.fact.event
        if isinstance(event, WorkItemCompleted | WorkItemPicked):
            rows.clear()
        elif isinstance(event, MessageAdmitted):
            own[event.message_id] = event.message_kind == "system_tick" and is_instruction(event.authority_class)
        elif isinstance(event, TurnStarted):
            row = rows.setdefault(entry.fact.thread_id or "", [])
            if not all(own.get(message, False) for message in event.message_ids) or entry.fact.at < max(row, default=0):
                row.clear()
                continue
            row.append(entry.fact.at)
            if len(row) > MOST_TURNS_BY_ITSELF and row[-1] - row[-MOST_TURNS_BY_ITSELF] < HOUR:
                yield f"{agent} began {len(row)} turns by itself within an hour"
                row.clear()
