"""From `provider:model` to a model that can be asked. The client's code is loaded here and not before.

What a person has to set right (no such provider, no model, no key) is raised at once. A transport that this version
does not speak is not: its model fails when it is asked, without a request, so that the next candidate gets its turn.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.model_settings import ModelSettings
from wakeful.contracts.models import ModelGlimpse, Reply, TransportDiagnostics
from wakeful.ports import Model, ModelRequest
from wakeful.providers.endpoints import TRANSPORTS, Endpoint, resolve


def unsupported(provider: str, model_ref: str, words: str) -> ModelFailure:
    """The transport cannot do it. The next candidate may."""
    return ModelFailure(
        words,
        kind="unsupported_transport",
        stage="connect",
        diagnostics=TransportDiagnostics(stage="connect", provider=provider, model_ref=model_ref),
    )


class UnsupportedTransport:
    """A model whose provider is configured with a transport that nothing here speaks."""

    def __init__(self, ref: str, endpoint: Endpoint) -> None:
        self._ref = ref
        self._endpoint = endpoint

    @property
    def ref(self) -> str:
        return self._ref

    def refusal(self, settings: ModelSettings) -> ModelFailure:
        """It cannot be asked for anything."""
        return unsupported(
            self._endpoint.name,
            self._ref,
            f"{self._endpoint.name} is configured with the transport {self._endpoint.transport!r}, which is not "
            f"supported; supported are: {', '.join(TRANSPORTS)}",
        )

    def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        """Asking it all the same raises ModelFailure; nothing is sent."""
        return _Refusal(self.refusal(request.settings))


class _Refusal:
    """An answer that is nothing but a failure."""

    def __init__(self, failure: ModelFailure) -> None:
        self._failure = failure

    def __aiter__(self) -> "_Refusal":
        return self

    async def __anext__(self) -> ModelGlimpse | Reply:
        raise self._failure


def model_from_reference(reference: str, *, settings: Mapping[str, Any] | None = None) -> Model:
    """The model of a reference such as `anthropic:claude-opus-4-7`. Raises UnknownProvider or InvalidConfig.

    `settings` stand for the owner's file, when the caller has read it already.
    """
    endpoint, name = resolve(reference, settings=settings)
    if endpoint.wire is None:
        return UnsupportedTransport(f"{endpoint.name}:{name}", endpoint)
    endpoint.key()  # a key that is not there is told now, and not in the middle of a turn
    if endpoint.wire == "openai_responses":
        from wakeful.providers.openai_responses import OpenAIResponses

        return OpenAIResponses(name, endpoint=endpoint)
    if endpoint.wire == "anthropic":
        from wakeful.providers.anthropic import AnthropicMessages

        return AnthropicMessages(name, endpoint=endpoint)
    if endpoint.wire == "gemini":
        from wakeful.providers.gemini import Gemini

        return Gemini(name, endpoint=endpoint)
    from wakeful.providers.openai_chat import OpenAIChat

    return OpenAIChat(name, endpoint=endpoint)
