"""Numbers of events as cursors: a reader says how far it has read, and the log has to reach that far.

A log that does not was restored from a backup, or is another one. Its next events have numbers that the reader believes
to have seen: it would miss them without a word.
"""

from wakeful.contracts.errors import CursorGone
from wakeful.ports.log import Log


async def check_reached(log: Log, agent: str, after: int) -> None:
    """Raises CursorGone where the log of the agent ends before the event that its reader has."""
    if after <= 0:
        return
    head = await log.head(agent)
    if after > head:
        raise CursorGone(
            f"the log of agent {agent!r} ends at event {head}: event {after} is of a newer store, or of another one",
            "Begin again with after=0, and without Last-Event-ID.",
        )
