"""Which turns can be tried again: what ended them may have passed, or somebody allows more than before."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from wakeful.contracts.budgets import Limits
from wakeful.contracts.events import StopCause

PASSES: Final[frozenset[StopCause]] = frozenset(
    {"provider_error", "routing_not_possible", "invalid_output", "runtime_error"}
)
"""What may be over by now: a provider that was away, a key that was missing, an answer that did not fit, lost code."""
RAISED: Final[Mapping[StopCause, tuple[str, ...]]] = MappingProxyType(
    {
        "llm_calls": ("model_calls",),
        "tool_calls": ("tool_calls", "per_tool"),
        "wall_clock": ("seconds",),
        "tokens": ("tokens", "input_tokens", "output_tokens", "unpriced_token_ceiling"),
        "cost": ("usd", "unpriced_token_ceiling"),
        "subtasks": ("subtasks",),
        "max_steps": ("max_steps",),
        "iterations": ("max_steps",),
    }
)
"""Limits that end a turn, and the fields of `Limits` of which one has to be raised."""


def can_help(reason: StopCause) -> bool:
    """Whether trying again can come to anything else; after a limit, with more of it."""
    return reason in RAISED or reason in PASSES


def is_raised(reason: StopCause, before: Limits, now: Limits) -> bool:
    """Whether a turn that met this limit may go on by the new ones."""
    return any(_more(getattr(before, name), getattr(now, name)) for name in RAISED.get(reason, ()))


def _more(before: object, now: object) -> bool:
    if before is None or before == now:
        return False
    if now is None:
        return True
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        return any(_more(most, now.get(tool)) for tool, most in before.items())
    return float(str(now)) > float(str(before))
