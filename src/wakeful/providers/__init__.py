"""Models behind the `Model` port: one folder a provider.

    from wakeful.providers import AnthropicMessages, Gemini, OpenAIChat, OpenAIResponses

Here live requests and replies in a provider's own words. What is retried, sent elsewhere or given up is decided in
`decisions`; which provider a reference such as `scripted:demo` names is settled in `bootstrap`. Names are loaded when
they are first used; the HTTP library, with the first request.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wakeful.contracts.models import ModelGlimpse as ModelGlimpse
    from wakeful.contracts.models import Reply as Reply
    from wakeful.ports import Model as Model
    from wakeful.ports import ModelRequest as ModelRequest
    from wakeful.providers.anthropic.client import AnthropicMessages as AnthropicMessages
    from wakeful.providers.gemini.client import Gemini as Gemini
    from wakeful.providers.openai_chat.client import OpenAIChat as OpenAIChat
    from wakeful.providers.openai_responses.client import OpenAIResponses as OpenAIResponses
    from wakeful.providers.prices import Price as Price
    from wakeful.providers.profiles import ModelProfile as ModelProfile
    from wakeful.providers.wire.http import Timeouts as Timeouts

_WHERE = {
    "AnthropicMessages": "wakeful.providers.anthropic.client",
    "Gemini": "wakeful.providers.gemini.client",
    "Model": "wakeful.ports",
    "ModelGlimpse": "wakeful.contracts.models",
    "ModelProfile": "wakeful.providers.profiles",
    "ModelRequest": "wakeful.ports",
    "OpenAIChat": "wakeful.providers.openai_chat.client",
    "OpenAIResponses": "wakeful.providers.openai_responses.client",
    "Price": "wakeful.providers.prices",
    "Reply": "wakeful.contracts.models",
    "Timeouts": "wakeful.providers.wire.http",
}

__all__ = list(_WHERE)


def __getattr__(name: str) -> Any:
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(where), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
