"""Chat Completions, OpenAI's own and that of every server that calls itself compatible.

`dialect` says on which points servers differ. `messages` and `encode` make requests; `decode`, with `draft`, `calls`,
`usage` and `text`, reads answers; `client` sends one and reads the other. What is retried is not decided here.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wakeful.providers.openai_chat.client import OpenAIChat

__all__ = ["OpenAIChat"]


def __getattr__(name: str) -> Any:
    if name == "OpenAIChat":  # the HTTP library is loaded by whoever asks a model, and by nobody else
        from wakeful.providers.openai_chat.client import OpenAIChat

        return OpenAIChat
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
