"""`trigger_url`: an agent gets the address at which a program outside wakes it, and that it did is on record.

Only where a runtime is reachable from outside. No tool creates, rotates or revokes a trigger: people do.
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from wakeful.contracts.errors import ForTheCaller, ToolReported
from wakeful.contracts.tools import ToolError
from wakeful.tools.context import RunContext
from wakeful.tools.decorator import tool
from wakeful.tools.tool import Tool

NAME = "wakeful/trigger_url"
SECRET_WORDS = (
    "Whoever has trigger_url can wake you. Do not repeat, store or forward it, unless your task is to configure a "
    "program outside to wake you."
)
GiveUrl: TypeAlias = Callable[[str, str, str, str], Awaitable[dict[str, Any]]]
"""From agent, turn, trigger's name and purpose to what the model is told."""


def trigger_url_tool(give: GiveUrl) -> Tool[Any]:
    """The tool of one runtime."""

    async def trigger_url(ctx: RunContext[Any], purpose: str, name: str = "") -> dict[str, Any]:
        """Get the secret address at which a program outside can wake you. Each call is recorded.

        Args:
            purpose: Which program gets the address, and what it is to tell you.
            name: One of your named triggers. Leave it out for your default one.
        """
        try:
            return {**await give(ctx.agent, ctx.turn_id, name, purpose), "warning": SECRET_WORDS}
        except ForTheCaller as problem:
            error = ToolError(kind="unknown_trigger", message=problem.message, recovery_hint=problem.hint)
            raise ToolReported(error) from None

    made: Tool[Any] = tool(
        trigger_url, effect="pure", name=NAME, reads_private=True, child_safe=False, permission_class="safe"
    )
    return made
