"""The same turn, read through every view: order, ids, statuses and totals are the same."""

from typing import Any

import pytest

from kit.runs.engine_runs import calls
from kit.runs.event_samples import TURN
from kit.runs.turn_trees import nested_turn
from kit.runs.whole_views import run_stream, transcript, wire_messages
from wakeful import Agent, Budget, run, tool
from wakeful.contracts.envelope import StoredFact, published
from wakeful.ports import ModelRequest
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted
from wakeful.views.conversation_export import export
from wakeful.views.cost import CostSummary
from wakeful.views.mapping import TURN_STATUS
from wakeful.views.run_stream_events import StatusEvent, ToolCallEvent, ToolResultEvent, UsageEvent
from wakeful.views.transcript import AssistantRound, ToolOutcome
from wakeful.views.tree import execution_tree
from wakeful.views.wire_messages import Chunk, ToolCallUpdate, TurnTerminal


@tool(effect="pure")
async def add(a: int, b: int) -> int:
    return a + b


@tool(effect="pure")
def broken() -> str:
    raise ValueError("it does not work")


def sums(*pairs: tuple[int, int]) -> dict[str, Any]:
    return calls(*(("add", {"a": a, "b": b}) for a, b in pairs))


USAGE = {"usage": {"input_tokens": 11, "output_tokens": 3}}
SCRIPTS: dict[str, list[Any]] = {
    "a direct answer": [{"text": "42.", **USAGE}],
    "one call": [{**sums((1, 2)), **USAGE}, {"text": "3.", **USAGE}],
    "several at once, and one that fails": [
        {"text": "I add.", **calls(("add", {"a": 1, "b": 2}), "broken", ("add", {"a": 3, "b": 4})), **USAGE},
        {"text": "3 and 7.", **USAGE},
    ],
    "a call that is refused": [{**calls(("add", {"a": "no"}), "nothing_like_it"), **USAGE}, {"text": "No.", **USAGE}],
    "many rounds": [*({**sums((step, 1), (step, 2)), **USAGE} for step in range(6)), {"text": "Done.", **USAGE}],
    "a limit": [*({**sums((step, 1)), **USAGE} for step in range(9))],
}


def agree(turn_id: str, facts: list[StoredFact]) -> None:
    """Every pair of views is compared with the standard events, and so with each other."""
    standard = [published(entry, "runtime_1") for entry in facts]
    own = [event for event in standard if event.subagent_id is None]
    stream, wire = run_stream(turn_id, facts), wire_messages(turn_id, facts)
    tree, told, exported = execution_tree(facts), transcript(facts), export(facts, None)

    # Order and ids: calls in the order they were taken up.
    started = _ids(standard)
    assert [node.id for node in tree.nodes] == started
    assert [one.tool_call_id for one in wire if isinstance(one, ToolCallUpdate) and one.status == "start"] == started
    assert [one.tool_call_id for one in stream if isinstance(one, ToolCallEvent)] == _ids(own)
    nesting = {event.tool_call_id: event.parent_tool_call_id for event in standard if event.type == "tool.started"}
    for node in tree.nodes:
        assert nesting.get(node.id) == node.parent_id
    for one in wire:
        if isinstance(one, ToolCallUpdate):
            assert nesting.get(one.tool_call_id) == one.parent_id

    # Statuses: how each call ended.
    ends = {
        event.tool_call_id: event.type == "tool.failed"
        for event in standard
        if event.type in ("tool.result", "tool.failed")
    }
    own_ends = {call: failed for call, failed in ends.items() if call in _ids(own)}
    assert {node.id: node.is_error for node in tree.nodes} == ends
    assert {one.tool_call_id: one.is_error for one in wire if isinstance(one, ToolCallUpdate) and one.outcome} == ends
    assert {one.tool_call_id: not one.success for one in stream if isinstance(one, ToolResultEvent)} == own_ends
    assert {one.tool_call_id: not one.result["success"] for one in exported.tool_execution_results} == own_ends
    outcomes = {one.data.tool_call_id: one.data.error is not None for one in told if isinstance(one, ToolOutcome)}
    assert outcomes == own_ends
    assert {one.tool_call_id for one in exported.tool_audit_events} == set(ends)

    # What was said, in its order.
    said = [one.data.text for one in told if isinstance(one, AssistantRound) and one.data.text]
    assert [one.content for one in wire if isinstance(one, Chunk) and one.depth == 0] == said
    assert [one.text for one in stream if one.type == "text"] == said
    assert [m.content for m in exported.messages if m.role == "assistant" and m.type == "text"] == said

    # Totals, and the end.
    end = standard[-1].payload
    status, terminal = stream[-1], wire[-1]
    assert isinstance(status, StatusEvent)
    assert isinstance(terminal, TurnTerminal)
    assert (status.status, status.stop_reason) == (end["status"], end["stop_reason"])
    assert (terminal.status, terminal.stop_reason) == (TURN_STATUS[end["status"]], end["stop_reason"])
    cost = wire[-2]
    assert isinstance(cost, CostSummary)
    used = [event.payload["token_usage"] for event in standard if event.type == "model.completed"]
    total = (sum(one["input_tokens"] for one in used), sum(one["output_tokens"] for one in used))
    assert (cost.total.input_tokens, cost.total.output_tokens) == total
    own_used = [one.usage.input_tokens for one in stream if isinstance(one, UsageEvent)]
    assert own_used == [
        event.payload["token_usage"]["input_tokens"] for event in own if event.type == "model.completed"
    ]
    if "token_usage" in end:
        assert status.usage is not None
        assert (status.usage.input_tokens, status.usage.output_tokens) == total
        assert end["token_usage"]["input_tokens"] == total[0]


def _ids(events: list[Any]) -> list[str | None]:
    """Calls by when they were taken up, or refused before that."""
    kinds = ("tool.started", "tool.result", "tool.failed")
    return list(dict.fromkeys(event.tool_call_id for event in events if event.type in kinds))


@pytest.mark.spec("STD-MAP-06")
@pytest.mark.parametrize("what", SCRIPTS)
async def test_a_turn_that_was_run_is_the_same_in_every_view(what: str) -> None:
    agent = Agent("adder", scripted(SCRIPTS[what], leftover="ignore"), tools=[add, broken])
    done = await run(agent, "go", store=MemoryStore(), budget=Budget(model_calls=8))
    facts = list(done.facts())
    assert facts[-1].fact.event.kind == ("turn.failed" if what == "a limit" else "turn.completed")
    agree(done.turn_id, facts)
    assert done.usage.input_tokens == 11 * done.model_calls
    assert done.cost_summary.total.input_tokens == done.usage.input_tokens


def split(request: ModelRequest) -> dict[str, Any]:
    """The root has a part of its task done by a child, and that by another; each adds something up, too."""
    depth = len([item for item in request.history if item.role == "user" and "deeper" in item.text])
    answered = any(item.role == "tool" for item in request.history)
    task = "deeper" if not depth else "deepest"
    if answered or not any(tool.name == "run_subtask" for tool in request.tools):
        return {"text": "Done.", **USAGE}
    below = ("run_subtask", {"title": task, "instructions": task, "tools": ["add"]})
    return {"text": "I split it.", **calls(below, ("add", {"a": 1, "b": 2})), **USAGE}


@pytest.mark.spec("STD-MAP-06")
async def test_a_turn_that_made_children_is_the_same_in_every_view() -> None:
    agent = Agent("adder", scripted(split), tools=[add], subtasks=True)
    done = await run(agent, "go", store=MemoryStore())
    assert done.completed
    facts = list(done.facts())
    agree(done.turn_id, facts)
    assert {entry.fact.depth for entry in facts} >= {0, 1}
    titles = [node.title for node in done.execution_tree.nodes if node.name == "run_subtask"]
    assert titles[0] == "deeper"
    assert done.usage.input_tokens == done.cost_summary.total.input_tokens == 11 * done.model_calls


@pytest.mark.spec("STD-MAP-06")
def test_a_turn_with_children_is_the_same_in_every_view() -> None:
    agree(TURN, nested_turn())


def test_views_of_another_order_would_not_agree() -> None:
    """The inversion: the comparison sees a call that one view tells about and the others do not."""
    facts = nested_turn()
    cut = [entry for entry in facts if not (entry.fact.call_id == "c_1" and entry.fact.event.kind == "tool.result")]
    with pytest.raises(AssertionError):
        agree(TURN, cut)
