"""The audit entry of one tool call: hashes and status, never parameters or results."""

from typing import Literal

from wakeful.contracts.values import Value


class ToolAudit(Value):
    """What generic observers and exports receive about a call."""

    schema_version: Literal[1] = 1
    type: Literal["tool_call"] = "tool_call"
    turn_count: int
    tool_name: str
    tool_call_id: str
    tool_source: str | None = None
    """Who provides the tool, when the declaration says so."""
    parameters_sha256: str
    """Of the redacted parameters: it does not depend on a secret."""
    parameters_redacted: Literal[True] = True
    success: bool
    result_status: Literal["success", "error"]
    result_sha256: str
    """Of the redacted result or error, with status and metadata."""
    error_type: str | None = None
