"""What may be asked about approvals, questions and the standing answers that came of them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wakeful.service.operations.agents import AgentName
from wakeful.service.operations.operation import OpenStore, Operation, check_no_tool
from wakeful.service.operations.turns import named_turn

if TYPE_CHECKING:
    from wakeful.contracts.approvals import Approval, Decided
    from wakeful.service.commands.approvals import Outcome
    from wakeful.views.approval_details import ApprovalDetails
    from wakeful.views.runtime_records import SentMessage
    from wakeful.views.store_records import ApprovalRule


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
class ApprovalDecision:
    """A person's word on an approval or a question."""

    approval: str
    decision: "Decided"
    by: str = ""


@dataclass(frozen=True, slots=True)
class ApprovalReask:
    """An approval whose time ran out, and who wants it asked again."""

    approval: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class RuleName:
    """A standing answer, and who takes it back."""

    rule: str
    by: str = ""


async def _approvals(opened: OpenStore, asked: ApprovalFilter) -> "list[Approval]":
    from wakeful.service.commands.approvals import approvals

    turn_id = (await named_turn(opened, asked.turn)).turn_id if asked.turn is not None else None
    return await approvals(opened.engine, pending_only=not asked.decided, turn_id=turn_id)


async def _approval(opened: OpenStore, asked: ApprovalName) -> "ApprovalDetails":
    from wakeful.service.queries.views import approval_details

    return await approval_details(opened.engine, asked.approval, keys=opened.keys())


async def _decide(opened: OpenStore, asked: ApprovalDecision) -> "Outcome":
    from wakeful.service.commands.approvals import decide

    check_no_tool(asked.approval)
    return await decide(opened.engine, asked.approval, asked.decision, by=asked.by)


async def _rules(opened: OpenStore, asked: AgentName) -> "list[ApprovalRule]":
    from wakeful.service.commands.approvals import rules
    from wakeful.service.queries.history import rule_record

    return [rule_record(row) for row in await rules(opened.engine, asked.agent)]


async def _revoke(opened: OpenStore, asked: RuleName) -> "ApprovalRule":
    from wakeful.service.commands.approvals import revoke_rule
    from wakeful.service.queries.history import rule_record

    check_no_tool(asked.rule)
    return rule_record(await revoke_rule(opened.engine, asked.rule, by=asked.by))


_OUTCOME = "wakeful.service.commands.approvals.Outcome"
_RULE = "wakeful.views.store_records.ApprovalRule"
_APPROVAL = "wakeful.contracts.approvals.Approval"


async def _reask(opened: OpenStore, asked: ApprovalReask) -> "SentMessage":
    from wakeful.service.commands.agents import reask
    from wakeful.service.queries.runtime_agents import sent_message

    check_no_tool(asked.approval)
    return sent_message(await reask(opened.engine, asked.approval, by=asked.by))


LIST_APPROVALS = Operation("approvals.list", "observe", ApprovalFilter, _APPROVAL, _approvals, many=True)
SHOW_APPROVAL = Operation(
    "approvals.show", "observe", ApprovalName, "wakeful.views.approval_details.ApprovalDetails", _approval
)
DECIDE = Operation("approvals.decide", "operate", ApprovalDecision, _OUTCOME, _decide)
LIST_RULES = Operation("approvals.rules", "observe", AgentName, _RULE, _rules, many=True)
REVOKE_RULE = Operation("approvals.revoke", "operate", RuleName, _RULE, _revoke, repeatable=True)
REASK = Operation("approvals.reask", "operate", ApprovalReask, "wakeful.views.runtime_records.SentMessage", _reask)
