"""No way out of the machine: a test that would reach the network fails with a message, not with a bill.

Loopback addresses and Unix sockets stay open. It guards Python's `socket`; a library that calls the system by itself is
not seen.
"""

import ipaddress
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from wakeful.decisions.network_addresses import is_loopback


class NetworkRefused(RuntimeError):
    """Something wanted to leave the machine. Not an OSError, so that no retry takes it for a bad connection."""


@contextmanager
def network_refused() -> Iterator[None]:
    """While this is open, whatever would leave the machine raises NetworkRefused."""
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex
    sendto, getaddrinfo = socket.socket.sendto, socket.getaddrinfo
    guards: list[tuple[Any, str, Any, Any]] = [
        (socket.socket, "connect", connect, _guarded(connect)),
        (socket.socket, "connect_ex", connect_ex, _guarded(connect_ex)),
        (socket.socket, "sendto", sendto, _guarded(sendto)),
        (socket, "getaddrinfo", getaddrinfo, _resolving_only_this_machine(getaddrinfo)),
    ]
    for owner, name, _, guard in guards:
        setattr(owner, name, guard)
    try:
        yield
    finally:
        for owner, name, original, _ in guards:
            setattr(owner, name, original)


def _guarded(call: Callable[..., Any]) -> Callable[..., Any]:
    """A socket method whose last argument is the address."""

    def guard(self: socket.socket, *arguments: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6) and arguments:
            _refuse_unless_here(arguments[-1][0], arguments[-1][1])
        return call(self, *arguments)

    return guard


def _resolving_only_this_machine(getaddrinfo: Callable[..., Any]) -> Callable[..., Any]:
    """Looking up a name asks the network, too."""

    def guard(host: Any, port: Any, *arguments: Any, **options: Any) -> Any:
        if host:  # none: an address to listen on
            name = host.decode() if isinstance(host, bytes) else str(host)
            if not _is_address(name):  # an address needs no look-up, and is judged when it is connected to
                _refuse_unless_here(name, port)
        return getaddrinfo(host, port, *arguments, **options)

    return guard


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _refuse_unless_here(host: str, port: object) -> None:
    if host in ("localhost", ""):
        return
    if _is_address(host):
        address = ipaddress.ip_address(host.partition("%")[0])
        if is_loopback(host) or int(address) == 0:
            return
    raise NetworkRefused(
        f"this test wanted to connect to {host}:{port}, and tests here stay on this machine. "
        f"Use wakeful.testing.scripted(...) or a recording; "
        f"the guard is the fixture no_network or the ini option wakeful_refuse_network."
    )
