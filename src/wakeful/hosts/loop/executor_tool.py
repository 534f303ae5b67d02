"""A host's tool as a tool of the runtime: it passes the same gate as every other, and its executor does the work."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from wakeful.contracts.errors import ToolAsks, ToolReported
from wakeful.contracts.tools import ToolDeclaration, ToolError
from wakeful.contracts.transcript import Message, normalise
from wakeful.hosts.declarations.tool_declaration import RuntimeToolDeclaration
from wakeful.hosts.loop.execution import APPROVAL, ToolExecutionCore
from wakeful.hosts.loop.tool_calls import ToolCall
from wakeful.tools.call_runner import CallHandle
from wakeful.tools.client_calls import ForClient
from wakeful.tools.context import RunContext
from wakeful.tools.function import Tool

CallContext = Callable[[RunContext[Any]], Awaitable[dict[str, Any]]]
"""What the executor gets as its context, made when the call begins."""
Prepare = Callable[[RuntimeToolDeclaration, str, dict[str, Any]], Awaitable[ToolCall | dict[str, Any]]]
"""(declaration, call id, the model's arguments) -> the call, or the failed result of one that is not made."""

Bound: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
"""(call id, a normalised result) -> the same, no larger than the host wants results to be."""


class ExecutorTool(Tool[Any]):
    """One declared tool. What its executor returned is kept whole in `returned`, by call."""

    def __init__(
        self,
        tool: RuntimeToolDeclaration,
        core: ToolExecutionCore,
        context: CallContext,
        prepare: Prepare,
        bound: Bound,
        returned: dict[str, dict[str, Any]],
        asked: dict[str, Message],
        for_client: Callable[[RuntimeToolDeclaration, dict[str, Any]], ForClient],
    ) -> None:
        self._tool = tool
        self._core = core
        self._context = context
        self._prepare = prepare
        self._bound = bound
        self._returned = returned
        self._asked = asked
        self._for_client = for_client

    @property
    def declaration(self) -> ToolDeclaration:
        return self._core.contract(self._tool)

    @property
    def name(self) -> str:
        return self._tool.name

    @property
    def needs_deps(self) -> bool:
        return False

    def for_client(self, arguments: dict[str, Any]) -> ForClient:
        return self._for_client(self._tool, arguments)

    def start(self, ctx: RunContext[Any], arguments: dict[str, Any]) -> CallHandle:
        # A plain executor runs on a thread, which nobody can stop: its late answer is still an answer.
        return CallHandle(
            asyncio.ensure_future(self._run(ctx, arguments)), is_thread=not self._core.is_async(self._tool)
        )

    async def _run(self, ctx: RunContext[Any], arguments: dict[str, Any]) -> str:
        core, tool = self._core, self._tool
        call = await self._prepare(tool, ctx.call_id, arguments)
        result = call if isinstance(call, dict) else await core.run(call, tool, await self._context(ctx))
        if result.get("status") == APPROVAL and APPROVAL in result:
            envelope = self._asked[ctx.call_id] = normalise(result[APPROVAL])
            raise ToolAsks(envelope.content if isinstance(envelope.content, str) else "")
        result = self._returned[ctx.call_id] = await self._bound(ctx.call_id, result)
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
