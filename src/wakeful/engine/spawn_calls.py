"""Calls of `spawn_agent`: the task that makes an agent, and what it is given, stand in the commit of the call's result.

The agent itself is made right after, by whoever looks after tasks; after a kill the next runtime makes it.
"""

import json
from typing import Any

from wakeful.contracts.authority import known_authority
from wakeful.contracts.children import ChildSpec, ChildSupervision
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import AnyEvent, GrantReserved, TaskCreated
from wakeful.contracts.tasks import TaskRecovery
from wakeful.decisions.delegation import Refusal
from wakeful.decisions.grants import TooLittle, grant_of
from wakeful.decisions.levels import Call
from wakeful.decisions.policy.provenance import is_instruction
from wakeful.decisions.spawn_terms import label_of, spawn_of, task_of
from wakeful.engine.turn_work import TurnWork
from wakeful.gate.call_at_gate import CallAtGate
from wakeful.gate.result_shape import at_once


def spawn_facts(work: TurnWork, call: Call, dispatch: CallAtGate) -> list[Fact] | Refusal:
    """The facts that end the call: the task, the grant, and what the model is told."""
    spawn_desk, row = work.spawn_desk, work.place.row
    if spawn_desk is None:
        return Refusal("unavailable", "only a runtime can look after another agent, and this run has none", {})
    state = work.state
    untrusted = state.thread.exposure.untrusted
    if not untrusted and not is_instruction(state.terms.derived_from):
        untrusted = state.terms.derived_from
    family = spawn_desk.family._replace(
        open_children=len(spawn_desk.board.open_children(row.agent_id) | state.grants.keys()),
        taken=spawn_desk.board.names(),
        untrusted=untrusted,
        place=work.works_at,
    )
    hide = work.gate.keys().hide_keys
    given: dict[str, Any] = {
        name: hide(said) if isinstance(said, str) else said for name, said in dispatch.arguments.items()
    }
    spec = spawn_of(given, family, row.turn_id, call.call_id)
    if isinstance(spec, Refusal):
        return spec
    own = () if spec.preset == "private_child" else (row.turn_id, call.call_id)
    task_id = task_of(spec.agent_id, *own)
    events: list[AnyEvent] = []
    if spec.preset == "private_child":
        left = work.budget_left()
        # What other levels, and other calls of this reply, were promised in this very pass is not there any more.
        levels, others = len(state.tree.levels), len(state.round.batch)
        left = left.model_copy(
            update={
                "model_calls": None if left.model_calls is None else left.model_calls - levels,
                "tool_calls": None if left.tool_calls is None else left.tool_calls - others,
            }
        )
        grant = grant_of(state.limits, left, state.ledger, given.get("budget") or {})
        if isinstance(grant, TooLittle):
            words = f"{grant.what}: {grant.asked} is more than the {grant.left} that can be granted"
            return Refusal("budget_exceeded", words, {"reason": grant.what, "asked": grant.asked, "left": grant.left})
        spec = spec.model_copy(update={"grant": grant})
        events.append(GrantReserved(task_id=task_id, child_agent_id=spec.agent_id, grant=grant))
    created = TaskCreated(
        task_id=task_id,
        task_kind="child_agent_task",
        status="queued",
        summary=label_of(spec.initial_message, spec.agent_id),
        parent_turn_id=row.turn_id,
        parent_call_id=call.call_id,
        work_item_id=state.work_items.bound,
        derived_from="external_evidence" if untrusted else known_authority(state.terms.derived_from),
        recovery=TaskRecovery(summary=label_of(spec.initial_message, spec.agent_id), child=spec),
    )
    events.insert(0, created)
    facts = [work.fact(event, call.step, call.call_id, call.level) for event in events]
    return [*facts, _told(work, call, dispatch, _result(row.agent_id, task_id, spec))]


def _result(parent: str, task_id: str, spec: ChildSpec) -> dict[str, Any]:
    if spec.preset == "public_named":
        return {"agent_id": spec.agent_id}
    supervision = ChildSupervision(
        parent_agent_id=parent,
        child_agent_id=spec.agent_id,
        supervision_task_id=task_id,
        workspace_mode=spec.workspace_mode,
    )
    return {
        "agent_id": spec.agent_id,
        "task_handle": {"task_id": task_id, "task_kind": "child_agent_task", "status": "queued"},
        "child_agent_id": spec.agent_id,
        "supervision_task_id": task_id,
        "child_supervision": supervision.model_dump(mode="json"),
    }


def _told(work: TurnWork, call: Call, dispatch: CallAtGate, value: dict[str, Any]) -> Fact:
    words = json.dumps(value, ensure_ascii=False)
    event = at_once(dispatch.record, words, work.now(), work.gate.keys(), work.gate.result_bytes())
    return work.fact(event, call.step, call.call_id, call.level)
