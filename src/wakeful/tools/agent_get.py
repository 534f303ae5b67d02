"""The tool by which a model of a runtime looks at its agent, or at one that its agent made."""

from typing import Any, Final

from wakeful.contracts.errors import ToolReported
from wakeful.contracts.tools import ToolDeclaration, ToolError
from wakeful.ports.agent_board import AgentBoard
from wakeful.tools.call_runner import CallHandle, begin
from wakeful.tools.context import RunContext
from wakeful.tools.results import ToolOutput
from wakeful.tools.tool import DeclaredTool

AGENT_GET: Final = "agent_get"
DECLARATION: Final = ToolDeclaration(
    name=AGENT_GET,
    description="Look at how you stand, or an agent that you made: identity and lineage, status, what is waited for, "
    "the current work item, tasks, model, children at work, and how much was done so far. For the state of a single "
    "task use task_status.",
    input_schema={
        "type": "object",
        "properties": {
            "agent_id": {
                "type": "string",
                "minLength": 1,
                "maxLength": 200,
                "description": "An agent that you made. Leave it out to look at yourself.",
            }
        },
        "required": [],
        "additionalProperties": False,
    },
    effect="pure",
    permission_class="knowledge",
    child_safe=False,
)


class AgentGetTool(DeclaredTool):
    """`agent_get` with the board of its runtime."""

    def __init__(self, board: AgentBoard) -> None:
        self._declaration = DECLARATION
        self._board = board

    def start(self, ctx: RunContext[Any], arguments: dict[str, Any]) -> CallHandle:
        return begin(self._look, True, (ctx, arguments), {})

    async def _look(self, ctx: RunContext[Any], given: dict[str, Any]) -> ToolOutput:
        wanted = given.get("agent_id")
        found = await self._board.get(ctx.turn_id, wanted)
        if found is None:
            raise ToolReported(
                ToolError(
                    kind="agent_not_found",
                    message=f"you made no agent {wanted!r}",
                    recovery_hint="leave agent_id out to look at yourself; children lists those that you made",
                )
            )
        return ToolOutput(found.shown, untrusted=found.untrusted)
