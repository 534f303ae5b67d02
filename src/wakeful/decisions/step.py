"""Steps a turn may take next, as values: `decide` names them, the engine does them, replay finds them in the log."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from wakeful.contracts.events import LimitName, StopCause
from wakeful.contracts.events.context import CompactionTrigger
from wakeful.decisions.retries import NO_BACKOFF, Backoff, Wait

Scheduling: TypeAlias = Literal["parallel", "serial"]
Because: TypeAlias = Literal["cancelled", "budget", "completed", "dependency", "sibling"]
"""Why a call is not run."""
DEPENDENCY_FAILED = "dependency_failed"
"""What is told of a node that was skipped because one before it did not succeed."""


@dataclass(slots=True, frozen=True)
class AskModel:
    """Send a request."""

    step: int
    candidate: int
    attempt: int
    backoff: Backoff = NO_BACKOFF
    level: str | None = None
    final: bool = False
    """There is room for no other one."""


@dataclass(slots=True, frozen=True)
class WaitForProvider:
    """No model of the level answers: make the request again later."""

    step: int
    level: str | None
    wait: Wait


@dataclass(slots=True, frozen=True)
class SkipCall:
    """Close a call that will not be run."""

    call_id: str
    because: Because


@dataclass(slots=True, frozen=True)
class ResolveNode:
    """Work out the arguments of a workflow's node from what those before it gave."""

    call_id: str


@dataclass(slots=True, frozen=True)
class Suspend:
    """Rest until somebody outside has said something, or it is time. Costs nothing meanwhile."""

    reason: Literal["approval_required", "runtime_tool_pending", "paused", "budget_window", "provider"]
    waiting_for: tuple[str, ...]
    next_try: int | None = None
    """When a provider that is away is asked again; None: none is waited for."""


@dataclass(slots=True, frozen=True)
class HitLimit:
    """A limit would be passed by what comes next."""

    name: LimitName
    limit: float
    observed: float
    what: str = ""


@dataclass(slots=True, frozen=True)
class TakeUp:
    """Bring a call before the gate and, if it passes, run it."""

    call_id: str
    scheduling: Scheduling
    beyond: HitLimit | None = None
    """The limit that running it would pass: what the gate refuses takes nothing, so the gate is asked first."""


@dataclass(slots=True, frozen=True)
class StopWork:
    """Tell what is running that the turn is to end."""

    running: tuple[str, ...]
    waiting: tuple[str, ...]
    blocking: tuple[str, ...] = ()
    """What runs and is let finish."""
    children: tuple[str, ...] = ()
    """Levels that end with it."""


@dataclass(slots=True, frozen=True)
class IgnoreInterrupt:
    """Tell of a request to stop that it changes nothing: the turn is ending already."""

    interrupt_id: str


@dataclass(slots=True, frozen=True)
class StartPlanning:
    """Have a planner look at the task first."""


@dataclass(slots=True, frozen=True)
class Fold:
    """Fold the beginning of a level's conversation into a summary."""

    level: str | None
    trigger: CompactionTrigger
    cut: int
    tokens_before: int


@dataclass(slots=True, frozen=True)
class EndLevel:
    """End a level below the root: with its result, or with what went wrong."""

    level: str
    error: str = ""
    """Empty: it has a result."""
    message: str = ""
    details: tuple[tuple[str, Any], ...] = ()


@dataclass(slots=True, frozen=True)
class CheckAnswer:
    """See whether the final text fits the output type."""


@dataclass(slots=True, frozen=True)
class AskCaller:
    """Ask whoever holds the loop whether to go on."""


@dataclass(slots=True, frozen=True)
class Finish:
    """End the turn."""

    status: Literal["completed", "incomplete", "failed", "cancelled"]
    reason: StopCause
    message: str = ""


Step: TypeAlias = (
    AskModel
    | WaitForProvider
    | TakeUp
    | SkipCall
    | ResolveNode
    | Suspend
    | HitLimit
    | StopWork
    | IgnoreInterrupt
    | StartPlanning
    | Fold
    | EndLevel
    | CheckAnswer
    | AskCaller
    | Finish
)
