"""How an agent of a runtime stands: a view of its rows, made when somebody asks. Nothing of it is stored.

`status` says whether it runs, and why not. It is no proof that work is finished: that is the closure's to say.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from wakeful.contracts.agent_identity import AgentControl
from wakeful.contracts.values import Value
from wakeful.contracts.waking import ContinuationResolution, WaitWake
from wakeful.views.execution_snapshot import Backend, ExecutionProfile

LifeStatus: TypeAlias = Literal[
    "booting", "awake_idle", "awake_running", "awaiting_task", "asleep", "paused", "stopped"
]
"""booting: it was made, no definition of it is in force yet, and it has had no turn. awake_idle: ready to run.
awake_running: a turn of it runs. awaiting_task: it waits for the result of a task. asleep: it waits for something else,
or for a time. paused: everything is kept, and nothing runs. stopped: what comes from outside is refused, until somebody
resumes it."""


class StatusFacts(NamedTuple):
    """What the status rests on."""

    control: AgentControl
    has_definition: bool
    """Its own, or that of the agent that made it: it has had a turn then."""
    is_running: bool
    """A turn of it is under way, and somebody holds its thread."""
    waits: Sequence[WaitWake] = ()
    """What ends its open waits."""


def status_of(facts: StatusFacts) -> LifeStatus:
    """The first that applies: an operator's word, then what happens, then what is waited for."""
    if facts.control != "running":
        return facts.control
    if not facts.has_definition:
        return "booting"
    if facts.is_running:
        return "awake_running"
    if "task_result" in facts.waits:
        return "awaiting_task"
    return "asleep" if facts.waits else "awake_idle"


def waited_for(status: str, providers: Sequence[str]) -> str:
    """Of an agent that could run: the providers whose answer its turns wait for."""
    return ", ".join(dict.fromkeys(providers)) if status in ("awake_idle", "asleep") else ""


class ToolTiming(Value):
    """How long calls of a tool took."""

    tool_name: str
    total_calls: int
    total_duration_ms: float


class AgentExecutionProfile(ExecutionProfile):
    """What an agent may do here: configuration, and no measure."""

    profile: str | None = None
    """The built-in tools it has; None: its code is not here, so that nobody can say."""
    backend: Backend = "host_local"
    process_execution_exposed: bool = False
    allow_background_tasks: bool = False


class PendingHint(Value):
    """Hints that become one message when the agent is free."""

    hints: int
    first_at: float
    last_at: float


class AgentModelState(Value):
    """Which model an agent is run with, and who says so."""

    source: Literal["runtime_default", "agent_override"]
    """runtime_default: the model that its definition names. agent_override: the one that an operator gave it."""
    runtime_default_model: str
    """Blank: its definition is not here."""
    effective_model: str
    effective_fallback_models: tuple[str, ...] = ()
    override_model: str | None = None


class AgentState(Value):
    """How an agent stands: its queue, its tasks, its waits, and what it has done so far."""

    id: str
    status: LifeStatus = "booting"
    sleeping_until: float | None = None
    """When its next sleep or wait ends by itself."""
    current_run_id: str | None = None
    """The turn that runs."""
    pending: int = 0
    """Messages that no turn has taken."""
    active_task_ids: tuple[str, ...] = ()
    last_wake_reason: str | None = None
    """What its newest message was."""
    last_brief_at: float | None = None
    compacted_message_count: int = 0
    """Messages that stand in a summary, and not in the conversation any more."""
    total_message_count: int = 0
    """Messages that turns were begun with."""
    total_input_tokens: int = 0
    total_output_tokens: int = 0
    total_model_rounds: int = 0
    tool_latency: tuple[ToolTiming, ...] = ()
    execution_profile: AgentExecutionProfile = AgentExecutionProfile()
    model_override: str | None = None
    pending_wake_hint: PendingHint | None = None
    current_work_item_id: str | None = None
    last_continuation: ContinuationResolution | None = None


def tool_latencies(figures: dict[str, list[int]]) -> tuple[ToolTiming, ...]:
    """By name, from how many calls ended and the microseconds they took."""
    return tuple(
        ToolTiming(tool_name=name, total_calls=calls, total_duration_ms=took / 1_000)
        for name, (calls, took) in sorted(figures.items())
    )


def model_state(default: str, fallbacks: Sequence[str], override: str | None) -> AgentModelState:
    """The override goes first; what the definition falls back on stays behind it."""
    if override is None:
        return AgentModelState(
            source="runtime_default",
            runtime_default_model=default,
            effective_model=default,
            effective_fallback_models=tuple(fallbacks),
        )
    return AgentModelState(
        source="agent_override",
        runtime_default_model=default,
        effective_model=override,
        effective_fallback_models=tuple(ref for ref in fallbacks if ref != override),
        override_model=override,
    )
