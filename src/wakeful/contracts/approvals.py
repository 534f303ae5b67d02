"""The approval record, and the ways it can be decided.

One record for every question the gate has for a person. It is created by the call that waits, decided once by whoever
is entitled and fastest, and outlives the process that asked.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

from wakeful.contracts.values import Value

RUNTIME = "runtime"
"""The resolver of an approval that expired."""

OPERATOR = "operator"
"""In a list of approvers: every caller with the scope `operate` that no model drives."""
NO_OPERATORS = ("mcp:", "channel:", "agent:")
"""How the names of callers begin that a model drives, or that have less than `operate`."""
APP = "app:"
"""Before the name of somebody for whom the program that embeds wakeful vouches."""

ApprovalState: TypeAlias = Literal["pending", "approved", "rejected", "timed_out"]
DEFAULT_EXPIRY_SECONDS = 24 * 3600.0


class Approval(Value):
    """An approval or a question, pending or decided. Times are Unix seconds."""

    approval_id: str
    kind: Literal["approval", "question"] = "approval"
    turn_id: str
    run_kind: Literal["agent", "workflow"] = "agent"
    agent_id: str
    agent: str = ""
    thread: str = ""
    call_id: str
    tool: str
    arguments: dict[str, Any] = {}
    """The arguments of the call, with secrets redacted."""
    arguments_sha256: str
    injected_args: dict[str, Any] = {}
    working_directory: str | None = None
    confinement: str | None = None
    """The sandbox that would confine the call."""
    prompt: str
    """The question to the person."""
    reason: str = ""
    """Why the gate asks."""
    choices: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    """The possible decisions."""
    approvers: tuple[str, ...] = ()
    status: ApprovalState = "pending"
    requested_at: float
    expires_at: float
    decided_at: float | None = None
    decided_by: str | None = None
    note: str | None = None
    """The words of whoever decided."""
    decision: str | None = None

    @property
    def id(self) -> str:
        return self.approval_id

    @property
    def expires(self) -> datetime:
        return datetime.fromtimestamp(self.expires_at, UTC)


@dataclass(frozen=True, slots=True)
class Approve:
    """Run it, with exactly these arguments."""

    note: str = ""


@dataclass(frozen=True, slots=True)
class Reject:
    """Do not run it; the model reads the note."""

    note: str = ""


@dataclass(frozen=True, slots=True)
class Edit:
    """Run it with these arguments instead. Both are kept."""

    arguments: dict[str, Any]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """Do not run it; this is its result. Also the answer to a question."""

    content: Any
    note: str = ""


@dataclass(frozen=True, slots=True)
class Always:
    """Run it, and do not ask again about calls like it."""

    scope: Literal["call", "tool", "pattern"] = "call"
    """call: this tool with these arguments. tool: this tool. pattern: as `match` and `arguments` say."""
    match: str | None = None
    """Of a pattern: tool names, `*` allowed."""
    arguments: dict[str, str] = field(default_factory=dict)
    """Of a pattern: what arguments must look like, `*` allowed."""
    for_seconds: float | None = None
    """None: until it is revoked."""
    note: str = ""


Decided: TypeAlias = Approve | Reject | Edit | Answer | Always


def is_approver(name: str, approvers: tuple[str, ...]) -> bool:
    """May the caller of that name decide what is for these? No list: everybody who may decide at all."""
    if not approvers or name in approvers:
        return True
    if name.startswith(APP) and name.removeprefix(APP) in approvers:
        return True
    return OPERATOR in approvers and bool(name) and not name.startswith(NO_OPERATORS)
