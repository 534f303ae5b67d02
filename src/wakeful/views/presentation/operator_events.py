"""One raw event as people are told of it: how near it is, what it is about, one line, and the details behind it."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias

from pydantic import ValidationError

from wakeful.contracts.envelope import RuntimeEvent
from wakeful.contracts.events import BY_KIND
from wakeful.contracts.values import Value
from wakeful.decisions.notices import notice_of
from wakeful.views.presentation.event_details import FAILURE_WIDTH, event_detail
from wakeful.views.presentation.placements import Category, Visibility, place
from wakeful.views.presentation.plain_text import arguments_text, duration, one_line, plain, rough_span, short

BODY_CHARS: Final = 4_000
"""Of the details that are shown of one event; the log has all of it."""
PREVIEW_LINE: Final = 200
Payload: TypeAlias = Mapping[str, Any]


class OperatorEventPresentation(Value):
    """An event for people. Which surface shows it where follows from `visibility` and `category`."""

    visibility: Visibility
    category: Category
    title: str
    """A short label."""
    body: str | None = None
    """Details, in lines."""
    summary: str
    """One line."""
    source_event_kind: str
    """The kind of the raw event."""


def present(event: RuntimeEvent, *, words: str = "") -> OperatorEventPresentation:
    """An event whose secrets are hidden. `words`: those that it refers to, where they stand in another event."""
    has = event.payload
    at = place(event.type, has.get, is_of_phase=event.phase is not None)
    summarise = _SUMMARIES.get(event.type)
    if event.type in _WITH_WORDS:
        summary = one_line(words or str(has.get("text", "")), FAILURE_WIDTH) or _WITH_WORDS[event.type]
        body: str | None = words or str(has.get("text", ""))
    else:
        told = _away(event) if event.type == "model.wait_started" else _notice(event)
        summary = told or (summarise(has) if summarise is not None else "") or _plain_summary(event)
        body = _BODIES[event.type](has) if event.type in _BODIES else None
    return OperatorEventPresentation(
        visibility=at.visibility,
        category=at.category,
        title=_title(event.type, has),
        body=plain(body)[:BODY_CHARS] if body else None,
        summary=one_line(summary, FAILURE_WIDTH),
        source_event_kind=event.type,
    )


def _title(kind: str, has: Payload) -> str:
    if kind == "brief.created":
        named = {"action_required": "Needs you", "work_done": "Work done"}.get(str(has.get("visibility")))
        kinds = {"result": "Result", "failure": "Failure", "ack": "Accepted", "progress": "Note"}
        return named or kinds.get(str(has.get("brief_kind")), "Brief")
    if kind == "turn.failed" and has.get("status") == "cancelled":
        return "Turn cancelled"
    return _TITLES.get(kind) or one_line(kind.replace(".", " ").replace("_", " ").capitalize())


def _notice(event: RuntimeEvent) -> str:
    """The words of the notice that follows from the event; blank: it raises none."""
    kind = BY_KIND.get(event.type)
    if kind is None or event.type not in _NOTICED:
        return ""
    try:
        found = notice_of(kind.model_validate(event.payload))
    except ValidationError:  # of another version
        return ""
    return "" if found is None else found.words


def _away(event: RuntimeEvent) -> str:
    """That a provider does not answer: the words of a run that waits for it."""
    has = event.payload
    seconds = max(0.0, int(has.get("next_try") or 0) / 1e6 - datetime.fromisoformat(event.timestamp).timestamp())
    provider = str(has.get("model_ref")).partition(":")[0]
    return f"waiting for {provider} ({has.get('failure_kind')}), next try in {rough_span(seconds)}"


def _answered(has: Payload) -> str:
    return f"{has.get('model_ref')} answers, after {rough_span(int(has.get('waited_ms') or 0) / 1000)}"


def _plain_summary(event: RuntimeEvent) -> str:
    detail = event_detail(event)
    title = _title(event.type, event.payload)
    return f"{title}: {detail}" if detail else title


def _round(has: Payload) -> str:
    """What a round of the model came to: its words, or else the tools it asked for."""
    preview = one_line(str(has.get("text_preview", "")))
    if preview:
        return f"Assistant progress: {preview}"
    calls = ", ".join(str(call.get("name")) for call in has.get("calls", ()))
    return one_line(f"Model requested tools: {calls}") if calls else "Model round completed without words or tools"


def _message(has: Payload) -> str:
    return f"message from {_sender(has.get('origin') or {})}: {has.get('prompt_preview', '')}"


def _sender(origin: Payload) -> str:
    match origin.get("kind"):
        case "channel":
            return f"channel {origin.get('sender_id') or origin.get('channel_id')}"
        case "webhook":
            return f"webhook {origin.get('source')}"
        case "callback":
            return f"trigger {origin.get('source') or origin.get('descriptor_id')}"
        case "timer":
            return "a timer"
        case "task":
            return f"task {short(str(origin.get('task_id')))}"
        case "system":
            return "the runtime"
        case _:
            return str(origin.get("actor_id") or "the operator")


def _interjection(has: Payload) -> str:
    said = " ".join(str(part.get("text", "")) for part in (has.get("item") or {}).get("parts", ()))
    return f"message from {has.get('said_by')}, while it works: {said}"


def _turn_stopped(has: Payload) -> str:
    """Of a turn that somebody stopped; blank: it failed."""
    if has.get("status") != "cancelled":
        return ""
    return f"turn cancelled: {has['message']}" if has.get("message") else "turn cancelled"


def _call_ended(has: Payload) -> str:
    how = _STATUS.get(str(has.get("status")), "failed")
    return f"{how} {has.get('tool_name')}, {duration(has.get('duration_ms', 0.0))}"


def _call_failed(has: Payload) -> str:
    return f"{_call_ended(has)}: {has.get('message', '')}"


def _task_begun(has: Payload) -> str:
    return f"task begun: {has.get('summary') or short(str(has.get('task_id')))}"


def _task_changed(has: Payload) -> str:
    why = f": {has['reason']}" if has.get("reason") else ""
    return f"task {short(str(has.get('task_id')))} is {has.get('status')}{why}"


def _task_over(has: Payload) -> str:
    said = has.get("result_summary") or has.get("output_summary")
    return f"task {short(str(has.get('task_id')))} {has.get('status')}{f': {said}' if said else ''}"


def _task_retried(has: Payload) -> str:
    return f"task {short(str(has.get('task_id')))} goes on: {has.get('requested_by')} tries its failed turn again"


def _item_new(has: Payload) -> str:
    return f"work item: {has.get('objective', '')}"


def _item_blocked(has: Payload) -> str:
    blocked = has.get("blocked_by")
    name = short(str(has.get("work_item_id")))
    return f"work item {name} is blocked: {blocked}" if blocked else f"work item {name} can go on"


def _waits(has: Payload) -> str:
    return f"{'sleeps' if has.get('is_sleep') else 'waits'}: {has.get('reason', '')}"


def _requested(has: Payload) -> str:
    """The calls of a round with their arguments, a line each."""
    parts = (has.get("item") or {}).get("parts", ())
    calls = [part for part in parts if part.get("type") == "call"]
    lines = [f"{part.get('name')}({arguments_text(part.get('arguments'), PREVIEW_LINE)})" for part in calls]
    text = str(has.get("text_preview") or "")
    return "\n".join([*([text] if text else []), *lines])


def _asked(has: Payload) -> str:
    lines = [str(has.get("prompt", "")), arguments_text(has.get("safe_args"), PREVIEW_LINE)]
    lines.append(f"asks because: {has['reason']}" if has.get("reason") else "")
    return "\n".join(line for line in lines if line)


_STATUS: Final = {"succeeded": "ok", "partial": "partly", "denied": "denied", "rejected": "rejected"} | {
    name: name.replace("_", " ") for name in ("timed_out", "cancelled", "interrupted", "skipped", "invalid")
}
_WITH_WORDS: Final = {"brief.created": "done, without words", "work_item.completed": "work item completed"}
"""Events whose words may stand in another one, and what is said where there are none."""
_NOTICED: Final = frozenset(
    (
        "action.required",
        "action.reminded",
        "action.resolved",
        "agent.state_changed",
        "budget.noticed",
        "channel.troubled",
        "heartbeat.changed",
        "limit.changed",
        "liveness.violated",
        "notice.requested",
        "runtime.package_replaced",
        "runtime.part_failed",
        "progress.stalled",
        "provider.answered",
        "provider.disappeared",
        "provider.parked",
        "result.changed",
        "store.size_noticed",
        "timer.missed",
        "turn.failed",
    )
)
"""Events that people may be told of without asking, whose words are the notice's."""
_TITLES: Final = {
    "action.required": "Needs you",
    "action.reminded": "Needs you",
    "assistant.recorded": "Progress",
    "message.admitted": "Message",
    "model.wait_started": "Waiting",
    "model.answered": "Provider",
    "turn.interjected": "Message",
    "tool.result": "Tool",
    "tool.failed": "Tool",
    "work_item.completed": "Work done",
}
_SUMMARIES: Final[Mapping[str, Callable[[Any], str]]] = {
    "assistant.recorded": _round,
    "message.admitted": _message,
    "turn.interjected": _interjection,
    "tool.result": _call_ended,
    "tool.failed": _call_failed,
    "turn.failed": _turn_stopped,
    "model.answered": _answered,
    "task.created": _task_begun,
    "task.status_changed": _task_changed,
    "task.ended": _task_over,
    "task.retried": _task_retried,
    "work_item.created": _item_new,
    "work_item.enqueued": _item_new,
    "work_item.blocker_changed": _item_blocked,
    "wait.created": _waits,
}
_BODIES: Final[Mapping[str, Callable[[Any], str]]] = {
    "assistant.recorded": _requested,
    "action.required": _asked,
    "tool.result": lambda has: str(has.get("preview") or ""),
    "tool.failed": lambda has: str(has.get("preview") or has.get("message") or ""),
    "task.ended": lambda has: str(has.get("output_summary") or ""),
    "runtime.warning": lambda has: str(has.get("message") or ""),
    "model.failed": lambda has: str(has.get("message") or ""),
    "model.wait_started": lambda has: str(has.get("message") or ""),
}
