"""Calls of `wait_for`, `sleep` and `cancel_wait`: the wait stands in the commit of the call's result."""

import json
from typing import Any

from wakeful.contracts.authority import Authority
from wakeful.contracts.envelope import Fact, iso
from wakeful.contracts.events import WaitCancelled, WaitCreated
from wakeful.decisions.delegation import Refusal
from wakeful.decisions.levels import Call
from wakeful.decisions.spawn_terms import task_of
from wakeful.decisions.waking.wait_tools import CANCEL_WAIT, WaitRefusal, no_such_task, no_such_wait, wait_of
from wakeful.engine.turn_work import TurnWork
from wakeful.gate.call_at_gate import CallAtGate
from wakeful.gate.result_shape import at_once


def wait_facts(work: TurnWork, call: Call, dispatch: CallAtGate) -> list[Fact] | Refusal:
    """The facts that end the call: a wait, or the end of one, and what the model is told."""
    name, arguments = dispatch.declaration.name, dispatch.arguments
    if name == CANCEL_WAIT:
        return _cancelled(work, call, dispatch)
    now = work.clock.now()
    terms = wait_of(name, arguments, now)
    if isinstance(terms, WaitRefusal):
        return _refusal(terms)
    if terms.wake == "task_result":
        running = work.open_tasks()
        meant = running if terms.resource is None else running & {terms.resource, task_of(terms.resource)}
        if not meant:
            return _refusal(no_such_task(terms.resource, running))
    wait_id = f"wait_{work.place.row.turn_id}_{call.call_id}"
    created = WaitCreated(
        wait_id=wait_id,
        reason=terms.reason,
        wake=terms.wake,
        resource=terms.resource,
        work_item_id=terms.work_item_id,
        due_at=terms.due_at,
        is_sleep=terms.is_sleep,
        derived_from=_lowered(work.state.terms.derived_from),
    )
    told: dict[str, Any] = {"waiting": True, "wait_id": wait_id, "wake": terms.wake}
    if terms.is_sleep and terms.due_at is None:
        told = {"sleeping": True, "until": "a message comes"}
    elif terms.due_at is not None:
        told["until"] = iso(terms.due_at)
    return [work.fact(created, call.step, call.call_id, call.level), _told(work, call, dispatch, told)]


def _cancelled(work: TurnWork, call: Call, dispatch: CallAtGate) -> list[Fact] | Refusal:
    wait_id = dispatch.arguments["wait_id"]
    if wait_id not in work.open_waits:
        return _refusal(no_such_wait(wait_id, work.open_waits))
    event = WaitCancelled(wait_id=wait_id, cancelled_by="agent", reason=dispatch.arguments.get("reason", ""))
    told = _told(work, call, dispatch, {"cancelled": wait_id})
    return [work.fact(event, call.step, call.call_id, call.level), told]


def _refusal(wrong: WaitRefusal) -> Refusal:
    return Refusal(wrong.error, wrong.message, {"field": wrong.field})


def _lowered(derived_from: str) -> Authority | None:
    """What a wait keeps of its turn: whatever it wakes is no more trusted than that."""
    match derived_from:
        case "operator_instruction" | "runtime_instruction":
            return None
        case "integration_signal":
            return "integration_signal"
    return "external_evidence"


def _told(work: TurnWork, call: Call, dispatch: CallAtGate, value: dict[str, Any]) -> Fact:
    words = json.dumps(value, ensure_ascii=False)
    event = at_once(dispatch.record, words, work.now(), work.gate.keys(), work.gate.result_bytes())
    return work.fact(event, call.step, call.call_id, call.level)
