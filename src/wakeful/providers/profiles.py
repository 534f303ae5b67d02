"""What a model can do. Capabilities are declared for each model; what is not declared counts as not there.

Windows and limits are the sellers' own, as of `CHECKED`; where nothing confirms a number, there is none. The table goes
by the beginning of the model's name, the longest that fits. A name nobody has heard of gets a profile
that every server understands. A profile can be changed in the settings file or in code, field by field.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import date
from difflib import get_close_matches
from typing import Any, Literal, TypeAlias

from wakeful.contracts.errors import InvalidConfig

PromptCapability: TypeAlias = Literal[
    "full_request_only", "prompt_cache_key", "prompt_cache_blocks", "incremental_responses", "context_management"
]

CHECKED = date(2026, 11, 15)
"""When the table was held against the sellers' pages and the windows in the price list."""
SAMPLING = frozenset({"temperature", "top_p"})
CHAT_SAMPLING = SAMPLING | {"presence_penalty", "frequency_penalty", "seed", "logit_bias"}
"""What OpenAI's own models and servers of open models take in Chat Completions."""
NO_SAMPLING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """One model's capabilities. Every field left out is the safe answer: no."""

    tools: bool = False
    parallel_tool_calls: bool = False
    forced_tool_choice: bool = False
    """May be told that it must call a tool."""
    images: bool = False
    files: bool = False
    """Documents: PDF, and whatever else its format takes. A text file is read to any model."""
    audio: bool = False
    video: bool = False
    structured_output: bool = False
    """Can be held to a JSON Schema by its provider; the answer is checked here either way."""
    schema_beside_tools: bool = True
    """Can be held to a schema while it has tools; otherwise it is told the schema in words then."""
    reasoning: bool | None = False
    """Thinks before it answers, and wants its thoughts back. None is not known: what it shows of them goes back."""
    think_tags: bool = False
    """Writes `<think>` blocks anywhere in its text; one that begins a text is reasoning whatever stands here."""
    effort: bool = False
    """Is told how hard to think in a word; otherwise Anthropic's models take a number of tokens."""
    efforts: frozenset[str] = frozenset({"low", "medium", "high"})
    """Words for how hard to think that it knows."""
    thinking_off: bool = False
    """Can be told not to think."""
    sampling: frozenset[str] = NO_SAMPLING
    """The sampling parameters it accepts; others are not sent."""
    context_window: int | None = None
    """Tokens; None is not known."""
    max_output: int | None = None
    prompt: frozenset[PromptCapability] = frozenset({"full_request_only"})

    def with_settings(self, settings: Mapping[str, Any], where: str = "the profile") -> "ModelProfile":
        """The profile with some fields changed. Raises InvalidConfig for a field that there is not."""
        known = {field.name: field for field in fields(self)}
        changed: dict[str, Any] = {}
        for name, value in settings.items():
            if name not in known:
                near = get_close_matches(name, known, n=1)
                raise InvalidConfig(
                    f"{where}: there is no capability {name!r}",
                    f"Did you mean {near[0]}?" if near else f"There are: {', '.join(sorted(known))}.",
                )
            changed[name] = _fitting(name, value, getattr(self, name), where)
        return replace(self, **changed)


UNKNOWN = ModelProfile(tools=True, reasoning=None, sampling=SAMPLING)
"""For a model that is not in the table, at an endpoint that takes tools: one call at a time, words only."""

_OPENAI: frozenset[PromptCapability] = frozenset({"prompt_cache_key", "incremental_responses"})
_ANTHROPIC: frozenset[PromptCapability] = frozenset({"prompt_cache_blocks", "context_management"})

_GPT = ModelProfile(
    tools=True,
    parallel_tool_calls=True,
    forced_tool_choice=True,
    images=True,
    files=True,
    structured_output=True,
    sampling=CHAT_SAMPLING,
    context_window=128_000,
    max_output=16_384,
    prompt=_OPENAI,
)
_GPT_5 = replace(_GPT, reasoning=True, sampling=frozenset({"seed"}), context_window=400_000, max_output=128_000)
_EFFORTS = frozenset({"low", "medium", "high"})
_GPT_54 = replace(_GPT_5, thinking_off=True, efforts=_EFFORTS | {"xhigh"})
_GPT_5_CHAT = replace(_GPT_5, context_window=128_000, max_output=16_384)
_O = replace(_GPT, reasoning=True, sampling=frozenset({"seed"}), context_window=200_000, max_output=100_000)
_CLAUDE = ModelProfile(
    tools=True,
    parallel_tool_calls=True,
    forced_tool_choice=True,
    images=True,
    files=True,
    reasoning=True,
    thinking_off=True,
    sampling=SAMPLING | {"top_k"},
    context_window=200_000,
    max_output=64_000,
    prompt=_ANTHROPIC,
)
_CLAUDE_45 = replace(_CLAUDE, structured_output=True)
_CLAUDE_46 = replace(_CLAUDE_45, effort=True, efforts=_EFFORTS | {"max"}, context_window=1_000_000, max_output=128_000)
_CLAUDE_47 = replace(_CLAUDE_46, sampling=NO_SAMPLING, efforts=_EFFORTS | {"xhigh", "max"})
_CLAUDE_55 = replace(_CLAUDE_47, forced_tool_choice=False)
_OPEN = ModelProfile(
    tools=True, parallel_tool_calls=True, forced_tool_choice=True, structured_output=True, sampling=CHAT_SAMPLING
)
_GEMINI = ModelProfile(
    tools=True,
    parallel_tool_calls=True,
    forced_tool_choice=True,
    images=True,
    files=True,
    audio=True,
    video=True,
    structured_output=True,
    schema_beside_tools=False,
    sampling=SAMPLING | {"top_k", "seed", "presence_penalty", "frequency_penalty"},
    context_window=1_048_576,
    max_output=65_536,
)
_GEMINI_25 = replace(_GEMINI, reasoning=True, thinking_off=True)
_GEMINI_3 = replace(_GEMINI, reasoning=True, effort=True, schema_beside_tools=True)
_GROK = ModelProfile(
    tools=True,
    parallel_tool_calls=True,
    forced_tool_choice=True,
    images=True,
    structured_output=True,
    reasoning=True,
    sampling=SAMPLING,
    context_window=256_000,
)
_OPEN_THINKER = replace(_OPEN, structured_output=False, reasoning=True)
_MISTRAL = SAMPLING | {"presence_penalty", "frequency_penalty"}
"""Mistral refuses fields that it does not know, `seed` among them."""

_AT_BEDROCK = re.compile(r"^([a-z]{2,6}\.)?(anthropic|meta|mistral|deepseek|openai|qwen|minimax|moonshotai?|zai)\.")

PROFILES: dict[str, ModelProfile] = {
    # OpenAI
    "gpt-4-turbo": replace(_GPT, files=False, structured_output=False, max_output=4_096),
    "gpt-4o": _GPT,
    "gpt-4o-audio": replace(_GPT, images=False, files=False, audio=True, structured_output=False),
    "gpt-audio": replace(_GPT, images=False, files=False, audio=True, structured_output=False),
    "gpt-4.1": replace(_GPT, context_window=1_047_576, max_output=32_768),
    "gpt-5": _GPT_5,
    "gpt-5-chat": _GPT_5_CHAT,
    "gpt-5.1-chat": _GPT_5_CHAT,
    "gpt-5.3": _GPT_5_CHAT,
    "gpt-5.3-codex": _GPT_5,
    "gpt-5.4": replace(_GPT_54, context_window=1_050_000),
    "gpt-5.4-mini": replace(_GPT_54, context_window=400_000),
    "gpt-5.4-nano": replace(_GPT_54, context_window=400_000),
    "gpt-5.5": replace(_GPT_54, context_window=1_050_000),
    "gpt-5.6": replace(_GPT_54, context_window=1_050_000),
    "gpt-6": replace(_GPT_54, context_window=1_050_000),
    "gpt-6.1": replace(_GPT_54, context_window=1_050_000),
    "o1": replace(_O, parallel_tool_calls=False),
    "o1-mini": replace(_O, tools=False, parallel_tool_calls=False, context_window=128_000, max_output=65_536),
    "o1-preview": replace(_O, tools=False, parallel_tool_calls=False, context_window=128_000, max_output=32_768),
    "o3": replace(_O, parallel_tool_calls=False),
    "o4-mini": replace(_O, parallel_tool_calls=False),
    "gpt-oss": replace(_OPEN, reasoning=True, context_window=131_072),
    # Anthropic
    "claude-": _CLAUDE,
    "claude-3-": replace(_CLAUDE, reasoning=False, max_output=4_096),
    "claude-3-5-": replace(_CLAUDE, reasoning=False, max_output=8_192),
    "claude-3-7-": _CLAUDE,
    "claude-opus-4": replace(_CLAUDE, max_output=32_000),
    "claude-opus-4-5": _CLAUDE_45,
    "claude-opus-4-6": _CLAUDE_46,
    "claude-opus-4-7": _CLAUDE_47,
    "claude-opus-4-8": _CLAUDE_47,
    "claude-opus-5": _CLAUDE_47,
    "claude-opus-5-5": _CLAUDE_55,
    "claude-sonnet-4": _CLAUDE,
    "claude-sonnet-4-5": _CLAUDE_45,
    "claude-sonnet-4-6": _CLAUDE_46,
    "claude-sonnet-5": _CLAUDE_47,
    "claude-sonnet-5-5": _CLAUDE_47,
    "claude-haiku-4-5": _CLAUDE_45,
    "claude-haiku-5-5": _CLAUDE_47,
    "claude-fable-5": replace(_CLAUDE_47, forced_tool_choice=False),
    # Google
    "gemini-": _GEMINI_3,
    "gemini-1.5": replace(_GEMINI, max_output=8_192),
    "gemini-2.0": replace(_GEMINI, max_output=8_192),
    "gemini-2.5": _GEMINI_25,
    "gemini-2.5-pro": replace(_GEMINI_25, thinking_off=False),
    "gemini-3": _GEMINI_3,
    # xAI
    "grok-3": replace(_GROK, images=False, reasoning=False, context_window=131_072),
    "grok-3-mini": replace(_GROK, images=False, context_window=131_072),
    "grok-code": replace(_GROK, images=False),
    "grok-4-fast": replace(_GROK, context_window=2_000_000),
    "grok-4-1-fast": replace(_GROK, context_window=2_000_000),
    "grok-4": _GROK,
    "grok-4.3": replace(_GROK, context_window=1_000_000),
    "grok-4.5": replace(_GROK, context_window=500_000),
    "grok-4.6": replace(_GROK, context_window=500_000),
    "grok-4.7": replace(_GROK, context_window=500_000),
    # Open models, wherever they run
    "deepseek-chat": replace(_OPEN, context_window=64_000, max_output=8_192),
    "deepseek-v4": replace(_OPEN, reasoning=True, context_window=1_000_000),
    "deepseek-reasoner": replace(_OPEN, reasoning=True, sampling=NO_SAMPLING, context_window=64_000, max_output=8_192),
    "llama-3": _OPEN,
    "llama-3.1": replace(_OPEN, context_window=131_072),
    "llama-3.2": replace(_OPEN, context_window=131_072),
    "llama-3.3": replace(_OPEN, context_window=131_072),
    "llama3": _OPEN,
    "llama-4": replace(_OPEN, images=True, context_window=131_072),
    "llama4": replace(_OPEN, images=True, context_window=131_072),
    "gemma-3": replace(_OPEN, parallel_tool_calls=False, structured_output=False, images=True, context_window=131_072),
    "gemma3": replace(_OPEN, parallel_tool_calls=False, structured_output=False, images=True, context_window=131_072),
    "gemma-4": replace(_OPEN, structured_output=False, images=True),
    "kimi-k2": replace(_OPEN, structured_output=False, context_window=131_072),
    "kimi-k2-0905": replace(_OPEN, structured_output=False, context_window=262_144),
    "kimi-k2-turbo": replace(_OPEN, structured_output=False, context_window=262_144),
    "kimi-k2-thinking": replace(_OPEN_THINKER, context_window=262_144),
    "kimi-k2.5": replace(_OPEN_THINKER, images=True, context_window=262_144),
    "kimi-k2.6": replace(_OPEN_THINKER, images=True, context_window=262_144),
    "kimi-k2.7": replace(_OPEN_THINKER, images=True, context_window=262_144),
    "kimi-k3": replace(_OPEN_THINKER, images=True, context_window=1_040_000),
    "glm-4.5": replace(_OPEN_THINKER, context_window=131_072),
    "glm-4.6": replace(_OPEN_THINKER, context_window=200_000),
    "glm-4.7": replace(_OPEN_THINKER, context_window=200_000),
    "glm-5": replace(_OPEN_THINKER, context_window=200_000),
    "glm-5.2": replace(_OPEN_THINKER, context_window=1_000_000),
    "glm-5.3": replace(_OPEN_THINKER, context_window=1_000_000),
    "zai-glm": _OPEN_THINKER,
    "minimax-m2": replace(_OPEN_THINKER, context_window=204_800),
    "minimax-m3": _OPEN_THINKER,
    "codestral": replace(_OPEN, sampling=_MISTRAL, context_window=256_000),
    "devstral": replace(_OPEN, sampling=_MISTRAL, context_window=131_072),
    "devstral-2512": replace(_OPEN, sampling=_MISTRAL, context_window=262_144),
    "ministral": replace(_OPEN, sampling=_MISTRAL, context_window=131_072),
    "mistral-large": replace(_OPEN, sampling=_MISTRAL, context_window=131_072),
    "mistral-medium": replace(_OPEN, sampling=_MISTRAL, images=True, context_window=131_072),
    "mistral-small": replace(_OPEN, sampling=_MISTRAL, images=True, context_window=131_072),
    "mistral-medium-2312": replace(_OPEN, sampling=_MISTRAL),
    "mistral-small-2402": replace(_OPEN, sampling=_MISTRAL),
    "mistral-small-2409": replace(_OPEN, sampling=_MISTRAL),
    "mistral-small-2501": replace(_OPEN, sampling=_MISTRAL),
    "magistral": replace(_OPEN, sampling=_MISTRAL, reasoning=True, context_window=131_072),
    "pixtral": replace(_OPEN, sampling=_MISTRAL, images=True, context_window=131_072),
    "qwen2.5": _OPEN,
    "qwen3": _OPEN,
}


def profile_of(model: str, overrides: Mapping[str, Any] | None = None, *, where: str = "the profile") -> ModelProfile:
    """The profile of a model by its name at its provider, with what the caller knows better.

    A gateway's `vendor/name`, a file's `name:tag`, a fine-tuned `ft:name:owner` and Bedrock's `us.vendor.name` count as
    the name.
    """
    profile = named_profile(model) or UNKNOWN
    return profile.with_settings(overrides, where) if overrides else profile


def named_profile(model: str) -> ModelProfile | None:
    """The profile that the table has for a name; None for a name that nobody has declared."""
    name = model.lower().rpartition("/")[2].removeprefix("ft:").partition(":")[0]
    name = _AT_BEDROCK.sub("", name)
    if name.startswith("claude-"):
        name = name.replace(".", "-")  # gateways write `claude-opus-4.7`
    fitting = [beginning for beginning in PROFILES if _begins(name, beginning)]
    return PROFILES[max(fitting, key=len)] if fitting else None


def known_models(wire: str) -> tuple[str, ...]:
    """The declared models that a wire format is used for, to suggest instead of one that a provider does not know."""
    own: PromptCapability = "prompt_cache_blocks" if wire == "anthropic" else "prompt_cache_key"
    names = (name for name in PROFILES if not name.endswith("-"))
    if wire == "gemini":
        return tuple(name for name in names if name.startswith("gemini-"))
    return tuple(name for name in names if wire == "openai_chat" or own in PROFILES[name].prompt)


def _begins(name: str, beginning: str) -> bool:
    """`gpt-5` begins `gpt-5`, `gpt-5-mini` and `gpt-5.9`, and not `gpt-50`."""
    rest = name[len(beginning) :]
    return name.startswith(beginning) and (not rest or beginning[-1] == "-" or not rest[0].isalnum())


def _fitting(name: str, value: Any, present: Any, where: str) -> Any:
    """A value of the field's own type: settings come from files, and a text is not a number."""
    if isinstance(present, bool) or name == "reasoning":
        if isinstance(value, bool):
            return value
        raise InvalidConfig(f"{where}: {name} is {value!r}", "Write true or false.")
    if isinstance(present, frozenset):
        if isinstance(value, list | tuple | set | frozenset) and all(isinstance(word, str) for word in value):
            return frozenset(value)
        raise InvalidConfig(f"{where}: {name} is {value!r}", 'Write a list of names, such as ["temperature"].')
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return value
    raise InvalidConfig(f"{where}: {name} is {value!r}", "Write a number of tokens.")
