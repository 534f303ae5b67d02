"""Settings in the words of the Responses API. Pure.

The format knows no stop sequences, seed or penalties. Rule: what is not sent is named in `left_out`.
"""

from typing import Any

from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.model_settings import ModelSettings
from wakeful.providers.profiles import ModelProfile
from wakeful.providers.wire.setting_fields import SAMPLED, SettingFields, effort_of, extra_body, openai_tier

VENDOR = "openai"
FREEFORM = "freeform_tools"
"""A field of ours: tools that take one text are offered as such, with their grammar."""
NOT_HERE = frozenset({"prediction", "web_search_options", "store"})
"""Fields of OpenAI's that its other format knows, or that follow from the client."""
WITH_A_PLACE = frozenset(
    {
        *("background", "include", "prompt_cache_key", "reasoning", "reasoning_effort", "reasoning_summary"),
        *("text", "verbosity", FREEFORM),
    }
)
"""Fields that the encoder puts where they belong; others go as they are."""


def written(
    settings: ModelSettings, profile: ModelProfile, *, limits_output: bool, keeps_answers: bool
) -> SettingFields:
    """The fields of a request that follow from settings alone."""
    made = SettingFields()
    made.place("max_tokens", "max_output_tokens" if limits_output else None, settings.max_tokens)
    for name in SAMPLED:
        taken = name in ("temperature", "top_p") and name in profile.sampling
        made.place(name, name if taken else None, getattr(settings, name))
    made.place("stop", None, settings.stop or None)
    made.place("service_tier", "service_tier", openai_tier(settings))
    for name in ("user", "metadata"):
        made.place(name, name if keeps_answers else None, getattr(settings, name))
    # A model that never thinks need not be told not to.
    asks = settings.thinking or (settings.thinking is False and profile.reasoning)
    if asks and asked_effort(settings, profile) is None:
        made.left_out.append("thinking")
    if settings.cache not in (None, True):
        made.left_out.append("cache")
    own = settings.vendor(VENDOR)
    if own.get("prompt_cache_key") and "prompt_cache_key" not in profile.prompt:
        made.left_out.append("openai.prompt_cache_key")
    if own.get("background") and not keeps_answers:
        made.left_out.append("openai.background")
    for name, value in own.items():
        if value is None or name in WITH_A_PLACE:
            continue
        made.place(f"openai.{name}", None if name in NOT_HERE else name, value)
    made.fields |= extra_body(settings)
    return made


def asked_effort(settings: ModelSettings, profile: ModelProfile) -> str | None:
    """How hard the model is told to think; None where nobody asked, or it cannot be told."""
    thinking: Any = settings.thinking
    if thinking is None or not profile.reasoning:
        return None
    if thinking is False:
        return "none" if profile.thinking_off else None
    return effort_of(thinking, profile.efforts)


def reasoning_of(settings: ModelSettings, profile: ModelProfile) -> dict[str, Any]:
    """The field `reasoning`: the effort, and what is written for OpenAI over it."""
    own = settings.vendor(VENDOR)
    effort = asked_effort(settings, profile)
    reasoning = {} if effort is None else {"effort": effort}
    reasoning |= own["reasoning"] if isinstance(own.get("reasoning"), dict) else {}
    for name, field in (("reasoning_effort", "effort"), ("reasoning_summary", "summary")):
        if own.get(name) is not None:
            reasoning[field] = own[name]
    return reasoning


def text_of(settings: ModelSettings) -> dict[str, Any]:
    """The field `text`, without the shape of the answer."""
    own = settings.vendor(VENDOR)
    text = dict(own["text"]) if isinstance(own.get("text"), dict) else {}
    if own.get("verbosity") is not None:
        text["verbosity"] = own["verbosity"]
    return text


def is_background(settings: ModelSettings) -> bool:
    """Is the provider to work at the request by itself? Raises ModelFailure for a setting that is no yes or no."""
    wanted = settings.vendor(VENDOR).get("background")
    if wanted not in (None, True, False):
        raise ModelFailure(
            f"settings.openai.background is {wanted!r}; it is True or False",
            kind="contract_error",
            stage="send",
            retryable=False,
        )
    return bool(wanted)
