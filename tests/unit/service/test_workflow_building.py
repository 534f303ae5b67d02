"""`build_workflow`: in an editor, by a child that draws, corrected three times at most, saved once."""

import json
from typing import Any

import pytest

from kit.runs.engine_runs import Died, Dying, calls
from wakeful import Agent, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.events import AnswerRejected, ToolFailed, ToolResult
from wakeful.contracts.policies import GatePolicy, ToolPolicy
from wakeful.engine.run_request import RunRequest, WorkflowTerms
from wakeful.engine.workflow_parts import editor_tools, workflow_registry
from wakeful.ports import ModelRequest, Store
from wakeful.providers.scripted import ScriptedModel
from wakeful.service.commands.interruption import cancel_turn
from wakeful.service.commands.steering import pause_turn
from wakeful.service.commands.turns import resume_turn, run_turn
from wakeful.service.queries.replay import replay_turn
from wakeful.service.run_result import RunResult
from wakeful.store.memory import Memory, MemoryStore

POLICY = GatePolicy(tools=ToolPolicy(context="editor", classes=frozenset({"safe", "editor_mutate"})))
GOOD = json.dumps(
    {"name": "weigh it", "nodes": [{"id": "w", "kind": "tool", "ref": "weigh", "inputs": {"order": "A"}}]}
)
WRONG = json.dumps({"name": "weigh it", "nodes": [{"id": "w", "kind": "tool", "ref": "wiegh"}]})


@tool(effect="pure")
def weigh(order: str) -> int:
    """What an order weighs."""
    return 7


def designer(*drafts: str, seen: list[ModelRequest] | None = None) -> Agent[Any, str]:
    """It calls the tool once and then answers; the child that draws gives these drafts."""
    given = list(drafts)

    def reply(request: ModelRequest) -> Any:
        if seen is not None:
            seen.append(request)
        if "You design a workflow" in request.instructions:
            rejected = sum(1 for item in request.history if item.role == "user") - 1
            return given[min(rejected, len(given) - 1)]
        done = any(item.role == "tool" for item in request.history)
        return "There it is." if done else calls(("build_workflow", {"objective": "Weigh order A."}))

    return Agent("designer", ScriptedModel(reply), tools=[weigh], policy=POLICY)


async def asked(store: Store, agent: Agent[Any, str], editing: str | None = "wf_open") -> RunResult[str]:
    result = await run_turn(new_engine(store), RunRequest(agent, "Build it.", workflows=WorkflowTerms(editing=editing)))
    row = await store.turn(result.turn_id)
    assert row is not None
    replayed = await replay_turn(store, row)
    assert replayed.identical, replayed.divergence
    return result


def of(result: RunResult[str], kind: type[Any]) -> list[Any]:
    return [entry.fact.event for entry in result.facts() if isinstance(entry.fact.event, kind)]


@pytest.mark.spec("LOOP-WF-12")
async def test_the_result_is_a_reference_by_which_the_graph_is_read() -> None:
    store = MemoryStore()
    result = await asked(store, designer(GOOD))
    assert result.completed
    (made,) = [event for event in of(result, ToolResult) if event.tool_name == "build_workflow"]
    reference = json.loads(made.item.text)
    registry = await workflow_registry(new_engine(store), designer(GOOD))
    saved = await registry.get(reference["workflow_id"])
    assert reference == {
        "workflow_id": saved.workflow_id,
        "revision": 1,
        "name": "weigh it",
        "node_count": 1,
        "edge_count": 0,
    }
    assert saved.graph.nodes[0].ref == "weigh"


@pytest.mark.spec("LOOP-WF-11")
async def test_errors_go_back_three_times_and_an_invalid_graph_is_neither_saved_nor_returned() -> None:
    store = MemoryStore()
    mended = await asked(store, designer(WRONG, WRONG, WRONG, GOOD))
    assert len(of(mended, AnswerRejected)) == 3 and len(await store.workflows()) == 1
    store = MemoryStore()
    given_up = await asked(store, designer(WRONG, WRONG, WRONG, WRONG, GOOD))
    assert len(of(given_up, AnswerRejected)) == 3
    (failed,) = of(given_up, ToolFailed)
    assert failed.tool_error.kind == "invalid_workflow"
    assert [each["code"] for each in failed.tool_error.details["problems"]] == ["unknown_ref", ]  # fmt: skip
    assert await store.workflows() == []


async def test_the_planner_sees_the_node_types_and_the_errors_and_nothing_of_the_conversation() -> None:
    seen: list[ModelRequest] = []
    await asked(MemoryStore(), designer(WRONG, GOOD, seen=seen))
    drawing = [request for request in seen if "You design a workflow" in request.instructions]
    assert '"ref": "weigh"' in drawing[0].instructions and '"ref": "build_workflow"' not in drawing[0].instructions
    assert [request.tools for request in drawing] == [(), ()] or not any(request.tools for request in drawing)
    assert "unknown_ref at nodes[0].ref" in list(drawing[1].history)[-1].text
    assert "Build it." not in "".join(item.text for item in drawing[0].history)


@pytest.mark.spec("LOOP-WF-01")
async def test_it_is_offered_in_an_editor_with_a_registry_and_nowhere_else() -> None:
    seen: list[ModelRequest] = []
    await asked(MemoryStore(), designer(GOOD, seen=seen))
    assert "build_workflow" in [declared.name for declared in seen[0].tools]
    seen.clear()
    store = MemoryStore()
    outside = await asked(store, designer(GOOD, seen=seen), editing=None)
    assert [declared.name for declared in seen[0].tools] == ["weigh"]
    # Called all the same, it is refused like a tool that does not exist.
    assert [event.tool_error.kind for event in of(outside, ToolFailed)] == ["tool_not_found"]
    assert await store.workflows() == []
    assert editor_tools("editor", None) == ()  # nor without a registry


async def test_killed_at_any_commit_it_is_built_and_saved_once() -> None:
    at = 0
    while True:
        at += 1
        memory = Memory()
        dying = Dying(memory, after=at)
        try:
            await asked(dying, designer(WRONG, GOOD))
            break
        except Died:
            await dying.close()
        store = MemoryStore(memory)
        (row,) = await store.turns()
        result = await resume_turn(new_engine(store), row.turn_id, [designer(WRONG, GOOD)])
        assert result.completed
        assert [(each.name, each.revision) for each in await store.workflows()] == [("weigh it", 1)]
    assert at > 5


async def test_a_turn_that_rests_on_a_draft_is_cancelled_and_saves_nothing() -> None:
    store = MemoryStore()

    async def reply(request: ModelRequest) -> Any:
        if "You design a workflow" not in request.instructions:
            return calls(("build_workflow", {"objective": "Weigh order A."}))
        (row,) = await store.turns(open_only=True)
        await pause_turn(new_engine(store), row.turn_id)
        return GOOD

    agent = Agent("designer", ScriptedModel(reply), tools=[weigh], policy=POLICY)
    paused = await asked(store, agent)
    row = await store.turn(paused.turn_id)
    assert row is not None and row.state == "suspended"
    assert await cancel_turn(new_engine(store), paused.turn_id) is True
    row = await store.turn(paused.turn_id)
    assert row is not None and not row.is_open
    result: RunResult[str] = await resume_turn(new_engine(store), paused.turn_id, [agent])
    assert (result.status, await store.workflows()) == ("cancelled", [])
    assert [(event.tool_name, event.status) for event in of(result, ToolFailed)] == [("build_workflow", "cancelled")]
    replayed = await replay_turn(store, row)
    assert replayed.identical, replayed.divergence
