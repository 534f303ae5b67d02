"""How an agent stands, from what is kept about it: no log is read for it."""

from wakeful.contracts.messages import MessageKind
from wakeful.contracts.models import AgentTokenUsageSummary
from wakeful.contracts.values import Value


class MessageBehind(Value):
    """A message that no turn has taken yet."""

    message_id: str
    kind: MessageKind
    queued_at: float
    """Unix seconds."""


class WaitingThread(Value):
    """A thread whose turn waits for somebody, and what queues behind it."""

    thread: str
    turn_id: str
    queued: int
    messages: tuple[MessageBehind, ...] = ()
    """The first of them, in their order."""


class AgentStatus(Value):
    """One agent."""

    agent: str
    open_turns: int = 0
    """Turns that are not over: under way, waiting, or cut off."""
    queued_messages: int = 0
    """Messages that no turn has taken yet."""
    waiting_threads: tuple[WaitingThread, ...] = ()
    """Threads in which messages queue behind a turn that waits for somebody; only of an agent that was named."""
    pending_actions: int = 0
    """Pending approvals, questions and client requests."""
    unknown_outcomes: int = 0
    token_usage: AgentTokenUsageSummary = AgentTokenUsageSummary()
    revised_at: float | None = None
    """When the definition in force came into force, in Unix seconds; None: it is no agent of a runtime."""
    turns_since_revision: int | None = None
    """Turns that began with that definition."""
