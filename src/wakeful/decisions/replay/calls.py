"""Calls, decided again: taken up and held to the gate, passed over, repeated."""

from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import (
    AnyEvent,
    PermissionEvaluated,
    SandboxApplied,
    ToolDispatched,
    ToolFailed,
    ToolStarted,
)
from wakeful.contracts.events.tools import Opinion
from wakeful.contracts.tools import BY_DANGER
from wakeful.decisions.differences import Difference, compared
from wakeful.decisions.replay.redecision import Redecision
from wakeful.decisions.step import DEPENDENCY_FAILED, Because, SkipCall, TakeUp
from wakeful.decisions.turn import decide


def check_taking_up(
    now: Redecision, fact: Fact, scheduling: str | None, said: tuple[Opinion, ...] = ()
) -> Difference | None:
    call_id = fact.call_id or ""
    step = now.find(
        lambda each: isinstance(each, TakeUp) and each.call_id == call_id and scheduling in (None, each.scheduling)
    )
    if not isinstance(step, TakeUp):
        how = f" ({scheduling})" if scheduling else ""
        return Difference(f"take up {call_id}{how}", now.would())
    while True:
        admission = now.gate(now.state, now.state.tree.calls[call_id], step.scheduling, said)
        now.admission = [event for event in admission if not isinstance(event, SandboxApplied)]
        difference = check_admission(now, fact)
        if difference is None or not now.unseen:
            return difference
        now.see_next()  # a rule that somebody gave or took back may be why


def is_passed_over(now: Redecision, call_id: str) -> bool:
    if any(isinstance(each, TakeUp) and each.call_id == call_id for each in (*now.decided, *decide(now.state))):
        return False  # refused at the gate, whatever has arrived unseen
    skip = now.find(lambda each: isinstance(each, SkipCall) and each.call_id == call_id)
    if skip is not None:
        now.decided.append(skip)
    return skip is not None


def check_admission(now: Redecision, fact: Fact) -> Difference | None:
    event, expected = fact.event, now.admission.pop(0)
    if isinstance(event, ToolStarted) and isinstance(expected, ToolStarted) and event.policy == "sandboxed":
        # That something held it follows from the machine it ran on; that it was let through follows from the log.
        policy = "sandboxed" if expected.policy == "allowed" else expected.policy
        expected = expected.model_copy(update={"policy": policy})
    return compared(event, _as_strict(event, expected)) or now.same(fact)


def check_repeat(now: Redecision, fact: Fact, event: ToolDispatched) -> Difference | None:
    """Not a recovery: a keyed call that ran out of time is tried once more, with the same key."""
    call = now.state.tree.calls[fact.call_id or ""]
    said = Difference(f"run {call.call_id} again, attempt {event.attempt} ({event.cause})", "")
    if call.effect != "keyed" or event.cause != "timeout" or not call.running:
        return said._replace(recomputed=f"no repeat: {call.part.name} is {call.effect}")
    if event.attempt != call.dispatches + 1:
        return said._replace(recomputed=f"attempt {call.dispatches + 1}")
    now.decided = []
    return now.same(fact)


def reason_of(event: ToolFailed) -> Because:
    if event.tool_error.kind == DEPENDENCY_FAILED:
        return "dependency"
    if event.abort_reason == "sibling_failed":
        return "sibling"
    if event.error_category == "sibling_canceled":
        return "completed"
    return "budget" if event.abort_reason == "budget" else "cancelled"


def _as_strict(event: AnyEvent, expected: AnyEvent) -> AnyEvent:
    """What is expected, as strict as what was recorded: a tool's code may have been stricter about this one call.

    What a declaration says stands in the log, what code said about the arguments does not. Looser it cannot have been.
    """
    if isinstance(event, PermissionEvaluated) and isinstance(expected, PermissionEvaluated):
        strict = event.destructive and not expected.destructive
        return expected.model_copy(update={"destructive": True}) if strict else expected
    if not (isinstance(event, ToolStarted) and isinstance(expected, ToolStarted)):
        return expected
    flags = {
        "effect": max(event.effect, expected.effect, key=BY_DANGER.index),
        "is_read_only": event.is_read_only and expected.is_read_only,
        "is_concurrency_safe": event.is_concurrency_safe and expected.is_concurrency_safe,
        "is_destructive": event.is_destructive or expected.is_destructive,
    }
    same = all(getattr(expected, name) == value for name, value in flags.items())
    return expected if same else expected.model_copy(update=flags)
