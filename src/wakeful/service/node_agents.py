"""The agents that a workflow's nodes name, made ready to work inside the run.

Each keeps its own model, tools, instructions and policy. What one of them would lose inside another's turn is refused
before the turn begins: its hooks, its deps, instructions that are made by a function.
"""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

from wakeful.agents.definition import Agent
from wakeful.agents.work import OtherAgent
from wakeful.contracts.errors import AgentMissing, NotBuiltYet
from wakeful.contracts.workflows import AGENT_CALL, WorkflowGraph
from wakeful.decisions.workflows.children import agent_names, as_child
from wakeful.service.configuring import config_of, window_of
from wakeful.service.requests import Runtime
from wakeful.service.toolbelt import toolbelt


def named_agents(graph: WorkflowGraph, agents: Sequence[Agent[Any, Any]]) -> list[Agent[Any, Any]]:
    """The agents of a graph's nodes. Raises AgentMissing, and NotBuiltYet for what cannot be kept inside a run."""
    there = {agent.name: agent for agent in agents}
    found = []
    for name in agent_names(graph):
        if name not in there:
            given = ", ".join(there) or "none"
            raise AgentMissing(
                f"the workflow {graph.name!r} needs the agent {name!r}, which was not supplied (given: {given})",
                "nothing was changed; pass it in agents=[...], or name it with --tools module:name",
            )
        agent = there[name]
        for what, is_there in (
            ("hooks", bool(agent.hooks)),
            ("deps", agent.deps is not None or agent.needs_deps),
            ("instructions that are a function", callable(agent.instructions)),
            ("planning_enabled", agent.planning_enabled),
        ):
            if is_there:
                raise NotBuiltYet(f"an agent with {what} as a node of a workflow ({name!r})")
        found.append(agent)
    return found


async def other_agents(
    runtime: Runtime, graph: WorkflowGraph, agents: Sequence[Agent[Any, Any]], stack: AsyncExitStack
) -> dict[str, OtherAgent]:
    """What each of them is and works with, by the name of the call that runs it. Sources stay open with the stack."""
    others = {}
    for agent in named_agents(graph, agents):
        now = runtime.clock.now() / 1_000_000
        belt = await toolbelt(agent, await runtime.store.rules(agent.name), now, runtime.surroundings, stack)
        models = [runtime.resolve_model(choice) for choice in (agent.model, *agent.fallbacks)]
        await runtime.pricing.ready(models)
        told = agent.instructions if isinstance(agent.instructions, str) else ""
        config = as_child(config_of(agent, belt, told)).changed(context_window=window_of(models[0]))
        ref = await runtime.store.put_blob(config.model_dump_json().encode(), "application/json")
        others[AGENT_CALL + agent.name] = OtherAgent(config, ref, agent.output_schema, models, belt.tools)
    return others
