"""The record of a settled turn, from its facts: never from a brief, and never guessed from what a text sounds like."""

from collections.abc import Iterable
from typing import Literal

from wakeful.contracts.envelope import StoredFact, iso
from wakeful.contracts.events import AssistantRecorded, Terminal, TurnRetried
from wakeful.contracts.values import Value
from wakeful.views.mapping import is_roots


class TurnTerminalRecord(Value):
    """How a turn was settled. Every kind but `completed` is a failure."""

    turn_index: int
    kind: Literal["completed", "aborted"]
    """completed: the loop drained by itself. aborted: a failure, a limit or a cancel ended it."""
    last_assistant_message: str | None
    """The final assistant text of the turn; empty when its replies had no words, None when there was no reply."""
    completed_at: str
    duration_ms: int


class RoundLatency(Value):
    """One answered request to a model."""

    step: int
    model_ref: str
    context_build_ms: float
    provider_round_ms: float
    started_at: str
    completed_at: str
    lost_attempts: int
    """Attempts of the same round that were lost before this one."""
    lost_ms: int
    """How long those took, as far as it is known."""
    depth: int = 0
    """How deep in the tree: 0 is the turn's own conversation."""


class ToolLatency(Value):
    """One call that has its result."""

    step: int
    call_id: str
    tool: str
    execution_ms: float
    """Inside the tool; 0 when it was not run."""
    succeeded: bool
    depth: int = 0
    """How deep in the tree: 0 is the turn's own conversation."""


class TurnLatency(Value):
    """Where a turn's time went. Tools that ran side by side add up to more than the time that passed.

    The work of a child is listed with its depth, and counted as the time of the call that made the child.
    """

    turn_id: str
    queue_wait_ms: float | None = None
    """From the admission of its first message to the moment it was taken up; None while it waits."""
    context_build_ms: float = 0.0
    """Assembling what the turn rests on, and each request."""
    provider_ms: float = 0.0
    tools_ms: float = 0.0
    turn_ms: float | None = None
    """From its start to its end, downtime included; None while it is open."""
    active_ms: float | None = None
    cleanup_ms: float | None = None
    """The rest of the active time, without requests, models and tools; None while the turn is open."""
    asked_at: float | None = None
    """When the request to a model was sent that is under way, in Unix seconds; None: none is."""
    rounds: tuple[RoundLatency, ...] = ()
    tools: tuple[ToolLatency, ...] = ()


def terminal_record(turn_id: str, facts: Iterable[StoredFact]) -> TurnTerminalRecord | None:
    """How the turn ended; None while it has no terminal fact, whatever its last words were."""
    last_text: str | None = None
    record: TurnTerminalRecord | None = None
    for _, _, fact in facts:
        if fact.turn_id != turn_id:
            continue
        match fact.event:
            case AssistantRecorded(item=item) if is_roots(fact):
                last_text = item.text or last_text or ""
            case Terminal() as end:
                record = TurnTerminalRecord(
                    turn_index=end.turn_index,
                    kind="completed" if end.status == "completed" else "aborted",
                    last_assistant_message=last_text,
                    completed_at=iso(fact.at),
                    duration_ms=round(end.duration_ms),
                )
            case TurnRetried():
                record = None
    return record
