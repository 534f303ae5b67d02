"""A tool made of a Python function, which stays that function.

`look_up(ctx, "A17")` calls it as before: same name, docstring, signature and async-ness. What is added is what the
runtime needs: a declaration for the model, a way to start it with JSON arguments, and, where its effect is `probeable`,
a probe.
"""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, ParamSpec, cast

from typing_extensions import TypeVar

from wakeful.contracts.bindings import NO_PLAN, Binding, ParameterPlan
from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.parameter_schemas import without
from wakeful.contracts.probes import DidNotHappen, Happened, ProbeAnswer, StillUnknown
from wakeful.contracts.tools import (
    Effect,
    ToolDeclaration,
)
from wakeful.decisions.parameters import assemble
from wakeful.tools import docstrings, parameters, schema
from wakeful.tools.call_runner import CallHandle, begin
from wakeful.tools.client_calls import client_name, not_here, run_by_client
from wakeful.tools.context import RunContext
from wakeful.tools.options import CheckedOptions, check_content
from wakeful.tools.parameters import context_deps, function_of, is_async, label_of
from wakeful.tools.proposal import ProposedCall
from wakeful.tools.schema import ArgumentsRefused
from wakeful.tools.tool import Deps_contra, Tool, checked_name


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

    def begin(self, ctx: RunContext[Any], values: dict[str, Any]) -> CallHandle:
        """Ask about the call these (Python) values were given to."""
        wanted = values if self._everything else {name: values[name] for name in self._names if name in values}
        return begin(self._fn, self._is_async, (ctx,) if self._takes_context else (), wanted)


P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
ProbeT = TypeVar("ProbeT", bound=Callable[..., Any])


class FunctionTool(Tool[Deps_contra], Generic[P, R_co, Deps_contra]):
    """A function and what `@tool(...)` said about it."""

    def __init__(self, fn: Callable[P, R_co], options: CheckedOptions) -> None:
        functools.update_wrapper(cast(Any, self), fn, updated=())
        self.__name__ = parameters.own_name(fn)
        self.__doc__ = parameters.docstring_of(fn)
        self._fn = fn
        self._options = options
        self._parameters = parameters.read(fn)
        self._is_async = parameters.is_async(fn)
        self._name = client_name(_name(options.name, fn)) if options.external else _name(options.name, fn)
        if options.external and self._parameters.takes_context:
            raise InvalidConfig(
                f"{self._name} is external and takes a context", "a client has none: leave the parameter out"
            )
        self._plan = _plan(self._parameters, options.bind)
        shown = [each.name for each in self._parameters.named if each.name not in options.bind]
        check_content(self._name, {"properties": dict.fromkeys(shown)}, options.content)
        self._probe: Probe | None = None
        self._compiled: schema.CompiledSchema | None = None
        self._declaration: ToolDeclaration | None = None
        self.__signature__ = self._parameters.signature
        _look_like(self, fn)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """The function itself: no gate, no log."""
        return self._fn(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<tool {self._name} effect={self._options.effect}>"

    @property
    def name(self) -> str:
        return self._name

    @property
    def effect(self) -> Effect:
        return self._options.effect

    @property
    def needs_deps(self) -> bool:
        """Does it take a context that names deps?"""
        return self._parameters.needs_deps

    @property
    def deps_type(self) -> Any:
        return self._parameters.deps_type

    @property
    def has_probe(self) -> bool:
        return self._probe is not None

    @property
    def declaration(self) -> ToolDeclaration:
        """What the model is told. Made when it is first asked for, because it needs every type to be defined."""
        if self._declaration is None:
            self._declaration = self._declare()
        return self._declaration

    def _declare(self) -> ToolDeclaration:
        options, compiled = self._options, self._compile()
        words = options.description
        if words is None:
            words = docstrings.read(self.__doc__).description
        declared = ToolDeclaration(
            name=self._name,
            description=words,
            input_schema=without(compiled.schema, self._plan.bindings) if self._plan.bindings else compiled.schema,
            effect=options.effect,
            timeout=options.timeout,
            retries=options.retries,
            locks=options.locks,
            reads_private=options.reads_private,
            changes_state=options.changes_state,
            leaves_machine=options.leaves_machine,
            untrusted=options.untrusted,
            content=options.content,
            child_safe=options.child_safe,
            sensitive_parameters=compiled.sensitive,
            permission_class=options.permission_class,
            interrupt_behavior=options.interrupt_behavior,
            on_failure=options.on_failure,
            duplicate_policy=options.duplicate_policy,
            **({"parallel_safe": False} if options.writes else {}),
        )
        return run_by_client(declared) if options.external else declared

    def _compile(self) -> schema.CompiledSchema:
        if self._compiled is None:
            self._compiled = schema.compile_parameters(self._parameters, docstrings.read(self.__doc__).parameters)
        return self._compiled

    @property
    def plan(self) -> ParameterPlan:
        return self._plan

    def _values(self, ctx: RunContext[Any], arguments: dict[str, Any]) -> dict[str, Any]:
        """The function's arguments: the model's, and those that the run gives. Raises ArgumentsRefused."""
        if not self._plan.bindings:
            return self._compile().arguments(arguments)
        assembled = assemble(self._plan, arguments, {"context": ctx.context})
        if assembled.missing or assembled.errors:
            absent = [
                (name, f"comes from {self._plan.bindings[name]}, which this run lacks") for name in assembled.missing
            ]
            raise ArgumentsRefused(absent or [("", error) for error in assembled.errors])
        return self._compile().arguments(assembled.arguments)

    def start(self, ctx: RunContext[Deps_contra], arguments: dict[str, Any]) -> CallHandle:
        if self._options.external:
            raise not_here(self._name)
        values = self._values(ctx, arguments)
        given = (ctx,) if self._parameters.takes_context else ()
        return begin(self._fn, self._is_async, given, values)

    @property
    def approval(self) -> bool | Callable[[ProposedCall], bool | str]:
        return self._options.approval

    @property
    def approval_expires(self) -> float | None:
        return self._options.approval_expires

    @property
    def sees_cancel(self) -> bool:
        return self._parameters.takes_context

    def probe(self, fn: ProbeT) -> ProbeT:
        """Register what can tell whether a call happened: `(ctx, ...)` with any of the tool's own parameters."""
        if self._options.effect != "probeable":
            raise InvalidConfig(
                f"{self._name} has a probe and effect={self._options.effect!r}", 'say @tool(effect="probeable")'
            )
        self._probe = Probe(fn, [parameter.name for parameter in self._parameters.named])
        return fn

    async def ask_probe(self, ctx: RunContext[Deps_contra], arguments: dict[str, Any]) -> ProbeAnswer:
        if self._probe is None:
            return StillUnknown(f"{self._name} has no probe")
        try:
            answer = await self._probe.begin(ctx, self._values(ctx, arguments)).result
        except Exception as error:
            return StillUnknown(f"the probe of {self._name} raised {type(error).__name__}: {error}")
        if isinstance(answer, Happened | DidNotHappen | StillUnknown):
            return answer
        return StillUnknown(
            f"the probe of {self._name} returned a {type(answer).__name__}, not Happened, DidNotHappen or StillUnknown"
        )


def _look_like(made: Any, fn: Any) -> None:
    """Let `inspect.iscoroutinefunction` and its like see the function: they look at these."""
    for attribute in ("__code__", "__defaults__", "__kwdefaults__"):
        if hasattr(fn, attribute):
            setattr(made, attribute, getattr(fn, attribute))
    if parameters.is_async(fn) and hasattr(inspect, "markcoroutinefunction"):
        inspect.markcoroutinefunction(made)


def _plan(known: parameters.Parameters, bind: Mapping[str, Binding]) -> ParameterPlan:
    named = {parameter.name: parameter for parameter in known.named}
    for name in bind:
        if name not in named:
            raise InvalidConfig(
                f"{known.label}() has no parameter {name!r} to bind", f"it has: {', '.join(named) or 'none'}"
            )
    required = tuple(name for name in bind if named[name].default is inspect.Parameter.empty)
    return ParameterPlan(bindings=dict(bind), required=required) if bind else NO_PLAN


def _name(asked: str | None, fn: Callable[..., Any]) -> str:
    return checked_name(asked if asked is not None else parameters.own_name(fn))
