"""What a message says about itself: every kind, origin and authority there is, and what follows from them."""

from typing import Any, get_args

import pytest
from pydantic import TypeAdapter, ValidationError

from wakeful.contracts.authority import Authority
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import Fact, StoredFact, published
from wakeful.contracts.events import MessageAdmitted
from wakeful.contracts.messages import (
    MessageKind,
    Origin,
    TriggerKind,
    library_message,
    trigger_of,
    trust_of,
)
from wakeful.contracts.schema import validate_event

KINDS: tuple[MessageKind, ...] = get_args(MessageKind)
AUTHORITIES: tuple[Authority, ...] = get_args(Authority)
ORIGINS: TypeAdapter[Any] = TypeAdapter(Origin)


def shown(**fields: Any) -> dict[str, Any]:
    """The payload that readers get."""
    event = MessageAdmitted(message_id="msg_1", item=UserItem(parts=(Text("hi"),)), **fields)
    found = published(StoredFact("agent_1", 1, Fact(event, 0, "main", "turn_1")), "runtime")
    assert validate_event(found.model_dump(mode="json", exclude_none=True)) == []
    return found.payload


@pytest.mark.spec("HOL-MSG-05", "HOL-MSG-06", "HOL-KIND-01")
def test_every_kind_of_message_has_one_trigger_and_readers_are_told_it() -> None:
    assert {kind: trigger_of(kind) for kind in KINDS} == {
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
    assert {trigger_of(kind) for kind in KINDS} == set(get_args(TriggerKind))
    for kind in KINDS:
        assert shown(message_kind=kind)["trigger_kind"] == trigger_of(kind)
    with pytest.raises(ValidationError, match="message_kind"):
        shown(message_kind="gossip")


@pytest.mark.spec("HOL-MSG-04", "HOL-AUTH-07")
def test_trust_follows_from_the_authority_and_from_nothing_else() -> None:
    assert {authority: trust_of(authority) for authority in AUTHORITIES} == {
        "operator_instruction": "trusted_operator",
        "runtime_instruction": "trusted_system",
        "integration_signal": "trusted_integration",
        "external_evidence": "untrusted_external",
    }
    assert shown(authority_class="external_evidence", trust="trusted_operator")["trust"] == "untrusted_external"


@pytest.mark.spec("HOL-ORIG-01")
@pytest.mark.parametrize(
    "origin",
    [
        {"kind": "operator"},
        {"kind": "operator", "actor_id": "ada"},
        {"kind": "channel", "channel_id": "mail", "sender_id": "bob"},
        {"kind": "webhook", "source": "ci", "event_type": "failed"},
        {"kind": "callback", "descriptor_id": "cb_1", "source": "ci"},
        {"kind": "timer", "timer_id": "timer_1"},
        {"kind": "system", "subsystem": "recovery"},
        {"kind": "task", "task_id": "task_1"},
    ],
    ids=lambda origin: " ".join(origin.values()),
)
def test_an_origin_keeps_who_it_was_from_the_event_to_the_reader(origin: dict[str, str]) -> None:
    assert shown(origin=origin)["origin"] == origin


@pytest.mark.parametrize("origin", [{"kind": "ghost"}, {"kind": "timer"}, {"kind": "task", "timer_id": "t"}])
def test_an_origin_without_its_own_id_is_none(origin: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        ORIGINS.validate_python(origin)


def test_of_a_program_that_says_only_whose_word_it_is_no_authority_becomes_the_operators() -> None:
    made = {authority: library_message(authority) for authority in AUTHORITIES}
    assert {authority: (kind, origin.kind) for authority, (kind, origin) in made.items()} == {
        "operator_instruction": ("operator_prompt", "operator"),
        "runtime_instruction": ("internal_followup", "system"),
        "integration_signal": ("webhook_event", "webhook"),
        "external_evidence": ("channel_event", "channel"),
    }


def test_what_a_plain_message_leaves_at_its_default_is_shown() -> None:
    assert {name: value for name, value in shown().items() if name not in ("message_id", "item", "context")} == {
        "message_kind": "operator_prompt",
        "trigger_kind": "operator_input",
        "origin": {"kind": "operator"},
        "authority_class": "operator_instruction",
        "trust": "trusted_operator",
        "priority": "normal",
        "delivery_surface": "run_once",
        "admission_context": "local_process",
        "source_refs": {},
        "fingerprint": "",
        "prompt_preview": "",
        "notes": {},
        "depth": 0,
        "memory_enabled": False,
        "policy_context": "library",
    }
