"""Pydantic AI's `Tool`: its validator checks the arguments, and its ModelRetry asks the model to try differently."""

from importlib import import_module
from typing import Any

from pydantic import ValidationError

from wakeful.contracts.errors import ToolRetry
from wakeful.contracts.validation import path_of
from wakeful.tools.context import RunContext
from wakeful.tools.foreign.adoption import AdoptedTool, refuse
from wakeful.tools.schema import ArgumentsRefused


def take(given: Any) -> AdoptedTool:
    for asked, what in ((given.requires_approval, "an approval of its own"), (given.prepare, "a prepare function")):
        if asked:
            raise refuse(given.name, what)
    inner = given.function_schema

    async def call(ctx: RunContext[Any], arguments: dict[str, Any]) -> Any:
        library = import_module("pydantic_ai")
        # There is no model of theirs in this run: a tool that asks for it finds none.
        theirs = library.RunContext(
            deps=ctx.deps,
            model=None,
            usage=library.RunUsage(),
            tool_call_id=ctx.call_id,
            tool_name=given.name,
        )
        try:
            values = inner.validator.validate_python(arguments)
        except ValidationError as error:
            found = error.errors(include_url=False, include_input=False, include_context=False)[:10]
            raise ArgumentsRefused([(path_of(each["loc"]), each["msg"][:300]) for each in found]) from None
        try:
            return await inner.call(values, theirs)
        except library.ModelRetry as ask:
            raise ToolRetry(str(ask)) from None

    return AdoptedTool(given.name, given.description or "", inner.json_schema, call)
