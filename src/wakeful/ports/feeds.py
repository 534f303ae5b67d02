"""Feeds: whoever follows a stream is woken, and looks for itself what is new."""

from typing import Literal, Protocol, TypeAlias

Feed: TypeAlias = Literal["all", "outsiders", "lease", "operator"]
"""What a watch follows. all: every fact. outsiders: facts that are not the owner's. lease: turns that were let go, and
owners that are gone. operator: rows of the feed over all agents, which `watch_feed` follows."""


class Watch(Protocol):
    """Wakes whoever follows an agent's stream. May wake for nothing; never misses a commit."""

    async def wait(self, timeout: float | None = None) -> None: ...

    def close(self) -> None: ...


class Feeds(Protocol):
    """Opens watches. What is committed after a watch was opened wakes it."""

    def watch(self, agent_id: str, *, thread_id: str | None = None, feed: Feed = "all") -> Watch:
        """Follow an agent's stream, or one thread of it."""
        ...

    def watch_wakes(self) -> Watch:
        """Follow what may become due, of every agent: whatever outsiders write, and threads that are let go."""
        ...

    def watch_feed(self) -> Watch:
        """Follow the feed over all agents: woken by commits that add rows to it, and by no others."""
        ...
