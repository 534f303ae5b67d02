"""A probe: a function that can tell whether a call of its tool happened, and which arguments of the call it wants."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from wakeful.contracts.errors import InvalidConfig
from wakeful.tools.context import RunContext
from wakeful.tools.parameters import context_deps, function_of, is_async, label_of
from wakeful.tools.running import Running, begin


class Probe:
    """Takes the context, any of the tool's own parameters by name, or all of them as `**arguments`."""

    __slots__ = ("_everything", "_fn", "_is_async", "_names", "_takes_context")

    def __init__(self, fn: Callable[..., Any], arguments: Sequence[str]) -> None:
        wanted = list(inspect.signature(fn).parameters.values())
        scope = getattr(function_of(fn), "__globals__", {})
        # A parameter called `ctx` is the context even without a type: no model ever fills a probe's parameters.
        self._takes_context = bool(wanted) and (
            wanted[0].name == "ctx" or context_deps(wanted[0], scope, {}) is not None
        )
        self._fn = fn
        self._is_async = is_async(fn)
        self._names: list[str] = []
        self._everything = False
        for parameter in wanted[1:] if self._takes_context else wanted:
            if parameter.kind is parameter.VAR_KEYWORD:
                self._everything = True
            elif parameter.name in arguments and parameter.kind is not parameter.POSITIONAL_ONLY:
                self._names.append(parameter.name)
            elif parameter.default is parameter.empty:
                raise InvalidConfig(
                    f"the probe {label_of(fn)}() wants {parameter.name!r}, which the tool does not have",
                    f"a probe takes the context and any of: {', '.join(arguments) or '(the tool has no parameters)'}",
                )

    def begin(self, ctx: RunContext[Any], values: dict[str, Any]) -> Running:
        """Ask about the call these (Python) values were given to."""
        wanted = values if self._everything else {name: values[name] for name in self._names if name in values}
        return begin(self._fn, self._is_async, (ctx,) if self._takes_context else (), wanted)
