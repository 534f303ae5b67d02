"""Channels: what the runtime needs of a service that reaches a phone, and the rows that follow from its facts."""

from typing import NamedTuple, Protocol

from wakeful.contracts.channels import (
    ChannelKind,
    ChannelMessage,
    ChannelScope,
    ChannelState,
    ChannelUpdate,
    ChannelUpdates,
    ChannelVerb,
    InputState,
    caller_of,
)
from wakeful.ports.tables import RowQuery, Rows, Table


class ChannelFailure(Exception):
    """The service did not do it. The words hold no token and no topic."""

    def __init__(self, words: str, *, retry_after: float = 0.0, needs_person: bool = False) -> None:
        super().__init__(words)
        self.words = words
        self.retry_after = retry_after
        """Seconds that the service wants to be left alone."""
        self.needs_person = needs_person
        """It does not mend itself."""


class Channel(Protocol):
    """A service that reaches phones. Everything raises ChannelFailure, and nothing else of the network's."""

    async def publish(self, peer: str, message: ChannelMessage) -> str:
        """Show a message; what it is called there."""
        ...

    async def revise(self, peer: str, ref: str, message: ChannelMessage) -> None:
        """Show another text in its place, without buttons."""
        ...

    async def receive(self, cursor: str) -> ChannelUpdates:
        """What came after the cursor; waits for a while when there is nothing. Blank: from the beginning."""
        ...

    async def acknowledge(self, update: ChannelUpdate, words: str) -> None:
        """Tell whoever pressed that it was seen. Must not matter."""
        ...


class ChannelRow(NamedTuple):
    """A channel."""

    name: str
    agent_id: str
    """The runtime's own stream."""
    kind: ChannelKind
    server: str
    key_variable: str | None
    scopes: tuple[ChannelScope, ...]
    allow_private: bool
    generation: int
    state: ChannelState
    peer: str
    """Who is paired; blank: nobody."""
    candidates: tuple[str, ...]
    """Who spoke while pairing was open."""
    pairing_until: int
    cursor: str
    added_by: str
    added_at: int
    paired_at: int | None
    heard_at: int | None
    """When somebody who is paired was heard last."""
    strangers: int
    refused: int
    sent_error: str
    """Why the last test or code could not be sent."""
    trouble: str
    """Why it cannot be listened to."""
    salt: str | None
    """Drawn for its topics and codes; None: they are from before there were salts."""

    @property
    def caller(self) -> str:
        return caller_of(self.kind, self.name)


class ChannelInputRow(NamedTuple):
    """Something that a paired phone wanted: once, whatever is delivered twice."""

    input_id: str
    agent_id: str
    """The runtime's own stream."""
    channel: str
    caller: str
    verb: ChannelVerb
    action_id: str | None
    target: str
    """The agent."""
    words: str
    received_at: int
    state: InputState
    error: str
    settled_at: int | None


class ChannelMessageRow(NamedTuple):
    """Where a phone shows an approval or a question: it is changed there once it is decided."""

    action_id: str
    agent_id: str
    channel: str
    refs: tuple[str, ...]
    """What the service calls the messages."""
    is_closed: bool
    attempts: int
    """To change them."""


ALL_CHANNELS = RowQuery(("added_at", "name"), few="a person added each channel")
CHANNELS = Table("channels", ChannelRow, key=("name",), queries=(ALL_CHANNELS,))
CHANNEL_INPUTS = Table("channel_inputs", ChannelInputRow, key=("input_id",))
CHANNEL_MESSAGES = Table("channel_messages", ChannelMessageRow, key=("action_id",))


class Channels(Rows, Protocol):
    """Reads channels."""

    async def channel(self, name: str) -> ChannelRow | None:
        return await self.get_row(CHANNELS, name)

    async def channels(self) -> list[ChannelRow]:
        """All that were not removed, the oldest first."""
        return [row for row in await self.list_rows(CHANNELS, ALL_CHANNELS) if row.state != "removed"]

    async def channel_input(self, input_id: str) -> ChannelInputRow | None:
        return await self.get_row(CHANNEL_INPUTS, input_id)

    async def channel_message(self, action_id: str) -> ChannelMessageRow | None:
        return await self.get_row(CHANNEL_MESSAGES, action_id)
