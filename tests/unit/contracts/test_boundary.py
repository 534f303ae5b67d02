"""The values of the boundary together: their ids, their spelling, and what they do not speak about."""

import re
import warnings

import pytest
from pydantic import BaseModel

from wakeful.contracts import audit, conversation_result, declarations, outcomes, principals, requests, transcript

MODULES = (transcript, requests, conversation_result, outcomes, principals, declarations, audit)
MODELS: list[type[BaseModel]] = sorted(
    {
        value
        for module in MODULES
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, BaseModel) and value.__module__ == module.__name__
    },
    key=lambda model: model.__name__,
)


def test_schema_ids_are_fixed_strings_with_an_integer_version() -> None:
    ids = {
        model.model_fields["schema_id"].default: model.model_fields["version"].default
        for model in MODELS
        if "schema_id" in model.model_fields
    }
    assert ids == {"wakeful.message": 1, "wakeful.conversation-result": 1, "wakeful.run-outcome": 1}


@pytest.mark.spec("API-BND-04")
def test_every_value_is_immutable_has_a_json_schema_and_speaks_snake_case() -> None:
    assert len(MODELS) > 10
    for model in MODELS:
        assert model.model_config.get("frozen"), model
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            schema = model.model_json_schema()
        for name in schema["properties"]:
            assert re.fullmatch(r"[a-z][a-z0-9_]*", name), f"{model.__name__}.{name}"


def test_no_contract_has_a_field_of_a_product() -> None:
    """Jobs, posts, sites, browsers, tabs and pull requests are a host's business."""
    product = re.compile(r"job|post|site|browser|tab\b|pull|repo|worktree|branch|comment|page|wordpress|github|slack")
    fields = {f"{model.__name__}.{name}" for model in MODELS for name in model.model_fields}
    assert not {field for field in fields if product.search(field.lower())}
