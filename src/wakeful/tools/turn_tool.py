"""A tool whose code belongs to a turn: it reads and changes records of the runtime on behalf of that turn's agent."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from wakeful.contracts.tools import ToolDeclaration
from wakeful.tools.call_runner import CallHandle, begin
from wakeful.tools.context import RunContext
from wakeful.tools.tool import DeclaredTool

Answer: TypeAlias = Callable[[RunContext[Any], dict[str, Any]], Awaitable[Any]]
"""Carries out a call."""


class TurnTool(DeclaredTool):
    """A declaration, with what carries out its calls in one turn."""

    def __init__(self, declaration: ToolDeclaration, answer: Answer) -> None:
        self._declaration = declaration
        self._answer = answer

    def start(self, ctx: RunContext[Any], arguments: dict[str, Any]) -> CallHandle:
        return begin(self._answer, True, (ctx, arguments), {})
