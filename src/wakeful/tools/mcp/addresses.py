"""Which addresses a server's URL may lead to.

A name is looked up, every address it has is judged, and the connection goes to the address that was judged: a name that
changes its mind in between leads nowhere else. Loopback and private networks are for servers whose owner said so;
link-local addresses, where machines keep their metadata, are for nobody.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias
from urllib.parse import urlsplit

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Lookup: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
METADATA = frozenset(ipaddress.ip_address(text) for text in ("169.254.169.254", "fd00:ec2::254", "100.100.100.200"))


class AddressRefused(Exception):
    """The URL leads where requests must not go."""


class Destinations:
    """Where requests for one server may go.

    A URL that names this machine itself (`localhost`, `127.0.0.1`, `::1`) was written by the owner and means it: that
    host and port are allowed, and no other private place. `allow_private` allows loopback and private networks.
    """

    def __init__(self, url: str, *, allow_private: bool = False, lookup: Lookup | None = None) -> None:
        parts = urlsplit(url)
        host = parts.hostname or ""
        self._own = (host, parts.port or _default_port(parts.scheme)) if _names_this_machine(host) else None
        self._allow_private = allow_private
        self._lookup = lookup or _looked_up

    async def addresses_of(self, host: str, port: int) -> list[str]:
        """What to connect to, one after the other. Raises AddressRefused, or OSError when the name has no address."""
        host = host.strip("[]")
        private = self._allow_private or (host, port) == self._own
        try:
            found: Sequence[str] = [str(ipaddress.ip_address(host))]
        except ValueError:
            found = await self._lookup(host, port)
        judged = [(text, _why_not(ipaddress.ip_address(text.partition("%")[0]), private)) for text in found]
        allowed = [text for text, reason in judged if reason is None]
        if allowed:
            return list(dict.fromkeys(allowed))
        if not judged:
            raise OSError(f"{host} has no address")
        raise AddressRefused(f"{host} is {judged[0][1]}, and no request goes there")


def _why_not(address: Address, private: bool) -> str | None:
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if inner is not None:
            return _why_not(inner, private)
        if address in ipaddress.ip_network("64:ff9b::/96"):
            return _why_not(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF), private)
    if address.is_link_local or address in METADATA:
        return "a link-local or metadata address"
    if address.is_multicast or address.is_unspecified or (address.is_reserved and not address.is_loopback):
        return "no address of a server"
    if private or address.is_global:
        return None
    return "a loopback address" if address.is_loopback else "a private address"


def _names_this_machine(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _default_port(scheme: str) -> int:
    return 443 if scheme == "https" else 80


async def _looked_up(host: str, port: int) -> Sequence[str]:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]
