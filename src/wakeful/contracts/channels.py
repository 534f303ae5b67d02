"""Channels as values: how a phone is reached, what is shown there, and what comes back."""

from typing import Final, Literal, NamedTuple, TypeAlias

ChannelKind: TypeAlias = Literal["ntfy", "telegram"]
ChannelScope: TypeAlias = Literal["decide", "send"]
"""decide: approve, reject, answer a question, pause the agent that asks. send: give an agent a message."""
ChannelState: TypeAlias = Literal["open", "paired", "removed"]
"""open: it was added, and nobody is paired with it."""
ChannelVerb: TypeAlias = Literal["approve", "reject", "answer", "pause", "send", "ok"]
"""What somebody on a phone wants. ok: they saw a test."""
InputState: TypeAlias = Literal["pending", "done", "late", "refused"]
"""late: it was decided elsewhere before."""
SayPurpose: TypeAlias = Literal["pairing", "test"]

SERVERS: Final[dict[ChannelKind, str]] = {"ntfy": "https://ntfy.sh", "telegram": "https://api.telegram.org"}
"""Where a channel is reached unless somebody says otherwise."""
BUTTONS: Final[dict[ChannelKind, int]] = {"ntfy": 3, "telegram": 10}
"""How many a message may have."""
HOW_TO_ANSWER: Final[dict[ChannelKind, str]] = {
    "ntfy": "tap to open the topic, and write",
    "telegram": "reply to this message, or write",
}
"""In words. What is written begins with a code."""
SCOPES: Final[tuple[ChannelScope, ...]] = ("decide", "send")
TOPIC: Final = "topic"
"""The peer of a channel whose topic is the secret."""
NAME: Final = r"[A-Za-z][A-Za-z0-9_-]{0,31}"
PAIRING_SECONDS: Final = 600
MOST_CANDIDATES: Final = 5
"""Chats that are told a pairing code while a channel is open."""


def caller_of(kind: str, name: str) -> str:
    """Who acts when something comes over a channel."""
    return f"channel:{kind}:{name}"


class Button(NamedTuple):
    """Something to press, and the one-time code that a press sends back."""

    label: str
    code: str


class ChannelMessage(NamedTuple):
    """A message on a phone. Plain text: nothing in it is markup."""

    title: str
    text: str
    buttons: tuple[Button, ...] = ()
    urgent: bool = False
    wants_words: bool = False
    """It can be answered in words, too."""


class ChannelUpdate(NamedTuple):
    """Something that came back."""

    update_id: str
    peer: str
    """Whose phone, as the service says."""
    text: str
    """A button's code, or words."""
    press_id: str = ""
    """Of a button: what the service wants acknowledged."""
    reply_to: str = ""
    """Of words: the message that they reply to."""


class ChannelUpdates(NamedTuple):
    """What one look brought, and where to look from next time."""

    updates: tuple[ChannelUpdate, ...]
    cursor: str
