"""Abilities as the executor behind a host's tools: `ability` of a declaration names the one that its calls run.

A call goes the way of every ability call. What refuses it is the `error_type` of the result; an approval that is needed
stands in the result's place.
"""

from typing import Any

from wakeful.hosts.abilities.registry import Abilities, AbilityRefused
from wakeful.hosts.declarations.tool_declaration import RuntimeToolDeclaration
from wakeful.hosts.loop.tool_calls import ToolCall


class AbilityExecutor:
    """A ToolExecutor over the abilities of one host."""

    def __init__(self, abilities: Abilities) -> None:
        self._abilities = abilities

    async def execute(self, call: ToolCall, declaration: RuntimeToolDeclaration, context: dict[str, Any]) -> object:
        """The ability's result. What the ability itself raises is raised: it ran."""
        named = (declaration.model_extra or {}).get("ability")
        try:
            result = await self._abilities.call(named if isinstance(named, str) else "", call.parameters)
        except AbilityRefused as refused:
            return {"success": False, "error": refused.message, "error_type": refused.code}
        if isinstance(result, dict) and result.get("type") == "approval_required":
            return result
        return {"success": True, "result": result}
