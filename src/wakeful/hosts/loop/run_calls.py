"""The calls of one run: which have their result, which wait for somebody, and what each result is.

Results come in model order, however their calls finished. What a fact holds only a preview of (an executor's whole
result, the envelope of an approval) comes from the adapters of this process (`Sources`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wakeful.contracts.envelope import iso
from wakeful.contracts.events import ActionRequired, ToolFailed, ToolResult
from wakeful.contracts.tools import ToolDeclaration
from wakeful.contracts.transcript import Message
from wakeful.decisions.policy.call_gates import CallGates, CallRule
from wakeful.hosts.actions.pending_action import PendingAction, approval_envelope
from wakeful.hosts.loop.budgets import IterationBudget
from wakeful.hosts.loop.turn_reply import RunnerCall, TurnTaken
from wakeful.hosts.tools.tool_execution import failed

BUDGET_EXCEEDED = "budget_exceeded"
REFUSED = ("invalid", "denied", "rejected", "skipped")
"""Ends of calls that never reached an executor."""
STOPS = {"user_interrupt": "interrupt", "budget": "budget"}
"""Why a call was passed over, as hosts read it."""


@dataclass(slots=True)
class Sources:
    """What the adapters of this process know beyond the facts."""

    taken: dict[int, TurnTaken] = field(default_factory=dict)
    """What the turn runner returned, by turn."""
    returned: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What the executor returned, normalised, by call."""
    declarations: Mapping[str, ToolDeclaration] = field(default_factory=dict)
    providers: Mapping[str, str] = field(default_factory=dict)
    """Who provides a tool, by its name."""
    mediation_off: bool = False
    """There is nobody to run a call."""
    asked: dict[str, Message] = field(default_factory=dict)
    """What an executor wants a person to decide about, by call: its own envelope, whole."""
    rules: tuple[CallRule, ...] = ()
    request_ids: dict[str, str] = field(default_factory=dict)
    """What a mediator calls the request of a call; any other has its id from run, tool and call."""
    compacted: tuple[Message, ...] = ()
    """The transcript as the newest compaction left it."""


@dataclass(slots=True)
class ExecutedCall:
    """A call that has its result."""

    call: RunnerCall
    turn: int
    result: dict[str, Any]
    """Normalised."""
    status: str
    """succeeded, failed or rejected."""
    shown: str = ""
    """What the model reads of it."""

    @property
    def name(self) -> str:
        return self.call.name or self.call.called_as


@dataclass(slots=True)
class ApprovalWait:
    """A call that waits for a person."""

    call_id: str
    name: str
    record_id: str
    parameters: dict[str, Any]
    envelope: Message
    turn: int


class RunCalls:
    """The calls of a run while it lasts."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._open: list[RunnerCall] = []
        self._outcomes: dict[str, ToolResult | ToolFailed] = {}
        self._begun: set[str] = set()
        """Calls that were let through, or that wait for somebody."""
        self._refused: dict[str, dict[str, Any]] = {}
        """The call that a budget did not allow, with its result."""
        self.executed: list[ExecutedCall] = []
        self.approvals: list[ApprovalWait] = []
        """Calls that a person has to decide about, in model order."""
        self.gates = CallGates.of(sources.rules)
        """Where the rules about calls stand: a fold over the calls that were let through."""
        self.completed_by: str | None = None
        """The call with which a mediator declared the run complete."""

    def open(self, calls: list[RunnerCall]) -> None:
        """A turn asks for these."""
        self._open = list(calls)

    def find(self, call_id: str) -> RunnerCall | None:
        """A call that has no result yet."""
        return next((call for call in self._open if call.call_id == call_id), None)

    def begin(self, call_id: str, tool_name: str | None = None) -> None:
        """It is under way. `tool_name` of one that was let through: rules count it."""
        self._begun.add(call_id)
        if tool_name is not None:
            self.gates = self.gates.called(tool_name)

    def ask(self, event: ActionRequired, turn: int, call_id: str, at: str) -> ApprovalWait:
        """A person has to decide about it."""
        call = self.find(call_id)
        self._begun.add(call_id)
        envelope = self._sources.asked.get(call_id) or _preview(event, call_id, at)
        parameters = (call.parameters if call is not None else None) or {}
        wait = ApprovalWait(call_id, event.tool_name, event.action_id, parameters, envelope, turn)
        self.approvals.append(wait)
        return wait

    def decide(self, action_id: str) -> None:
        """A person has decided."""
        self.approvals = [each for each in self.approvals if each.record_id != action_id]

    def end(self, call_id: str, outcome: ToolResult | ToolFailed) -> None:
        """It has its outcome."""
        self._outcomes[call_id] = outcome

    def close(self, turn: int) -> tuple[list[ExecutedCall], bool]:
        """The calls whose turn it is to enter the transcript, and whether that leaves none open."""
        closed = []
        while self._open and self._open[0].call_id in self._outcomes:
            closed.append(self._closed(self._open.pop(0), turn))
        return closed, not self._open

    def pause(self, turn: int) -> list[ExecutedCall | RunnerCall]:
        """The run pauses: the calls of its newest turn that are not in the transcript yet, with a result or without."""
        paused = [self._closed(call, turn) if call.call_id in self._outcomes else call for call in self._open]
        self._open = []
        return paused

    def refuse_next(self, budget: IterationBudget) -> None:
        """Of the calls that are open, the first that has not begun is the one too many."""
        waits = (call for call in self._open if call.call_id not in self._begun and call.call_id not in self._outcomes)
        call = next(waits, None)
        if call is None:
            self._refused = {}
            return
        name = call.name or call.called_as
        words = f"Tool '{name}' was not run: the budget {budget.name!r} allows {budget.ceiling}"
        self._refused = {call.call_id: failed(name, words, BUDGET_EXCEEDED, budget=budget.name)}

    def _closed(self, call: RunnerCall, turn: int) -> ExecutedCall:
        outcome = self._outcomes.pop(call.call_id)
        result = self._result(call, outcome)
        refused = isinstance(outcome, ToolFailed) and outcome.status in REFUSED
        status = "succeeded" if result["success"] else "rejected" if refused else "failed"
        shown = outcome.item.text if result["success"] else result["error"]
        done = ExecutedCall(call, turn, result, status, shown)
        self.executed.append(done)
        return done

    def _result(self, call: RunnerCall, outcome: ToolResult | ToolFailed) -> dict[str, Any]:
        """The executor's own result when the log says the same; else what the log says."""
        name = call.name or call.called_as
        returned = self._sources.returned.get(call.call_id)
        if returned is not None and returned["success"] is isinstance(outcome, ToolResult) and not _changed(outcome):
            return returned
        if call.call_id in self._refused:
            return self._refused[call.call_id]
        if isinstance(outcome, ToolFailed) and outcome.status == "skipped":
            reason = STOPS.get(outcome.abort_reason or "", "complete")
            return failed(name, outcome.message, "sibling_skipped", reason=reason)
        if call.problem:
            return failed(name, call.problem, "invalid_tool_call")
        if self._sources.mediation_off:
            return failed(name, f"Tool '{name}' was not run: tool mediation is off", "tool_mediation_disabled")
        if isinstance(outcome, ToolResult):
            return {"success": True, "tool_name": name, "metadata": {}, "result": outcome.item.text}
        error = outcome.tool_error
        details = error.details or {}
        missing = details.get("missing_parameters")
        more: dict[str, Any] = {"missing_parameters": missing} if missing else {}
        if error.kind == "invalid_parameters":
            places = (
                str(line).partition(": ")[0] for line in details.get("errors", ())
            )  # each is `path: what is wrong`
            more["paths"] = list(dict.fromkeys(places))
        return failed(name, error.message, error.kind, effects=outcome.effects, **more)


def _changed(outcome: ToolResult | ToolFailed) -> bool:
    """A hook put another text in the place of what the tool said: the executor's own result is not shown."""
    return any(said.updated_output_ref is not None for said in outcome.hook_outcomes)


def _preview(event: ActionRequired, call_id: str, at: str) -> Message:
    """The approval record of a call as a pending action. What would be executed is the record's own, bound to it."""
    action = PendingAction(
        action_id=event.action_id,
        kind="tool_call",
        summary=event.prompt,
        preview={"tool_name": event.tool_name, "parameters": event.safe_args, "reason": event.reason},
        apply_input={
            "tool_name": event.tool_name,
            "tool_call_id": call_id,
            "action_id": event.action_id,
            "parameters": event.safe_args,
            "parameters_sha256": event.args_sha256,
            "parameters_redacted": True,
        },
        created_at=at,
        expires_at=iso(event.expires_at),
    )
    return approval_envelope(action, ability_name=event.tool_name, staged=True)
