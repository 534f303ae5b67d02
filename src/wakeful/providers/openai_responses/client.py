"""A model behind the Responses API: a request out, an answer in, and nothing decided in between.

With the setting `background` the provider works at the request by itself (`background`): after a crash its answer is
asked for by id.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wakeful.contracts.errors import InvalidConfig, ModelFailure, ResponseGone
from wakeful.contracts.model_settings import ModelSettings
from wakeful.contracts.models import ModelGlimpse, Reply
from wakeful.contracts.tools import ToolDeclaration
from wakeful.ports import ModelRequest
from wakeful.providers.endpoint_settings import address
from wakeful.providers.endpoints import IN_CODE, Endpoint
from wakeful.providers.endpoints import endpoint as configured
from wakeful.providers.openai_responses.background import Background, EndpointLine, cancel
from wakeful.providers.openai_responses.continuation import Continuations, scope_of
from wakeful.providers.openai_responses.decode import ResponsesDecoder, decode_response
from wakeful.providers.openai_responses.encode import CODEX_RULES, OPENAI_RULES, ResponsesEncoder
from wakeful.providers.openai_responses.settings_writer import VENDOR, is_background
from wakeful.providers.prices import Price
from wakeful.providers.profiles import ModelProfile
from wakeful.providers.wire.attachments import Attachments
from wakeful.providers.wire.failures import Peer
from wakeful.providers.wire.http import Timeouts
from wakeful.providers.wire.http_model import HttpModel
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.redaction import Secret

if TYPE_CHECKING:
    import httpx2

QUIRKS = ("codex", "continue", "item_ids", "plain_reasoning")
"""`codex`: the rules of that backend. `continue`: as `continues`. `item_ids`: items go back with their ids.
`plain_reasoning`: reasoning goes back as it came, encrypted or not; the default everywhere but at OpenAI, which is said
by the name or by `dialect = "openai"`."""
OPENAI_NAMES = frozenset({"openai", "openai-codex"})
"""Endpoints that refuse reasoning which is not encrypted, because they did not store what it names."""
_GONE = (400, 404)
"""What a provider answers when it no longer has the response that a request continues."""


class OpenAIResponses(HttpModel[ResponsesEncoder]):
    """`OpenAIResponses("gpt-5.5")`, or `OpenAIResponses("mine", base_url="http://127.0.0.1:8000/v1", api_key=...)`.

    Nothing is left with the provider unless `continues` is on: then answers are stored there, and a request that only
    adds to an earlier one sends what it adds; or the setting `background`: then the provider keeps its answer.
    """

    path = "/responses"
    vendor = VENDOR
    searches = True

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | Secret | None = None,
        endpoint: Endpoint | None = None,
        headers: Mapping[str, str] | None = None,
        profile: ModelProfile | Mapping[str, Any] | None = None,
        price: Price | None = None,
        timeouts: Timeouts | None = None,
        client: "httpx2.AsyncClient | None" = None,
        continues: bool | None = None,
    ) -> None:
        there = _endpoint(endpoint, base_url, headers)
        super().__init__(model, there, api_key=api_key, profile=profile, price=price, timeouts=timeouts, client=client)
        rules = CODEX_RULES if there.quirks.get("codex") else OPENAI_RULES
        self._rules = replace(
            rules,
            item_ids=bool(there.quirks.get("item_ids")),
            plain_reasoning=bool(there.quirks.get("plain_reasoning", rules is OPENAI_RULES and not _is_openais(there))),
        )
        wanted = bool(there.quirks.get("continue")) if continues is None else continues
        if wanted and there.quirks.get("codex"):
            raise InvalidConfig(f"{there.name} stores no answers, so none can be continued", "Leave `continues` out.")
        self._continuations = Continuations() if wanted else None

    def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        """Glimpses, when the request streams; then the reply, the same one either way. Raises ModelFailure."""
        if self._continuations is None:
            return super().respond(request)
        return self._shown(self._continued(request, self._continuations), request, self._encoder(request))

    async def _continued(
        self, request: ModelRequest, continuations: Continuations
    ) -> AsyncGenerator[ModelGlimpse | Reply, None]:
        """What the provider has of the conversation is not sent again, as long as it has it."""
        encoder = self._encoder(request)
        encoded = encoder.encoded(request)
        scope = scope_of(request)
        encoded = encoded._replace(items=encoded.items[:])  # the list grows with the history
        known = continuations.known(scope, encoded)
        bodies = [encoded.body()] if known is None else [encoded.body_after(*known), encoded.body()]
        while bodies:
            body = bodies.pop(0)
            try:
                async with aclosing(self._exchange(request, encoder, body)) as pieces:
                    async for piece in pieces:
                        if isinstance(piece, Reply):
                            said = encoder.reply(request, piece.item)
                            continuations.remember(scope, encoded, said, piece.request_metadata.get("response_id"))
                        yield piece
                return
            except ModelFailure as failure:
                continuations.forget(scope)
                # What the provider does not have any more is no reason to lose the attempt: it can be sent whole.
                if not bodies or failure.status not in _GONE or isinstance(failure, ResponseGone):
                    raise

    async def reattach(self, request: ModelRequest, response_id: str) -> AsyncIterator[ModelGlimpse | Reply]:
        """The answer of a background request that was accepted before. Raises ResponseGone when it is not there."""
        encoder = self._encoder(request)
        async with aclosing(self._shown(self._found(request, encoder, response_id), request, encoder)) as pieces:
            async for piece in pieces:
                yield piece

    async def _found(
        self, request: ModelRequest, encoder: ResponsesEncoder, response_id: str
    ) -> AsyncGenerator[ModelGlimpse | Reply, None]:
        async with aclosing(self._background(request, encoder).found(response_id)) as pieces:
            async for piece in pieces:
                yield self._given(piece, request, encoder, None) if isinstance(piece, Reply) else piece

    async def abandon(self, response_id: str) -> None:
        """Cancel a background response."""
        await cancel(self._line(ModelSettings(), False), response_id)

    async def _exchange(
        self, request: ModelRequest, encoder: ResponsesEncoder, body: Sequence[bytes] | None = None
    ) -> AsyncGenerator[ModelGlimpse | Reply, None]:
        if self._rules.keeps_answers and is_background(request.settings):
            background = self._background(request, encoder)
            pieces = background.created(encoder.body(request) if body is None else body, request.accepted)
        else:
            background, pieces = None, super()._exchange(request, encoder, body)
        async with aclosing(pieces):
            async for piece in pieces:
                if background is not None and isinstance(piece, Reply):
                    piece = self._given(piece, request, encoder, background.request_id)
                yield piece

    def _background(self, request: ModelRequest, encoder: ResponsesEncoder) -> Background:
        return Background(
            self._line(request.settings, request.stream),
            encoder.names,
            stream=request.stream,
            include=encoder.include(request),
        )

    def _line(self, settings: ModelSettings, streams: bool) -> EndpointLine:
        """How the endpoint is spoken to now: the key is read here."""
        key = self._key_now()
        headers = self._headers_of(settings, key.secret)
        transport = self._transport(key, settings, streams)
        return EndpointLine(
            self._url,
            transport.peer(self._url, headers, self._ref),
            self._timeouts_of(settings, streams),
            lambda method, url, body: transport.send(url, headers, body, model_ref=self._ref, method=method),
        )

    @property
    def limits_output(self) -> bool:
        """May the length of an answer be said?"""
        return self._rules.limits_output

    def _asks_for_stream(self, request: ModelRequest) -> bool:
        return request.stream or self._rules.always_streams

    def _new_encoder(self, tools: Sequence[ToolDeclaration], attachments: Attachments) -> ResponsesEncoder:
        return ResponsesEncoder(
            self._model,
            self._profile,
            WireNames(tools),
            provider=self._endpoint.owner,
            store=self._continuations is not None,
            rules=self._rules,
            attachments=attachments,
        )

    def _decoder(self, names: WireNames, peer: Peer) -> ResponsesDecoder:
        return ResponsesDecoder(names, peer)

    def _whole(self, body: bytes, names: WireNames, peer: Peer) -> Reply:
        return decode_response(body, names, peer)


def _is_openais(there: Endpoint) -> bool:
    """By its name, or because its owner says so; its address says nothing."""
    return there.name in OPENAI_NAMES or there.dialect == "openai"


def _endpoint(endpoint: Endpoint | None, base_url: str | None, headers: Mapping[str, str] | None) -> Endpoint:
    """Where requests go. The environment's key was meant for the configured address: no other is sent it."""
    there = endpoint
    if there is None:
        there = configured("openai") if base_url is None else Endpoint("openai", "openai_responses", dialect="openai")
    if base_url is not None:
        where = address(base_url, "base_url")
        there = replace(there, base_url=where, key_env=(), key_required=False, source=IN_CODE)
    unknown = sorted(set(there.quirks) - set(QUIRKS))
    if unknown:
        raise InvalidConfig(
            f"{there.name}: the Responses API has no quirk {unknown[0]!r}", f"There are: {', '.join(QUIRKS)}."
        )
    return replace(there, headers={**there.headers, **headers}) if headers else there
