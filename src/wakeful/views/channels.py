"""Channels, for readers. No topic, token or code is in a record, but for the one that is made just now."""

from wakeful.contracts.channels import ChannelKind, ChannelScope, ChannelState
from wakeful.contracts.values import Value


class ChannelRecord(Value):
    """A phone that is told, and that may decide."""

    channel: str
    kind: ChannelKind
    server: str
    state: ChannelState
    """open: it waits for somebody to pair a phone."""
    scopes: tuple[ChannelScope, ...]
    caller: str
    """The name under which its decisions are recorded."""
    added_by: str
    added_at: float
    paired_at: float | None = None
    pairing_until: float | None = None
    """Until then a pairing code counts."""
    heard_at: float | None = None
    """When a paired phone was heard last."""
    strangers: int = 0
    """Messages of others. They got no answer."""
    refused: int = 0
    """Codes that were wrong, old or used, and lines that ask for nothing."""
    sent_error: str = ""
    """Why the last test or pairing code could not be sent."""
    trouble: str = ""
    """Why it cannot be listened to."""


class NewChannelRecord(ChannelRecord):
    """A channel that is open for pairing."""

    subscribe: str | None = None
    """Of ntfy: the secret address that the phone subscribes to."""
