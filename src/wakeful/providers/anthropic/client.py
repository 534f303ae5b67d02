"""Claude, or whatever else answers at a Messages endpoint, as a Model."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wakeful.contracts.content import Text
from wakeful.contracts.models import Reply
from wakeful.contracts.tools import ToolDeclaration
from wakeful.ports import ModelRequest
from wakeful.providers.anthropic.context_editing import diagnostics, with_beta
from wakeful.providers.anthropic.decode import StreamDecoder, decode_response
from wakeful.providers.anthropic.encode import Encoder, most_tokens
from wakeful.providers.endpoints import ANTHROPIC_BEARER, Auth, Endpoint, endpoint
from wakeful.providers.prices import Price
from wakeful.providers.profiles import ModelProfile
from wakeful.providers.wire.failures import Peer
from wakeful.providers.wire.http import Timeouts
from wakeful.providers.wire.http_model import HttpModel
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.redact import Secret
from wakeful.providers.wire.schema_answers import without_added_nulls

if TYPE_CHECKING:
    import httpx2


class AnthropicMessages(HttpModel[Encoder]):
    """`AnthropicMessages("claude-opus-4-7")`; `base_url=` for another server, `endpoint=` for a configured provider."""

    path = "/v1/messages"
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
        self._url = f"{there.base_url.removesuffix('/v1')}{self.path}"

    def most_output(self, settings: Mapping[str, Any]) -> int | None:
        """Every request names a limit; without one of the caller's, the encoder's."""
        return super().most_output(settings) if "max_tokens" in settings else most_tokens(self._profile)

    def _new_encoder(self, tools: Sequence[ToolDeclaration]) -> Encoder:
        there = self._endpoint
        return Encoder(self._model, self._profile, tools, provider=there.name, refuses_sampling=there.refuses_sampling)

    def _decoder(self, names: WireNames, peer: Peer) -> StreamDecoder:
        return StreamDecoder(names, peer)

    def _headers(self, request: ModelRequest, encoder: Encoder, secret: Secret | None) -> dict[str, str]:
        headers = super()._headers(request, encoder, secret)
        if encoder.edits(request) is not None:
            with_beta(headers)
        return headers

    def _whole(self, body: bytes, names: WireNames, peer: Peer) -> Reply:
        return decode_response(body, names, peer)

    def _in_our_terms(self, reply: Reply, request: ModelRequest) -> Reply:
        return reply if request.output_schema is None else _as_asked(reply, request.output_schema)

    def _noted(self, request: ModelRequest, encoder: Encoder, request_id: str | None) -> dict[str, Any]:
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
