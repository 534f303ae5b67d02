"""Agents that are nodes: what the gate is told of such a call, and the child that it makes.

A node's agent is itself, with its own model, tools, instructions and policy; of the turn it has the budget, and the
session's policy holds for it besides its own.
"""

from collections.abc import Mapping
from typing import Any

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.content import BlobRef, Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.events import SubagentStarted
from wakeful.contracts.tools import ToolDeclaration
from wakeful.contracts.workflows import AGENT_CALL, NODE_INPUTS, WorkflowGraph
from wakeful.decisions.levels import Call
from wakeful.decisions.runtime_answers import finish_declaration
from wakeful.decisions.workflows.node_inputs import as_text

MUST_FINISH = (
    "End by calling finish_subtask with a result that fits its schema. When it is refused, correct the fields it names "
    "and call it again."
)


def agent_names(graph: WorkflowGraph) -> tuple[str, ...]:
    """The agents that a graph needs."""
    return tuple(dict.fromkeys(node.ref for node in graph.nodes if node.kind == "agent"))


def agent_declaration(name: str) -> ToolDeclaration:
    """A call of an agent, as a policy judges it."""
    return ToolDeclaration(
        name=AGENT_CALL + name,
        description=f"Have the agent {name} do something.",
        input_schema=NODE_INPUTS["agent"],
        effect="pure",
        permission_class="subagent",
        runtime_owner="subagent",
        interrupt_behavior="cancel",
    )


def as_child(config: TurnConfig) -> TurnConfig:
    """An agent's configuration where it is a node: one with an output type ends by `finish_subtask`."""
    if config.output_schema is None:
        return config
    told = f"{config.instructions}\n\n{MUST_FINISH}" if config.instructions else MUST_FINISH
    tools = (*config.tools, finish_declaration(config.output_schema))
    # It ends with a call, so that "no calls" cannot hold for it.
    choice = config.settings.get("tool_choice")
    settings = config.settings_below() if choice == "none" else config.settings
    return config.changed(instructions=told, tools=tools, settings=settings, output_schema=None)


def agent_child(
    call: Call, arguments: Mapping[str, Any], config_ref: BlobRef, output_schema: dict[str, Any] | None
) -> SubagentStarted:
    """The fact that makes the child."""
    words = as_text(arguments["input"])
    more = arguments.get("instructions")
    task = f"{more}\n\n{words}" if more else words
    return SubagentStarted(
        level_id=call.call_id,
        tool=call.part.name,
        title=call.call_id,
        depth=call.level.depth + 1,
        task=UserItem(parts=(Text(task),), origin="runtime"),
        output_schema=output_schema,
        config_ref=config_ref,
    )
