"""What goes between a turn and the client whose tools it calls: one frame each way.

They are no view of the log: the arguments are the real ones, and who comes back is sent again what is still pending.
"""

from typing import Any, Literal

from wakeful.contracts.values import Value


class ClientToolCall(Value):
    """The client is to run a call of a tool that it declared."""

    type: Literal["client_tool_call"] = "client_tool_call"
    thread_id: str
    turn_id: str
    request_id: str
    """The same for the same call: a client that has run it does not run it again."""
    tool_call_id: str
    name: str
    """As the client named it: `ui_add_node`."""
    args: dict[str, Any]
    timeout_ms: int
    """What is left of the time when this is sent."""
    parent_id: str | None = None
    depth: int = 0


class ClientToolResult(Value):
    """What came of it."""

    type: Literal["client_tool_result"] = "client_tool_result"
    request_id: str
    ok: bool
    result: Any = None
    error: str | None = None
    """With `ok: false`: why."""
