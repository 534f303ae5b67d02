"""The policy of an owner, as values: permission classes, rules, tools that need a person, provenance.

A policy is made once, from the owner's settings, where the runtime runs. Nothing a client sends becomes part of one;
`decisions.policy` reads these values and no other. They are stored with the turn's configuration.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, Protocol, TypeAlias

from pydantic import Field, field_serializer, field_validator, model_validator

from wakeful.contracts.tool_catalog import CAPABILITIES
from wakeful.contracts.tools import PermissionClass
from wakeful.contracts.values import Value
from wakeful.contracts.verdicts import Decision

PolicyContext: TypeAlias = Literal["thread", "editor", "library"]
"""Where a session lives. library: the caller's own program hands its own functions over."""


class ToolPolicy(Value):
    """Which permission classes a session has on, and where they reach. Built by `decisions.policy.permissions`."""

    context: PolicyContext = "thread"
    classes: frozenset[PermissionClass] = frozenset()
    """A tool of any other class is neither offered nor run."""
    ask: frozenset[PermissionClass] = frozenset()
    """Classes that are on, and whose calls need a person."""
    workspace_root: str | None = None
    """Where `workspace_write` reaches; None: nowhere."""
    allowed_mcp_servers: tuple[str, ...] = ()
    """By name, each one named by the owner."""
    unconfined: Decision = "ask"
    """The handling of a command that cannot be confined on this machine. It is shown as `not_enforced` in any case."""

    @field_serializer("classes", "ask", when_used="always")
    def _in_order(self, classes: frozenset[str]) -> list[str]:
        # A set has no order of its own, and the stored form is hashed.
        return sorted(classes)


class Rule(Value):
    """One line of the owner's permission rules, or a person's standing answer (`origin: always`).

    `match` is a tool's name, bare or namespaced, with `*` for any run of characters. `arguments` narrows it to calls
    whose arguments match: `{"cmd": "git status*"}`. Patterns are a convenience and not a security boundary: a command
    can always be written in another way. The boundary is the sandbox.
    """

    match: str
    decision: Decision
    arguments: dict[str, str] = {}
    """Dotted path of an argument to a pattern of its text."""
    capabilities: tuple[str, ...] = ()
    """Only tools with one of these flags: `("browser", "custom:gpu")`. None: whatever they can do."""
    call_hash: str | None = None
    """This exact call and no other: the hash that approvals are bound to."""
    reason: str = ""
    expires: float | None = None
    """Unix seconds; from then on it is as if the rule were not there. None: it stays until it is taken back."""
    approvers: tuple[str, ...] = ()
    """With `ask`: who may answer."""
    always_ask: bool = False
    """With `ask`: no standing answer stands for this one."""
    origin: Literal["owner", "always"] = "owner"
    decided_by: str = ""
    """With `origin: always`: who gave the answer."""
    id: str = ""
    """For the log and for people; blank: made from its place in the list."""

    @field_validator("expires", mode="before")
    @classmethod
    def _as_seconds(cls, expires: Any) -> Any:
        """Also a date and time as people write it, with its time zone: `2030-01-31T18:00:00+01:00`."""
        moment = datetime.fromisoformat(expires) if isinstance(expires, str) else expires
        if not isinstance(moment, datetime):
            return expires
        if moment.tzinfo is None:
            raise ValueError(f"{moment.isoformat()} has no time zone: write Z or +01:00 after it")
        return moment.timestamp()

    @field_validator("match")
    @classmethod
    def _names_something(cls, match: str) -> str:
        if not match.strip():
            raise ValueError('is empty: give a tool\'s name, "mcp.github/*", or "*" for all')
        return match.strip()

    @field_validator("capabilities")
    @classmethod
    def _known_flags(cls, capabilities: tuple[str, ...]) -> tuple[str, ...]:
        for flag in capabilities:
            if flag not in CAPABILITIES and not flag.startswith("custom:"):
                raise ValueError(f"{flag!r} is not a capability: {', '.join(sorted(CAPABILITIES))}, or custom:<name>")
        return capabilities

    @model_validator(mode="after")
    def _holds_together(self) -> "Rule":
        if self.decision != "ask" and (self.approvers or self.always_ask):
            raise ValueError(f"approvers and always_ask belong to an ask, not to {self.decision!r}")
        if self.origin == "always" and (self.approvers or self.always_ask):
            raise ValueError("a standing answer has no approvers and no always_ask: only rules of the owner have them")
        return self


class ProvenancePolicy(Value):
    """Extra checks for a turn that has seen untrusted or private data. The defaults can only be made stricter."""

    external_evidence: Decision = "ask"
    """A call with effects in a turn that derives from external evidence."""
    all_three: Literal["ask", "deny"] = "ask"
    """Untrusted input, private data, and a change of state or outward traffic, in one turn, with an argument that is
    not the owner's."""
    derived: Literal["ask", "deny"] = "ask"
    """A call that changes something outside the workspace, in a turn with untrusted input, with an argument that is not
    the owner's."""


class GatePolicy(Value):
    """All an owner says about calls, as one value; its hash names it in the log.

    Rules, `hitl_tools` and provenance add to the default policy. Giving `tools` replaces the default's classes.
    """

    tools: ToolPolicy = ToolPolicy()
    """Left out of an agent's policy: the default of its surface and profile. An agent says once what it loses by it."""
    rules: tuple[Rule, ...] = ()
    hitl_tools: tuple[str, ...] = ()
    """Names or patterns of tools that never run without a person."""
    provenance: ProvenancePolicy = ProvenancePolicy()


class ActionPolicy(StrEnum):
    """The handling of an action: run it at once, show it to a person first, or forbid it."""

    DIRECT = "direct"
    PREVIEW = "preview"
    FORBIDDEN = "forbidden"


class ActionPolicyProvider(Protocol):
    """A host's own word on an action. None: it has none. Raising, or any word that is no policy, forbids."""

    def get_action_policy(self, context: Mapping[str, Any]) -> str | None: ...


class ToolAccessPolicy(Protocol):
    """A host's own policy fragment for a run. None: it has none. Raising hides whatever is not mandatory."""

    def get_tool_policy(self, context: Mapping[str, Any]) -> Mapping[str, Any] | None: ...


class PolicyFragment(Value):
    """A piece of visibility policy, from an agent's configuration, the context of a run, or a provider."""

    mode: Literal["allow", "deny"] = "deny"
    tools: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    allow_only: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    runtime_tools: tuple[str, ...] = ()
    runtime_categories: tuple[str, ...] = ()
    mandatory_tools: tuple[str, ...] = ()
    mandatory_categories: tuple[str, ...] = ()
    allow_write_tools: bool = Field(default=False, strict=True)
