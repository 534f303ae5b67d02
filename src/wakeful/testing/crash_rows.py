"""Rows that follow from the log: are they what the log says, and does everything that waits have its wake?

Asked after every kill. Nothing is changed: the rows are made a second time, in memory.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from wakeful.contracts.envelope import StoredFact
from wakeful.ports import Match, Store, Table, TableKey
from wakeful.ports.mailbox import MESSAGES
from wakeful.ports.retention import left_before
from wakeful.store.emptied_turns import LeftEvents
from wakeful.store.memory_tables import MemoryTables
from wakeful.store.rows import Book
from wakeful.store.tables import TABLES

TOGETHER = 16
"""Facts of a log that are taken in at once."""


async def find_misfits(store: Store) -> list[str]:
    """What is wrong with the rows of declared tables, in words."""
    made = MemoryTables()
    for agent_id in await store.agents():
        book = Book(agent_id, made)
        recorded = await store.read(agent_id)
        emptied = LeftEvents(lambda recorded=recorded: (entry.fact.event for entry in recorded))  # type: ignore[misc]
        for entries in _neighbours(recorded):
            book.read_again([emptied.read_as(entry.seq, entry.fact) for entry in entries], entries[0].seq - 1)
    found: list[str] = []
    for table in TABLES:
        rows = await store.find_rows(table, [Match({})], order=table.key)
        stored, following = _by_key(table, rows), _by_key(table, made.all(table))
        if stored != following:
            mark = await store.retention.retention_mark(table.name) if table.aged_by else None
            left = 0 if mark is None else left_before(mark)
            lost = [row for key, row in following.items() if key not in stored]
            wrong = [key for key, row in stored.items() if following.get(key) != row]
            if wrong or any(getattr(row, table.aged_by, left) >= left for row in lost):
                found.append(f"the rows of {table.name} are not those that follow from the log")
        if table.position and not _are_in_order(table, rows):
            found.append(f"the rows of {table.name} are not numbered in the order of their agent's log")
    return found + await _without_wake(store)


async def _without_wake(store: Store) -> list[str]:
    found: list[str] = []
    for thread in await store.busy_threads():
        if not thread.turns and await store.wake(thread.agent_id, thread.thread_id) is None:
            named = f"thread {thread.thread_id} of agent {thread.agent_id}"
            found.append(f"{named} is free, messages wait in it ({thread.queued}), and nobody is told to look")
    deferred = await store.find_rows(MESSAGES, [Match({"state": ("deferred",)})], order=MESSAGES.key)
    at_rest = [turn async for turn in store.open_turns() if turn.state == "suspended"]
    waiting = [(row.agent_id, row.thread_id, row.message_id, "message", "is deferred") for row in deferred]
    waiting += [(turn.agent_id, turn.thread_id, turn.turn_id, "turn", "rests") for turn in at_rest]
    for agent_id, thread_id, subject, what, how in waiting:
        if await store.wake(agent_id, thread_id, subject) is None:
            found.append(f"{what} {subject} {how} and has no wake")
    return found


def _neighbours(entries: Sequence[StoredFact]) -> Iterator[Sequence[StoredFact]]:
    """Facts that follow each other, some at a time: rules see them as if one append had brought them."""
    first = 0
    for place in range(1, len(entries) + 1):
        is_end = place == len(entries) or entries[place].seq != entries[place - 1].seq + 1
        if is_end or place - first == TOGETHER:
            yield entries[first:place]
            first = place


def _by_key(table: Table[Any], rows: Any) -> dict[TableKey, Any]:
    return {table.key_of(row): table.unnumbered(row) for row in rows}


def _are_in_order(table: Table[Any], rows: Sequence[Any]) -> bool:
    """Rows of one agent, in the order of its log, have greater and greater positions."""
    numbers = [(row.agent_id, getattr(row, table.position)) for row in rows]
    return all(one[0] != next_[0] or one[1] < next_[1] for one, next_ in pairwise(numbers))
