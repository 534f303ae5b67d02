"""Sends a notice: as JSON to a URL, or to a command on its standard input. Tried once; who asks decides about more.

A URL is vetted like every address that requests go to (`vetted_requests`). A command gets an environment without keys.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from wakeful.contracts.notices import NotifyTarget
from wakeful.tools.command_hooks import CommandFailed, CommandHook
from wakeful.tools.hooks import NoVerdict
from wakeful.tools.mcp.addresses import AddressRefused
from wakeful.tools.vetted_requests import NotAnswered, ask_vetted

SECONDS = 15.0


class NoticeSender:
    """Sends notices of a runtime."""

    def __init__(self, environment: Callable[[], Mapping[str, str]]) -> None:
        """`environment` is what commands get."""
        self._environment = environment

    async def send(self, target: NotifyTarget, notice: Mapping[str, Any]) -> str:
        """Blank: it arrived. Else what went wrong, in a sentence."""
        body = json.dumps(notice, ensure_ascii=False).encode("utf-8", "replace")
        if isinstance(target.to, str):
            return await _tried(_posted(target, target.to, body, str(notice["notice_id"])))
        return await _tried(self._run(target.to, body))

    async def ping(self, url: str, allow_private: bool) -> str:
        """Ask for an address, and look at nothing but whether it answers."""
        return await _tried(_pinged(url, allow_private))

    async def _run(self, command: tuple[str, ...], body: bytes) -> str:
        await CommandHook(command, str(Path.cwd()), self._environment).run(body)
        return ""


async def _tried(sending: Awaitable[str]) -> str:
    """What went wrong, whatever it was; blank: nothing."""
    try:
        async with asyncio.timeout(SECONDS):
            return await sending
    except TimeoutError:
        return f"no answer within {SECONDS:g} s"
    except (AddressRefused, NotAnswered, CommandFailed, NoVerdict, OSError) as problem:
        return str(problem) or type(problem).__name__


async def _pinged(url: str, allow_private: bool) -> str:
    answer = await ask_vetted("GET", url, headers={}, allow_private=allow_private)
    return "" if 200 <= answer.status < 300 else f"{urlsplit(url).hostname} answered HTTP {answer.status}"


async def _posted(target: NotifyTarget, url: str, body: bytes, notice_id: str) -> str:
    headers = {"content-type": "application/json", "idempotency-key": notice_id}
    answer = await ask_vetted("POST", url, headers=headers, body=body, allow_private=target.allow_private)
    return "" if 200 <= answer.status < 300 else f"{urlsplit(url).hostname} answered HTTP {answer.status}"
