"""Rules of `usage`: each reply of a model is a round, and adds its tokens."""

from collections.abc import Sequence
from typing import Any

from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import ModelCompleted, TurnCompleted
from wakeful.ports.usage import USAGE, UsageRow
from wakeful.store.tables.row_rules import AtHand, LogEntry, RowKey, RowRule, Rules


def _model_completed(entry: LogEntry, event: ModelCompleted, rows: AtHand) -> list[UsageRow]:
    row, used = rows.get(USAGE, entry.agent_id) or UsageRow(entry.agent_id), event.token_usage
    if used is None:
        return [row._replace(rounds=row.rounds + 1)]
    return [
        UsageRow(
            entry.agent_id,
            row.rounds + 1,
            row.input_tokens + used.input_tokens,
            row.output_tokens + used.output_tokens,
            row.total_tokens + used.total_tokens,
            row.cached_input_tokens + used.cached_input_tokens,
            row.cache_write_tokens + used.cache_write_tokens,
            row.reasoning_tokens + used.reasoning_tokens,
            row.audio_tokens + used.audio_tokens,
            row.last_turn,
        )
    ]


def _turn_completed(entry: LogEntry, event: TurnCompleted, rows: AtHand) -> list[UsageRow]:
    if event.token_usage is None:
        return []
    row = rows.get(USAGE, entry.agent_id) or UsageRow(entry.agent_id)
    return [row._replace(last_turn=event.token_usage.model_dump(exclude_defaults=True))]


def _own(agent_id: str, fact: Fact, event: Any) -> Sequence[RowKey]:
    return (RowKey(USAGE, (agent_id,)),)


USAGE_RULES: Rules = {
    ModelCompleted: RowRule(_model_completed, (_own,)),
    TurnCompleted: RowRule(_turn_completed, (_own,)),
}
