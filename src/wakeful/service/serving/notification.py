"""Telling the system's manager of services that the process is ready, alive, and about to end (`sd_notify`)."""

import os
import socket
from collections.abc import Mapping
from contextlib import suppress


def notify(state: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Send a state such as `READY=1`. False: nobody wants to be told."""
    address = environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return False
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        sender.connect("\0" + address[1:] if address[0] == "@" else address)
        sender.sendall(state.encode())
        return True
    return False


def watchdog_seconds(environ: Mapping[str, str] = os.environ) -> float | None:
    """How often to say that it is alive; None: nobody listens."""
    limit, process = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", "")
    if not limit.isdigit() or int(limit) <= 0 or (process and process != str(os.getpid())):
        return None
    return int(limit) / 1_000_000 / 2
