"""One hook is asked in its time; what it said and what it came to, as facts.

One that fails has denied; one that only reads leaves a warning. What hooks came to, the beginning and the end of a call
repeat.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from wakeful.contracts.events import AnyEvent, HookCompleted, HookFailed, HookStarted, WarningIssued
from wakeful.contracts.events.tools import HookOutcome
from wakeful.gate.time_limit import LateAnswer, answered_within
from wakeful.gate.turn_gate import GateParts
from wakeful.tools.hooks import AFTER, Hook, HookInput, HookVerdict, NoVerdict, read_verdict
from wakeful.tools.results import clean
from wakeful.tools.threads import run_in_thread

FAILED_OPEN = "hook_failed_open"
Failure: TypeAlias = Literal["raised", "timeout", "invalid_answer"]


@dataclass(slots=True)
class HookWord:
    """What one hook said, and the facts about it. Of one that failed, what that comes to."""

    verdict: HookVerdict
    events: list[AnyEvent]


async def ask(hook: Hook, given: HookInput, parts: GateParts) -> HookWord:
    """Ask one hook."""
    started = HookStarted(point=hook.point, handler_ref=hook.handler_ref, timeout_ms=int(hook.timeout * 1000))
    began = time.perf_counter()
    failure: tuple[Failure, str]
    try:
        said = await _within(hook, given)
        verdict = read_verdict(hook.point, said, read_only=hook.read_only)
    except LateAnswer:
        failure = "timeout", f"did not answer within {hook.timeout:g} s"
    except NoVerdict as wrong:
        failure = "invalid_answer", str(wrong)
    except Exception as raised:
        failure = "raised", f"raised {type(raised).__name__}: {raised}"
    else:
        completed = HookCompleted(
            point=hook.point,
            handler_ref=hook.handler_ref,
            duration_ms=round((time.perf_counter() - began) * 1000, 3),
            decision=verdict.decision,
            reason=parts.safe_words(clean(verdict.reason)) if verdict.reason else "",
        )
        said_safely = HookVerdict(verdict.decision, completed.reason, verdict.arguments, verdict.output)
        return HookWord(said_safely, [started, completed])
    category, words = failure
    message = parts.safe_words(clean(f"the hook {hook.name} {words}"))
    failed = HookFailed(
        point=hook.point,
        handler_ref=hook.handler_ref,
        error_category=category,
        message=message,
        retryable=category == "timeout",
        fail_mode="open" if hook.read_only else "closed",
        duration_ms=round((time.perf_counter() - began) * 1000, 3),
    )
    if hook.read_only:
        warning = WarningIssued(code=FAILED_OPEN, message=f"{message}; the call went on")
        return HookWord(HookVerdict(), [started, failed, warning])
    return HookWord(HookVerdict("deny", message), [started, failed])


async def _within(hook: Hook, given: HookInput) -> Any:
    """The hook's answer, in its time."""
    if hook.is_async:
        answer: Any = hook(given)
        return await answered_within(answer, hook.timeout)
    return await answered_within(run_in_thread(lambda: hook(given)), hook.timeout)


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
