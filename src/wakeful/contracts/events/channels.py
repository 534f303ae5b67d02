"""Facts about channels: a phone that is told, and that may decide. They stand in the runtime's own stream.

No address, token or code stands in them: topics and codes follow from the secret of the store and a salt, and tokens
are named by their variable.
"""

from typing import ClassVar

from wakeful.contracts.channels import ChannelKind, ChannelScope, ChannelVerb, InputState, SayPurpose
from wakeful.contracts.events.base import RuntimeFact


class _ChannelFact(RuntimeFact):
    channel: str
    """Its name."""


class ChannelAdded(_ChannelFact):
    """There is another channel. It is told nothing until somebody is paired with it."""

    kind: ClassVar[str] = "channel.added"

    channel_kind: ChannelKind
    server: str
    key_variable: str | None = None
    """The variable that holds the token of the service."""
    scopes: tuple[ChannelScope, ...] = ("decide",)
    allow_private: bool = False
    """The server may be at an address of this network."""
    generation: int = 1
    """Which of its topics and codes hold."""
    added_by: str
    salt: str | None = None
    """Drawn for these topics and codes: no older copy of the store has it."""


class ChannelPairingOpened(_ChannelFact):
    """Whoever has the phone is shown a code, which somebody types in the terminal."""

    kind: ClassVar[str] = "channel.pairing_opened"

    until: int
    """Unix microseconds."""
    opened_by: str


class ChannelPeerSeen(_ChannelFact):
    """A chat spoke to the bot while pairing was open: it is shown a code."""

    kind: ClassVar[str] = "channel.peer_seen"

    peer: str


class ChannelPaired(_ChannelFact):
    """The code of a peer was typed in the terminal: notices go there, and its decisions count."""

    kind: ClassVar[str] = "channel.paired"

    peer: str
    paired_by: str


class ChannelRemoved(_ChannelFact):
    """Nothing is sent there any more, and nothing that comes from there counts."""

    kind: ClassVar[str] = "channel.removed"

    removed_by: str


class ChannelTestRequested(_ChannelFact):
    """Somebody wants to see whether a message arrives."""

    kind: ClassVar[str] = "channel.test_requested"

    requested_by: str


class ChannelMessageAttempted(_ChannelFact):
    """A test or a pairing code was sent, or could not be."""

    kind: ClassVar[str] = "channel.message_attempted"

    purpose: SayPurpose
    peer: str = ""
    error: str = ""


class ChannelInputReceived(_ChannelFact):
    """Somebody who is paired pressed a button or wrote a message, and it is about to be carried out."""

    kind: ClassVar[str] = "channel.input_received"

    input_id: str
    """Of a button: a digest of its code, which is good once."""
    caller: str
    verb: ChannelVerb
    action_id: str | None = None
    """The approval or the question."""
    agent_id: str = ""
    words: str = ""
    """Of an answer, a note or a message."""


class ChannelInputSettled(_ChannelFact):
    """It was carried out, or came too late, or was refused."""

    kind: ClassVar[str] = "channel.input_settled"

    input_id: str
    outcome: InputState
    error: str = ""


class ChannelPolled(_ChannelFact):
    """Everything up to here was looked at."""

    kind: ClassVar[str] = "channel.polled"

    cursor: str
    strangers: int = 0
    """Messages of others, since the last time. They get no answer."""
    refused: int = 0
    """Codes that were wrong or old, since the last time."""


class ChannelTroubled(_ChannelFact):
    """A channel cannot be listened to; or can be again, when there are no words. Told once."""

    kind: ClassVar[str] = "channel.troubled"

    words: str = ""


class ChannelMessageClosed(RuntimeFact):
    """The message about a decision was changed to say what was decided, or could not be."""

    kind: ClassVar[str] = "channel.message_closed"

    channel: str
    action_id: str
    error: str = ""
    attempt: int = 1
    next_at: int | None = None
    """Unix microseconds of the next try; None: there is none."""
