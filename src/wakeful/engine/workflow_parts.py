"""What workflows may be made of here: the tools of the agent that runs them and the agents that nodes may name.

With them a registry of the store is made, and an editor's turn is given the tool that builds workflows.
"""

import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.tools import ToolDeclaration
from wakeful.contracts.workflows import NODE_INPUTS, NodeType
from wakeful.engine.agent import Agent
from wakeful.engine.prepare.tools import registered
from wakeful.engine.run_request import Engine
from wakeful.engine.workflow_registry import WorkflowRegistry
from wakeful.tools.workflows import BUILD_WORKFLOW

EDITOR = "editor"
"""The kind of context in which workflows are built."""
MAX_DESCRIPTION = 300
_log = logging.getLogger("wakeful.workflows")


async def workflow_registry(
    engine: Engine, agent: Agent[Any, Any] | None = None, agents: Sequence[Agent[Any, Any]] = ()
) -> WorkflowRegistry:
    """The registry of a store: with the tools of the agent that runs workflows, and the agents that nodes may name.

    Tools that its policy forbids are listed, too: a node that names one fails when it runs.
    """
    types: list[NodeType] = []
    if agent is not None:
        async with AsyncExitStack() as stack:
            tools, _ = await registered(agent, engine.surroundings, stack)
            types += [tool_node(tool.declaration) for tool in tools.values() if tool.name != BUILD_WORKFLOW.name]
    twice = next((each.name for each in agents if [other.name for other in agents].count(each.name) > 1), None)
    if twice is not None:
        raise InvalidConfig(f"two agents are called {twice!r}, and a node could mean either", "leave one of them out")
    types += [agent_node(each) for each in agents]
    return WorkflowRegistry(engine.store, engine.clock, engine.ids, types)


def tool_node(declaration: ToolDeclaration) -> NodeType:
    """A tool as a node type."""
    return NodeType(
        kind="tool",
        ref=declaration.name,
        description=declaration.description,
        input_schema=declaration.input_schema,
    )


def agent_node(agent: Agent[Any, Any]) -> NodeType:
    """An agent as a node type, described by the beginning of what it is told."""
    told = agent.instructions if isinstance(agent.instructions, str) else ""
    return NodeType(
        kind="agent",
        ref=agent.name,
        description=" ".join(told.split())[:MAX_DESCRIPTION],
        input_schema=NODE_INPUTS["agent"],
        output_schema=agent.output_schema or {"type": "string"},
    )


def editor_tools(context_kind: str, registry: WorkflowRegistry | None) -> tuple[ToolDeclaration, ...]:
    """What an editor adds to a belt: `build_workflow`, where there is a registry to save to."""
    if context_kind != EDITOR:
        return ()
    if registry is None:
        _log.warning("an editor asks for workflows and no registry is wired: build_workflow is left out")
        return ()
    return (BUILD_WORKFLOW,)
