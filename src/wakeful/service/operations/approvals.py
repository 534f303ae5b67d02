"""What may be asked about approvals, questions and the standing answers that came of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.service.operations.agents import AgentName
from wakeful.service.operations.operation import OPERATOR, OpenStore, Operation, check_no_tool
from wakeful.service.operations.turns import TurnAhead, named_turn, turn_ahead

if TYPE_CHECKING:
    from wakeful.contracts.approvals import Approval, Decided
    from wakeful.ports import RuleRow
    from wakeful.service.commands.approvals import Outcome
    from wakeful.views.runtime_records import SentMessage


@dataclass(frozen=True, slots=True)
class ApprovalFilter:
    """Which approvals and questions: those of a turn, decided ones too."""

    turn: str | None = None
    decided: bool = False


@dataclass(frozen=True, slots=True)
class ApprovalName:
    """An approval or a question by its id, or enough of its beginning."""

    approval: str


@dataclass(frozen=True, slots=True)
class ArgumentChange:
    """An edit as a person types it: all arguments, or single ones."""

    whole: Mapping[str, Any] | None
    changed: Mapping[str, str]
    note: str = ""


@dataclass(frozen=True, slots=True)
class ApprovalDecision:
    """A person's word on an approval or a question."""

    approval: str
    decision: "Decided | ArgumentChange"
    by: str = OPERATOR


@dataclass(frozen=True, slots=True)
class ApprovalReask:
    """An approval whose time ran out, and who wants it asked again."""

    approval: str
    by: str = OPERATOR


@dataclass(frozen=True, slots=True)
class RuleName:
    """A standing answer, and who takes it back."""

    rule: str
    by: str = OPERATOR


class DecisionReceipt(NamedTuple):
    """What became of a decision, and what is next."""

    outcome: "Outcome"
    ahead: TurnAhead | None
    others: "list[Approval]"
    """What of the same turn still waits."""
    rule: "RuleRow | None"


async def _approvals(opened: OpenStore, asked: ApprovalFilter) -> "list[Approval]":
    from wakeful.service.commands.approvals import approvals

    turn_id = (await named_turn(opened, asked.turn)).turn_id if asked.turn is not None else None
    return await approvals(opened.engine, pending_only=not asked.decided, turn_id=turn_id)


async def _approval(opened: OpenStore, asked: ApprovalName) -> "Approval":
    from wakeful.service.commands.approvals import show

    return await show(opened.engine, asked.approval)


async def _decide(opened: OpenStore, asked: ApprovalDecision) -> DecisionReceipt:
    from wakeful.contracts.approvals import Edit
    from wakeful.service.commands.approvals import approvals, decide, edited_arguments, rules

    check_no_tool(asked.approval)
    decided = asked.decision
    if isinstance(decided, ArgumentChange):
        arguments = await edited_arguments(opened.engine, asked.approval, decided.whole, decided.changed)
        decided = Edit(arguments, decided.note)
    outcome = await decide(opened.engine, asked.approval, decided, by=asked.by)
    turn_id = outcome.approval.turn_id
    others = await approvals(opened.engine, turn_id=turn_id)
    rule = next((row for row in await rules(opened.engine) if row.rule_id == outcome.rule_id), None)
    return DecisionReceipt(outcome, await turn_ahead(opened, turn_id), others, rule)


async def _rules(opened: OpenStore, asked: AgentName) -> "list[RuleRow]":
    from wakeful.service.commands.approvals import rules

    return await rules(opened.engine, asked.agent)


async def _revoke(opened: OpenStore, asked: RuleName) -> "RuleRow":
    from wakeful.service.commands.approvals import revoke_rule

    check_no_tool(asked.rule)
    return await revoke_rule(opened.engine, asked.rule, by=asked.by)


_RULE = "wakeful.ports.RuleRow"
_APPROVAL = "wakeful.contracts.approvals.Approval"


async def _reask(opened: OpenStore, asked: ApprovalReask) -> "SentMessage":
    from wakeful.service.commands.agents import reask
    from wakeful.service.queries.runtime_agents import sent_message

    check_no_tool(asked.approval)
    return sent_message(await reask(opened.engine, asked.approval, by=asked.by))


LIST_APPROVALS = Operation("approvals.list", "observe", ApprovalFilter, _APPROVAL, _approvals, many=True)
SHOW_APPROVAL = Operation("approvals.show", "observe", ApprovalName, _APPROVAL, _approval)
DECIDE = Operation("approvals.decide", "operate", ApprovalDecision, f"{__name__}.DecisionReceipt", _decide)
LIST_RULES = Operation("approvals.rules", "observe", AgentName, _RULE, _rules, many=True)
REVOKE_RULE = Operation("approvals.revoke", "operate", RuleName, _RULE, _revoke, repeatable=True)
REASK = Operation("approvals.reask", "operate", ApprovalReask, "wakeful.views.runtime_records.SentMessage", _reask)
