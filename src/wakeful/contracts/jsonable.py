"""Plain JSON data: what may stand in a free-form field of a contract.

A value that JSON cannot hold is refused where it is, by its path, and never turned into something else.
"""

import math
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator

MAX_DEPTH = 100
"""Deeper nesting than this is nobody's data."""


class NotJson(ValueError):
    """A value JSON cannot hold, and where it stands."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.path = path
        self.reason = reason


def plain(value: Any, path: str = "", depth: int = 0) -> Any:
    """A deep copy made of dicts, lists and scalars only. Raises NotJson, naming the place."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotJson(path, f"{value} is not a JSON number")
        return value
    if depth >= MAX_DEPTH:
        raise NotJson(path, f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        copy = {}
        for key, inner in value.items():
            if not isinstance(key, str):
                raise NotJson(path, f"the key {key!r} is not a string")
            copy[key] = plain(inner, f"{path}.{key}" if path else key, depth + 1)
        return copy
    if isinstance(value, list | tuple):
        return [plain(inner, f"{path}[{index}]", depth + 1) for index, inner in enumerate(value)]
    raise NotJson(path, f"a {type(value).__name__} is not JSON-serialisable")


def plain_dict(value: dict[str, Any]) -> dict[str, Any]:
    """A deep copy of an object. Raises NotJson."""
    copy: dict[str, Any] = plain(value)
    return copy


JsonDict: TypeAlias = Annotated[dict[str, Any], AfterValidator(plain_dict)]
"""A free-form object that is checked to be JSON and copied."""
JsonAny: TypeAlias = Annotated[Any, AfterValidator(plain)]
"""Any JSON value, checked and copied."""
