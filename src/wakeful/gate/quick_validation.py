"""A quick yes for arguments that plainly fit: the common schemas, compiled to plain Python checks.

It may only ever say yes where JSON Schema says yes. A schema with a keyword that is not handled here has no such check,
nor has one with very many alternatives, which would be tried on every value unbounded; and arguments it does not accept
are judged, and explained, by the real validator.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

Accepts: TypeAlias = Callable[[Any], bool]

MAX_ALTERNATIVES = 64
"""How many checks one value may meet."""

# Keywords that say nothing about validity; `format` is one of them unless a checker is asked for.
_NOTES = frozenset(
    {"$comment", "$defs", "$schema", "default", "deprecated", "description", "examples", "format", "readOnly", "title"}
    | {"writeOnly"}
)
_BOUNDS: dict[str, Callable[[Any, Any], bool]] = {
    "minimum": lambda value, bound: value >= bound,
    "maximum": lambda value, bound: value <= bound,
    "exclusiveMinimum": lambda value, bound: value > bound,
    "exclusiveMaximum": lambda value, bound: value < bound,
    "minLength": lambda value, bound: len(value) >= bound,
    "maxLength": lambda value, bound: len(value) <= bound,
    "minItems": lambda value, bound: len(value) >= bound,
    "maxItems": lambda value, bound: len(value) <= bound,
}
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_ALLOWED: dict[str, frozenset[str]] = {
    "string": frozenset({"minLength", "maxLength", "enum", "const"}),
    "integer": frozenset(_NUMBERS),
    "number": frozenset(_NUMBERS),
    "boolean": frozenset(),
    "null": frozenset(),
    "array": frozenset({"items", "minItems", "maxItems"}),
    "object": frozenset({"properties", "required", "additionalProperties"}),
}
# Exact types: True is an int to Python and no integer to JSON Schema.
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def quick_check(schema: Any) -> Accepts | None:
    """The check, or None when this schema needs the real validator."""
    try:
        return _check(schema) if _alternatives(schema) <= MAX_ALTERNATIVES else None
    except RecursionError:
        return None


def _alternatives(schema: Any) -> int:
    """How many parts of the schema may be tried on one value, at the place where they are most."""
    if not isinstance(schema, dict):
        return 1
    options, properties = schema.get("anyOf"), schema.get("properties")
    here = sum(map(_alternatives, options)) if isinstance(options, list) else 1
    inside = [schema.get("items"), schema.get("additionalProperties")]
    inside += properties.values() if isinstance(properties, dict) else ()
    return max(here, *map(_alternatives, inside))


def _check(schema: Any) -> Accepts | None:
    if schema is True:
        return lambda value: True
    if not isinstance(schema, dict):
        return None
    rules = {keyword: value for keyword, value in schema.items() if keyword not in _NOTES}
    if not rules:
        return lambda value: True
    if rules.keys() == {"anyOf"}:
        return _any_of([_check(option) for option in rules["anyOf"]])
    kind = rules.pop("type", None)
    if not isinstance(kind, str) or not rules.keys() <= _ALLOWED.get(kind, frozenset()) or kind not in _ALLOWED:
        return None
    if kind == "object":
        return _object(rules)
    if kind == "array":
        return _array(rules)
    return _scalar(_TYPES[kind], rules)


def _any_of(options: list[Accepts | None]) -> Accepts | None:
    # A yes of one option is a yes, so that options without a quick check may be left to the validator.
    known = [option for option in options if option is not None]
    return (lambda value: any(option(value) for option in known)) if known else None


def _bounds(rules: dict[str, Any]) -> list[tuple[Callable[[Any, Any], bool], Any]]:
    return [(_BOUNDS[keyword], bound) for keyword, bound in rules.items() if keyword in _BOUNDS]


def _scalar(types: tuple[type, ...], rules: dict[str, Any]) -> Accepts | None:
    bounds = _bounds(rules)
    choices = rules.get("enum", [rules["const"]] if "const" in rules else None)
    if choices is not None:
        if "enum" in rules and "const" in rules:
            return None
        # Strings only: JSON Schema has its own idea of when numbers and booleans are equal.
        wanted = frozenset(choice for choice in choices if type(choice) is str)
        return lambda value: type(value) is str and value in wanted and all(fits(value, at) for fits, at in bounds)
    if not bounds:
        return lambda value: type(value) in types
    return lambda value: type(value) in types and all(fits(value, at) for fits, at in bounds)


def _array(rules: dict[str, Any]) -> Accepts | None:
    items = _check(rules.get("items", True))
    if items is None:
        return None
    bounds = _bounds(rules)
    return lambda value: (
        type(value) is list and all(fits(value, at) for fits, at in bounds) and all(items(inner) for inner in value)
    )


def _object(rules: dict[str, Any]) -> Accepts | None:
    checks = {name: _check(inner) for name, inner in rules.get("properties", {}).items()}
    extra = rules.get("additionalProperties", True)
    others = None if extra is False else _check(extra)
    if any(check is None for check in checks.values()) or (others is None and extra is not False):
        return None
    required = tuple(rules.get("required", ()))

    def accepts(value: Any) -> bool:
        if type(value) is not dict:
            return False
        for name in required:
            if name not in value:
                return False
        for name, inner in value.items():
            check = checks.get(name, others)
            if check is None or not check(inner):
                return False
        return True

    return accepts
