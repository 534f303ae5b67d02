"""A turn's facts as the versioned parts of a conversation result: messages, executions, audit, lifecycle events.

One mapping from the log, used by every surface that exports a run. Parameters are redacted here, and what a tool
returned is the caller's own data and stays, but for the secrets that the run gave to its tools. Messages and executions
are those of the turn's own conversation; the audit and the events are of everything, children included.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from wakeful.contracts import transcript
from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.audit import ToolAudit
from wakeful.contracts.conversation import AssistantItem, CallPart, UserItem
from wakeful.contracts.envelope import SCHEMA_VERSION, StoredFact, iso, once
from wakeful.contracts.events import (
    ActionResolved,
    AssistantRecorded,
    HistoryImported,
    MessageAdmitted,
    ModelCompleted,
    ToolFailed,
    ToolResult,
    TurnInterjected,
    UnrecognisedEvent,
)
from wakeful.contracts.jsonable import JsonDict
from wakeful.contracts.transcript import Message
from wakeful.contracts.values import Value
from wakeful.decisions.injected_fields import split
from wakeful.decisions.redaction import call_envelope
from wakeful.decisions.run_secrets import RunSecrets
from wakeful.views.audit_entry import audit_entry
from wakeful.views.mapping import is_roots


class ResultEvent(Value):
    """A lifecycle event of the run, with its place in the log."""

    type: str
    metadata: JsonDict = {}
    event_id: str | None = None
    event_seq: int | None = None
    created_at: str | None = None
    schema_version: str | None = None
    run_id: str | None = None
    session_id: str | None = None


class ToolExecution(Value):
    """One mediated call and its result, for the caller. Parameters are redacted."""

    tool_name: str
    tool_call_id: str
    parameters: JsonDict = {}
    parameters_sha256: str
    parameters_redacted: Literal[True] = True
    result: JsonDict
    """The normalised tool result."""
    runtime: JsonDict | None = None
    turn_count: int
    diagnostics: JsonDict | None = None


class Export(NamedTuple):
    """The parts of a result that follow from the log alone."""

    messages: tuple[Message, ...]
    tool_execution_results: tuple[ToolExecution, ...]
    tool_audit_events: tuple[ToolAudit, ...]
    events: tuple[ResultEvent, ...]
    request_metadata: dict[str, Any]


def export(facts: Iterable[StoredFact], config: TurnConfig | None, secrets: RunSecrets | None = None) -> Export:
    """Everything a replay needs, in the order of the conversation.

    `secrets` is what is known to be one beforehand. What the facts themselves give away is added to it before
    anything is shown: what is hidden does not depend on when it was said.
    """
    facts = list(once(facts))
    secrets = secrets if secrets is not None else RunSecrets()
    secrets.learn(facts, {tool.name: tool for tool in config.tools} if config is not None else None)
    messages: list[Message] = []
    executions: list[ToolExecution] = []
    audits: list[ToolAudit] = []
    events: list[ResultEvent] = []
    metadata: dict[str, Any] = {}
    open_calls: dict[str, CallPart] = {}
    orders: dict[str | None, list[str]] = {}
    """The calls of each level's newest round that have no result yet, in model order."""
    outcomes: dict[str, tuple[int, ToolResult | ToolFailed]] = {}
    edited: dict[str, dict[str, Any]] = {}
    """Arguments that a person put in the place of the model's."""
    for recorded in facts:
        fact = recorded.fact
        event = fact.event
        events.append(event_of(recorded))
        match event:
            case MessageAdmitted() | TurnInterjected():
                messages.append(_user(event.item, secrets))
            case HistoryImported():
                messages[-1:-1] = _imported(event, secrets)
            case ModelCompleted() if is_roots(fact):
                metadata = event.request_metadata or metadata
            case AssistantRecorded():
                if event.item.text and is_roots(fact):
                    messages.append(transcript.text("assistant", secrets.hide(event.item.text)))
                open_calls.update((part.call_id, part) for part in event.item.calls)
                orders[fact.level] = [part.call_id for part in event.item.calls]
            case ToolResult() | ToolFailed() if fact.call_id is not None:
                outcomes[fact.call_id] = (fact.step or 0, event)
                order = orders.get(fact.level, [])
                while order and order[0] in outcomes:
                    call_id = order.pop(0)
                    step, outcome = outcomes.pop(call_id)
                    part = open_calls.pop(call_id)
                    given = edited.pop(call_id) if call_id in edited else _executable(part, config)
                    answered = _answered(part, given, step, outcome, config, secrets)
                    audits.append(answered.audit)
                    if is_roots(fact):
                        messages += answered.messages
                        executions.append(answered.execution)
            case ActionResolved() if event.arguments is not None and fact.call_id is not None:
                edited[fact.call_id] = event.arguments
            case _:
                pass
    return Export(tuple(messages), tuple(executions), tuple(audits), tuple(events), metadata)


def _executable(part: CallPart, config: TurnConfig | None) -> dict[str, Any]:
    """What the tool gets of what the model wrote."""
    injected = config.injected_tool_args if config is not None else {}
    return split(part.arguments or {}, injected).executable


def _imported(event: HistoryImported, secrets: RunSecrets) -> list[Message]:
    """What was said before the message that opened the turn."""
    messages = []
    for item in event.items:
        if isinstance(item, UserItem):
            messages.append(_user(item, secrets))
        elif isinstance(item, AssistantItem) and item.text:
            messages.append(transcript.text("assistant", secrets.hide(item.text)))
    return messages


def _user(item: UserItem, secrets: RunSecrets) -> Message:
    if all(part.type == "text" for part in item.parts):
        return transcript.text("user", secrets.hide(item.text))
    whole = [part.model_dump(mode="json", exclude_none=True) for part in item.parts]
    return transcript.parts("user", secrets.hide_in(whole))


class _Answered(NamedTuple):
    """A call with its result, in each of the forms."""

    messages: tuple[Message, Message]
    execution: ToolExecution
    audit: ToolAudit


def _answered(
    part: CallPart,
    given: dict[str, Any],
    step: int,
    outcome: ToolResult | ToolFailed,
    config: TurnConfig | None,
    secrets: RunSecrets,
) -> _Answered:
    declaration = config.tool(part.name) if config is not None else None
    result = secrets.hide_in(normalised_result(outcome))
    envelope = call_envelope(given, declaration)
    asked = redacted_call(transcript.tool_call(part.name, {}, turn=step, tool_call_id=part.call_id), envelope)
    content = secrets.hide(outcome.item.text if isinstance(outcome, ToolResult) else outcome.message)
    told = transcript.tool_result(part.name, result, tool_call_id=part.call_id, content=content)
    execution = execution_of(part.name, part.call_id, envelope, result, step)
    audit = audit_entry(
        turn_count=step,
        tool_name=part.name,
        tool_call_id=part.call_id,
        parameters=given,
        result=_timeless(result),
        declaration=declaration,
    )
    return _Answered((asked, told), execution, audit)


def execution_of(
    tool_name: str,
    tool_call_id: str,
    envelope: Mapping[str, Any],
    result: dict[str, Any],
    step: int,
    diagnostics: dict[str, Any] | None = None,
) -> ToolExecution:
    """A call (its `call_envelope`) with its normalised result, for the caller."""
    return ToolExecution(
        tool_name=tool_name,
        tool_call_id=tool_call_id,
        result=result,
        runtime=result.get("runtime"),
        turn_count=step,
        diagnostics=diagnostics,
        **envelope,
    )


def redacted_call(message: Message, envelope: Mapping[str, Any]) -> Message:
    """The message of a tool call, with the redacted form of its parameters (`call_envelope`) in their place."""
    about = {name: value for name, value in envelope.items() if name != "parameters"}
    kept = {name: value for name, value in message.metadata.items() if name not in about}
    payload = {**message.payload, "parameters": envelope["parameters"]}
    return message.model_copy(update={"payload": payload, "metadata": {**about, **kept}})


def normalised_result(outcome: ToolResult | ToolFailed) -> dict[str, Any]:
    """A call's outcome as the normalised tool result."""
    metadata = outcome.metadata.model_dump(mode="json", exclude_none=True)
    if isinstance(outcome, ToolResult):
        return {
            "success": True,
            "tool_name": outcome.tool_name,
            "result": outcome.item.text,
            "metadata": metadata,
        }
    metadata["error_type"] = outcome.tool_error.kind
    metadata["effects"] = outcome.effects
    return {
        "success": False,
        "tool_name": outcome.tool_name,
        "error": outcome.message,
        "status": outcome.status,
        "metadata": metadata,
    }


def _timeless(result: dict[str, Any]) -> dict[str, Any]:
    """The result without when it happened: equal calls with equal results are audited alike."""
    kept = {key: value for key, value in result["metadata"].items() if key not in _TIMES}
    return {**result, "metadata": kept}


_TIMES = frozenset({"started_at", "completed_at", "execution_time_ms"})


def event_of(recorded: StoredFact, **told: Any) -> ResultEvent:
    """A fact as a lifecycle event, with its place in the log; `told` is what a surface calls it and says about it."""
    fact = recorded.fact
    event = fact.event
    named = {
        "type": event.original_kind if isinstance(event, UnrecognisedEvent) else event.kind,
        "run_id": fact.turn_id,
        "session_id": recorded.agent_id,
    }
    return ResultEvent(
        event_id=recorded.event_id,
        event_seq=recorded.seq,
        created_at=iso(fact.at),
        schema_version=SCHEMA_VERSION,
        **{**named, **told},
    )


def turn_facts(facts: Sequence[StoredFact], turn_id: str) -> list[StoredFact]:
    """The facts of one turn among those of its thread."""
    return [recorded for recorded in facts if recorded.fact.turn_id == turn_id]
