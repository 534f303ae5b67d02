"""Turns that failed, newest first, each with its cause and whether it can be tried again."""

from wakeful.contracts.events import TurnFailed
from wakeful.ports import Store, TurnFilter, TurnRow
from wakeful.ports.turns import TurnState
from wakeful.service.commands.turn_retries import OPTIONS
from wakeful.service.queries.history import turn_record
from wakeful.views.store_records import FailedTurnRecord

FAILED: tuple[TurnState, ...] = ("failed", "incomplete")
PAGE = 100
TAIL = 20
"""How far before its newest event the end of a turn stands at most, unless much was said to it since."""


async def failed_turns(
    store: Store, agent: str | None, since: int | None, cause: str | None, limit: int
) -> list[FailedTurnRecord]:
    """At most so many; `since` in microseconds."""
    found: list[FailedTurnRecord] = []
    for state in FAILED:
        before: str | None = None
        left = limit
        while left > 0:
            page = await store.find_turns(TurnFilter(state=state, agent_name=agent), limit=PAGE, before=before)
            rows = [row for row in page if since is None or (row.ended_at or 0) >= since]
            records = [await _record(store, row) for row in rows if row.deleted_at is None]
            fitting = [each for each in records if each is not None and cause in (None, each.cause, each.stop_reason)]
            found += fitting[:left]
            left -= len(fitting)
            if len(page) < PAGE or len(rows) < len(page):
                break
            before = page[-1].turn_id
    return sorted(found, key=lambda each: each.ended_at or 0, reverse=True)[:limit]


async def _record(store: Store, row: TurnRow) -> FailedTurnRecord | None:
    """None where retention has removed what it ended with."""
    ended = await _end(store, row)
    if ended is None:
        return None
    attempts = ended.timeline.attempts if ended.timeline is not None else ()
    kind = attempts[-1].failure_kind if attempts else None
    later = await store.turns_of_thread(row.agent_id, row.thread_id, last=1)
    return FailedTurnRecord(
        **dict(turn_record(row)),
        stop_reason=ended.stop_reason,
        cause=kind or ended.stop_reason,
        message=ended.message,
        raises=OPTIONS.get(ended.stop_reason, ""),
        retryable=ended.retryable and not (later and later[-1].first_seq > row.first_seq),
    )


async def _end(store: Store, row: TurnRow) -> TurnFailed | None:
    for after in (max(0, row.last_seq - TAIL), row.first_seq - 1):
        for entry in reversed(await store.read(row.agent_id, after=after, turn_id=row.turn_id)):
            if isinstance(entry.fact.event, TurnFailed):
                return entry.fact.event
    return None
