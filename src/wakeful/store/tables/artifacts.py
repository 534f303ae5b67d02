"""Rules of `artifacts`: whatever event of a turn names one."""

from typing import Any

from wakeful.contracts.events import OutputSpilled, ToolFailed, ToolResult
from wakeful.ports.artifacts import ArtifactRow
from wakeful.store.tables.row_rules import AtHand, LogEntry, RowRule, Rules
from wakeful.views.store_records import artifact_ids


def _named(entry: LogEntry, event: Any, rows: AtHand) -> list[ArtifactRow]:
    turn_id = entry.fact.turn_id
    if turn_id is None:
        return []
    return [ArtifactRow(artifact_id, turn_id, entry.agent_id, entry.seq) for artifact_id in artifact_ids(event)]


ARTIFACT_RULES: Rules = {event: RowRule(_named) for event in (OutputSpilled, ToolResult, ToolFailed)}
