"""The names around the settings of a model: vendors, fields that are not settings, and what to write instead.

The errors about settings are here, too: each says what was wrong, with the value, and what to write.
"""

import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any, Final, Literal, TypeAlias, get_args

from pydantic import ValidationError

from wakeful.contracts.errors import InvalidConfig

Capability: TypeAlias = Literal[
    "tools",
    "parallel_tool_calls",
    "forced_tool_choice",
    "vision",
    "files",
    "audio",
    "structured_output",
    "reasoning",
    "streaming",
]
"""Every word that `require` and `accept_gap` may have."""
VENDORS: Final = ("anthropic", "openai", "gemini")
"""Fields that hold what only one vendor knows."""
ABOUT_MODELS: Final = ("require", "accept_gap")
"""Settings that say which models may be asked; no model is sent them."""
EXTRAS: Final = ("extra_headers", "extra_body")
"""What goes to one provider as it is written."""
FROM_THE_REQUEST: Final = frozenset(
    {
        *("model", "messages", "input", "instructions", "system", "tools", "tool_choice", "stream", "stream_options"),
        *("response_format", "previous_response_id", "conversation"),
    }
)
"""Fields of a request body that the runtime writes: settings that set them would break what it promises."""
NOT_READ: Final = frozenset({"n", "logprobs", "top_logprobs", "functions", "function_call", "modalities", "audio"})
"""Fields that ask for an answer which nothing here reads."""
OWN_HEADERS: Final = frozenset(
    {
        *("authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"),
        *("host", "content-type", "content-length", "transfer-encoding", "connection", "accept", "accept-encoding"),
    }
)
"""Headers that are a key, or that follow from the request."""

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")


class UnknownSetting(InvalidConfig, TypeError):
    """A setting that does not exist; a TypeError too, because that is what Python says of a wrong keyword."""


_UNDER_VENDOR = 'Vendor-specific fields go under the vendor\'s name, for example anthropic={"top_k": 40}.'
INSTEAD: Final = {
    "max_output_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "stop_sequences": "stop",
    "reasoning_effort": "thinking",
    "effort": "thinking",
    "headers": "extra_headers",
    "user_id": "user",
}
"""Words of one API for what has a setting."""
BELONGS: Final = {
    **dict.fromkeys(("top_k", "context_management", "output_config", "speed"), "anthropic"),
    **dict.fromkeys(
        (
            *("background", "freeform_tools", "verbosity", "reasoning", "reasoning_summary", "text", "include"),
            *("prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "truncation", "store"),
            *("safety_identifier", "max_tool_calls", "prediction", "web_search_options"),
        ),
        "openai",
    ),
}
"""Fields of one vendor that are often written beside the others."""
_HINTS: Final = {
    "temperature": "give a number from 0 to 2",
    "top_p": "give a number from 0 to 1",
    "max_tokens": "give a whole number, at least 1, or leave it out",
    "stop": "give a text or a list of texts",
    "seed": "give a whole number",
    "presence_penalty": "give a number from -2 to 2",
    "frequency_penalty": "give a number from -2 to 2",
    "logit_bias": 'give token ids with whole numbers from -100 to 100: {"1734": -50}',
    "tool_choice": "give 'auto', 'required', 'none', the name of a tool, or a list of names",
    "parallel_tool_calls": "give True or False",
    "thinking": "give 'low', 'medium', 'high', a number of tokens, or False",
    "cache": "give True, False, '5m' or '1h'",
    "service_tier": "give a text such as 'auto', 'default' or 'flex'",
    "user": "give a text",
    "metadata": 'give texts by name: {"team": "support"}',
    "timeout": "give a number of seconds above 0",
    "first_byte_timeout": "give a number of seconds above 0",
    "extra_headers": 'give texts by name: {"x-trace": "a1"}',
    "stream": "give True or False",
    **dict.fromkeys(ABOUT_MODELS, f"give a list of capabilities: {', '.join(get_args(Capability))}"),
    **dict.fromkeys(("extra_body", *VENDORS), "give an object of JSON values"),
}


def unknown_setting(name: str, known: Collection[str]) -> UnknownSetting:
    """The error for a setting that does not exist, with the one that was probably meant."""
    message = f"{name!r} is not a model setting"
    if name in FROM_THE_REQUEST:
        return UnknownSetting(message, "The runtime writes this field of the request itself.")
    if name in INSTEAD:
        return UnknownSetting(message, f"Did you mean {INSTEAD[name]!r}? {_UNDER_VENDOR}")
    if name in BELONGS:
        vendor = BELONGS[name]
        return UnknownSetting(message, f'Write it under the vendor\'s name: {vendor}={{"{name}": ...}}.')
    near = get_close_matches(name, known, n=1, cutoff=0.6)
    meant = f"Did you mean {near[0]!r}? " if near else f"Settings are: {', '.join(known)}. "
    return UnknownSetting(message, meant + _UNDER_VENDOR)


def invalid_setting(error: ValidationError, given: dict[str, Any]) -> InvalidConfig:
    """The error for a value that does not fit, with the value and what would."""
    first = error.errors()[0]
    name = str(first["loc"][0])
    hint = _HINTS[name]
    if name in (*VENDORS, "extra_body") and isinstance(given[name], Mapping):
        return InvalidConfig(f"settings.{name}.{first['ctx']['error']}" if "ctx" in first else f"settings.{name}", hint)
    return InvalidConfig(f"settings.{name}={given[name]!r}", hint)


def check_fields_of_the_request(settings: Any) -> None:
    """Settings must not write what the runtime writes, and must not ask for what nothing reads."""
    for place in ("extra_body", *VENDORS):
        for name, value in (getattr(settings, place) or {}).items():
            if name in FROM_THE_REQUEST:
                hint = "use settings.tool_choice" if name == "tool_choice" else "leave it out"
                raise InvalidConfig(f"settings.{place}.{name}: the runtime writes this field itself", hint)
            if name in NOT_READ and value and not (name == "n" and value == 1):
                raise InvalidConfig(
                    f"settings.{place}.{name}={value!r} asks for an answer that nothing here reads", "leave it out"
                )
    for name, value in (settings.extra_headers or {}).items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise InvalidConfig(
                f"settings.extra_headers: {name!r}: {value!r} is not an HTTP header", "use plain characters"
            )
        if name.lower() in OWN_HEADERS:
            raise InvalidConfig(
                f"settings.extra_headers has {name!r}, which is a key or follows from the request",
                "give a key where the model is made (api_key=, headers=) or in the settings file: settings are stored",
            )
