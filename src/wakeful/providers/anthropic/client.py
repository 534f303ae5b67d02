"""Claude, or whatever else answers at a Messages endpoint, as a Model.

Thin: the request is `encode`'s, the reply is `decode`'s, the connection is the transport's. A stream is left as soon as
its last event came, and a reply is given only when the decoder says that it is whole. Rule: a key is read when a
request is made, and one that belongs to an address is never sent to another.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from wakeful.contracts.content import Text
from wakeful.contracts.errors import InvalidConfig, ModelFailure
from wakeful.contracts.models import ModelGlimpse, Reply
from wakeful.contracts.tools import ToolDeclaration
from wakeful.ports import ModelRequest
from wakeful.providers.anthropic.context_editing import diagnostics, with_beta
from wakeful.providers.anthropic.decode import StreamDecoder, decode_response
from wakeful.providers.anthropic.encode import Encoder
from wakeful.providers.endpoints import ANTHROPIC_BEARER, Auth, Endpoint, Key, endpoint
from wakeful.providers.profiles import PROFILES, ModelProfile, profile_of
from wakeful.providers.wire.failures import Peer
from wakeful.providers.wire.http import HttpTransport, Timeouts
from wakeful.providers.wire.redact import Secret, redact, secrets_of
from wakeful.providers.wire.schema_answers import without_added_nulls
from wakeful.providers.wire.sse import SseEvent
from wakeful.providers.wire.unsupported import no_background

if TYPE_CHECKING:
    import httpx2

MAX_REPORTED = 20
_ENCODERS_KEPT = 8
_KNOWN_MODELS = [name for name in PROFILES if name.startswith("claude-") and not name.endswith("-")]


class AnthropicMessages:
    """`AnthropicMessages("claude-opus-4-7")`; `base_url=` for another server, `endpoint=` for a configured provider."""

    def __init__(
        self,
        model: str,
        *,
        api_key: str | Secret | None = None,
        base_url: str | None = None,
        api_version: str | None = None,
        auth: Auth | None = None,
        headers: Mapping[str, str] | None = None,
        profile: ModelProfile | Mapping[str, Any] | None = None,
        timeouts: Timeouts | None = None,
        endpoint: Endpoint | None = None,
        client: "httpx2.AsyncClient | None" = None,
    ) -> None:
        found = _endpoint(endpoint, base_url, api_version, auth, headers)
        self._model = model
        self._ref = f"{found.name}:{model}"
        self._endpoint = found
        self._key = Secret(api_key) if isinstance(api_key, str) and api_key else api_key or None
        self._url = f"{found.base_url.removesuffix('/v1')}/v1/messages"
        self._profile = (
            profile if isinstance(profile, ModelProfile) else profile_of(model, {**found.profile, **(profile or {})})
        )
        self._timeouts = timeouts
        self._client = client
        self._encoders: list[tuple[Sequence[ToolDeclaration], Encoder]] = []

    def __repr__(self) -> str:
        return f"AnthropicMessages({self._ref!r} at {self._endpoint.host})"

    @property
    def ref(self) -> str:
        return self._ref

    @property
    def profile(self) -> ModelProfile:
        """What this model can do, as far as it is known."""
        return self._profile

    async def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        """Glimpses, when the request streams; then the reply, the same one either way."""
        refusal = self.refusal(request.settings)
        if refusal is not None:
            raise refusal
        encoder = self._encoder(request.tools)
        chunks = encoder.body(request)
        key = self._key_now()
        headers = self._endpoint.auth_headers(key.secret)
        edits = encoder.edits(request)
        if edits is not None:
            with_beta(headers)
        peer = Peer(self._endpoint.name, self._ref, self._url, key.variable, _KNOWN_MODELS, secrets_of(headers))
        transport = HttpTransport(
            self._endpoint.name,
            timeouts=self._timeouts,
            client=self._client,
            key_variable=key.variable,
            known_models=_KNOWN_MODELS,
        )
        async with transport.send(self._url, headers, chunks, model_ref=self._ref) as response:
            # What came counts, not what was asked for: some servers stream always, some never.
            kind = response.headers.get("content-type", "")
            if "text/event-stream" in kind or (request.stream and not kind):
                decoder = StreamDecoder(encoder.names, peer)
                async with aclosing(cast("AsyncGenerator[SseEvent, None]", response.events())) as events:
                    async for event in events:
                        for glimpse in decoder.feed(event):
                            if request.stream:
                                yield glimpse
                        if decoder.ended:
                            break
                reply = decoder.finish()
            else:
                reply = decode_response(await response.read(), encoder.names, peer)
            request_id = response.headers.get("request-id")
        if request.output_schema is not None:
            reply = _as_asked(reply, request.output_schema)
        said = {
            "request_id": request_id,
            "left_out": list(encoder.left_out(request)),
            "context_editing": diagnostics(edits, request.history) if edits is not None else None,
            "schema_changes": list(encoder.schema_changes(request))[:MAX_REPORTED],
        }
        more = {name: value for name, value in said.items() if value}
        yield reply.model_copy(update={"request_metadata": {**reply.request_metadata, **more}}) if more else reply

    def refusal(self, settings: Mapping[str, Any]) -> ModelFailure | None:
        """What this format cannot do at all."""
        return no_background(self._endpoint.name, self._ref, "the wire format anthropic", settings)

    def redacted(self, text: str) -> str:
        """A text without the key and what else of a request's headers is secret."""
        return redact(text, secrets_of(self._endpoint.auth_headers(self._key_now().secret)))

    def _key_now(self) -> Key:
        if self._key is not None:
            return Key(self._key, next(iter(self._endpoint.key_env), None))
        try:
            return self._endpoint.key()
        except InvalidConfig as missing:
            words = f"{missing.message}. {missing.hint}"
            raise ModelFailure(words, kind="auth_error", stage="connect") from None

    def _encoder(self, tools: Sequence[ToolDeclaration]) -> Encoder:
        """The encoder of these tools: a turn's requests all have the same ones, and share what was encoded for them."""
        for known, encoder in self._encoders:
            if known is tools or known == tools:
                return encoder
        encoder = Encoder(
            self._model,
            self._profile,
            tools,
            provider=self._endpoint.name,
            refuses_sampling=self._endpoint.refuses_sampling,
        )
        self._encoders = [(tools, encoder), *self._encoders[: _ENCODERS_KEPT - 1]]
        return encoder


def _endpoint(
    given: Endpoint | None,
    base_url: str | None,
    api_version: str | None,
    auth: Auth | None,
    headers: Mapping[str, str] | None,
) -> Endpoint:
    """The endpoint with what the caller says about it. Another address has no key, unless the caller gives one."""
    found = given if given is not None else endpoint("anthropic")
    if base_url is not None and base_url.rstrip("/") != found.base_url:
        found = replace(found, base_url=base_url.rstrip("/"), key_env=(), key_required=False, source="code")
    if api_version is not None:
        implied: Auth = "bearer" if api_version >= ANTHROPIC_BEARER else found.auth
        found = replace(found, api_version=api_version, auth=implied)
    if auth is not None:
        found = replace(found, auth=auth)
    return replace(found, headers={**found.headers, **headers}) if headers else found


def _as_asked(reply: Reply, schema: dict[str, Any]) -> Reply:
    """An answer in terms of the schema it was asked for: what was sent lists every field, and an absent one is null."""
    words = [part for part in reply.item.parts if isinstance(part, Text)]
    if len(words) != 1 or reply.item.calls:
        return reply
    try:
        value = json.loads(words[0].text)
    except ValueError:
        return reply
    meant = without_added_nulls(schema, value)
    if meant == value:
        return reply
    told = Text(json.dumps(meant, ensure_ascii=False))
    parts = tuple(told if part is words[0] else part for part in reply.item.parts)
    return reply.model_copy(update={"item": reply.item.model_copy(update={"parts": parts})})
