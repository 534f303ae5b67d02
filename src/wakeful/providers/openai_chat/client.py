"""A model behind a Chat Completions endpoint: OpenAI's own, a named provider's, or any other by its address."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wakeful.contracts.errors import ModelFailure, UnknownProvider
from wakeful.contracts.models import Reply
from wakeful.contracts.setting_names import VENDORS
from wakeful.contracts.tools import ToolDeclaration
from wakeful.providers import endpoints
from wakeful.providers.endpoint_settings import address
from wakeful.providers.endpoints import COMPATIBLE_NAME, IN_CODE, Endpoint
from wakeful.providers.openai_chat.decode import ChatDecoder, decode_response
from wakeful.providers.openai_chat.dialect import COMPATIBLE, OPENAI, Dialect
from wakeful.providers.openai_chat.encode import ChatEncoder
from wakeful.providers.openai_chat.settings_writer import OWN
from wakeful.providers.prices import Price
from wakeful.providers.profiles import ModelProfile
from wakeful.providers.wire.attachments import Attachments
from wakeful.providers.wire.failures import Peer
from wakeful.providers.wire.http import HttpResponse, Timeouts
from wakeful.providers.wire.http_model import HttpModel, WireDecoder
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.redaction import Secret

if TYPE_CHECKING:
    import httpx2

TRANSPORT = "openai_chat_completions"


class OpenAIChat(HttpModel[ChatEncoder]):
    """`OpenAIChat("qwen3", base_url="http://127.0.0.1:8000/v1")`, or `OpenAIChat("gpt-4o")` with OpenAI's own.

    `provider="openai"` with a `base_url` is OpenAI's own API at another address. `quirks` are the fields of `Dialect`
    in which a server differs; `profile` what its model can do, whole or only the fields that are known better.
    """

    path = "/chat/completions"
    vendor = OWN

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
            where = address(base_url, "base_url")
            there = replace(there, base_url=where, key_env=(), key_required=False, source=IN_CODE)
        there = replace(there, transport=TRANSPORT, headers={**there.headers, **(headers or {})})
        super().__init__(model, there, api_key=api_key, profile=profile, price=price, timeouts=timeouts, client=client)
        self._dialect = dialect_of(there, self._profile, quirks)

    @property
    def vendors(self) -> frozenset[str]:
        """A server that is not OpenAI's refuses what only OpenAI knows."""
        return frozenset({self._own_vendor} & {*VENDORS})

    @property
    def _own_vendor(self) -> str:
        """Whose rules hold: OpenAI's wherever the owner says that it is OpenAI's API, under whatever name."""
        return OWN if self._endpoint.dialect == "openai" else self._endpoint.name

    @property
    def dialect(self) -> Dialect:
        return self._dialect

    def _new_encoder(self, tools: Sequence[ToolDeclaration], attachments: Attachments) -> ChatEncoder:
        provider, dialect, names = self._endpoint.owner, self._dialect, WireNames(tools)
        return ChatEncoder(
            self._model,
            self._profile,
            names,
            provider=provider,
            dialect=dialect,
            vendor=self._own_vendor,
            attachments=attachments,
        )

    def _decoder(self, names: WireNames, peer: Peer) -> ChatDecoder:
        return ChatDecoder(names, peer, needs_done=self._dialect.needs_done, think_tags=self._profile.think_tags)

    def _finished(self, decoder: WireDecoder, answer: HttpResponse) -> Reply:
        assert isinstance(decoder, ChatDecoder)
        return decoder.finish(body_ended=answer.is_whole)

    def _whole(self, body: bytes, names: WireNames, peer: Peer) -> Reply:
        return decode_response(body, names, peer, think_tags=self._profile.think_tags)

    def _refused(self, failure: ModelFailure, names: WireNames) -> Reply:
        return ChatDecoder(names, Peer(self._endpoint.name, self._ref)).refused(failure)


def dialect_of(there: Endpoint, profile: ModelProfile, quirks: Mapping[str, Any] | None = None) -> Dialect:
    """How an endpoint speaks to a model. OpenAI's reasoning models have other names for two things.

    Who the endpoint is, its owner says; its address says nothing. Of one that only an address is known of, a model that
    is OpenAI's own by its name gets the limit under the one name that these models take.
    """
    dialect = OPENAI if there.dialect == "openai" else COMPATIBLE
    if dialect is OPENAI and profile.reasoning:
        dialect = replace(dialect, system_role="developer", max_tokens_field="max_completion_tokens")
    elif there.name not in endpoints.BUILT_IN and profile.reasoning and "prompt_cache_key" in profile.prompt:
        dialect = replace(dialect, max_tokens_field="max_completion_tokens")
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
