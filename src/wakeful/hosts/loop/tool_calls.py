"""A prepared tool call: what an executor gets once the declaration was found and the parameters were checked."""

from wakeful.contracts.jsonable import JsonDict
from wakeful.contracts.values import Value


class ToolCallMetadata(Value):
    """Where a call comes from."""

    source: str
    """Who provides the tool."""
    provider_tool_name: str
    """The name the model used: the canonical one or an alias of it."""
    tool_call_id: str


class ToolCall(Value):
    """One call, ready to be executed."""

    tool_name: str
    """The canonical name."""
    parameters: JsonDict = {}
    metadata: ToolCallMetadata
    id: str | None = None
    """The id the provider gave it, when it gave one."""
