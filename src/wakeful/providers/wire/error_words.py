"""What providers call their errors, and which kind of failure each of those words means.

Four vendors, and everybody who is compatible with one: types and codes first, prose where there is nothing else.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from wakeful.contracts.models import FailureKind

QUOTA = ("insufficient_quota", "billing_hard_limit", "billing_error", "billing_not_active", "credit balance")
QUOTA_WORDS = (*QUOTA, "exceeded your current quota", "insufficient credits", "insufficient balance", "out of credits")
CONTEXT = (
    "context_length_exceeded",
    "exceed_context_size",
    "request_too_large",
    "string_above_max_length",
    "model_context_window_exceeded",
    "model_max_prompt_tokens_exceeded",
    "too_many_prompt_tokens",
)
CONTEXT_WORDS = (
    *CONTEXT,
    "prompt is too long",
    "maximum context length",
    "exceed context limit",
    "exceeds the available context",
    "exceeds the context window",
    "exceeds the model's context",
    "exceeds the maximum number of tokens",
    "exceeds the maximum allowed input length",
    "context window exceeds limit",
    "context size has been exceeded",
    "context length exceeded",
    "greater than the context length",
    "input is too long",
    "too large for model with",
    "reduce the length of the messages",
    "reduce your prompt",
    # xAI; Kimi; LM Studio; DashScope; Together; Z.ai, in two languages
    "maximum prompt length is",
    "exceeded model token limit",
    "context length of only",
    "range of input length should be",
    "is longer than the model's context length",
    "prompt exceeds max length",
    "prompt 超长",
)
CONTEXT_PATTERN = re.compile(
    r"prompt too long; exceeded (max )?context length"  # Ollama
    r"|prompt \(length \d+\) is longer than the maximum model length"  # vLLM
    r"|max_(completion_)?tokens must be at least 1, got -"  # vLLM, where the prompt left no room for an answer
    r"|prompt token count of [\d,]+ exceeds the limit"  # Copilot
    r"|`inputs` tokens \+ `max_new_tokens` must be <="  # TGI
    r"|`inputs` must have less than [\d,]+ tokens"  # TGI
)
"""The same, where words that also stand in other errors need their neighbours. In lower case."""
FILTER = ("content_filter", "content_policy_violation", "moderation", "invalid_prompt", "data_inspection_failed")
FILTER_WORDS = (*FILTER, "content management policy", "content filtering policy", "flagged for", "usage policy")
OVERLOADED = ("overloaded", "slow_down", "slow down", "engine_overloaded", "at capacity", "over capacity")
UNKNOWN_MODEL = ("model_not_found", "model not found", "not_found_error", "no such model", "is not a valid model")
TOOL_USE_FAILED = "tool_use_failed"
"""The provider held the model's tool call against its schema, and refused the model's own answer."""
_RATE = ("rate_limit", "too_many_requests", "tokens_per_min", "requests_per_min")
_SERVER = ("server_error", "api_error", "internal_error", "internalservererror", "internal_server_error")
_AUTH = (
    *("authentication_error", "permission_error", "invalid_api_key", "permission_denied", "unauthorized"),
    *("unauthenticated", "api_key_invalid"),
)
GOOGLE_LIMIT = "resource_exhausted"
"""Google's one word for a limit; whether it is one of a minute or of a day stands in its details."""
_USED_UP = ("perday", "billing_disabled", "credits are depleted", "spending cap")


class ProviderWords(NamedTuple):
    """An error in a provider's own words."""

    codes: str
    """Its types and codes, in lower case."""
    message: str
    refused_call: str | None = None
    """What the model wrote, when the provider refused it as a tool call."""
    retry_after: float | None = None
    """Seconds to wait, when the error itself says so."""


def kind_of_words(said: ProviderWords) -> FailureKind | None:
    """The kind, when the provider's own words settle it; types and codes before prose."""
    codes, prose = said.codes, f"{said.codes} {said.message.lower()}"
    if GOOGLE_LIMIT in codes:
        return "quota_exhausted" if _any(prose, _USED_UP) else "rate_limited"
    if _any(codes, QUOTA) or _any(prose, QUOTA_WORDS):
        return "quota_exhausted"
    if _any(codes, CONTEXT) or _any(prose, CONTEXT_WORDS) or CONTEXT_PATTERN.search(prose):
        return "context_length_exceeded"
    if _any(codes, FILTER) or _any(prose, FILTER_WORDS):
        return "content_filtered"
    if _any(codes, OVERLOADED):
        return "overloaded"
    if _any(codes, _RATE):
        return "rate_limited"
    if _any(codes, _AUTH):
        return "auth_error"
    if "timeout" in codes or "deadline_exceeded" in codes:
        return "timeout"
    if _any(codes, _SERVER):
        return "server_error"
    return "contract_error" if "invalid_request" in codes else None


def kind_of_status(status: int, said: ProviderWords) -> FailureKind:
    words = kind_of_words(said)
    if status in (401, 407):
        return "auth_error"
    if status == 403:
        return words if words in ("content_filtered", "quota_exhausted") else "auth_error"
    if status == 402:
        return "quota_exhausted"
    if status == 408:
        return "timeout"
    if status in (409, 425):
        return "server_error"  # a passing state of the server: again, later
    if status == 413:
        return "context_length_exceeded"
    if status == 400 and words == "auth_error":
        return "auth_error"  # Google's answer to a key that is none
    if status == 429:
        return words if words in ("quota_exhausted", "overloaded") else "rate_limited"
    if status in (529, 498):  # 498 is Groq's: its flexible tier is full
        return "overloaded"
    if status == 504 and words == "timeout":
        return "timeout"
    if status >= 500:
        busy = words == "overloaded" or _any(said.message.lower(), OVERLOADED)
        return "overloaded" if busy else "server_error"
    return words if words in ("quota_exhausted", "context_length_exceeded", "content_filtered") else "contract_error"


def _any(text: str, words: Iterable[str]) -> bool:
    return any(word in text for word in words)


def said_by(body: bytes) -> ProviderWords:
    text = body.decode("utf-8", "replace").strip()
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ProviderWords("", "" if text[:1] == "<" else text)  # a page for browsers helps nobody here
    if isinstance(value, list) and value:
        value = value[0]
    return said_in(value) if isinstance(value, dict) else ProviderWords("", text)


def said_in(value: Mapping[str, Any]) -> ProviderWords:
    """`{error: {type, code, message}}`, `{error: "..."}`, `{message, type, code}`, `{detail: ...}`, nested or not."""
    codes: list[str] = []
    message = ""
    refused: str | None = None
    wait: float | None = None
    for level in (value, value.get("error"), value.get("response")):
        if isinstance(level, str):
            message = message or level
        if not isinstance(level, Mapping):
            continue
        given = [level.get(name) for name in ("type", "code", "status", "object")]
        codes += [code.lower() for code in given if isinstance(code, str) and code != "error"]
        for name in ("message", "detail", "error_description"):
            found = level.get(name)
            if isinstance(found, str):
                message = message or found
            elif found is not None:
                message = message or json.dumps(found, ensure_ascii=False, default=str)
        if level.get("code") == TOOL_USE_FAILED:
            written = level.get("failed_generation")
            refused = written if isinstance(written, str) else ""
        details = level.get("details")
        for detail in details if isinstance(details, list) else ():
            if isinstance(detail, Mapping):
                codes += _google_words(detail)
                wait = _google_wait(detail) if wait is None else wait
        metadata = level.get("metadata")
        if isinstance(metadata, Mapping) and isinstance(metadata.get("raw"), str):
            message = f"{message}: {metadata['raw']}" if message else metadata["raw"]
        if isinstance(metadata, Mapping) and metadata.get("reasons"):
            codes.append("moderation")  # a gateway that says why its filter refused
    return ProviderWords(" ".join(codes), message, refused, wait)


def _google_words(detail: Mapping[str, Any]) -> list[str]:
    """The codes in a detail of Google's: the reason, and which limits were met."""
    violations = detail.get("violations")
    found = [detail.get("reason")]
    found += [each.get("quotaId") for each in violations or () if isinstance(each, Mapping)]
    return [word.lower() for word in found if isinstance(word, str)]


def _google_wait(detail: Mapping[str, Any]) -> float | None:
    """The seconds in `retryDelay: "34.5s"`."""
    try:
        wait = float(str(detail.get("retryDelay")).removesuffix("s"))
    except ValueError:
        return None
    return wait if 0 <= wait < 86_400 else None


def is_about_the_model(said: ProviderWords) -> bool:
    prose = f"{said.codes} {said.message.lower()}"
    return _any(prose, UNKNOWN_MODEL) or ("model" in prose and _any(prose, ("not exist", "not found", "unknown model")))
