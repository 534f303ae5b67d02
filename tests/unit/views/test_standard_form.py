"""The form of the draft standard: every event in it validates against the schema that is published for it."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from kit.runs.event_samples import AGENT, ONE_OF_EACH, fact, tool_started
from wakeful.contracts.envelope import StoredFact, published
from wakeful.contracts.events import AnyEvent
from wakeful.contracts.schema import event_schema
from wakeful.views.standard_form import camel_case, standard_form, standard_schema

VALIDATOR = Draft202012Validator(standard_schema())


@pytest.mark.parametrize("kind", ONE_OF_EACH, ids=lambda event: event.kind)
def test_an_event_of_every_kind_validates_in_this_form(kind: AnyEvent) -> None:
    event = published(StoredFact(AGENT, 7, fact(kind)), "runtime_1")
    made = standard_form(event)
    VALIDATOR.validate(made)
    assert made["eventId"] == event.event_id and made["sequence"] == 7
    assert not [name for name in made if "_" in name]


def test_names_are_changed_and_what_is_the_callers_own_is_not() -> None:
    started = tool_started().model_copy(update={"safe_args": {"order_id": {"line_no": 1}}})
    made = standard_form(published(StoredFact(AGENT, 1, fact(started)), "runtime_1"))
    assert made["payload"]["safeArgs"] == {"order_id": {"line_no": 1}}
    assert "argsSha256" in made["payload"]


def test_no_two_fields_get_the_same_name() -> None:
    def look(schema: Any) -> None:
        for each in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
            look(each)
        fields = schema.get("properties") if isinstance(schema, dict) else None
        if isinstance(fields, dict):
            assert len({camel_case(name) for name in fields}) == len(fields)

    look(event_schema())
    assert camel_case("args_sha256") == "argsSha256"
