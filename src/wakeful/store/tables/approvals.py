"""Rules of `actions` and `rules`: what turns ask of people and clients, and what people allowed for good."""

from collections.abc import Sequence
from typing import Any

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import AlreadyDecided, EventRefused
from wakeful.contracts.events import (
    ActionRequired,
    ActionResolved,
    ActionSettled,
    ActionStaged,
    ApprovalRuleAdded,
    ApprovalRuleRevoked,
    RuntimeToolRequested,
    RuntimeToolResolved,
)
from wakeful.ports import ActionKind, ActionRow, RuleRow
from wakeful.ports.approvals import ACTIONS, APPROVAL_RULES
from wakeful.store.tables.row_rules import AtHand, LogEntry, RowKey, RowRule, Rules


def _action_required(entry: LogEntry, event: ActionRequired, rows: AtHand) -> list[ActionRow]:
    return _ask(entry, rows, event.action_id, event.action_type, event.tool_name, event.expires_at)


def _runtime_tool_requested(entry: LogEntry, event: RuntimeToolRequested, rows: AtHand) -> list[ActionRow]:
    return _ask(entry, rows, event.request_id, "client_tool", event.tool_name, event.timeout_at)


def _action_staged(entry: LogEntry, event: ActionStaged, rows: AtHand) -> list[ActionRow]:
    return _ask(entry, rows, event.action_id, event.action_type, event.name, event.expires_at)


def _ask(
    entry: LogEntry, rows: AtHand, action_id: str, kind: ActionKind, tool_name: str, expires_at: int
) -> list[ActionRow]:
    if rows.get(ACTIONS, action_id) is not None:
        raise EventRefused(f"{action_id} was asked before", "Give what is asked a name of its own.")
    fact = entry.fact
    row = ActionRow(
        action_id=action_id,
        kind=kind,
        agent_id=entry.agent_id,
        agent_name=entry.agent_name,
        turn_id=fact.turn_id or "",
        thread_id=fact.thread_id or "",
        step=fact.step or 0,
        call_id=fact.call_id or "",
        tool_name=tool_name,
        status="pending",
        requested_at=fact.at,
        expires_at=expires_at,
        decided_at=None,
        decided_by=None,
        required_seq=entry.seq,
        resolved_seq=None,
    )
    return [row]


def _action_resolved(entry: LogEntry, event: ActionResolved, rows: AtHand) -> list[ActionRow]:
    return _decide(entry, rows, event.action_id, event.status, event.resolver)


def _runtime_tool_resolved(entry: LogEntry, event: RuntimeToolResolved, rows: AtHand) -> list[ActionRow]:
    status = "completed" if event.status == "runtime_tool_completed" else "timed_out"
    return _decide(entry, rows, event.request_id, status, event.submitted_by)


def _action_settled(entry: LogEntry, event: ActionSettled, rows: AtHand) -> list[ActionRow]:
    return _decide(entry, rows, event.action_id, event.status, event.settled_by)


def _decide(entry: LogEntry, rows: AtHand, action_id: str, status: str, by: str) -> list[ActionRow]:
    """The compare and the set are in one transaction: whoever comes second changes nothing, and is told."""
    row = rows.get(ACTIONS, action_id)
    if row is None:
        raise EventRefused(f"{entry.fact.event.kind} names {action_id}, which nobody asked for", "Ask first.")
    if row.status != "pending":
        raise AlreadyDecided(action_id, row.status, row.decided_by)
    return [row._replace(status=status, decided_at=entry.fact.at, decided_by=by, resolved_seq=entry.seq)]


def _action(agent_id: str, fact: Fact, event: Any) -> Sequence[RowKey]:
    return (RowKey(ACTIONS, (event.action_id,)),)


def _request(agent_id: str, fact: Fact, event: Any) -> Sequence[RowKey]:
    return (RowKey(ACTIONS, (event.request_id,)),)


ACTION_RULES: Rules = {
    ActionRequired: RowRule(_action_required, (_action,)),
    ActionResolved: RowRule(_action_resolved, (_action,)),
    RuntimeToolRequested: RowRule(_runtime_tool_requested, (_request,)),
    RuntimeToolResolved: RowRule(_runtime_tool_resolved, (_request,)),
    ActionStaged: RowRule(_action_staged, (_action,)),
    ActionSettled: RowRule(_action_settled, (_action,)),
}


def _rule_added(entry: LogEntry, event: ApprovalRuleAdded, rows: AtHand) -> list[RuleRow]:
    added = (entry.fact.at, event.added_by)
    return [RuleRow(event.rule_id, entry.agent_id, event.agent_name, event.rule, *added, None, None)]


def _rule_revoked(entry: LogEntry, event: ApprovalRuleRevoked, rows: AtHand) -> list[RuleRow]:
    row = rows.get(APPROVAL_RULES, event.rule_id)
    if row is None or row.revoked_at is not None:
        return []  # turns of other agents are told, too
    return [row._replace(revoked_at=entry.fact.at, revoked_by=event.revoked_by)]


def _rule(agent_id: str, fact: Fact, event: Any) -> Sequence[RowKey]:
    return (RowKey(APPROVAL_RULES, (event.rule_id,)),)


RULE_RULES: Rules = {
    ApprovalRuleAdded: RowRule(_rule_added),
    ApprovalRuleRevoked: RowRule(_rule_revoked, (_rule,)),
}
