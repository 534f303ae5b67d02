"""Sends a notice: as JSON to a URL, or to a command on its standard input. Tried once; who asks decides about more.

A URL is vetted like every address that requests go to: its name is looked up once, and the connection goes to the
address that was judged. It follows no redirect and uses no proxy. A command gets an environment without keys.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from wakeful.contracts.notices import NotifyTarget
from wakeful.tools.command_hooks import CommandFailed, CommandHook
from wakeful.tools.hooks import NoVerdict
from wakeful.tools.mcp.addresses import AddressRefused, Destinations

SECONDS = 15.0


class NoticeSender:
    """Sends notices of a runtime."""

    def __init__(self, environment: Callable[[], Mapping[str, str]]) -> None:
        """`environment` is what commands get."""
        self._environment = environment

    async def send(self, target: NotifyTarget, notice: Mapping[str, Any]) -> str:
        """Blank: it arrived. Else what went wrong, in a sentence."""
        body = json.dumps(notice, ensure_ascii=False).encode("utf-8", "replace")
        try:
            async with asyncio.timeout(SECONDS):
                if isinstance(target.to, str):
                    return await _posted(target, target.to, body, str(notice["notice_id"]))
                await CommandHook(target.to, str(Path.cwd()), self._environment).run(body)
                return ""
        except TimeoutError:
            return f"no answer within {SECONDS:g} s"
        except (AddressRefused, CommandFailed, NoVerdict, OSError) as problem:
            return str(problem) or type(problem).__name__


async def _posted(target: NotifyTarget, url: str, body: bytes, notice_id: str) -> str:
    import httpx2

    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    headers = {
        "host": parts.netloc.rpartition("@")[2],
        "content-type": "application/json",
        "content-length": str(len(body)),
        "accept-encoding": "identity",
        "idempotency-key": notice_id,
    }
    addresses = await Destinations(url, allow_private=target.allow_private).addresses_of(host, port)
    async with httpx2.AsyncHTTPTransport(trust_env=False) as transport:
        while True:
            request = httpx2.Request(
                "POST",
                httpx2.URL(url).copy_with(host=addresses.pop(0)),
                headers=headers,
                content=body,
                extensions={"sni_hostname": host},
            )
            try:
                response = await transport.handle_async_request(request)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as problem:
                if addresses:
                    continue
                return f"{host} cannot be reached: {str(problem) or 'no answer'}"
            except httpx2.TransportError as problem:
                return f"the connection broke: {str(problem) or type(problem).__name__}"
            await response.aclose()
            status = response.status_code
            return "" if 200 <= status < 300 else f"{host} answered HTTP {status}"
