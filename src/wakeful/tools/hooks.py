"""Hooks: an owner's own code at the gate. Each takes one input object and returns one verdict.

    @hook("pre_tool_use", match="refund", timeout=5)
    async def no_large_refunds(call: HookInput) -> HookVerdict | None:
        return HookVerdict.deny("too much") if call.arguments["cents"] > 10_000 else None

A plain function is a hook before the call. A hook only tightens: it may ask, deny, write other arguments (which are
validated and judged again) and, after the call, put another text in the place of what the model would read. None is
*nothing to say*. One that raises, runs out of time or answers nonsense has denied, unless it is `read_only`.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args, overload

from wakeful.contracts.authority import Authority
from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.jsonable import NotJson, plain
from wakeful.contracts.tools import Confinement, Effect, HookPoint, Principal, ToolError

HookDecision: TypeAlias = Literal["continue", "block", "allow", "deny", "ask"]
"""allow is continue: no hook lifts what a rule or another hook said. block is deny, and after the call: withhold."""
POINTS: tuple[HookPoint, ...] = get_args(HookPoint)
AFTER: frozenset[HookPoint] = frozenset({"post_tool_use", "post_tool_failure"})
DEFAULT_SECONDS = 10.0
MAX_SECONDS = 600.0
FIELDS = ("decision", "reason", "arguments", "output")


@dataclass(frozen=True, slots=True, kw_only=True)
class HookInput:
    """The input of a hook. It is a copy: changing it changes nothing."""

    point: HookPoint
    tool: str
    arguments: Mapping[str, Any]
    call_id: str = ""
    turn_id: str = ""
    agent: str = ""
    thread: str = ""
    depth: int = 0
    """0: a call of the run itself; 1 and more: of a subtask."""
    path: tuple[str, ...] = ()
    """The level that made the call, as in the events of `stream()`; empty for the run itself."""
    context: Mapping[str, Any] = field(default_factory=dict)
    """The `context=` of the run."""
    principal: Principal | None = None
    working_directory: str | None = None
    effect: Effect = "irreversible"
    derived_from: Authority = "operator_instruction"
    """The lowest authority in the chain of causes behind the turn: `external_evidence` where a stranger's words are."""
    confinement: Confinement | None = None
    """The limits of a command: folders, network, limits, and whether it is enforced. None: the tool runs no command."""
    reason: str = ""
    """permission_request: why a person is to be asked."""
    result: str | None = None
    """post_tool_use: what the model would read."""
    error: ToolError | None = None
    """post_tool_failure: what went wrong."""

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON data, for hooks that are commands."""
        return {
            "point": self.point,
            "tool": self.tool,
            "arguments": dict(self.arguments),
            "call_id": self.call_id,
            "turn_id": self.turn_id,
            "agent": self.agent,
            "thread": self.thread,
            "depth": self.depth,
            "path": list(self.path),
            "context": dict(self.context),
            "principal": self.principal.id if self.principal is not None else None,
            "working_directory": self.working_directory,
            "effect": self.effect,
            "derived_from": self.derived_from,
            "confinement": self.confinement.model_dump(mode="json") if self.confinement is not None else None,
            "reason": self.reason,
            "result": self.result,
            "error": self.error.model_dump(mode="json", exclude_none=True) if self.error is not None else None,
        }


@dataclass(frozen=True, slots=True)
class HookVerdict:
    """The verdict of a hook."""

    decision: HookDecision = "continue"
    reason: str = ""
    """Of a deny or a block, the model reads it; of an ask, the person does."""
    arguments: Mapping[str, Any] | None = None
    """Before the call: what is run instead."""
    output: str | None = None
    """After the call: what the model reads instead."""

    @classmethod
    def deny(cls, reason: str) -> "HookVerdict":
        return cls("deny", reason)

    @classmethod
    def ask(cls, reason: str) -> "HookVerdict":
        """A person has to decide."""
        return cls("ask", reason)

    @classmethod
    def rewrite(cls, arguments: Mapping[str, Any], reason: str = "") -> "HookVerdict":
        """These arguments in the place of the model's."""
        return cls("continue", reason, arguments)

    @classmethod
    def replace(cls, output: str, reason: str = "") -> "HookVerdict":
        """This text in the place of the tool's; both are kept."""
        return cls("continue", reason, output=output)


class NoVerdict(ValueError):
    """The return value of a hook is not a verdict."""


NOTHING = HookVerdict()
HookAnswer: TypeAlias = "HookVerdict | Mapping[str, Any] | None"
Ask: TypeAlias = Callable[[HookInput], "HookAnswer | Awaitable[HookAnswer]"]


@dataclass(frozen=True, slots=True)
class Hook:
    """A hook with its point, the tools it is asked about, and its time."""

    ask: Ask
    point: HookPoint = "pre_tool_use"
    match: str = "*"
    """A tool's name, bare or namespaced, with `*` for any run of characters."""
    timeout: float = DEFAULT_SECONDS
    read_only: bool = False
    """It only looks: when it fails, the call goes on and a warning is left. It cannot rewrite or replace."""
    name: str = ""

    def __post_init__(self) -> None:
        if not callable(self.ask):
            raise InvalidConfig(f"a hook is a function of one input object, not {self.ask!r}")
        if self.point not in POINTS:
            raise InvalidConfig(f"hook({self.point!r}): there is no such point", f"there are: {', '.join(POINTS)}")
        match: Any = self.match
        if not isinstance(match, str) or not match.strip():
            raise InvalidConfig(f"hook(match={match!r})", 'give a tool\'s name, "mcp.github/*", or "*" for all')
        seconds: Any = self.timeout
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= MAX_SECONDS:
            raise InvalidConfig(f"hook(timeout={seconds!r})", f"give seconds, more than 0 and at most {MAX_SECONDS:g}")
        if not self.name:
            named = getattr(self.ask, "__qualname__", None) or type(self.ask).__name__
            object.__setattr__(self, "name", str(named))

    def __call__(self, call: HookInput) -> "HookAnswer | Awaitable[HookAnswer]":
        """The function itself: a decorated hook can be tested like any other function."""
        return self.ask(call)

    @property
    def is_async(self) -> bool:
        call = getattr(self.ask, "__call__", None)  # noqa: B004
        return inspect.iscoroutinefunction(self.ask) or inspect.iscoroutinefunction(call)

    @property
    def handler_ref(self) -> str:
        return f"hook:{self.name}"


@overload
def hook(point: Ask, /) -> Hook: ...
@overload
def hook(
    point: HookPoint = "pre_tool_use",
    /,
    *,
    match: str = "*",
    timeout: float = DEFAULT_SECONDS,
    read_only: bool = False,
    name: str = "",
) -> Callable[[Ask], Hook]: ...
def hook(
    point: Any = "pre_tool_use",
    /,
    *,
    match: str = "*",
    timeout: float = DEFAULT_SECONDS,
    read_only: bool = False,
    name: str = "",
) -> Any:
    """Make a hook of a function, plain or async."""
    if callable(point):
        return Hook(point)
    return lambda ask: Hook(ask, point, match, timeout, read_only, name)


def hook_of(given: Any) -> Hook:
    """What stands in a list of hooks: a hook, or a plain function, which is one before every call."""
    return given if isinstance(given, Hook) else Hook(given)


def read_verdict(point: HookPoint, said: Any, *, read_only: bool = False) -> HookVerdict:
    """The verdict that a hook returned. Raises NoVerdict with the reason."""
    if said is None:
        return NOTHING
    if isinstance(said, Mapping):
        unknown = sorted(str(name) for name in said if name not in FIELDS)
        if unknown:
            raise NoVerdict(f"a verdict has no {unknown[0]!r}; it has: {', '.join(FIELDS)}")
        said = HookVerdict(**{str(name): value for name, value in said.items() if value is not None})
    if not isinstance(said, HookVerdict):
        raise NoVerdict(f"returned a {type(said).__name__}, not a HookVerdict, an object or None")
    if said.decision not in get_args(HookDecision):
        raise NoVerdict(f"decision={said.decision!r} is none of {', '.join(get_args(HookDecision))}")
    if not isinstance(said.reason, str):
        raise NoVerdict(f"the reason is a {type(said.reason).__name__}, not a text")
    return _fitting(point, said, read_only=read_only)


def _fitting(point: HookPoint, said: HookVerdict, *, read_only: bool) -> HookVerdict:
    """Held to what may be said at this point."""
    if said.arguments is not None and (point != "pre_tool_use" or read_only):
        raise NoVerdict(f"arguments can be rewritten before the call, by a hook that is not read-only, not at {point}")
    if said.output is not None and (point not in AFTER or read_only):
        raise NoVerdict(f"an output can be replaced after the call, by a hook that is not read-only, not at {point}")
    if said.decision == "ask" and point in AFTER:
        raise NoVerdict("a call that has run cannot be asked about")
    if said.output is not None and not isinstance(said.output, str):
        raise NoVerdict(f"the output is a {type(said.output).__name__}, not a text")
    if said.arguments is None:
        return said
    if not isinstance(said.arguments, Mapping):
        raise NoVerdict(f"the arguments are a {type(said.arguments).__name__}, not an object")
    try:
        arguments: dict[str, Any] = plain(dict(said.arguments))
    except NotJson as error:
        raise NoVerdict(f"the arguments are not JSON: {error}") from None
    return HookVerdict(said.decision, said.reason, arguments, said.output)
