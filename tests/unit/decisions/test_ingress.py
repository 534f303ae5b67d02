"""What a message is, by the way it came: every surface, every origin, and what no sender can set."""

from typing import Any, get_args

import pytest

from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.messages import (
    ChannelOrigin,
    DeliverySurface,
    MessageKind,
    OperatorOrigin,
    Origin,
    SystemOrigin,
    TaskOrigin,
    TimerOrigin,
    TriggerOrigin,
    WebhookOrigin,
)
from wakeful.decisions.ingress import BINDING, DERIVED, SURFACES, Arrival, authority_of, classify

OPERATOR = Arrival("http_control_prompt", "control_authenticated", "operator_prompt", OperatorOrigin())
CHANNEL = Arrival("http_public_enqueue", "public_unauthenticated", "channel_event", ChannelOrigin(channel_id="mail"))
TASK = Arrival("task_rejoin", "runtime_owned", "task_result", TaskOrigin(task_id="task_1"))
TRIGGER = Arrival(
    "http_callback_enqueue", "external_trigger_capability", "callback_event", TriggerOrigin(descriptor_id="t1")
)


def refused(arrival: Arrival) -> str:
    with pytest.raises(InvalidValue) as problem:
        classify(arrival)
    return problem.value.message


def test_every_surface_has_a_rule_and_every_kind_but_briefs_one_surface() -> None:
    assert set(SURFACES) == set(get_args(DeliverySurface))
    taken = {kind for rule in SURFACES.values() for kind in rule.kinds}
    assert set(get_args(MessageKind)) - taken == {"brief_ack", "brief_result"}


@pytest.mark.parametrize(
    ("origin", "authority"),
    [
        (OperatorOrigin(), "operator_instruction"),
        (SystemOrigin(subsystem="work"), "runtime_instruction"),
        (TaskOrigin(task_id="t"), "runtime_instruction"),
        (TimerOrigin(timer_id="t"), "runtime_instruction"),
        (TriggerOrigin(descriptor_id="t"), "integration_signal"),
        (ChannelOrigin(channel_id="c"), "external_evidence"),
        (WebhookOrigin(source="ci"), "external_evidence"),
    ],
)
def test_an_origin_says_whose_word_it_is(origin: Origin, authority: str) -> None:
    assert authority_of(origin) == authority


def test_a_webhook_with_a_checked_signature_is_a_signal() -> None:
    assert authority_of(WebhookOrigin(source="ci"), is_verified=True) == "integration_signal"


@pytest.mark.parametrize("field", DERIVED)
def test_nobody_sets_what_the_runtime_decides(field: str) -> None:
    for arrival in (OPERATOR, CHANNEL, TASK):
        assert f"{field}" in refused(arrival._replace(claims={field: "operator_instruction"}))


@pytest.mark.parametrize("field", BINDING)
def test_only_the_runtime_ties_a_message_to_work(field: str) -> None:
    assert field in refused(CHANNEL._replace(claims={field: "w1"}))
    assert getattr(classify(TASK._replace(claims={field: "w1"})), field) == "w1"


def test_metadata_of_somebody_outside_becomes_no_binding_even_under_those_names() -> None:
    metadata: dict[str, Any] = {"work_item_id": "w1", "task_id": "t1", "external_trigger_id": "x1", "note": "hello"}
    found = classify(CHANNEL._replace(metadata=metadata))
    assert (found.work_item_id, found.task_id, found.source_refs) == (None, None, {"external_trigger_id": "x1"})
    ours = classify(TASK._replace(metadata=metadata))
    assert (ours.work_item_id, ours.task_id) == ("w1", "t1")
    assert ours.source_refs == {"external_trigger_id": "x1", "work_item_id": "w1", "task_id": "t1"}


def test_a_kind_that_a_surface_does_not_take_is_refused_with_those_it_takes() -> None:
    assert "system_tick is not accepted here" in refused(CHANNEL._replace(kind="system_tick"))
    assert "brief_ack is a record of what people were told" in refused(CHANNEL._replace(kind="brief_ack"))
    assert "public_unauthenticated is not accepted here" in refused(TASK._replace(admission="public_unauthenticated"))
    assert "interject cannot be set" in refused(CHANNEL._replace(priority="interject"))


def test_a_body_that_an_address_brought_is_evidence_unless_its_signature_was_checked() -> None:
    assert classify(TRIGGER)[:2] == ("integration_signal", "external_evidence")
    assert classify(TRIGGER._replace(is_verified=True))[:2] == ("integration_signal", None)
    assert classify(TRIGGER._replace(has_body=False))[:2] == ("integration_signal", None)


def test_a_message_carries_the_lowest_word_behind_it() -> None:
    assert classify(TASK)[:2] == ("runtime_instruction", None)
    assert classify(TASK._replace(caused_by="external_evidence"))[:2] == ("runtime_instruction", "external_evidence")
    assert classify(CHANNEL._replace(caused_by="operator_instruction"))[:2] == ("external_evidence", None)
