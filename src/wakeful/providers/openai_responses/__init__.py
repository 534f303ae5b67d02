"""OpenAI's Responses API, and endpoints that speak it with rules of their own (`openai-codex`).

`encode` and `items` make requests; `decode`, `output` and `lost` read answers: pure, all of them. `client` sends one to
get the other. `continuation` knows what the provider still has of a conversation, and may be empty at any time.
Background responses are not asked for.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wakeful.providers.openai_responses.client import OpenAIResponses

__all__ = ["OpenAIResponses"]


def __getattr__(name: str) -> Any:
    if name == "OpenAIResponses":
        from wakeful.providers.openai_responses.client import OpenAIResponses

        return OpenAIResponses
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
