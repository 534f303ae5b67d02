"""`run_workflow`: a workflow as a run of its own, from a program."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wakeful.contracts.budgets import Budget
from wakeful.contracts.errors import InvalidWorkflow
from wakeful.contracts.tools import Principal
from wakeful.contracts.values import JsonValue
from wakeful.contracts.workflows import SavedWorkflow, WorkflowGraph
from wakeful.service import Agent, Ask, Hook
from wakeful.surfaces.library.run_checks import StorePlace, check_store
from wakeful.surfaces.library.run_options import NO_CONTEXT, Approver, request_of

if TYPE_CHECKING:
    from wakeful.service.workflows.runs import WorkflowOutcome


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
    approver: Approver = None,
    hooks: Sequence[Hook | Ask] = (),
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
    check_store(request.agent, store, key=key, thread=thread, approver=approver, graph=graph)
    from wakeful.service import WorkflowTerms, workflow_registry
    from wakeful.service.workflows.runs import run_workflow as run_graph
    from wakeful.surfaces.library import late_imports

    request.workflows = WorkflowTerms(agents=tuple(agents))
    async with late_imports.opened_store(store) as opened:
        system = late_imports.new_engine(opened)
        registry = await workflow_registry(system, request.agent, agents)
        found: SavedWorkflow | WorkflowGraph = graph or await registry.find(str(workflow))
        return await run_graph(system, registry, found, request, inputs)


def _graph(given: WorkflowGraph | Mapping[str, Any]) -> WorkflowGraph:
    if isinstance(given, WorkflowGraph):
        return given
    from wakeful.service import graph_of

    graph = graph_of(dict(given))
    if isinstance(graph, WorkflowGraph):
        return graph
    raise InvalidWorkflow("the given value is not a workflow", graph)
