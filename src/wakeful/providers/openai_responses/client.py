"""A model behind the Responses API: a request out, an answer in, and nothing decided in between.

A key is read when a request is made, and kept nowhere. One from the environment goes to the configured address only.
With the setting `background` the provider works at the request by itself (`background`): after a crash its answer is
asked for by id.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from wakeful.contracts.errors import InvalidConfig, ModelFailure, ResponseGone
from wakeful.contracts.models import ModelGlimpse, Reply
from wakeful.contracts.tools import ToolDeclaration
from wakeful.ports import ModelRequest
from wakeful.providers.endpoint_settings import address
from wakeful.providers.endpoints import Endpoint, Key
from wakeful.providers.endpoints import endpoint as configured
from wakeful.providers.openai_responses.background import Background, Line, cancel
from wakeful.providers.openai_responses.continuation import Continuations, scope_of
from wakeful.providers.openai_responses.decode import StreamDecoder, decode_response
from wakeful.providers.openai_responses.encode import CODEX_RULES, OPENAI_RULES, Encoder, is_background
from wakeful.providers.profiles import ModelProfile, known_models, profile_of
from wakeful.providers.wire.failures import Peer
from wakeful.providers.wire.http import HttpResponse, HttpTransport, Timeouts
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.redact import Secret, redact, secrets_of
from wakeful.providers.wire.sse import SseEvent
from wakeful.providers.wire.unsupported import no_background

if TYPE_CHECKING:
    import httpx2

QUIRKS = ("codex", "continue", "item_ids")
"""`codex`: the rules of that backend. `continue`: as `continues`. `item_ids`: items go back with their ids."""
_MOST_BELTS = 8
_GONE = (400, 404)
"""What a provider answers when it no longer has the response that a request continues."""


class _Belt(NamedTuple):
    """A set of tools, and what was prepared for it."""

    tools: Sequence[ToolDeclaration]
    names: WireNames
    encoder: Encoder


class OpenAIResponses:
    """`OpenAIResponses("gpt-5.5")`, or `OpenAIResponses("mine", base_url="http://127.0.0.1:8000/v1", api_key=...)`.

    Nothing is left with the provider unless `continues` is on: then answers are stored there, and a request that only
    adds to an earlier one sends what it adds; or the setting `background`: then the provider keeps its answer.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | Secret | None = None,
        endpoint: Endpoint | None = None,
        headers: Mapping[str, str] | None = None,
        profile: ModelProfile | Mapping[str, Any] | None = None,
        timeouts: Timeouts | None = None,
        client: "httpx2.AsyncClient | None" = None,
        continues: bool | None = None,
    ) -> None:
        there = _endpoint(endpoint, base_url, headers)
        self._model = model
        self._ref = f"{there.name}:{model}"
        self._endpoint = there
        self._key = Secret(api_key) if isinstance(api_key, str) and api_key else api_key or None
        self._url = f"{there.base_url}/responses"
        rules = CODEX_RULES if there.quirks.get("codex") else OPENAI_RULES
        self._rules = replace(rules, item_ids=bool(there.quirks.get("item_ids")))
        self._profile = (
            profile
            if isinstance(profile, ModelProfile)
            else profile_of(model, {**there.profile, **(profile or {})}, where=there.name)
        )
        self._timeouts = timeouts
        self._client = client
        self._belts: list[_Belt] = []
        wanted = bool(there.quirks.get("continue")) if continues is None else continues
        if wanted and there.quirks.get("codex"):
            raise InvalidConfig(f"{there.name} stores no answers, so none can be continued", "Leave `continues` out.")
        self._continuations = Continuations() if wanted else None

    def __repr__(self) -> str:
        return f"OpenAIResponses({self._ref!r} at {self._endpoint.host})"

    @property
    def ref(self) -> str:
        return self._ref

    @property
    def profile(self) -> ModelProfile:
        """What the model can do, as far as it is known here."""
        return self._profile

    async def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        """Glimpses, when the request streams; then the reply, the same one either way."""
        refusal = self.refusal(request.settings)
        if refusal is not None:
            raise refusal
        belt = self._belt(request.tools)
        encoded = belt.encoder.encoded(request)
        continuations = self._continuations
        if continuations is None:
            async with aclosing(self._asked(request, belt, encoded.body())) as pieces:
                async for piece in pieces:
                    yield piece
            return
        scope = scope_of(request)
        encoded = encoded._replace(items=encoded.items[:])  # the list grows with the history
        known = continuations.known(scope, encoded)
        bodies = [encoded.body()] if known is None else [encoded.body_after(*known), encoded.body()]
        while bodies:
            body = bodies.pop(0)
            try:
                async with aclosing(self._asked(request, belt, body)) as pieces:
                    async for piece in pieces:
                        if isinstance(piece, Reply):
                            said = belt.encoder.reply(request, piece.item)
                            continuations.remember(scope, encoded, said, piece.request_metadata.get("response_id"))
                        yield piece
                return
            except ModelFailure as failure:
                continuations.forget(scope)
                # What the provider does not have any more is no reason to lose the attempt: it can be sent whole.
                if not bodies or failure.status not in _GONE or isinstance(failure, ResponseGone):
                    raise

    def refusal(self, settings: Mapping[str, Any]) -> ModelFailure | None:
        """A backend that keeps no answers makes none by itself."""
        if not self._endpoint.quirks.get("codex"):
            return None
        return no_background(self._endpoint.name, self._ref, f"{self._endpoint.name} keeps no answers and", settings)

    async def reattach(self, request: ModelRequest, response_id: str) -> AsyncIterator[ModelGlimpse | Reply]:
        """The answer of a background request that was accepted before. Raises ResponseGone when it is not there."""
        belt = self._belt(request.tools)
        background = Background(self._line(), belt.names, stream=request.stream, include=belt.encoder.include(request))
        async with aclosing(background.found(response_id)) as pieces:
            async for piece in pieces:
                yield self._with_notes(piece, request, belt, None)

    async def abandon(self, response_id: str) -> None:
        """Cancel a background response."""
        await cancel(self._line(), response_id)

    def redacted(self, text: str) -> str:
        """A text without the key and what else of a request's headers is secret."""
        return redact(text, secrets_of(self._endpoint.auth_headers(self._key_now().secret)))

    async def _asked(
        self, request: ModelRequest, belt: _Belt, body: Sequence[bytes]
    ) -> AsyncGenerator[ModelGlimpse | Reply, None]:
        line = self._line()
        if is_background(request.settings):
            background = Background(line, belt.names, stream=request.stream, include=belt.encoder.include(request))
            async with aclosing(background.created(body, request.accepted)) as pieces:
                async for piece in pieces:
                    yield self._with_notes(piece, request, belt, background.request_id)
            return
        async with line.send("POST", line.url, body) as answer:
            if _streams(answer, request.stream or self._rules.always_streams):
                decoder = StreamDecoder(belt.names, line.peer)
                async with aclosing(cast("AsyncGenerator[SseEvent, None]", answer.events())) as events:
                    async for event in events:
                        for glimpse in decoder.feed(event):
                            if request.stream:
                                yield glimpse
                        if decoder.ended:
                            break
                reply = decoder.finish()
            else:
                reply = decode_response(await answer.read(), belt.names, line.peer)
            request_id = answer.headers.get("x-request-id")
        yield self._with_notes(reply, request, belt, request_id)

    def _line(self) -> Line:
        """How the endpoint is spoken to now: the key is read here."""
        key = self._key_now()
        headers = self._endpoint.auth_headers(key.secret)
        known = known_models("openai_responses")
        transport = HttpTransport(
            self._endpoint.name,
            timeouts=self._timeouts,
            client=self._client,
            key_variable=key.variable,
            known_models=known,
        )
        return Line(
            self._url,
            Peer(self._endpoint.name, self._ref, self._url, key.variable, known, secrets_of(headers)),
            self._timeouts or Timeouts(),
            lambda method, url, body: transport.send(url, headers, body, model_ref=self._ref, method=method),
        )

    def _with_notes(
        self, piece: ModelGlimpse | Reply, request: ModelRequest, belt: _Belt, request_id: str | None
    ) -> ModelGlimpse | Reply:
        if not isinstance(piece, Reply):
            return piece
        noted = {**piece.request_metadata, **self._noted(request, belt, request_id)}
        return piece.model_copy(update={"request_metadata": noted})

    def _noted(self, request: ModelRequest, belt: _Belt, request_id: str | None) -> dict[str, Any]:
        """What is worth keeping about how the request was made; about its schemas, once in a turn."""
        noted: dict[str, Any] = {"request_id": request_id} if request_id else {}
        left_out = belt.encoder.left_out(request)
        if left_out:
            noted["left_out"] = left_out
        changes = belt.encoder.changes(request) if not request.answered else []
        if changes:
            noted["schema_changes"] = changes
        return noted

    def _key_now(self) -> Key:
        if self._key is not None:
            return Key(self._key, next(iter(self._endpoint.key_env), None))
        try:
            return self._endpoint.key()
        except InvalidConfig as missing:
            words = f"{missing.message}. {missing.hint}"
            raise ModelFailure(words, kind="auth_error", stage="connect") from None

    def _belt(self, tools: Sequence[ToolDeclaration]) -> _Belt:
        for belt in self._belts:
            if belt.tools is tools or belt.tools == tools:
                return belt
        names = WireNames(tools)
        encoder = Encoder(
            self._model,
            self._profile,
            names,
            provider=self._endpoint.name,
            store=self._continuations is not None,
            rules=self._rules,
        )
        self._belts.append(_Belt(tools, names, encoder))
        del self._belts[:-_MOST_BELTS]
        return self._belts[-1]


def _endpoint(endpoint: Endpoint | None, base_url: str | None, headers: Mapping[str, str] | None) -> Endpoint:
    """Where requests go. The environment's key was meant for the configured address: no other is sent it."""
    there = endpoint
    if there is None:
        there = configured("openai") if base_url is None else Endpoint("openai", "openai_responses")
    if base_url is not None:
        where = address(base_url, "base_url")
        there = replace(there, base_url=where, key_env=(), key_required=False, source="base_url")
    unknown = sorted(set(there.quirks) - set(QUIRKS))
    if unknown:
        raise InvalidConfig(
            f"{there.name}: the Responses API has no quirk {unknown[0]!r}", f"There are: {', '.join(QUIRKS)}."
        )
    return replace(there, headers={**there.headers, **headers}) if headers else there


def _streams(answer: HttpResponse, asked: bool) -> bool:
    """What came decides; where it does not say, what was asked for does."""
    kind = answer.headers.get("content-type", "")
    if "text/event-stream" in kind:
        return True
    return asked and "application/json" not in kind
