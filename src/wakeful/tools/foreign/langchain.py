"""LangChain's tools: `BaseTool` and what is made of it. Their own softening of errors is switched off."""

from typing import Any

from wakeful.tools.context import RunContext
from wakeful.tools.foreign.adoption import AdoptedTool


def take(given: Any) -> AdoptedTool:
    # A copy: the same object may go on serving its own framework.
    strict = given.model_copy(update={"handle_tool_error": False, "handle_validation_error": False})

    async def call(ctx: RunContext[Any], arguments: dict[str, Any]) -> Any:
        return await strict.ainvoke(arguments)

    shape = given.tool_call_schema
    schema = dict(shape if isinstance(shape, dict) else shape.model_json_schema())
    for repeated in ("title", "description"):
        schema.pop(repeated, None)
    return AdoptedTool(given.name, given.description, {"properties": {}, **schema}, call)
