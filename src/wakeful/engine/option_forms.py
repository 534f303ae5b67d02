"""Options of an agent in other forms: in a file, and in the configuration that a turn is stored with."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.policies import GatePolicy
from wakeful.engine.agent_checks import ModelChoice

if TYPE_CHECKING:
    from wakeful.ports import Collection


class CannotTravel(ValueError):
    """What an agent holds has no written form: `why`, and what to do about it."""

    def __init__(self, why: str, hint: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.hint = hint


def texts_read(where: str, value: Any) -> list[str]:
    """Names, as a file lists them; nothing is the empty list."""
    value = value or []
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise InvalidConfig(f"{where} is a list of names, not {value!r}")
    return list(value)


def model_names(models: Sequence[ModelChoice]) -> list[str]:
    names = [model for model in models if isinstance(model, str)]
    if len(names) < len(models):
        raise CannotTravel("one is a live object", "name it: 'provider:model'")
    return names


def stored_models(models: Sequence[ModelChoice]) -> tuple[str, ...]:
    return tuple(model if isinstance(model, str) else model.ref for model in models)


def collection_names(collections: "Sequence[str | Collection]") -> list[str]:
    for each in collections:
        if not isinstance(each, str):
            raise CannotTravel(f"{each.name} is a live object", "name it in wakeful.toml")
    return [str(each) for each in collections]


def stored_collections(collections: "Sequence[str | Collection]") -> tuple[str, ...]:
    return tuple(each if isinstance(each, str) else each.name for each in collections)


def no_code(functions: Sequence[object]) -> None:
    if functions:
        raise CannotTravel("they are functions")


def policy_written(policy: GatePolicy | None) -> dict[str, Any] | None:
    """A policy as its file has it: `tools` stands there whenever it was given, for then it replaces the default."""
    if policy is None:
        return None
    said: dict[str, Any] = policy.model_dump(mode="json", exclude_defaults=True)
    return {"tools": {}, **said} if "tools" in policy.model_fields_set else said


def policy_read(where: str, value: Any) -> GatePolicy | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise InvalidConfig(f"{where} is an object, not {value!r}", "for example {tools: {classes: [safe]}}")
    try:
        return GatePolicy.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in (where, *first["loc"]))
        raise InvalidConfig(f"{place}: {first['msg']}") from None
