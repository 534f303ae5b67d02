"""Gemini, or whatever else answers at a `generateContent` endpoint, as a Model."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from wakeful.contracts.models import Reply
from wakeful.contracts.tools import ToolDeclaration
from wakeful.ports import ModelRequest
from wakeful.providers.endpoint_settings import address
from wakeful.providers.endpoints import IN_CODE, Endpoint, endpoint
from wakeful.providers.gemini.decode import GeminiDecoder, decode_response
from wakeful.providers.gemini.encode import GeminiEncoder
from wakeful.providers.gemini.settings_writer import VENDOR
from wakeful.providers.prices import Price
from wakeful.providers.profiles import ModelProfile
from wakeful.providers.wire.addresses import with_query
from wakeful.providers.wire.attachments import Attachments
from wakeful.providers.wire.failures import Peer
from wakeful.providers.wire.http import Timeouts
from wakeful.providers.wire.http_model import HttpModel
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.redaction import Secret

if TYPE_CHECKING:
    import httpx2


class Gemini(HttpModel[GeminiEncoder]):
    """`Gemini("gemini-2.5-flash")`; `base_url=` for another server, `endpoint=` for a configured provider."""

    path = "/models"
    vendor = VENDOR
    searches = True

    def __init__(
        self,
        model: str,
        *,
        api_key: str | Secret | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        profile: ModelProfile | Mapping[str, Any] | None = None,
        price: Price | None = None,
        timeouts: Timeouts | None = None,
        endpoint: Endpoint | None = None,
        client: "httpx2.AsyncClient | None" = None,
    ) -> None:
        there = _endpoint(endpoint, base_url, headers)
        name = quote(model if "/" in model else f"models/{model}", safe="/")
        super().__init__(model, there, api_key=api_key, profile=profile, price=price, timeouts=timeouts, client=client)
        self._url = there.url(f"/{name}:generateContent")
        self._stream_url = with_query(there.url(f"/{name}:streamGenerateContent"), [("alt", "sse")])

    def _url_of(self, request: ModelRequest) -> str:
        return self._stream_url if request.stream else self._url

    def _new_encoder(self, tools: Sequence[ToolDeclaration], attachments: Attachments) -> GeminiEncoder:
        return GeminiEncoder(self._model, self._profile, tools, provider=self._endpoint.owner, attachments=attachments)

    def _decoder(self, names: WireNames, peer: Peer) -> GeminiDecoder:
        return GeminiDecoder(names, peer)

    def _whole(self, body: bytes, names: WireNames, peer: Peer) -> Reply:
        return decode_response(body, names, peer)


def _endpoint(given: Endpoint | None, base_url: str | None, headers: Mapping[str, str] | None) -> Endpoint:
    """The endpoint with what the caller says about it. Another address has no key, unless the caller gives one."""
    found = given if given is not None else endpoint("gemini")
    where = address(base_url, "base_url") if base_url is not None else found.base_url
    if where != found.base_url:
        found = replace(found, base_url=where, key_env=(), key_required=False, source=IN_CODE)
    return replace(found, headers={**found.headers, **headers}) if headers else found
