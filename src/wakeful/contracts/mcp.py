"""What people and programs are told about MCP servers."""

from typing import Literal

from wakeful.contracts.tools import Effect, PermissionClass
from wakeful.contracts.values import Value


class McpToolState(Value):
    """One tool of a server: offered, or not and why."""

    name: str
    """`mcp.<server>/<tool>`."""
    status: Literal["offered", "denied", "unavailable"]
    effect: Effect | None = None
    permission_class: PermissionClass | None = None
    reason: str = ""
    description: str = ""


class McpParkedTool(Value):
    """A tool that changed since it was accepted."""

    tool: str
    since: str
    """When what was accepted was first seen."""
    changed: str
    """When the change was seen."""
    description: str = ""
    """What it says of itself now."""


class McpServerState(Value):
    """One server of the owner's file, as far as it is known without starting it."""

    name: str
    kind: Literal["stdio", "http"]
    where: str
    """The program or the URL, without arguments and queries."""
    login: bool = False
    known_tools: int = 0
    parked: tuple[McpParkedTool, ...] = ()
