"""Entries of the feed over all agents, and lines of an agent's transcript, as readers get them."""

from typing import Literal

from wakeful.contracts.values import Value
from wakeful.views.presentation.operator_events import OperatorEventPresentation
from wakeful.views.presentation.replayed_events import ReplayedEvent


class FeedEntry(ReplayedEvent):
    """An event that operators see, of whichever agent."""

    cursor: str
    """Its place in the feed: what follows it is asked for with this. It means nothing but that."""


class TranscriptLine(Value):
    """A line of an agent's conversation with its operator."""

    event_id: str
    event_seq: int
    ts: str
    kind: Literal["operator_message", "brief", "provider_failure", "provider_wait"]
    """provider_failure: an attempt of the model was lost; then it was retried, another model was asked, or the round
    was given up. provider_wait: the turn waits for a provider, or that is over; attempts that are made meanwhile are
    left out."""
    agent_id: str
    thread_id: str
    turn_id: str | None = None
    """None: the message waits in its thread's queue."""
    text: str
    presentation: OperatorEventPresentation
