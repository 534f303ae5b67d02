"""OpenAI Agents' `FunctionTool`. What raises is a failure here, not the friendly words its own runner makes of it."""

import json
from importlib import import_module
from typing import Any

from wakeful.tools.context import RunContext
from wakeful.tools.foreign.adoption import AdoptedTool, refuse


def take(given: Any) -> AdoptedTool:
    for asked, what in (
        (given.needs_approval, "an approval of its own"),
        (given.tool_input_guardrails, "guardrails on its input"),
        (given.tool_output_guardrails, "guardrails on its output"),
    ):
        if asked:
            raise refuse(given.name, what)
    # The invoker catches what the function raises and answers for it; what it wraps does not.
    invoke = getattr(given.on_invoke_tool, "_invoke_tool_impl", given.on_invoke_tool)

    async def call(ctx: RunContext[Any], arguments: dict[str, Any]) -> Any:
        text = json.dumps(arguments, ensure_ascii=False)
        theirs = import_module("agents.tool_context").ToolContext(
            ctx.deps, tool_name=given.name, tool_call_id=ctx.call_id, tool_arguments=text
        )
        return await invoke(theirs, text)

    return AdoptedTool(given.name, given.description, given.params_json_schema, call)
