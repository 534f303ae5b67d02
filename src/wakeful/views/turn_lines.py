"""A turn line by line, in another form than its events: as progress, as messages, or as a chat client gets it."""

from typing import Literal, TypeAlias

from wakeful.contracts.values import Value
from wakeful.views.run_stream_events import RunEvent
from wakeful.views.transcript import TranscriptEntry
from wakeful.views.wire_messages import WireMessage

TurnView: TypeAlias = Literal["stream", "transcript", "wire"]


class TurnLine(Value):
    """One line, in the view that was asked for. An event may come to several lines, or to none."""

    event_seq: int
    """The event that it is of."""
    stream: RunEvent | None = None
    transcript: TranscriptEntry | None = None
    wire: WireMessage | None = None
