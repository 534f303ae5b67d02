"""Calls of a service that reaches phones: JSON out, JSON in, and every failure without a secret in its words."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from wakeful.ports.channels import ChannelFailure
from wakeful.tools.mcp.addresses import AddressRefused
from wakeful.tools.vetted_requests import NotAnswered, ask_vetted, open_vetted

if TYPE_CHECKING:
    import httpx2

SECONDS = 20.0
LONGEST_PAUSE = 3600.0


@dataclass(slots=True)
class ServiceCalls:
    """Calls of one server."""

    server: str
    allow_private: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    hides: tuple[str, ...] = ()
    """Secrets that no words of a failure may hold."""

    @property
    def host(self) -> str:
        return urlsplit(self.server).hostname or ""

    async def ask(
        self, method: str, path: str, data: Mapping[str, Any] | None = None, *, seconds: float = SECONDS
    ) -> Any:
        """The JSON that is answered. Raises ChannelFailure."""
        body = b"" if data is None else json.dumps(data, ensure_ascii=False).encode("utf-8", "replace")
        headers = {**self.headers, **({"content-type": "application/json"} if body else {})}
        try:
            answer = await ask_vetted(
                method,
                self.server + path,
                headers=headers,
                body=body,
                allow_private=self.allow_private,
                seconds=seconds,
            )
        except (NotAnswered, AddressRefused, OSError) as problem:
            raise self.failure(problem) from None
        found = _json(answer.body)
        if not 200 <= answer.status < 300:
            raise self.refused(answer.status, answer.headers, found)
        return found

    @asynccontextmanager
    async def lines(self, path: str, *, seconds: float) -> AsyncIterator[AsyncIterator[Any]]:
        """The JSON lines of a stream, as they come; it ends when nothing comes for so long. Raises ChannelFailure."""
        try:
            async with open_vetted(
                "GET", self.server + path, headers=self.headers, allow_private=self.allow_private, seconds=seconds
            ) as response:
                if response.status_code != 200:
                    raise self.refused(response.status_code, response.headers, _json(await response.aread()))
                yield _lines(response)
        except (NotAnswered, AddressRefused, OSError) as problem:
            raise self.failure(problem) from None

    def refused(self, status: int, headers: Mapping[str, str], found: Any) -> ChannelFailure:
        said = found if isinstance(found, dict) else {}
        told = said.get("description") or said.get("error") or ""
        parameters = said.get("parameters")
        wanted = parameters.get("retry_after") if isinstance(parameters, dict) else headers.get("retry-after")
        words = f"{self.host} answered HTTP {status}" + (f": {str(told)[:200]}" if told else "")
        return ChannelFailure(
            self.hide(words), retry_after=_seconds(wanted), needs_person=status in (401, 403, 404, 409)
        )

    def hide(self, words: str) -> str:
        for secret in self.hides:
            words = words.replace(secret, "...") if secret else words
        return words

    def failure(self, problem: Exception) -> ChannelFailure:
        return ChannelFailure(self.hide(str(problem) or type(problem).__name__))


async def _lines(response: "httpx2.Response") -> AsyncIterator[Any]:
    async for line in response.aiter_lines():
        if (found := _json(line.encode())) is not None:
            yield found


def _json(body: bytes) -> Any:
    try:
        found = json.loads(body)
        if b"\\u" in body:  # half of a surrogate pair is no text, and nothing can keep it
            found = json.loads(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))
        return found
    except (ValueError, RecursionError):
        return None


def _seconds(wanted: Any) -> float:
    try:
        return min(max(0.0, float(wanted)), LONGEST_PAUSE)
    except (TypeError, ValueError):
        return 0.0
