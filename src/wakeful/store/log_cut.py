"""What a `log.checkpointed` says: the rows of a log that is about to go, parted into those that stay and those that go.

The log is folded by itself, so that rows which several agents share hold what this one added to them.
"""

from collections.abc import Sequence
from typing import Any

from wakeful.contracts.errors import EventRefused
from wakeful.contracts.events import LogCheckpointed, SessionStarted
from wakeful.decisions.retention import why_log_stays
from wakeful.ports.turns import TURNS
from wakeful.store.emptied_turns import LeftEvents, emptied_among
from wakeful.store.encoding import EncodedFact, decode
from wakeful.store.memory_tables import MemoryTables
from wakeful.store.rows import Book
from wakeful.store.tables import TABLES
from wakeful.store.tables.checkpoints import GOING, KEPT


def checkpoint_of(agent_id: str, entries: Sequence[EncodedFact], upto: int, digest: bytes) -> LogCheckpointed:
    """Raises EventRefused when the log has to stay."""
    tables = MemoryTables()
    book = Book(agent_id, tables)
    left = LeftEvents(lambda: emptied_among(entries))
    is_temporary = False
    for entry in entries:
        fact = left.read_as(entry.seq, decode(entry.head, entry.payload))
        is_temporary |= isinstance(fact.event, SessionStarted) and fact.event.temporary
        book.read_again([fact], entry.seq - 1)
    turns = [*tables.all(TURNS)]
    why = why_log_stays(
        is_temporary=is_temporary,
        open_turns=sum(turn.is_open for turn in turns),
        keys=sum(turn.key is not None for turn in turns),
        other_tables=[table.name for table in TABLES if table not in (*KEPT, *GOING) and tables.all(table)],
    )
    if why is not None:
        raise EventRefused(f"the log of agent {agent_id} stays: {why}", "Leave it as it is.")
    kept: dict[str, list[list[Any]]] = {}
    gone: dict[str, list[list[Any]]] = {}
    for table in KEPT:
        if rows := tables.all(table):
            kept[table.name] = [[*row] for row in rows]
    for table in GOING:
        if rows := tables.all(table):
            gone[table.name] = [[*table.key_of(row)] for row in rows]
    return LogCheckpointed(upto=upto, hash=digest.hex(), agent_name=book.agent_name, kept=kept, gone=gone)
