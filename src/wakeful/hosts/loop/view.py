"""A run as its host sees it, folded fact by fact from the log: transcript, results, events.

Facts say what happened and in which order. What a fact holds only a preview or a reference of (a long text, an
executor's whole result) comes from the adapters of this process.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wakeful.contracts import transcript
from wakeful.contracts.audit import ToolAudit
from wakeful.contracts.envelope import Recorded, iso
from wakeful.contracts.events import (
    ActionRequired,
    ActionResolved,
    AssistantRecorded,
    CompletionPolicyContinued,
    IdenticalFailureNudged,
    InterruptReceived,
    IterationBudgetExceeded,
    LimitChanged,
    LoopFact,
    LoopStalled,
    ModelFailed,
    ModelRequested,
    ObserverFailed,
    PermissionEvaluated,
    RuntimeToolRequested,
    Terminal,
    ToolFailed,
    ToolResult,
    ToolResultDiagnosed,
    ToolStarted,
    TranscriptClosed,
    TranscriptCompactionCompleted,
    TranscriptLockReleaseFailed,
    TranscriptOverflowArchived,
    TranscriptPersistFailed,
    TurnFailed,
    TurnInterruptRequested,
)
from wakeful.contracts.runtime_tools import RuntimeToolRequest
from wakeful.contracts.tools import ToolDeclaration
from wakeful.contracts.transcript import Message
from wakeful.decisions.policy.call_gates import CallGates, CallRule
from wakeful.decisions.redaction import call_envelope
from wakeful.hosts.actions.pending_action import PendingAction, approval_envelope
from wakeful.hosts.loop import loop_events
from wakeful.hosts.loop.budgets import RunBudgets
from wakeful.hosts.loop.conversation_result import StructuredOutputDiagnostics, ToolEvent
from wakeful.hosts.loop.execution import failed
from wakeful.hosts.loop.iteration_budget import IterationBudget
from wakeful.hosts.loop.loop_events import HostIds, LoopEvent
from wakeful.hosts.loop.turn_results import RunnerCall, TurnTaken
from wakeful.views.conversation_export import ResultEvent
from wakeful.views.mapping import is_turns

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


class LoopView:
    """The fold. `take` it every fact of the run's stream, in order."""

    def __init__(self, messages: tuple[Message, ...], sources: Sources, budgets: RunBudgets, ids: HostIds) -> None:
        self._sources = sources
        self._budgets = budgets
        self._ids = ids
        self._open: list[RunnerCall] = []
        self._outcomes: dict[str, ToolResult | ToolFailed] = {}
        self._begun: set[str] = set()
        """Calls that were let through, or that wait for somebody."""
        self._refused: dict[str, dict[str, Any]] = {}
        """The call that a budget did not allow, with its result."""
        self.messages = list(messages)
        """With real parameters: the model sees what it wrote. They are redacted on the way out."""
        self.turn = 0
        self.executed: list[ExecutedCall] = []
        self.usage: dict[str, Any] = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
        self.request_metadata: dict[str, Any] = {}
        self.events: list[ResultEvent] = []
        self.tool_events: list[ToolEvent] = []
        self.own_executions: list[dict[str, Any]] = []
        """Of a turn runner that ran its own tools."""
        self.own_audits: list[ToolAudit] = []
        self.provider_diagnostics: list[dict[str, Any]] = []
        self.structured_output: Any = None
        self.structured_output_diagnostics: StructuredOutputDiagnostics | None = None
        self.swallowed: list[dict[str, str]] = []
        """What was raised and changed nothing."""
        self.terminal: Terminal | None = None
        self.gates = CallGates.of(sources.rules)
        """Where the rules about calls stand: a fold over the calls that were let through."""
        self.completed_by: str | None = None
        """The call with which a mediator declared the run complete."""
        self.approvals: list[ApprovalWait] = []
        """Calls that a person has to decide about, in model order."""
        self.waiting: tuple[RuntimeToolRequest, ...] = ()
        """What clients have to run before the run goes on."""
        self.exceeded: str | None = None
        self.window_words = ""
        """Of the spend window that had no room, with when it turns."""
        """The budget that was passed."""
        self.stalled: dict[str, Any] | None = None
        self.interrupted: dict[str, Any] | None = None
        """What came along with the interrupt that ended the run."""
        self.cancelled_by: list[str] = []
        """Who asked the turn to stop, in order."""
        self.diagnostics: dict[str, dict[str, Any]] = {}
        """What the host noted about results, by call."""

    def pause(self, waiting: tuple[RuntimeToolRequest, ...]) -> None:
        """The run pauses on these, and on what a person has to decide."""
        self.waiting = waiting
        if waiting or (self.approvals and self.terminal is None):
            self._rest()

    def take(self, recorded: Recorded) -> list[LoopEvent]:
        """Take in a fact; returns the loop's events it stands for, in order."""
        made = self._made(recorded)
        # The result is handed over before `completed` is told, so it cannot list it.
        listed = (event for event in made if event.name != "completed")
        self.events.extend(loop_events.as_result_event(event, recorded, self._ids) for event in listed)
        return made

    def _made(self, recorded: Recorded) -> list[LoopEvent]:
        fact = recorded.fact
        if not is_turns(fact):
            return []  # inside a call, which stands here itself
        step, call_id = fact.step or 0, fact.call_id or ""
        self._budgets.at(fact.at)
        match fact.event:
            case ModelRequested():
                self.turn = step
                self._budgets.took_a_turn()
                return [loop_events.turn_started(step, self._budgets.turns_allowed, len(self.messages))]
            case AssistantRecorded():
                return self._said(self._turn_taken(step))
            case ModelFailed():
                self._reported(self._turn_taken(step))
                return []
            case ToolStarted() as event:
                if event.dispatched:
                    self.gates = self.gates.called(event.tool_name)
                    self._budgets.ran(event.tool_name)
                    self._begun.add(call_id)
                return [self._started(event, step, call_id)]
            case PermissionEvaluated() as event:
                if any(said.completes for said in event.said):
                    self.completed_by = call_id
                return []
            case RuntimeToolRequested() as event:
                self._budgets.ran(event.tool_name)
                self._begun.add(call_id)
                return []
            case TurnInterruptRequested() as event:
                self.cancelled_by.append(event.requested_by)
                return []
            case ActionRequired() as event:
                self._begun.add(call_id)
                return [self._asks(event, step, call_id, iso(fact.at))]
            case ActionResolved() as event:
                self.approvals = [each for each in self.approvals if each.record_id != event.action_id]
                return []
            case ToolResult() | ToolFailed() as event:
                self._outcomes[call_id] = event
                success = isinstance(event, ToolResult)
                return [loop_events.tool_result(step, event.tool_name, call_id, success=success), *self._settled()]
            case LimitChanged() as event:
                told = loop_events.budget_exceeded(event, self._budgets)
                self.exceeded = self.exceeded or told.payload["budget"]
                if event.limit_name == "tool_calls":
                    self._refused = self._refuse(self._budgets.reached(event))
                self.window_words = event.what if event.window is not None else self.window_words
                return [told]
            case LoopFact() as event:
                return self._of_loop(event)
            case Terminal() as event:
                self.terminal = event
                if isinstance(event, TurnFailed) and event.status == "failed":
                    failure = self._turn_taken(event.steps).failure
                    return [loop_events.failed(failure.message if failure else event.message, event.steps)]
                return []
            case _:
                return []

    def _of_loop(self, event: LoopFact) -> list[LoopEvent]:
        """What the loop itself noted."""
        match event:
            case TranscriptClosed():
                return self._closed(event)
            case ObserverFailed() | TranscriptPersistFailed() | TranscriptLockReleaseFailed():
                told = loop_events.noted(event)
                self.swallowed.append({"event": told.name, **told.payload})
                return [told]
            case IterationBudgetExceeded():
                self.exceeded = self.exceeded or event.budget
            case LoopStalled():
                self.stalled = event.model_dump(mode="json")
            case IdenticalFailureNudged() | CompletionPolicyContinued():
                self.messages.append(loops_own(event.message))
            case InterruptReceived():
                if event.message is not None:
                    self.messages.append(transcript.normalise(event.message))
                if event.action == "cancel":
                    self.interrupted = {**event.details, "action": event.action}
            case ToolResultDiagnosed():
                self.diagnostics[event.tool_call_id] = event.diagnostics
            case TranscriptCompactionCompleted() | TranscriptOverflowArchived():
                self.messages = list(self._sources.compacted)
            case _:
                pass
        return [loop_events.noted(event)]

    # --- turns ------------------------------------------------------------------------------------------------------

    def _turn_taken(self, turn: int) -> TurnTaken:
        return self._sources.taken.get(turn) or TurnTaken()

    def _said(self, taken: TurnTaken) -> list[LoopEvent]:
        self._reported(taken)
        if taken.content:
            self.messages.append(transcript.text("assistant", taken.content))
        self._open = list(taken.calls)
        return self._settled()

    def _reported(self, taken: TurnTaken) -> None:
        """What a turn says about itself, whether it went well or not."""
        if taken.messages is not None:
            self.messages = list(taken.messages)
        for name, value in taken.usage.items():
            known = self.usage.get(name, 0)
            self.usage[name] = known + value if _is_number(value) and _is_number(known) else value
        if taken.request_metadata is not None:
            self.request_metadata = taken.request_metadata
        if taken.structured_output is not None:
            self.structured_output = taken.structured_output
        if taken.structured_output_diagnostics is not None:
            self.structured_output_diagnostics = taken.structured_output_diagnostics
        self.provider_diagnostics += taken.provider_diagnostics
        self.own_executions += taken.tool_execution_results
        self.own_audits += taken.tool_audit_events
        self.tool_events += taken.tool_events
        self.events += taken.events

    def _closed(self, event: TranscriptClosed) -> list[LoopEvent]:
        outcome = event.run_outcome
        if outcome.status != "failed":
            paused = [loop_events.runtime_tool_pending(self.turn, request) for request in self.waiting]
            return [*paused, loop_events.completed(event)]
        # A turn that failed has said so; a run that never came to a turn says it here.
        if self.terminal is None and outcome.failure is not None:
            return [loop_events.failed(outcome.failure.message)]
        return []

    # --- calls ------------------------------------------------------------------------------------------------------

    def _started(self, event: ToolStarted, turn: int, call_id: str) -> LoopEvent:
        call = next((call for call in self._open if call.call_id == call_id), None)
        parameters = call.parameters if call is not None else event.safe_args
        envelope = call_envelope(parameters, self._sources.declarations.get(event.tool_name))
        self._note(
            "tool_call", event.tool_name, call_id, turn, None, {"parameters_sha256": envelope["parameters_sha256"]}
        )
        return loop_events.tool_call(turn, event.tool_name, call_id, envelope)

    def _asks(self, event: ActionRequired, turn: int, call_id: str, at: str) -> LoopEvent:
        """A person has to decide: the call waits, and is shown as an action."""
        call = next((call for call in self._open if call.call_id == call_id), None)
        envelope = self._sources.asked.get(call_id) or _preview(event, call_id, at)
        action_id = str(envelope.payload.get("action_id") or event.action_id)
        parameters = (call.parameters if call is not None else None) or {}
        self.approvals.append(ApprovalWait(call_id, event.tool_name, event.action_id, parameters, envelope, turn))
        self._note("tool_call_paused", event.tool_name, call_id, turn, "approval_required", {"action_id": action_id})
        return loop_events.approval_required(turn, event.tool_name, call_id, action_id)

    def _rest(self) -> None:
        """The run pauses. What has a result is closed; what waits stands in the transcript for its result to follow."""
        for call in self._open:
            outcome = self._outcomes.pop(call.call_id, None)
            if outcome is not None:
                self._close(call, outcome)
                continue
            name = call.name or call.called_as
            asked = transcript.tool_call(name, call.parameters or {}, tool_call_id=call.call_id, turn=self.turn)
            self.messages.append(asked)
        self._open = []

    def _settled(self) -> list[LoopEvent]:
        """Results enter the transcript in model order, however they finished; after the last, what continues."""
        while self._open and self._open[0].call_id in self._outcomes:
            call = self._open.pop(0)
            self._close(call, self._outcomes.pop(call.call_id))
        if self._open:
            return []
        added = self._turn_taken(self.turn).continuation
        self.messages += added
        return [loop_events.continuation_message_added(self.turn, message.role) for message in added]

    def _close(self, call: RunnerCall, outcome: ToolResult | ToolFailed) -> None:
        result = self._result(call, outcome)
        refused = isinstance(outcome, ToolFailed) and outcome.status in REFUSED
        status = "succeeded" if result["success"] else "rejected" if refused else "failed"
        done = ExecutedCall(call, self.turn, result, status)
        self.executed.append(done)
        shown = outcome.item.text if result["success"] else result["error"]
        self.messages += (
            transcript.tool_call(done.name, call.parameters or {}, tool_call_id=call.call_id, turn=self.turn),
            transcript.tool_result(done.name, result, tool_call_id=call.call_id, content=shown),
        )
        kind = result["metadata"].get("error_type")
        self._note("tool_result", done.name, call.call_id, self.turn, status, {"error_type": kind} if kind else {})

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

    def _refuse(self, budget: IterationBudget) -> dict[str, dict[str, Any]]:
        """Of the calls that are open, the first that has not begun is the one too many."""
        waits = (call for call in self._open if call.call_id not in self._begun and call.call_id not in self._outcomes)
        call = next(waits, None)
        if call is None:
            return {}
        name = call.name or call.called_as
        words = f"Tool '{name}' was not run: the budget {budget.name!r} allows {budget.ceiling}"
        return {call.call_id: failed(name, words, BUDGET_EXCEEDED, budget=budget.name)}

    def _note(
        self, kind: str, name: str, call_id: str, turn: int, status: str | None, metadata: dict[str, Any]
    ) -> None:
        self.tool_events.append(
            ToolEvent(
                type=kind, tool_name=name, tool_call_id=call_id, turn_count=turn, status=status, metadata=metadata
            )
        )


def loops_own(words: str) -> Message:
    """What the loop says to the model in the user's place. It is no message of the user, and is marked so."""
    return transcript.text("user", words, metadata={"origin": "runtime"})


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


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
