"""Facts about an agent's memory: what a turn was shown and adds, and what a person corrects."""

from typing import ClassVar

from wakeful.contracts.content import Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.events.base import TURN, Event, Need, RuntimeFact
from wakeful.contracts.events.context import ContextItem
from wakeful.contracts.memory import EpisodeBoundary, MemoryKind, MemoryUse, TurnMemoryDelta, WorkingMemorySnapshot


class MemoryFact(Event):
    """Something about memory in a turn."""

    needs: ClassVar[tuple[Need, ...]] = TURN


class MemoryProjected(MemoryFact):
    """Which revision of its working memory a turn begins with: the snapshot in the prompt, and what changed since,
    behind the conversation."""

    kind: ClassVar[str] = "memory.projected"

    snapshot_revision: int
    """The revision that stands in the prompt."""
    revision: int
    """The newest, which the model knows with what is shown here."""
    compression_epoch: int = 0
    """How often a conversation of the agent was folded before."""
    changed_fields: tuple[str, ...] = ()
    text: str = ""
    """What the model is shown of the difference; blank: there is none that it was not shown before."""

    @property
    def item(self) -> UserItem:
        return UserItem(parts=(Text(self.text),), origin="runtime")


class MemoryUsed(MemoryFact):
    """Entries whose words a model was shown: found by a call, or recalled for the turn's message."""

    kind: ClassVar[str] = "memory.used"

    use: MemoryUse
    entries: tuple[ContextItem, ...]
    untrusted: str = ""
    """An entry among them that is no instruction, and why."""


class MemoryTurnRecorded(MemoryFact):
    """A turn is over: what it adds to the open episode, and working memory as it follows from the records now."""

    kind: ClassVar[str] = "memory.turn_recorded"
    aliases: ClassVar[tuple[str, ...]] = ("working_memory_updated",)

    turn: TurnMemoryDelta
    working_memory: WorkingMemorySnapshot
    workspace_id: str = ""
    principal: str = ""
    """Whom the turn worked for; blank: the agent's own."""


class MemoryEpisodeFinalized(MemoryFact):
    """The open episode is over, and stays as it is."""

    kind: ClassVar[str] = "memory.episode_finalized"
    aliases: ClassVar[tuple[str, ...]] = ("episode_memory_finalized",)

    episode_id: str
    boundary_reason: EpisodeBoundary
    work_summary: str = ""
    """How the work stood then."""


class MemoryEntryEdited(RuntimeFact):
    """A person corrected what an entry says. The record it is from stays as it was."""

    kind: ClassVar[str] = "memory.entry_edited"

    entry: str
    """Its key: kind and name."""
    entry_kind: MemoryKind
    text: str
    edited_by: str


class MemoryEntryForgotten(RuntimeFact):
    """A person wants an entry found and shown no more."""

    kind: ClassVar[str] = "memory.entry_forgotten"

    entry: str
    entry_kind: MemoryKind
    forgotten_by: str
