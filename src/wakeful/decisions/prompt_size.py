"""How many tokens a prompt may have, from its length alone. A guess on the safe side, for estimates only."""

import json
from collections.abc import Iterable, Sequence

from wakeful.contracts.content import File, Image, Text, Thinking
from wakeful.contracts.conversation import AssistantItem, CallPart, ToolItem, UserItem

CHARS_A_TOKEN = 3
"""Most text has more characters to a token."""
PICTURE_CHARS = 4_800
"""What a picture or a document behind an address counts as."""
_FRAME_CHARS = 12
"""What stands around every item."""


def tokens(characters: int) -> int:
    """Tokens of so many characters, rounded up."""
    return -(-characters // CHARS_A_TOKEN)


def within(text: str, most: int) -> str:
    """The beginning of a text that needs at most so many bytes where it is written down."""
    while (
        len(text) * 6 > most and (size := len(json.dumps(text, ensure_ascii=False).encode("utf-8", "replace"))) > most
    ):
        text = text[: min(len(text) - 1, len(text) * most // size)]
    return text


def characters(items: Iterable[UserItem | AssistantItem | ToolItem]) -> int:
    """What the items would be long, with everything that stands behind references."""
    return sum(_FRAME_CHARS + sum(map(_part, item.parts)) for item in items)


class Measure:
    """How long a conversation is, and which of its items stand behind references. What was looked at is not again."""

    __slots__ = ("characters", "items", "referring")

    def __init__(self) -> None:
        self.items = 0
        """How many were looked at."""
        self.characters = 0
        self.referring: list[int] = []
        """Places of items with something behind a reference."""

    def of(self, items: Sequence[UserItem | AssistantItem | ToolItem]) -> "Measure":
        """With what is new in a conversation that only grew since."""
        for place in range(self.items, len(items)):
            item = items[place]
            self.characters += _FRAME_CHARS + sum(map(_part, item.parts))
            if refers(item):
                self.referring.append(place)
        self.items = len(items)
        return self


def refers(item: UserItem | AssistantItem | ToolItem) -> bool:
    """Does anything in this item stand behind a reference?"""
    for part in item.parts:  # a plain loop: this is asked of every item of every round
        ref = part.arguments_ref if isinstance(part, CallPart) else getattr(part, "ref", None)
        if ref is not None:
            return True
    return False


def _part(part: Text | Image | File | Thinking | CallPart) -> int:
    match part:
        case Text():
            return part.ref.size if part.ref is not None else len(part.text)
        case CallPart():
            if part.arguments_ref is not None:
                return part.arguments_ref.size
            return len(part.name) + len(part.raw_arguments or str(part.arguments))
        case Thinking():
            return part.ref.size if part.ref is not None else len(part.text)
        case Image():
            return PICTURE_CHARS
        case File():
            if part.ref is not None:
                return part.ref.size
            return len(part.data) if part.data is not None else PICTURE_CHARS
