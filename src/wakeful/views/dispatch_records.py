"""Runs that were handed to a target or to a package, and agents that came in bundles. Times are Unix seconds."""

from typing import Any, Literal

from wakeful.contracts.values import Value


class DispatchedRun(Value):
    """A run that was handed on. One that became a turn stands as the turn does."""

    run_id: str
    kind: Literal["target", "package"]
    session_id: str
    status: str
    created_at: float
    updated_at: float
    record: dict[str, Any] = {}
    """What was handed on, and what came of it, with secrets redacted."""


class DispatchLogLine(Value):
    """Something that happened to a run."""

    seq: int
    at: float
    event: str
    payload: dict[str, Any] = {}


class DispatchDetails(DispatchedRun):
    """A run with its log."""

    log: tuple[DispatchLogLine, ...] = ()


class ImportedAgentRecord(Value):
    """An agent that came in a bundle."""

    slug: str
    imported_at: float
    definition: dict[str, Any] = {}
