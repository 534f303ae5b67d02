"""The table of operations: every line of it holds together, and each can be asked of a real store."""

from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import pytest

import wakeful
from wakeful import Agent, tool
from wakeful.bootstrap.store_operations import perform
from wakeful.contracts.approvals import Approve
from wakeful.contracts.errors import WakefulError
from wakeful.service.operations.answers import AnswerQuery
from wakeful.service.operations.approvals import DECIDE, LIST_APPROVALS, ApprovalDecision, ApprovalFilter, ApprovalName
from wakeful.service.operations.artifacts import ArtifactName
from wakeful.service.operations.calls import CallName
from wakeful.service.operations.chat import MessageName
from wakeful.service.operations.client_requests import RequestName
from wakeful.service.operations.dispatches import DispatchName, ImportedName
from wakeful.service.operations.inspection import AgentBriefs, AgentTools, WaitsOfAgent
from wakeful.service.operations.memory import MemoryName, MemoryOwner, MemoryQuery
from wakeful.service.operations.operation import NoRequest, Operation
from wakeful.service.operations.operator_feed import ReplayQuery, TranscriptQuery
from wakeful.service.operations.process import DoctorQuestion, StatusQuestion
from wakeful.service.operations.runtime import RuntimeAgentName
from wakeful.service.operations.runtime_agents import AgentTarget, RevisionName, RevisionPair
from wakeful.service.operations.skills import PromptOf, SkillName, SkillsOf
from wakeful.service.operations.spending import CostQuestion
from wakeful.service.operations.subjects import SubjectName
from wakeful.service.operations.table import OPERATIONS
from wakeful.service.operations.tasks import TaskName
from wakeful.service.operations.templates import TemplateName
from wakeful.service.operations.threads import MessageQuery
from wakeful.service.operations.turns import TurnName
from wakeful.service.operations.upkeep import TransferFile
from wakeful.service.operations.work import WorkItemQuery
from wakeful.service.operations.workflow_runs import WorkflowRunName
from wakeful.service.operations.workflows import WorkflowName
from wakeful.service.operations.workspaces import WorkspacesOf
from wakeful.testing import scripted

NEEDS_WORDS: dict[str, Any] = {
    "calls.explain": CallName("c1"),
    "runtime.why": RuntimeAgentName("nobody"),
    "runtime.why_subject": SubjectName("nothing"),
    "runtime.workspaces": WorkspacesOf("nobody"),
    "approvals.show": ApprovalName("nothing"),
    "requests.show": RequestName("nothing"),
    "costs.show": CostQuestion("model"),
    "threads.messages": MessageQuery("nothing"),
    "artifacts.show": ArtifactName("nothing"),
    "memory.list": MemoryQuery("sums"),
    "memory.show": MemoryName("sums", "nothing"),
    "memory.working": MemoryOwner("sums"),
    "workflows.show": WorkflowName("nothing"),
    "runtime.agent": AgentTarget("nothing"),
    "runtime.summary": AgentTarget("nothing"),
    "runtime.snapshot": AgentTarget("nothing"),
    "runtime.tools": AgentTools("nothing"),
    "runtime.briefs": AgentBriefs("nothing"),
    "runtime.waits": WaitsOfAgent("nothing"),
    "runtime.work_items": WorkItemQuery("nothing"),
    "runtime.definition": RevisionName("nothing"),
    "runtime.process": StatusQuestion(),
    "runtime.doctor": DoctorQuestion(),
    "runtime.prompt": PromptOf("nothing"),
    "runtime.skills": SkillsOf("nothing"),
    "runtime.skill": SkillName("nothing", "none"),
    "runtime.dispatch": DispatchName("nothing"),
    "runtime.imported_agent": ImportedName("nothing"),
    "runtime.metrics": NoRequest(),
    "runtime.answer": AnswerQuery("nothing"),
    "runtime.template": TemplateName("nothing"),
    "task.show": TaskName("nothing"),
    "task.output": TaskName("nothing"),
    "runtime.revisions": AgentTarget("nothing"),
    "runtime.diff": RevisionPair("nothing"),
    "runtime.events": ReplayQuery("nothing"),
    "runtime.transcript": TranscriptQuery("nothing"),
    "runtime.message": MessageName("nothing"),
    "runtime.workflow_run": WorkflowRunName("nothing"),
    "turns.replacement": TurnName("nothing"),
}
"""Requests of operations that only read and have to be told something."""


@tool(effect="pure")
def double(number: int) -> int:
    """Twice a number."""
    return number * 2


@tool(effect="irreversible", approval=True)
def pay(cents: int) -> str:
    """Pays."""
    return f"paid {cents}"


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=lambda each: each.name)
def test_a_line_of_the_table_holds_together(operation: Operation[Any, Any]) -> None:
    assert is_dataclass(operation.request)
    answered = operation.handler.__annotations__["return"]
    named = answered if isinstance(answered, str) else getattr(answered, "__qualname__", str(answered))
    item = named.removeprefix("list[").removesuffix("]").partition("[")[0].rpartition(".")[2]
    assert named.startswith("list[") == operation.many
    assert operation.answer_type().__name__ == item
    assert operation.changes == (operation.scope == "operate")


def test_names_are_a_thing_and_what_is_done_with_it() -> None:
    assert all(len(name.split(".")) == 2 for name in OPERATIONS)
    assert len(OPERATIONS) >= 30


async def test_what_only_reads_answers_about_a_real_store(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    model = scripted([{"calls": [{"name": "double", "arguments": {"number": 21}}]}, "42"])
    await wakeful.run(Agent("sums", model, tools=[double]), "double 21", store=store)
    needed = NEEDS_WORDS | {"store.export": TransferFile(str(tmp_path / "logs.jsonl"))}
    for operation in OPERATIONS.values():
        if operation.changes:
            continue
        asked = needed.get(operation.name) or operation.request()
        try:
            answer = await perform(operation, asked, store)
        except WakefulError as error:  # what it was asked about is not there, and it says so
            assert operation.name in needed and error.hint
            continue
        items = answer if operation.many else [answer]
        assert all(isinstance(each, operation.answer_type()) for each in items), operation.name


async def test_an_approval_is_decided_by_the_operation_alone(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    agent = Agent("shop", scripted([{"calls": [{"name": "pay", "arguments": {"cents": 5}}]}, "done"]), tools=[pay])
    waiting = await wakeful.run(agent, "pay", store=store)
    [approval] = await perform(LIST_APPROVALS, ApprovalFilter(), store)
    asked = ApprovalDecision(approval.id, Approve("fine"))
    first = await perform(DECIDE, asked, store)
    again = await perform(DECIDE, asked, store)
    assert (first.duplicate, again.duplicate) == (False, True)
    assert (first.approval.decided_by, first.approval.turn_id) == ("program", waiting.turn_id)
    assert (await wakeful.resume(store, waiting.turn_id, [agent])).completed
