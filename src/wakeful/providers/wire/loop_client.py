"""One HTTP client for each event loop, made with the first request and closed with the loop.

Requests of all providers share its connections and nothing else: no cookies, no headers, no redirects.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    import httpx2

_KEPT_IDLE = 100
_IDLE_SECONDS = 60.0

_clients: "WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[httpx2.AsyncClient, AsyncGenerator[None, None]]]"
_clients = WeakKeyDictionary()


def shared_client() -> "httpx2.AsyncClient":
    """The client of the running event loop; closed with the loop."""
    loop = asyncio.get_running_loop()
    held = _clients.get(loop)
    if held is None or held[0].is_closed:
        client = _new_client()
        held = _clients[loop] = (client, _closing(client))
        # A generator that was begun is closed when its loop shuts down: what asyncio.run does before it returns.
        try:
            held[1].asend(None).send(None)
        except StopIteration:
            pass
    return held[0]


async def close_shared_client() -> None:
    """Close the running loop's client now, for a loop that is not shut down in the usual way."""
    held = _clients.pop(asyncio.get_running_loop(), None)
    if held is not None:
        await held[1].aclose()


async def _closing(client: "httpx2.AsyncClient") -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        await client.aclose()


def _new_client() -> "httpx2.AsyncClient":
    from http.cookiejar import CookieJar, DefaultCookiePolicy

    import httpx2

    from wakeful._version import __version__

    # Its debug lines show a server's headers as they came, and a server may repeat a key in one.
    wire_log = logging.getLogger("httpcore2")
    if wire_log.level == logging.NOTSET:
        wire_log.setLevel(logging.INFO)
    return httpx2.AsyncClient(
        headers={"user-agent": f"wakeful/{__version__}"},
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),  # requests share connections and nothing else
        follow_redirects=False,
        limits=httpx2.Limits(
            max_connections=None, max_keepalive_connections=_KEPT_IDLE, keepalive_expiry=_IDLE_SECONDS
        ),
    )
