"""Settings in the words of Chat Completions. Pure.

OpenAI's own endpoint takes more than servers that call themselves compatible: those refuse fields they do not know, so
that only what all of them know is sent, and what a dialect names. Rule: what is not sent is named in `left_out`.
"""

from typing import Any

from wakeful.contracts.model_settings import ModelSettings
from wakeful.providers.openai_chat.dialect import Dialect
from wakeful.providers.profiles import ModelProfile
from wakeful.providers.wire.setting_fields import SAMPLED, SettingFields, effort_of, extra_body, openai_tier

OWN = "openai"
"""Whose format it is."""
RESPONSES_ONLY = frozenset(
    {
        *("background", "context_management", "freeform_tools", "include", "max_tool_calls", "prompt", "reasoning"),
        *("reasoning_summary", "text", "truncation"),
    }
)
"""Fields of OpenAI's that its other format knows."""


def written(settings: ModelSettings, profile: ModelProfile, dialect: Dialect, vendor: str) -> SettingFields:
    """The fields of a request that follow from settings alone; `vendor` is whose rules and whose own settings hold."""
    made = SettingFields()
    own = settings.vendor(vendor)
    made.place("max_tokens", dialect.max_tokens_field, settings.max_tokens)
    for name in SAMPLED:
        made.place(name, name if name in profile.sampling else None, getattr(settings, name))
    # OpenAI's reasoning models refuse stop sequences.
    stops = not (vendor == OWN and profile.reasoning)
    made.place("stop", "stop" if stops else None, list(settings.stop) if settings.stop else None)
    _think(made, settings, profile, dialect)
    for name, value in (("service_tier", openai_tier(settings)), ("user", settings.user)):
        made.place(name, name if name in dialect.known_fields else None, value)
    # OpenAI stores no metadata of what it does not store.
    stored = "metadata" in dialect.known_fields and (vendor != OWN or own.get("store"))
    made.place("metadata", "metadata" if stored else None, settings.metadata)
    if settings.cache not in (None, True):
        made.left_out.append("cache")
    for name, value in own.items():
        if name in RESPONSES_ONLY:
            if value:
                made.left_out.append(f"{vendor}.{name}")
        elif name != "prompt_cache_key" and value is not None:
            made.fields[name] = value
    made.fields |= extra_body(settings)
    return made


def _think(made: SettingFields, settings: ModelSettings, profile: ModelProfile, dialect: Dialect) -> None:
    thinking: Any = settings.thinking
    if thinking is None or (thinking is False and not profile.reasoning):
        return
    taken = profile.reasoning and "reasoning_effort" in dialect.known_fields and (thinking or profile.thinking_off)
    effort = effort_of(thinking, profile.efforts) if thinking else "none"
    made.place("thinking", "reasoning_effort" if taken else None, effort)
