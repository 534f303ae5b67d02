"""What a message says about itself besides its words: what it is, where it comes from, how urgent it is.

The rule: whoever needs authority reads `authority_class`, never the origin; what follows from another field is computed
here and is not stored.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field

from wakeful.contracts.authority import Authority
from wakeful.contracts.values import Value

MessageKind: TypeAlias = Literal[
    "operator_prompt",
    "channel_event",
    "webhook_event",
    "callback_event",
    "timer_tick",
    "system_tick",
    "task_result",
    "task_status",
    "control",
    "brief_ack",
    "brief_result",
    "internal_followup",
]
Priority: TypeAlias = Literal["interject", "next", "normal", "background"]
"""Highest first. It says when, never how far a message is trusted."""
TriggerKind: TypeAlias = Literal[
    "operator_input", "task_result", "external_event", "timer_fire", "internal_followup", "system_tick"
]
DeliverySurface: TypeAlias = Literal[
    "cli_prompt",
    "run_once",
    "http_public_enqueue",
    "http_webhook",
    "http_callback_enqueue",
    "http_callback_wake",
    "http_control_prompt",
    "timer_scheduler",
    "runtime_system",
    "task_rejoin",
]
"""What took the message in."""
AdmissionContext: TypeAlias = Literal[
    "public_unauthenticated", "control_authenticated", "external_trigger_capability", "local_process", "runtime_owned"
]
"""What whoever delivered it had to show."""
Trust: TypeAlias = Literal["trusted_operator", "trusted_system", "trusted_integration", "untrusted_external"]


class OperatorOrigin(Value):
    """The agent's owner; no other origin stands for them."""

    kind: Literal["operator"] = "operator"
    actor_id: str | None = None


class ChannelOrigin(Value):
    """Somebody on a channel: a chat, a mailbox. Not the owner."""

    kind: Literal["channel"] = "channel"
    channel_id: str
    sender_id: str | None = None


class WebhookOrigin(Value):
    """A program outside that sends events."""

    kind: Literal["webhook"] = "webhook"
    source: str
    event_type: str | None = None


class TriggerOrigin(Value):
    """A program outside that was given an address to deliver to."""

    kind: Literal["callback"] = "callback"
    descriptor_id: str
    """The address that it used."""
    source: str | None = None


class TimerOrigin(Value):
    """A due time."""

    kind: Literal["timer"] = "timer"
    timer_id: str


class SystemOrigin(Value):
    """The runtime itself."""

    kind: Literal["system"] = "system"
    subsystem: str


class TaskOrigin(Value):
    """Background work that comes back to its agent."""

    kind: Literal["task"] = "task"
    task_id: str


Origin: TypeAlias = Annotated[
    OperatorOrigin | ChannelOrigin | WebhookOrigin | TriggerOrigin | TimerOrigin | SystemOrigin | TaskOrigin,
    Field(discriminator="kind"),
]


class TextBody(Value):
    """Words."""

    type: Literal["text"] = "text"
    text: str


class JsonBody(Value):
    """Data of a program. It stays data until a model is shown it."""

    type: Literal["json"] = "json"
    value: Any = None
    """Nothing is a value, too: `null` is written down as no field at all."""


class BriefAttachment(Value):
    """Something that goes with a brief."""

    kind: Literal["file", "log", "diff", "image", "json"]
    name: str
    uri: str | None = None
    value: Any = None


class BriefBody(Value):
    """What somebody was told."""

    type: Literal["brief"] = "brief"
    title: str | None = None
    text: str
    attachments: tuple[BriefAttachment, ...] | None = None


MessageBody: TypeAlias = Annotated[TextBody | JsonBody | BriefBody, Field(discriminator="type")]

_TRIGGERS: Final[Mapping[MessageKind, TriggerKind]] = {
    "operator_prompt": "operator_input",
    "channel_event": "external_event",
    "webhook_event": "external_event",
    "callback_event": "external_event",
    "timer_tick": "timer_fire",
    "system_tick": "system_tick",
    "task_result": "task_result",
    "task_status": "task_result",
    "control": "system_tick",
    "brief_ack": "system_tick",
    "brief_result": "system_tick",
    "internal_followup": "internal_followup",
}
_TRUST: Final[Mapping[Authority, Trust]] = {
    "operator_instruction": "trusted_operator",
    "runtime_instruction": "trusted_system",
    "integration_signal": "trusted_integration",
    "external_evidence": "untrusted_external",
}
RESULTS: Final = frozenset[MessageKind]({"task_result", "task_status"})
"""Messages of the runtime that quote what a command or a child said: those words are nobody's instruction."""
_LIBRARY: Final = "library"


def trigger_of(kind: MessageKind) -> TriggerKind:
    """What a message of this kind is to whoever decides whether work goes on."""
    return _TRIGGERS[kind]


def trust_of(authority: Authority) -> Trust:
    """The older name for an authority. Readers are shown it; no decision reads it."""
    return _TRUST[authority]


def library_message(authority: Authority) -> tuple[MessageKind, Origin]:
    """What a message is, and where it comes from, when a program passed it in and said only whose word it is."""
    match authority:
        case "operator_instruction":
            return "operator_prompt", OperatorOrigin()
        case "runtime_instruction":
            return "internal_followup", SystemOrigin(subsystem=_LIBRARY)
        case "integration_signal":
            return "webhook_event", WebhookOrigin(source=_LIBRARY)
        case "external_evidence":
            return "channel_event", ChannelOrigin(channel_id=_LIBRARY)
