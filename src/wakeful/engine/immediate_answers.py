"""Calls that the runtime answers at once: notes are read and written, a child gives its result, an agent waits."""

import json
from typing import Any

from wakeful.contracts.budgets import MAX_TOOL_RESULT_BYTES
from wakeful.contracts.content import Text
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import LimitChanged, ScratchWritten, ToolFailed, ToolResult
from wakeful.contracts.tools import ToolError
from wakeful.decisions.answer_shapes import from_object
from wakeful.decisions.delegation import MAX_NOTE_BYTES, TASK_KEY, Refusal
from wakeful.decisions.levels import Call, as_child, payload_schema
from wakeful.decisions.runtime_answers import FINISH, SCRATCH_LIST, SCRATCH_READ, SCRATCH_WRITE, SPAWN_AGENT
from wakeful.decisions.waking.wait_tools import is_wait_tool
from wakeful.engine.spawn_calls import spawn_facts
from wakeful.engine.turn_work import TurnWork
from wakeful.engine.wait_calls import wait_facts
from wakeful.gate.call_at_gate import CallAtGate, CallRecord
from wakeful.gate.outcomes import failed
from wakeful.gate.result_shape import at_once


def answer_at_once(work: TurnWork, call: Call, dispatch: CallAtGate) -> list[Fact] | None:
    """The facts that end the call; None where it needs a child."""
    name = dispatch.declaration.name
    if name == FINISH:
        return _finish(work, call, dispatch)
    if name == SCRATCH_WRITE:
        return _note(work, call, dispatch)
    if name == SCRATCH_LIST:
        return [_told(work, call, dispatch, {"keys": sorted(call.level.scratchpad.visible)})]
    if name == SCRATCH_READ:
        return [_read(work, call, dispatch)]
    if is_wait_tool(dispatch.declaration):
        facts = wait_facts(work, call, dispatch)
        return [refuse(work, call, dispatch, facts)] if isinstance(facts, Refusal) else facts
    if name == SPAWN_AGENT:
        spawned = spawn_facts(work, call, dispatch)
        return [refuse(work, call, dispatch, spawned)] if isinstance(spawned, Refusal) else spawned
    return None


def refuse(work: TurnWork, call: Call, dispatch: CallAtGate, refusal: Refusal) -> Fact:
    """The call came to nothing, and nothing was begun."""
    event = no_result(dispatch.record, refusal, work.now())
    return work.fact(event, call.step, call.call_id, call.level)


def no_result(record: CallRecord, refusal: Refusal, now: float, words: str | None = None) -> ToolFailed:
    """A call that came to nothing, told as JSON with `error` and `message`."""
    if words is None:
        words = json.dumps(
            {"error": refusal.error, "message": refusal.message, **refusal.details}, ensure_ascii=False, default=str
        )
    cancelled = refusal.error == "cancelled"
    event = failed(
        record,
        ToolError(kind=refusal.error, message=refusal.message, details=refusal.details or None),
        now=now,
        status="cancelled" if cancelled else "failed",
        category="canceled" if cancelled else "execution_failed",
        effects="none",
        abort_reason="user_interrupt" if cancelled else "budget" if refusal.error == "budget_exceeded" else None,
    )
    return event.model_copy(update={"item": event.item.model_copy(update={"parts": (Text(words[:50_000]),)})})


def _finish(work: TurnWork, call: Call, dispatch: CallAtGate) -> list[Fact]:
    level = call.level
    child = as_child(level)
    if child is not None and child.has_finished:
        twice = Refusal("invalid_input", "finish_subtask was called before in this reply; the first one holds", {})
        return [refuse(work, call, dispatch, twice)]
    size = len(json.dumps(dispatch.arguments, ensure_ascii=False).encode())
    allowed = work.state.limits.result_bytes  # it stands in facts as it is, so that no limit may be above this:
    most = MAX_TOOL_RESULT_BYTES if allowed is None else min(allowed, MAX_TOOL_RESULT_BYTES)
    if size > most:
        words = f"the result has {size} bytes; the limit is {most}, and a result is never cut"
        limit = LimitChanged(limit_name="bytes", limit=most, observed=size)
        return [
            refuse(work, call, dispatch, Refusal("budget_exceeded", words, {"reason": "bytes"})),
            work.fact(limit, call.step, None, level),
        ]
    told = _told(work, call, dispatch, {"finished": True})
    assert isinstance(told.event, ToolResult)
    schema = payload_schema(level)
    payload = dispatch.arguments if schema is None else from_object(schema, dispatch.arguments)
    told.event = told.event.model_copy(update={"details": {"payload": payload}})
    return [told]


def _note(work: TurnWork, call: Call, dispatch: CallAtGate) -> list[Fact]:
    key, value = dispatch.arguments["key"], dispatch.arguments["value"]
    if key.startswith(TASK_KEY):
        words = f"keys that begin with {TASK_KEY} hold results of subtasks: only the runtime writes them"
        return [refuse(work, call, dispatch, Refusal("invalid_input", words, {"field": "key"}))]
    size = len(json.dumps(value, ensure_ascii=False).encode())
    if size > MAX_NOTE_BYTES:
        words = f"the value has {size} bytes; a note may have {MAX_NOTE_BYTES}"
        return [refuse(work, call, dispatch, Refusal("invalid_input", words, {"field": "value"}))]
    note = ScratchWritten(key=key, value=value)
    return [
        work.fact(note, call.step, call.call_id, call.level),
        _told(work, call, dispatch, {"written": key}),
    ]


def _read(work: TurnWork, call: Call, dispatch: CallAtGate) -> Fact:
    key, scratch = dispatch.arguments["key"], call.level.scratchpad.visible
    if key not in scratch:
        listed = ", ".join(sorted(scratch)) or "none"
        return refuse(work, call, dispatch, Refusal("not_found", f"no note {key!r}; there are: {listed}", {}))
    value = scratch[key]
    return _told(work, call, dispatch, value if isinstance(value, str) else {"key": key, "value": value})


def _told(work: TurnWork, call: Call, dispatch: CallAtGate, value: Any) -> Fact:
    words = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    event = at_once(dispatch.record, words, work.now(), work.gate.keys(), work.gate.result_bytes())
    return work.fact(event, call.step, call.call_id, call.level)
