"""Tokens in the words of Chat Completions, and in those of servers that nearly speak it.

What is missing, negative or no number counts as nothing: a server that cannot count never fails a reply.
"""

from typing import Any

from wakeful.contracts.models import TokenUsage


def usage_of(chunk: dict[str, Any]) -> dict[str, Any] | None:
    """Where a chunk or a response reports usage, if it does: at its top, in its choice, or under its vendor's name."""
    usage = chunk.get("usage")
    if isinstance(usage, dict):
        return usage
    vendor = chunk.get("x_groq")
    if isinstance(vendor, dict) and isinstance(vendor.get("usage"), dict):
        return vendor["usage"]  # type: ignore[no-any-return]
    return None


def tokens(usage: dict[str, Any]) -> TokenUsage:
    """Usage as a value. Cached tokens are among the input, reasoning tokens among the output, as reported."""
    asked, said = _details(usage, "prompt_tokens_details"), _details(usage, "completion_tokens_details")
    given, made = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    return TokenUsage(
        input_tokens=given,
        output_tokens=made,
        total_tokens=_count(usage, "total_tokens") or given + made,
        cached_input_tokens=_count(asked, "cached_tokens")
        or _count(usage, "prompt_cache_hit_tokens")
        or _count(usage, "cached_tokens"),
        cache_write_tokens=_count(asked, "cache_write_tokens"),
        reasoning_tokens=_count(said, "reasoning_tokens") or _count(usage, "reasoning_tokens"),
        audio_tokens=_count(asked, "audio_tokens") + _count(said, "audio_tokens"),
    )


def _details(usage: dict[str, Any], name: str) -> dict[str, Any]:
    found = usage.get(name)
    return found if isinstance(found, dict) else {}


def _count(usage: dict[str, Any], name: str) -> int:
    value = usage.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
