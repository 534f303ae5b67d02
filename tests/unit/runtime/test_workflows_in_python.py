"""Workflows through `Runtime`: saved, run by an agent, taken up by the next runtime, stopped."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from wakeful import Agent, KeyReused, Runtime, tool
from wakeful.errors import AgentNotFound, AgentStopped, InvalidValue, InvalidWorkflow, WorkflowNotFound
from wakeful.testing import scripted

GRAPH: dict[str, Any] = {
    "name": "find",
    "inputs": {"order": {"type": "string"}},
    "required_inputs": ["order"],
    "nodes": [{"id": "found", "kind": "tool", "ref": "look_up"}, {"id": "say", "kind": "agent", "ref": "poet"}],
    "edges": [
        {"source": "$input", "source_output": "order", "target": "found", "target_input": "order"},
        {"source": "found", "target": "say", "target_input": "input"},
    ],
    "outputs": {"receipt": {"node": "found"}, "words": {"node": "say"}},
}


class Desk:
    """A tool that notes what it was asked for, and waits until it may answer."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.began, self.goes_on = asyncio.Event(), asyncio.Event()

        @tool(effect="pure")
        async def look_up(order: str) -> str:
            """Find an order."""
            self.asked.append(order)
            self.began.set()
            await self.goes_on.wait()
            return f"order {order}"

        poet = Agent("poet", scripted(["Found."]))
        self.agents: list[Agent[Any, Any]] = [Agent("desk", "scripted:demo", tools=[look_up]), poet]


async def test_a_saved_workflow_is_run_by_an_agent_and_its_outputs_can_be_read(tmp_path: Path) -> None:
    desk = Desk()
    desk.goes_on.set()
    async with Runtime(tmp_path, agents=desk.agents) as rt:
        saved = await rt.save_workflow("desk", GRAPH)
        assert [(each.graph.name, each.revision) for each in await rt.workflows()] == [("find", saved.revision)]
        run = await rt.start_workflow("desk", "find", {"order": "A17"}, key="a17")
        assert (await rt.answer(run.run_id)).completed
        done = await rt.workflow_run(run.run_id)
        assert done.status == "succeeded" and done.result is not None
        assert done.result.outputs == {"receipt": "order A17", "words": "Found."}
        again = await rt.start_workflow("desk", "find", {"order": "A17"}, key="a17")
        assert (again.run_id, desk.asked) == (run.run_id, ["A17"])
        assert [each.run_id for each in await rt.workflow_runs()] == [run.run_id]
        envelope = await rt.message(run.run_id)
        assert (envelope.delivery_surface, envelope.admission_context) == ("run_once", "local_process")
        with pytest.raises(KeyReused):
            await rt.start_workflow("desk", "find", {"order": "B2"}, key="a17")


async def test_a_run_that_a_runtime_left_is_taken_up_by_the_next_and_can_be_stopped(tmp_path: Path) -> None:
    desk = Desk()
    async with Runtime(tmp_path, agents=desk.agents, grace=0) as rt:
        await rt.save_workflow("desk", GRAPH)
        run = await rt.start_workflow("desk", "find", {"order": "A17"})
        await desk.began.wait()
    desk.goes_on.set()
    async with Runtime(tmp_path, agents=desk.agents) as rt:
        assert (await rt.answer(run.run_id)).completed
        await rt.pause("desk")
        other = await rt.start_workflow("desk", "find", {"order": "B2"})
        assert (await rt.cancel_workflow_run(other.run_id)).status == "cancelled"
        assert (await rt.cancel_workflow_run(run.run_id)).status == "succeeded"


async def test_what_cannot_be_run_is_refused_by_name(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=Desk().agents) as rt:
        broken = {"name": "broken", "nodes": [{"id": "x", "kind": "tool", "ref": "nothing_like_it"}]}
        with pytest.raises(InvalidWorkflow):
            await rt.save_workflow("desk", broken)
        await rt.save_workflow("desk", GRAPH)
        with pytest.raises(WorkflowNotFound):
            await rt.start_workflow("desk", "nothing")
        with pytest.raises(InvalidValue):
            await rt.start_workflow("desk", "find", {"order": 7})
        with pytest.raises(AgentNotFound):
            await rt.start_workflow("nobody", "find", {"order": "A17"})
        await rt.stop("desk")
        with pytest.raises(AgentStopped):
            await rt.start_workflow("desk", "find", {"order": "A17"})
        assert await rt.workflow_runs() == []
        assert (await rt.agent("desk")).refused == {"agent_stopped": 1, "invalid_workflow_input": 1}
