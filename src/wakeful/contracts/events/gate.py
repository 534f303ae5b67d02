"""Facts about the gate: what was offered, what a person or a client was asked, what they said, what held a call.

`action.required` and `action.resolved` are the approval record: created once, decided once. A question to a person is
a record of the same kind. `runtime_tool.requested` and `runtime_tool.resolved` are the same for calls a client runs.
"""

from typing import Any, ClassVar, Literal, TypeAlias

from wakeful.contracts.content import BlobRef
from wakeful.contracts.events.base import CALL, TURN, Event, Need, Preview
from wakeful.contracts.events.tools import Elsewhere
from wakeful.contracts.tools import Confinement, HookPoint

ActionType: TypeAlias = Literal["approval", "question"]
ApprovalStatus: TypeAlias = Literal["approved", "rejected", "timed_out"]
Decision: TypeAlias = Literal["approve", "reject", "edit", "answer", "always", "expire", "cancel"]
"""What was done about it. expire and cancel are the runtime's own."""

RunKind: TypeAlias = Literal["agent", "workflow"]
StagedType: TypeAlias = Literal["pending_action", "client_tool"]

ACTION: tuple[Need, ...] = (*CALL, "action_id")


class ToolCatalogResolved(Event):
    """What the turn may call, and what not and why. Once a turn, and again when it changes."""

    kind: ClassVar[str] = "tool.catalog.resolved"

    revision: int = 1
    reason: str = ""
    """Why there is another revision."""
    catalog_ref: BlobRef
    """The entries, by content: turns with the same tools share them."""
    offered: int
    withheld: int = 0
    """Denied by policy, or not available."""


class ActionRequired(Event):
    """A person has to decide. The call waits; its siblings do not."""

    kind: ClassVar[str] = "action.required"
    aliases: ClassVar[tuple[str, ...]] = ("approval_requested", "permission.requested", "approval_required")
    needs: ClassVar[tuple[Need, ...]] = ACTION

    action_id: str
    action_type: ActionType = "approval"
    run_kind: RunKind = "agent"
    """What asks: an agent's turn, or one that runs a workflow."""
    tool_name: str
    prompt: str
    """What the person is asked, in words."""
    reason: str
    """Why the gate asks."""
    decisions: tuple[Decision, ...]
    choices: tuple[str, ...] = ()
    """The answers a question offers; empty: any."""
    safe_args: dict[str, Any] = {}
    injected_args: dict[str, Any] = {}
    args_sha256: str
    """Over the redacted arguments."""
    binding: str
    """HMAC over tool, declaration, real arguments and directory: what is decided holds for these and nothing else."""
    working_directory: str | None = None
    confinement: str | None = None
    """What would hold it while it runs; None for tools that run no foreign code."""
    approvers: tuple[str, ...] = ()
    """Who may decide; empty: whoever may operate the runtime."""
    expires_at: int
    """Microseconds since the epoch."""
    policy: Literal["ask"] = "ask"
    rule_refs: tuple[str, ...] = ()
    elsewhere: Elsewhere | None = None
    """Once it is approved, somebody outside carries it out in the place of the tool's own code."""


class ActionResolved(Event):
    """It was decided, once."""

    kind: ClassVar[str] = "action.resolved"
    aliases: ClassVar[tuple[str, ...]] = ("approval_resolved", "permission.resolved")
    needs: ClassVar[tuple[Need, ...]] = ACTION
    outsider: ClassVar[bool] = True

    action_id: str
    tool_name: str
    status: ApprovalStatus
    decision: Decision
    resolver: str
    """Who decided; `runtime` when nobody did."""
    reason: str = ""
    """The person's own words; of a rejection, the model reads them."""
    arguments: dict[str, Any] | None = None
    """Of an edit: what is run instead."""
    binding: str | None = None
    """Of an edit: what the new arguments are bound to."""
    answer: Any = None
    """Of an answer: what stands in the tool's place."""
    answer_ref: BlobRef | None = None
    """The answer as JSON, when it is too large to stand here."""
    rule_id: str | None = None
    rule: dict[str, Any] | None = None
    """Of an always: the rule that was added. It holds for the rest of the turn, too."""


class RuntimeToolRequested(Event):
    """A client is to run the call. From here on it may have happened, whatever is heard of it."""

    kind: ClassVar[str] = "runtime_tool.requested"
    aliases: ClassVar[tuple[str, ...]] = ("runtime_tool_request_created", "client_tool_call")
    needs: ClassVar[tuple[Need, ...]] = ACTION

    request_id: str
    tool_name: str
    safe_args: dict[str, Any] = {}
    args_sha256: str
    arguments: dict[str, Any] | None = None
    """What the client is to run it with, where that is not what the model wrote."""
    timeout_at: int
    """Microseconds since the epoch."""
    runtime: dict[str, Any] = {}
    metadata: dict[str, Any] = {}


class RuntimeToolResolved(Event):
    """The client answered, or its time ran out, or nobody wants the answer any more."""

    kind: ClassVar[str] = "runtime_tool.resolved"
    aliases: ClassVar[tuple[str, ...]] = (
        "runtime_tool_result_submitted",
        "runtime_tool_request_timed_out",
        "client_tool_result",
    )
    needs: ClassVar[tuple[Need, ...]] = ACTION
    outsider: ClassVar[bool] = True

    request_id: str
    tool_name: str
    status: Literal["runtime_tool_completed", "runtime_tool_timeout"]
    success: bool
    result: Any = None
    result_ref: BlobRef | None = None
    """The result as JSON, when it is too large to stand here."""
    error: str | None = None
    cancelled: bool = False
    not_sent: bool = False
    """The request never left for a client: nothing can have happened."""
    submitted_by: str = "client"
    metadata: dict[str, Any] = {}
    runtime: dict[str, Any] = {}


class RuntimeToolContinued(Event):
    """Whoever continues runs was told that the request is answered, and said what it made of it."""

    kind: ClassVar[str] = "runtime_tool.continued"
    aliases: ClassVar[tuple[str, ...]] = ("runtime_tool_request_resumed",)
    needs: ClassVar[tuple[Need, ...]] = ("action_id",)
    outsider: ClassVar[bool] = True

    request_id: str
    tool_name: str
    run_id: str = ""


class ActionStaged(Event):
    """A host keeps something here that waits for somebody, and that is no call of a turn."""

    kind: ClassVar[str] = "action.staged"
    needs: ClassVar[tuple[Need, ...]] = ("action_id",)
    outsider: ClassVar[bool] = True

    action_id: str
    action_type: StagedType
    name: str
    """The tool, or what kind of action it is."""
    expires_at: int
    """Microseconds since the epoch."""
    record: dict[str, Any] | None = None
    record_ref: BlobRef | None = None
    """The record as JSON, when it is too large to stand here."""


class ActionSettled(Event):
    """It was decided or answered, once."""

    kind: ClassVar[str] = "action.settled"
    needs: ClassVar[tuple[Need, ...]] = ("action_id",)
    outsider: ClassVar[bool] = True

    action_id: str
    action_type: StagedType
    status: str
    settled_by: str
    record: dict[str, Any] | None = None
    record_ref: BlobRef | None = None


class ApprovalRuleAdded(Event):
    """From now on calls like this are not asked about."""

    kind: ClassVar[str] = "approval_rule.added"
    needs: ClassVar[tuple[Need, ...]] = ()
    outsider: ClassVar[bool] = True

    rule_id: str
    agent_name: str
    rule: dict[str, Any]
    """A permission rule, as data."""
    added_by: str
    action_id: str | None = None
    """The approval it was made with."""


class ApprovalRuleRevoked(Event):
    """The rule holds no more."""

    kind: ClassVar[str] = "approval_rule.revoked"
    needs: ClassVar[tuple[Need, ...]] = ()
    outsider: ClassVar[bool] = True

    rule_id: str
    revoked_by: str


class SandboxApplied(Event):
    """What the call is held to, before it begins."""

    kind: ClassVar[str] = "sandbox.applied"
    needs: ClassVar[tuple[Need, ...]] = CALL

    mode: str
    cwd: str
    read_roots: tuple[str, ...] = ()
    write_roots: tuple[str, ...] = ()
    network: Literal["none", "full"] = "none"
    process_limits: dict[str, int] = {}
    environment_ref: str | None = None
    reason: str = ""

    @classmethod
    def of(cls, confinement: Confinement) -> "SandboxApplied":
        return cls(**confinement.model_dump(exclude_defaults=True))


class SandboxViolation(Event):
    """The call tried what it is held from."""

    kind: ClassVar[str] = "sandbox.violation"
    needs: ClassVar[tuple[Need, ...]] = CALL

    boundary: str
    target: str


class FilesTainted(Event):
    """Files of a workspace hold what a conversation with untrusted input wrote, or may hold it.

    A later reader has untrusted input, in whatever turn of whatever agent of the store, until the owner accepts them.
    """

    kind: ClassVar[str] = "files.tainted"

    workspace: str
    """Its root, by real path."""
    cause: Preview
    """What the conversation had read."""
    files: dict[str, str] = {}
    """Paths below the root to digests of what was written; blank: whatever stands there. One that ends in `/` is a
    folder with all that is in it."""
    since: int | None = None
    """Every file that was changed at this time (Unix microseconds) or later; 0: every file. Written before a call that
    may change files begins."""
    settles: int | None = None
    """The call is over: this takes the place of what was written `since` it began."""


class HookStarted(Event):
    """A hook is asked."""

    kind: ClassVar[str] = "hook.started"
    needs: ClassVar[tuple[Need, ...]] = CALL

    point: HookPoint
    handler_ref: str
    timeout_ms: int


class HookCompleted(Event):
    """It answered."""

    kind: ClassVar[str] = "hook.completed"
    needs: ClassVar[tuple[Need, ...]] = CALL

    point: HookPoint
    handler_ref: str
    status: Literal["completed"] = "completed"
    duration_ms: float
    decision: Literal["continue", "block", "allow", "deny", "ask"]
    reason: str = ""
    updated_input_ref: str | None = None
    updated_output_ref: str | None = None


class HookFailed(Event):
    """It raised, ran out of time, or answered nonsense."""

    kind: ClassVar[str] = "hook.failed"
    needs: ClassVar[tuple[Need, ...]] = CALL

    point: HookPoint
    handler_ref: str
    error_category: Literal["raised", "timeout", "invalid_answer"]
    message: str = ""
    retryable: bool = False
    fail_mode: Literal["open", "closed"] = "closed"
    duration_ms: float


class OutputSpilled(Event):
    """A result is larger than what the model is shown; all of it is kept."""

    kind: ClassVar[str] = "output.spilled"
    needs: ClassVar[tuple[Need, ...]] = CALL

    output_ref: str
    owner: str
    media_type: str
    encoding: str = "utf-8"
    size_bytes: int
    sha256: str
    preview: Preview
    truncated: bool = True
    redacted: bool = False
    expires_at: int | None = None


class OutputRedacted(Event):
    """Keys of the runtime's own stood in what a call returned, and were taken out before anything was kept."""

    kind: ClassVar[str] = "output.redacted"
    needs: ClassVar[tuple[Need, ...]] = CALL

    output_ref: str


class OutputTruncated(Event):
    """What the model is shown was cut."""

    kind: ClassVar[str] = "output.truncated"
    needs: ClassVar[tuple[Need, ...]] = CALL

    output_ref: str | None = None
    original_bytes: int
    kept_bytes: int


class WarningIssued(Event):
    """Something went wrong that changes nothing."""

    kind: ClassVar[str] = "runtime.warning"
    needs: ClassVar[tuple[Need, ...]] = TURN

    code: str
    message: str
