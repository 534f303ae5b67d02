"""A host's tool as a tool of the runtime: it passes the same gate as every other, and its executor does the work."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from wakeful.contracts.declarations import RuntimeToolDeclaration
from wakeful.contracts.errors import ToolReported
from wakeful.contracts.tools import ToolDeclaration, ToolError
from wakeful.surfaces.loop.execution import ToolExecutionCore
from wakeful.tools.context import RunContext
from wakeful.tools.function import Tool
from wakeful.tools.running import Running

CallContext = Callable[[RunContext[Any]], Awaitable[dict[str, Any]]]
"""What the executor gets as its context, made when the call begins."""


class ExecutorTool(Tool[Any]):
    """One declared tool. What its executor returned is kept whole in `returned`, by call."""

    def __init__(
        self,
        tool: RuntimeToolDeclaration,
        core: ToolExecutionCore,
        context: CallContext,
        called_as: Callable[[str], str],
        returned: dict[str, dict[str, Any]],
    ) -> None:
        self._tool = tool
        self._core = core
        self._context = context
        self._called_as = called_as
        self._returned = returned

    @property
    def declaration(self) -> ToolDeclaration:
        return self._core.contract(self._tool)

    @property
    def name(self) -> str:
        return self._tool.name

    @property
    def needs_deps(self) -> bool:
        return False

    def start(self, ctx: RunContext[Any], arguments: dict[str, Any]) -> Running:
        # A plain executor runs on a thread, which nobody can stop: its late answer is still an answer.
        return Running(asyncio.ensure_future(self._run(ctx, arguments)), is_thread=not self._core.is_async)

    async def _run(self, ctx: RunContext[Any], arguments: dict[str, Any]) -> str:
        core, tool = self._core, self._tool
        result = core.refusal(tool, arguments)
        if result is None:
            call = core.prepared(tool, self._called_as(ctx.call_id) or tool.name, arguments, ctx.call_id)
            result = await core.run(call, tool, await self._context(ctx))
        self._returned[ctx.call_id] = result
        if result["success"]:
            return json.dumps(result["result"], ensure_ascii=False, separators=(",", ":"))
        metadata = dict(result["metadata"])
        kind = metadata.pop("error_type", None)
        raise ToolReported(
            ToolError(
                kind=kind if isinstance(kind, str) and kind else "execution_failed",
                message=result["error"],
                details=metadata or None,
            )
        )
