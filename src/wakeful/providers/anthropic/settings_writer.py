"""Settings in the words of the Messages API. Pure.

Rule: what this API, this model, or the request beside it refuses is left out and named, never dropped in silence.
"""

from typing import Any

from wakeful.contracts.model_settings import ModelSettings
from wakeful.providers.anthropic.context_editing import CAPABILITY, SETTING
from wakeful.providers.profiles import ModelProfile
from wakeful.providers.wire.setting_fields import (
    SAMPLED,
    SettingFields,
    beside_answer,
    budget_of,
    effort_of,
    extra_body,
)

VENDOR = "anthropic"
FEW_TOKENS, MANY_TOKENS = 4_096, 32_000
"""The API wants a number. Without one from the caller: what every model takes, or as much as a long answer needs."""
LEAST_THINKING = 1_024
"""The API takes no smaller number of tokens to think with."""
_TIERS = {"auto": "auto", "default": "standard_only", "standard_only": "standard_only"}


def written(settings: ModelSettings, profile: ModelProfile, sampling: frozenset[str]) -> SettingFields:
    """The fields of a request that follow from settings alone; `sampling` are the parameters that are taken here."""
    made = SettingFields({"max_tokens": settings.max_tokens or most_tokens(profile)})
    own = settings.vendor(VENDOR)
    _think(made, settings, profile)
    thinks = _thinks({**made.fields, **own, **extra_body(settings)})
    for name in SAMPLED:
        # While it thinks, a model samples as it likes: the API takes no temperature beside that.
        taken = name in ("temperature", "top_p") and name in sampling and not thinks
        made.place(name, name if taken else None, getattr(settings, name))
    made.place("stop", "stop_sequences", list(settings.stop) if settings.stop else None)
    made.place("service_tier", "service_tier" if settings.service_tier in _TIERS else None, _tier(settings))
    made.place("user", "metadata", {"user_id": settings.user} if settings.user else None)
    made.place("metadata", None, settings.metadata)
    if settings.cache in ("5m", "1h") and "prompt_cache_blocks" not in profile.prompt:
        made.left_out.append("cache")
    for name, value in own.items():
        if name == "top_k":
            made.place("anthropic.top_k", name if name in sampling and not thinks else None, value)
        elif name == "output_config" and isinstance(value, dict):
            made.fields[name] = {**made.fields.get(name, {}), **value}
        elif name == SETTING:
            if CAPABILITY not in profile.prompt and value:
                made.left_out.append(f"anthropic.{name}")
        elif value is not None:
            made.fields[name] = value
    made.fields |= extra_body(settings)
    return made


def is_thinking(made: SettingFields) -> bool:
    return _thinks(made.fields)


def most_tokens(profile: ModelProfile) -> int:
    """How long an answer may be when the caller does not say."""
    return min(profile.max_output or FEW_TOKENS, MANY_TOKENS)


def _think(made: SettingFields, settings: ModelSettings, profile: ModelProfile) -> None:
    thinking = settings.thinking
    if thinking is None:
        return
    if thinking is False:
        if profile.reasoning:
            made.place("thinking", "thinking" if profile.thinking_off else None, {"type": "disabled"})
    elif not profile.reasoning:
        made.left_out.append("thinking")
    elif profile.effort:
        made.fields |= {
            "thinking": {"type": "adaptive"},
            "output_config": {"effort": effort_of(thinking, profile.efforts)},
        }
    else:
        _think_with_tokens(made, settings, profile, budget_of(thinking))


def _think_with_tokens(made: SettingFields, settings: ModelSettings, profile: ModelProfile, budget: int) -> None:
    """Thinking counts as output: the number has to be below the limit of the reply, with room for an answer."""
    room = settings.max_tokens or min(profile.max_output or MANY_TOKENS, max(most_tokens(profile), 2 * budget))
    budget = beside_answer(max(budget, LEAST_THINKING), room)
    if budget < LEAST_THINKING:
        made.left_out.append("thinking")
        return
    made.fields |= {"max_tokens": room, "thinking": {"type": "enabled", "budget_tokens": budget}}


def _tier(settings: ModelSettings) -> str | None:
    tier = settings.service_tier
    return _TIERS.get(tier, tier) if tier is not None else None


def _thinks(fields: dict[str, Any]) -> bool:
    thinking = fields.get("thinking")
    return isinstance(thinking, dict) and thinking.get("type") not in (None, "disabled")
