"""The lines of a turn in one of its views: those that are stored, or also those that come, until it is over."""

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator
from typing import TypeVar

from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.values import Value
from wakeful.decisions.redaction import redact
from wakeful.ports import Store, TurnRow
from wakeful.service.queries.turns import EventReader, follow, turn_events
from wakeful.views.run_stream import RunStream
from wakeful.views.transcript import Transcript
from wakeful.views.turn_lines import TurnLine, TurnView
from wakeful.views.wire import WireView

V = TypeVar("V", bound=Value)


async def read_lines(
    store: Store,
    row: TurnRow,
    view: TurnView,
    *,
    after: int = 0,
    reveal: bool = False,
    keys: Collection[str] = (),
    follow_it: bool = False,
) -> AsyncGenerator[list[TurnLine], None]:
    """Lines of events after a number: those of one event together. Unless they are revealed, secrets are hidden."""
    stored = [] if follow_it else await turn_events(store, row)
    reader = EventReader(store, reveal=reveal, keys=() if reveal else keys)
    await reader.learn(stored)  # what is secret there is hidden from the beginning
    stream, transcript = RunStream(row.turn_id, reveal=reveal), Transcript(reveal=reveal)
    transcript.learn(stored)
    messages = WireView(row.turn_id, secrets=reader.secrets)

    def lines_of(recorded: StoredFact) -> Iterator[TurnLine]:
        if view == "stream":
            for event in stream.feed(recorded):
                yield TurnLine(event_seq=recorded.seq, stream=event if reveal else _redacted(event))
        elif view == "wire":
            for sent in messages.feed(recorded):
                yield TurnLine(event_seq=recorded.seq, wire=sent if reveal else _redacted(sent))
        elif (entry := transcript.feed(recorded)) is not None:
            yield TurnLine(event_seq=recorded.seq, transcript=entry if reveal else _redacted(entry))

    async for recorded in follow(store, row) if follow_it else _each(stored):
        await reader.learn([recorded])  # also where no line is shown: it may say what is secret
        lines = [*lines_of(recorded)]
        if lines and recorded.seq > after:
            yield lines


def _redacted(line: V) -> V:
    return type(line).model_validate(redact(line.model_dump(mode="json")))


async def _each(facts: list[StoredFact]) -> AsyncIterator[StoredFact]:
    for recorded in facts:
        yield recorded
