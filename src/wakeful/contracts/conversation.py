"""What a model sees: user, assistant and tool items, in the order of the conversation.

An item is written once and never changed. Every call in an assistant item is answered by exactly one tool item.
"""

from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from typing import Annotated, Any, Literal, TypeAlias, overload

from pydantic import Field, TypeAdapter

from wakeful.contracts.content import BlobRef, File, Image, Part, Text, text_of
from wakeful.contracts.values import Value


class CallPart(Value):
    """A tool call as the model made it."""

    type: Literal["call"] = "call"
    call_id: str
    name: str
    arguments: dict[str, Any] | None = None
    """The parsed arguments; None when what the model wrote is not a JSON object."""
    arguments_ref: BlobRef | None = None
    """Where the arguments are, when they are too large to stand here."""
    raw_arguments: str | None = None
    """What the model wrote, kept only when it could not be parsed."""
    refused: str | None = None
    """Why the provider refused the call; such a call has no arguments and is never run."""
    opaque: dict[str, Any] = {}
    """What the provider wants back with this call, untouched."""


AssistantPart: TypeAlias = Annotated[Part | CallPart, Field(discriminator="type")]


class UserItem(Value):
    """Input. `origin` tells a person's words from a note of the runtime (an unknown outcome, a rejected answer)."""

    role: Literal["user"] = "user"
    parts: tuple[Text | Image | File, ...]
    origin: Literal["person", "runtime"] = "person"

    @property
    def text(self) -> str:
        return text_of(self.parts)


class AssistantItem(Value):
    """One reply of the model, calls included, in the order it gave them."""

    role: Literal["assistant"] = "assistant"
    parts: tuple[AssistantPart, ...] = ()
    provider: str = ""
    citations: tuple[dict[str, Any], ...] | None = None
    """Where the provider found what the reply says, in the shape of `contracts.citations`."""
    server_tools: tuple[str, ...] | None = None
    """Tools that the provider itself ran for this reply: anybody may have written what they found."""

    @property
    def text(self) -> str:
        return text_of(self.parts)

    @property
    def calls(self) -> tuple[CallPart, ...]:
        return tuple([part for part in self.parts if isinstance(part, CallPart)])


class ToolItem(Value):
    """The one answer to one call."""

    role: Literal["tool"] = "tool"
    call_id: str
    name: str
    parts: tuple[Text | Image | File, ...]
    is_error: bool = False

    @property
    def text(self) -> str:
        return text_of(self.parts)


Item: TypeAlias = Annotated[UserItem | AssistantItem | ToolItem, Field(discriminator="role")]
ITEM: TypeAdapter[UserItem | AssistantItem | ToolItem] = TypeAdapter(Item, config={"defer_build": True})


class History(Sequence[UserItem | AssistantItem | ToolItem]):
    """An append-only view of a conversation, which encodes each item once for each wire format."""

    __slots__ = ("_encoded", "_items")

    def __init__(self, items: Iterable[UserItem | AssistantItem | ToolItem] = ()) -> None:
        self._items: MutableSequence[UserItem | AssistantItem | ToolItem] = list(items)
        self._encoded: dict[str, list[bytes]] = {}

    @classmethod
    def over(cls, items: MutableSequence[UserItem | AssistantItem | ToolItem]) -> "History":
        """Of a list that is nobody else's, and is not looked at before an item is asked for."""
        history = cls()
        history._items = items
        return history

    def extend(self, items: Iterable[UserItem | AssistantItem | ToolItem]) -> None:
        self._items.extend(items)

    def encoded(self, wire: str, encode: Callable[[UserItem | AssistantItem | ToolItem], bytes]) -> Sequence[bytes]:
        """The items in a wire format; only those that are new since the last time are encoded."""
        done = self._encoded.setdefault(wire, [])
        done.extend(encode(item) for item in self._items[len(done) :])
        return done

    def encoded_so_far(self, wire: str) -> Sequence[bytes]:
        """What `encoded` has made in this format until now; nothing is encoded."""
        return self._encoded.get(wire, ())

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[UserItem | AssistantItem | ToolItem]:
        return iter(self._items)

    @overload
    def __getitem__(self, index: int) -> UserItem | AssistantItem | ToolItem: ...
    @overload
    def __getitem__(self, index: slice) -> list[UserItem | AssistantItem | ToolItem]: ...
    def __getitem__(
        self, index: int | slice
    ) -> UserItem | AssistantItem | ToolItem | list[UserItem | AssistantItem | ToolItem]:
        return self._items[index] if isinstance(index, int) else list(self._items[index])
