"""From a turn at rest to the result its caller gets."""

from collections.abc import Callable, Sequence
from typing import Any

from wakeful.contracts.conversation import AssistantItem, ToolItem, UserItem
from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.events import ActionRequired, RuntimeToolRequested, TurnFailed
from wakeful.contracts.runtime_tools import RuntimeToolRequest
from wakeful.decisions.failures import turn_failure
from wakeful.decisions.paged_list import PagedList
from wakeful.decisions.state import TurnState
from wakeful.engine.agent import Agent
from wakeful.engine.output_type import AnswerMisfit
from wakeful.gate.large_content import arguments_of, resolve
from wakeful.ports import Blobs, Store, TurnRow, UnknownOutcomes
from wakeful.service.run_result import RunResult, RunStatus, UnknownOutcome
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
    if suspended is not None and suspended.reason in ("approval_required", "runtime_tool_pending"):
        status = suspended.reason
    message = terminal.message if isinstance(terminal, TurnFailed) else ""
    reason: str = terminal.stop_reason if terminal is not None else "suspended"
    if suspended is not None and terminal is None:
        message, reason = f"the turn waits for {', '.join(suspended.waiting_for)}", suspended.reason
        if suspended.reason == "budget_window":
            reason = "cost"
            message = (
                f"there is no money left in {', '.join(suspended.waiting_for)}; "
                "nothing is lost, and the turn can continue then"
            )
        if suspended.reason == "paused":
            message = "the turn was paused; it continues when it is resumed"
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
        retryable=terminal.retryable if terminal is not None else False,
        final_content=last_text,
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
        cost_usd=float(state.bill.cost) if state.bill.answers and state.bill.priced == state.bill.answers else None,
        failure_artifact=turn_failure(terminal) if terminal is not None else None,
        items=items,
        facts=facts,
        config=state.config,
        location=store.location if store.location != ":memory:" else "",
    )


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
