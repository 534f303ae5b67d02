"""The log leaves out what is None: a field that may be None must read as None when it is absent."""

import types
from collections.abc import Iterator
from typing import Any, Union, get_args, get_origin

import pytest
from pydantic import BaseModel

from wakeful.contracts.events import EVENTS


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from models_in(part)


def reachable() -> list[type[BaseModel]]:
    found: dict[type[BaseModel], None] = {}
    waiting: list[type[BaseModel]] = list(EVENTS)
    while waiting:
        model = waiting.pop()
        if model in found:
            continue
        found[model] = None
        for field in model.model_fields.values():
            waiting.extend(models_in(field.annotation))
    return list(found)


def may_be_none(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, types.UnionType) and type(None) in get_args(annotation)


@pytest.mark.parametrize("model", reachable(), ids=lambda model: model.__name__)
def test_what_may_be_none_is_none_when_it_is_absent(model: type[BaseModel]) -> None:
    wrong = [
        name
        for name, field in model.model_fields.items()
        if may_be_none(field.annotation) and not field.is_required() and field.default is not None
    ]
    assert not wrong, f"{model.__name__}: {wrong} would come back as their default after None was written"
