"""`@tool`: what makes a tool of a function, or of a tool object of another framework."""

from collections.abc import Callable, Mapping, Sequence
from types import BuiltinFunctionType, FunctionType, MappingProxyType, MethodType
from typing import Any, Concatenate, ParamSpec, overload

from typing_extensions import TypeVar, Unpack

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.tools import DuplicatePolicy, Effect, InterruptBehavior, OnFailure, PermissionClass
from wakeful.tools.context import RunContext
from wakeful.tools.function import FunctionTool
from wakeful.tools.options import CheckedOptions, ToolOptions, bindings, content_names, lock_names
from wakeful.tools.proposal import ProposedCall
from wakeful.tools.tool import Tool

D = TypeVar("D", default=object)
P = ParamSpec("P")
R = TypeVar("R")

_NO_BINDINGS: Mapping[str, str] = MappingProxyType({})


class ToolDecorator:
    """`@tool(...)`, waiting for its function."""

    __slots__ = ("_options",)

    def __init__(self, options: CheckedOptions) -> None:
        self._options = options

    @overload
    def __call__(
        self, fn: Callable[Concatenate[RunContext[D], P], R], /
    ) -> FunctionTool[Concatenate[RunContext[D], P], R, D]: ...
    @overload
    def __call__(self, fn: Callable[P, R], /) -> FunctionTool[P, R, object]: ...
    def __call__(self, fn: Callable[..., Any], /) -> Any:
        return _make(fn, self._options)


@overload
def tool(
    fn: Callable[Concatenate[RunContext[D], P], R], /, **options: Unpack[ToolOptions]
) -> FunctionTool[Concatenate[RunContext[D], P], R, D]: ...
@overload
def tool(fn: Callable[P, R], /, **options: Unpack[ToolOptions]) -> FunctionTool[P, R, object]: ...
@overload
def tool(**options: Unpack[ToolOptions]) -> ToolDecorator: ...
@overload
def tool(fn: object, /, **options: Unpack[ToolOptions]) -> Tool[object]: ...
def tool(
    fn: Any = None,
    /,
    *,
    effect: Effect = "irreversible",
    name: str | None = None,
    description: str | None = None,
    approval: bool | Callable[[ProposedCall], bool | str] = False,
    approval_expires: float | None = None,
    timeout: float | None = None,
    retries: int = 2,
    locks: Sequence[str] = (),
    reads_private: bool = False,
    changes_state: bool | None = None,
    leaves_machine: bool = False,
    untrusted: bool | None = None,
    content: Sequence[str] = (),
    external: bool = False,
    child_safe: bool = True,
    bind: Mapping[str, str] = _NO_BINDINGS,
    permission_class: PermissionClass | None = None,
    interrupt_behavior: InterruptBehavior = "cancel",
    on_failure: OnFailure = "ignore",
    duplicate_policy: DuplicatePolicy | None = None,
) -> Any:
    """Make a function a tool: `@tool`, `@tool(effect="pure")` or `tool(fn, effect="pure")`.

    A tool object of Pydantic AI, OpenAI Agents, LangChain or the Claude SDK is taken over as it is.

    `effect` says what a repeat after a crash would do; a tool that says nothing is never repeated. `retries` is how
    often in a turn the tool may ask the model to try differently; no two running calls hold one of `locks` together.
    `untrusted=True`: anybody may have written what it returns (an inbox, a web page, a ticket); left out, this is so
    for tools that leave the machine. From then on, a call that changes something outside the workspace needs a person
    unless its arguments stand in the owner's words; `content=("body",)` names parameters with free text, which are
    left out of this. `docs/explain/security.md` has the rule.
    `approval` says whether a person must let a call through: always, or when a function of the call says so.
    `approval_expires` is how many seconds a pending approval of its calls waits; left out, as the agent says.
    `bind={"customer": "context.customer_id"}` takes a parameter from the run's context and away from the model.
    `permission_class` is what a policy switches on and off; left out, it follows from the other flags.
    `interrupt_behavior="block"` lets a running call finish when the turn is interrupted. `on_failure` says what its
    failure does to the other calls of the round: nothing, `cancel_siblings`, or `cancel_dependent` (what waited).
    `duplicate_policy="repeatable"`: the same call made time and again is no repeat to the guards (`stall_repeats`).
    `external=True` makes the function a signature only: it is `client/<name>`, a client runs it, and `timeout` is how
    long the client may take.
    """
    options = CheckedOptions(
        effect=effect,
        name=name,
        description=description,
        timeout=timeout,
        retries=retries,
        locks=lock_names(locks),
        reads_private=reads_private,
        changes_state=changes_state,
        leaves_machine=leaves_machine,
        untrusted=untrusted,
        content=content_names(content),
        child_safe=child_safe,
        approval=approval,
        approval_expires=approval_expires,
        bind=bindings(bind),
        external=external,
        permission_class=permission_class,
        interrupt_behavior=interrupt_behavior,
        on_failure=on_failure,
        duplicate_policy=duplicate_policy,
    )
    return ToolDecorator(options) if fn is None else _make(fn, options)


def _make(fn: Any, options: CheckedOptions) -> Any:
    if isinstance(fn, Tool):
        raise InvalidConfig(f"{fn.name} is a tool already", "give tool() the function itself")
    if not isinstance(fn, FunctionType | MethodType | BuiltinFunctionType):
        from wakeful.tools.foreign.adoption import adopt

        adopted = adopt(fn, options)
        if adopted is not None:
            return adopted
    if not callable(fn):
        raise InvalidConfig(f"tool() needs a function, not a {type(fn).__qualname__}")
    return FunctionTool(fn, options)
