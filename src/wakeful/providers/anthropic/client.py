"""Claude, or whatever else answers at a Messages endpoint, as a Model."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from wakeful.contracts.model_settings import ModelSettings
from wakeful.contracts.models import Reply
from wakeful.contracts.tools import ToolDeclaration
from wakeful.ports import ModelRequest
from wakeful.providers.anthropic.context_editing import diagnostics, with_beta
from wakeful.providers.anthropic.decode import AnthropicDecoder, decode_response
from wakeful.providers.anthropic.encode import AnthropicEncoder
from wakeful.providers.anthropic.settings_writer import VENDOR, written
from wakeful.providers.endpoint_settings import address
from wakeful.providers.endpoints import ANTHROPIC_BEARER, IN_CODE, Auth, Endpoint, endpoint
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


class AnthropicMessages(HttpModel[AnthropicEncoder]):
    """`AnthropicMessages("claude-opus-4-7")`; `base_url=` for another server, `endpoint=` for a configured provider."""

    path = "/v1/messages"
    vendor = VENDOR
    searches = True
    request_id_header = "request-id"

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
        price: Price | None = None,
        timeouts: Timeouts | None = None,
        endpoint: Endpoint | None = None,
        client: "httpx2.AsyncClient | None" = None,
    ) -> None:
        there = _endpoint(endpoint, base_url, api_version, auth, headers)
        super().__init__(model, there, api_key=api_key, profile=profile, price=price, timeouts=timeouts, client=client)
        self._url = there.url("/messages" if urlsplit(there.base_url).path.endswith("/v1") else self.path)

    def most_output(self, settings: ModelSettings) -> int | None:
        """Every request names a limit; without one of the caller's, the encoder's."""
        most: int = written(settings, self._profile, frozenset()).fields["max_tokens"]
        return most

    def _new_encoder(self, tools: Sequence[ToolDeclaration], attachments: Attachments) -> AnthropicEncoder:
        there = self._endpoint
        return AnthropicEncoder(
            self._model,
            self._profile,
            tools,
            provider=there.owner,
            refuses_sampling=there.refuses_sampling,
            attachments=attachments,
        )

    def _decoder(self, names: WireNames, peer: Peer) -> AnthropicDecoder:
        return AnthropicDecoder(names, peer)

    def _headers(self, request: ModelRequest, encoder: AnthropicEncoder, secret: Secret | None) -> dict[str, str]:
        headers = super()._headers(request, encoder, secret)
        if encoder.edits(request) is not None:
            with_beta(headers)
        return headers

    def _whole(self, body: bytes, names: WireNames, peer: Peer) -> Reply:
        return decode_response(body, names, peer)

    def _noted(self, request: ModelRequest, encoder: AnthropicEncoder, request_id: str | None) -> dict[str, Any]:
        noted = super()._noted(request, encoder, request_id)
        edits = encoder.edits(request)
        return noted if edits is None else {**noted, "context_editing": diagnostics(edits, request.history)}


def _endpoint(
    given: Endpoint | None,
    base_url: str | None,
    api_version: str | None,
    auth: Auth | None,
    headers: Mapping[str, str] | None,
) -> Endpoint:
    """The endpoint with what the caller says about it. Another address has no key, unless the caller gives one."""
    found = given if given is not None else endpoint("anthropic")
    where = address(base_url, "base_url") if base_url is not None else found.base_url
    if where != found.base_url:
        found = replace(found, base_url=where, key_env=(), key_required=False, source=IN_CODE)
    if api_version is not None:
        implied: Auth = "bearer" if api_version >= ANTHROPIC_BEARER else found.auth
        found = replace(found, api_version=api_version, auth=implied)
    if auth is not None:
        found = replace(found, auth=auth)
    return replace(found, headers={**found.headers, **headers}) if headers else found
