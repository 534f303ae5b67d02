"""Anthropic's Messages API, and servers that speak it.

`encode` makes requests (`block_writing` writes blocks, `joining` puts them into messages), `decode` reads answers
(`block_reading` reads blocks), `client` is the Model. Which endpoint, key and version to use is settled elsewhere.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wakeful.providers.anthropic.client import AnthropicMessages as AnthropicMessages

__all__ = ["AnthropicMessages"]


def __getattr__(name: str) -> object:
    if name == "AnthropicMessages":  # loaded when it is used: a program with another provider does not need it
        from wakeful.providers.anthropic.client import AnthropicMessages

        return AnthropicMessages
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
