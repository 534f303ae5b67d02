"""What a raw event is about, beside its kind: a line for the inspector of the log, and the ground of a summary."""

from typing import Any

from wakeful.contracts.envelope import RuntimeEvent, iso
from wakeful.views.approval_details import DECIDED
from wakeful.views.presentation.plain_text import arguments_text, counted, duration, one_line, short

FAILURE_WIDTH = 200
"""A provider's own words often end with what to do."""
_RESUMED = {
    "recovery": "the turn was cut off",
    "supplied": "the missing code was supplied",
    "decision": "a person decided",
    "window": "the spending limit has room again",
    "provider": "a provider that did not answer is asked again",
    "retry": "it is tried again",
}


def event_detail(event: RuntimeEvent) -> str:
    """One line, secrets and terminal escapes left out."""
    has = event.payload
    match event.type:
        case "message.admitted":
            return one_line(has.get("prompt_preview", ""))
        case "event.expired":
            return f"{has.get('event_type')}, whose details were removed"
        case "turn.started":
            return one_line(f"{has.get('agent_name')} on {has.get('model_ref')}")
        case "context.resolved":
            return f"{'about ' if has.get('tokens_are_estimate') else ''}{has.get('tokens_used')} tokens"
        case "model.requested":
            again = f", attempt {has.get('attempt')}" if has.get("attempt", 1) != 1 else ""
            items = f"{has.get('items')} item{'' if has.get('items') == 1 else 's'}"
            return one_line(f"{has.get('model_ref')}, {items}{again}")
        case "model.completed":
            return one_line(f"{has.get('stop_reason')}, {duration(has.get('provider_round_ms', 0.0))}{_tokens(has)}")
        case "model.failed":
            what = f"{has.get('failure_kind')}, {has.get('disposition')}: {has.get('message', '')}"
            return one_line(what, FAILURE_WIDTH)
        case "model.wait_started":
            until = iso(int(has.get("next_try") or 0))
            said = (
                f"{has.get('model_ref')} ({has.get('failure_kind')}), asked again at {until}: {has.get('message', '')}"
            )
            return one_line(said, FAILURE_WIDTH)
        case "runtime.warning":
            return one_line(f"{has.get('code')}: {has.get('message', '')}", FAILURE_WIDTH)
        case "routing.candidates.resolved":
            return one_line(_candidates(has), FAILURE_WIDTH)
        case "routing.decided":
            chain = ", then ".join(map(str, (has.get("selected_model_ref"), *has.get("fallback_chain", ()))))
            return one_line(f"{chain}: {has.get('decision_reason')}", FAILURE_WIDTH)
        case "routing.single_candidate":
            return one_line(f"{has.get('selected_model_ref')}")
        case "routing.not_possible":
            return one_line(f"{has.get('decision_reason')}", FAILURE_WIDTH)
        case "rate_limit.hit" | "quota.low" | "quota.blocked":
            return one_line(_limit(has))
        case "routing.fallback.applied":
            return one_line(f"{has.get('from_model_ref')} → {has.get('to_model_ref')}: {has.get('reason')}")
        case "cost.estimated":
            return one_line(f"at most {has.get('amount')} {has.get('currency')}, {has.get('price_list')}")
        case "cost.recorded":
            return one_line(f"{has.get('amount')} {has.get('currency')}, {has.get('price_list')}")
        case "assistant.recorded":
            calls = ", ".join(str(call.get("name")) for call in has.get("calls", []))
            return one_line(f"{has.get('text_preview', '')} {f'→ {calls}' if calls else ''}".strip())
        case "tool.started":
            return (
                f"{one_line(str(has.get('tool_name')))}({arguments_text(has.get('safe_args'))})  {event.tool_call_id}"
            )
        case "tool.result":
            return one_line(f"{has.get('tool_name')}  {has.get('preview', '')}")
        case "tool.catalog.resolved":
            return f"{has.get('offered')} offered, {has.get('withheld')} withheld"
        case "tool.dispatched":
            return one_line(f"{event.tool_call_id} runs now: {has.get('cause')}, attempt {has.get('attempt')}")
        case "action.required":
            asked = has.get("tool_name") if has.get("action_type") == "approval" else has.get("prompt")
            return one_line(f"{short(str(has.get('action_id')))}: {asked}, because {has.get('reason')}")
        case "action.resolved":
            why = f": {has['reason']}" if has.get("reason") else ""
            how = DECIDED.get(str(has.get("decision")), has.get("decision") or has.get("status"))
            return one_line(f"{short(str(has.get('action_id')))}: {how} by {has.get('resolver')}{why}")
        case "permission.evaluated":
            return one_line(f"{has.get('decision')}: {has.get('decision_reason')}")
        case "subagent.started":
            return one_line(f"{has.get('tool')}: {has.get('title', '')}  {has.get('level_id')}")
        case "subagent.completed":
            return one_line(f"{has.get('level_id')}, {counted(has.get('steps') or 0, 'step')}")
        case "subagent.failed":
            return one_line(f"{has.get('level_id')}, {has.get('error')}: {has.get('message', '')}", FAILURE_WIDTH)
        case "planning.completed":
            return counted(len(has.get("plan", {}).get("steps", [])), "step")
        case "context.compaction.completed":
            return one_line(f"{has.get('tokens_before')} → {has.get('tokens_after')} tokens, {has.get('trigger')}")
        case "turn.interjected":
            return one_line(f"{has.get('said_by')}: {_words(has.get('item', {}))}")
        case "turn.interrupt.requested" | "turn.pause.requested" | "turn.pause.lifted":
            why = f": {has['reason']}" if has.get("reason") else ""
            return one_line(f"{has.get('requested_by')}{why}")
        case "turn.interrupt.applied":
            told = {"told": "cancelled_tool_call_ids", "waits for": "blocking_tool_call_ids"}
            told |= {"skipped": "skipped_tool_call_ids", "with it": "cancelled_children"}
            parts = [f"{word} {', '.join(has[name])}" for word, name in told.items() if has.get(name)]
            return one_line("; ".join(parts) or "nothing was under way")
        case "turn.completed" | "turn.failed":
            why = f": {has['message']}" if has.get("message") else ""
            return one_line(f"{has.get('stop_reason')}{why}, {duration(has.get('duration_ms', 0.0))}")
        case "unknown.resolved":
            said = "happened" if has.get("happened") else "did not happen"
            return one_line(f"{has.get('call_id')} {said} {has.get('result', '')} ({has.get('source')})")
        case "turn.retried":
            return one_line(f"{has.get('requested_by')} tries it again")
        case "turn.resumed":
            return _RESUMED.get(str(has.get("cause")), str(has.get("cause")))
        case "answer.accepted":
            return one_line(arguments_text(value) if isinstance(value := has.get("value"), dict) else str(value or ""))
        case "turn.suspended":
            return one_line(
                f"{has.get('reason')}: {', '.join(short(str(each)) for each in has.get('waiting_for', ()))}",
                FAILURE_WIDTH,
            )
        case "budget.noticed":
            return one_line(f"{_window(has)}: {has.get('percent')} %, {has.get('spent')} dollars")
        case "budget.granted":
            why = f" ({has['reason']})" if has.get("reason") else ""
            return one_line(f"{_window(has)}: {has.get('usd')} dollars more, by {has.get('granted_by')}{why}")
        case _:
            return _shortest(has)


def _window(payload: dict[str, Any]) -> str:
    """`agent:ops, day`."""
    window = payload.get("window") or {}
    return f"{window.get('scope')}, {window.get('period')}"


def _candidates(payload: dict[str, Any]) -> str:
    """`a:m, b:m; without c:m (no_credential)`."""
    able = ", ".join(str(each.get("model_ref")) for each in payload.get("candidates", ())) or "none"
    out = ", ".join(f"{each.get('model_ref')} ({each.get('reason')})" for each in payload.get("excluded", ()))
    return f"{able}; without {out}" if out else able


def _limit(payload: dict[str, Any]) -> str:
    """`openai:gpt-5.5: 60 of 60 requests, until 08:00:01`."""
    used = f": {payload.get('observed', 0):g} of {payload['limit']:g}" if payload.get("limit") is not None else ""
    named = f" {payload['limit_name']}" if payload.get("limit_name") else ""
    until = f", until {payload['resets_at']}" if payload.get("resets_at") else ""
    return f"{payload.get('model_ref')}{used}{named}{until}"


def _shortest(payload: dict[str, Any]) -> str:
    """An event nobody wrote words for: its own message, or its plain fields."""
    if payload.get("message"):
        named = f"{payload['tool_name']}  " if payload.get("tool_name") else ""
        return one_line(f"{named}{payload['message']}")
    fields = {name: value for name, value in payload.items() if isinstance(value, str | int | float | bool)}
    return arguments_text(fields, 100)


def _words(item: dict[str, Any]) -> str:
    return " ".join(str(part.get("text", "")) for part in item.get("parts", []))


def _tokens(payload: dict[str, Any]) -> str:
    usage = payload.get("token_usage") or {}
    return f", {usage.get('input_tokens', 0)} + {usage.get('output_tokens', 0)} tokens" if usage else ""
