"""The registry: what nodes may be, what is saved, and that nothing invalid ever is."""

import json
import logging
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from kit.runs.workflow_graphs import PROBLEMS, PUBLISH, SEARCH, TYPES, edge, edges, graph
from wakeful import Agent, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.errors import InvalidConfig, InvalidWorkflow, WorkflowNotFound
from wakeful.contracts.policies import GatePolicy, Rule
from wakeful.contracts.workflows import GraphCode, WorkflowReference
from wakeful.decisions.workflows.graph_planner import GraphCorrection, judged
from wakeful.engine.run_request import RunRequest
from wakeful.engine.workflow_parts import editor_tools, workflow_registry
from wakeful.engine.workflow_registry import WorkflowRegistry
from wakeful.providers.scripted import ScriptedModel
from wakeful.service.workflows.runs import run_workflow
from wakeful.store.memory import MemoryStore
from wakeful.system import UniqueIds
from wakeful.testing.fixed_parts import FixedClock
from wakeful.tools.workflows import BUILD_WORKFLOW


class Verdict(BaseModel):
    score: int


@tool(effect="pure")
def weigh(order: str, grams: bool = False) -> int:
    """What an order weighs."""
    return 7


@tool
def burn(order: str) -> str:
    """Burn it."""
    return "burnt"


def agents() -> tuple[Agent[Any, Any], ...]:
    return (
        Agent("writer", ScriptedModel(["text"]), "You write.\n\nBriefly."),
        Agent("judge", ScriptedModel(["{}"]), output_type=Verdict),
    )


def shop() -> Agent[Any, Any]:
    policy = GatePolicy(rules=(Rule(match="burn", decision="deny", reason="nothing is burnt"),))
    return Agent("shop", ScriptedModel(["done"]), tools=[weigh, burn], policy=policy)


def registry(store: MemoryStore | None = None) -> WorkflowRegistry:
    real = runtime_of(store)
    return WorkflowRegistry(real.store, real.clock, real.ids, TYPES.values())


def runtime_of(store: MemoryStore | None = None) -> Any:
    return new_engine(store or MemoryStore(), clock=FixedClock())


@pytest.mark.spec("LOOP-WF-08")
async def test_a_registry_lists_node_types_and_keeps_named_workflows_by_revision() -> None:
    found = await workflow_registry(runtime_of(), shop(), agents())
    types = {(each.kind, each.ref): each for each in found.list_node_types()}
    assert set(types) == {
        ("approval", "wakeful/ask_person"),
        ("tool", "weigh"),
        ("tool", "burn"),  # the policy forbids it: that fails its node, and does not hide it
        ("agent", "writer"),
        ("agent", "judge"),
    }
    assert types["tool", "weigh"].input_schema == weigh.declaration.input_schema
    assert types["agent", "writer"].description == "You write. Briefly."
    assert types["agent", "writer"].output_schema == {"type": "string"}
    verdict = types["agent", "judge"].output_schema
    assert verdict is not None and set(verdict["properties"]) == {"score"}
    assert found.get_node_type("weigh") == types["tool", "weigh"]
    assert found.get_node_type("weigh", "agent") is None
    assert found.get_node_type("poet") is None

    kept = registry()
    first = await kept.save(graph())
    second = await kept.save(graph(description="changed"))
    assert first == second
    newest, oldest = await kept.get(first), await kept.get(first, 1)
    assert (newest.revision, newest.graph) == (2, graph(id=first, description="changed"))
    assert (oldest.revision, oldest.graph) == (1, graph(id=first))
    other = await kept.save(graph(name="another"))
    assert [each.name for each in await kept.list()] == ["another", "digest"]
    await kept.delete(other)
    assert await kept.list() == [newest]
    with pytest.raises(WorkflowNotFound, match="there is no workflow"):
        await kept.get(other)


async def test_a_graph_that_is_invalid_is_not_saved_and_every_problem_is_told() -> None:
    kept = registry()
    wrong = graph(outputs={"text": {"node": "nobody"}}, required_inputs=[])
    with pytest.raises(InvalidWorkflow, match="has 2 problems") as refused:
        await kept.save(wrong)
    assert refused.value.problems == kept.problems(wrong)
    assert "unknown_output at outputs.text.node" in refused.value.hint
    assert await kept.list() == []


@pytest.mark.spec("LOOP-WF-09")
async def test_whatever_is_wrong_with_a_graph_it_is_neither_saved_nor_given_back_nor_run() -> None:
    store = MemoryStore()
    real, kept = runtime_of(store), registry(store)
    found = set()
    too_large = ({"nodes": [{"id": f"n{at}", "kind": "approval"} for at in range(65)]}, ("too_large", "nodes"))
    for changes, problem in (*PROBLEMS, too_large):
        wrong = graph(**changes)
        with pytest.raises(InvalidWorkflow) as refused:
            await kept.save(wrong)
        assert [(each.code, each.path) for each in refused.value.problems] == [problem]
        found.add(problem[0])
        built = judged(wrong.model_dump_json(), TYPES, 0)
        assert isinstance(built, GraphCorrection) and built.problems == refused.value.problems
        with pytest.raises(InvalidWorkflow) as not_run:
            await run_workflow(real, kept, wrong, RunRequest(shop(), ""), {"topic": "snow"})
        assert not_run.value.problems == refused.value.problems
    assert found == set(get_args(GraphCode)) - {"invalid_graph"}
    cycle = kept.problems(graph(edges=edges(edge("publish", "write", "instructions"))))
    assert set(cycle[0].nodes) == {"write", "ask", "publish"}
    assert (await store.workflows(), await store.turns()) == ([], [])


async def test_without_the_check_it_would_be() -> None:
    """The inversion: it is the check that keeps an invalid graph out, and nothing further down."""

    class Careless(WorkflowRegistry):
        def check(self, graph: Any) -> None:
            pass

    real = runtime_of()
    kept = Careless(real.store, real.clock, real.ids, TYPES.values())
    await kept.save(graph(outputs={"text": {"node": "nobody"}}))
    assert len(await kept.list()) == 1


async def test_a_workflow_is_found_by_its_name_and_by_its_id() -> None:
    kept = registry()
    saved = await kept.keep(graph())
    await kept.keep(graph(id=saved.workflow_id, name="weekly"))
    assert (await kept.find("weekly")).revision == 2
    assert (await kept.find(saved.workflow_id, 1)).name == "digest"
    with pytest.raises(WorkflowNotFound, match="has no revision 3") as missing:
        await kept.find("weekly", 3)
    assert missing.value.hint == "its newest is 2"
    with pytest.raises(WorkflowNotFound) as missing:
        await kept.find("digest")
    assert missing.value.hint == "There are: weekly"
    with pytest.raises(WorkflowNotFound):
        await kept.delete("wf_9")


async def test_what_is_kept_under_a_key_is_kept_once() -> None:
    kept = registry()
    first = await kept.keep(graph(), key="call_1")
    assert await kept.keep(graph(), key="call_1") == first
    assert first.reference == WorkflowReference(
        workflow_id=first.workflow_id, revision=1, name="digest", node_count=5, edge_count=6
    )


async def test_what_a_model_builds_takes_nobody_elses_place() -> None:
    kept = registry()
    mine = await kept.keep(graph())
    built = await kept.keep_built(graph(description="of a model"), editing=None, key="call_1")
    assert (built.name, built.revision) == ("digest (2)", 1)
    assert built.workflow_id != mine.workflow_id
    assert await kept.get(mine.workflow_id) == mine
    # After a kill the same call finds what it saved.
    assert await kept.keep_built(graph(description="of a model"), editing=None, key="call_1") == built
    # What is being edited is what it may change.
    edited = await kept.keep_built(graph(description="edited"), editing=mine.workflow_id, key="call_2")
    assert (edited.workflow_id, edited.revision, edited.name) == (mine.workflow_id, 2, "digest")


async def test_by_its_name_alone_it_would() -> None:
    """The inversion: saving as people do makes it a revision of theirs."""
    kept = registry()
    mine = await kept.keep(graph())
    assert (await kept.keep(graph(description="of a model"))).workflow_id == mine.workflow_id


async def test_a_stored_graph_that_cannot_be_read_is_named() -> None:
    store = MemoryStore()
    await store.save_workflow("odd", json.dumps({"name": "odd"}), new_id="wf_1", created_at=0)
    with pytest.raises(InvalidWorkflow, match="revision 1 of the workflow 'odd' cannot be read"):
        await registry(store).get("wf_1")


async def test_two_agents_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidConfig, match="two agents are called 'writer'"):
        await workflow_registry(runtime_of(), None, (*agents(), agents()[0]))


def test_build_workflow_is_offered_in_an_editor_with_a_registry(caplog: pytest.LogCaptureFixture) -> None:
    there = WorkflowRegistry(MemoryStore(), FixedClock(), UniqueIds(), [SEARCH, PUBLISH])
    assert editor_tools("editor", there) == (BUILD_WORKFLOW,)
    assert editor_tools("thread", there) == ()
    with caplog.at_level(logging.WARNING, "wakeful.workflows"):
        assert editor_tools("thread", None) == ()
        assert caplog.records == []
        assert editor_tools("editor", None) == ()
    assert "build_workflow is left out" in caplog.text


def test_build_workflow_takes_an_objective_and_is_judged_as_a_change_in_an_editor() -> None:
    assert BUILD_WORKFLOW.permission == "editor_mutate"
    assert not BUILD_WORKFLOW.parallel_safe and not BUILD_WORKFLOW.is_read_only
    assert set(BUILD_WORKFLOW.input_schema["properties"]) == {"objective"}
