"""Rules of `unknown`: calls whose outcome nobody knows, until somebody has found out."""

from collections.abc import Sequence

from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import ToolFailed, UnknownResolved
from wakeful.ports import UnknownRow
from wakeful.store.tables.row_rules import AtHand, Gone, LogEntry, OpenCall, RowRule, Rules


def _tool_failed(entry: LogEntry, event: ToolFailed, rows: AtHand) -> list[UnknownRow]:
    if event.effects != "unknown":
        return []
    fact = entry.fact
    call = OpenCall(fact.turn_id or "", fact.call_id or "")
    row = UnknownRow(
        call_id=call.call_id,
        agent_id=entry.agent_id,
        turn_id=call.turn_id,
        thread_id=fact.thread_id or "",
        step=fact.step or 0,
        tool=event.tool_name,
        arguments=rows.open_call(*call) or {},
        reason=event.message,
        since=fact.at,
        seq=entry.seq,
    )
    return [row]


def _call(agent_id: str, fact: Fact, event: ToolFailed) -> Sequence[OpenCall]:
    return (OpenCall(fact.turn_id or "", fact.call_id or ""),) if event.effects == "unknown" else ()


def _unknown_resolved(entry: LogEntry, event: UnknownResolved, rows: AtHand) -> list[Gone]:
    return [Gone((entry.fact.turn_id or "", event.call_id))]


UNKNOWN_RULES: Rules = {
    ToolFailed: RowRule(_tool_failed, (_call,)),
    UnknownResolved: RowRule(_unknown_resolved),
}
