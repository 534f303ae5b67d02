"""A response that the provider makes by itself, followed to its end: by the stream it began with, by later streams that
go on where the last one broke, or by asking again and again.

Once the provider has taken a request on, nothing here sends it a second time. A connection that breaks costs a new one
and no new answer. Rule: its id is on disk before anything of it is waited for.
"""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

from pydantic_core import from_json

from wakeful.contracts.errors import ModelFailure, ResponseGone
from wakeful.contracts.models import RETRYABLE, ModelGlimpse, Reply
from wakeful.providers.openai_responses.decode import ResponsesDecoder, decode_response
from wakeful.providers.wire.addresses import joined, with_query
from wakeful.providers.wire.failures import Peer, interrupted, invalid
from wakeful.providers.wire.http import HttpResponse, Timeouts
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.sse import SseEvent

FIRST_PAUSE = 0.25
LONGEST_PAUSE = 5.0
"""Seconds between two questions; each is longer than the last, and a provider that says how long is believed."""
LONGEST_SAID = 60.0
UNFINISHED = ("queued", "in_progress")
_NOT_STREAMED = (400, 404, 405, 409, 422)
"""What a provider may answer when a response was not made to be streamed. It can still be asked for."""
_OVER_ALREADY = (400, 404, 409)
_ID = re.compile(r"[A-Za-z0-9_.:-]{1,256}")

T = TypeVar("T")
Accepted = Callable[[str], Awaitable[None]]


class EndpointLine(NamedTuple):
    """How the endpoint is spoken to: `send(method, url, body)`, and who it is."""

    url: str
    peer: Peer
    timeouts: Timeouts
    send: Callable[[str, str, Sequence[bytes]], AbstractAsyncContextManager[HttpResponse]]

    def of(self, response_id: str) -> str:
        return joined(self.url, f"/{quote(response_id, safe='')}")


class Background:
    """One background response. `created` makes it, `found` takes it up again; both give glimpses and then the reply."""

    def __init__(self, line: EndpointLine, names: WireNames, *, stream: bool, include: Sequence[str] = ()) -> None:
        self._line = line
        self._include = [("include[]", name) for name in include]
        self._names = names
        self._stream = stream
        self._decoder = ResponsesDecoder(names, line.peer)
        self._response_id: str | None = None
        self._place: int | None = None
        """The number of the last event that was read."""
        self._shows = stream
        """Glimpses are shown; not again those of a stream that has to be read from its beginning."""
        self._showed = False
        self._reply: Reply | None = None
        self._answered = False
        """The provider began to answer the newest question: it is there."""
        self._said_itself: ModelFailure | None = None
        """What the response says about itself is final; what happens to a connection is not."""
        self.request_id: str | None = None

    async def created(
        self, body: Sequence[bytes], accepted: Accepted | None
    ) -> AsyncGenerator[ModelGlimpse | Reply, None]:
        """Send the request. Raises ModelFailure."""
        try:
            async with self._line.send("POST", self._line.url, body) as answer:
                self.request_id = answer.headers.get("x-request-id")
                async with aclosing(self._read(answer, accepted)) as glimpses:
                    async for glimpse in glimpses:
                        yield glimpse
        except ModelFailure as failure:
            if self._response_id is None or self._is_final(failure):
                raise
        async with aclosing(self._followed()) as pieces:
            async for piece in pieces:
                yield piece

    async def found(self, response_id: str) -> AsyncGenerator[ModelGlimpse | Reply, None]:
        """The answer of a request that was sent before. Raises ResponseGone when the provider does not have it."""
        self._response_id = response_id
        async with aclosing(self._followed()) as pieces:
            async for piece in pieces:
                yield piece

    # --- to its end -------------------------------------------------------------------------------------------------

    async def _followed(self) -> AsyncGenerator[ModelGlimpse | Reply, None]:
        """Until there is a reply: nobody waits for ever, neither for the answer nor for a word from the provider."""
        timeouts, streams, pause = self._line.timeouts, self._stream, FIRST_PAUSE
        heard = time.monotonic()
        until = heard + timeouts.background
        while (reply := self._reply) is None:
            self._answered = False
            place, failure = self._place, None
            try:
                if streams:
                    async with aclosing(self._streamed_again()) as glimpses:
                        async for glimpse in glimpses:
                            yield glimpse
                else:
                    await self._poll()
            except ModelFailure as lost:
                failure = lost
            else:
                if self._is_over:
                    continue
            now = time.monotonic()
            heard = now if self._answered else heard
            pause = FIRST_PAUSE if self._place != place else pause
            if failure is not None:
                if streams and failure.status in _NOT_STREAMED:
                    streams = False
                    continue
                if failure.status == 404:
                    raise self._gone()
                if self._is_final(failure) or now - heard > timeouts.between_chunks:
                    raise failure
            if now > until:
                raise self._too_long()
            said = failure.retry_after if failure is not None else None
            await asyncio.sleep(pause if said is None else min(said, LONGEST_SAID))
            pause = min(pause * 2, LONGEST_PAUSE)
        yield reply

    @property
    def _is_over(self) -> bool:
        return self._reply is not None

    async def _streamed_again(self) -> AsyncGenerator[ModelGlimpse, None]:
        """The rest of the stream; all of it when it is not known where it broke."""
        assert self._response_id is not None
        query = [("stream", "true"), *self._include]
        if self._place is None:
            self._decoder = ResponsesDecoder(self._names, self._line.peer)
            self._shows = self._stream and not self._showed
        else:
            query.append(("starting_after", str(self._place)))
        url = with_query(self._line.of(self._response_id), query)
        async with self._line.send("GET", url, ()) as answer, aclosing(self._read(answer, None)) as glimpses:
            async for glimpse in glimpses:
                yield glimpse

    async def _poll(self) -> None:
        assert self._response_id is not None
        url = with_query(self._line.of(self._response_id), self._include)
        async with self._line.send("GET", url, ()) as answer:
            self._answered = True
            self._take_whole(await answer.read())

    # --- one answer of the endpoint ---------------------------------------------------------------------------------

    async def _read(self, answer: HttpResponse, accepted: Accepted | None) -> AsyncGenerator[ModelGlimpse, None]:
        """Events, or one body: what came counts, not what was asked for."""
        self._answered = True
        if "text/event-stream" not in answer.headers.get("content-type", ""):
            body = await answer.read()
            await self._accept(self._object(body).get("id"), accepted)
            self._take_whole(body)
            return
        decoder = self._decoder
        async with aclosing(answer.events()) as batches:
            async for batch in batches:
                for event in batch:
                    if event.data == b"[DONE]":
                        continue
                    said = self._object(event.data)
                    response = said.get("response")
                    if self._response_id is None and isinstance(response, dict):
                        await self._accept(response.get("id"), accepted)
                    for glimpse in self._fed(event):
                        if self._shows:
                            self._showed = True
                            yield glimpse
                    if isinstance(said.get("sequence_number"), int):
                        self._place = said["sequence_number"]
                if decoder.ended:
                    break
        if not decoder.ended:
            raise interrupted(self._line.peer, "the stream ended without its terminal event")
        self._reply = self._own(decoder.finish)

    async def _accept(self, response_id: Any, accepted: Accepted | None) -> None:
        if self._response_id is not None:
            return
        if not isinstance(response_id, str) or not _ID.fullmatch(response_id):
            raise invalid(self._line.peer, "a background response has no id under which it could be asked for")
        self._response_id = response_id
        if accepted is not None:
            await accepted(response_id)

    def _take_whole(self, body: bytes) -> None:
        """A response as it is now; its reply, when it is over."""
        if self._object(body).get("status") not in UNFINISHED:
            self._reply = self._own(lambda: decode_response(body, self._names, self._line.peer))

    def _fed(self, event: SseEvent) -> list[ModelGlimpse]:
        return self._own(lambda: self._decoder.feed(event))

    def _own(self, read: Callable[[], T]) -> T:
        try:
            return read()
        except ModelFailure as failure:
            self._said_itself = failure
            raise

    def _is_final(self, failure: ModelFailure) -> bool:
        return failure is self._said_itself or failure.kind not in RETRYABLE

    def _object(self, data: bytes) -> dict[str, Any]:
        try:
            value = from_json(data)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise invalid(self._line.peer, "the answer is not a JSON object")
        return value

    def _gone(self) -> ResponseGone:
        words = f"{self._line.peer.provider} does not have the response {self._response_id} (any more)"
        return ResponseGone(words, kind="stream_interrupted", stage="headers", retryable=True, status=404)

    def _too_long(self) -> ModelFailure:
        words = (
            f"{self._line.peer.provider}: the background response {self._response_id} was not finished after "
            f"{self._line.timeouts.background:g} s. Give it longer with Timeouts(background=...)"
        )
        return ModelFailure(words, kind="timeout", stage="body", retryable=False)


async def cancel(line: EndpointLine, response_id: str) -> None:
    """Nobody waits for it any more. Raises ModelFailure; one that is over already is no failure."""
    try:
        async with line.send("POST", joined(line.of(response_id), "/cancel"), ()) as answer:
            await answer.read()
    except ModelFailure as failure:
        if failure.status not in _OVER_ALREADY:
            raise
