"""Feeds: whoever follows a stream is woken, and looks for itself what is new, or is given what was committed here."""

from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

from wakeful.contracts.envelope import StoredFact

Feed: TypeAlias = Literal["all", "outsiders", "lease", "operator"]
"""What a watch follows. all: every fact. outsiders: facts that are not the owner's. lease: turns that were let go, and
owners that are gone. operator: rows of the feed over all agents, which `watch_feed` follows."""


class Watch(Protocol):
    """Wakes whoever follows an agent's stream. May wake for nothing; never misses a commit."""

    async def wait(self, timeout: float | None = None) -> None: ...

    def wake(self) -> None:
        """Wake whoever waits for it, without a commit: for something else that its reader waits for."""
        ...

    def facts(self) -> list[StoredFact] | None:
        """What this process has committed since it was asked last, or since the watch was opened, in order. It is
        woken for what comes after.

        None: the log has to be read. The watch keeps no facts, another process has written, or there were too many.
        """
        ...

    def call_on_commit(self, news: Callable[[], None]) -> None:
        """Call this at each commit, for whoever does something else than waiting. Not called after `close`."""
        ...

    def close(self) -> None: ...


class Feeds(Protocol):
    """Opens watches. What is committed after a watch was opened wakes it."""

    def watch(self, agent_id: str, *, thread_id: str | None = None, feed: Feed = "all", keeps: bool = False) -> Watch:
        """Follow an agent's stream, or one thread of it. `keeps`: the facts that are committed here are kept for its
        reader, up to a limit."""
        ...

    def watch_wakes(self) -> Watch:
        """Follow what may become due, of every agent: whatever outsiders write, and threads that are let go."""
        ...

    def watch_feed(self) -> Watch:
        """Follow the feed over all agents: woken by commits that add rows to it, and by no others."""
        ...
