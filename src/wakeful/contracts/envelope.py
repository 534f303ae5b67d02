"""What stands around an event: who, where, when, in which order.

A `Fact` is an event with its ids and its time, before or after it is stored. `StoredFact` is a fact with its place in
the agent's stream. `RuntimeEvent` is the same for readers outside: plain JSON with a published schema.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from wakeful.contracts.events import (
    AgentStateChanged,
    AnyEvent,
    BriefCreated,
    MessageAdmitted,
    ModelCompleted,
    UnrecognisedEvent,
)
from wakeful.contracts.messages import trigger_of, trust_of
from wakeful.contracts.values import Value

SCHEMA_VERSION = "1"
"""Version of the published event schema."""
MAX_PAYLOAD_BYTES = 65_536
MAIN_THREAD = "main"
BEFORE = "@-"


@dataclass(slots=True)
class Fact:
    """One event with its ids. `at` is in microseconds since the epoch: time enters here and nowhere else."""

    event: AnyEvent
    at: int
    thread_id: str | None = None
    turn_id: str | None = None
    step: int | None = None
    """The round, from 1; readers outside see it as `step_id`."""
    call_id: str | None = None
    action_id: str | None = None
    parent_call_id: str | None = None
    """The call that made the level this fact belongs to."""
    depth: int = 0
    level: str | None = None
    """The level it belongs to; None: the root."""


class StoredFact(NamedTuple):
    """A stored fact."""

    agent_id: str
    seq: int
    fact: Fact

    @property
    def event_id(self) -> str:
        return event_id(self.agent_id, self.seq)


class RuntimeEvent(Value):
    """The envelope readers outside get."""

    type: str
    event_id: str
    schema_version: str = SCHEMA_VERSION
    timestamp: str
    runtime_id: str
    agent_id: str
    session_id: str
    sequence: int
    thread_id: str | None = None
    turn_id: str | None = None
    task_id: str | None = None
    run_id: str | None = None
    attempt_id: str | None = None
    step_id: str | None = None
    tool_call_id: str | None = None
    action_id: str | None = None
    subagent_id: str | None = None
    parent_tool_call_id: str | None = None
    depth: int | None = None
    phase: Literal["planner", "compaction"] | None = None
    """Of a fact that belongs to a phase of the runtime's own and not to the conversation."""
    trace_id: str | None = None
    span_id: str | None = None
    payload: dict[str, Any]
    refs: dict[str, str] = {}


def event_id(agent_id: str, seq: int) -> str:
    """The one name of an event."""
    return f"{agent_id}:{seq}"


def once(delivered: Iterable[StoredFact]) -> Iterator[StoredFact]:
    """Each fact the first time it comes: a reader that connects again may be given some of them twice."""
    seen: set[tuple[str, int]] = set()
    for recorded in delivered:
        name = recorded.agent_id, recorded.seq
        if name not in seen:
            seen.add(name)
            yield recorded


def step_id(turn_id: str, step: int, level: str | None = None) -> str:
    """The name of a round; rounds of a level below the root are numbered by themselves."""
    return f"{turn_id}/{step}" if level is None else f"{turn_id}/{level}/{step}"


def phase_of(level: str | None) -> Literal["planner", "compaction"] | None:
    """Which phase of the runtime's own a level is; None: it is the turn's, or a child's."""
    if level is None or "~" not in level:
        return None
    newest = level.rpartition("~")[2]
    return "planner" if newest == "plan" else "compaction" if newest.startswith("compaction:") else None


def iso(at: int) -> str:
    """Microseconds since the epoch as ISO-8601 UTC with milliseconds."""
    return f"{_second(at // 1_000_000)}.{at // 1000 % 1000:03d}Z"


@lru_cache(maxsize=16)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def before(places: int) -> str:
    """A reference to the event so many places before the one that holds it: its number is known only to the store."""
    return f"{BEFORE}{places}"


def named(ref: str, agent_id: str, seq: int) -> str:
    """The id that a reference means which stands in this event of an agent."""
    return event_id(agent_id, seq - int(ref[len(BEFORE) :])) if ref.startswith(BEFORE) else ref


_REFERRING = ("permission_ref", "summary_ref", "continuation_ref", "text_ref")


def _name_references(payload: dict[str, Any], agent_id: str, seq: int) -> None:
    """References to what was written in the same append, when nothing had a number yet, as the ids readers know."""
    outcomes = payload.get("hook_outcomes", ())
    for holder, field in (*((payload, name) for name in _REFERRING), *((outcome, "event_id") for outcome in outcomes)):
        ref = holder.get(field)
        if isinstance(ref, str):
            holder[field] = named(ref, agent_id, seq)


def published(recorded: StoredFact, runtime_id: str) -> RuntimeEvent:
    """A stored fact in the form readers outside get, arguments and all: redact it before showing it."""
    agent_id, seq, fact = recorded
    event = fact.event
    if isinstance(event, UnrecognisedEvent):
        kind, payload = event.original_kind, event.body
    else:
        kind, payload = event.kind, event.model_dump(mode="json", exclude_none=True)
        _name_references(payload, agent_id, seq)
        if isinstance(event, ModelCompleted):
            # Not stored for a single attempt, because it follows from the rest; readers get it always.
            payload["timeline"] = event.whole_timeline().model_dump(mode="json", exclude_none=True)
        elif isinstance(event, MessageAdmitted):
            payload["trigger_kind"] = trigger_of(event.message_kind)
            payload["trust"] = trust_of(event.authority_class)
        elif isinstance(event, AgentStateChanged):
            payload["message_kind"] = "control"
        elif isinstance(event, BriefCreated):
            payload["message_kind"] = "brief_ack" if event.brief_kind == "ack" else "brief_result"
    return RuntimeEvent(
        type=kind,
        event_id=event_id(agent_id, seq),
        timestamp=iso(fact.at),
        runtime_id=runtime_id,
        agent_id=agent_id,
        session_id=agent_id,
        sequence=seq,
        thread_id=fact.thread_id,
        turn_id=fact.turn_id,
        run_id=fact.turn_id,
        step_id=step_id(fact.turn_id, fact.step, fact.level) if fact.turn_id and fact.step else None,
        tool_call_id=fact.call_id,
        action_id=fact.action_id,
        subagent_id=fact.level,
        parent_tool_call_id=fact.parent_call_id,
        depth=fact.depth,
        phase=phase_of(fact.level),
        payload=payload,
    )
