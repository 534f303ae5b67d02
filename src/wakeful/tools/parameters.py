"""A function's parameters as a tool has them: which are the model's to fill, and whether the context comes first.

Refused here, when the function is decorated: what no model can call (`*args`, `**kwargs`, positional-only), a `self`
that nobody gives, and a context that is not the first parameter.
"""

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin

from wakeful.contracts.errors import InvalidConfig
from wakeful.tools.context import RunContext

_CONTEXT_TEXT = re.compile(r"^(?:[\w.]+\.)?RunContext(?:\[(?P<deps>.*)\])?$", re.DOTALL)
_NO_DEPS_TEXT = re.compile(r"^\s*(?:typing\.)?(?:None|object|Any)\s*$|\|\s*None\b|\bNone\s*\||\bOptional\[")
_KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "is positional-only",
    inspect.Parameter.VAR_POSITIONAL: "takes any number of values",
    inspect.Parameter.VAR_KEYWORD: "takes any keyword",
}


@dataclass(frozen=True, slots=True)
class Parameters:
    """What the decorator saw."""

    label: str
    """How messages name the function."""
    signature: inspect.Signature
    takes_context: bool
    needs_deps: bool
    named: tuple[inspect.Parameter, ...]
    """Those the model fills."""
    globals: dict[str, Any] = field(repr=False)
    locals: dict[str, Any] = field(repr=False)
    deps_type: Any = None
    """What its context wants as deps; None where it wants none, or names what is not known yet."""


def function_of(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function behind partials and methods, where name, docstring and annotations live."""
    while isinstance(fn, partial):
        fn = fn.func
    if not inspect.isroutine(fn) and not inspect.isclass(fn):
        return type(fn).__call__  # an object that can be called
    return fn


def label_of(fn: Callable[..., Any]) -> str:
    named = function_of(fn)
    return str(getattr(named, "__qualname__", None) or type(fn).__qualname__)


def own_name(fn: Callable[..., Any]) -> str:
    """What the function is called; an object that can be called goes by its class."""
    behind: Any = fn
    while isinstance(behind, partial):
        behind = behind.func
    return str(getattr(behind, "__name__", None) or type(behind).__name__)


def docstring_of(fn: Callable[..., Any]) -> str | None:
    """The author's words; a partial's own docstring only explains partials."""
    behind: Any = fn
    while isinstance(behind, partial):
        behind = behind.func
    return function_of(behind).__doc__ or (None if inspect.isroutine(behind) else type(behind).__doc__)


def is_async(fn: Callable[..., Any]) -> bool:
    """Does calling it give a coroutine?"""
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(function_of(fn))


def read(fn: Callable[..., Any]) -> Parameters:
    """The parameters of a tool function. Raises InvalidConfig, naming function and parameter."""
    label, behind = label_of(fn), inspect.unwrap(function_of(fn))
    if inspect.isgeneratorfunction(behind) or inspect.isasyncgenfunction(behind):
        raise InvalidConfig(f"{label}() is a generator", "return a list, or the whole text, instead of yielding pieces")
    try:
        signature = inspect.signature(fn)
    except (ValueError, TypeError):
        raise InvalidConfig(
            f"{label}() does not say what parameters it takes", "wrap it in a function with annotated parameters"
        ) from None
    bound = fn.keywords if isinstance(fn, partial) else {}
    given = [parameter for name, parameter in signature.parameters.items() if name not in bound]
    scope = getattr(behind, "__globals__", {})
    local = _names_round(given)
    needs_deps = context_deps(given[0], scope, local) if given else None
    named = given if needs_deps is None else given[1:]
    for parameter in named:
        _check(label, parameter, context_deps(parameter, scope, local) is not None)
    wanted = deps_type_of(given[0], scope, local) if needs_deps else None
    return Parameters(label, signature, needs_deps is not None, bool(needs_deps), tuple(named), scope, local, wanted)


def _check(label: str, parameter: inspect.Parameter, is_context: bool) -> None:
    where = f"{label}() has a parameter {parameter.name!r}"
    if parameter.kind in _KINDS:
        raise InvalidConfig(
            f"{where} which {_KINDS[parameter.kind]}", "a model fills parameters by name: give each one its own name"
        )
    if is_context:
        raise InvalidConfig(f"{where} which is a RunContext, but not the first", "make the context the first parameter")
    if parameter.name in ("self", "cls") and parameter.annotation is inspect.Parameter.empty:
        raise InvalidConfig(f"{where}: it is a method", "decorate the bound one: tool(instance.method, effect=...)")
    if parameter.name == "ctx" and parameter.annotation is inspect.Parameter.empty:
        raise InvalidConfig(
            f"{where} without a type, so that the model would be asked to fill it",
            "write `ctx: RunContext[YourDeps]` (or `ctx: RunContext[None]`)",
        )


def context_deps(parameter: inspect.Parameter, scope: Mapping[str, Any], local: Mapping[str, Any]) -> bool | None:
    """Does this context want deps? None when the parameter is no context. Understands annotations that are text."""
    annotation = parameter.annotation
    if isinstance(annotation, str):
        try:
            annotation = eval(annotation, dict(scope), dict(local))
        except Exception:  # a name that exists only for the type checker, or not yet
            text = _CONTEXT_TEXT.match(parameter.annotation.strip().strip("'\""))
            return None if text is None else not _NO_DEPS_TEXT.search(text["deps"] or "None")
    if annotation is RunContext:
        return False
    if get_origin(annotation) is not RunContext:
        return None
    deps = get_args(annotation)[0]
    return not (deps in (None, NoneType, object, Any) or isinstance(deps, TypeVar) or NoneType in get_args(deps))


def deps_type_of(parameter: inspect.Parameter, scope: Mapping[str, Any], local: Mapping[str, Any]) -> Any:
    """What a context that wants deps wants: the Shop of `RunContext[Shop]`. None where that is not known yet."""
    annotation = parameter.annotation
    if isinstance(annotation, str):
        try:
            annotation = eval(annotation, dict(scope), dict(local))
        except Exception:  # a name that exists only for the type checker, or not yet
            return None
    return get_args(annotation)[0]


def _names_round(parameters: list[inspect.Parameter]) -> dict[str, Any]:
    """What text annotations may mean when the decorated function stands inside another."""
    text = " ".join(parameter.annotation for parameter in parameters if isinstance(parameter.annotation, str))
    if not text:
        return {}
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("wakeful.tools."):
        frame = frame.f_back
    if frame.f_locals is frame.f_globals:
        return {}
    return {name: frame.f_locals[name] for name in re.findall(r"\w+", text) if name in frame.f_locals}
