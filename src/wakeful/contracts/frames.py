"""The prompt as a provider-neutral frame: what it says, how stable each block is, and what caches may key on.

A transport lowers the frame to its own fields. It owns no prompt semantics, and what it remembers about earlier
requests never leaks back into the frame.
"""

from typing import Literal

from wakeful.contracts.values import Value


class PromptContentBlock(Value):
    """A piece of the prompt."""

    text: str
    stability: Literal["stable", "agent_scoped", "turn_scoped"]
    cache_breakpoint: bool = False
    """What comes before and up to here is worth caching."""


class ProviderPromptCache(Value):
    """What a provider's cache may be keyed on."""

    agent_id: str
    prompt_cache_key: str
    """The same for every turn of an agent while its guidance and its tools are; it never follows the conversation."""
    context_fingerprint: str
    """Of the whole context as the turn began: for diagnosis, never a cache key."""
    working_memory_revision: int = 0
    compression_epoch: int = 0


class ProviderPromptFrame(Value):
    """What a request says before the conversation."""

    system_prompt: str
    system_blocks: tuple[PromptContentBlock, ...] = ()
    context_blocks: tuple[PromptContentBlock, ...] = ()
    cache: ProviderPromptCache | None = None
