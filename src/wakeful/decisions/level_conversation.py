"""The conversation of a level: what was said, where, and what may not be lost when its beginning becomes a summary.

The root's conversation goes on from turn to turn of its thread. What a request that is still to be made takes along is
not a part of it yet (`NextRequest`).
"""

from collections.abc import MutableSequence
from dataclasses import dataclass, field
from typing import NamedTuple

from wakeful.contracts.conversation import AssistantItem, ToolItem, UserItem
from wakeful.decisions.prompt_size import Measure


class MessagePlace(NamedTuple):
    """A message of the conversation, and what is known about it."""

    place: int
    """Among the items."""
    message_id: str
    authority: str
    turn_id: str


class TurnBeginning(NamedTuple):
    """Where the items of one turn of the thread begin."""

    turn_id: str
    items: int
    """How many there were when it began; stays as it was, whatever is folded later."""
    place: int
    """Where its own begin now."""


@dataclass(slots=True)
class PreservedRefs:
    """What may not be lost when its place in the conversation is folded into a summary."""

    actions: set[str] = field(default_factory=set)
    incidents: set[str] = field(default_factory=set)
    """Calls whose outcome nobody knows."""
    evidence: set[str] = field(default_factory=set)
    artifacts: set[str] = field(default_factory=set)
    messages: list[tuple[str, str]] = field(default_factory=list)
    """Ids and authority of what was said there, oldest first."""

    @property
    def refs(self) -> set[str]:
        return self.actions | self.incidents | self.evidence | self.artifacts


@dataclass(slots=True)
class LevelConversation:
    """What was said in a level; the root's holds earlier turns of the thread, too."""

    items: MutableSequence[UserItem | AssistantItem | ToolItem] = field(default_factory=list)
    measure: Measure = field(default_factory=Measure, compare=False, repr=False)
    """How long they are, as far as anybody asked."""
    compactions: int = 0
    """How often its beginning was folded into a summary: what was built on the items has to be built again."""
    heard: MutableSequence[MessagePlace] = field(default_factory=list)
    """The messages among the items."""
    advised: dict[int, int] = field(default_factory=dict)
    """Where the model is told how full its context is: the item's place, and the tokens up to it."""
    references: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = field(default_factory=dict)
    """Artifacts and evidence that results name, by call."""
    conserved: PreservedRefs = field(default_factory=PreservedRefs)
    """What summaries hold for it that stand in the place of its beginning."""


@dataclass(slots=True)
class NextRequest:
    """What is known about the request that comes next, beside the conversation itself."""

    notes: list[UserItem] = field(default_factory=list)
    """Notes that no request has taken along yet."""
    told_last: bool = False
    """The model was told that there is room for no other reply."""
    known_tokens: int = 0
    known_at: int = 0
    """How long the prompt was with so many items, as far as anybody said; what came since is estimated."""
    folds_for: int = 0
    """The step for which it was tried to fold the beginning of the conversation: once, and no more."""
