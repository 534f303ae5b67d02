"""`unchecked` makes what the constructor makes, to the byte."""

import pytest
from pydantic import ValidationError

from kit.runs.event_samples import ONE_OF_EACH
from wakeful.contracts.events import AnyEvent, ModelRequested
from wakeful.contracts.values import Value, unchecked


def _made_again(value: Value) -> Value:
    return unchecked(type(value))(**{name: getattr(value, name) for name in value.model_fields_set})


@pytest.mark.parametrize("event", ONE_OF_EACH, ids=lambda event: type(event).__name__)
def test_an_unchecked_event_is_the_checked_one_to_the_byte(event: AnyEvent) -> None:
    made = _made_again(event)
    assert made == event
    assert made.model_fields_set == event.model_fields_set
    assert made.model_dump_json(exclude_none=True) == event.model_dump_json(exclude_none=True)
    assert list(made.__dict__) == list(event.__dict__)


def test_an_unchecked_value_takes_anything_which_is_why_only_our_own_goes_in() -> None:
    assert unchecked(ModelRequested)(model_ref="m:1", items="many").items == "many"  # type: ignore[arg-type]
    with pytest.raises(ValidationError):
        ModelRequested(model_ref="m:1", items="many")  # type: ignore[arg-type]
