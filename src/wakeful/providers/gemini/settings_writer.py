"""Settings in the words of Gemini's API. Pure.

Rule: what this API, this model, or the request beside it refuses is left out and named, never dropped in silence.
"""

import re
from difflib import get_close_matches
from typing import Any

from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.model_settings import ModelSettings
from wakeful.providers.profiles import ModelProfile
from wakeful.providers.wire.setting_fields import (
    SAMPLED,
    SettingFields,
    beside_answer,
    budget_of,
    effort_of,
    extra_body,
)

VENDOR = "gemini"
GENERATION = "generationConfig"
IN_GENERATION = frozenset(
    {
        *("topK", "mediaResolution", "responseModalities", "speechConfig", "thinkingConfig", "imageConfig"),
        *("enableEnhancedCivicAnswers", "routingConfig", "audioTimestamp", "stopSequences", "maxOutputTokens"),
    }
)
"""Fields of Gemini's own that belong into `generationConfig`."""
BESIDE_IT = frozenset({"safetySettings", "cachedContent", "labels", "serviceTier", "store"})
"""Fields of Gemini's own that belong into the request itself."""
_NAMES = {"top_p": "topP", "presence_penalty": "presencePenalty", "frequency_penalty": "frequencyPenalty"}
_TIERS = {"default": "standard", "standard_only": "standard", "standard": "standard"}
_OWN_TIERS = ("flex", "priority")
LONGEST_THOUGHT = 24_576
"""As many tokens as every model that takes a number may be told to think with."""


def written(settings: ModelSettings, profile: ModelProfile) -> SettingFields:
    """The fields of a request that follow from settings alone."""
    config = SettingFields()
    config.place("max_tokens", "maxOutputTokens", settings.max_tokens)
    for name in SAMPLED:
        taken = name in profile.sampling and name != "logit_bias"
        config.place(name, _NAMES.get(name, name) if taken else None, getattr(settings, name))
    config.place("stop", "stopSequences", list(settings.stop) if settings.stop else None)
    _think(config, settings, profile)
    made = SettingFields(left_out=config.left_out)  # one list: they are told together
    _tier(made, settings)
    made.place("user", None, settings.user)
    made.place("metadata", None, settings.metadata)
    if settings.cache not in (None, True):  # Gemini caches by itself, for as long as it likes
        made.left_out.append("cache")
    if settings.parallel_tool_calls is False:
        made.left_out.append("parallel_tool_calls")
    for name, value in settings.vendor(VENDOR).items():
        field = camel_case(name)
        if field == "topK":
            config.place("gemini.top_k", field if "top_k" in profile.sampling else None, value)
        elif value is not None:
            (config if field in IN_GENERATION else made).fields[field] = value
    extra = dict(extra_body(settings))
    generation = {**config.fields, **extra.pop(GENERATION, {})}
    made.fields |= extra
    if generation:
        made.fields[GENERATION] = generation
    return made


def refused_settings(settings: ModelSettings) -> str | None:
    """What is wrong with the fields under `gemini`; None when each has a place in a request."""
    known = IN_GENERATION | BESIDE_IT
    for name in settings.vendor(VENDOR):
        if camel_case(name) not in known:
            near = get_close_matches(camel_case(name), known, n=1)
            meant = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(sorted(known))}"
            return f"settings.gemini.{name} is not a field of Gemini's API; {meant} Other fields go into extra_body"
    return None


def check(settings: ModelSettings) -> None:
    """Raises ModelFailure for a field that Gemini does not have."""
    wrong = refused_settings(settings)
    if wrong is not None:
        raise ModelFailure(wrong, kind="contract_error", stage="send", retryable=False)


def camel_case(name: str) -> str:
    """A field as the API spells it: both spellings are taken."""
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


def _think(made: SettingFields, settings: ModelSettings, profile: ModelProfile) -> None:
    thinking = settings.thinking
    config: dict[str, Any]
    if thinking is None:
        return
    if thinking is False:
        if not profile.reasoning:
            return
        config = {"thinkingBudget": 0}
        made.place("thinking", "thinkingConfig" if profile.thinking_off else None, config)
        return
    if not profile.reasoning:
        made.left_out.append("thinking")
        return
    if profile.effort:
        config = {"thinkingLevel": effort_of(thinking, profile.efforts).upper()}
    else:
        budget = min(budget_of(thinking), LONGEST_THOUGHT)
        most = settings.max_tokens
        config = {"thinkingBudget": budget if most is None else beside_answer(budget, most)}
    made.fields["thinkingConfig"] = {**config, "includeThoughts": True}


def _tier(made: SettingFields, settings: ModelSettings) -> None:
    tier = settings.service_tier
    if tier is None or tier == "auto":
        return
    made.place("service_tier", "serviceTier" if tier in (*_TIERS, *_OWN_TIERS) else None, _TIERS.get(tier, tier))
