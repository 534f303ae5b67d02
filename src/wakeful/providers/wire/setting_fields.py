"""What the wire formats share in writing settings: the shape of the outcome, and how hard a model is to think.

Rule: a setting that a model cannot take is named in `left_out`, never dropped in silence.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from wakeful.contracts.model_settings import Effort, ModelSettings, ToolChoice
from wakeful.contracts.tools import ToolDeclaration

BUDGETS: dict[Effort, int] = {"low": 2_048, "medium": 8_192, "high": 16_384}
"""Tokens of thinking that stand for an effort, where a model takes a number."""
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


def effort_of(thinking: Effort | int) -> Effort:
    """The effort that stands for a number of tokens."""
    if isinstance(thinking, str):
        return thinking
    return next((effort for effort, tokens in BUDGETS.items() if thinking <= tokens), "high")


def budget_of(thinking: Effort | int) -> int:
    """The number of tokens that stands for an effort."""
    return BUDGETS[thinking] if isinstance(thinking, str) else thinking


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
