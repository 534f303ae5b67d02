"""Every table that is declared, and what facts do to its rows.

The declaration stands in `ports`, beside the row type; the rules stand here. A new table is one entry in `TABLES`.
"""

from collections.abc import Mapping
from typing import Any

from wakeful.ports.approvals import ACTIONS, APPROVAL_RULES
from wakeful.ports.mailbox import BUSY_THREADS, MESSAGES
from wakeful.ports.spending import HOLDS, SPENDING
from wakeful.ports.tables import Table
from wakeful.ports.taint import TAINTED_FILES
from wakeful.ports.turn_costs import TURN_COSTS
from wakeful.ports.turns import TURNS
from wakeful.ports.unknown_outcomes import UNKNOWN_OUTCOMES
from wakeful.ports.usage import USAGE
from wakeful.ports.wakes import WAKES
from wakeful.store.tables.approvals import ACTION_RULES, RULE_RULES
from wakeful.store.tables.mailbox import MESSAGE_RULES, THREAD_RULES
from wakeful.store.tables.row_rules import RowRule, Rules
from wakeful.store.tables.spending import HOLD_RULES, SPENDING_RULES
from wakeful.store.tables.taint import TAINT_RULES
from wakeful.store.tables.turn_costs import TURN_COST_RULES
from wakeful.store.tables.turns import TURN_RULES
from wakeful.store.tables.unknown_outcomes import UNKNOWN_RULES
from wakeful.store.tables.usage import USAGE_RULES
from wakeful.store.tables.wakes import WAKE_RULES

TABLES: Mapping[Table[Any], Rules] = {
    TURNS: TURN_RULES,
    TURN_COSTS: TURN_COST_RULES,
    UNKNOWN_OUTCOMES: UNKNOWN_RULES,
    ACTIONS: ACTION_RULES,
    APPROVAL_RULES: RULE_RULES,
    TAINTED_FILES: TAINT_RULES,
    MESSAGES: MESSAGE_RULES,
    BUSY_THREADS: THREAD_RULES,
    WAKES: WAKE_RULES,
    USAGE: USAGE_RULES,
    SPENDING: SPENDING_RULES,
    HOLDS: HOLD_RULES,
}


def _by_event() -> dict[type, tuple[tuple[Table[Any], RowRule], ...]]:
    found: dict[type, tuple[tuple[Table[Any], RowRule], ...]] = {}
    for table, rules in TABLES.items():
        for event, rule in rules.items():
            found[event] = (*found.get(event, ()), (table, rule))
    return found


RULES_OF_EVENT = _by_event()
"""What an event is about: its tables, each with its rule. Most events are not in here."""
