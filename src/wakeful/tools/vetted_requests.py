"""HTTP requests to addresses that somebody wrote down: looked up once, judged, and sent to the address that was judged.

They follow no redirect and use no proxy. Plain http goes to addresses of this machine, and to others where the owner
allowed private ones.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from wakeful.tools.mcp.addresses import Destinations

if TYPE_CHECKING:
    import httpx2


class NotAnswered(Exception):
    """No answer came. The words name the host, and nothing of the path."""


class VettedAnswer(NamedTuple):
    """A whole answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


async def ask_vetted(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    body: bytes = b"",
    allow_private: bool = False,
    seconds: float = 15.0,
    most: int = 1_000_000,
) -> VettedAnswer:
    """One request and its whole answer. Raises NotAnswered, AddressRefused or OSError."""
    async with open_vetted(
        method, url, headers=headers, body=body, allow_private=allow_private, seconds=seconds
    ) as response:
        found = b""
        async for part in response.aiter_raw():
            found += part
            if len(found) > most:
                raise NotAnswered(f"{urlsplit(url).hostname} answered with more than {most:,} bytes")
        return VettedAnswer(response.status_code, response.headers, found)


@asynccontextmanager
async def open_vetted(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    body: bytes = b"",
    allow_private: bool = False,
    seconds: float = 15.0,
) -> "AsyncIterator[httpx2.Response]":
    """The head of an answer, whose body is read by whoever asked: within so many seconds a part."""
    import httpx2

    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    sent = {"host": parts.netloc.rpartition("@")[2], "accept-encoding": "identity", **headers}
    if body or method != "GET":
        sent["content-length"] = str(len(body))
    try:
        addresses = await Destinations(url, allow_private=allow_private).addresses_of(host, port)
    except OSError as problem:  # its name cannot be looked up
        why = problem.strerror or "its address is not known"
        raise NotAnswered(f"{host} cannot be reached: {why}") from None
    timeout = {"connect": 15.0, "read": seconds, "write": 15.0, "pool": 15.0}
    try:
        async with httpx2.AsyncHTTPTransport(trust_env=False) as transport:
            response = None
            while response is None:
                request = httpx2.Request(
                    method,
                    httpx2.URL(url).copy_with(host=addresses.pop(0)),
                    headers=sent,
                    content=body,
                    extensions={"sni_hostname": host, "timeout": timeout},
                )
                try:
                    response = await transport.handle_async_request(request)
                except (httpx2.ConnectError, httpx2.ConnectTimeout) as problem:
                    if not addresses:
                        raise NotAnswered(f"{host} cannot be reached: {str(problem) or 'no answer'}") from None
            try:
                yield response
            finally:
                await response.aclose()
    except httpx2.TransportError as problem:
        raise NotAnswered(f"the connection to {host} broke: {str(problem) or type(problem).__name__}") from None
