"""How many connections a server holds, and how long one may take over what it wants.

Each is an open file, and a process has few of them: the store, the agents and the owner's own socket need theirs. So
connections of the network are bounded. When there are too many, the oldest that asks for nothing makes room: strangers
who only hold connections open push out each other, and nobody else.
"""

import asyncio
import resource
from typing import Any

MOST_FILES = 16_384
"""Open files that a server asks its system for."""
KEPT_FILES = 256
"""Of these, for everything but connections of the network."""
FEWEST = 32
HEAD_SECONDS = 15.0
"""How long a client may take for the head of a request, once it has begun with it; of its first one, at all."""


def raise_file_limit() -> int:
    """Have as many open files as the system lets this process have, up to a bound. How many that are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):  # some systems have a lower bound than they say
            return soft
        return wanted
    return MOST_FILES if soft == resource.RLIM_INFINITY else soft


class NetworkConnections:
    """The connections of the network that are open, the oldest first."""

    def __init__(self, files: int = MOST_FILES) -> None:
        self.most = max(FEWEST, files - KEPT_FILES)
        self._open: dict[BoundedConnection, None] = {}
        self.dropped = 0
        """How many had to go."""

    def enter(self, connection: "BoundedConnection") -> None:
        if len(self._open) >= self.most:
            self.dropped += 1
            idle = next((each for each in self._open if each.is_idle), connection)
            idle.drop()
            self._open.pop(idle, None)
            if idle is connection:
                return
        self._open[connection] = None

    def leave(self, connection: "BoundedConnection") -> None:
        self._open.pop(connection, None)


class BoundedConnection:
    """Mixed into a protocol of uvicorn: what is the same for every parser."""

    network = NetworkConnections()
    """Of the one server that a process has."""
    cycle: Any
    transport: Any
    loop: asyncio.AbstractEventLoop
    _head: asyncio.TimerHandle | None = None

    @property
    def is_idle(self) -> bool:
        """No request of it is being answered."""
        return self.cycle is None or bool(self.cycle.response_complete)

    def drop(self) -> None:
        self.transport.abort()

    def await_head(self) -> None:
        """From now on the client is late sometime, unless a whole head comes before."""
        if self._head is None:
            self._head = self.loop.call_later(HEAD_SECONDS, self._late)

    def look_at_head(self) -> None:
        """Something came: a whole head ends the waiting, and a piece of one begins it."""
        if self.is_idle:
            self.await_head()
        else:
            self.forget_head()

    def forget_head(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _late(self) -> None:
        self._head = None
        if self.is_idle and not self.transport.is_closing():
            self.transport.close()
