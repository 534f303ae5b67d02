"""Tools as values: what is declared, what went wrong, what is recorded about a call.

A live tool (a Python function) is elsewhere; these values travel, are stored, and name no code.
"""

import re
from functools import cached_property
from typing import Any, Literal, Self, TypeAlias

from wakeful.contracts.values import Value

Effect: TypeAlias = Literal["pure", "keyed", "probeable", "irreversible"]
"""What a repeat would do. pure: nothing, run it again. keyed: nothing, given the same idempotency key.
probeable: unknown, but the tool's probe can tell what happened. irreversible: it would happen twice."""
BY_DANGER: tuple[Effect, ...] = ("pure", "keyed", "probeable", "irreversible")

PermissionClass: TypeAlias = Literal[
    "safe",
    "knowledge",
    "network",
    "workspace_write",
    "editor_mutate",
    "subagent",
    "secrets",
    "execute",
    "external_write",
]
"""What a policy switches on and off. safe: reads, no network, no file is written. knowledge: memory and the like.
network: reads from elsewhere. workspace_write: files inside the workspace. editor_mutate: changes what an editor shows.
subagent: starts or ends a child. secrets: reads or writes a user's secrets. execute: runs commands. external_write:
changes something outside this machine, or that nobody vouches for."""
HookPoint: TypeAlias = Literal["pre_tool_use", "post_tool_use", "post_tool_failure", "permission_request"]
"""Where a hook may have a say in a call."""
RuntimeOwner: TypeAlias = Literal[
    "local", "mcp_server", "hosted_connector", "provider_native", "workflow", "subagent", "client"
]
"""Who runs the tool."""

MAX_RESULT_TOKENS = 8_000
"""The most text of a result that a model is shown where nobody set a budget, estimated as UTF-8 bytes / 3."""
WRITING_FLAGS: frozenset[str] = frozenset({"write", "shell"})
"""Capabilities of tools that do more than read, whatever else they say."""
OUTWARD_FLAGS: frozenset[str] = frozenset({"network", "browser"})
"""Capabilities of tools that reach beyond the machine."""
PREVIEW_CHARS = 500
"""How much of a text stands in an event that only wants to show it."""

InterruptBehavior: TypeAlias = Literal["cancel", "block"]
OnFailure: TypeAlias = Literal["ignore", "cancel_siblings", "cancel_dependent"]
"""ignore: they go on. cancel_siblings: all of them are called off. cancel_dependent: those that waited for it are."""

DuplicatePolicy: TypeAlias = Literal["repeatable"]
"""repeatable: the same call may be made again and again, and no guard counts it."""

FailedStatus: TypeAlias = Literal[
    "failed", "denied", "rejected", "timed_out", "cancelled", "interrupted", "skipped", "invalid"
]
Effects: TypeAlias = Literal["none", "possible", "unknown"]
"""May the world have changed? `unknown` is what an operator has to find out."""


class Freeform(Value):
    """Where a provider has such tools, a model may write the one text of a tool bare, without JSON around it."""

    parameter: str
    """What the text is an argument for."""
    grammar: str
    """What it looks like, in Lark."""


class ServerTool(Value):
    """A tool that the model's provider runs by itself while it answers."""

    kind: Literal["web_search"] = "web_search"
    max_uses: int | None = None
    """How often it may be used in one reply."""
    allowed_domains: tuple[str, ...] = ()
    blocked_domains: tuple[str, ...] = ()


class ToolDeclaration(Value):
    """What a model is told about a tool, and what the runtime holds it to."""

    name: str
    description: str = ""
    input_schema: dict[str, Any]
    effect: Effect = "irreversible"
    timeout: float | None = None
    """Seconds; None means the turn's own deadline."""
    retries: int = 2
    """How often in one turn the tool may ask the model to try differently."""
    locks: tuple[str, ...] = ()
    """Names that no two running calls of a tree may hold together."""
    parallel_safe: bool = True
    reads_private: bool = False
    changes_state: bool | None = None
    """None: follows from the effect (everything but pure changes state)."""
    leaves_machine: bool = False
    untrusted: bool | None = None
    """Anybody may have written what it returns. None: follows from where it runs (what leaves the machine or runs
    elsewhere is untrusted)."""
    content: tuple[str, ...] = ()
    """Parameters that hold free text, by dotted path: where their words come from is not compared."""
    external: bool = False
    """The tool runs outside this process; its schema came from elsewhere."""
    child_safe: bool = True
    sensitive_parameters: tuple[str, ...] = ()
    permission_class: PermissionClass | None = None
    """None: follows from the other flags (`permission`)."""
    capabilities: tuple[str, ...] = ()
    """Flags that people see and rules can name: read, write, network, browser, filesystem, shell, artifact,
    `custom:<name>`. What writes or runs commands runs alone; what has network or browser reaches out."""
    categories: tuple[str, ...] = ()
    runtime_owner: RuntimeOwner = "local"
    interrupt_behavior: InterruptBehavior = "cancel"
    """What an interrupt does to a running call: stop it, or let it finish first."""
    on_failure: OnFailure = "ignore"
    """What a failure of it does to the other calls of its round."""
    duplicate_policy: DuplicatePolicy | None = None
    """None: the same call made again is a repeat, which the guards of a run count."""
    answered_by: Literal["code", "person", "client"] = "code"
    """Who produces the result: this process, a person who is asked, or a client that runs the tool."""
    freeform: Freeform | None = None
    server: ServerTool | None = None
    """The model's provider runs it, and no code of ours: whether it may is settled before a request is sent."""

    @property
    def permission(self) -> PermissionClass:
        """The class a policy judges it by."""
        if self.permission_class is not None:
            return self.permission_class
        if not self.is_read_only:
            return "external_write"
        return "network" if self.reaches_out else "safe"

    @property
    def reaches_out(self) -> bool:
        """Does something leave the machine, by its own word or by what it can do?"""
        return self.leaves_machine or not OUTWARD_FLAGS.isdisjoint(self.capabilities)

    @property
    def requires_exclusive_lock(self) -> str | None:
        """The lock it needs, by the name that there is one; of several, the first."""
        return self.locks[0] if self.locks else None

    @cached_property
    def is_read_only(self) -> bool:
        """What writes, runs commands or changes an editor does not only read, whatever its effect is said to be."""
        if self.permission_class == "editor_mutate" or not WRITING_FLAGS.isdisjoint(self.capabilities):
            return False
        return not (self.effect != "pure" if self.changes_state is None else self.changes_state)

    @cached_property
    def is_destructive(self) -> bool:
        return not self.is_read_only and self.effect == "irreversible"

    @cached_property
    def serial(self) -> bool:
        """Runs alone in its batch: writers, what touches secrets, and those that say so. Locks are not asked here."""
        return not self.parallel_safe or not self.is_read_only or self.permission_class == "secrets"

    def __copy__(self) -> Self:
        """What was worked out does not hold for a copy in which something is changed."""
        copy = super().__copy__()
        for worked_out in ("is_read_only", "is_destructive", "serial"):
            copy.__dict__.pop(worked_out, None)
        return copy

    def at_least(self, declared: "ToolDeclaration") -> "ToolDeclaration":
        """What holds for one call: this, and nothing that is looser than what was declared."""
        if self is declared:
            return declared
        stricter = {
            "parallel_safe": self.parallel_safe and declared.parallel_safe,
            "reads_private": self.reads_private or declared.reads_private,
            "changes_state": not (self.is_read_only and declared.is_read_only),
            "leaves_machine": self.leaves_machine or declared.leaves_machine,
            "untrusted": _stricter(self.untrusted, declared.untrusted),
            "content": tuple(name for name in self.content if name in declared.content),
            "locks": tuple(dict.fromkeys((*declared.locks, *self.locks))),
            "effect": max(self.effect, declared.effect, key=BY_DANGER.index),
            "sensitive_parameters": tuple(dict.fromkeys((*declared.sensitive_parameters, *self.sensitive_parameters))),
        }
        return self.model_copy(update=stricter)


def _stricter(one: bool | None, other: bool | None) -> bool | None:
    """Yes if either says so; no if both do; else it follows from where the tool runs."""
    return True if True in (one, other) else None if None in (one, other) else False


class ToolError(Value):
    """A failure an agent is shown: one envelope for every tool."""

    kind: str
    """Stable and machine-readable: `tool_not_found`, `invalid_parameters`, `timeout`, `outcome_unknown` ..."""
    message: str
    details: dict[str, Any] | None = None
    """Structured and safe to show the agent; `details.field` names the input that was wrong."""
    recovery_hint: str | None = None
    retryable: bool = False
    """Would the same logical action be expected to help?"""


class ToolResultMetadata(Value):
    """The canonical record of one call; the event mirrors it value for value. Times are Unix seconds."""

    status: Literal["success", "error", "rejected", "timed_out", "cancelled"]
    started_at: float
    completed_at: float
    execution_time_ms: float
    approval_status: Literal["not_required", "approved", "rejected", "timed_out"] = "not_required"
    approval_id: str | None = None
    injected_args: dict[str, Any] = {}
    offloaded_artifact_id: str | None = None


class Confinement(Value):
    """What a call is held to while it runs. Where nothing holds it, `mode` says so."""

    mode: Literal["bubblewrap", "landlock", "not_enforced"]
    cwd: str
    read_roots: tuple[str, ...] = ()
    write_roots: tuple[str, ...] = ()
    network: Literal["none", "full"] = "none"
    process_limits: dict[str, int] = {}
    reason: str = ""
    """Why it is not enforced, or not whole."""


class Principal(Value):
    """The user or service that a run acts for."""

    id: str
    claims: dict[str, str] = {}


def provider_safe_name(name: str) -> str:
    """A name every provider accepts: `client/search-docs` as `client__search__docs`."""
    safe = re.sub(r"[^A-Za-z0-9_]+", "__", name).strip("_")
    return safe if safe[:1].isalpha() else f"tool_{safe}"
