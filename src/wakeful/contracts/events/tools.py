"""Facts about tool calls.

For one call: `permission.evaluated`, `tool.started`, any `tool.args` and `tool.progress`, then exactly one of
`tool.result` or `tool.failed`. `tool.started` is the intent when it says `dispatched`; a later run of the same intent
is a `tool.dispatched` of its own, so that a call which keeps killing the process is seen to do so.
"""

from typing import Any, ClassVar, Literal, TypeAlias

from wakeful.contracts.content import BlobRef
from wakeful.contracts.conversation import ToolItem
from wakeful.contracts.events.base import CALL, STEP, TURN, Event, Need, Preview
from wakeful.contracts.tools import Effect, Effects, FailedStatus, ToolError, ToolResultMetadata
from wakeful.contracts.values import Value
from wakeful.contracts.verdicts import Decision as Choice

Policy: TypeAlias = Literal["allowed", "ask", "denied", "sandboxed", "unavailable"]
AbortReason: TypeAlias = Literal[
    "user_interrupt",
    "superseded",
    "sibling_failed",
    "timeout",
    "budget",
    "fallback",
    "approval_expired",
    "runtime_shutdown",
    "parent_cancelled",
]
ErrorCategory: TypeAlias = Literal[
    "unknown_tool",
    "invalid_arguments",
    "schema_validation_failed",
    "schema_not_loaded",
    "permission_denied",
    "approval_rejected",
    "policy_blocked",
    "hook_blocked",
    "capability_gap",
    "setup_required",
    "credential_missing",
    "sandbox_violation",
    "timeout",
    "rate_limited",
    "dependency_unavailable",
    "execution_failed",
    "partial_failure",
    "result_too_large",
    "result_redacted",
    "sibling_canceled",
    "canceled",
]


class HookOutcome(Value):
    """What a hook said about a call."""

    hook_id: str
    point: Literal["pre_tool_use", "post_tool_use", "post_tool_failure", "permission_request"]
    decision: Literal["continue", "block", "allow", "deny", "ask"]
    updated_input_ref: str | None = None
    updated_output_ref: str | None = None
    event_id: str


class Elsewhere(Value):
    """Somebody outside carries the call out in the place of the tool's own code: what they are sent beyond it."""

    runtime: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    timeout_at: int | None = None
    """Microseconds since the epoch; None: as long as for every client."""


class Opinion(Value):
    """The word of code that the log does not hold (a predicate, a hook): recorded, because it cannot be computed."""

    by: str
    decision: Choice
    reason: str = ""
    error_type: str | None = None
    """Of a deny: what the call is told."""
    arguments: dict[str, Any] | None = None
    """Of a hook that wrote others in their place: what is judged and run instead. Real, like the model's own."""
    replaces: bool = False
    """The tool is not run; the result that follows stands in its place."""
    elsewhere: Elsewhere | None = None
    """The tool is not run; somebody outside is asked to carry out the call, and it waits for them."""
    completes: bool = False
    """With this call the run is complete: its siblings that have not begun are passed over."""


class PermissionEvaluated(Event):
    """The gate's verdict on a call, with its reason."""

    kind: ClassVar[str] = "permission.evaluated"
    needs: ClassVar[tuple[Need, ...]] = (*TURN, "tool_call_id")

    decision: Literal["allow", "ask", "deny", "sandbox", "unavailable"]
    decision_source: Literal["rule", "mode", "hook", "host_policy", "human", "sandbox"] = "mode"
    decision_reason: str
    rule_refs: tuple[str, ...] = ()
    updated_input_ref: str | None = None
    approval_action_id: str | None = None
    """Of an ask, or of what followed from one: the record."""
    expires_at: int | None = None
    scope: str = "call"
    destructive: bool = False
    layer: str = ""
    """Which step of the gate decided."""
    said: tuple[Opinion, ...] = ()
    """What was said by code that the log does not hold: predicates, hooks. The rest of the verdict follows from it."""


class ToolStarted(Event):
    """A call was taken up. With `dispatched` it is the intent: the effect may begin once this is on disk."""

    kind: ClassVar[str] = "tool.started"
    aliases: ClassVar[tuple[str, ...]] = ("tool_call", "tool_call_update(start)")
    needs: ClassVar[tuple[Need, ...]] = CALL

    tool_name: str
    safe_args: dict[str, Any] | None = None
    args_ref: str | None = None
    args_sha256: str
    policy: Policy = "allowed"
    permission_ref: str | None = None
    """`event_id` of the verdict; `@-1` and `@-2` in the log: the event before this one, and the one before that."""
    approval_ref: str | None = None
    sandbox_ref: str | None = None
    hook_outcomes: tuple[HookOutcome, ...] = ()
    is_read_only: bool
    is_concurrency_safe: bool
    is_destructive: bool
    interrupt_behavior: Literal["cancel", "block"] = "cancel"
    batch_id: str
    position: int
    scheduling: Literal["parallel", "serial"]
    dispatched: bool
    effect: Effect
    """The class that holds for this call, whatever the declaration says later."""
    idempotency_key: str
    timeout_ms: int | None = None


class ToolDispatched(Event):
    """An intent that was on disk already is carried out (again)."""

    kind: ClassVar[str] = "tool.dispatched"
    needs: ClassVar[tuple[Need, ...]] = CALL

    attempt: int
    """2 for the first repeat."""
    cause: Literal["recovery", "timeout", "approval"]


class ToolArgs(Event):
    """Arguments changed on their way to the tool."""

    kind: ClassVar[str] = "tool.args"
    needs: ClassVar[tuple[Need, ...]] = CALL

    delta: str | None = None
    safe_args: dict[str, Any] | None = None
    args_ref: str | None = None
    changed_by: Literal["model", "hook", "approver"] = "model"


class ToolProgress(Event):
    """A note of a running call: at most one a second, and the last."""

    kind: ClassVar[str] = "tool.progress"
    aliases: ClassVar[tuple[str, ...]] = ("mcp_progress",)
    needs: ClassVar[tuple[Need, ...]] = CALL

    progress_seq: int
    message: str | None = None
    progress: float | None = None
    total: float | None = None
    partial_preview: Preview | None = None
    partial_ref: str | None = None
    elapsed_ms: int


class ToolResult(Event):
    """The call succeeded."""

    kind: ClassVar[str] = "tool.result"
    aliases: ClassVar[tuple[str, ...]] = ("tool_result", "tool_executed", "tool_call_update(end)")
    needs: ClassVar[tuple[Need, ...]] = CALL

    status: Literal["succeeded", "partial"] = "succeeded"
    tool_name: str
    item: ToolItem
    """What the model is shown."""
    preview: Preview
    result_ref: BlobRef | None = None
    """The whole result, when the model is shown less than that."""
    structured_ref: str | None = None
    images: tuple[str, ...] = ()
    artifact_refs: tuple[str, ...] = ()
    evidence_refs: tuple[str, ...] = ()
    truncated: bool = False
    redacted: bool = False
    size_bytes: int
    duration_ms: float
    permission_ref: str | None = None
    approval_ref: str | None = None
    sandbox_ref: str | None = None
    hook_outcomes: tuple[HookOutcome, ...] = ()
    details: dict[str, Any] = {}
    """What the tool said besides its result, for people and programs: `citations` and the like."""
    untrusted: str = ""
    """Why anybody may have written it, where that does not follow from the tool: the file it was read from."""
    metadata: ToolResultMetadata


class ToolFailed(Event):
    """The call did not succeed. `effects` says whether the world may have changed all the same."""

    kind: ClassVar[str] = "tool.failed"
    aliases: ClassVar[tuple[str, ...]] = ("tool_result", "tool_executed", "tool_call_update(end)")
    needs: ClassVar[tuple[Need, ...]] = CALL

    status: FailedStatus
    tool_name: str
    item: ToolItem
    """The receipt the model is shown."""
    error_category: ErrorCategory
    message: str
    retryable: bool
    recovery_advice: str | None = None
    retry_after_ms: int | None = None
    abort_reason: AbortReason | None = None
    preview: Preview | None = None
    result_ref: BlobRef | None = None
    artifact_refs: tuple[str, ...] = ()
    evidence_refs: tuple[str, ...] = ()
    effects: Effects = "unknown"
    duration_ms: float
    permission_ref: str | None = None
    approval_ref: str | None = None
    sandbox_ref: str | None = None
    hook_outcomes: tuple[HookOutcome, ...] = ()
    error: str
    """The error, flattened to a line."""
    tool_error: ToolError
    """The same, structured."""
    metadata: ToolResultMetadata
    asked_retry: bool = False
    """The tool itself asked the model to try differently."""
    traceback: str | None = None
    """Where the tool's exception came from; redacted, and not shown to the model."""
    untrusted: str = ""
    """Why anybody may have written what the receipt says: the file it quotes, or files that a command may have read."""


class UnknownResolved(Event):
    """An outcome nobody knew is known now: a late answer, a probe, or a person's word."""

    kind: ClassVar[str] = "unknown.resolved"
    needs: ClassVar[tuple[Need, ...]] = STEP
    outsider: ClassVar[bool] = True

    call_id: str
    tool_name: str
    happened: bool
    result: str = ""
    """What it returned or how it ended, in words."""
    source: Literal["late_answer", "probe", "operator"]
    resolved_by: str = "runtime"
