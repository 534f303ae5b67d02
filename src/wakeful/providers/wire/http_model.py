"""What models of every wire format do alike: find the key, send, read the answer, and say how the request was made.

A format brings its encoder and its decoder. A stream is left as soon as its last event came, and a reply is given only
when the decoder says that it is whole. Rule: a key is read when a request is made and kept nowhere, and one that was
meant for an address is never sent to another.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from wakeful.contracts.content import File, Image, Thinking
from wakeful.contracts.conversation import AssistantItem
from wakeful.contracts.errors import InvalidConfig, ModelFailure
from wakeful.contracts.model_settings import ModelSettings
from wakeful.contracts.models import ModelGlimpse, ProviderLimit, Reply, TextDelta
from wakeful.contracts.setting_names import VENDORS
from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.answer_shapes import Unwrapper
from wakeful.ports import ModelRequest, RefusedAttachment
from wakeful.providers import price_list
from wakeful.providers.endpoints import Endpoint, Key, Wire
from wakeful.providers.prices import IN_CODE, ListedPrice, Price
from wakeful.providers.profiles import ModelProfile, profile_of
from wakeful.providers.wire.answer_forms import as_asked
from wakeful.providers.wire.attachments import Attachments
from wakeful.providers.wire.failures import Peer, server_time
from wakeful.providers.wire.http import HttpResponse, HttpTransport, Timeouts
from wakeful.providers.wire.limits import limits_of
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.redaction import Secret, redact, secrets_of
from wakeful.providers.wire.sse import SseEvent

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
    def wraps(self, request: ModelRequest) -> bool: ...


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
    vendor: ClassVar[str]
    """Whose format it is."""
    searches: ClassVar[bool] = False
    """Its provider can search the web by itself."""
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
        self._url = there.url(self.path)
        self._profile = (
            profile
            if isinstance(profile, ModelProfile)
            else profile_of(model, {**there.profile, **(profile or {})}, where=there.name)
        )
        self._price = there.price(model) if price is None else ListedPrice(price, IN_CODE)
        self._timeouts = timeouts
        self._client = client
        self._encoders: list[tuple[Sequence[ToolDeclaration], frozenset[str], EncoderT]] = []

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
    def context_window(self) -> int | None:
        """What it can be shown: as its profile says, or else its seller's list."""
        declared = self._profile.context_window
        return price_list.context_window(self._endpoint.name, self._model) if declared is None else declared

    @property
    def price(self) -> ListedPrice | None:
        """What its owner says it costs; None leaves it to the seller's list."""
        return self._price

    @property
    def leaves_machine(self) -> bool:
        """Its address is another machine's."""
        return not self._endpoint.is_local

    @property
    def owner(self) -> str:
        """To whom belongs what was written for this model, and what it thought: a name, or a name and an address."""
        return self._endpoint.owner

    @property
    def asked_at(self) -> str:
        """The server that answers in the provider's name, where that is not the provider's own."""
        return self._endpoint.asked_at

    @property
    def vendors(self) -> frozenset[str]:
        """Under which vendors' names settings are for this model: its provider's own, and that of its format."""
        return frozenset({self.vendor, self._endpoint.name} & {*VENDORS})

    def most_output(self, settings: ModelSettings) -> int | None:
        """As many tokens as an answer may have; None when nothing limits it."""
        return settings.max_tokens or self._profile.max_output

    def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        """Glimpses, when the request streams; then the reply, the same one either way. Raises ModelFailure."""
        encoder = self._encoder(request)
        return self._shown(self._exchange(request, encoder), request, encoder)

    def untaken(self, part: Image | File) -> RefusedAttachment | None:
        """Why this model cannot be shown an attachment; None when it can."""
        return self._attachments().untaken(part)

    def redacted(self, text: str) -> str:
        """A text without the key and what else of a request's headers is secret."""
        return redact(text, secrets_of(self._endpoint.auth_headers(self._key_now().secret)))

    # --- what a format brings ---------------------------------------------------------------------------------------

    @abstractmethod
    def _new_encoder(self, tools: Sequence[ToolDeclaration], attachments: Attachments) -> EncoderT: ...

    @abstractmethod
    def _decoder(self, names: WireNames, peer: Peer) -> WireDecoder: ...

    @abstractmethod
    def _whole(self, body: bytes, names: WireNames, peer: Peer) -> Reply:
        """The reply in an answer that came at once."""

    def _finished(self, decoder: WireDecoder, answer: HttpResponse) -> Reply:
        """The reply in a stream that is over. Raises ModelFailure when it was not whole."""
        return decoder.finish()

    def _refused(self, failure: ModelFailure, names: WireNames) -> Reply | None:
        """The reply in which the model made the tool call that the provider refused; None for any other failure."""
        return None

    def _asks_for_stream(self, request: ModelRequest) -> bool:
        return request.stream

    def _url_of(self, request: ModelRequest) -> str:
        """Where a request goes."""
        return self._url

    def _headers(self, request: ModelRequest, encoder: EncoderT, secret: Secret | None) -> dict[str, str]:
        """The headers of a request: those of the endpoint and of the settings, and what the format adds."""
        return self._headers_of(request.settings, secret)

    def _headers_of(self, settings: ModelSettings, secret: Secret | None) -> dict[str, str]:
        headers = self._endpoint.auth_headers(secret)
        headers.update({name.lower(): value for name, value in (settings.extra_headers or {}).items()})
        return headers

    # --- one exchange -----------------------------------------------------------------------------------------------

    async def _exchange(
        self, request: ModelRequest, encoder: EncoderT, body: Sequence[bytes] | None = None
    ) -> AsyncGenerator[ModelGlimpse | Reply, None]:
        """One request, sent once: `body`, or what the encoder makes of it."""
        chunks = encoder.body(request) if body is None else body
        key = self._key_now()
        headers = self._headers(request, encoder, key.secret)
        streams = self._asks_for_stream(request)
        headers.setdefault("accept", "text/event-stream" if streams else "application/json")
        transport = self._transport(key, request.settings, streams)
        request_id: str | None = None
        limits: tuple[ProviderLimit, ...] = ()
        try:
            async with transport.send(self._url_of(request), headers, chunks, model_ref=self._ref) as answer:
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
                    reply = self._finished(decoder, answer)
                else:
                    reply = self._whole(await answer.read(), encoder.names, answer.peer)
                request_id = answer.headers.get(self.request_id_header)
                limits = limits_of(answer.headers, server_time(answer.headers, None))
        except ModelFailure as failure:
            refused = self._refused(failure, encoder.names) if failure.refused_call is not None else None
            if refused is None:
                raise
            reply = refused
        if limits:
            reply = reply.model_copy(update={"limits": limits})
        yield self._given(reply, request, encoder, request_id)

    def _given(self, reply: Reply, request: ModelRequest, encoder: EncoderT, request_id: str | None) -> Reply:
        """A reply as it is handed on: with what is worth keeping about its request, and to what was asked for."""
        noted = self._noted(request, encoder, request_id)
        changed: dict[str, Any] = {"request_metadata": {**reply.request_metadata, **noted}} if noted else {}
        if self._endpoint.owner != self._endpoint.name:
            changed["item"] = _owned(reply.item, self._endpoint.owner)
        if changed:
            reply = reply.model_copy(update=changed)
        schema = request.output_schema
        return reply if schema is None else as_asked(reply, schema, wrapped=encoder.wraps(request))

    def _shown(
        self, pieces: AsyncGenerator[ModelGlimpse | Reply, None], request: ModelRequest, encoder: EncoderT
    ) -> AsyncGenerator[ModelGlimpse | Reply, None]:
        """The pieces with the words that belong to the answer, where it comes in an object of the wire's."""
        wrapped = request.stream and request.output_schema is not None and encoder.wraps(request)
        return _without_wrapping(pieces) if wrapped else pieces

    def _transport(self, key: Key, settings: ModelSettings, streams: bool) -> HttpTransport:
        return HttpTransport(
            self._endpoint.name,
            timeouts=self._timeouts_of(settings, streams),
            client=self._client,
            key_variable=key.variable,
            known_models=self._model_names,
            server=self._endpoint.asked_at,
        )

    def _model_names(self) -> tuple[str, ...]:
        """Models that can be asked here, by their whole names: those the owner or the seller has a price for."""
        return (*self._endpoint.prices, *price_list.model_names(self._endpoint.name))

    def _timeouts_of(self, settings: ModelSettings, streams: bool) -> Timeouts:
        """How long a request may take: as its settings say, or as its model does."""
        found = self._timeouts or Timeouts()
        if (most := settings.timeout) is not None:
            found = replace(found, whole=most, first_byte=most, background=most)
        if settings.first_byte_timeout is not None:
            return replace(found, first_byte=settings.first_byte_timeout)
        # What is not streamed begins when it is done.
        return found if streams or found.first_byte is not None else replace(found, first_byte=found.whole)

    @property
    def _wire(self) -> Wire:
        return self._endpoint.wire or "openai_chat"

    def _noted(self, request: ModelRequest, encoder: EncoderT, request_id: str | None) -> dict[str, Any]:
        """What is worth keeping about how the request was made; about its schemas, once in a turn."""
        said = {
            "request_id": request_id,
            "left_out": [*request.withheld, *encoder.left_out(request)],
            "schema_changes": list(encoder.changes(request))[:MAX_REPORTED] if not request.answered else None,
        }
        return {name: value for name, value in said.items() if value}

    def _encoder(self, request: ModelRequest) -> EncoderT:
        """The encoder of these tools: a turn's requests all have the same ones, and share what was encoded for them."""
        tools, accepted = request.tools, request.accepted_gap
        for known, gap, encoder in self._encoders:
            if (known is tools or known == tools) and gap == accepted:
                return encoder
        encoder = self._new_encoder(tools, self._attachments(accepted))
        self._encoders = [(tools, accepted, encoder), *self._encoders[: _ENCODERS_KEPT - 1]]
        return encoder

    def _attachments(self, accepted: frozenset[str] = frozenset()) -> Attachments:
        return Attachments(self._ref, self._profile, self._wire, accepted)

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


async def _without_wrapping(
    pieces: AsyncGenerator[ModelGlimpse | Reply, None],
) -> AsyncGenerator[ModelGlimpse | Reply, None]:
    """Glimpses of a wrapped answer, as the answer will read. What is held back to the end comes before the reply."""
    words = Unwrapper()
    async with aclosing(pieces):
        async for piece in pieces:
            if isinstance(piece, TextDelta):
                text = words.feed(piece.text)
                if text:
                    yield TextDelta(text=text)
                continue
            if isinstance(piece, Reply) and (rest := words.close()):
                yield TextDelta(text=rest)
            yield piece


def _is_stream(content_type: str, asked: bool) -> bool:
    """What came counts: some servers stream always, some never. Where it does not say, what was asked for does."""
    if "text/event-stream" in content_type:
        return True
    return asked and "json" not in content_type and "html" not in content_type


def _owned(item: AssistantItem, owner: str) -> AssistantItem:
    """A reply whose reasoning goes back to one address: another server may go by the same name."""
    parts = tuple(
        part.model_copy(update={"provider": owner}) if isinstance(part, Thinking) else part for part in item.parts
    )
    return item.model_copy(update={"parts": parts, "provider": owner})
