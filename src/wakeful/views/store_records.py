"""The records of a store: turns, threads, unknown outcomes, approval rules, spending limits and artifacts.

They have the same names in Python, JSON and on the command line. Times are Unix seconds.
"""

from typing import Any

from pydantic import ConfigDict

from wakeful.contracts.spending import Period
from wakeful.contracts.values import Value

TEXT_TYPES = ("text/", "application/json")


class TurnRecord(Value):
    """One run of an agent, or one message of a conversation and its answer."""

    turn_id: str
    key: str | None = None
    agent: str
    agent_id: str
    thread: str
    state: str
    """admitted, running, suspended, completed, incomplete, failed or cancelled."""
    is_open: bool
    """It has not ended: it runs, waits, or was cut off and can be resumed."""
    prompt: str
    """The beginning of the message."""
    waiting_for: tuple[str, ...] = ()
    created_at: float
    ended_at: float | None = None
    deleted_at: float | None = None
    """When its thread was deleted, and with it what was said."""


class TurnContinuation(Value):
    """A turn that is unfinished, and what has to be supplied for it."""

    turn_id: str
    state: str
    code_needed: tuple[str, ...] = ()
    """Tools whose code is not in the store."""


class SteeredTurn(TurnRecord):
    """A turn that was asked to stop or to rest."""

    accepted: bool
    """False: it was over, or rested, already."""
    before: str
    """Its state before."""
    ahead: TurnContinuation | None = None
    """There when somebody has to take it up."""


class FailedTurnRecord(TurnRecord):
    """A turn that failed or reached a limit, and why."""

    stop_reason: str
    cause: str
    """The kind of a provider's failure (`server_error`, `rate_limited` ...), else the stop reason."""
    message: str = ""
    raises: str = ""
    """The option of `wakeful retry` that gives it more of what it ran out of; blank: it needs none."""
    retryable: bool
    """It can be tried again: nothing in its thread has begun since."""


class ReplacementMessage(Value):
    """What can be sent in the place of a failed turn: what it asked, and the calls that have finished."""

    turn_id: str
    text: str


class MessageReceipt(Value):
    """A message for a turn that is safe."""

    turn_id: str
    message_id: str


class ThreadRecord(Value):
    """One conversation with one agent."""

    thread: str
    agent: str
    agent_id: str
    turns: int
    active_at: float
    """When a message last came to it, or a turn last took some. Unix seconds."""
    last_turn: TurnRecord


class DeletedThread(Value):
    """A conversation that is no more."""

    thread: str
    agent: str
    agent_id: str
    turns: int
    deleted_at: float
    """Unix seconds."""


class UnknownCall(Value):
    """A call that may or may not have happened. `resolve` closes it."""

    call_id: str
    turn_id: str
    agent_id: str
    thread: str
    step: int
    tool: str
    arguments: dict[str, Any]
    """Secrets are redacted."""
    reason: str
    since: float
    reference: str
    """Names the call for `resolve`: its `call_id`, or `turn_id/call_id` where another turn has a call of that id."""


class ResolvedCall(UnknownCall):
    """A call whose outcome is known now."""

    ahead: TurnContinuation | None = None
    """Its turn, if that is unfinished."""


class ApprovalRule(Value):
    """A rule that somebody made with `Always`: calls that match it run without being asked about."""

    rule_id: str
    agent: str
    agent_id: str
    words: str
    """The rule in one line."""
    rule: dict[str, Any]
    """The rule as it is applied: the fields of `Rule`."""
    added_at: float
    added_by: str
    revoked_at: float | None = None
    revoked_by: str | None = None


class SpendingLimit(Value):
    """A limit on spending in one hour, day or month, and how much of it is used. Amounts are decimal numbers."""

    scope: str
    """`runtime` (everything in this store), `agent:NAME` or `principal:ID`."""
    window: Period
    began_at: float
    resets_at: float
    limit_usd: str
    granted_usd: str
    """Added by `grant`, until the window resets."""
    spent_usd: str
    reserved_usd: str
    """Held for requests under way: the most that they can cost."""
    noticed: bool = False
    """A notice that the limit is nearly reached was given."""


class Artifact(Value):
    """Output of a tool that was too long for the model, or that the tool kept: the store has all of it."""

    artifact_id: str
    """`sha256:` and the hash of the bytes."""
    turn_id: str
    call_id: str
    tool: str = ""
    media_type: str = "application/octet-stream"
    size_bytes: int | None = None
    preview: str = ""

    @property
    def is_text(self) -> bool:
        return self.media_type.startswith(TEXT_TYPES)


class ArtifactContent(Artifact):
    """An artifact with its bytes; in JSON they are base64, in the alphabet for URLs."""

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    data: bytes

    @property
    def text(self) -> str:
        """The bytes as text; what is no UTF-8 is replaced."""
        return self.data.decode("utf-8", "replace")
