"""The parameters of a call, put together from everybody who has a say. Later wins:

1. the defaults the declaration brings      never one that was redacted: it is no value
2. plain bindings                           empty and null ones are passed over
3. what the model gave                      except for parameters that are not its to give
4. authoritative bindings                   the context, else the binding's default, else the declared one, else absent

A context fills nothing by having a key of the right name: only a binding reads it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from wakeful.contracts.bindings import Binding, ParameterPlan
from wakeful.contracts.jsonable import NotJson, plain
from wakeful.contracts.sensitive_names import REDACTED

_ABSENT: Any = object()


@dataclass(frozen=True, slots=True)
class AssembledParameters:
    """A call's final parameters."""

    arguments: dict[str, Any]
    sensitive_paths: tuple[str, ...] = ()
    """Parameters whose bound values are secrets, as redaction takes them."""
    missing: tuple[str, ...] = ()
    """Required, and absent, null or an empty text."""
    errors: tuple[str, ...] = ()
    """What a context offers and no parameter can take, in words."""
    discarded: tuple[str, ...] = ()
    """Given by the model, and not the model's to give."""


def assemble(
    plan: ParameterPlan, model_arguments: Mapping[str, Any], contexts: Mapping[str, Mapping[str, Any] | None]
) -> AssembledParameters:
    """The parameters of one call. `contexts` are by source (`contracts.bindings.SOURCES`)."""
    errors: list[str] = []
    defaults = _usable(plan.defaults)
    arguments: dict[str, Any] = dict(defaults)
    owned = set(plan.authoritative)
    for name, binding in plan.bindings.items():
        if name not in owned:
            value = _bound(name, binding, contexts, errors)
            if value is not _ABSENT and value not in (None, "", [], {}):
                arguments[name] = value
            elif binding.default is not None and (usable := _usable_value(binding.default)) is not _ABSENT:
                arguments[name] = usable
    arguments.update((name, value) for name, value in model_arguments.items() if name not in owned)
    for name in plan.authoritative:
        value = _authoritative(name, plan.bindings[name], contexts, defaults, errors)
        if value is _ABSENT:
            arguments.pop(name, None)
        else:
            arguments[name] = value
    return AssembledParameters(
        arguments,
        plan.sensitive,
        missing_parameters(plan.required, arguments),
        tuple(errors),
        tuple(name for name in model_arguments if name in owned),
    )


def missing_parameters(required: Collection[str], arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Required names that are absent, null or an empty text."""
    return tuple(name for name in required if arguments.get(name) is None or arguments.get(name) == "")


def _authoritative(
    name: str,
    binding: Binding,
    contexts: Mapping[str, Mapping[str, Any] | None],
    defaults: Mapping[str, Any],
    errors: list[str],
) -> Any:
    value = _bound(name, binding, contexts, errors)
    if value is _ABSENT or value is None:
        value = _usable_value(binding.default) if binding.default is not None else _ABSENT
    return defaults.get(name, _ABSENT) if value is _ABSENT else value


def _bound(name: str, binding: Binding, contexts: Mapping[str, Mapping[str, Any] | None], errors: list[str]) -> Any:
    """What the context holds at the binding's path, as JSON."""
    place: Any = contexts.get(binding.source)
    for step in binding.path.split("."):
        if not isinstance(place, Mapping) or step not in place:
            return _ABSENT
        place = place[step]
    try:
        return plain(place)
    except NotJson as error:
        errors.append(f"{name} is bound to {binding}, which cannot be a parameter: {error.reason}")
        return _ABSENT


def _usable(value: Mapping[str, Any]) -> dict[str, Any]:
    found = ((name, _usable_value(inner)) for name, inner in value.items())
    return {name: inner for name, inner in found if inner is not _ABSENT}


def _usable_value(value: Any) -> Any:
    """A default without what was redacted: a mask sent as a value would be worse than no value."""
    if value == REDACTED:
        return _ABSENT
    if isinstance(value, dict):
        return _usable(value)
    if isinstance(value, list):
        items = [_usable_value(item) for item in value]
        return _ABSENT if any(item is _ABSENT for item in items) else items
    return value
