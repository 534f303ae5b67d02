"""Rules of `artifacts`: whatever event of a turn names one."""

from typing import Any

from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import OutputExpired, OutputSpilled, ToolFailed, ToolResult, TurnEmptied
from wakeful.ports.artifacts import ARTIFACTS, ARTIFACTS_OF_TURN, ArtifactRow
from wakeful.store.tables.row_rules import AtHand, Gone, LogEntry, Need, RowKey, RowList, RowRule, Rules
from wakeful.views.artifacts import artifact_ids


def _named(entry: LogEntry, event: Any, rows: AtHand) -> list[ArtifactRow]:
    turn_id = entry.fact.turn_id
    if turn_id is None:
        return []
    return [ArtifactRow(artifact_id, turn_id, entry.agent_id, entry.seq) for artifact_id in artifact_ids(event)]


def _expired(entry: LogEntry, event: OutputExpired, rows: AtHand) -> list[ArtifactRow]:
    row = rows.get(ARTIFACTS, event.output_ref, event.of_turn)
    return [] if row is None else [row._replace(expired_at=entry.fact.at)]


def _emptied(entry: LogEntry, event: TurnEmptied, rows: AtHand) -> list[Gone]:
    return [Gone(ARTIFACTS.key_of(row)) for row in rows.list(ARTIFACTS, ARTIFACTS_OF_TURN, event.of_turn)]


def _of_turn(agent_id: str, fact: Fact, event: TurnEmptied) -> list[Need]:
    return [RowList(ARTIFACTS, ARTIFACTS_OF_TURN, (event.of_turn,))]


def _the_one(agent_id: str, fact: Fact, event: OutputExpired) -> list[Need]:
    return [RowKey(ARTIFACTS, (event.output_ref, event.of_turn))]


ARTIFACT_RULES: Rules = {
    **{event: RowRule(_named) for event in (OutputSpilled, ToolResult, ToolFailed)},
    OutputExpired: RowRule(_expired, needs=(_the_one,)),
    TurnEmptied: RowRule(_emptied, needs=(_of_turn,)),
}
