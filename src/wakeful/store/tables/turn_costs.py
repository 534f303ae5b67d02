"""Rules of `turn_costs`: a turn's end adds up what its requests to models cost."""

from collections.abc import Sequence
from typing import Any

from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import Terminal, TurnCompleted, TurnFailed, TurnRetried
from wakeful.ports.turn_costs import TurnCostRow
from wakeful.store.tables.row_rules import AtHand, Gone, LogEntry, OpenCost, RowRule, Rules


def _turn_ended(entry: LogEntry, event: Terminal, rows: AtHand) -> list[TurnCostRow]:
    turn_id = entry.fact.turn_id or ""
    return [TurnCostRow.of(turn_id, entry.agent_id, entry.fact.at, rows.cost_so_far(turn_id), entry.agent_name)]


def _turn_retried(entry: LogEntry, event: TurnRetried, rows: AtHand) -> list[Gone]:
    """It is open: its log knows."""
    return [Gone((entry.fact.turn_id or "",))]


def _cost(agent_id: str, fact: Fact, event: Any) -> Sequence[OpenCost]:
    return (OpenCost(fact.turn_id or ""),)


TURN_COST_RULES: Rules = {
    TurnCompleted: RowRule(_turn_ended, (_cost,)),
    TurnFailed: RowRule(_turn_ended, (_cost,)),
    TurnRetried: RowRule(_turn_retried),
}
