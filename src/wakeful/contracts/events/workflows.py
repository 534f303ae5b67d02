"""Facts about a turn that runs a workflow. What becomes of its nodes is told by the facts of their calls."""

from typing import Any, ClassVar

from wakeful.contracts.content import BlobRef
from wakeful.contracts.events.base import CALL, TURN, Event, Need


class WorkflowStarted(Event):
    """The turn took up a workflow: each of its nodes is a call from here on. The graph is in the configuration."""

    kind: ClassVar[str] = "workflow.started"
    needs: ClassVar[tuple[Need, ...]] = TURN

    name: str
    workflow_id: str | None = None
    revision: int | None = None
    nodes: int
    titles: dict[str, str] = {}
    """What nodes are called for people, by id, where they are called anything."""


class WorkflowNodeResolved(Event):
    """All that a node depends on has succeeded, and these are its arguments."""

    kind: ClassVar[str] = "workflow.node_resolved"
    needs: ClassVar[tuple[Need, ...]] = CALL

    arguments: dict[str, Any] | None = None
    arguments_ref: BlobRef | None = None
    """Where they are, as JSON, when they are too large to stand here."""
