"""`run_workflow`: a graph, or the name of one, in the manner of `run`."""

from pathlib import Path
from typing import Any

import pytest

from wakeful import Agent, KeyReused, run_workflow, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.errors import InvalidValue, InvalidWorkflow, WorkflowNotFound
from wakeful.contracts.workflows import WorkflowGraph
from wakeful.engine.workflow_parts import workflow_registry
from wakeful.providers.scripted import ScriptedModel

GRAPH: dict[str, Any] = {
    "name": "greeting",
    "inputs": {"prompt": {"type": "string"}},
    "required_inputs": ["prompt"],
    "nodes": [{"id": "greet", "kind": "tool", "ref": "greet"}, {"id": "say", "kind": "agent", "ref": "poet"}],
    "edges": [
        {"source": "$input", "source_output": "prompt", "target": "greet", "target_input": "name"},
        {"source": "greet", "target": "say", "target_input": "input"},
    ],
    "outputs": {"poem": {"node": "say"}},
}


class Greeter:
    """Counts what it does."""

    def __init__(self) -> None:
        self.greeted: list[str] = []

        @tool(effect="irreversible")
        def greet(name: str) -> str:
            """Say hello."""
            self.greeted.append(name)
            return f"Hello, {name}!"

        self.agent = Agent("greeter", ScriptedModel(["nobody asks"]), tools=[greet])
        self.poet = Agent("poet", ScriptedModel(["A poem."]))


async def test_a_graph_is_run_and_its_outputs_come_back() -> None:
    here = Greeter()
    for graph in (GRAPH, WorkflowGraph.model_validate(GRAPH)):
        outcome = await run_workflow(here.agent, graph, {"prompt": "Ann"}, agents=[here.poet])
        assert outcome.run.completed
        assert outcome.result is not None
        assert outcome.result.outputs == {"poem": "A poem."}
    by_prompt = await run_workflow(here.agent, GRAPH, prompt="Bob", agents=[here.poet])
    assert by_prompt.run.completed
    assert here.greeted == ["Ann", "Ann", "Bob"]


async def test_a_saved_one_goes_by_its_name_and_the_same_key_is_the_same_run(tmp_path: Path) -> None:
    here, place = Greeter(), str(tmp_path / "runs.db")
    with pytest.raises(WorkflowNotFound, match="greeting"):
        await run_workflow(here.agent, "greeting", store=place)
    async with opened_store(place) as store:
        registry = await workflow_registry(new_engine(store), here.agent, [here.poet])
        workflow_id = await registry.save(WorkflowGraph.model_validate(GRAPH))
    options: dict[str, Any] = {"agents": [here.poet], "store": place, "key": "ann"}
    first = await run_workflow(here.agent, "greeting", {"prompt": "Ann"}, **options)
    again = await run_workflow(here.agent, workflow_id, {"prompt": "Ann"}, **options)
    assert first.run.turn_id == again.run.turn_id
    assert here.greeted == ["Ann"], "it ran once"
    assert first.result == again.result
    assert first.result is not None and first.result.revision == 1
    with pytest.raises(KeyReused):
        await run_workflow(here.agent, "greeting", {"prompt": "Bob"}, **options)


async def test_what_is_wrong_is_wrong_before_anything_runs(tmp_path: Path) -> None:
    here, place = Greeter(), str(tmp_path / "runs.db")
    with pytest.raises(InvalidWorkflow, match="not a workflow"):
        await run_workflow(here.agent, {"name": "empty"}, store=place)
    with pytest.raises(InvalidWorkflow, match="unknown_ref"):
        await run_workflow(here.agent, GRAPH, {"prompt": "Ann"}, store=place)  # nobody handed the poet in
    with pytest.raises(InvalidValue, match="invalid_workflow_input: prompt"):
        await run_workflow(here.agent, GRAPH, agents=[here.poet], store=place)
    async with opened_store(place) as store:
        assert await store.turns() == []
    assert here.greeted == []
