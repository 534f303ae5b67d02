"""What a client of a chat is sent: the wire messages of its turn, and what somebody outside has to do about it.

Each message that stands for a stored fact carries its `event_seq`. A client that comes back says the last one it has.
"""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from wakeful.contracts.events.gate import ApprovalStatus, Decision
from wakeful.contracts.values import Value
from wakeful.views.cost import CostSummary
from wakeful.views.wire_messages import (
    BudgetExceeded,
    Chunk,
    PlanningUpdate,
    TaskUpdate,
    ThreadWireMessage,
    ToolCallUpdate,
    TurnTerminal,
)


class MessageTaken(Value):
    """The client's own message is safe. First of all, and once."""

    type: Literal["message_taken"] = "message_taken"
    message_id: str
    agent: str
    thread_id: str
    event_seq: int
    """Its number in the agent's log."""
    state: str
    """queued: a turn takes it as soon as its thread is free and its agent runs."""
    turn_id: str | None = None
    """The turn that took it, where one did already."""


class RunningOutput(ThreadWireMessage):
    """Whole lines that a running call puts out, as they come: of a command, or of a tool that shows something. They
    are stored nowhere. Whoever comes late gets the end of them, and the result of the call is what counts."""

    type: Literal["tool_output"] = "tool_output"
    tool_call_id: str
    name: str
    text: str
    """With secrets hidden."""
    offset: int
    """How many characters the call had put out before: what was shown already comes with the same number again, and a
    gap was left out."""
    parent_id: str | None = None
    depth: int = 0


class ClientToolCall(ThreadWireMessage):
    """The client is to run a call, and to say what came of it."""

    type: Literal["client_tool_call"] = "client_tool_call"
    request_id: str
    """The same for the same call: a client that has run it does not run it again."""
    tool_call_id: str
    name: str
    """As the client named it: `ui_add_node`."""
    args: dict[str, Any]
    """The real ones for whoever may answer; redacted for a reader."""
    timeout_ms: int
    """What is left of the time when this is sent."""
    parent_id: str | None = None
    depth: int = 0


class ClientToolEnded(ThreadWireMessage):
    """A request to a client is over: nobody needs to answer it any more."""

    type: Literal["client_tool_ended"] = "client_tool_ended"
    request_id: str
    tool_call_id: str
    name: str
    status: Literal["completed", "failed", "timed_out", "cancelled"]
    ended_by: str


class ApprovalRequired(ThreadWireMessage):
    """A person has to decide about a call, or to answer a question. The turn continues when somebody has."""

    type: Literal["approval_required"] = "approval_required"
    approval_id: str
    kind: str
    """approval or question."""
    tool_call_id: str
    name: str
    args: dict[str, Any]
    """Redacted."""
    prompt: str
    reason: str
    choices: tuple[str, ...] = ()
    decisions: tuple[Decision, ...]
    expires_at: str
    parent_id: str | None = None
    depth: int = 0


class ApprovalResolved(ThreadWireMessage):
    """It was decided, once, or its time ran out."""

    type: Literal["approval_resolved"] = "approval_resolved"
    approval_id: str
    tool_call_id: str
    name: str
    status: ApprovalStatus
    decision: Decision
    decided_by: str
    note: str | None = None


class Interjection(ThreadWireMessage):
    """Somebody said something to the turn while it was under way."""

    type: Literal["interjected"] = "interjected"
    message_id: str
    content: str
    said_by: str


class SuspendedTurn(ThreadWireMessage):
    """The turn rests: nothing runs until what it waits for is there. The stream stays open."""

    type: Literal["turn_suspended"] = "turn_suspended"
    reason: str
    waiting_for: tuple[str, ...] = ()


class TurnResumption(ThreadWireMessage):
    """The turn continues, after a rest or after its process died."""

    type: Literal["turn_resumed"] = "turn_resumed"
    cause: str


class ReplayIncomplete(ThreadWireMessage):
    """The log does not reach back to where the client was: what follows is not everything."""

    type: Literal["replay_incomplete"] = "replay_incomplete"
    replay_incomplete: Literal[True] = True


_AnyMessage: TypeAlias = (
    MessageTaken
    | Chunk
    | ToolCallUpdate
    | RunningOutput
    | PlanningUpdate
    | TaskUpdate
    | BudgetExceeded
    | ClientToolCall
    | ClientToolEnded
    | ApprovalRequired
    | ApprovalResolved
    | Interjection
    | SuspendedTurn
    | TurnResumption
    | ReplayIncomplete
    | CostSummary
    | TurnTerminal
)
ChatMessage: TypeAlias = Annotated[_AnyMessage, Field(discriminator="type")]
CHAT_MESSAGE: TypeAdapter[_AnyMessage] = TypeAdapter(ChatMessage, config={"defer_build": True})


class ChatReplay(Value):
    """The messages of a turn's chat so far."""

    messages: tuple[ChatMessage, ...]
    replay_incomplete: bool = False
    """Some of it is not there any more: show what is here, and do not take it for everything."""
    last_event_seq: int
    """Come back with this."""
    ended: bool
    """Nothing will follow."""
