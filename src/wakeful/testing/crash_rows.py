"""Rows that follow from the log: are they what the log says, and does everything that waits have its wake?

Asked after every kill. Nothing is changed: the rows are made a second time, in memory.
"""

from typing import Any

from wakeful.ports import Match, Store, Table, TableKey
from wakeful.ports.mailbox import MESSAGES
from wakeful.store.memory_tables import MemoryTables
from wakeful.store.rows import Book
from wakeful.store.tables import TABLES


async def find_misfits(store: Store) -> list[str]:
    """What is wrong with the rows of declared tables, in words."""
    made = MemoryTables()
    for agent_id in await store.agents():
        book = Book(agent_id, made)
        for entry in await store.read(agent_id):
            book.read_again(entry.fact, entry.seq)
    found: list[str] = []
    for table in TABLES:
        stored = _by_key(table, await store.find_rows(table, [Match({})], order=table.key))
        if stored != _by_key(table, made.all(table)):
            found.append(f"the rows of {table.name} are not those that follow from the log")
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


def _by_key(table: Table[Any], rows: Any) -> dict[TableKey, Any]:
    return {table.key_of(row): row for row in rows}
