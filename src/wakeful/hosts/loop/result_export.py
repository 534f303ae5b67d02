"""A run result in the words of hosts: `wakeful.conversation-result`, made from `RunResult` at the door.

What became of the turn is the runner's word (`status`, `stop_reason`, `message`, `turn_count`, who waits), and the
status of the export follows from it by one rule (`stop_of`). The transcript, the events under the loop's names and what
executors returned whole are the host's own and come from the view of the run; here their parameters are redacted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from wakeful.contracts.audit import ToolAudit
from wakeful.contracts.outcomes import RunFailure, RunOutcome, stop_reason
from wakeful.contracts.tools import ToolDeclaration
from wakeful.contracts.transcript import Message
from wakeful.decisions.redaction import call_envelope
from wakeful.hosts.compaction.compaction_items import CompactionItem
from wakeful.hosts.loop.budgets import TURNS
from wakeful.hosts.loop.conversation_result import (
    ArgumentsSeen,
    ConversationResult,
    ObservedCall,
    ResultShape,
    ResultStatus,
    ToolObservability,
)
from wakeful.hosts.loop.run_calls import ExecutedCall
from wakeful.hosts.loop.turn_reply import TurnTaken
from wakeful.hosts.loop.view import LoopView
from wakeful.service.run_result import RunResult
from wakeful.views.conversation_export import execution_of, redacted_call


@dataclass(slots=True, frozen=True)
class RunStop:
    """Why a run is over."""

    outcome: RunOutcome
    status: ResultStatus | None = None
    budget: str | None = None
    failure: RunFailure | None = None


PENDING = ("runtime_tool_pending", "approval_required")
COMPLETED = RunStop(RunOutcome.of("completed"))


def contended() -> RunStop:
    """Somebody else has the transcript; trying again later may go better."""
    outcome = RunOutcome.of("incomplete", stop_reason="transcript_lock_contention")
    return RunStop(outcome, "transcript_lock_contention")


def failed_stop(failure: RunFailure, *, provider: bool = False, retryable: bool = True, **known: Any) -> RunStop:
    """The run failed."""
    reason = stop_reason("failed", provider_error=provider)
    outcome = RunOutcome.of("failed", stop_reason=reason, retryable=retryable, failure=failure, **known)
    return RunStop(outcome, "failed", failure=failure)


def stop_of(
    run: RunResult[Any],
    view: LoopView,
    taken: Mapping[int, TurnTaken],
    policy_failure: RunFailure | None,
    own_stops: frozenset[str],
) -> RunStop:
    """The status of the export. Where several hold: interrupted, what is pending, stalled, a budget, the run's own.

    `own_stops` names those who stop a turn for the loop; a cancel of anybody else comes from outside.
    """
    if run.status == "cancelled" and any(who not in own_stops for who in view.cancelled_by):
        return RunStop(RunOutcome.of("cancelled"), "interrupted")
    if view.interrupted is not None:
        return RunStop(RunOutcome.of("interrupted"), "interrupted")
    if view.waiting:
        return RunStop(RunOutcome.of("runtime_tool_pending"), "runtime_tool_pending")
    if run.status == "approval_required":
        return RunStop(RunOutcome.of("approval_required"), "approval_required")
    if view.stalled is not None:
        return RunStop(RunOutcome.of("stalled"), "stalled")
    if view.exceeded is not None:
        return out_of_budget(view.exceeded)
    if run.completed:
        return COMPLETED
    if policy_failure is not None:
        return failed_stop(policy_failure)
    if run.status == "cancelled":
        return RunStop(RunOutcome.of("cancelled"), "interrupted")
    if run.status == "waiting":
        return RunStop(RunOutcome.of("incomplete", stop_reason=f"waiting_for_{run.waiting_for}"), "incomplete")
    last = taken.get(run.turn_count) or TurnTaken()
    failure = last.failure or RunFailure(type=run.stop_reason, message=run.message, turn_count=run.turn_count)
    provider = last.provider_failed or last.failure is None
    known = {"provider_error": {"type": failure.type, "message": failure.message}} if provider else {}
    return failed_stop(failure, provider=provider, retryable=last.failure_retryable, **known)


def out_of_budget(budget: str) -> RunStop:
    """A limit, never a completion."""
    reason = stop_reason("budget_exceeded", turn_limit=budget == TURNS)
    return RunStop(RunOutcome.of("budget_exceeded", stop_reason=reason), "budget_exceeded", budget=budget)


def conversation_result(
    run: RunResult[Any] | None,
    view: LoopView,
    stop: RunStop,
    audits: list[ToolAudit],
    declarations: Mapping[str, ToolDeclaration],
    metadata: dict[str, Any],
) -> ConversationResult:
    """The result as it leaves the process. Without a run: somebody else has the transcript, or nothing was allowed."""
    messages = tuple(safe_message(message, declarations) for message in view.messages)
    if len(view.calls.approvals) > (stop.status == "approval_required") and stop.status in PENDING:
        metadata = {**metadata, "approvals_required": [each.envelope.to_wire() for each in view.calls.approvals]}
    if view.window_words:
        metadata = {**metadata, "spend_window": view.window_words}
    if view.calls.completed_by is not None:
        metadata = {**metadata, "completed_by": view.calls.completed_by}
    if len(view.waiting) > 1:
        metadata = {**metadata, "runtime_tool_requests": [each.model_dump(mode="json") for each in view.waiting]}
    if view.swallowed:
        metadata = {**metadata, "swallowed_failures": list(view.swallowed)}
    return ConversationResult(
        messages=messages,
        tool_execution_results=(
            *(safe_execution(entry) for entry in view.own_executions),
            *(execution(done, declarations, view.diagnostics.get(done.call.call_id)) for done in view.calls.executed),
        ),
        tool_audit_events=(*view.own_audits, *audits),
        events=tuple(view.events),
        turn_count=run.turn_count if run is not None else 0,
        final_content=final_content(messages),
        usage=view.usage,
        request_metadata=view.request_metadata,
        completed=stop.outcome.completed,
        status=stop.status,
        budget=stop.budget,
        tool_events=tuple(view.tool_events),
        tool_observability=observability(view),
        runtime_tool_pending=view.waiting[0].model_dump(mode="json") if view.waiting else None,
        provider_diagnostics=tuple(view.provider_diagnostics),
        structured_output=view.structured_output,
        approval_required=view.calls.approvals[0].envelope if stop.status == "approval_required" else None,
        failure=stop.failure,
        interrupted=(view.interrupted or {"action": "cancel"}) if stop.status == "interrupted" else None,
        stalled=view.stalled if stop.status == "stalled" else None,
        structured_output_diagnostics=view.structured_output_diagnostics,
        metadata=metadata,
        run_outcome=stop.outcome,
    )


def result_so_far(view: LoopView, declarations: Mapping[str, ToolDeclaration]) -> dict[str, Any]:
    """What `should_continue` decides from."""
    messages = tuple(safe_message(message, declarations) for message in view.messages)
    return {
        "messages": [message.to_wire() for message in messages],
        "tool_execution_results": [
            *view.own_executions,
            *(execution(done, declarations) for done in view.calls.executed),
        ],
        "turn_count": view.turn,
        "final_content": final_content(messages),
        "usage": dict(view.usage),
        "request_metadata": dict(view.request_metadata),
    }


def final_content(messages: tuple[Message, ...]) -> str:
    """The last assistant text; calls and results are none."""
    texts = (
        message.content
        for message in reversed(messages)
        if message.type == "text" and message.role == "assistant" and isinstance(message.content, str)
    )
    return next(texts, "")


def execution(
    done: ExecutedCall, declarations: Mapping[str, ToolDeclaration], diagnostics: dict[str, Any] | None = None
) -> dict[str, Any]:
    """A mediated call for the caller."""
    envelope = call_envelope(done.call.parameters, declarations.get(done.name))
    entry = execution_of(done.name, done.call.call_id, envelope, done.result, done.turn, diagnostics)
    return entry.model_dump(mode="json", exclude_none=True)


def safe_message(message: Message, declarations: Mapping[str, ToolDeclaration]) -> Message:
    """A tool call without the secrets in its parameters; every other message as it is."""
    if message.type != "tool_call" or message.metadata.get("parameters_redacted") is True:
        return message
    parameters = message.payload.get("parameters")
    declaration = declarations.get(str(message.payload.get("tool_name")))
    return redacted_call(message, call_envelope(parameters if isinstance(parameters, dict) else {}, declaration))


def safe_item(item: CompactionItem, declarations: Mapping[str, ToolDeclaration]) -> CompactionItem:
    """A message that was moved out: the parameters of a call leave redacted like any other."""
    said = item.metadata.get("message")
    payload = said.get("payload") if isinstance(said, dict) else None
    if item.type != "message:tool_call" or said is None or not isinstance(payload, dict):
        return item
    envelope = call_envelope(payload.get("parameters"), declarations.get(str(payload.get("tool_name"))))
    safe = {**payload, "parameters": envelope["parameters"]}
    return item.model_copy(update={"metadata": {**item.metadata, "message": {**said, "payload": safe}}})


def safe_execution(entry: dict[str, Any]) -> dict[str, Any]:
    """A result of the turn runner's own making: its parameters leave redacted like any other."""
    if not isinstance(entry.get("parameters"), dict) or entry.get("parameters_redacted") is True:
        return entry
    return {**entry, **call_envelope(entry["parameters"])}


def observability(view: LoopView) -> ToolObservability:
    """The calls by their shapes, those that wait for a client last."""
    done = [_observed_call(number, done) for number, done in enumerate(view.calls.executed, 1)]
    waiting = [
        ObservedCall(
            sequence=number,
            turn=view.turn,
            tool_call_id=request.tool_call_id,
            tool_name=request.tool_name,
            status="pending",
            arguments=_arguments(request.parameters),
        )
        for number, request in enumerate(view.waiting, len(done) + 1)
    ]
    return ToolObservability(calls=(*done, *waiting))


def _observed_call(sequence: int, done: ExecutedCall) -> ObservedCall:
    return ObservedCall(
        sequence=sequence,
        turn=done.turn,
        tool_call_id=done.call.call_id,
        tool_name=done.name,
        status=_observed(done.status),
        arguments=_arguments(done.call.parameters or {}),
        result=shape(done.result["result"]) if done.result["success"] else None,
    )


def _arguments(parameters: Mapping[str, Any]) -> ArgumentsSeen:
    return ArgumentsSeen(keys=tuple(sorted(parameters)), count=len(parameters))


def _observed(status: str) -> Literal["succeeded", "failed", "rejected"]:
    return "succeeded" if status == "succeeded" else "rejected" if status == "rejected" else "failed"


def shape(value: Any) -> ResultShape:
    """What a result looks like, without what it says."""
    match value:
        case dict():
            return ResultShape(type="object", keys=tuple(sorted(value)), count=len(value))
        case list():
            return ResultShape(type="array", count=len(value))
        case str():
            return ResultShape(type="string")
        case bool():
            return ResultShape(type="boolean")
        case int() | float():
            return ResultShape(type="number")
        case _:
            return ResultShape(type="null")
