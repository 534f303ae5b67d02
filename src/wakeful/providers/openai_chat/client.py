"""A model behind a Chat Completions endpoint: OpenAI's own, a named provider's, or any other by its address.

Thin: `encode` makes the request, the transport sends it, `decode` reads the answer. A stream is left as soon as it said
`[DONE]`, and a reply is given only when the decoder says that it is whole. The key is read when a request is made.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wakeful.contracts.errors import InvalidConfig, ModelFailure, UnknownProvider
from wakeful.contracts.models import ModelGlimpse, Reply
from wakeful.contracts.tools import ToolDeclaration
from wakeful.ports import ModelRequest
from wakeful.providers import endpoints
from wakeful.providers.endpoints import Endpoint, Key
from wakeful.providers.openai_chat.decode import StreamDecoder
from wakeful.providers.openai_chat.dialect import COMPATIBLE, OPENAI, Dialect
from wakeful.providers.openai_chat.encode import Encoder
from wakeful.providers.profiles import PROFILES, ModelProfile, profile_of
from wakeful.providers.wire.failures import Peer
from wakeful.providers.wire.http import HttpTransport, Timeouts
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.redact import Secret, redact, secrets_of
from wakeful.providers.wire.unsupported import no_background

if TYPE_CHECKING:
    import httpx2

TRANSPORT = "openai_chat_completions"
COMPATIBLE_NAME = "openai-compatible"
"""What an endpoint is called of which only the address was given."""
OPENAI_HOST = "api.openai.com"
MAX_REPORTED = 20
_KEPT_ENCODERS = 8


class OpenAIChat:
    """`OpenAIChat("qwen3", base_url="http://127.0.0.1:8000/v1")`, or `OpenAIChat("gpt-4o")` with OpenAI's own.

    `quirks` are the fields of `Dialect` in which this server differs; `profile` what its model can do, whole or only
    the fields that are known better.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | Secret | None = None,
        provider: str | None = None,
        headers: Mapping[str, str] | None = None,
        quirks: Mapping[str, Any] | None = None,
        profile: ModelProfile | Mapping[str, Any] | None = None,
        endpoint: Endpoint | None = None,
        timeouts: Timeouts | None = None,
        client: "httpx2.AsyncClient | None" = None,
    ) -> None:
        there = endpoint or _endpoint(provider, base_url)
        if base_url is not None:
            # Another address gets no key from the environment: it was meant for the one that is configured.
            there = replace(there, base_url=base_url.rstrip("/"), key_env=(), key_required=False)
        self._endpoint = replace(there, transport=TRANSPORT, headers={**there.headers, **(headers or {})})
        self._model = model
        self._ref = f"{there.name}:{model}"
        self._key = Secret(api_key) if isinstance(api_key, str) and api_key else api_key or None
        self._url = f"{self._endpoint.base_url}/chat/completions"
        self._profile = _profile(model, there, profile)
        self._dialect = dialect_of(self._endpoint, self._profile, quirks)
        self._known_models = [name for name in PROFILES if not name.endswith("-")]
        self._timeouts = timeouts
        self._client = client
        self._encoders: list[tuple[Sequence[ToolDeclaration], WireNames, Encoder]] = []

    @property
    def ref(self) -> str:
        return self._ref

    @property
    def profile(self) -> ModelProfile:
        return self._profile

    @property
    def dialect(self) -> Dialect:
        return self._dialect

    def __repr__(self) -> str:
        return f"OpenAIChat({self._model!r} at {self._endpoint.host})"

    async def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        """Glimpses, when the request streams, and the reply. Raises ModelFailure."""
        refusal = self.refusal(request.settings)
        if refusal is not None:
            raise refusal
        names, encoder = self._encoder_for(request.tools)
        chunks = encoder.body(request)
        key = self._key_now()
        headers = self._endpoint.auth_headers(key.secret)
        headers.setdefault("accept", "text/event-stream" if request.stream else "application/json")
        decoder = StreamDecoder(names, self._peer(key, headers), needs_done=self._dialect.needs_done)
        transport = HttpTransport(
            self._endpoint.name,
            timeouts=self._timeouts,
            client=self._client,
            key_variable=key.variable,
            known_models=self._known_models,
        )
        async with transport.send(self._url, headers, chunks, model_ref=self._ref) as response:
            request_id = response.headers.get("x-request-id")
            if _is_stream(response.headers.get("content-type", ""), request.stream):
                async with aclosing(response.events()) as events:  # type: ignore[type-var]
                    async for event in events:
                        for glimpse in decoder.feed(event):
                            if request.stream:
                                yield glimpse
                        if decoder.done:
                            break
                reply = decoder.finish()
            else:
                reply = decoder.whole(await response.read())
        yield _with_metadata(reply, request_id, encoder, request)

    def refusal(self, settings: Mapping[str, Any]) -> ModelFailure | None:
        """What this format cannot do at all."""
        return no_background(self._endpoint.name, self._ref, "the wire format openai_chat", settings)

    def redacted(self, text: str) -> str:
        """A text without the key and what else of a request's headers is secret."""
        return redact(text, secrets_of(self._endpoint.auth_headers(self._key_now().secret)))

    def _encoder_for(self, tools: Sequence[ToolDeclaration]) -> tuple[WireNames, Encoder]:
        """One encoder for each set of tools; a turn's requests have the same set, so its head is made once."""
        for known, names, encoder in self._encoders:
            if known is tools:
                return names, encoder
        names = WireNames(tools)
        encoder = Encoder(self._model, self._profile, names, provider=self._endpoint.name, dialect=self._dialect)
        self._encoders = [(tools, names, encoder), *self._encoders[: _KEPT_ENCODERS - 1]]
        return names, encoder

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

    def _peer(self, key: Key, headers: Mapping[str, str]) -> Peer:
        return Peer(
            self._endpoint.name, self._ref, self._url, key.variable, self._known_models, tuple(secrets_of(headers))
        )


def dialect_of(there: Endpoint, profile: ModelProfile, quirks: Mapping[str, Any] | None = None) -> Dialect:
    """How an endpoint speaks to a model. OpenAI's reasoning models have other names for two things."""
    dialect = COMPATIBLE
    if there.host == OPENAI_HOST or there.host.endswith(f".{OPENAI_HOST}"):
        dialect = OPENAI
        if profile.reasoning:
            dialect = replace(dialect, system_role="developer", max_tokens_field="max_completion_tokens")
    return dialect.with_quirks({**there.quirks, **(quirks or {})})


def _endpoint(provider: str | None, base_url: str | None) -> Endpoint:
    """A provider's endpoint by its name; without a name, OpenAI's, or one that is nothing but its address."""
    if base_url is None or provider is not None:
        try:
            return endpoints.endpoint(provider or "openai")
        except UnknownProvider:
            if base_url is None:
                raise
    return Endpoint(provider or COMPATIBLE_NAME, TRANSPORT, base_url or "", key_required=False)


def _profile(model: str, there: Endpoint, given: ModelProfile | Mapping[str, Any] | None) -> ModelProfile:
    if isinstance(given, ModelProfile):
        return given
    return profile_of(model, {**there.profile, **(given or {})})


def _is_stream(content_type: str, asked: bool) -> bool:
    """A server may ignore what was asked for; what it says it sends counts."""
    if "text/event-stream" in content_type:
        return True
    return asked and "json" not in content_type


def _with_metadata(reply: Reply, request_id: str | None, encoder: Encoder, request: ModelRequest) -> Reply:
    """The reply with what is known about its request: its id there, what was left out of it, and what was rewritten."""
    more: dict[str, Any] = {}
    if request_id:
        more["request_id"] = request_id
    left_out = encoder.left_out(request)
    if left_out:
        more["left_out"] = left_out
    if encoder.changes:
        more["schema_changes"] = list(encoder.changes[:MAX_REPORTED])
    return reply.model_copy(update={"request_metadata": {**reply.request_metadata, **more}}) if more else reply
