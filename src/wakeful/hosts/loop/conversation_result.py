"""The result of a conversation: `wakeful.conversation-result` version 1, the stable surface for replays and stores.

Nothing in it needs a provider's own fields: transcript, pairing and stop reason can be rebuilt from it alone.
Parameters in it are redacted; the raw ones never left the executor.
"""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from pydantic import ConfigDict, Field, model_validator

from wakeful.contracts.audit import ToolAudit
from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.jsonable import JsonAny, JsonDict
from wakeful.contracts.outcomes import RunFailure, RunOutcome
from wakeful.contracts.transcript import Message, normalise, normalise_all
from wakeful.contracts.validation import validated
from wakeful.contracts.values import Value
from wakeful.views.conversation_export import ResultEvent

SCHEMA = "wakeful.conversation-result"
INVALID = "invalid_conversation_result"
REQUIRED = ("schema", "version", "messages", "tool_execution_results", "tool_audit_events", "events")

ResultStatus: TypeAlias = Literal[
    "budget_exceeded",
    "stalled",
    "interrupted",
    "transcript_lock_contention",
    "approval_required",
    "runtime_tool_pending",
    "incomplete",
    "failed",
]


class ToolEvent(Value):
    """One step of a call, for a simple progress view."""

    type: str
    tool_name: str
    tool_call_id: str
    turn_count: int
    status: str | None = None
    metadata: JsonDict = {}


class ArgumentsSeen(Value):
    """The names of a call's arguments, without their values."""

    keys: tuple[str, ...] = ()
    count: int = 0
    redacted: Literal[True] = True


class ResultShape(Value):
    """The shape of a result, without its content."""

    type: Literal["object", "array", "string", "number", "boolean", "null"]
    keys: tuple[str, ...] | None = None
    """Of an object."""
    count: int | None = None
    """Of an object or a list."""


class ObservedCall(Value):
    """One call as an observer may see it."""

    sequence: int
    turn: int
    tool_call_id: str
    tool_name: str
    status: Literal["pending", "succeeded", "failed", "rejected"]
    arguments: ArgumentsSeen = ArgumentsSeen()
    result: ResultShape | None = None


class ToolObservability(Value):
    """All calls of a run, shapes only."""

    version: Literal[1] = 1
    calls: tuple[ObservedCall, ...] = ()


class StructuredOutputDiagnostics(Value):
    """The outcome of a request for structured output."""

    status: str
    code: str | None = None
    parser: str | None = None
    valid: bool


class ConversationResult(Value):
    """The result of a run, whole, on every way out."""

    model_config = ConfigDict(serialize_by_alias=True)

    schema_id: Literal["wakeful.conversation-result"] = Field("wakeful.conversation-result", alias="schema")
    version: Literal[1] = 1
    messages: tuple[Message, ...] = ()
    """The transcript; parameters of calls are redacted."""
    tool_execution_results: tuple[JsonDict, ...] = ()
    """`ToolExecution` entries when the loop mediated; a turn runner that ran its own tools brings its own shape."""
    tool_audit_events: tuple[ToolAudit, ...] = ()
    """The safe trace: what observers and exports receive."""
    events: tuple[ResultEvent, ...] = ()
    """The loop's own events, in the order of the log."""
    turn_count: int = Field(0, ge=0)
    """Turns executed."""
    final_content: str = ""
    """The last assistant text; empty when there is none."""
    usage: JsonDict = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    """Numbers are summed over the turns; of anything else the latest stands."""
    request_metadata: JsonDict = {}
    """The latest turn's."""
    completed: bool
    """The work is done: nothing else is called completion."""
    status: ResultStatus | None = None
    """Set for every stop that is not a completion, and only then."""
    budget: str | None = None
    """Which budget was exceeded."""
    interrupted: JsonDict | None = None
    """The metadata of the interrupt."""
    stalled: JsonDict | None = None
    """Calls that were repeated without progress."""
    approval_required: Message | None = None
    """The question that waits for an answer."""
    runtime_tool_pending: JsonDict | None = None
    """The request that waits for a client."""
    tool_events: tuple[ToolEvent, ...] = ()
    """Calls as they began and ended, for a progress view."""
    tool_observability: ToolObservability = ToolObservability()
    """Calls by their shapes: neither arguments nor results."""
    provider_diagnostics: tuple[JsonDict, ...] = ()
    """The turn runner's report about its provider."""
    structured_output: JsonAny = None
    """The latest turn's, when it had one."""
    structured_output_diagnostics: StructuredOutputDiagnostics | None = None
    failure: RunFailure | None = None
    metadata: JsonDict = {}
    """`swallowed_failures`: what was raised and changed nothing; `transcript_id`: what the persister answered."""
    run_outcome: RunOutcome

    @model_validator(mode="after")
    def _status_is_honest(self) -> "ConversationResult":
        if self.completed != (self.status is None):
            raise ValueError(
                "status is absent on completion and set on every other stop "
                f"(completed={self.completed}, status={self.status!r})"
            )
        if self.completed != self.run_outcome.completed:
            raise ValueError(f"run_outcome says {self.run_outcome.status!r} and completed is {self.completed}")
        if (self.budget is not None) != (self.status == "budget_exceeded"):
            raise ValueError(
                f"budget names the budget that was exceeded (status={self.status!r}, budget={self.budget!r})"
            )
        return self

    @classmethod
    def normalise(cls, raw: "ConversationResult | Mapping[str, Any]") -> "ConversationResult":
        """A result from outside. Raises InvalidValue `invalid_conversation_result` with the path."""
        if isinstance(raw, ConversationResult):
            return raw
        if not isinstance(raw, Mapping):
            raise InvalidValue(INVALID, "", f"expected an object, not a {type(raw).__name__}")
        for name in REQUIRED:
            if name not in raw:
                raise InvalidValue(INVALID, name, "is missing")
        fields = dict(raw)
        fields["messages"] = normalise_all(fields["messages"], code=INVALID)
        if fields.get("approval_required") is not None:
            fields["approval_required"] = normalise(fields["approval_required"], code=INVALID, at="approval_required")
        return validated(cls, fields, INVALID)

    def to_wire(self) -> dict[str, Any]:
        """The versioned envelope as JSON data; optional fields that say nothing are absent."""
        return self.model_dump(mode="json", exclude_none=True)
