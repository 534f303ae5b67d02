"""What a message is, by the way it came: one table of surfaces, and the rules that no sender can bend.

The surface that takes a message in decides its kind, its origin and whose word it is; the sender decides its words. A
field that a surface may not set is refused by name, and nothing is stored. Being let in raises nobody's authority.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

from wakeful.contracts.authority import Authority, lowest
from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.messages import (
    AdmissionContext,
    ChannelOrigin,
    DeliverySurface,
    MessageKind,
    OperatorOrigin,
    Origin,
    Priority,
    SystemOrigin,
    TaskOrigin,
    TimerOrigin,
    TriggerOrigin,
    WebhookOrigin,
)

MAX_BODY_BYTES: Final = 256_000
MAX_REFERENCES: Final = 32
"""Entries of `source_refs`."""
MAX_REFERENCE_CHARS: Final = 512
NEVER_SENT: Final = frozenset[MessageKind](("brief_ack", "brief_result"))
"""Records of what people were told. They are read, and never queued."""
DERIVED: Final = ("authority_class", "trust", "trigger_kind", "derived_from", "admission_context", "delivery_surface")
"""What the runtime decides about a message."""
BINDING: Final = ("work_item_id", "task_id")
"""What ties a message to the agent's work: the runtime's to say."""
ROUTING_KEYS: Final = ("external_trigger_id", "waiting_intent_id", "timer_id", "queued_event_id", "task_result_id")
"""Ids in metadata that say where a message comes from."""


class SurfaceRule(NamedTuple):
    """What a way in allows."""

    kinds: tuple[MessageKind, ...]
    admissions: tuple[AdmissionContext, ...]
    priorities: tuple[Priority, ...]
    is_runtime: bool = False
    """It is the runtime's own: it may bind a message to a work item or a task."""


_ALL: Final[tuple[Priority, ...]] = ("interject", "next", "normal", "background")
_MODEST: Final[tuple[Priority, ...]] = ("normal", "background")
_OUTSIDE: Final[tuple[AdmissionContext, ...]] = ("public_unauthenticated", "control_authenticated", "local_process")
SURFACES: Final[Mapping[DeliverySurface, SurfaceRule]] = {
    "cli_prompt": SurfaceRule(("operator_prompt",), ("local_process", "control_authenticated"), _ALL),
    "run_once": SurfaceRule(("operator_prompt",), ("local_process",), _ALL),
    "http_control_prompt": SurfaceRule(("operator_prompt", "control"), ("control_authenticated",), _ALL),
    "http_public_enqueue": SurfaceRule(("channel_event",), _OUTSIDE, _MODEST),
    "http_webhook": SurfaceRule(("webhook_event",), _OUTSIDE, _MODEST),
    "http_callback_enqueue": SurfaceRule(("callback_event",), ("external_trigger_capability",), _MODEST),
    "http_callback_wake": SurfaceRule(("system_tick",), ("external_trigger_capability",), _MODEST, is_runtime=True),
    "timer_scheduler": SurfaceRule(("timer_tick",), ("runtime_owned",), _ALL, is_runtime=True),
    "runtime_system": SurfaceRule(
        ("system_tick", "internal_followup", "control"), ("runtime_owned",), _ALL, is_runtime=True
    ),
    "task_rejoin": SurfaceRule(("task_result", "task_status"), ("runtime_owned",), _ALL, is_runtime=True),
}


class Arrival(NamedTuple):
    """A message as a surface hands it in."""

    surface: DeliverySurface
    admission: AdmissionContext
    kind: MessageKind
    origin: Origin
    priority: Priority = "normal"
    is_verified: bool = False
    """Its signature was checked against a configured secret."""
    has_body: bool = True
    caused_by: Authority | None = None
    """The lowest authority behind what made it; None: nothing did."""
    metadata: Mapping[str, Any] | None = None
    claims: Mapping[str, Any] = {}
    """Fields that its sender tried to set."""


class Classification(NamedTuple):
    """What the runtime holds of a message."""

    authority: Authority
    derived_from: Authority | None
    """None: its own."""
    source_refs: dict[str, str]
    work_item_id: str | None
    task_id: str | None


def classify(arrival: Arrival) -> Classification:
    """Whose word a message is, and what it may be tied to. Raises InvalidValue, naming the field."""
    rule = SURFACES[arrival.surface]
    if arrival.kind not in rule.kinds:
        told = "a record of what people were told" if arrival.kind in NEVER_SENT else "not accepted here"
        raise _refused("kind", f"{arrival.kind} is {told}", f"{arrival.surface} accepts {', '.join(rule.kinds)}.")
    if arrival.admission not in rule.admissions:
        allowed = ", ".join(rule.admissions)
        raise _refused(
            "admission_context", f"{arrival.admission} is not accepted here", f"{arrival.surface} accepts {allowed}."
        )
    if arrival.priority not in rule.priorities:
        allowed = ", ".join(rule.priorities)
        raise _refused("priority", f"{arrival.priority} cannot be set by {arrival.surface}", f"Give one of: {allowed}.")
    for field, claimed in arrival.claims.items():
        if field in DERIVED:
            raise _refused(field, "the runtime decides it", "Leave it out.")
        if field in BINDING and not rule.is_runtime:
            raise _refused(field, "only the runtime ties a message to work", "Leave it out.")
        if field == "kind" and claimed != arrival.kind:
            raise _refused(field, f"{claimed!r} is not accepted here", f"{arrival.surface} accepts {arrival.kind}.")
        if field not in (*BINDING, "kind"):
            raise _refused(field, "a sender cannot set it", "Leave it out.")
    authority = authority_of(arrival.origin, is_verified=arrival.is_verified)
    behind = _behind(arrival, authority)
    claims = arrival.claims if rule.is_runtime else {}
    bound = {**(arrival.metadata or {}), **claims} if rule.is_runtime else {}
    return Classification(
        authority,
        behind if behind != authority else None,
        _references(arrival.metadata or {}, rule),
        _text(bound.get("work_item_id")),
        _text(bound.get("task_id")),
    )


def authority_of(origin: Origin, *, is_verified: bool = False) -> Authority:
    """Whose word it is, by where it comes from. A webhook without a checked signature is evidence, and no signal."""
    match origin:
        case OperatorOrigin():
            return "operator_instruction"
        case SystemOrigin() | TaskOrigin() | TimerOrigin():
            return "runtime_instruction"
        case TriggerOrigin():
            return "integration_signal"
        case WebhookOrigin():
            return "integration_signal" if is_verified else "external_evidence"
        case ChannelOrigin():
            return "external_evidence"


def _behind(arrival: Arrival, authority: Authority) -> Authority:
    """The lowest authority in the chain of causes. A body that an address brought is evidence, whoever made it."""
    found = _lower(authority, arrival.caused_by or authority)
    if isinstance(arrival.origin, TriggerOrigin) and arrival.has_body and not arrival.is_verified:
        return _lower(found, "external_evidence")
    return found


def _lower(*words: Authority) -> Authority:
    return cast(Authority, lowest(words))


def _references(metadata: Mapping[str, Any], rule: SurfaceRule) -> dict[str, str]:
    """Ids in metadata that say where it comes from. What would route or bind stays out unless the runtime says it."""
    keys = (*ROUTING_KEYS, *BINDING) if rule.is_runtime else ROUTING_KEYS
    found = {key: str(metadata[key])[:MAX_REFERENCE_CHARS] for key in keys if metadata.get(key) not in (None, "")}
    return dict(list(found.items())[:MAX_REFERENCES])


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _refused(field: str, problem: str, hint: str) -> InvalidValue:
    return InvalidValue(f"invalid_{field}", field, problem, hint)
