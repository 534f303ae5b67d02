"""Rules of `keyed_requests`: a key has one request, and a request one answer."""

from collections.abc import Sequence
from typing import Final, TypeAlias

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import EventRefused
from wakeful.contracts.events import KeyedRequestAnswered, KeyedRequestReleased, KeyedRequestStarted
from wakeful.ports.keyed_requests import KEYED_REQUESTS, KeyedRequestRow
from wakeful.store.tables.row_rules import AtHand, Gone, LogEntry, Need, RowKey, RowRule, Rules

RequestFact: TypeAlias = KeyedRequestStarted | KeyedRequestAnswered | KeyedRequestReleased


def _begun(entry: LogEntry, event: KeyedRequestStarted, rows: AtHand) -> list[KeyedRequestRow]:
    if rows.get(KEYED_REQUESTS, event.caller, event.request_key) is not None:
        raise EventRefused(f"the key {event.request_key!r} of {event.caller} is taken", "Leave it.")
    return [
        KeyedRequestRow(
            caller=event.caller,
            request_key=event.request_key,
            agent_id=entry.agent_id,
            route=event.route,
            digest=event.digest,
            begun_at=entry.fact.at,
            status=None,
            answer=None,
            answered_at=None,
        )
    ]


def _answered(entry: LogEntry, event: KeyedRequestAnswered, rows: AtHand) -> list[KeyedRequestRow]:
    row = _open(event, rows)
    return [row._replace(status=event.status, answer=event.answer, answered_at=entry.fact.at)]


def _released(entry: LogEntry, event: KeyedRequestReleased, rows: AtHand) -> list[Gone]:
    _open(event, rows)
    return [Gone((event.caller, event.request_key))]


def _open(event: KeyedRequestAnswered | KeyedRequestReleased, rows: AtHand) -> KeyedRequestRow:
    row = rows.get(KEYED_REQUESTS, event.caller, event.request_key)
    if row is None or row.status is not None:
        told = "was never begun" if row is None else "has its answer"
        raise EventRefused(f"the request of the key {event.request_key!r} {told}", "Leave it.")
    return row


def _of_key(agent_id: str, fact: Fact, event: RequestFact) -> Sequence[Need]:
    return (RowKey(KEYED_REQUESTS, (event.caller, event.request_key)),)


KEYED_REQUEST_RULES: Final[Rules] = {
    KeyedRequestStarted: RowRule(_begun, (_of_key,)),
    KeyedRequestAnswered: RowRule(_answered, (_of_key,)),
    KeyedRequestReleased: RowRule(_released, (_of_key,)),
}
