"""Rules of `agent_figures` and `agent_revisions`: what turns and calls of an agent of a runtime come to, and which
definitions were in force. Runs of the library have no rows here."""

from collections.abc import Sequence
from typing import Any

from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import (
    AgentCreated,
    AgentRevised,
    CompactionCompleted,
    ToolFailed,
    ToolResult,
    TurnStarted,
)
from wakeful.ports.agent_figures import AGENT_FIGURES, AgentFiguresRow, AgentRevisionRow
from wakeful.store.tables.row_rules import AtHand, LogEntry, RowKey, RowRule, Rules


def _created(entry: LogEntry, event: AgentCreated, rows: AtHand) -> list[AgentFiguresRow]:
    return [_figures(entry, rows) or AgentFiguresRow(entry.agent_id, 0, 0, 0, 0, {})]


def _revised(entry: LogEntry, event: AgentRevised, rows: AtHand) -> list[AgentFiguresRow]:
    row = _figures(entry, rows)
    return [row._replace(revisions=row.revisions + 1)] if row is not None else []


def _kept(entry: LogEntry, event: AgentRevised, rows: AtHand) -> list[AgentRevisionRow]:
    row = _figures(entry, rows)
    if row is None:
        return []
    return [
        AgentRevisionRow(
            entry.agent_id,
            row.revisions + 1,
            event.revision,
            event.source,
            event.place,
            row.turns,
            entry.fact.at,
        )
    ]


def _turn_started(entry: LogEntry, event: TurnStarted, rows: AtHand) -> list[AgentFiguresRow]:
    row = _figures(entry, rows)
    if row is None:
        return []
    return [row._replace(messages=row.messages + len(event.message_ids), turns=row.turns + 1)]


def _compacted(entry: LogEntry, event: CompactionCompleted, rows: AtHand) -> list[AgentFiguresRow]:
    row = _figures(entry, rows)
    if row is None or event.window is None:  # a child's conversation is none of the agent's
        return []
    return [row._replace(compacted_messages=row.compacted_messages + event.folded_messages)]


def _call_ended(entry: LogEntry, event: ToolResult | ToolFailed, rows: AtHand) -> list[AgentFiguresRow]:
    row = _figures(entry, rows)
    if row is None:
        return []
    calls, took = row.tools.get(event.tool_name, (0, 0))
    ended = [calls + 1, took + round(event.duration_ms * 1_000)]
    return [row._replace(tools={**row.tools, event.tool_name: ended})]


def _figures(entry: LogEntry, rows: AtHand) -> AgentFiguresRow | None:
    return rows.get(AGENT_FIGURES, entry.agent_id) if rows.has_any(AGENT_FIGURES) else None


def _own(agent_id: str, fact: Fact, event: Any) -> Sequence[RowKey]:
    return (RowKey(AGENT_FIGURES, (agent_id,)),)


AGENT_FIGURE_RULES: Rules = {
    AgentCreated: RowRule(_created, (_own,)),
    AgentRevised: RowRule(_revised, (_own,)),
    TurnStarted: RowRule(_turn_started, (_own,)),
    CompactionCompleted: RowRule(_compacted, (_own,)),
    ToolResult: RowRule(_call_ended, (_own,)),
    ToolFailed: RowRule(_call_ended, (_own,)),
}
AGENT_REVISION_RULES: Rules = {AgentRevised: RowRule(_kept, (_own,))}
