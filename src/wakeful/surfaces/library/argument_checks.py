"""Arguments of a program, checked by the types that a method is declared with, before anything is done with them.

A wrong type would otherwise come out as an error of some inner part, or be kept as something else. Only plain types are
looked at (texts, numbers, times, mappings, paths); what a value says is checked where it is used.
"""

import inspect
import reprlib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache, wraps
from os import PathLike
from types import FunctionType, NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from wakeful.contracts.errors import InvalidValue

Checked = TypeVar("Checked")
_WORDS: "Mapping[type, str]" = {
    str: "a text",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    datetime: "a datetime",
    PathLike: "a path",
    Mapping: "a mapping",
    Sequence: "a list",
    list: "a list",
    dict: "a mapping",
    bytes: "bytes",
}
Plan = Mapping[str, tuple[type, ...]]


def checked_arguments(made: "type[Checked]") -> "type[Checked]":
    """A class whose public methods refuse arguments of other types than they name. They raise InvalidValue."""
    for name, method in list(vars(made).items()):
        if isinstance(method, FunctionType) and not name.startswith("_"):
            setattr(made, name, _checking(method))
    return made


def _checking(method: FunctionType) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(method):

        @wraps(method)
        async def checking(*given: Any, **named: Any) -> Any:
            _check(method, given, named)
            return await method(*given, **named)

        return checking

    @wraps(method)
    def checking_first(*given: Any, **named: Any) -> Any:
        _check(method, given, named)
        return method(*given, **named)

    return checking_first


def _check(method: FunctionType, given: tuple[Any, ...], named: Mapping[str, Any]) -> None:
    names, plan = _plan(method)
    for name, value in (*zip(names, given, strict=False), *named.items()):
        allowed = plan.get(name)
        if allowed is None or (isinstance(value, allowed) and (bool in allowed or not isinstance(value, bool))):
            continue
        wanted = " or ".join(dict.fromkeys(_WORDS[each] for each in allowed if each in _WORDS))
        raise InvalidValue(
            f"invalid_{name}", name, f"{reprlib.repr(value)} is not {wanted}", f"{method.__name__} takes {wanted}."
        )


@cache
def _plan(method: FunctionType) -> tuple[Sequence[str], Plan]:
    """The names of the parameters in their order, and the types of those that can be told."""
    parameters = inspect.signature(method).parameters
    found = {name: _types(each.annotation) for name, each in parameters.items()}
    return tuple(parameters), {name: types for name, types in found.items() if types is not None}


def _types(annotation: Any) -> tuple[type, ...] | None:
    """The classes that a value may have; None: that cannot be told from the annotation."""
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        parts = [_types(each) for each in get_args(annotation)]
        return None if None in parts else tuple(each for part in parts for each in part or ())
    if origin is Literal:
        return tuple({type(each) for each in get_args(annotation)})
    kind = NoneType if annotation is None else origin or annotation
    if kind is float:
        return (float, int)
    return (kind,) if kind is NoneType or kind in _WORDS else None
