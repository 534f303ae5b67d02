"""Two decisions side by side: what differs, and how a report spells it. When something happened is no difference."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from wakeful.contracts.events import AnyEvent
from wakeful.decisions.step import (
    AskCaller,
    AskModel,
    CheckAnswer,
    EndLevel,
    Finish,
    Fold,
    HitLimit,
    IgnoreInterrupt,
    ResolveNode,
    SkipCall,
    StartPlanning,
    Step,
    StopWork,
    Suspend,
    TakeUp,
    WaitForProvider,
)

TIMES = ("duration_ms", "active_ms", "expires_at", "timeout_at")
"""Fields that say when, not what."""
NAMES = (
    "action_id",
    "approval_action_id",
    "hook_outcomes",
    "permission_ref",
    "updated_input_ref",
    "sandbox_ref",
    "binding",
    "working_directory",
    "confinement",
)
"""Fields that name what was made or said at that time, and cannot be made again."""


OF_THE_CALLER = {"runtime_tool.requested": ("arguments", "runtime", "metadata")}
"""Fields that the caller's own code filled in: what it says is outside the log."""


class Difference(NamedTuple):
    """What was recorded, and what would be decided today."""

    recorded: str
    recomputed: str


def compared(recorded: AnyEvent, recomputed: AnyEvent) -> Difference | None:
    """The fields that differ, times left out."""
    if recorded.kind != recomputed.kind:
        return Difference(recorded.kind, recomputed.kind)
    then, now = (_without_times(event.model_dump(mode="json")) for event in (recorded, recomputed))
    filled = OF_THE_CALLER.get(recorded.kind, ())
    different = [name for name in then if then[name] != now[name] and name not in filled]
    if not different:
        return None
    return Difference(*(", ".join(f"{name}={side[name]!r}" for name in different) for side in (then, now)))


def _without_times(fields: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in fields.items() if name not in TIMES and name not in NAMES}
    metadata = kept.get("metadata")
    if isinstance(metadata, Mapping):
        kept["metadata"] = {name: value for name, value in metadata.items() if not name.endswith("_at")}
    return kept


def words(step: Step) -> str:
    """A step as the report spells it."""
    match step:
        case AskModel():
            where = f" of {step.level}" if step.level is not None else ""
            return f"ask model {step.candidate} in step {step.step}{where}, attempt {step.attempt}"
        case WaitForProvider():
            of = f" of {step.level}" if step.level is not None else ""
            return f"wait for {step.wait.because.model_ref} in step {step.step}{of}"
        case TakeUp():
            return f"take up {step.call_id} ({step.scheduling})"
        case SkipCall():
            return f"skip {step.call_id} ({step.because})"
        case ResolveNode():
            return f"work out what {step.call_id} is given"
        case Suspend():
            return f"rest ({step.reason}): {', '.join(step.waiting_for)}"
        case HitLimit():
            return f"stop at {step.name}={step.limit:g}, observed {step.observed:g}"
        case StopWork():
            return f"stop {', '.join(step.running) or 'nothing'}, skip {', '.join(step.waiting) or 'nothing'}"
        case IgnoreInterrupt():
            return f"ignore {step.interrupt_id}"
        case StartPlanning():
            return "plan"
        case Fold():
            return f"fold {step.cut} items ({step.trigger})"
        case EndLevel():
            return f"end {step.level} ({step.error or 'completed'})"
        case CheckAnswer():
            return "check the answer"
        case AskCaller():
            return "ask the caller whether to go on"
        case Finish():
            return f"end {step.status} ({step.reason})"
