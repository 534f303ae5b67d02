"""What must hold at the end of a story of agents, whatever happened in it: each check says what is wrong, in words."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from wakeful.contracts.envelope import MAIN_THREAD, StoredFact
from wakeful.contracts.events import (
    AgentCreated,
    AgentStateChanged,
    LivenessViolated,
    MessageAdmitted,
    ModelCompleted,
    ModelRequested,
    TaskCreated,
    TaskEnded,
    Terminal,
    TimerArmed,
    TimerFired,
    TimerFolded,
    TimerMissed,
    ToolStarted,
    TriggerDelivered,
    TurnFailed,
    TurnInterruptRequested,
    TurnStarted,
    WaitCancelled,
    WaitCreated,
    WaitExpired,
    WaitResolved,
    WakeMoved,
    WorkItemCompleted,
    WorkItemPicked,
)
from wakeful.decisions.policy.provenance import is_instruction
from wakeful.ports.wakes import WORK
from wakeful.store.memory import MemoryStore

Logs = Mapping[str, Sequence[StoredFact]]
FROM_OUTSIDE = ("operator_prompt", "channel_event", "webhook_event", "callback_event")
PERSON = "ada"
"""Who decides and cancels in the world."""
ACTING = ("act", "start")
"""Tools that change something."""
OUTSIDE = "external_evidence"
SECONDS_BETWEEN = {"*/20 * * * *": 1_200, "0 7 * * *": 86_400}
"""By cron line: due times in the world."""
MOST_TURNS_BY_ITSELF = 12
"""Within an hour, of one thread, with nothing to show for it: three are free, then the pauses grow."""
HOUR_US = 3_600_000_000
PRICE = Decimal("0.10")
"""Of one request."""


def what_is_wrong_with(agent: str, entries: Sequence[StoredFact]) -> Iterator[str]:
    """In the log of one agent."""
    yield from _let_in_while_stopped(agent, entries)
    yield from _due_times(entries)
    yield from _waits(agent, entries)
    yield from _raised_authority(agent, entries)
    yield from _spinning(agent, entries)
    yield from _lost_wakes(agent, entries)
    yield from _failed(agent, entries)


async def what_is_left(store: MemoryStore, logs: Logs, sent: Mapping[str, tuple[str, str]], now: int) -> list[str]:
    """Among the rows: messages lost or taken twice, threads that nobody runs, waits and work without an end."""
    found: list[str] = []
    admitted: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    owner: dict[str, str] = {}
    for agent, entries in logs.items():
        for entry in entries:
            event = entry.fact.event
            if isinstance(event, MessageAdmitted):
                admitted[event.message_id] += 1
                owner[event.message_id] = agent
            elif isinstance(event, TurnStarted):
                taken.update(event.message_ids)
        row = await store.runtime_agent(agent)
        is_over = row is not None and row.control == "stopped"  # a child: nothing more of it runs
        late = [wait for wait in await store.open_waits(agent) if wait.due_at < now and not is_over]
        found += [f"wait {wait.wait_id} of {agent} is open past its deadline" for wait in late]
        is_planned = await store.wake(agent, MAIN_THREAD, WORK) is not None
        is_left = is_planned or _is_to_be_quiet(entries)
        free = [item for item in await store.open_work_items(agent) if item.blocked_by is None and not is_left]
        found += [f"work item {item.work_item_id} of {agent} could go on, and nobody goes on with it" for item in free]
    for message, (agent, _) in sent.items():
        sent_row = await store.message(message)
        if sent_row is None or admitted[message] != 1:
            found.append(f"message {message} of {agent} was acknowledged and is not in the log once")
        elif sent_row.state != "processed":
            found.append(f"message {message} of {agent} was acknowledged and is {sent_row.state}")
    for message, agent in owner.items():
        known = await store.message(message)
        if taken[message] > 1:
            found.append(f"message {message} of {agent} was taken by {taken[message]} turns")
        if known is None or known.state not in ("processed", "expired"):
            found.append(f"message {message} of {agent} is {known.state if known is not None else 'gone'} at the end")
    busy = await store.busy_threads()
    found += [f"thread {thread.thread_id} of {thread.agent_id} is open and nobody runs it" for thread in busy]
    found += [f"task {task.task_id} of {task.agent_id} never ended" for task in await store.open_tasks()]
    due = await store.due_wakes(now, limit=100)
    return found + [f"{wake.subject} of {wake.agent_id} is due, and nothing comes of it" for wake in due]


def _is_to_be_quiet(entries: Sequence[StoredFact]) -> bool:
    """Did a person cancel the newest turn of an agent's own thread? Its work is left alone until somebody speaks."""
    newest: tuple[str, str | None] = ("", None)
    by_person: set[str | None] = set()
    for fact in (entry.fact for entry in entries):
        if isinstance(fact.event, Terminal) and fact.thread_id == MAIN_THREAD:
            newest = fact.event.status, fact.turn_id
        elif isinstance(fact.event, TurnInterruptRequested) and fact.event.requested_by == PERSON:
            by_person.add(fact.turn_id)
    return newest[0] == "cancelled" and newest[1] in by_person


def what_is_wrong_between(logs: Logs) -> Iterator[str]:
    """Tasks and what is told of them, in whichever log that is."""
    messages = [
        entry.fact.event
        for entries in logs.values()
        for entry in entries
        if isinstance(entry.fact.event, MessageAdmitted)
    ]
    told: Counter[str] = Counter(each.task_id or "" for each in messages if each.message_kind == "task_result")
    behind: dict[str, list[MessageAdmitted]] = {}
    for message in messages:
        behind.setdefault(message.task_id or "", []).append(message)
    for agent, entries in logs.items():
        begun: dict[str, TaskCreated] = {}
        ended: Counter[str] = Counter()
        for entry in entries:
            event = entry.fact.event
            if isinstance(event, TaskCreated):
                begun[event.task_id] = event
            elif isinstance(event, TaskEnded):
                ended[event.task_id] += 1
        for task, event in begun.items():
            if (ended[task], told[task]) != (1, 1):
                yield f"task {task} of {agent} ended {ended[task]} times and was told {told[task]} times"
            if event.derived_from == OUTSIDE:
                raised = [each.message_id for each in behind.get(task, ()) if each.derived_from != OUTSIDE]
                yield from (f"message {each} hides that task {task} of {agent} comes from outside" for each in raised)


def overspent(logs: Logs, agent: str, hourly: Decimal, granted: Mapping[int, Decimal]) -> Iterator[str]:
    """More than an hour's money, by an agent and all that it made."""
    hours: Counter[int] = Counter()
    for name, entries in logs.items():
        if agent not in _lineage(logs, name):
            continue
        asked = 0
        for entry in entries:
            event = entry.fact.event
            if isinstance(event, ModelRequested):
                asked = entry.fact.at
            elif isinstance(event, ModelCompleted):
                hours[asked // HOUR_US] += 1
    for hour, requests in hours.items():
        allowed = hourly + granted.get(hour, Decimal(0))
        if requests * PRICE > allowed:
            yield f"{agent} spent {requests * PRICE} dollars in hour {hour}, and {allowed} were allowed"


def _lineage(logs: Logs, name: str) -> list[str]:
    found: list[str] = []
    parent: str | None = name
    while parent is not None and parent in logs:
        found.append(parent)
        first = logs[parent][0].fact.event
        parent = first.lineage_parent_agent_id if isinstance(first, AgentCreated) else None
    return found


def _let_in_while_stopped(agent: str, entries: Sequence[StoredFact]) -> Iterator[str]:
    control = "running"
    for entry in entries:
        event = entry.fact.event
        if isinstance(event, AgentStateChanged):
            control = event.control
        elif isinstance(event, MessageAdmitted) and control == "stopped" and event.message_kind in FROM_OUTSIDE:
            yield f"message {event.message_id} was let in while {agent} was stopped"


def _due_times(entries: Sequence[StoredFact]) -> Iterator[str]:
    """Each is accounted for once, and none is left out: counted from the cron line, not from what a fact says. After a
    clock that was ahead they are counted anew; no due time fires twice all the same."""
    following: dict[str, int] = {}
    steps: dict[str, int] = {}
    fired: set[tuple[str, int]] = set()
    for entry in entries:
        event = entry.fact.event
        if isinstance(event, TimerArmed):
            following[event.timer_id] = event.due_at
            steps[event.timer_id] = SECONDS_BETWEEN.get(event.cron or "", 0) * 1_000_000
        elif isinstance(event, WakeMoved) and event.cause == "timer":
            step = steps[event.cause_id]
            if not event.moved_to - step <= entry.fact.at < event.moved_to:
                yield f"{event.cause_id} was moved to {event.moved_to} at {entry.fact.at}, and not to its next due time"
            following[event.cause_id] = event.moved_to
        elif isinstance(event, TimerFired | TimerFolded | TimerMissed):
            expected, step = following[event.timer_id], steps[event.timer_id]
            first, last, number = event.due_at, event.due_at, 1
            if not isinstance(event, TimerFired):
                last, number = event.last, event.number
            elif (event.timer_id, first) in fired:
                yield f"{event.timer_id} fired twice for {first}"
            else:
                fired.add((event.timer_id, first))
            if first != expected or last - first != (number - 1) * step:
                yield f"{event.kind} settles {number} from {first} of {event.timer_id}, and {expected} was the next"
            following[event.timer_id] = last + step


def _waits(agent: str, entries: Sequence[StoredFact]) -> Iterator[str]:
    ends: Counter[str] = Counter()
    for entry in entries:
        event = entry.fact.event
        if isinstance(event, WaitCreated):
            ends.setdefault(event.wait_id, 0)
        elif isinstance(event, WaitResolved | WaitExpired | WaitCancelled):
            ends[event.wait_id] += 1
    yield from (f"wait {wait} of {agent} ended {count} times" for wait, count in ends.items() if count > 1)


def _raised_authority(agent: str, entries: Sequence[StoredFact]) -> Iterator[str]:
    """What comes from outside, however long the way, is known as that, and changes nothing that nobody approved."""
    lowest: dict[str, str] = {}
    from_outside: set[str] = set()
    with_body: dict[str, str] = {}
    for entry in entries:
        event, turn = entry.fact.event, entry.fact.turn_id or ""
        if isinstance(event, TriggerDelivered):
            if event.body_bytes and event.message_id is not None:
                with_body[event.message_id] = event.trigger_id
        elif isinstance(event, MessageAdmitted):
            behind = event.derived_from or event.authority_class
            lowest[event.message_id] = behind
            if behind != OUTSIDE and (event.message_kind == "webhook_event" or event.message_id in with_body):
                yield f"message {event.message_id} of {agent} hides that it comes from outside"
        elif isinstance(event, TurnStarted):
            if any(lowest.get(message) == OUTSIDE for message in event.message_ids):
                from_outside.add(turn)
        elif isinstance(event, ToolStarted) and event.dispatched and event.tool_name.endswith(ACTING):
            if turn in from_outside:
                yield f"{event.tool_name} of {agent} began unasked in {turn}, which comes from outside"
        elif isinstance(event, TaskCreated):
            if event.parent_turn_id in from_outside and event.derived_from != OUTSIDE:
                yield f"task {event.task_id} of {agent} hides that it comes from outside"
        elif isinstance(event, WaitCreated) and turn in from_outside and event.derived_from != OUTSIDE:
            yield f"wait {event.wait_id} of {agent} hides that it comes from outside"


def _lost_wakes(agent: str, entries: Sequence[StoredFact]) -> Iterator[str]:
    """Nothing was ever without a wake: the watchdog found nothing to repair."""
    for entry in entries:
        event = entry.fact.event
        if isinstance(event, LivenessViolated):
            yield f"{agent}: {event.words}"


def _failed(agent: str, entries: Sequence[StoredFact]) -> Iterator[str]:
    """No turn fails in these worlds: each waits until the weather has passed."""
    for fact in (entry.fact for entry in entries):
        if isinstance(fact.event, TurnFailed) and fact.event.status == "failed":
            artifact = fact.event.failure_artifact
            kind = artifact.kind if artifact is not None else fact.event.stop_reason
            yield f"{fact.turn_id} of {agent} failed: {kind}, {fact.event.message}"


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
            if len(row) > MOST_TURNS_BY_ITSELF and row[-1] - row[-MOST_TURNS_BY_ITSELF] < HOUR_US:
                yield f"{agent} began {len(row)} turns by itself within an hour"
                row.clear()
