"""The shape of JSON data: which fields there are, and of which types; no values.

approvals: array
approvals[].tool: string
cost_usd: null | number
"""

from collections.abc import Iterable
from typing import Any


def shape_of(documents: Iterable[Any]) -> list[str]:
    """One line for each place, over all of these documents together."""
    found: dict[str, set[str]] = {}
    for document in documents:
        _add(found, document, "")
    return [f"{place or '(the document)'}: {' | '.join(sorted(types))}" for place, types in sorted(found.items())]


def _add(found: dict[str, set[str]], value: Any, place: str) -> None:
    found.setdefault(place, set()).add(_type(value))
    match value:
        case dict():
            for key, each in value.items():
                _add(found, each, f"{place}.{key}" if place else key)
        case list():
            for each in value:
                _add(found, each, f"{place}[]")


def _type(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
    raise TypeError(f"{type(value).__name__} is no JSON")
