"""Whole views: what a reader of a run has at its end, from the facts of a log alone."""

from collections.abc import Iterable

from wakeful.contracts.envelope import StoredFact
from wakeful.views.run_stream import RunStream
from wakeful.views.run_stream_events import RunEvent
from wakeful.views.transcript import Transcript, TranscriptEntry
from wakeful.views.wire import WireView
from wakeful.views.wire_messages import WireMessage


def run_stream(turn_id: str, facts: Iterable[StoredFact]) -> list[RunEvent]:
    """The whole stream of a turn, read from its facts."""
    stream = RunStream(turn_id)
    return [event for recorded in facts for event in stream.feed(recorded)]


def transcript(facts: Iterable[StoredFact]) -> list[TranscriptEntry]:
    """The entries of a stretch of an agent's stream."""
    facts = list(facts)
    view = Transcript()
    view.learn(facts)
    return [entry for recorded in facts if (entry := view.feed(recorded)) is not None]


def wire_messages(turn_id: str, facts: Iterable[StoredFact], after_seq: int = 0) -> list[WireMessage]:
    """The messages of a turn, from its facts alone: those of what comes after `after_seq`."""
    facts = list(facts)
    view = WireView(turn_id)
    view.secrets.learn(facts)
    return [message for entry in facts for message in view.feed(entry) if entry.seq > after_seq]
