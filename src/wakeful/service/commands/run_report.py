"""From a turn at rest to the result its caller gets."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from wakeful.contracts.conversation import AssistantItem, ToolItem, UserItem
from wakeful.contracts.envelope import StoredFact, iso
from wakeful.contracts.events import ActionRequired, RestReason, RuntimeToolRequested, TurnFailed, TurnSuspended
from wakeful.contracts.runtime_tools import RuntimeToolRequest
from wakeful.decisions.failures import turn_failure
from wakeful.decisions.limit_words import full_window_words
from wakeful.decisions.paged_list import PagedList
from wakeful.decisions.provider_waits import waiting_levels
from wakeful.decisions.state import TurnState
from wakeful.engine.agent import Agent
from wakeful.engine.output_type import AnswerMisfit
from wakeful.gate.large_content import arguments_of, resolve
from wakeful.ports import Blobs, Store, TurnRow, UnknownOutcomes
from wakeful.service.run_result import RunResult, RunStatus, UnknownOutcome, WaitingFor
from wakeful.views.approval_record import approval_of
from wakeful.views.client_requests import request_view


async def report(
    store: Store,
    row: TurnRow,
    state: TurnState,
    facts: Callable[[], Sequence[StoredFact]],
    agent: Agent[Any, Any] | None,
) -> RunResult[Any]:
    """The result. Without the agent's code, a structured answer is plain JSON data."""
    terminal = state.terminal
    suspended = state.rest.suspended_for
    status: RunStatus = terminal.status if terminal is not None else "incomplete"
    message = terminal.message if isinstance(terminal, TurnFailed) else ""
    reason: str = terminal.stop_reason if terminal is not None else "suspended"
    waiting_for: WaitingFor | None = None
    if suspended is not None and terminal is None:
        if suspended.reason == "approval_required" or suspended.reason == "runtime_tool_pending":
            reason, status, message = suspended.reason, suspended.reason, _rest_words(state, suspended)
        else:
            if state.rest.is_paused:  # it was, while it rested for something else
                suspended = TurnSuspended(reason="paused", waiting_for=("pause",))
            reason = "cost" if suspended.reason == "budget_window" else suspended.reason
            status, waiting_for, message = "waiting", _WAITING_FOR[suspended.reason], _rest_words(state, suspended)
    away = [level.round.wait for level in waiting_levels(state) if level.round.wait is not None]
    waiting = [
        approval_of(row, call, call.pending)
        for call in state.all_open_calls()
        if call.is_waiting and call.pending is not None and isinstance(call.pending.asked, ActionRequired)
    ]
    said = state.conversation
    items = said.items.snapshot() if isinstance(said.items, PagedList) else list(said.items)
    for place in said.measure.of(items).referring:
        items[place] = await resolve(items[place], store.get_blob)
    last_text = _whole(state, items)
    return RunResult(
        turn_id=row.turn_id,
        agent=row.agent_name,
        agent_id=row.agent_id,
        thread=row.thread_id,
        status=status,
        stop_reason=reason,
        waiting_for=waiting_for,
        next_try=iso(suspended.next_try) if suspended is not None and suspended.next_try is not None else None,
        mends_by_itself=any(not (wait.rests or wait.absent) for wait in away),
        retryable=terminal.retryable if terminal is not None else False,
        final_content=last_text,
        finish_reason=state.answer.ended.finish_reason if state.answer.ended is not None else None,
        output=_output(state, agent, last_text) if status == "completed" else None,
        usage=state.model_usage.tokens,
        model_calls=state.ledger.model_calls,
        tool_calls=state.ledger.tool_calls,
        turn_count=state.step,
        duration_ms=terminal.duration_ms if terminal is not None else state.time.active_ms(),
        message=message,
        unknown=tuple(await _unknown(store, row)) if state.unknown else (),
        approvals=tuple(record for record in waiting if record.kind == "approval"),
        questions=tuple(record for record in waiting if record.kind == "question"),
        runtime_tools=tuple(await _requests(store, row, state)),
        cost_usd=float(state.bill.known) if state.bill.known is not None else None,
        failure_artifact=turn_failure(terminal) if terminal is not None else None,
        items=items,
        facts=facts,
        config=state.config,
        location=store.location if store.location != ":memory:" else "",
    )


_WAITING_FOR: Final[Mapping[RestReason, WaitingFor]] = {
    "provider": "provider",
    "budget_window": "money",
    "paused": "pause",
    "tool_missing": "code",
    "agent_missing": "code",
}


def _rest_words(state: TurnState, suspended: TurnSuspended) -> str:
    """What a turn at rest waits for, and what ends that."""
    names = ", ".join(suspended.waiting_for)
    if suspended.reason == "budget_window":
        full = state.rest.full_window
        words = full_window_words(full) if full is not None else f"it waits for {names}"
        return f"{words}; nothing is lost, and the turn can continue then"
    if suspended.reason == "paused":
        return "the turn was paused; it continues when it is resumed"
    if suspended.reason != "provider":
        return f"the turn waits for {names}"
    waits = [level.round.wait for level in waiting_levels(state) if level.round.wait is not None]
    said = "; ".join(dict.fromkeys(wait.message.rstrip(".?") for wait in waits))
    if all(wait.rests for wait in waits):
        return f"{names} lets nobody in: {said}. Nothing is lost: once that is mended, the turn can continue"
    return f"{names} does not answer: {said}. Nothing is lost, and the turn can continue"


async def _requests(store: Blobs, row: TurnRow, state: TurnState) -> list[RuntimeToolRequest]:
    """What clients have to run, with the real parameters."""
    injected = tuple(state.config.injected_tool_args) if state.config is not None else ()
    found = []
    for call in state.all_open_calls():
        asked = call.pending.asked if call.pending is not None and call.is_waiting else None
        if isinstance(asked, RuntimeToolRequested):
            written = await arguments_of(call.part, store.get_blob) or {}
            found.append(request_view(row, call.step, call.call_id, asked, written, injected))
    return found


def _whole(state: TurnState, items: Sequence[UserItem | AssistantItem | ToolItem]) -> str:
    """The last text. Of a reply that is too long for the log, the state has the beginning alone."""
    own = state.thread.begins[-1].place if state.thread.begins else 0
    for place in range(len(items) - 1, own - 1, -1):
        stored, whole = state.conversation.items[place], items[place]
        if isinstance(stored, AssistantItem) and stored.text == state.answer.last_text:
            return whole.text
    return state.answer.last_text


def _output(state: TurnState, agent: Agent[Any, Any] | None, last_text: str) -> Any:
    text = last_text if state.answer.final_text == state.answer.last_text else state.answer.final_text
    if not state.terms.structured:
        # A type that wants more than words was not the agent's when the turn ran.
        return agent.parse_output(text) if agent is not None and agent.output_schema is None else text
    if agent is not None and agent.output_schema is not None:
        try:
            return agent.parse_output(text)
        except AnswerMisfit:
            pass  # the type has changed since: what was accepted then is still the answer
    return state.answer.accepted.value if state.answer.accepted is not None else text


async def _unknown(store: UnknownOutcomes, row: TurnRow) -> list[UnknownOutcome]:
    """The turn's calls whose outcome is still open, oldest first."""
    return [
        UnknownOutcome(call_id=open_.call_id, tool=open_.tool, arguments=open_.arguments, reason=open_.reason)
        for open_ in await store.unknown()
        if open_.turn_id == row.turn_id
    ]
