"""Logs that leave a store and come into another, byte for byte: what was chained there is chained here."""

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple, Protocol


class StoredRow(NamedTuple):
    """One append as it is stored."""

    seq: int
    """Of its first event."""
    header: bytes
    body: bytes
    hash: bytes


class StoredLog(NamedTuple):
    """The log of one agent."""

    agent_id: str
    cut: int
    """The last event that retention has removed; 0: none."""
    cut_hash: bytes
    """What the first row is chained to."""
    rows: Sequence[StoredRow]


class LogTransfer(Protocol):
    """Reads whole logs, and takes them in."""

    async def stored_log(self, agent_id: str) -> StoredLog | None:
        """Verified against the chain. None for an agent that is not there. Raises StoreDamaged."""
        ...

    def referenced_blobs(self, logs: Sequence[StoredLog]) -> AsyncIterator[tuple[str, bytes]]:
        """Digest and bytes of every blob that these logs name, or that a blob names which they name."""
        ...

    def check(self, log: StoredLog) -> None:
        """Raises StoreDamaged for a log whose chain does not hold. Writes and reads nothing."""
        ...

    async def take_in(self, log: StoredLog) -> int:
        """Write the log of an agent that this store does not have, with all rows that follow from it; its events.

        Raises EventRefused when the agent, or one of its keys, turns or messages, is there already, and StoreDamaged
        for a log whose chain does not hold. Then nothing was written."""
        ...
