"""Calls whose outcome nobody knows, until somebody has found out."""

from typing import Any, NamedTuple, Protocol

from wakeful.ports.tables import RowQuery, Rows, Table


class UnknownRow(NamedTuple):
    """A call whose outcome nobody knows: somebody has to find out."""

    call_id: str
    agent_id: str
    turn_id: str
    thread_id: str
    step: int
    tool: str
    arguments: dict[str, Any]
    """Redacted."""
    reason: str
    since: int
    seq: int
    """The event that said so."""


ALL_UNKNOWN = RowQuery(("since", "agent_id", "seq"), few="a row goes when somebody has found out")

UNKNOWN_OUTCOMES = Table(
    "unknown",
    UnknownRow,
    key=("turn_id", "call_id"),
    queries=(ALL_UNKNOWN,),
    order=("turn_id", "call_id", "agent_id", "seq", "thread_id", "step", "tool", "arguments", "reason", "since"),
    renamed={"tool": "tool_name", "arguments": "safe_args"},
)


class UnknownOutcomes(Rows, Protocol):
    """Reads which calls nobody knows the outcome of."""

    async def unknown(self) -> list[UnknownRow]:
        """Calls whose outcome is open, oldest first."""
        return await self.list_rows(UNKNOWN_OUTCOMES, ALL_UNKNOWN)
