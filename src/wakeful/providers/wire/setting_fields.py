"""What the wire formats share in writing settings: the shape of the outcome, and how hard a model is to think.

Rule: a setting that a model cannot take is named in `left_out`, never dropped in silence.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from wakeful.contracts.model_settings import Effort, ModelSettings, ToolChoice
from wakeful.contracts.tools import ToolDeclaration

BUDGETS: dict[Effort, int] = {"low": 2_048, "medium": 8_192, "high": 16_384, "xhigh": 24_576, "max": 32_768}
"""Tokens of thinking that stand for an effort, where a model takes a number."""
LEAST_ANSWER = 1_024
"""Tokens that thinking leaves for the answer; half of what there is where that is less."""
SAMPLED = ("temperature", "top_p", "seed", "presence_penalty", "frequency_penalty", "logit_bias")
"""Settings of how the next token is chosen: a model's profile says which it takes."""


@dataclass(slots=True)
class SettingFields:
    """Fields of a request body that follow from settings, and the settings that are not sent."""

    fields: dict[str, Any] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def place(self, setting: str, name: str | None, value: Any) -> None:
        """Send a setting under a name; None for a name: it is left out."""
        if value is None:
            return
        if name is None:
            self.left_out.append(setting)
        else:
            self.fields[name] = value


def effort_of(thinking: Effort | int, known: Collection[str]) -> Effort:
    """The effort as a model knows it: what was asked for, or the highest word below it; for a number of tokens, the
    word that stands for it, up to `high`."""
    if isinstance(thinking, str):
        ranks = list(BUDGETS)
        return next((word for word in reversed(ranks[: ranks.index(thinking) + 1]) if word in known), "low")
    return next((effort for effort, tokens in BUDGETS.items() if thinking <= tokens or effort == "high"), "high")


def budget_of(thinking: Effort | int) -> int:
    """The number of tokens that stands for an effort."""
    return BUDGETS[thinking] if isinstance(thinking, str) else thinking


def beside_answer(thinking: int, most: int) -> int:
    """Tokens to think with where thoughts and answer together may have so many."""
    return min(thinking, most - min(LEAST_ANSWER, most // 2))


def openai_tier(settings: ModelSettings) -> str | None:
    """The service tier in OpenAI's words."""
    return "default" if settings.service_tier == "standard_only" else settings.service_tier


def asked_tools(choice: ToolChoice, tools: Sequence[ToolDeclaration]) -> Sequence[ToolDeclaration]:
    """The tools that a choice leaves, for a format that cannot name several: the others are not offered."""
    return [tool for tool in tools if tool.name in choice] if is_several(choice) else tools


def is_several(choice: ToolChoice) -> bool:
    """Does it name more than one tool?"""
    return isinstance(choice, tuple) and len(choice) > 1


def forces(choice: ToolChoice) -> bool:
    """Must the model call a tool?"""
    return choice not in ("auto", "none")


def extra_body(settings: ModelSettings) -> dict[str, Any]:
    """Fields that go as they are, over what the settings say."""
    return settings.extra_body or {}
