"""`run_workflow`: a workflow as a run of its own, from a program."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wakeful.agents.definition import Agent
from wakeful.contracts.budgets import Budget
from wakeful.contracts.errors import InvalidWorkflow
from wakeful.contracts.tools import Principal
from wakeful.contracts.values import JsonValue
from wakeful.contracts.workflows import SavedWorkflow, WorkflowGraph
from wakeful.surfaces.library.asking import NO_CONTEXT, StorePlace, request_of

if TYPE_CHECKING:
    from wakeful.service.workflow_runs import WorkflowOutcome


async def run_workflow(
    agent: Agent[Any, Any],
    workflow: str | WorkflowGraph | Mapping[str, Any],
    inputs: Mapping[str, JsonValue] | None = None,
    *,
    prompt: str = "",
    agents: Sequence[Agent[Any, Any]] = (),
    deps: Any = None,
    context: Mapping[str, JsonValue] = NO_CONTEXT,
    principal: Principal | None = None,
    store: StorePlace = None,
    thread: str | None = None,
    key: str | None = None,
    budget: Budget | None = None,
    approver: Any = None,
    hooks: Sequence[Any] = (),
) -> "WorkflowOutcome":
    """Run a workflow with an agent's tools until it is over or waits. `agents` are those that its nodes name.

    `workflow` is the name or id of one that is saved in the store, or a graph. `prompt` is its input of that name,
    where it declares one. With `key`, the same line also resumes the run after a crash and returns its stored result
    once it is finished. Raises WorkflowNotFound, InvalidWorkflow and InvalidValue before anything runs.
    """
    graph = None if isinstance(workflow, str) else _graph(workflow)
    request = request_of(
        agent,
        prompt,
        deps=deps,
        context=context,
        principal=principal,
        thread=thread,
        key=key,
        budget=budget,
        approver=approver,
        hooks=hooks,
    )
    request.agents = tuple(agents)
    from wakeful.service.workflow_runs import run_workflow as run_graph
    from wakeful.service.workflows import workflow_registry
    from wakeful.surfaces.library import engine

    async with engine.opened_store(store) as opened:
        system = engine.runtime(opened)
        registry = await workflow_registry(system, request.agent, request.agents)
        found: SavedWorkflow | WorkflowGraph = graph or await registry.find(str(workflow))
        return await run_graph(system, registry, found, request, inputs)


def _graph(given: WorkflowGraph | Mapping[str, Any]) -> WorkflowGraph:
    if isinstance(given, WorkflowGraph):
        return given
    from wakeful.decisions.workflows.reading import graph_of

    graph = graph_of(dict(given))
    if isinstance(graph, WorkflowGraph):
        return graph
    raise InvalidWorkflow("what was given is no workflow", graph)
