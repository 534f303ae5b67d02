"""A workflow as a turn: order, failure, approvals, budget, a kill, and that it replays."""

from typing import Any

import pytest

from wakeful import Agent, tool
from wakeful.bootstrap import runtime
from wakeful.contracts.workflows import WorkflowGraph
from wakeful.providers.scripted import ScriptedModel
from wakeful.service.replay import replay_turn
from wakeful.service.requests import RunRequest
from wakeful.service.workflow_runs import WorkflowOutcome, run_workflow
from wakeful.service.workflows import workflow_registry
from wakeful.store.memory import MemoryStore


def edge(source: str, target: str, target_input: str, source_output: str = "result") -> dict[str, Any]:
    return {"source": source, "source_output": source_output, "target": target, "target_input": target_input}


@tool(effect="pure")
def look_up(order: str) -> dict[str, Any]:
    """An order."""
    return {"order": order, "cents": 4200}


@tool(effect="keyed")
def refund(order: str, cents: int, note: str = "") -> str:
    """Pay back."""
    return f"{cents} for {order}{note}"


@tool(effect="pure")
def fail(order: str) -> str:
    """Fails."""
    raise ValueError("no such order")


def agent() -> Agent[Any, Any]:
    return Agent("shop", ScriptedModel(["nobody asks"]), tools=[look_up, refund, fail])


def graph(*, first: str = "look_up") -> WorkflowGraph:
    return WorkflowGraph.model_validate(
        {
            "name": "pay back",
            "inputs": {"order": {"type": "string"}},
            "required_inputs": ["order"],
            "nodes": [
                {"id": "pay", "kind": "tool", "ref": "refund"},
                {"id": "find", "kind": "tool", "ref": first},
                {"id": "other", "kind": "tool", "ref": "look_up", "inputs": {"order": "B1"}},
            ],
            "edges": [
                edge("$input", "find", "order", "order"),
                edge("$input", "pay", "order", "order"),
                edge("find", "pay", "cents", "result.cents"),
            ],
            "outputs": {"receipt": {"node": "pay"}},
        }
    )


async def ran(store: Any, drawn: WorkflowGraph, **inputs: Any) -> WorkflowOutcome:
    system = runtime(store)
    who = agent()
    outcome = await run_workflow(system, await workflow_registry(system, who), drawn, RunRequest(who, ""), inputs)
    row = await store.turn(outcome.run.turn_id)
    replayed = await replay_turn(store, row)
    assert replayed.identical, replayed.divergence
    return outcome


async def test_nodes_run_in_order_and_give_what_they_were_asked_for() -> None:
    done = await ran(MemoryStore(), graph(), order="A17")
    assert done.run.status == "completed"
    assert done.result is not None and done.result.status == "succeeded"
    assert done.result.outputs == {"receipt": "4200 for A17"}
    assert done.run.model_calls == 0


async def test_a_failed_node_fails_the_run() -> None:
    done = await ran(MemoryStore(), graph(first="fail"), order="A17")
    assert (done.run.status, done.run.stop_reason) == ("failed", "node_failed")
    assert done.result is not None
    assert {each.id: each.status for each in done.result.nodes} == {
        "find": "failed",
        "pay": "skipped",
        "other": "succeeded",
    }
