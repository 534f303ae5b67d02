"""Agents that came in bundles, by slug. They are no view of the log."""

from typing import NamedTuple, Protocol


class ImportedAgent(NamedTuple):
    """An agent that came in a bundle."""

    slug: str
    definition: str
    """JSON, as it was given: the store does not read it."""
    imported_at: int


class ImportedAgents(Protocol):
    """Agents that came in bundles, by slug. All writing is done with a barrier."""

    async def put(self, slug: str, definition: str, *, at: int, replace: bool) -> bool:
        """False, and nothing is written, when one is there and is not to be replaced."""
        ...

    async def get(self, slug: str) -> ImportedAgent | None: ...

    async def all(self) -> list[ImportedAgent]:
        """By slug."""
        ...
