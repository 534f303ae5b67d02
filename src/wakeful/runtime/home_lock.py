"""One runtime for a store at a time: a lock beside it, held by the process and let go by its death.

It guards the scheduler and not the store: a single run writes beside a runtime, and different threads may run anywhere.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wakeful.contracts.errors import StoreLocked

SUFFIX = ".runtime-lock"


@contextmanager
def runtime_lock(location: str) -> Iterator[None]:
    """Raises StoreLocked, naming the process, while another runtime has it."""
    if location == ":memory:":
        yield
        return
    path = Path(f"{location}{SUFFIX}")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 40).decode("ascii", "replace").strip() or "unknown"
            raise StoreLocked(
                f"another runtime runs the agents of {location} (process {holder})",
                "Send to it instead of starting a second one, or stop that process first.",
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)  # and with it the lock; the file stays, so that all who come lock the same one
