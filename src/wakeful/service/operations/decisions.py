"""Decisions about approvals as a program makes them over a wire: one operation for each way to decide.

On a command line and in Python a decision is one value; they all end in the same command.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from wakeful.contracts.approvals import Always, Answer, Approval, ApprovalState, Approve, Decided, Edit, Reject
from wakeful.contracts.errors import AlreadyDecided, InvalidValue
from wakeful.contracts.values import Value
from wakeful.service.operations.operation import OpenStore, Operation, check_no_tool
from wakeful.service.operations.turns import turn_ahead
from wakeful.views.store_records import TurnContinuation

if TYPE_CHECKING:
    from wakeful.service.commands.approvals import Outcome


@dataclass(frozen=True, slots=True)
class ApprovalSearch:
    """Which approvals and questions: in a state, of a turn. Without a state: pending ones."""

    status: ApprovalState | Literal["any"] = "pending"
    """The state that they are in."""
    run_id: str | None = None
    """A turn's id, its key, or the beginning of its id."""


@dataclass(frozen=True, slots=True)
class PlainDecision:
    """Let a call run as it is shown, or not."""

    approval: str
    decision: Literal["approved", "rejected"]
    reason: str | None = None
    """Words for the model."""
    by: str = ""


@dataclass(frozen=True, slots=True)
class EditDecision:
    """Let a call run with other arguments: all of them, single ones as a person types them, or both."""

    approval: str
    arguments: Mapping[str, Any] | None = None
    """In the place of what the model wrote. What is left as `[redacted]` stays what it was."""
    changes: Mapping[str, str] = field(default_factory=dict)
    """Single arguments; each is read as its type in the tool's schema says."""
    reason: str | None = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class AnswerDecision:
    """Answer a question, or give a call its result without running it."""

    approval: str
    answer: Any
    """The answer to a question, or the result of a call."""
    reason: str | None = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class AlwaysDecision:
    """Let a call run, and ask no more about calls like it."""

    approval: str
    scope: Literal["call", "tool", "pattern"] = "call"
    """What the rule is about: this exact call, this tool, or calls that fit a pattern."""
    match: str | None = None
    """Of a pattern: tool names, `*` allowed."""
    arguments: Mapping[str, str] = field(default_factory=dict)
    """Of a pattern: what arguments look like, `*` allowed."""
    for_seconds: float | None = None
    """How long it holds; without it, until it is revoked."""
    reason: str | None = None
    by: str = ""


class DecisionRecord(Value):
    """What became of a decision."""

    approval: Approval
    duplicate: bool = False
    """It had been decided in the same way before; nothing was changed."""
    rule_id: str | None = None
    """The rule that a decision for always made."""
    arguments: dict[str, Any] | None = None
    """Of an edit: the new arguments, with secrets redacted."""
    ahead: TurnContinuation | None = None
    """Its turn, if that is unfinished."""


_WORDS: Mapping[type, str] = {
    Approve: "approve",
    Reject: "reject",
    Edit: "edit",
    Answer: "answer",
    Always: "always",
}
"""What the record of a decision calls each."""


async def _search(opened: OpenStore, asked: ApprovalSearch) -> "list[Approval]":
    from wakeful.service.commands.approvals import approvals
    from wakeful.service.operations.turns import named_turn

    turn_id = (await named_turn(opened, asked.run_id)).turn_id if asked.run_id is not None else None
    found = await approvals(opened.engine, pending_only=asked.status == "pending", turn_id=turn_id)
    return [each for each in found if asked.status in ("any", each.status)]


async def _decided(opened: OpenStore, approval: str, decision: Decided, by: str) -> DecisionRecord:
    from wakeful.service.commands.approvals import decide

    check_no_tool(approval)
    outcome: Outcome = await decide(opened.engine, approval, decision, by=by)
    found = outcome.approval
    is_another = found.decided_by != by or found.decision != _WORDS[type(decision)] or not outcome.is_same
    if outcome.duplicate and is_another:
        raise AlreadyDecided(found.approval_id, found.status, found.decided_by, found.decided_at)
    return DecisionRecord(
        approval=outcome.approval,
        duplicate=outcome.duplicate,
        rule_id=outcome.rule_id,
        arguments=outcome.arguments,
        ahead=await turn_ahead(opened, outcome.approval.turn_id),
    )


async def _plain(opened: OpenStore, asked: PlainDecision) -> DecisionRecord:
    words = asked.reason or ""
    decision = Approve(words) if asked.decision == "approved" else Reject(words)
    return await _decided(opened, asked.approval, decision, asked.by)


async def _edit(opened: OpenStore, asked: EditDecision) -> DecisionRecord:
    from wakeful.service.commands.approvals import edited_arguments

    check_no_tool(asked.approval)
    if asked.arguments is None and not asked.changes:
        raise InvalidValue("invalid_decision", "arguments", "nothing is changed", "Give arguments or changes.")
    arguments = await edited_arguments(opened.engine, asked.approval, asked.arguments, asked.changes)
    return await _decided(opened, asked.approval, Edit(arguments, asked.reason or ""), asked.by)


async def _answer(opened: OpenStore, asked: AnswerDecision) -> DecisionRecord:
    return await _decided(opened, asked.approval, Answer(asked.answer, asked.reason or ""), asked.by)


async def _always(opened: OpenStore, asked: AlwaysDecision) -> DecisionRecord:
    always = Always(asked.scope, asked.match, dict(asked.arguments), asked.for_seconds, asked.reason or "")
    return await _decided(opened, asked.approval, always, asked.by)


_RECORD = f"{__name__}.DecisionRecord"
SEARCH_APPROVALS = Operation(
    "approvals.search", "observe", ApprovalSearch, "wakeful.contracts.approvals.Approval", _search, many=True
)
DECIDE_PLAINLY = Operation("approvals.decision", "operate", PlainDecision, _RECORD, _plain, repeatable=True)
DECIDE_BY_EDIT = Operation("approvals.edit", "operate", EditDecision, _RECORD, _edit, repeatable=True)
DECIDE_BY_ANSWER = Operation("approvals.answer", "operate", AnswerDecision, _RECORD, _answer, repeatable=True)
DECIDE_FOR_ALWAYS = Operation("approvals.always", "operate", AlwaysDecision, _RECORD, _always, repeatable=True)
