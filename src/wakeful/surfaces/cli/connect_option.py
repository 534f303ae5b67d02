"""`--connect`: the daemon that a command was told to ask."""

from contextvars import ContextVar

connect_to: ContextVar[str | None] = ContextVar("connect_to", default=None)
"""Its value in this command."""
