"""The tools of a turn as people and clients are shown them: what is offered, asked, denied or missing, and why."""

from typing import Any, Literal, TypeAlias

from pydantic import model_validator

from wakeful.contracts.tools import Confinement
from wakeful.contracts.values import Value

CatalogPolicy: TypeAlias = Literal["allowed", "ask", "denied", "sandboxed", "unavailable"]
CatalogOwner: TypeAlias = Literal["local", "mcp_server", "hosted_connector", "provider_native", "workflow", "subagent"]
OFFERED: frozenset[str] = frozenset({"allowed", "ask", "sandboxed"})
"""The policies whose tools a model is told about."""
CAPABILITIES: frozenset[str] = frozenset({"read", "write", "network", "browser", "filesystem", "shell", "artifact"})
"""The flags everybody knows; any other is written `custom:<name>`."""


class CatalogEntry(Value):
    """One tool. What nobody declared is shown at its worst."""

    tool_name: str
    """Stable for the whole turn."""
    description: str
    """A summary that is safe to show."""
    input_schema: dict[str, Any] | None = None
    input_schema_ref: str | None = None
    """Where the schema is when it is too large to stand here; one of the two is there."""
    capabilities: tuple[str, ...] = ()
    policy: CatalogPolicy
    policy_reason: str
    runtime_owner: CatalogOwner = "local"
    metadata_ref: str | None = None
    """Where metadata is that is large or private; then it is nowhere else."""
    sandbox: Confinement | None = None
    """What holds its calls, for tools that run foreign code; arguments may make it narrower."""
    is_read_only: bool = False
    is_concurrency_safe: bool = False
    is_destructive: bool = True
    interrupt_behavior: Literal["cancel", "block"] = "block"
    declares_nothing: bool = False
    """It acts, and says nothing of what it reads: whether that is private, and whether anybody may have written it."""

    @model_validator(mode="after")
    def _sandboxed_says_by_what(self) -> "CatalogEntry":
        if self.policy == "sandboxed" and (self.sandbox is None or self.sandbox.mode == "not_enforced"):
            raise ValueError(f"{self.tool_name} is called sandboxed, and nothing says what holds it")
        return self


class ToolCatalog(Value):
    """Every tool of a turn, in a fixed order."""

    entries: tuple[CatalogEntry, ...]
    revision: int = 1
    reason: str = "turn_started"
    """Why this one was made: the turn began, a server came back, a rule was added ..."""
    resolved_for: Literal["turn", "query"] = "turn"

    @property
    def undeclared(self) -> tuple[str, ...]:
        """Tools that read and act and declare nothing: what they return can make an agent act unasked."""
        return tuple(entry.tool_name for entry in self.entries if entry.declares_nothing)

    @property
    def offered(self) -> tuple[str, ...]:
        """The names a model is told, in order."""
        return tuple(entry.tool_name for entry in self.entries if entry.policy in OFFERED)
