"""Which target a task goes to. The preferred one when it will do, else the first that does, and why it was not."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from wakeful.contracts.tasks import ExecutionPlacement, ExecutorTarget


class Fallback(NamedTuple):
    """A target was asked for by name, and another was chosen."""

    preferred_target: str
    selected_target: str
    reason: str


class Selection(NamedTuple):
    """The target, when there is one; and why it is not the one that was preferred."""

    target: ExecutorTarget | None
    fallback: Fallback | None = None


def unfit(
    target: ExecutorTarget,
    *,
    allowed_targets: Sequence[str] = (),
    resource_class: str | None = None,
    required_capabilities: Iterable[str] = (),
) -> str | None:
    """Why a target will not do, or None. No resource class: any."""
    if allowed_targets and target.id not in allowed_targets:
        return "it is not among the allowed targets"
    if resource_class is not None and target.resource_classes and resource_class not in target.resource_classes:
        return f"it does not take the resource class {resource_class!r}"
    missing = [name for name in required_capabilities if name not in target.capabilities]
    return f"it lacks the capabilities {', '.join(missing)}" if missing else None


def select(targets: Sequence[ExecutorTarget], placement: ExecutionPlacement) -> Selection:
    """Targets are given in the order in which they were registered."""
    reasons = {
        target.id: unfit(
            target,
            allowed_targets=placement.allowed_targets,
            resource_class=placement.resource_class,
            required_capabilities=placement.required_capabilities,
        )
        for target in targets
    }
    survivors = [target for target in targets if reasons[target.id] is None]
    if not survivors:
        return Selection(None)
    preferred = placement.preferred_target
    for target in survivors:
        if target.id == preferred:
            return Selection(target)
    if preferred is None:
        return Selection(survivors[0])
    reason = reasons.get(preferred) or "there is no such target"
    return Selection(survivors[0], Fallback(preferred, survivors[0].id, reason))
