"""What `log.checkpointed` does to rows: those of the log that is gone go with it, or stay as the fact holds them.

Live, the rows that stay are there already. Where the log is read again, they are made from the fact.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from wakeful.contracts.events import LogCheckpointed
from wakeful.ports.approvals import APPROVAL_RULES
from wakeful.ports.artifacts import ARTIFACTS
from wakeful.ports.keyed_requests import KEYED_REQUESTS
from wakeful.ports.mailbox import MESSAGES
from wakeful.ports.spending import SPENDING
from wakeful.ports.tables import Table
from wakeful.ports.taint import TAINTED_FILES
from wakeful.ports.threads import THREADS
from wakeful.ports.turn_costs import TURN_COSTS
from wakeful.ports.turns import TURNS
from wakeful.ports.usage import USAGE
from wakeful.ports.waits import CONTINUATIONS
from wakeful.store.tables.row_rules import AtHand, Gone, LogEntry, RowRule, Rules

KEPT: tuple[Table[Any], ...] = (TURN_COSTS, USAGE, SPENDING, TAINTED_FILES, APPROVAL_RULES)
GOING: tuple[Table[Any], ...] = (TURNS, MESSAGES, THREADS, ARTIFACTS, CONTINUATIONS, KEYED_REQUESTS)


def checkpoint_rules(table: Table[Any]) -> Rules:
    """Of a table whose rows stay or go with the log."""

    def change(entry: LogEntry, event: Any, rows: AtHand) -> Iterable[tuple[Any, ...]]:
        if entry.is_new:
            return [Gone(tuple(key)) for key in event.gone.get(table.name, ())]
        return [row_from(table, values) for values in event.kept.get(table.name, ())]

    return {LogCheckpointed: RowRule(change)}


def row_from(table: Table[Any], values: Sequence[Any]) -> Any:
    """A row that was written as JSON."""
    columns = table.column
    named = zip(table.fields, values, strict=True)
    return table.row._make(
        tuple(value) if columns[name].kind == "list" and value is not None else value for name, value in named
    )
