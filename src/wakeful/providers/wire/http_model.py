"""What models of every wire format do alike: find the key, send, read the answer, and say how the request was made.

A format brings its encoder and its decoder. A stream is left as soon as its last event came, and a reply is given only
when the decoder says that it is whole. Rule: a key is read when a request is made and kept nowhere, and one that was
meant for an address is never sent to another.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar
from urllib.parse import urlsplit

from wakeful.contracts.errors import InvalidConfig, ModelFailure
from wakeful.contracts.models import ModelGlimpse, Reply
from wakeful.contracts.tools import ToolDeclaration
from wakeful.ports import ModelRequest
from wakeful.providers.endpoints import Endpoint, Key
from wakeful.providers.prices import IN_CODE, Listed, Price
from wakeful.providers.profiles import ModelProfile, known_models, profile_of
from wakeful.providers.wire.failures import Peer, server_time
from wakeful.providers.wire.http import HttpTransport, Timeouts
from wakeful.providers.wire.limits import limits_of
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.redact import Secret, redact, secrets_of
from wakeful.providers.wire.sse import SseEvent
from wakeful.providers.wire.unsupported import no_background

if TYPE_CHECKING:
    import httpx2

MAX_REPORTED = 20
"""So many rewritten places of schemas are told with a reply."""
_ENCODERS_KEPT = 8


class WireEncoder(Protocol):
    """Requests of one model for one set of tools."""

    @property
    def names(self) -> WireNames: ...
    def body(self, request: ModelRequest) -> Sequence[bytes]: ...
    def left_out(self, request: ModelRequest) -> Sequence[str]: ...
    def changes(self, request: ModelRequest) -> Sequence[str]: ...


class WireDecoder(Protocol):
    """One stream."""

    @property
    def ended(self) -> bool: ...
    def feed(self, event: SseEvent) -> list[ModelGlimpse]: ...
    def finish(self) -> Reply: ...


EncoderT = TypeVar("EncoderT", bound=WireEncoder)


class HttpModel(ABC, Generic[EncoderT]):
    """A model at an endpoint."""

    path: ClassVar[str]
    """Where requests go, below the endpoint's address."""
    request_id_header: ClassVar[str] = "x-request-id"

    def __init__(
        self,
        model: str,
        there: Endpoint,
        *,
        api_key: str | Secret | None,
        profile: ModelProfile | Mapping[str, Any] | None,
        price: Price | None,
        timeouts: Timeouts | None,
        client: "httpx2.AsyncClient | None",
    ) -> None:
        self._model = model
        self._ref = f"{there.name}:{model}"
        self._endpoint = there
        self._key = Secret(api_key) if isinstance(api_key, str) and api_key else api_key or None
        self._url = f"{there.base_url}{self.path}"
        self._profile = (
            profile
            if isinstance(profile, ModelProfile)
            else profile_of(model, {**there.profile, **(profile or {})}, where=there.name)
        )
        self._price = there.prices.get(model) if price is None else Listed(price, IN_CODE)
        self._timeouts = timeouts
        self._client = client
        self._encoders: list[tuple[Sequence[ToolDeclaration], EncoderT]] = []

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._ref!r} at {self._endpoint.host})"

    @property
    def ref(self) -> str:
        return self._ref

    @property
    def profile(self) -> ModelProfile:
        """What this model can do, as far as it is known."""
        return self._profile

    @property
    def price(self) -> Listed | None:
        """What its owner says it costs; None leaves it to the seller's list."""
        return self._price

    @property
    def leaves_machine(self) -> bool:
        """Its address is another machine's."""
        host = urlsplit(self._endpoint.base_url).hostname or ""
        return host != "localhost" and not _is_loopback(host)

    def most_output(self, settings: Mapping[str, Any]) -> int | None:
        """As many tokens as an answer may have; None when nothing limits it."""
        for name in ("max_tokens", "max_output_tokens", "max_completion_tokens"):
            if isinstance(asked := settings.get(name), int):
                return asked
        return self._profile.max_output

    def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        """Glimpses, when the request streams; then the reply, the same one either way. Raises ModelFailure."""
        return self._exchange(request, self._encoder(request.tools))

    def refusal(self, settings: Mapping[str, Any]) -> ModelFailure | None:
        """What this format cannot do at all: said before anything is sent."""
        return no_background(self._endpoint.name, self._ref, f"the wire format {self._wire}", settings)

    def redacted(self, text: str) -> str:
        """A text without the key and what else of a request's headers is secret."""
        return redact(text, secrets_of(self._endpoint.auth_headers(self._key_now().secret)))

    # --- what a format brings ---------------------------------------------------------------------------------------

    @abstractmethod
    def _new_encoder(self, tools: Sequence[ToolDeclaration]) -> EncoderT: ...

    @abstractmethod
    def _decoder(self, names: WireNames, peer: Peer) -> WireDecoder: ...

    @abstractmethod
    def _whole(self, body: bytes, names: WireNames, peer: Peer) -> Reply:
        """The reply in an answer that came at once."""

    def _asks_for_stream(self, request: ModelRequest) -> bool:
        return request.stream

    def _headers(self, request: ModelRequest, encoder: EncoderT, secret: Secret | None) -> dict[str, str]:
        """The headers of a request: those of the endpoint, and what the format adds for this one."""
        return self._endpoint.auth_headers(secret)

    def _in_our_terms(self, reply: Reply, request: ModelRequest) -> Reply:
        """The reply to what was asked for, where something else had to be sent."""
        return reply

    # --- one exchange -----------------------------------------------------------------------------------------------

    async def _exchange(
        self, request: ModelRequest, encoder: EncoderT, body: Sequence[bytes] | None = None
    ) -> AsyncGenerator[ModelGlimpse | Reply, None]:
        """One request, sent once: `body`, or what the encoder makes of it."""
        if (refusal := self.refusal(request.settings)) is not None:
            raise refusal
        chunks = encoder.body(request) if body is None else body
        key = self._key_now()
        headers = self._headers(request, encoder, key.secret)
        streams = self._asks_for_stream(request)
        headers.setdefault("accept", "text/event-stream" if streams else "application/json")
        transport = self._transport(key)
        async with transport.send(self._url, headers, chunks, model_ref=self._ref) as answer:
            if _is_stream(answer.headers.get("content-type", ""), streams):
                decoder = self._decoder(encoder.names, answer.peer)
                shown = request.stream
                async with aclosing(answer.events()) as batches:
                    async for batch in batches:
                        for event in batch:
                            glimpses = decoder.feed(event)
                            if shown:
                                for glimpse in glimpses:
                                    yield glimpse
                        if decoder.ended:
                            break
                reply = decoder.finish()
            else:
                reply = self._whole(await answer.read(), encoder.names, answer.peer)
            request_id = answer.headers.get(self.request_id_header)
            limits = limits_of(answer.headers, server_time(answer.headers, None))
        if limits:
            reply = reply.model_copy(update={"limits": limits})
        yield self._given(reply, request, encoder, request_id)

    def _given(self, reply: Reply, request: ModelRequest, encoder: EncoderT, request_id: str | None) -> Reply:
        """A reply as it is handed on: with what is worth keeping about its request, and to what was asked for."""
        noted = self._noted(request, encoder, request_id)
        if noted:
            reply = reply.model_copy(update={"request_metadata": {**reply.request_metadata, **noted}})
        return self._in_our_terms(reply, request)

    def _transport(self, key: Key) -> HttpTransport:
        return HttpTransport(
            self._endpoint.name,
            timeouts=self._timeouts,
            client=self._client,
            key_variable=key.variable,
            known_models=known_models(self._wire),
        )

    @property
    def _wire(self) -> str:
        return self._endpoint.wire or "openai_chat"

    def _noted(self, request: ModelRequest, encoder: EncoderT, request_id: str | None) -> dict[str, Any]:
        """What is worth keeping about how the request was made; about its schemas, once in a turn."""
        said = {
            "request_id": request_id,
            "left_out": list(encoder.left_out(request)),
            "schema_changes": list(encoder.changes(request))[:MAX_REPORTED] if not request.answered else None,
        }
        return {name: value for name, value in said.items() if value}

    def _encoder(self, tools: Sequence[ToolDeclaration]) -> EncoderT:
        """The encoder of these tools: a turn's requests all have the same ones, and share what was encoded for them."""
        for known, encoder in self._encoders:
            if known is tools or known == tools:
                return encoder
        encoder = self._new_encoder(tools)
        self._encoders = [(tools, encoder), *self._encoders[: _ENCODERS_KEPT - 1]]
        return encoder

    def _key_now(self) -> Key:
        try:
            found = self._endpoint.key()
            # A key that was handed over may be the variable's own: then a message can name the variable.
            return found if self._key in (None, found.secret) else Key(self._key, None)
        except InvalidConfig as missing:
            if self._key is not None:
                return Key(self._key, None)
            words = f"{missing.message}. {missing.hint}" if missing.hint else missing.message
            raise ModelFailure(words, kind="auth_error", stage="connect") from None


def _is_stream(content_type: str, asked: bool) -> bool:
    """What came counts: some servers stream always, some never. Where it does not say, what was asked for does."""
    if "text/event-stream" in content_type:
        return True
    return asked and "json" not in content_type and "html" not in content_type


def _is_loopback(host: str) -> bool:
    """A name like `127.evil.example` is no address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
