"""A request to a model, read: what a provider goes by in the body of each wire format, under one set of names.

Each wire module fills in an `WireRequest`; scripts, limits and prices look at nothing else.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

WireName: TypeAlias = Literal["openai_chat", "openai_responses", "anthropic", "gemini"]
Role: TypeAlias = Literal["system", "user", "assistant", "tool"]

_LONGEST_TEXT = 20_000
_MOST_KEPT = 1_000
_ATTACHED = frozenset({"data", "url", "image_url", "file_data"})
_ATTACHMENT_CHARACTERS = 4_000
"""An attachment is billed by what is in it, not by the length of its base64: as much as a thousand tokens here."""


class WireTurn(NamedTuple):
    """One message of the conversation. Several items that a model said at once are one turn."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class WireRequest:
    """One request."""

    wire: WireName
    model: str
    body: Mapping[str, Any]
    turns: tuple[WireTurn, ...]
    """The conversation, instructions first."""
    tools: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The tools that may be called, by their names on the wire, with the schemas of their arguments."""
    choice: Literal["auto", "none", "required"] | tuple[str, ...] = "auto"
    """The tool choice; names: one of these has to be called."""
    most: int | None = None
    """The most tokens of output, thoughts included."""
    streams: bool = False
    parallel: bool = True
    shows_thoughts: bool = False
    schema: Mapping[str, Any] | None = None
    """What the answer has to be, when it was asked for as JSON."""
    characters: int = 0
    """The size of everything that a model reads."""

    @property
    def rounds(self) -> int:
        """How often the model has answered in this conversation: what a list of replies is indexed by."""
        return sum(turn.role == "assistant" for turn in self.turns)

    @property
    def prompt(self) -> str:
        """The newest message of the user."""
        return next((turn.text for turn in reversed(self.turns) if turn.role == "user"), "")

    @property
    def results(self) -> tuple[str, ...]:
        """What the tools answered since the model last spoke."""
        newest: list[str] = []
        for turn in reversed(self.turns):
            if turn.role == "assistant":
                break
            if turn.role == "tool":
                newest.append(turn.text)
        return tuple(reversed(newest))


class RequestRefused(Exception):
    """The request is not one that the vendor takes: with what status, in its own words."""

    def __init__(self, words: str, *, code: str | None = None, param: str | None = None, status: int = 400) -> None:
        super().__init__(words)
        self.words, self.code, self.param, self.status = words, code, param, status


class KeptConversations:
    """The conversations whose answers the provider was told to keep, for requests that go on from one."""

    def __init__(self) -> None:
        self._turns: OrderedDict[str, tuple[WireTurn, ...]] = OrderedDict()

    def keep(self, response_id: str, turns: tuple[WireTurn, ...]) -> None:
        self._turns[response_id] = turns
        if len(self._turns) > _MOST_KEPT:
            self._turns.popitem(last=False)

    def turns(self, response_id: str) -> tuple[WireTurn, ...]:
        if response_id not in self._turns:
            raise RequestRefused(
                f"Previous response with id '{response_id}' not found.",
                code="previous_response_not_found",
                param="previous_response_id",
            )
        return self._turns[response_id]


def joined(turns: "list[WireTurn]") -> tuple[WireTurn, ...]:
    """Turns of the model that follow one another are one: some formats send each call by itself."""
    found: list[WireTurn] = []
    for turn in turns:
        if found and turn.role == "assistant" == found[-1].role:
            found[-1] = WireTurn("assistant", "\n".join(filter(None, (found[-1].text, turn.text))))
        else:
            found.append(turn)
    return tuple(found)


def text_of(content: Any) -> str:
    """The words in a message's content: a text, or a list of parts of which some are text."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        content = [content]
    parts = content if isinstance(content, list | tuple) else ()
    return "\n".join(part["text"] for part in parts if isinstance(part, Mapping) and isinstance(part.get("text"), str))


def size(value: Any, key: str = "") -> int:
    """The characters of everything that is said in a body or a part of it."""
    if isinstance(value, str):
        attached = key in _ATTACHED and (len(value) > _LONGEST_TEXT or value.startswith("data:"))
        return _ATTACHMENT_CHARACTERS if attached else len(value)
    if isinstance(value, Mapping):
        return sum(len(name) + size(inner, name) for name, inner in value.items())
    if isinstance(value, list | tuple):
        return sum(size(inner, key) for inner in value)
    return 0 if value is None else len(str(value))


def positive(value: Any, name: str) -> int | None:
    """A limit on tokens. Raises RequestRefused for what no vendor takes."""
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise RequestRefused(f"Invalid value for {name!r}: expected an integer above 0, got {value!r}.", param=name)
    return value
