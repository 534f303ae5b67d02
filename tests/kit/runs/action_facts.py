"""Facts about what is asked of people and clients, made by hand."""

from typing import Any

from kit.runs.store_facts import NOON, TURN
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import ActionRequired, ActionResolved, AnyEvent, ApprovalRuleAdded, ApprovalRuleRevoked

RULE = {"match": "refund", "decision": "allow", "origin": "always"}


def about(event: AnyEvent, name: str, *, turn: str = TURN, at: int = NOON, call: str = "call_1") -> Fact:
    return Fact(event, at, "main", turn, 1, call, name)


def asked(name: str = "appr_1", *, turn: str = TURN, at: int = NOON, kind: Any = "approval") -> Fact:
    event = ActionRequired(
        action_id=name,
        action_type=kind,
        tool_name="refund",
        prompt="Run refund?",
        reason="it asks",
        decisions=("approve", "reject"),
        args_sha256="sha256:1",
        binding="hmac-sha256:1",
        expires_at=NOON + 60,
    )
    return about(event, name, turn=turn, at=at)


def decided(name: str = "appr_1", status: Any = "approved", by: str = "ada", *, at: int = NOON + 5) -> Fact:
    decision = {"approved": "approve", "rejected": "reject", "timed_out": "expire"}[status]
    event: Any = ActionResolved(action_id=name, tool_name="refund", status=status, decision=decision, resolver=by)
    return about(event, name, at=at)


def rule_added(name: str = "rule_1", agent: str = "calc", *, at: int = NOON) -> Fact:
    return Fact(ApprovalRuleAdded(rule_id=name, agent_name=agent, rule=RULE, added_by="ada"), at)


def rule_revoked(name: str = "rule_1", *, at: int = NOON + 7) -> Fact:
    return Fact(ApprovalRuleRevoked(rule_id=name, revoked_by="bob"), at)
