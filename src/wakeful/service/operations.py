"""What may be asked of the runtime about a store: one table, from which every surface takes its way.

An operation has a name, a scope, a request and an answer, and says whether it changes something. A surface makes the
request, hands it to `bootstrap.perform` and puts the answer into words: it opens no store and calls no command or query
itself. A new command of the command line is an operation here and its words there. Running a turn is none of them: it
needs the code of an agent, which only the process that has it can give.

Rule: an operation whose scope is `observe` changes nothing but what time has decided already (an approval past its
time), and works on a store that can only be read. Handlers load what they need when they are called: a command pays for
itself alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.service.history import HISTORY
from wakeful.service.operation import OPERATOR as OPERATOR
from wakeful.service.operation import OpenStore, Operation

if TYPE_CHECKING:
    from wakeful.contracts.approvals import Approval, Decided
    from wakeful.contracts.runtime_tools import RuntimeToolRequest
    from wakeful.contracts.spending import Period, SpendRow
    from wakeful.contracts.workflows import SavedWorkflow
    from wakeful.ports import RuleRow, TurnRow, UnknownRow
    from wakeful.service.commands.approvals import Outcome
    from wakeful.service.commands.client_requests import RequestOutcome
    from wakeful.service.queries.costs import Grouping
    from wakeful.service.queries.log_check import CheckedEvent
    from wakeful.service.queries.replay import ReplayReport
    from wakeful.service.queries.tool_inventory import ToolInventory
    from wakeful.views.agent_status import AgentStatus
    from wakeful.views.cost import CostReport
    from wakeful.views.explanation import CallExplanation
    from wakeful.views.prompt_report import PromptReport
    from wakeful.views.tree import ExecutionTreeSnapshot
    from wakeful.views.turn_record import TurnLatency


# --- what is asked with -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NoRequest:
    """No words are needed."""


@dataclass(frozen=True, slots=True)
class AgentName:
    """One agent by its name; None: all of them."""

    agent: str | None = None


@dataclass(frozen=True, slots=True)
class TurnName:
    """One turn by its id or enough of its beginning; None: the newest."""

    turn: str | None = None


@dataclass(frozen=True, slots=True)
class TurnStep:
    """A turn, and one of its requests to a model."""

    turn: str | None = None
    step: int | None = None


@dataclass(frozen=True, slots=True)
class TurnCount:
    """So many of the newest turns."""

    limit: int = 20


@dataclass(frozen=True, slots=True)
class MessageToTurn:
    """Something to say to a turn that is under way."""

    turn: str
    text: str
    said_by: str = OPERATOR


@dataclass(frozen=True, slots=True)
class CallName:
    """A call by its id, or `TURN/CALL`."""

    call: str


@dataclass(frozen=True, slots=True)
class OutcomeOfCall:
    """What somebody found out about a call."""

    call: str
    happened: bool
    result: str = ""
    by: str = OPERATOR


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
class RuleName:
    """A standing answer, and who takes it back."""

    rule: str
    by: str = OPERATOR


@dataclass(frozen=True, slots=True)
class RequestName:
    """A client's request by its id, or enough of its beginning."""

    request: str


@dataclass(frozen=True, slots=True)
class ClientResult:
    """What a client gave, or with `error` why it could not."""

    request: str
    result: Any = None
    error: str | None = None
    by: str = OPERATOR


@dataclass(frozen=True, slots=True)
class RequestEnd:
    """A request that nobody will answer, or whose answer nobody wants."""

    request: str
    cancelled: bool = False
    by: str = OPERATOR


@dataclass(frozen=True, slots=True)
class SpendGrant:
    """More money for a window."""

    scope: str
    usd: str
    period: "Period | None"
    by: str = OPERATOR
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CostQuestion:
    """Which requests to models are counted, and by what they are grouped; a day is one of this machine's calendar."""

    by: "Grouping"
    since: int | None = None
    agent: str | None = None
    turn: str | None = None


@dataclass(frozen=True, slots=True)
class WorkflowName:
    """A saved workflow by its name or id; None: its newest revision."""

    name: str
    revision: int | None = None


# --- what is answered -------------------------------------------------------------------------------------------------


class TurnAhead(NamedTuple):
    """A turn that may go on, and the tools that have to be supplied for it."""

    row: "TurnRow"
    code_needed: "list[str]"


class TurnTree(NamedTuple):
    """A turn with its calls."""

    row: "TurnRow"
    tree: "ExecutionTreeSnapshot"


class Cancellation(NamedTuple):
    """What became of asking a turn to stop."""

    before: "TurnRow"
    accepted: bool
    """False: it was over already."""
    now: "TurnRow"
    ahead: TurnAhead | None
    """There when no process runs it: somebody has to take it up so that it ends."""


class Pause(NamedTuple):
    """What became of asking a turn to rest."""

    row: "TurnRow"
    accepted: bool
    ahead: TurnAhead | None


class MessageReceipt(NamedTuple):
    """A message that is safe."""

    turn_id: str
    message_id: str


class CallResolution(NamedTuple):
    """A call whose outcome is known now, and its turn if it is unfinished."""

    row: "UnknownRow"
    ahead: TurnAhead | None


class DecisionReceipt(NamedTuple):
    """What became of a decision, and what is next."""

    outcome: "Outcome"
    ahead: TurnAhead | None
    others: "list[Approval]"
    """What of the same turn still waits."""
    rule: "RuleRow | None"


class RequestReceipt(NamedTuple):
    """What a client's request ended with, and its turn if it is unfinished."""

    ended: "RequestOutcome"
    ahead: TurnAhead | None


# --- how it is done ---------------------------------------------------------------------------------------------------


async def _ahead(opened: OpenStore, turn_id: str) -> TurnAhead | None:
    from wakeful.service.commands.agent_rebuild import code_needed

    row = await opened.store.turn(turn_id)
    if row is None or not row.is_open:
        return None
    return TurnAhead(row, await code_needed(opened.store, row, opened.engine.resolve_model))


async def _turn(opened: OpenStore, turn: str | None) -> "TurnRow":
    from wakeful.service.queries.turns import find_turn

    return await find_turn(opened.store, turn)


async def _status(opened: OpenStore, asked: AgentName) -> "list[AgentStatus]":
    from wakeful.service.queries.status import agents_status

    return await agents_status(opened.store, asked.agent)


async def _turns(opened: OpenStore, asked: TurnCount) -> "list[TurnRow]":
    from wakeful.service.queries.turns import newest_turns

    return list(await newest_turns(opened.store, asked.limit))


async def _tree(opened: OpenStore, asked: TurnName) -> TurnTree:
    from wakeful.service.queries.views import execution_tree

    row = await _turn(opened, asked.turn)
    return TurnTree(row, await execution_tree(opened.store, row.turn_id, keys=opened.keys()))


async def _latency(opened: OpenStore, asked: TurnName) -> "TurnLatency":
    from wakeful.service.queries.turns import latency_of

    return await latency_of(opened.store, await _turn(opened, asked.turn))


async def _context(opened: OpenStore, asked: TurnStep) -> dict[str, Any]:
    from wakeful.service.queries.turn_context import readable_context

    return await readable_context(opened.store, await _turn(opened, asked.turn), asked.step, keys=opened.keys())


async def _prompt(opened: OpenStore, asked: TurnName) -> "PromptReport":
    from wakeful.service.queries.prompt_report import prompt_of_turn

    return await prompt_of_turn(opened.store, await _turn(opened, asked.turn))


async def _tools(opened: OpenStore, asked: TurnName) -> "ToolInventory":
    from wakeful.service.queries.tool_inventory import tool_inventory

    return await tool_inventory(opened.engine, turn=await _turn(opened, asked.turn))


async def _replay(opened: OpenStore, asked: TurnName) -> "ReplayReport":
    from wakeful.service.queries.replay import replay_turn

    return await replay_turn(opened.store, await _turn(opened, asked.turn))


async def _cancel(opened: OpenStore, asked: TurnName) -> Cancellation:
    from wakeful.service.commands.interruption import cancel_turn

    row = await _turn(opened, asked.turn)
    if not await cancel_turn(opened.engine, row.turn_id, requested_by=OPERATOR):
        return Cancellation(row, False, row, None)
    now = await _turn(opened, row.turn_id)
    held = not now.is_open or await opened.store.is_held(row.agent_id, row.thread_id)
    return Cancellation(row, True, now, None if held else await _ahead(opened, row.turn_id))


async def _pause(opened: OpenStore, asked: TurnName) -> Pause:
    from wakeful.service.commands.steering import pause_turn

    row = await _turn(opened, asked.turn)
    accepted = await pause_turn(opened.engine, row.turn_id, requested_by=OPERATOR)
    return Pause(row, accepted, await _ahead(opened, row.turn_id) if row.is_open else None)


async def _interject(opened: OpenStore, asked: MessageToTurn) -> MessageReceipt:
    from wakeful.service.commands.steering import interject

    row = await _turn(opened, asked.turn)
    said = await interject(opened.engine, row.turn_id, asked.text, said_by=asked.said_by)
    return MessageReceipt(row.turn_id, said)


async def _why(opened: OpenStore, asked: CallName) -> "CallExplanation":
    from wakeful.service.queries.explanation import why_call

    return await why_call(opened.store, asked.call)


async def _unknown(opened: OpenStore, asked: NoRequest) -> "list[UnknownRow]":
    return await opened.store.unknown()


def _check_no_tool(what: str) -> None:
    """No tool of an agent decides for a person, whatever store it opens. Raises NotEntitled."""
    from wakeful.contracts.errors import NotEntitled
    from wakeful.tools.call_runner import inside_tool

    if inside_tool.get():
        raise NotEntitled(
            f"a tool of an agent may not decide about {what}",
            "nothing was changed; a person or your own program decides",
        )


async def _resolve(opened: OpenStore, asked: OutcomeOfCall) -> CallResolution:
    from wakeful.service.commands.outcome_resolution import resolve_unknown

    _check_no_tool(asked.call)
    row = await resolve_unknown(opened.engine, asked.call, happened=asked.happened, result=asked.result, by=asked.by)
    return CallResolution(row, await _ahead(opened, row.turn_id))


async def _approvals(opened: OpenStore, asked: ApprovalFilter) -> "list[Approval]":
    from wakeful.service.commands.approvals import approvals

    turn_id = (await _turn(opened, asked.turn)).turn_id if asked.turn is not None else None
    return await approvals(opened.engine, pending_only=not asked.decided, turn_id=turn_id)


async def _approval(opened: OpenStore, asked: ApprovalName) -> "Approval":
    from wakeful.service.commands.approvals import show

    return await show(opened.engine, asked.approval)


async def _decide(opened: OpenStore, asked: ApprovalDecision) -> DecisionReceipt:
    from wakeful.contracts.approvals import Edit
    from wakeful.service.commands.approvals import approvals, decide, edited_arguments, rules

    _check_no_tool(asked.approval)
    decided = asked.decision
    if isinstance(decided, ArgumentChange):
        arguments = await edited_arguments(opened.engine, asked.approval, decided.whole, decided.changed)
        decided = Edit(arguments, decided.note)
    outcome = await decide(opened.engine, asked.approval, decided, by=asked.by)
    turn_id = outcome.approval.turn_id
    others = await approvals(opened.engine, turn_id=turn_id)
    rule = next((row for row in await rules(opened.engine) if row.rule_id == outcome.rule_id), None)
    return DecisionReceipt(outcome, await _ahead(opened, turn_id), others, rule)


async def _rules(opened: OpenStore, asked: AgentName) -> "list[RuleRow]":
    from wakeful.service.commands.approvals import rules

    return await rules(opened.engine, asked.agent)


async def _revoke(opened: OpenStore, asked: RuleName) -> "RuleRow":
    from wakeful.service.commands.approvals import revoke_rule

    return await revoke_rule(opened.engine, asked.rule, by=asked.by)


async def _requests(opened: OpenStore, asked: TurnName) -> "list[RuntimeToolRequest]":
    from wakeful.service.commands.client_requests import pending_requests

    turn_id = (await _turn(opened, asked.turn)).turn_id if asked.turn is not None else None
    return await pending_requests(opened.engine, turn_id)


async def _request(opened: OpenStore, asked: RequestName) -> "RuntimeToolRequest":
    from wakeful.service.commands.client_requests import show_request

    return await show_request(opened.engine, asked.request)


async def _submit(opened: OpenStore, asked: ClientResult) -> RequestReceipt:
    from wakeful.service.commands.client_requests import submit_result

    ended = await submit_result(opened.engine, asked.request, asked.result, error=asked.error, by=asked.by)
    return RequestReceipt(ended, await _ahead(opened, ended.turn_id))


async def _end(opened: OpenStore, asked: RequestEnd) -> RequestReceipt:
    from wakeful.service.commands.client_requests import end_unanswered

    ended = await end_unanswered(opened.engine, asked.request, cancelled=asked.cancelled, by=asked.by)
    return RequestReceipt(ended, await _ahead(opened, ended.turn_id))


async def _spending(opened: OpenStore, asked: NoRequest) -> "list[SpendRow]":
    from wakeful.service.commands.spend_windows import spending

    return await spending(opened.engine)


async def _grant(opened: OpenStore, asked: SpendGrant) -> "SpendRow":
    from wakeful.service.commands.spend_windows import grant

    return await grant(opened.engine, asked.scope, asked.usd, asked.period, by=asked.by, reason=asked.reason)


async def _costs(opened: OpenStore, asked: CostQuestion) -> "CostReport":
    from datetime import datetime

    from wakeful.service.queries.costs import costs_of

    def day(at: int) -> str:
        return datetime.fromtimestamp(at / 1_000_000).date().isoformat()

    return await costs_of(opened.store, asked.by, day=day, since=asked.since, agent=asked.agent, turn_id=asked.turn)


async def _log(opened: OpenStore, asked: NoRequest) -> "list[CheckedEvent]":
    from wakeful.service.queries.log_check import check_store

    return [each async for each in check_store(opened.store)]


async def _workflows(opened: OpenStore, asked: NoRequest) -> "list[SavedWorkflow]":
    from wakeful.engine.workflow_parts import workflow_registry

    return await (await workflow_registry(opened.engine)).list()


async def _workflow(opened: OpenStore, asked: WorkflowName) -> "SavedWorkflow":
    from wakeful.engine.workflow_parts import workflow_registry

    return await (await workflow_registry(opened.engine)).find(asked.name, asked.revision)


async def _delete(opened: OpenStore, asked: WorkflowName) -> "SavedWorkflow":
    from wakeful.engine.workflow_parts import workflow_registry

    registry = await workflow_registry(opened.engine)
    saved = await registry.find(asked.name)
    await registry.delete(saved.workflow_id)
    return saved


# --- the table --------------------------------------------------------------------------------------------------------

_HERE = "wakeful.service.operations"
_APPROVAL = "wakeful.contracts.approvals.Approval"
_REQUEST = "wakeful.contracts.runtime_tools.RuntimeToolRequest"
_WORKFLOW = "wakeful.contracts.workflows.SavedWorkflow"
_TURN, _RULE, _UNKNOWN = "wakeful.ports.TurnRow", "wakeful.ports.RuleRow", "wakeful.ports.UnknownRow"
_SPEND = "wakeful.contracts.spending.SpendRow"

STATUS = Operation("agents.status", "observe", AgentName, "wakeful.views.agent_status.AgentStatus", _status, many=True)
LIST_TURNS = Operation("turns.list", "observe", TurnCount, _TURN, _turns, many=True)
SHOW_TREE = Operation("turns.tree", "observe", TurnName, f"{_HERE}.TurnTree", _tree)
SHOW_LATENCY = Operation("turns.latency", "observe", TurnName, "wakeful.views.turn_record.TurnLatency", _latency)
SHOW_CONTEXT = Operation("turns.context", "observe", TurnStep, "builtins.dict", _context)
SHOW_PROMPT = Operation("turns.prompt", "observe", TurnName, "wakeful.views.prompt_report.PromptReport", _prompt)
SHOW_TOOLS = Operation(
    "turns.tools", "observe", TurnName, "wakeful.service.queries.tool_inventory.ToolInventory", _tools
)
REPLAY = Operation("turns.replay", "observe", TurnName, "wakeful.service.queries.replay.ReplayReport", _replay)
CANCEL = Operation("turns.cancel", "operate", TurnName, f"{_HERE}.Cancellation", _cancel)
PAUSE = Operation("turns.pause", "operate", TurnName, f"{_HERE}.Pause", _pause)
INTERJECT = Operation("turns.interject", "operate", MessageToTurn, f"{_HERE}.MessageReceipt", _interject)
EXPLAIN = Operation("calls.explain", "observe", CallName, "wakeful.views.explanation.CallExplanation", _why)
LIST_UNKNOWN = Operation("calls.unknown", "observe", NoRequest, _UNKNOWN, _unknown, many=True)
RESOLVE = Operation("calls.resolve", "operate", OutcomeOfCall, f"{_HERE}.CallResolution", _resolve)
LIST_APPROVALS = Operation("approvals.list", "observe", ApprovalFilter, _APPROVAL, _approvals, many=True)
SHOW_APPROVAL = Operation("approvals.show", "observe", ApprovalName, _APPROVAL, _approval)
DECIDE = Operation("approvals.decide", "operate", ApprovalDecision, f"{_HERE}.DecisionReceipt", _decide)
LIST_RULES = Operation("approvals.rules", "observe", AgentName, _RULE, _rules, many=True)
REVOKE_RULE = Operation("approvals.revoke", "operate", RuleName, _RULE, _revoke)
LIST_REQUESTS = Operation("requests.list", "observe", TurnName, _REQUEST, _requests, many=True)
SHOW_REQUEST = Operation("requests.show", "observe", RequestName, _REQUEST, _request)
SUBMIT_RESULT = Operation("requests.submit", "operate", ClientResult, f"{_HERE}.RequestReceipt", _submit)
END_REQUEST = Operation("requests.end", "operate", RequestEnd, f"{_HERE}.RequestReceipt", _end)
LIST_SPENDING = Operation("budgets.list", "observe", NoRequest, _SPEND, _spending, many=True)
GRANT = Operation("budgets.grant", "operate", SpendGrant, _SPEND, _grant)
SHOW_COSTS = Operation("costs.show", "observe", CostQuestion, "wakeful.views.cost.CostReport", _costs)
CHECK_LOG = Operation(
    "log.check", "observe", NoRequest, "wakeful.service.queries.log_check.CheckedEvent", _log, many=True
)
LIST_WORKFLOWS = Operation("workflows.list", "observe", NoRequest, _WORKFLOW, _workflows, many=True)
SHOW_WORKFLOW = Operation("workflows.show", "observe", WorkflowName, _WORKFLOW, _workflow)
DELETE_WORKFLOW = Operation("workflows.delete", "operate", WorkflowName, _WORKFLOW, _delete)

OPERATIONS: Mapping[str, Operation[Any, Any]] = {
    each.name: each for each in (*list(globals().values()), *HISTORY) if isinstance(each, Operation)
}
"""By name."""
