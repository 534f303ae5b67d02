"""Facts as the store is given them: a session, its messages, rounds with a call, ends. Shared by the store's suites."""

from typing import Any

from wakeful.contracts.budgets import Limits
from wakeful.contracts.content import BlobRef, Text
from wakeful.contracts.conversation import AssistantItem, CallPart, ToolItem, UserItem
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import (
    AgentCreated,
    AnyEvent,
    AssistantRecorded,
    CallAsked,
    MessageAdmitted,
    MessageDeferred,
    MessageExpired,
    ModelCompleted,
    ModelRequested,
    OutputSpilled,
    SessionStarted,
    ToolFailed,
    ToolResult,
    ToolStarted,
    TurnCompleted,
    TurnInterruptRequested,
    TurnStarted,
    UnknownResolved,
)
from wakeful.contracts.models import TokenUsage
from wakeful.contracts.tools import Effects, ToolError, ToolResultMetadata
from wakeful.ports import AdmissionAnswer, Claim, Store

AGENT, THREAD, TURN, NOON = "agent_1", "main", "turn_1", 1_800_000_000_000_000
CONFIG = BlobRef(digest="sha256:" + "0" * 64, size=2)
USED = TokenUsage(input_tokens=10, output_tokens=5, total_tokens=15)


def fact(
    event: AnyEvent, turn: str | None = TURN, *, at: int = NOON, step: int | None = 1, call: str | None = None
) -> Fact:
    return Fact(event, at, THREAD, turn, step, call)


def created(agent: str = "agent_1", **fields: Any) -> Fact:
    """The stream of an agent of a runtime begins."""
    return Fact(AgentCreated(agent_name=agent, **fields), NOON)


def session(name: str = "calc") -> Fact:
    return Fact(SessionStarted(agent_name=name), NOON)


def message(turn: str = TURN, *, key: str | None = None, at: int = NOON, thread: str = THREAD) -> Fact:
    event = MessageAdmitted(
        message_id=f"msg of {turn}",
        item=UserItem(parts=(Text("what is 1 + 1?"),)),
        key=key,
        fingerprint="calc: what is 1 + 1?",
        prompt_preview="what is 1 + 1?",
    )
    return Fact(event, at, thread, turn)


def queued(name: str, *, at: int = NOON, thread: str = THREAD, **fields: Any) -> Fact:
    """A message that no turn was opened for."""
    event = MessageAdmitted(message_id=name, item=UserItem(parts=(Text(f"this is {name}"),)), **fields)
    return Fact(event, at, thread)


def takes(turn: str, *names: str, at: int = NOON, thread: str = THREAD, index: int = 1, opens: bool = True) -> Fact:
    """The start of a turn that takes these messages, and that it opens unless one of them did."""
    fact = started(turn, index=index)
    assert isinstance(fact.event, TurnStarted)
    event = fact.event.model_copy(
        update={"message_ids": names, "prompt_preview": f"this is {names[0]}" if opens else None}
    )
    return Fact(event, at, thread, turn)


def deferred(name: str, deadline: int, *, at: int = NOON, thread: str = THREAD) -> Fact:
    return Fact(MessageDeferred(message_id=name, deadline=deadline), at, thread)


def expired(name: str, *, at: int = NOON, thread: str = THREAD) -> Fact:
    return Fact(MessageExpired(message_id=name), at, thread)


def interrupt(turn: str = TURN) -> Fact:
    return fact(TurnInterruptRequested(interrupt_id="int_1", requested_by="operator"), turn, step=None)


def started(turn: str = TURN, *, index: int = 1, window_from: int = 1) -> Fact:
    event = TurnStarted(
        turn_index=index,
        message_ids=(f"msg of {turn}",),
        agent_name="calc",
        config_ref=CONFIG,
        model_ref="scripted:list",
        limits=Limits(),
        window_from=window_from,
    )
    return fact(event, turn, step=None)


def requested(turn: str = TURN, step: int = 1) -> Fact:
    return fact(ModelRequested(model_ref="scripted:list", items=1), turn, step=step)


def completed(turn: str = TURN, step: int = 1, usage: TokenUsage | None = USED) -> Fact:
    event = ModelCompleted(
        model_ref="scripted:list",
        attempt=1,
        stop_reason="tool_calls",
        token_usage=usage,
        context_build_ms=0.5,
        provider_round_ms=12.0,
        provider_started_at="2027-01-15T08:00:00.000Z",
        provider_completed_at="2027-01-15T08:00:00.012Z",
    )
    return fact(event, turn, step=step)


def said(turn: str = TURN, step: int = 1, call: str = "call_1") -> Fact:
    item = AssistantItem(parts=(CallPart(call_id=call, name="add", arguments={"a": 1, "b": 1}),), provider="scripted")
    return fact(AssistantRecorded(item=item, calls=(CallAsked(call_id=call, name="add"),)), turn, step=step)


def tool_started(turn: str = TURN, step: int = 1, call: str = "call_1", *, b: int = 1) -> Fact:
    event = ToolStarted(
        tool_name="add",
        safe_args={"a": 1, "b": b},
        args_sha256="0" * 64,
        is_read_only=True,
        is_concurrency_safe=True,
        is_destructive=False,
        batch_id="batch_1",
        position=0,
        scheduling="parallel",
        dispatched=True,
        effect="pure",
        idempotency_key=f"{turn}/{call}",
    )
    return fact(event, turn, step=step, call=call)


def spilled(artifact_id: str, turn: str = TURN, call: str = "call_1") -> Fact:
    event = OutputSpilled(
        output_ref=artifact_id, owner=call, media_type="text/plain", size_bytes=9, sha256="1", preview="so much"
    )
    return fact(event, turn, call=call)


def tool_result(
    turn: str = TURN, step: int = 1, call: str = "call_1", text: str = "2", artifacts: tuple[str, ...] = ()
) -> Fact:
    event = ToolResult(
        tool_name="add",
        item=ToolItem(call_id=call, name="add", parts=(Text(text),)),
        preview=text[:100],
        artifact_refs=artifacts,
        size_bytes=len(text),
        duration_ms=0.2,
        metadata=ToolResultMetadata(status="success", started_at=1.0, completed_at=1.5, execution_time_ms=500.0),
    )
    return fact(event, turn, step=step, call=call)


def tool_failed(turn: str = TURN, step: int = 1, call: str = "call_1", effects: Effects = "unknown") -> Fact:
    event = ToolFailed(
        status="interrupted" if effects == "unknown" else "failed",
        tool_name="add",
        item=ToolItem(call_id=call, name="add", parts=(Text("nobody knows"),), is_error=True),
        error_category="execution_failed",
        message="the process ended while the call ran",
        retryable=False,
        effects=effects,
        duration_ms=0.2,
        error="execution_failed",
        tool_error=ToolError(kind="execution_failed", message="the process ended", recovery_hint="find out"),
        metadata=ToolResultMetadata(status="error", started_at=1.0, completed_at=1.5, execution_time_ms=500.0),
    )
    return fact(event, turn, step=step, call=call)


def resolved(turn: str = TURN, step: int = 1, call: str = "call_1") -> Fact:
    event = UnknownResolved(call_id=call, tool_name="add", happened=True, source="operator")
    return fact(event, turn, step=step)


def ended(turn: str = TURN, *, usage: TokenUsage | None = USED) -> Fact:
    event = TurnCompleted(
        turn_index=1,
        stop_reason="natural",
        retryable=False,
        duration_ms=80.0,
        active_ms=79.0,
        token_usage=usage,
    )
    return fact(event, turn, step=None)


async def admitted(store: Store, turn: str = TURN, agent: str = AGENT) -> AdmissionAnswer:
    """A turn that a message opened."""
    answer = await store.admit(agent, [session(), message(turn)])
    assert answer is not None
    return answer


async def claimed(store: Store, turn: str = TURN, agent: str = AGENT) -> Claim:
    """A turn that a message opened, in our hands, with everything seen."""
    row = (await admitted(store, turn, agent)).turn
    assert row is not None
    claim = await store.claim(turn)
    claim.seen = row.last_seq
    return claim
