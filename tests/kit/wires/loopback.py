"""Ports of this machine: one where nobody listens for as long as a test needs it, and one for a server to come."""

import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def nobody_listens() -> Iterator[int]:
    """A port that is taken, so that no other program gets it, and that nobody listens at."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def free_port() -> int:
    """A port for a server that cannot choose one itself: none of those that the system gives to any connection."""
    while True:
        port = random.randrange(12_000, 32_000)
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
