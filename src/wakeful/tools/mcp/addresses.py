"""Which addresses a server's URL may lead to.

A name is looked up, every address it has is judged, and the connection goes to the address that was judged: a name that
changes its mind in between leads nowhere else. Loopback and private networks are for servers whose owner said so;
link-local addresses, where machines keep their metadata, are for nobody. What an address is stands in
`decisions.network_addresses`.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias
from urllib.parse import urlsplit

from wakeful.decisions.network_addresses import Address, is_loopback, kind_of

Lookup: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]


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
    match kind_of(address):
        case "link_local":
            return "a link-local or metadata address"
        case "nobody":
            return "no address of a server"
        case "global":
            return None
        case "loopback" | "private" as kind:
            return None if private else f"a {kind} address"


def _names_this_machine(host: str) -> bool:
    return host == "localhost" or is_loopback(host)


def _default_port(scheme: str) -> int:
    return 443 if scheme == "https" else 80


async def _looked_up(host: str, port: int) -> Sequence[str]:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]
