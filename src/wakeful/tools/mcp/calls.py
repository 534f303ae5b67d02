"""A tool of a server, as the gate sees any tool: started with arguments, ending in a result or in what is known of it.

When the answer does not come, what is told follows from what the tool does: of one that only reads nothing has changed,
of any other nobody knows.
"""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from wakeful.contracts.errors import OutcomeUnknown, ToolReported
from wakeful.contracts.tools import ToolDeclaration, ToolError
from wakeful.tools.call_runner import CallHandle, begin
from wakeful.tools.context import RunContext
from wakeful.tools.mcp.failures import (
    AnswerLate,
    AnswerLost,
    BadAnswer,
    NotReached,
    ServerProblem,
    ServerRefusal,
    ToolDrift,
)
from wakeful.tools.mcp.tool_list import ListedTool
from wakeful.tools.tool import DeclaredTool

if TYPE_CHECKING:
    from wakeful.tools.mcp.connection import OnProgress

MAX_PROGRESS_CHARS = 500
INVALID_PARAMS = -32602
Send: TypeAlias = "Callable[[ListedTool, dict[str, Any], float, OnProgress, str | None], Awaitable[Any]]"
"""Sends a call for a principal within so many seconds. Raises a ServerProblem."""


class McpTool(DeclaredTool):
    """One tool of one server."""

    def __init__(self, declaration: ToolDeclaration, listed: ListedTool, send: Send) -> None:
        self._declaration = declaration
        self._listed = listed
        self._send = send

    @property
    def fingerprint(self) -> str:
        """What this tool was when it was offered."""
        return self._listed.fingerprint

    def start(self, ctx: RunContext[object], arguments: dict[str, Any]) -> CallHandle:
        return begin(self._call, True, (ctx, arguments), {})

    async def _call(self, ctx: RunContext[object], arguments: dict[str, Any]) -> Any:
        def progressed(progress: float, total: float | None, message: str | None) -> None:
            ctx.progress((message or "")[:MAX_PROGRESS_CHARS], done=progress, total=total)

        seconds = self._declaration.timeout or 300.0
        if ctx.deadline is not None:
            seconds = max(0.0, min(seconds, (ctx.deadline - datetime.now(UTC)).total_seconds()))
        principal = ctx.principal.id if ctx.principal is not None else None
        try:
            return await self._send(self._listed, arguments, seconds, progressed, principal)
        except ServerProblem as found:
            problem = found
        # Raised outside the handler: what is below it may hold the request, and the request holds keys.
        raise self._told(problem)

    def _told(self, problem: ServerProblem) -> Exception:
        name, words = self.name, problem.message
        match problem:
            case NotReached():
                return ToolReported(
                    ToolError(
                        kind="server_unavailable",
                        message=f"The server of {name} could not be reached, and the call was not made: {words}",
                        recovery_hint="Do without it, or try again later.",
                        retryable=True,
                    )
                )
            case AnswerLost() if self._declaration.effect != "pure":
                return OutcomeUnknown(f"the server did not say what became of the call: {words}")
            case AnswerLost():
                kind = "timeout" if isinstance(problem, AnswerLate) else "server_lost"
                return ToolReported(ToolError(kind=kind, message=f"{name} gave no answer: {words}", retryable=True))
            case ToolDrift():
                return ToolReported(
                    ToolError(
                        kind="tool_changed", message=f"{name} was not called: {words}", recovery_hint="Do without it."
                    )
                )
            case BadAnswer():
                return ToolReported(ToolError(kind="invalid_result", message=f"{name}: {words}"))
            case ServerRefusal():
                return ToolReported(
                    ToolError(
                        kind="invalid_parameters" if problem.code == INVALID_PARAMS else "server_error",
                        message=words or "the server refused the call and did not say why",
                        details={"code": problem.code},
                    )
                )
        return ToolReported(ToolError(kind="server_error", message=words))
