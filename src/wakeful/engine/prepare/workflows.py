"""A turn that runs a workflow, or in which workflows are edited: what it has beside a conversation.

The agents that the graph names and what an editor needs are found when the turn is taken up. What would be lost inside
a run is refused before the turn begins.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from wakeful.contracts.errors import AgentMissing, NotBuiltYet
from wakeful.contracts.events import MessageAdmitted, WorkflowStarted
from wakeful.contracts.tools import ToolDeclaration
from wakeful.contracts.workflows import AGENT_CALL, SavedWorkflow, WorkflowGraph, WorkflowRun
from wakeful.decisions.workflows.children import agent_names
from wakeful.engine.admission import check_deps
from wakeful.engine.agent import Agent
from wakeful.engine.run_request import Engine, RunRequest, WorkflowTerms
from wakeful.engine.state_loader import loaded
from wakeful.engine.turn_work import WorkflowDesk
from wakeful.engine.workflow_parts import EDITOR, editor_tools, workflow_registry
from wakeful.engine.workflow_registry import WorkflowRegistry
from wakeful.ports import Blobs
from wakeful.tools.person import ask_person
from wakeful.tools.runtime_tools import AnsweredHere

MAX_NODE_TITLE = 200


class TurnAgent(NamedTuple):
    """The agent of a turn, with the tools that its workflow or its editor gives it."""

    agent: Agent[Any, Any]
    workflow: WorkflowRun | None = None
    """What the turn runs, when it is no conversation."""
    desk: WorkflowDesk | None = None
    """In an editor."""


async def turn_agent(engine: Engine, request: RunRequest, admitted: MessageAdmitted) -> TurnAgent:
    """Who works in the turn. Most turns run no workflow and edit none: for those it is the agent itself."""
    agent = request.agent
    if admitted.workflow_ref is None and admitted.editing is None:
        return TurnAgent(agent)
    workflow = await _workflow(engine.store, admitted)
    if workflow is not None and any(node.kind == "approval" for node in workflow.graph.nodes):
        agent = _with_person(agent)
    if admitted.editing is None:
        return TurnAgent(agent, workflow)
    registry = request.workflows.registry or await workflow_registry(engine, agent, request.workflows.agents)
    return TurnAgent(
        _with_answered_here(agent, editor_tools(EDITOR, registry)), workflow, _desk(registry, admitted.editing)
    )


def named_agents(
    graph: WorkflowGraph, agents: Sequence[Agent[Any, Any]], deps: Any = None
) -> dict[str, Agent[Any, Any]]:
    """The agents of a graph's nodes, by the name of the call. Raises AgentMissing, DepsMissing, and NotBuiltYet for
    what cannot be kept inside a run."""
    there = {agent.name: agent for agent in agents}
    found = {}
    for name in agent_names(graph):
        if name not in there:
            given = ", ".join(there) or "none"
            raise AgentMissing(
                f"the workflow {graph.name!r} needs the agent {name!r}, which was not supplied (given: {given})",
                "nothing was changed; pass it in agents=[...], or name it with --tools module:name",
            )
        agent = there[name]
        if agent.planning_enabled:
            raise NotBuiltYet(
                f"planning_enabled in an agent that is a node of a workflow ({name!r})",
                "the graph is the plan: give the node an agent without it",
            )
        check_deps(agent, deps, f"the workflow {graph.name!r}")
        found[AGENT_CALL + name] = agent
    return found


async def node_agents(terms: WorkflowTerms, graph: WorkflowGraph, deps: Any = None) -> dict[str, Agent[Any, Any]]:
    """The agents of a graph's nodes, by the name of the call: those that were handed over, and those that are found.
    Raises as `named_agents`."""
    found = await terms.find(graph) if terms.find is not None else ()
    return named_agents(graph, (*terms.agents, *found), deps)


def workflow_started(run: WorkflowRun) -> WorkflowStarted:
    """The workflow that a turn runs, as a fact: from there on its nodes are calls."""
    graph = run.graph
    titles = {node.id: node.title[:MAX_NODE_TITLE] for node in graph.nodes if node.title}
    return WorkflowStarted(
        name=graph.name, workflow_id=graph.id, revision=run.revision, nodes=len(graph.nodes), titles=titles
    )


async def _workflow(store: Blobs, admitted: MessageAdmitted) -> WorkflowRun | None:
    ref = admitted.workflow_ref
    return await loaded(store, ref.digest, WorkflowRun.model_validate_json) if ref is not None else None


def _with_person(agent: Agent[Any, Any]) -> Agent[Any, Any]:
    """The agent, able to ask a person: an approval of a workflow is such a question."""
    if any(tool.name == ask_person.name for tool in agent.tools):
        return agent
    return agent.changed(tools=(*agent.tools, *agent.given_sources, ask_person))


def _with_answered_here(agent: Agent[Any, Any], declared: Sequence[ToolDeclaration]) -> Agent[Any, Any]:
    """The agent with tools that the runtime answers, unless it has them from whoever made its belt."""
    there = {tool.name for tool in agent.tools if isinstance(tool, AnsweredHere)}
    added = [AnsweredHere(each) for each in declared if each.name not in there]
    return agent.changed(tools=(*agent.tools, *agent.given_sources, *added)) if added else agent


def _desk(registry: WorkflowRegistry, editing: str | None) -> WorkflowDesk:
    async def keep(graph: WorkflowGraph, key: str) -> SavedWorkflow:
        return await registry.keep_built(graph, editing=editing, key=key)

    return WorkflowDesk(registry.types, keep)
