"""What a wire format cannot do at all, told before anything is sent: such a request is none, and is not counted."""

from collections.abc import Mapping
from typing import Any

from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.models import TransportDiagnostics


def unsupported(provider: str, model_ref: str, words: str) -> ModelFailure:
    """The transport cannot do it. The next candidate may."""
    return ModelFailure(
        words,
        kind="unsupported_transport",
        stage="connect",
        diagnostics=TransportDiagnostics(stage="connect", provider=provider, model_ref=model_ref),
    )


def no_background(provider: str, model_ref: str, spoken: str, settings: Mapping[str, Any]) -> ModelFailure | None:
    """The refusal of a format without background responses; None when nobody asked for one."""
    if not settings.get("background"):
        return None
    return unsupported(
        provider,
        model_ref,
        f"settings.background: {spoken} has no background responses; the wire format openai_responses has "
        f"(openai:MODEL). Leave it out for {model_ref}",
    )
