"""An agent as another agent's tool: a call of it is a child that works in the same turn.

The child is the agent itself, with its own model, instructions, tools, policy and hooks; of the turn it has the budget
and the deps, and the caller's policy holds for it besides its own. It sees its task and nothing of the conversation.
"""

from typing import TYPE_CHECKING, Any

from wakeful.contracts.tools import ToolDeclaration
from wakeful.contracts.workflows import AGENT_CALL
from wakeful.tools.call_runner import CallHandle
from wakeful.tools.context import RunContext
from wakeful.tools.function import DeclaredTool

if TYPE_CHECKING:
    from wakeful.engine.agent import Agent

SCHEMA = {
    "type": "object",
    "properties": {
        "input": {"type": "string", "description": "The task, in full: it sees nothing of this conversation."}
    },
    "required": ["input"],
    "additionalProperties": False,
}


class AgentTool(DeclaredTool):
    """What `Agent.as_tool()` gives. The loop takes its calls: there is nothing to start."""

    def __init__(self, agent: "Agent[Any, Any]", name: str | None, description: str | None) -> None:
        self.agent = agent
        self._declaration = ToolDeclaration(
            name=name or AGENT_CALL + agent.name,
            description=description or f"Have the agent {agent.name} do something, and get its answer.",
            input_schema=SCHEMA,
            effect="pure",  # as far as the call goes: what the child does has effects of its own
            permission_class="subagent",
            runtime_owner="subagent",
        )

    @property
    def needs_deps(self) -> bool:
        return self.agent.deps is None and self.agent.needs_deps

    def start(self, ctx: RunContext[Any], arguments: dict[str, Any]) -> CallHandle:
        raise AssertionError(f"{self.name} is a child of the turn and is never run by itself")
