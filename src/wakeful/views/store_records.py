"""The records of a store: turns, threads, unknown outcomes, approval rules, spending limits and artifacts.

They have the same names in Python, JSON and on the command line. Times are Unix seconds. Pure: each record is a view of
rows and facts.
"""

from typing import Any

from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.events import OutputSpilled, ToolFailed, ToolResult
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


class ThreadRecord(Value):
    """One conversation with one agent."""

    thread: str
    agent: str
    agent_id: str
    turns: int
    last_turn: TurnRecord


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
    """An artifact with its bytes."""

    data: bytes

    @property
    def text(self) -> str:
        """The bytes as text; what is no UTF-8 is replaced."""
        return self.data.decode("utf-8", "replace")


def artifacts_of(turn_id: str, facts: list[StoredFact]) -> list[Artifact]:
    """The artifacts that the calls of a turn left, in the order in which they came; each once."""
    found: dict[str, Artifact] = {}

    def add(digest: str, call_id: str, **known: Any) -> None:
        before = found.get(digest)
        if before is None:
            found[digest] = Artifact(artifact_id=digest, turn_id=turn_id, call_id=call_id, **known)
        else:
            found[digest] = before.model_copy(update={name: value for name, value in known.items() if value})

    for recorded in facts:
        event, call_id = recorded.fact.event, recorded.fact.call_id or ""
        if isinstance(event, OutputSpilled):
            add(
                event.output_ref,
                call_id or event.owner,
                media_type=event.media_type,
                size_bytes=event.size_bytes,
                preview=event.preview,
            )
        elif isinstance(event, ToolResult | ToolFailed):
            tool = event.tool_name
            for digest in event.artifact_refs:
                add(digest, call_id, tool=tool)
            for kept in _kept(event.details) if isinstance(event, ToolResult) else ():
                if kept["digest"] in event.artifact_refs:
                    add(kept["digest"], call_id, media_type=kept.get("media_type"), size_bytes=kept.get("size"))
            for part in event.item.parts:
                if part.type in ("image", "file") and part.ref is not None:
                    ref = part.ref
                    add(ref.digest, call_id, tool=tool, media_type=ref.media_type, size_bytes=ref.size)
    return list(found.values())


def artifact_ids(event: OutputSpilled | ToolResult | ToolFailed) -> list[str]:
    """The artifacts that an event names: what `artifacts_of` shows of it."""
    if isinstance(event, OutputSpilled):
        return [event.output_ref]
    parts = [part.ref.digest for part in event.item.parts if part.type in ("image", "file") and part.ref is not None]
    return [*dict.fromkeys((*event.artifact_refs, *parts))]


def _kept(details: dict[str, Any]) -> list[dict[str, Any]]:
    """What a tool says of the outputs it kept."""
    listed = details.get("artifacts")
    listed = listed if isinstance(listed, list) else []
    return [each for each in listed if isinstance(each, dict) and isinstance(each.get("digest"), str)]
