"""What a tool is: anything a model may call, and what the gate asks it before a call."""

import re
from collections.abc import Callable
from typing import Any, Generic

from typing_extensions import TypeVar

from wakeful.contracts.bindings import NO_PLAN, ParameterPlan
from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.probes import ProbeAnswer, StillUnknown
from wakeful.contracts.tools import Confinement, ToolDeclaration
from wakeful.tools.call_runner import CallHandle
from wakeful.tools.client_calls import NOTHING_MORE, ForClient
from wakeful.tools.context import RunContext
from wakeful.tools.proposal import ProposedCall

Deps_contra = TypeVar("Deps_contra", contravariant=True, default=object)

_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_.-]*(?:/[A-Za-z_][A-Za-z0-9_.-]*)?$")


class Tool(Generic[Deps_contra]):
    """Anything a model may call: a declaration and a way to start it. `Tool[Shop]` needs a context with a Shop."""

    @property
    def declaration(self) -> ToolDeclaration:
        raise NotImplementedError

    @property
    def name(self) -> str:
        raise NotImplementedError

    @property
    def needs_deps(self) -> bool:
        raise NotImplementedError

    @property
    def deps_type(self) -> Any:
        """The type of deps it reads, where that is known."""
        return None

    @property
    def has_probe(self) -> bool:
        return False

    @property
    def plan(self) -> ParameterPlan:
        """Which parameters the run gives, and not the model."""
        return NO_PLAN

    def start(self, ctx: RunContext[Deps_contra], arguments: dict[str, Any]) -> CallHandle:
        """Begin a call. Raises ArgumentsRefused when the arguments are not the function's; nothing has run then."""
        raise NotImplementedError

    async def invoke(self, ctx: RunContext[Deps_contra], arguments: dict[str, Any]) -> Any:
        """Begin a call and wait for it."""
        return await self.start(ctx, arguments).result

    async def ask_probe(self, ctx: RunContext[Deps_contra], arguments: dict[str, Any]) -> ProbeAnswer:
        """Did this call happen? Does not raise: a probe that fails cannot say."""
        return StillUnknown(f"{self.name} has no probe")

    # --- what the gate asks before a call -------------------------------------------------------------------------

    def traits(self, arguments: dict[str, Any]) -> ToolDeclaration:
        """The declaration of this one call: the tool's, or one that is stricter because of the arguments."""
        return self.declaration

    @property
    def approval(self) -> bool | Callable[[ProposedCall], bool | str]:
        """Whether a person must let calls through: always, never, or when a function of the call says so."""
        return False

    @property
    def approval_expires(self) -> float | None:
        """Seconds until a pending approval of a call expires; None: as the agent says."""
        return None

    @property
    def may_ask(self) -> bool:
        """Is `asks` worth asking?"""
        return self.approval is not False

    @property
    def always_asks(self) -> bool:
        """Does it ask before every call, whatever the arguments?"""
        return self.approval is True

    def asks(self, call: ProposedCall) -> bool | str:
        """Must a person let this call through? A text is the reason. Raising denies."""
        approval = self.approval
        return approval(call) if callable(approval) else approval

    def confinement(self, arguments: dict[str, Any]) -> Confinement | None:
        """The confinement of the call; None for tools that run no foreign code."""
        return None

    def working_directory(self, arguments: dict[str, Any]) -> str | None:
        """Where the call would work, for tools to which that matters: an approval is bound to it."""
        return None

    @property
    def workspace_root(self) -> str | None:
        """The folder whose files its calls read and write; None for tools that work on no workspace."""
        return None

    @property
    def write_roots(self) -> tuple[str, ...]:
        """Every folder whose files its calls may change: the workspace, and what a command may write besides."""
        return () if self.workspace_root is None else (self.workspace_root,)

    @property
    def sees_cancel(self) -> bool:
        """Can a running call see that it is to stop? A thread can that has a context to look at."""
        return True

    def for_client(self, arguments: dict[str, Any]) -> ForClient:
        """The message to the client, of a tool that a client runs. Does not raise."""
        return NOTHING_MORE


class DeclaredTool(Tool[object]):
    """A tool that is made with its declaration, and is no function of the caller's."""

    _declaration: ToolDeclaration

    def __repr__(self) -> str:
        return f"<tool {self.name} effect={self._declaration.effect}>"

    @property
    def declaration(self) -> ToolDeclaration:
        return self._declaration

    @property
    def name(self) -> str:
        return self._declaration.name

    @property
    def needs_deps(self) -> bool:
        return False


def checked_name(name: str) -> str:
    """The name, when it can be a tool's. Raises InvalidConfig."""
    if not _NAME.match(name) or len(name) > 128:
        raise InvalidConfig(
            f"{name!r} cannot be a tool's name",
            "give name=: letters, digits, _ . - and at most one /, not a digit first",
        )
    return name
