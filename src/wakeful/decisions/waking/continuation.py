"""What a message means to an agent that stood where it stood: go on, begin a turn all the same, or only take note.

A pure function of the closure from before the message was taken up, and of the message. A waiting agent is woken by
what it waits for. Only the operator, and the end of a task of its own, begin a turn whatever it waits for. The rest
starts no turn now: what it says is deferred, and shown in the next one (`decisions.intake`).
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from wakeful.contracts.children import PARENT
from wakeful.contracts.content import Text
from wakeful.contracts.events import MessageAdmitted
from wakeful.contracts.messages import BriefBody, JsonBody, MessageKind, SystemOrigin, TriggerKind, trigger_of
from wakeful.contracts.waking import ClosureDecision, ContinuationClass, ContinuationResolution, WaitingReason

NO_CONTINUATION: Final[frozenset[MessageKind]] = frozenset({"task_status", "control", "brief_ack", "brief_result"})
"""Messages that are for the record: they start no turn, and say nothing about whether work goes on."""
MATCHES: Final[Mapping[WaitingReason, frozenset[TriggerKind]]] = {
    "awaiting_operator_input": frozenset({"operator_input"}),
    "awaiting_task_result": frozenset({"task_result"}),
    "awaiting_external_change": frozenset({"external_event", "system_tick"}),
    "awaiting_timer": frozenset({"timer_fire"}),
}
"""What each wait waits for."""
_ALWAYS: Final[frozenset[TriggerKind]] = frozenset({"operator_input", "timer_fire", "internal_followup"})
"""Triggers that say something by themselves."""


class Trigger(NamedTuple):
    """A message, as far as the decision reads it."""

    kind: MessageKind
    is_contentful: bool = False
    """It says something: words that are not blank, data, an attachment."""
    task_id: str | None = None
    task_is_over: bool = False
    """Of a task's message: the task has ended, however that was."""
    task_is_own: bool = True
    """The agent itself started that task."""


def trigger_from(message: MessageAdmitted, *, task_is_own: bool = True) -> Trigger:
    """A stored message as a trigger. A `task_result` is sent when its task is over, and not before."""
    is_over = message.message_kind == "task_result"
    return Trigger(kind_to_agent(message), is_contentful(message), message.task_id, is_over, task_is_own)


def kind_to_agent(message: MessageAdmitted) -> MessageKind:
    """What a message is to the agent that gets it: to a child its parent speaks as an operator does to others."""
    origin = message.origin
    if message.message_kind == "internal_followup" and isinstance(origin, SystemOrigin) and origin.subsystem == PARENT:
        return "operator_prompt"
    return message.message_kind


def is_contentful(message: MessageAdmitted) -> bool:
    """Does it say anything? Data always does. A tick that carries a wake hint has the hint's body as its own."""
    if isinstance(message.body, JsonBody):
        return True
    if isinstance(message.body, BriefBody) and message.body.text.strip():
        return True
    return any(not isinstance(part, Text) or bool(part.text.strip()) for part in message.item.parts)


def resolve_continuation(prior: ClosureDecision, trigger: Trigger) -> ContinuationResolution | None:
    """Whether the message starts a turn; None: it is of a kind that never does."""
    if trigger.kind in NO_CONTINUATION:
        return None
    kind = trigger_of(trigger.kind)
    reason = prior.waiting_reason
    is_matched = reason is not None and kind in MATCHES[reason]
    if reason is None:
        found, rule = _not_waiting(kind, trigger)
    elif is_matched:
        found, rule = _expected(kind, trigger)
    else:
        found, rule = _unexpected(kind, trigger)
    return ContinuationResolution(
        trigger_kind=kind,
        continuation_class=found,
        model_visible=found != "liveness_only",
        prior_closure_outcome=prior.outcome,
        prior_waiting_reason=reason,
        matched_waiting_reason=is_matched,
        evidence=(*_evidence(kind, trigger), f"rule: {rule}"),
    )


def _expected(kind: TriggerKind, trigger: Trigger) -> tuple[ContinuationClass, str]:
    if kind in ("operator_input", "timer_fire") or _says_enough(kind, trigger):
        return "resume_expected_wait", "the agent waits for this"
    return "liveness_only", "the agent waits for this, and it says nothing yet"


def _unexpected(kind: TriggerKind, trigger: Trigger) -> tuple[ContinuationClass, str]:
    if kind == "operator_input":
        return "resume_override", "the operator overrides every wait"
    if kind == "task_result" and trigger.task_is_over and trigger.task_is_own:
        return "resume_override", "the end of a task of its own overrides every wait"
    return "liveness_only", "the agent waits for something else"


def _not_waiting(kind: TriggerKind, trigger: Trigger) -> tuple[ContinuationClass, str]:
    if kind in _ALWAYS or _says_enough(kind, trigger):
        return "local_continuation", "the agent waits for nothing"
    return "liveness_only", "the agent waits for nothing, and this says nothing"


def _says_enough(kind: TriggerKind, trigger: Trigger) -> bool:
    return trigger.task_is_over if kind == "task_result" else kind not in _ALWAYS and trigger.is_contentful


def _evidence(kind: TriggerKind, trigger: Trigger) -> list[str]:
    found = [f"trigger: {kind} ({trigger.kind})", "contentful" if trigger.is_contentful else "without content"]
    if kind == "task_result":
        state = "is over" if trigger.task_is_over else "is not over"
        whose = "its own" if trigger.task_is_own else "not its own"
        found.append(f"task {trigger.task_id or 'without an id'} {state}, {whose}")
    return found
