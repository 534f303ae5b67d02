"""The keywords of JSON Schema (2020-12) as `schema_validator` works with them: each counted, none that backtracks.

jsonschema's own do the work where they can be trusted with it. Ours are those that match patterns, compare everything
with everything, or follow a schema without anybody counting.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from typing import Any

from wakeful.decisions.linear_patterns import found_by

MAX_STEPS = 300_000
"""Of one value against its schema: about a second."""
MAX_DEPTH = 150
"""Keywords inside keywords. Python's own limit must not be met inside a library that is not written in Python."""
_REFERENCE_STEPS = 10
_PATTERN_SHARE = 750
"""Characters times the size of a pattern that are one step: at the slowest about 10 microseconds."""
_BY_VALUE = frozenset(
    {"properties", "required", "dependentRequired", "dependentSchemas", "patternProperties", "prefixItems"}
    | {"allOf", "anyOf", "oneOf"}
)
"""Keywords that go through all that the schema lists."""
_BY_INSTANCE = frozenset(
    {"items", "prefixItems", "contains", "propertyNames", "additionalProperties", "patternProperties"}
    | {"unevaluatedItems", "unevaluatedProperties"}
)
"""Keywords that go through all that the value holds."""
budget: ContextVar["WorkAllowance"] = ContextVar("budget")
"""Of the check that is going on."""


class TooMuchWork(Exception):
    """A check that was given up."""


class WorkAllowance:
    """How much may still be looked at."""

    __slots__ = ("depth", "left")

    def __init__(self, most: int = MAX_STEPS) -> None:
        self.left = most
        self.depth = 0

    def spend(self, steps: int = 1) -> None:
        self.left -= steps
        if self.left < 0:
            raise TooMuchWork


def size_of(value: Any, most: int = 1_000_000) -> int:
    """How much there is to look at: a step for each value in it, and for each 50 characters."""
    size, waiting = 0, [value]
    while waiting and size < most:
        part = waiting.pop()
        size += 1
        if isinstance(part, str):
            size += len(part) // 50
        elif isinstance(part, Mapping):
            waiting.extend(part.values())
            size += len(part)
        elif isinstance(part, list | tuple):
            waiting.extend(part)
    return size


@cache
def counting_validator() -> Any:
    """jsonschema's validator with our own patterns, and every keyword counted."""
    from jsonschema import Draft202012Validator, validators

    ours: dict[str, Any] = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
        "unevaluatedProperties": _unevaluated_properties,
        "unevaluatedItems": _unevaluated_items,
        "anyOf": _any_of,
        "oneOf": _one_of,
    }
    every = {**Draft202012Validator.VALIDATORS, **ours}
    library: Any = validators  # its stubs leave `extend` untyped
    made = library.extend(Draft202012Validator, {word: _counted(word, check) for word, check in every.items()})

    def evolve(self: Any, **changes: Any) -> Any:
        # jsonschema's own would hand a part that names a `$schema` of its own to a validator that counts nothing.
        kept = {"schema": self.schema, "registry": self._registry, "_resolver": self._resolver}
        return made(**(kept | changes))

    made.evolve = evolve
    return made


def _counted(word: str, check: Callable[..., Any]) -> Callable[..., Any]:
    by_value, by_instance, refers = word in _BY_VALUE, word in _BY_INSTANCE, word in ("$ref", "$dynamicRef")
    compares = word in ("enum", "const")

    def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        steps = budget.get()
        cost = _REFERENCE_STEPS if refers else 1
        if by_value and isinstance(value, Mapping | list):
            cost += len(value)
        if by_instance and isinstance(instance, Mapping | list):
            cost += len(instance)
        if compares:
            cost += size_of(value)
        steps.spend(cost)
        if steps.depth >= MAX_DEPTH:
            raise RecursionError
        steps.depth += 1
        for error in check(validator, value, instance, schema) or ():
            steps.spend(1 + size_of(instance) // 3)  # its message repeats the value
            steps.depth -= 1
            yield error
            steps.depth += 1
        steps.depth -= 1

    return counted


def _wrong(message: str) -> Any:
    from jsonschema import ValidationError

    return ValidationError(message)


def _found(pattern: str, text: Any) -> bool:
    words, found = str(text), found_by(pattern)
    budget.get().spend(1 + len(words) // 200 + len(words) * found.size // _PATTERN_SHARE)
    return found(words)


def _pattern(validator: Any, pattern: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, str) and not _found(pattern, instance):
        yield _wrong(f"does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    for pattern, inner in patterns.items():
        for name, value in instance.items():
            if _found(pattern, name):
                yield from validator.descend(value, inner, path=name, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    extras = [name for name in instance if name not in known and not any(_found(each, name) for each in patterns)]
    if isinstance(allowed, dict):
        for name in extras:
            yield from validator.descend(instance[name], allowed, path=name)
    elif not allowed and extras:
        yield _wrong(f"additional properties are not allowed: {', '.join(map(repr, extras[:10]))}")


def _any_of(validator: Any, options: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """All of them are tried, also after one fits: whoever makes Python values of the same JSON does so as well, and
    what that costs has to be counted here."""
    from jsonschema import ValidationError

    errors: list[Any] = []
    fits = False
    for index, option in enumerate(options):
        if fits:
            _is_valid(validator, instance, option)
            continue
        found = list(validator.descend(instance, option, schema_path=index))
        fits = not found
        errors += found
    if not fits:
        yield ValidationError("is not valid under any of the given schemas", context=errors)


def _one_of(validator: Any, options: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """An option that wants another word in a field than stands there (`kind`) is out without a look at the rest: what
    is told apart by such a field takes no longer the deeper it is nested."""
    from jsonschema import ValidationError

    errors: list[Any] = []
    fitting = 0
    for index, option in enumerate(options):
        other = _other_kind(validator, option, instance)
        found = [other] if other is not None else list(validator.descend(instance, option, schema_path=index))
        fitting += not found
        errors += found
    if not fitting:
        yield ValidationError("is not valid under any of the given schemas", context=errors)
    elif fitting > 1:
        yield _wrong(f"is valid under {fitting} of the given schemas")


def _other_kind(validator: Any, option: Any, instance: Any) -> Any:
    """The error of an option that wants another constant, or None."""
    if isinstance(option, dict) and set(option) == {"$ref"}:
        budget.get().spend(_REFERENCE_STEPS)
        option = validator._resolver.lookup(option["$ref"]).contents
    properties = option.get("properties") if isinstance(option, dict) and isinstance(instance, dict) else None
    for name, inner in properties.items() if isinstance(properties, dict) else ():
        if name in instance and isinstance(inner, dict) and isinstance(inner.get("const"), str):
            budget.get().spend()
            if instance[name] != inner["const"]:
                from jsonschema import ValidationError

                wanted = inner["const"]
                return ValidationError(
                    f"{wanted!r} was expected",
                    validator="const",
                    path=(name,),
                    validator_value=wanted,
                    instance=instance[name],
                    schema=inner,
                )
    return None


def _unique_items(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if wanted and isinstance(instance, list):
        budget.get().spend(size_of(instance))
        if len({_canonical(item) for item in instance}) < len(instance):
            yield _wrong("has items that are the same")


def _canonical(value: Any) -> str:
    """The same text for values that JSON Schema calls equal: 1 and 1.0, and not 1 and true."""
    return json.dumps(_whole_numbers(value), sort_keys=True)


def _whole_numbers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _whole_numbers(inner) for key, inner in value.items()}
    return [_whole_numbers(inner) for inner in value] if isinstance(value, list) else value


def _unevaluated_properties(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    seen = _evaluated(validator, instance, schema, _evaluated_keys)
    wrong = [name for name in instance if name not in seen and not _is_valid(validator, instance[name], allowed)]
    if wrong:
        yield _wrong(f"unevaluated properties are not allowed: {', '.join(map(repr, wrong[:10]))}")


def _unevaluated_items(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(instance, list):
        return
    seen = _evaluated(validator, instance, schema, _evaluated_indexes)
    wrong = [at for at, item in enumerate(instance) if at not in seen and not _is_valid(validator, item, allowed)]
    if wrong:
        yield _wrong(f"unevaluated items are not allowed: {', '.join(map(str, wrong[:10]))}")


def _is_valid(validator: Any, instance: Any, schema: Any) -> bool:
    return next(validator.descend(instance, schema), None) is None


def _evaluated(validator: Any, instance: Any, schema: Any, here: Callable[[Any, Any, Any], set[Any]]) -> set[Any]:
    """The keys or indexes that a schema, and whatever it applies to the same value, speaks about."""
    budget.get().spend(1 + len(instance))
    if not isinstance(schema, dict):
        return set()
    found = here(validator, instance, schema)

    def add(inner: Any) -> None:
        found.update(_evaluated(validator, instance, inner, here))

    for word in ("$ref", "$dynamicRef"):
        if word in schema:
            budget.get().spend(_REFERENCE_STEPS)
            resolved = validator._resolver.lookup(schema[word])
            there = validator.evolve(schema=resolved.contents, _resolver=resolved.resolver)
            found.update(_evaluated(there, instance, resolved.contents, here))
    for word in ("allOf", "anyOf", "oneOf"):
        for inner in schema.get(word, ()):
            if _is_valid(validator, instance, inner):
                add(inner)
    for name, inner in schema.get("dependentSchemas", {}).items():
        if isinstance(instance, dict) and name in instance:
            add(inner)
    if "if" in schema:
        met = _is_valid(validator, instance, schema["if"])
        for word in ("if", "then") if met else ("else",):
            add(schema.get(word))
    return found


def _evaluated_keys(validator: Any, instance: Any, schema: Any) -> set[Any]:
    found = {name for name in instance if name in schema.get("properties", {})}
    for pattern in schema.get("patternProperties", {}):
        found |= {name for name in instance if _found(pattern, name)}
    for word in ("additionalProperties", "unevaluatedProperties"):
        if word in schema:
            found |= {name for name, value in instance.items() if _is_valid(validator, value, schema[word])}
    return found


def _evaluated_indexes(validator: Any, instance: Any, schema: Any) -> set[Any]:
    if "items" in schema:
        return set(range(len(instance)))
    found = set(range(len(schema.get("prefixItems", ()))))
    for word in ("contains", "unevaluatedItems"):
        if word in schema:
            found |= {at for at, item in enumerate(instance) if _is_valid(validator, item, schema[word])}
    return found
