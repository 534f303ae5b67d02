"""Facts of a turn to what is told of workflows: one that is built, phase by phase, and one that runs, node by node.

Nothing of it is stored: it follows from the facts of the calls, live as in a replay. Whether a draft is valid is known
when the call goes on; until then it is being validated.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic import ValidationError

from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import (
    AnswerRejected,
    AssistantRecorded,
    PermissionEvaluated,
    SubagentStarted,
    Terminal,
    ToolFailed,
    ToolResult,
    ToolStarted,
    WorkflowStarted,
)
from wakeful.contracts.workflows import GraphProblem, WorkflowReference
from wakeful.views.mapping import is_roots, shown
from wakeful.views.wire_messages import PlanningPhase, PlanningStatus, PlanningUpdate, TaskEvent, TaskUpdate, WorkTitle

WorkflowUpdate: TypeAlias = PlanningUpdate | TaskUpdate
Updates: TypeAlias = list[WorkflowUpdate]
MAX_CONTENT = 2_000


@dataclass(slots=True)
class _Plan:
    """A call that builds a workflow."""

    call_id: str
    parent_id: str | None
    depth: int
    phase: PlanningPhase = "drafting"
    corrections: int = 0


class WorkflowUpdates:
    """The updates of one turn. Feed it the turn's facts from the first; `hide` takes secrets out of words."""

    def __init__(self, hide: Callable[[str], str]) -> None:
        self._hide = hide
        self._plans: dict[str, _Plan] = {}
        """By the level that draws."""
        self._run: WorkflowStarted | None = None
        self._let_through: set[str] = set()
        """Nodes that were judged: one that is skipped never was, and never begins."""

    def feed(self, fact: Fact, ids: dict[str, Any]) -> Updates:
        """What a fact says about workflows; `ids` are the ids that all messages carry."""
        event = fact.event
        if isinstance(event, WorkflowStarted) and shown(event).wire is not None:
            self._run = event
        if self._run is not None and is_roots(fact):
            return self._of_run(self._run, fact, ids)
        match event:
            case SubagentStarted(tool="build_workflow") if shown(event).wire is not None:
                plan = _Plan(fact.call_id or "", fact.parent_call_id, fact.depth)
                self._plans[event.level_id] = plan
                return [self._planning(plan, ids, "drafting", "running")]
            case AssistantRecorded() | AnswerRejected() if fact.level in self._plans:
                return self._drafted(self._plans[fact.level], event, ids)
            case ToolResult() | ToolFailed():
                level = next((name for name, plan in self._plans.items() if plan.call_id == fact.call_id), None)
                return self._built(self._plans.pop(level), event, ids) if level is not None else []
        return []

    # --- building -----------------------------------------------------------------------------------------------------

    def _drafted(self, plan: _Plan, event: AssistantRecorded | AnswerRejected, ids: dict[str, Any]) -> Updates:
        """There is a draft, or the one there was is wrong."""
        if isinstance(event, AssistantRecorded):
            plan.phase = "validating"
            return [
                self._planning(plan, ids, "drafting", "completed"),
                self._planning(plan, ids, "validating", "running"),
            ]
        plan.phase = "drafting"
        plan.corrections += 1
        return [
            self._planning(plan, ids, "validating", "failed", "\n".join(event.errors)),
            self._planning(plan, ids, "drafting", "running", f"correction {plan.corrections}"),
        ]

    def _built(self, plan: _Plan, event: ToolResult | ToolFailed, ids: dict[str, Any]) -> Updates:
        if isinstance(event, ToolFailed):
            return [self._planning(plan, ids, plan.phase, "failed", _problems(event) or event.message)]
        told: Updates = [self._planning(plan, ids, "validating", "completed")]
        reference = _reference(event)
        at = {"tool_call_id": plan.call_id, "parent_id": plan.parent_id, "depth": plan.depth}
        task = self._titled(reference.workflow_id, reference.name) if reference is not None else None
        if task is not None:
            told.append(TaskUpdate(**ids, **at, task=task, event="task_planned"))
        words = f"{reference.name}, revision {reference.revision}" if reference is not None else None
        told.append(self._planning(plan, ids, "saving", "running"))
        told.append(self._planning(plan, ids, "saving", "completed", words))
        if task is not None:
            told.append(TaskUpdate(**ids, **at, task=task, event="task_created"))
        return told

    def _planning(
        self, plan: _Plan, ids: dict[str, Any], phase: PlanningPhase, status: PlanningStatus, content: str | None = None
    ) -> PlanningUpdate:
        return PlanningUpdate(
            **ids,
            phase=phase,
            status=status,
            content=self._hide(content)[:MAX_CONTENT] if content else None,
            tool_call_id=plan.call_id,
            parent_id=plan.parent_id,
            depth=plan.depth,
        )

    # --- running ------------------------------------------------------------------------------------------------------

    def _of_run(self, run: WorkflowStarted, fact: Fact, ids: dict[str, Any]) -> Updates:
        event, node = fact.event, fact.call_id or ""
        match event:
            case WorkflowStarted():
                return [self._task(run, ids, "task_created")]
            case PermissionEvaluated():
                self._let_through.add(node)
            case ToolStarted() if node in self._let_through:
                self._let_through.discard(node)
                return [self._task(run, ids, "step_started", node)]
            case ToolResult():
                return [self._task(run, ids, "step_completed", node)]
            case ToolFailed():
                return [self._task(run, ids, "step_failed", node)]
            case Terminal():
                return [self._task(run, ids, "task_completed" if event.status == "completed" else "task_failed")]
        return []

    def _task(self, run: WorkflowStarted, ids: dict[str, Any], event: TaskEvent, node: str | None = None) -> TaskUpdate:
        """A workflow goes by its id; one that was never saved, by its name."""
        return TaskUpdate(
            **ids,
            task=self._titled(run.workflow_id or run.name, run.name),
            event=event,
            step=self._titled(node, run.titles.get(node) or node) if node is not None else None,
            tool_call_id=node,
        )

    def _titled(self, ident: str, title: str) -> WorkTitle:
        return WorkTitle(id=ident, title=self._hide(title))


def _reference(event: ToolResult) -> WorkflowReference | None:
    """What was saved; None when the result does not say so."""
    try:
        return WorkflowReference.model_validate(json.loads(event.item.text))
    except (ValueError, ValidationError):
        return None


def _problems(event: ToolFailed) -> str:
    """What was wrong with the last draft, when that is why it failed."""
    listed = (event.tool_error.details or {}).get("problems", ())
    try:
        return "\n".join(str(GraphProblem.model_validate(each)) for each in listed)
    except ValidationError:
        return ""
