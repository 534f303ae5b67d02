"""The numbers of the loop that an installation's owner sets otherwise: one environment variable for each constant.

A profile has its numbers from `contracts/budgets`, which is pure; the environment is read here and handed in. A value
that is no number is an error and never passed over.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from wakeful.contracts.budgets import LimitOverrides
from wakeful.contracts.errors import InvalidConfig
from wakeful.decisions.work_items.advice import ReminderTerms

PREFIX: Final = "WAKEFUL_"


class _Overridable(NamedTuple):
    field: str
    """Of `Limits`."""
    least: int = 1


OVERRIDABLE: Final[Mapping[str, _Overridable]] = {
    "MAX_DEPTH": _Overridable("depth", 0),
    "MAX_ITERATIONS_PER_LEVEL": _Overridable("max_steps"),
    "MAX_PARALLEL_PER_TURN": _Overridable("width"),
    "MAX_TOTAL_SUBTASKS": _Overridable("subtasks", 0),
    "MAX_TOTAL_LLM_CALLS": _Overridable("model_calls"),
    "MAX_TOTAL_TOOL_CALLS": _Overridable("tool_calls", 0),
    "MAX_WALL_CLOCK_MS": _Overridable("seconds"),
    "MAX_TOOL_RESULT_BYTES": _Overridable("result_bytes"),
    "MAX_HISTORY_TOKENS": _Overridable("history_tokens"),
    "MAX_SCHEMA_RETRIES": _Overridable("schema_retries", 0),
}
"""The constants of `contracts/budgets`, by name."""


def limit_overrides(environ: Mapping[str, str]) -> LimitOverrides:
    """What the environment says, by field of `Limits`. A variable that is empty says nothing. Raises InvalidConfig."""
    found: dict[str, int | float] = {}
    for name, (field, least) in OVERRIDABLE.items():
        text = environ.get(PREFIX + name)
        if not text:
            continue
        number = _number(name, text, least)
        found[field] = number / 1_000 if name == "MAX_WALL_CLOCK_MS" else number
    return found


_REMINDER: Final = "WORK_ITEM_STALE_REMINDER_"
REMINDER_TERMS: Final[Mapping[str, str]] = {
    "ROUNDS": "rounds",
    "COOLDOWN_ROUNDS": "cooldown",
    "MAX_TOKENS": "max_tokens",
}
"""What follows `WAKEFUL_WORK_ITEM_STALE_REMINDER_`, and the field of `ReminderTerms` that it sets."""


def reminder_terms(environ: Mapping[str, str]) -> ReminderTerms:
    """When a model is reminded of its current work item, and how much it is told. Raises InvalidConfig."""
    said = {name: environ.get(PREFIX + _REMINDER + name) for name in REMINDER_TERMS}
    return ReminderTerms(
        **{REMINDER_TERMS[name]: _number(_REMINDER + name, text, 1) for name, text in said.items() if text}
    )


PROBE: Final = "PROVIDER_PROBE_SECONDS"
PROBE_SECONDS: Final = 60


def provider_probe_seconds(environ: Mapping[str, str]) -> int:
    """After how long a provider that let nobody in is first asked again. Raises InvalidConfig."""
    text = environ.get(PREFIX + PROBE)
    return _number(PROBE, text, 1) if text else PROBE_SECONDS


def _number(name: str, text: str, least: int) -> int:
    # Digits alone: int() would also take signs, spaces, underscores and the digits of other scripts.
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 15 else -1
    if number < least:
        raise InvalidConfig(f"{PREFIX}{name} is {text!r}", f"give a whole number, {least} or more, or unset it")
    return number
