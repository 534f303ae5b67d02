"""A tool of a client, from its declaration alone: for turns that are taken up without the program that declared it, for
declarations that came with a request, and for what a client's manifest names.
"""

from typing import Any

from wakeful.contracts.tools import ToolDeclaration
from wakeful.tools.call_runner import CallHandle
from wakeful.tools.client_calls import client_name, not_here, run_by_client
from wakeful.tools.context import RunContext
from wakeful.tools.tool import DeclaredTool


class ClientTool(DeclaredTool):
    """Calls of it become requests; there is no code to it."""

    def __init__(self, declaration: ToolDeclaration) -> None:
        client_name(declaration.name)
        self._declaration = run_by_client(declaration)

    def start(self, ctx: RunContext[object], arguments: dict[str, Any]) -> CallHandle:
        raise not_here(self.name)
