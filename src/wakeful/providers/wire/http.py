"""One request over HTTP: sent in pieces, answered in events, and closed when nobody waits for it any more.

Whatever goes wrong is a ModelFailure that says where: while connecting, sending, waiting for an answer, or reading it.
Nothing is retried here and no redirect is followed: a key goes to the host it was meant for, once. The library is
loaded with the first request.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.models import Stage
from wakeful.providers.wire.failures import Peer, from_exception, from_status, invalid
from wakeful.providers.wire.loop_client import close_shared_client, shared_client
from wakeful.providers.wire.redaction import secrets_of, secrets_of_url
from wakeful.providers.wire.sse import EventTooLarge, SseEvent, SseParser
from wakeful.providers.wire.waits import Waits

if TYPE_CHECKING:
    import httpx2

__all__ = ["HttpResponse", "HttpTransport", "Timeouts", "close_shared_client", "shared_client"]

MAX_BODY_BYTES = 64 * 1024 * 1024
MAX_ERROR_BYTES = 64 * 1024
"""How much of a refusal is read: enough for its words."""
SEND_PIECE = 64 * 1024
STREAM_BEGINS = 60.0
"""Seconds until the first byte of a stream, where nothing else is said."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds."""

    connect: float = 10.0
    first_byte: float | None = None
    """From the request to its answer, and from there to the first piece of the body. None: 60 where the answer is
    streamed, else as long as the whole."""
    between_chunks: float = 120.0
    whole: float = 900.0
    background: float = 3600.0
    """For an answer that the provider makes by itself, however many exchanges it takes to hear of it."""
    linger: float = 0.1
    """For a stream to end after its last event, so that its connection can be used again."""

    @property
    def until_first_byte(self) -> float:
        return STREAM_BEGINS if self.first_byte is None else self.first_byte


class HttpResponse:
    """An answer that has begun, and is 2xx. Read it once: whole, or as events."""

    __slots__ = ("_deadline", "_ended", "_pieces", "_response", "_timeouts", "_waits", "headers", "peer", "status")

    def __init__(self, response: "httpx2.Response", peer: Peer, timeouts: Timeouts, deadline: float) -> None:
        self._response = response
        self._timeouts = timeouts
        self._deadline = deadline
        self._waits = Waits()
        self._ended = False
        self._pieces: AsyncGenerator[bytes, None] | None = None
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self.peer = peer
        """Who answers, as failures name it."""

    async def read(self) -> bytes:
        """The whole body."""
        pieces: list[bytes] = []
        size = 0
        async for piece in self._body():
            size += len(piece)
            if size > MAX_BODY_BYTES:
                raise invalid(self.peer, f"the answer is larger than {MAX_BODY_BYTES} bytes", stage="body")
            pieces.append(piece)
        return b"".join(pieces)

    async def events(self) -> AsyncGenerator[list[SseEvent], None]:
        """Events as they come, those of one piece together.

        That they end says nothing: the decoder knows whether the terminal event was there.
        """
        parser = SseParser()
        async with aclosing(self._body()) as pieces:
            async for piece in pieces:
                try:
                    events = parser.feed(piece)
                except EventTooLarge as error:
                    raise invalid(self.peer, str(error), stage="body") from None
                if events:
                    yield events
        if last := parser.end():
            yield last

    @property
    def is_whole(self) -> bool:
        """The body came to an end that its server had announced; a connection that is closed may have broken."""
        framed = "content-length" in self.headers or "transfer-encoding" in self.headers
        return self._ended and (framed or self._response.http_version == "HTTP/2")

    async def start_of_body(self, most: int) -> bytes:
        """As much of the body as there is, up to a limit; what cannot be read is left out."""
        pieces: list[bytes] = []
        size = 0
        try:
            async for piece in self._body():
                pieces.append(piece)
                size += len(piece)
                if size >= most:
                    break
        except ModelFailure:
            pass  # the status says what happened, with or without words
        return b"".join(pieces)[:most]

    async def end(self) -> None:
        """Give the server a moment to end what was read up to its last event."""
        if self._pieces is None or self._ended:
            return
        try:
            async with asyncio.timeout(self._timeouts.linger):
                async for _ in self._pieces:
                    pass
        except Exception:
            pass  # what was wanted is here; the connection is closed instead of kept

    async def close(self) -> None:
        """Nobody reads on."""
        self._waits.close()
        await self._response.aclose()

    async def _body(self) -> AsyncGenerator[bytes, None]:
        if self._pieces is None:
            response = self._response
            # What is compressed though nobody asked for it, or is here already, takes the longer way.
            longer = "content-encoding" in response.headers or response.is_stream_consumed
            self._pieces = response.aiter_bytes() if longer else response.aiter_raw()
        pieces, waits, now = self._pieces, self._waits, asyncio.get_running_loop().time
        allowed = self._timeouts.until_first_byte
        while True:
            problem: BaseException | None = None
            waits.begin(min(now() + allowed, self._deadline))
            try:
                piece = await anext(pieces)
            except StopAsyncIteration:
                self._ended = True
                return
            except asyncio.CancelledError:
                if not waits.was_too_long():
                    raise
                problem = TimeoutError()
            except Exception as error:
                problem = error
            finally:
                waits.end()
            if problem is not None:
                break
            yield piece
            allowed = self._timeouts.between_chunks
        # Raised outside the handler: the exception holds the request, and the request holds the key.
        raise from_exception(self.peer.provider, self.peer.model_ref, problem, stage="body", peer=self.peer)


class HttpTransport:
    """Sends requests to one provider. Without a client of its own it uses the one that its event loop shares."""

    def __init__(
        self,
        provider: str,
        *,
        timeouts: Timeouts | None = None,
        client: "httpx2.AsyncClient | None" = None,
        key_variable: str | None = None,
        known_models: Callable[[], Sequence[str]] = tuple,
        server: str = "",
    ) -> None:
        self._provider = provider
        self._timeouts = timeouts or Timeouts()
        self._client = client
        self._key_variable = key_variable
        self._known_models = known_models
        self._server = server

    def __repr__(self) -> str:
        return f"HttpTransport({self._provider!r})"

    def peer(self, url: str, headers: Mapping[str, str], model_ref: str | None = None) -> Peer:
        """Who is spoken to, as failures name it: what is secret in its headers and address is known to them."""
        secrets = (*secrets_of(headers), *secrets_of_url(url))
        return Peer(self._provider, model_ref, url, self._key_variable, self._known_models, secrets, self._server)

    @asynccontextmanager
    async def send(
        self,
        url: str,
        headers: Mapping[str, str],
        chunks: Sequence[bytes],
        *,
        model_ref: str | None = None,
        method: str = "POST",
    ) -> AsyncIterator[HttpResponse]:
        """An answer that has begun. Leaving the block ends the exchange; a cancelled one closes its connection.

        Raises ModelFailure for every other outcome than a 2xx answer.
        """
        peer = self.peer(url, headers, model_ref)
        deadline = asyncio.get_running_loop().time() + self._timeouts.whole
        response = await self._begun(peer, method, url, headers, chunks)
        answer = HttpResponse(response, peer, self._timeouts, deadline)
        try:
            if not 200 <= response.status_code < 300:
                # Its body is kept in no variable: it may repeat the key, and a traceback may show variables.
                raise from_status(
                    self._provider,
                    model_ref,
                    response.status_code,
                    response.headers,
                    await answer.start_of_body(MAX_ERROR_BYTES),
                    peer=peer,
                    now=time.time(),
                )
            yield answer
            await answer.end()
        finally:
            await answer.close()

    async def _begun(
        self, peer: Peer, method: str, url: str, headers: Mapping[str, str], chunks: Sequence[bytes]
    ) -> "httpx2.Response":
        progress = _Progress()
        try:
            client = self._client or shared_client()
            async with asyncio.timeout(min(self._timeouts.until_first_byte, self._timeouts.whole)):
                request = self._request(client, method, url, headers, chunks, progress)
                return await client.send(request, stream=True, follow_redirects=False)
        except Exception as error:
            problem = error
        # Raised outside the handler: the exception holds the request, and the request holds the key.
        raise from_exception(peer.provider, peer.model_ref, problem, stage=progress.stage, peer=peer)

    def _request(
        self,
        client: "httpx2.AsyncClient",
        method: str,
        url: str,
        headers: Mapping[str, str],
        chunks: Sequence[bytes],
        progress: "_Progress",
    ) -> "httpx2.Request":
        limits = {"connect": self._timeouts.connect, "read": None, "write": self._timeouts.between_chunks, "pool": None}
        all_headers = {"content-type": "application/json", "accept-encoding": "identity", **headers}
        if not chunks:
            all_headers.pop("content-type")
            content: Any = None
        else:
            all_headers["content-length"] = str(sum(map(len, chunks)))
            content = _in_pieces(chunks)
        return client.build_request(
            method,
            url,
            headers=all_headers,
            content=content,
            extensions={"timeout": limits, "trace": progress.told},
        )


class _Progress:
    """How far a request got, as its connection tells it."""

    __slots__ = ("stage",)

    def __init__(self) -> None:
        self.stage: Stage = "connect"

    async def told(self, what: str, info: Mapping[str, Any]) -> None:
        if what.endswith("send_request_headers.started"):
            self.stage = "send"
        elif what.endswith("send_request_body.complete"):
            self.stage = "headers"


async def _in_pieces(chunks: Iterable[bytes]) -> AsyncIterator[bytes]:
    """The body, never whole in one place: small chunks are gathered, because each piece costs a system call."""
    gathered: list[bytes] = []
    size = 0
    for chunk in chunks:
        gathered.append(chunk)
        size += len(chunk)
        if size >= SEND_PIECE:
            yield b"".join(gathered) if len(gathered) > 1 else chunk
            gathered.clear()
            size = 0
    if gathered:
        yield b"".join(gathered)
