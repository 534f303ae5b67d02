"""The base of every value in the contracts: immutable, closed, JSON-serialisable."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeAlias, TypeVar, cast

from pydantic import BaseModel, ConfigDict

JsonScalar: TypeAlias = str | int | float | bool | None
# Recursive aliases cost a fortune in schema building; what is inside was checked when it was parsed.
JsonValue: TypeAlias = JsonScalar | list["JsonValue"] | dict[str, "JsonValue"]


class Value(BaseModel):
    """An immutable value with no unknown fields."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", ser_json_bytes="base64", val_json_bytes="base64", defer_build=True
    )


P = ParamSpec("P")
V = TypeVar("V", bound=Value)
_put = object.__setattr__


def unchecked(kind: Callable[P, V]) -> Callable[P, V]:
    """A maker of values of one class that checks nothing: for those which every round makes, of values that are ours.

    It takes what the constructor takes, by name, and makes an equal value, with the same defaults and the same fields
    set: what is stored is the same to the byte. Whatever comes from outside goes through the constructor.
    """
    made = cast(type[Value], kind)
    # In the order of the class, because that is the order in which a value is written. Values do not change, so that
    # they may share a default which could.
    defaults = {name: field.get_default(call_default_factory=True) for name, field in made.model_fields.items()}
    given: dict[tuple[str, ...], set[str]] = {}
    """The names that a place in the code gives are always the same: one set for all the values it makes, not two
    kilobytes and an object for the garbage collector for each. A copy of a value copies its set."""

    def make(**fields: Any) -> Value:
        names = tuple(fields)
        known = given.get(names)
        if known is None:
            known = given[names] = set(names)
        value = made.__new__(made)
        _put(value, "__dict__", {**defaults, **fields})
        _put(value, "__pydantic_fields_set__", known)
        _put(value, "__pydantic_extra__", None)
        _put(value, "__pydantic_private__", None)
        return value

    return cast(Callable[P, V], make)
