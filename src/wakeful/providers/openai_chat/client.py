"""A model behind a Chat Completions endpoint: OpenAI's own, a named provider's, or any other by its address."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wakeful.contracts.errors import UnknownProvider
from wakeful.contracts.models import Reply
from wakeful.contracts.tools import ToolDeclaration
from wakeful.providers import endpoints
from wakeful.providers.endpoints import Endpoint
from wakeful.providers.openai_chat.decode import StreamDecoder, decode_response
from wakeful.providers.openai_chat.dialect import COMPATIBLE, OPENAI, Dialect
from wakeful.providers.openai_chat.encode import Encoder
from wakeful.providers.prices import Price
from wakeful.providers.profiles import ModelProfile
from wakeful.providers.wire.failures import Peer
from wakeful.providers.wire.http import Timeouts
from wakeful.providers.wire.http_model import HttpModel
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.redact import Secret

if TYPE_CHECKING:
    import httpx2

TRANSPORT = "openai_chat_completions"
COMPATIBLE_NAME = "openai-compatible"
"""What an endpoint is called of which only the address was given."""
OPENAI_HOST = "api.openai.com"


class OpenAIChat(HttpModel[Encoder]):
    """`OpenAIChat("qwen3", base_url="http://127.0.0.1:8000/v1")`, or `OpenAIChat("gpt-4o")` with OpenAI's own.

    `quirks` are the fields of `Dialect` in which this server differs; `profile` what its model can do, whole or only
    the fields that are known better.
    """

    path = "/chat/completions"

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
        price: Price | None = None,
        endpoint: Endpoint | None = None,
        timeouts: Timeouts | None = None,
        client: "httpx2.AsyncClient | None" = None,
    ) -> None:
        there = endpoint or _endpoint(provider, base_url)
        if base_url is not None:
            # Another address gets no key from the environment: it was meant for the one that is configured.
            there = replace(there, base_url=base_url.rstrip("/"), key_env=(), key_required=False)
        there = replace(there, transport=TRANSPORT, headers={**there.headers, **(headers or {})})
        super().__init__(model, there, api_key=api_key, profile=profile, price=price, timeouts=timeouts, client=client)
        self._dialect = dialect_of(there, self._profile, quirks)

    @property
    def dialect(self) -> Dialect:
        return self._dialect

    def _new_encoder(self, tools: Sequence[ToolDeclaration]) -> Encoder:
        provider, dialect = self._endpoint.name, self._dialect
        return Encoder(self._model, self._profile, WireNames(tools), provider=provider, dialect=dialect)

    def _decoder(self, names: WireNames, peer: Peer) -> StreamDecoder:
        return StreamDecoder(names, peer, needs_done=self._dialect.needs_done)

    def _whole(self, body: bytes, names: WireNames, peer: Peer) -> Reply:
        return decode_response(body, names, peer)


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
