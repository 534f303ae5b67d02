"""Facts about the levels of a turn: children, the planner, and what they leave each other.

A level is one run of the loop. The root level has no id; every other one is made by a fact of this module (or by a
compaction's beginning), and from then on its own facts carry its id.
"""

from typing import Any, ClassVar

from wakeful.contracts.content import BlobRef
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.events.base import CALL, TURN, Event, Need, Preview
from wakeful.contracts.models import TokenUsage
from wakeful.contracts.values import Value


class SubagentStarted(Event):
    """A call made a child: the same loop one level down, with a conversation of its own."""

    kind: ClassVar[str] = "subagent.started"
    needs: ClassVar[tuple[Need, ...]] = CALL

    level_id: str
    tool: str
    """The call's tool: `run_subtask`, `spawn_self`, `spawn_parallel`, or the name of an agent that is a tool."""
    title: str
    depth: int
    task: UserItem
    """All the child knows of the conversation."""
    tools: tuple[str, ...] | None = None
    """The names it is held to; None: what its parent has, as far as children may."""
    output_schema: dict[str, Any] | None = None
    system_prompt: str = ""
    index: int = 0
    """Its place among the jobs of one call."""
    config_ref: BlobRef | None = None
    """Its configuration, where it is another agent's; None: its parent's, narrowed."""


class SubagentCompleted(Event):
    """A child came to its end with a result. The parent's call ends in the same commit, or with its last child."""

    kind: ClassVar[str] = "subagent.completed"

    level_id: str
    output: Any = None
    """The text, or the payload that fitted the schema; None where the text is too long to stand here."""
    output_ref: BlobRef | None = None
    """Where the text is, when it was too long for the log."""
    steps: int = 0
    token_usage: TokenUsage | None = None


class SubagentFailed(Event):
    """A child came to its end without one."""

    kind: ClassVar[str] = "subagent.failed"

    level_id: str
    error: str
    """One of LOOP-SUB-12's words: iteration_limit, schema_not_satisfied, subtask_failed, budget_exceeded, cancelled."""
    message: str
    details: dict[str, Any] = {}
    steps: int = 0
    token_usage: TokenUsage | None = None


class ScratchWritten(Event):
    """A level wrote something down for the rest of the turn."""

    kind: ClassVar[str] = "subagent.noted"
    needs: ClassVar[tuple[Need, ...]] = CALL

    key: str
    value: Any = None


class PlanStep(Value):
    """One step of a plan."""

    number: int
    text: str


class PlanArtifact(Value):
    """What planning came to: the only thing of it that the executor sees."""

    run_id: str
    model_ref: str
    """Who planned."""
    steps: tuple[PlanStep, ...]
    """Read from the answer; one step with the whole text when it has no list."""
    text: str
    created_at: float
    tool_call_count: int = 0


class PlanningStarted(Event):
    """A planner looks at the task before the executor does."""

    kind: ClassVar[str] = "planning.started"
    needs: ClassVar[tuple[Need, ...]] = TURN

    level_id: str
    model_ref: str
    task: UserItem


class PlanningCompleted(Event):
    """There is a plan."""

    kind: ClassVar[str] = "planning.completed"

    level_id: str
    plan: PlanArtifact


class PlanningFailed(Event):
    """There is none, and the run goes on without."""

    kind: ClassVar[str] = "planning.failed"

    level_id: str
    error: str
    message: str
    text_preview: Preview = ""


class TurnInterjected(Event):
    """Somebody said something to a turn that is under way: its next request takes it along."""

    kind: ClassVar[str] = "turn.interjected"
    outsider: ClassVar[bool] = True

    message_id: str
    item: UserItem
    said_by: str


class TurnPauseRequested(Event):
    """Somebody asked the turn to rest at the next safe point."""

    kind: ClassVar[str] = "turn.pause.requested"
    outsider: ClassVar[bool] = True

    requested_by: str


class TurnPauseLifted(Event):
    """The turn may go on."""

    kind: ClassVar[str] = "turn.pause.lifted"
    outsider: ClassVar[bool] = True

    requested_by: str
