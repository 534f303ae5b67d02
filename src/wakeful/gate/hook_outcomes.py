"""What hooks came to, as the beginning and the end of a call repeat it."""

from collections.abc import Callable, Sequence
from typing import Literal

from wakeful.contracts.events import AnyEvent, HookCompleted, HookFailed
from wakeful.contracts.events.tools import HookOutcome
from wakeful.tools.hooks import AFTER


def outcomes_of(events: Sequence[AnyEvent], named: Callable[[int], str]) -> tuple[HookOutcome, ...]:
    """What the hooks among these facts came to; `named(index)` is the reference of each."""
    found = []
    for index, event in enumerate(events):
        if isinstance(event, HookCompleted):
            found.append(
                HookOutcome(
                    hook_id=event.handler_ref,
                    point=event.point,
                    decision=event.decision,
                    updated_input_ref=event.updated_input_ref,
                    updated_output_ref=event.updated_output_ref,
                    event_id=named(index),
                )
            )
        elif isinstance(event, HookFailed):
            against: Literal["block", "deny"] = "block" if event.point in AFTER else "deny"
            decision = "continue" if event.fail_mode == "open" else against
            found.append(
                HookOutcome(hook_id=event.handler_ref, point=event.point, decision=decision, event_id=named(index))
            )
    return tuple(found)
