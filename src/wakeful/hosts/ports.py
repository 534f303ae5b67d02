"""What a host brings to `ConversationLoop` and keeps for itself, as Protocols.

Every method may be plain or async; a plain one runs off the event loop.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from wakeful.contracts.jsonable import JsonDict
from wakeful.contracts.transcript import Message
from wakeful.contracts.values import Value
from wakeful.hosts.actions.pending_action import PendingAction
from wakeful.hosts.loop.conversation_request import ConversationRequest
from wakeful.hosts.loop.conversation_result import ConversationResult
from wakeful.hosts.tools.tool_declaration import RuntimeToolDeclaration
from wakeful.ports.client_requests import PlainOrAsync

TurnRunner: TypeAlias = Callable[[list[dict[str, Any]], dict[str, Any]], PlainOrAsync[Mapping[str, Any]]]
"""(messages, context) -> one turn: the transcript as envelopes and the run's context, answered with an object."""


class ToolCallMetadata(Value):
    """Where a call comes from."""

    source: str
    """Who provides the tool."""
    provider_tool_name: str
    """The name the model used: the canonical one or an alias of it."""
    tool_call_id: str


class ToolCall(Value):
    """One call, ready to be executed."""

    tool_name: str
    """The canonical name."""
    parameters: JsonDict = {}
    metadata: ToolCallMetadata
    id: str | None = None
    """The id the provider gave it, when it gave one."""


class ToolExecutor(Protocol):
    """Runs a host's tools."""

    def execute(self, call: ToolCall, declaration: RuntimeToolDeclaration, context: dict[str, Any]) -> object:
        """An object: `{success, result | error, metadata?, runtime?}`, or a bare result. Raising fails this one call.

        `context["cancelled"]` is set when nobody waits for the call any more; `context["deadline"]`, where it is there,
        is when that will be.
        """
        ...


class ConversationLock(Protocol):
    """Keeps two runners from one transcript."""

    def acquire_session_lock(self, session_id: str, ttl_seconds: int = 300) -> PlainOrAsync[str | None]:
        """A token, or None while somebody else holds the lock. A lock past its time may be taken over."""
        ...

    def release_session_lock(self, session_id: str, token: str) -> PlainOrAsync[bool]:
        """True when it was this token's. A stale token must not release what somebody else holds now."""
        ...


class TranscriptPersister(Protocol):
    """Keeps transcripts where the host wants them."""

    def persist(
        self, messages: Sequence[Message], request: ConversationRequest, result: ConversationResult
    ) -> PlainOrAsync[str | None]:
        """The transcript's id, or an empty text. Called once a run, however it ended; raising changes nothing."""
        ...


class CompletionDecision(Value):
    """Is the work done with this result? If not, `message` is a word for the model, when there is one."""

    complete: bool
    message: str = ""
    context: JsonDict = {}
    """The policy's own, for whoever reads the event."""


class CompletionPolicy(Protocol):
    """Says when a host's work is done."""

    def record_tool_result(
        self,
        tool_name: str,
        declaration: RuntimeToolDeclaration | None,
        tool_result: dict[str, Any],
        context: dict[str, Any],
        turn_count: int,
    ) -> PlainOrAsync[CompletionDecision | Mapping[str, Any] | None]:
        """Called with every result: a decision, or its fields. Raising, or anything else, says nothing."""
        ...


class PendingActionStore(Protocol):
    """Keeps actions that wait for a decision; they are there again after a restart."""

    def store(self, action: PendingAction) -> PlainOrAsync[None]:
        """Keep a pending action. Raises when it cannot: an action that is not kept cannot be decided."""
        ...

    def get(self, action_id: str) -> PlainOrAsync[PendingAction | None]:
        """The action of this id, or None."""
        ...

    def list(self, query: Mapping[str, Any]) -> PlainOrAsync[Sequence[PendingAction]]:
        """Actions, newest first. Keys of the query: status, kind, agent, workspace, limit."""
        ...

    def summary(self, query: Mapping[str, Any]) -> PlainOrAsync[Mapping[str, int]]:
        """How many there are: an object status -> count."""
        ...

    def record_resolution(self, action: PendingAction) -> PlainOrAsync[bool]:
        """Compare and set: True when the action was pending and is now as given; False when it had ended before."""
        ...

    def expire(self, now: str) -> PlainOrAsync[int]:
        """End what is past its `expires_at`; how many that were."""
        ...

    def delete(self, action_id: str, *, resolver: str, now: str) -> PlainOrAsync[bool]:
        """End a pending action as deleted; True when it was there and pending."""
        ...
