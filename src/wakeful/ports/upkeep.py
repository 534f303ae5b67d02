"""Upkeep: the rows made again from the log, and the log held against what was written."""

from typing import NamedTuple, Protocol


class Damage(NamedTuple):
    """A place where stored bytes are not what was written."""

    agent_id: str
    seq: int
    what: str
    is_unproven: bool = False
    """Nothing is known to be missing or changed: the record that would show it is. A power cut and a full disk leave
    that behind."""


class Upkeep(Protocol):
    """Looks after what is stored."""

    async def rebuild_views(self) -> None:
        """Throw the rows away and make them again from the log."""
        ...

    async def verify(self) -> list[Damage]:
        """Read everything and check it against what was written."""
        ...
