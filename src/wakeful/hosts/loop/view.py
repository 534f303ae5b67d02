"""A run as its host sees it, folded fact by fact from the log: transcript, results, events.

Facts say what happened and in which order. What a fact holds only a preview or a reference of (a long text, an
executor's whole result) comes from the adapters of this process.
"""

from typing import Any

from wakeful.contracts import transcript
from wakeful.contracts.audit import ToolAudit
from wakeful.contracts.envelope import StoredFact, iso
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
from wakeful.contracts.transcript import Message
from wakeful.decisions.redaction import call_envelope
from wakeful.hosts.loop import loop_events
from wakeful.hosts.loop.budgets import RunBudgets
from wakeful.hosts.loop.conversation_result import StructuredOutputDiagnostics, ToolEvent
from wakeful.hosts.loop.loop_events import HostIds, LoopEvent
from wakeful.hosts.loop.run_calls import ExecutedCall, RunCalls, Sources
from wakeful.hosts.loop.turn_reply import TurnTaken
from wakeful.views.conversation_export import ResultEvent
from wakeful.views.mapping import is_turns


class LoopView:
    """The fold. `take` it every fact of the run's stream, in order."""

    def __init__(self, messages: tuple[Message, ...], sources: Sources, budgets: RunBudgets, ids: HostIds) -> None:
        self._sources = sources
        self._budgets = budgets
        self._ids = ids
        self.calls = RunCalls(sources)
        self.messages = list(messages)
        """With real parameters: the model sees what it wrote. They are redacted on the way out."""
        self.turn = 0
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
        self.waiting: tuple[RuntimeToolRequest, ...] = ()
        """What clients have to run before the run goes on."""
        self.exceeded: str | None = None
        """The budget that was passed."""
        self.window_words = ""
        """Of the spend window that had no room, with when it turns."""
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
        if not waiting and (self.terminal is not None or not self.calls.approvals):
            return
        for call in self.calls.pause(self.turn):
            if isinstance(call, ExecutedCall):
                self._close(call)
            else:  # it stands in the transcript for its result to follow
                name = call.name or call.called_as
                asked = transcript.tool_call(name, call.parameters or {}, tool_call_id=call.call_id, turn=self.turn)
                self.messages.append(asked)

    def take(self, recorded: StoredFact) -> list[LoopEvent]:
        """Take in a fact; returns the loop's events it stands for, in order."""
        made = self._made(recorded)
        # The result is handed over before `completed` is told, so it cannot list it.
        listed = (event for event in made if event.name != "completed")
        self.events.extend(loop_events.as_result_event(event, recorded, self._ids) for event in listed)
        return made

    def _made(self, recorded: StoredFact) -> list[LoopEvent]:
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
                    self.calls.begin(call_id, event.tool_name)
                    self._budgets.ran(event.tool_name)
                return [self._started(event, step, call_id)]
            case PermissionEvaluated() as event:
                if any(said.completes for said in event.said):
                    self.calls.completed_by = call_id
                return []
            case RuntimeToolRequested() as event:
                self._budgets.ran(event.tool_name)
                self.calls.begin(call_id)
                return []
            case TurnInterruptRequested() as event:
                self.cancelled_by.append(event.requested_by)
                return []
            case ActionRequired() as event:
                return [self._asks(event, step, call_id, iso(fact.at))]
            case ActionResolved() as event:
                self.calls.decide(event.action_id)
                return []
            case ToolResult() | ToolFailed() as event:
                self.calls.end(call_id, event)
                success = isinstance(event, ToolResult)
                return [loop_events.tool_result(step, event.tool_name, call_id, success=success), *self._settled()]
            case LimitChanged() as event:
                told = loop_events.budget_exceeded(event, self._budgets)
                self.exceeded = self.exceeded or told.payload["budget"]
                if event.limit_name == "tool_calls":
                    self.calls.refuse_next(self._budgets.reached(event))
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
        self.calls.open(taken.calls)
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
        call = self.calls.find(call_id)
        parameters = call.parameters if call is not None else event.safe_args
        envelope = call_envelope(parameters, self._sources.declarations.get(event.tool_name))
        self._note(
            "tool_call", event.tool_name, call_id, turn, None, {"parameters_sha256": envelope["parameters_sha256"]}
        )
        return loop_events.tool_call(turn, event.tool_name, call_id, envelope)

    def _asks(self, event: ActionRequired, turn: int, call_id: str, at: str) -> LoopEvent:
        """A person has to decide: the call waits, and is shown as an action."""
        wait = self.calls.ask(event, turn, call_id, at)
        action_id = str(wait.envelope.payload.get("action_id") or event.action_id)
        self._note("tool_call_paused", event.tool_name, call_id, turn, "approval_required", {"action_id": action_id})
        return loop_events.approval_required(turn, event.tool_name, call_id, action_id)

    def _settled(self) -> list[LoopEvent]:
        """Results enter the transcript in model order, however they finished; after the last, what continues."""
        closed, is_last = self.calls.close(self.turn)
        for call in closed:
            self._close(call)
        added = self._turn_taken(self.turn).continuation if is_last else ()
        self.messages += added
        return [loop_events.continuation_message_added(self.turn, message.role) for message in added]

    def _close(self, done: ExecutedCall) -> None:
        call_id = done.call.call_id
        self.messages += (
            transcript.tool_call(done.name, done.call.parameters or {}, tool_call_id=call_id, turn=self.turn),
            transcript.tool_result(done.name, done.result, tool_call_id=call_id, content=done.shown),
        )
        kind = done.result["metadata"].get("error_type")
        self._note("tool_result", done.name, call_id, self.turn, done.status, {"error_type": kind} if kind else {})

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


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
