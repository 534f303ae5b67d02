"""The calls of a turn as a tree: what a client shows of a turn that is over, without having seen it happen.

The nodes are a flat list; nesting is by `parent_id`. It is bounded in every direction: previews are cut, and what comes
after the last node that fits is counted and not listed. Words that were streamed inside a child are no part of it.
"""

from typing import Literal

from wakeful.contracts.values import Value

MAX_TREE_NODES = 2_000
"""How many calls a tree lists."""


class ExecutionTreeNode(Value):
    """One call, at whatever depth."""

    id: str
    """The id of the call."""
    parent_id: str | None
    """The call whose child made this one; None: the turn's own conversation."""
    name: str
    """The name of the tool."""
    title: str | None = None
    """Of a call that made a child: what the child is about."""
    args_preview: str | None = None
    """Redacted JSON, at most 500 characters."""
    result_preview: str | None = None
    """At most 500 characters of what it returned, or of what went wrong."""
    is_error: bool | None = None
    """None: it is under way."""
    duration_ms: int


class ExecutionTreeSnapshot(Value):
    """The calls of a turn, in the order in which they started: a parent stands before what is inside it."""

    version: Literal[1] = 1
    nodes: tuple[ExecutionTreeNode, ...] = ()
    omitted: int = 0
    """Calls that are not listed, because the list was full when they started."""


class ThreadMessage(Value):
    """One message of a thread as a client shows it after a reload."""

    role: Literal["user", "assistant"]
    content: str
    turn_id: str
    event_seq: int
    """The fact it stands for: the message that was admitted, or how the turn ended."""
    status: Literal["running", "completed", "incomplete", "error", "cancelled"] | None = None
    """Of an answer: how its turn stands. The text of a turn that did not complete is what there was of it."""
    execution_tree: ExecutionTreeSnapshot | None = None
    """Of an answer: what was done for it; None when no tool was called."""
