"""Facts about agents of a runtime: that there is one, which revision of it is in force, and whether it may run.

An agent of a runtime has `agent.created` in its stream; a stream without it belongs to runs of the library.
"""

from typing import ClassVar, Literal

from wakeful.contracts.agent_identity import (
    AgentControl,
    AgentKind,
    AgentSource,
    ControlCause,
    Ownership,
    ProfilePreset,
    Visibility,
)
from wakeful.contracts.content import BlobRef
from wakeful.contracts.events.base import RuntimeFact


class AgentCreated(RuntimeFact):
    """A runtime has a new agent."""

    kind: ClassVar[str] = "agent.created"

    agent_name: str
    agent_kind: AgentKind = "named"
    visibility: Visibility = "public"
    ownership: Ownership = "self_owned"
    profile_preset: ProfilePreset = "public_named"
    lineage_parent_agent_id: str | None = None
    """The agent that made it; None: a person or a program did."""
    source: AgentSource = "code"
    created_by: str = "operator"
    template: str | None = None
    """What its home was made from, as it was named; None: from nothing."""
    salt: str | None = None
    """Drawn for the address of its default trigger: no older copy of the store has it."""


class AgentRevised(RuntimeFact):
    """Another revision of an agent's definition is in force. Turns that begin from here on are run with it."""

    kind: ClassVar[str] = "agent.revised"

    revision: str
    """The hash of the definition."""
    source: AgentSource
    place: str | None = None
    """The file it was read from."""
    definition: BlobRef | None = None
    """The definition as JSON; None: it holds code, which is not stored."""
    described: BlobRef | None = None
    """Of a definition that holds code: what can be said of it, as JSON."""


class AgentModelChanged(RuntimeFact):
    """An operator gave an agent another model, or took that back. Turns that begin from here on are run with it."""

    kind: ClassVar[str] = "agent.model_changed"

    model: str | None = None
    """`provider:model`; None: the model of its definition again."""
    changed_by: str


class AgentArchived(RuntimeFact):
    """An agent was put away: it is in no listing, and does nothing until somebody resumes it."""

    kind: ClassVar[str] = "agent.archived"

    archived_by: str
    reason: str = ""


class AgentDeleted(RuntimeFact):
    """An agent is no more. Its log stays, and its name is not given again."""

    kind: ClassVar[str] = "agent.deleted"

    deleted_by: str
    reason: str = ""


class AgentStateChanged(RuntimeFact):
    """An agent was paused, stopped, or let run again. Durable: a restart changes nothing about it."""

    kind: ClassVar[str] = "agent.state_changed"
    aliases: ClassVar[tuple[str, ...]] = ("agent_state_changed", "control_applied")

    control: AgentControl
    message_kind: Literal["control"] | None = None
    """Not stored, because it is always the same; readers get it. A command of this kind is never queued."""
    cause: ControlCause = "operator"
    changed_by: str
    reason: str = ""
    resumes_at: int | None = None
    """Unix microseconds at which a pause ends by itself; None: somebody has to end it."""
    is_damaged: bool = False
    """It could not be run because its log is not what was written: only a person can bring that back."""
    instead_of: int | None = None
    """The moment of the change that this one takes back; when another one came between, this one is refused. None: it
    holds whatever came before."""
