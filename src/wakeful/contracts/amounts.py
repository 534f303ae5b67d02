"""Amounts that a budget may name: counts, durations, money. What cannot be an amount is refused in clear words.

Money is a decimal text and never a binary fraction: `0.1` stays a tenth of a dollar.
"""

import math
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from wakeful.contracts.errors import InvalidConfig

MOST_MONEY = Decimal(1_000_000_000)
_SMALLEST = Decimal("0.000000000001")


class InvalidBudget(InvalidConfig, ValueError):
    """A budget that cannot be kept; a ValueError too, because that is what Python says of a wrong value."""


def checked_count(where: str, value: Any, least: int) -> int | None:
    """A whole number, `least` or more; None stays None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidBudget(f"{where}={value!r} is not a valid number", f"give a whole number, {least} or more")
    return value


def checked_duration(where: str, value: Any, unit: str) -> float | None:
    """A positive number of some unit of time; None stays None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise InvalidBudget(f"{where}={value!r} is not a valid time", f"give a positive number of {unit}")
    return float(value)


def checked_money(where: str, value: Any) -> str | None:
    """Dollars as a decimal text, the same text for the same amount; None stays None. Kept to twelve places."""
    if value is None:
        return None
    amount = None
    if isinstance(value, str | int | float | Decimal) and not isinstance(value, bool):
        try:
            amount = Decimal(str(value))
        except InvalidOperation:
            amount = None
    if amount is None or not amount.is_finite() or not 0 <= amount <= MOST_MONEY:
        raise InvalidBudget(
            f"{where}={value!r} is not an amount of money", "give an amount in dollars, 0 or more: 0.25 or '0.25'"
        )
    text = format(amount.quantize(_SMALLEST), "f").rstrip("0").rstrip(".")
    return text.lstrip("-") or "0"


def checked_counts(where: str, value: Any) -> dict[str, int]:
    """A count for each of some names."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidBudget(f"{where}={value!r} is not a table of counts", 'give counts by name: {"search": 5}')
    counts: dict[str, int] = {}
    for name, count in value.items():
        if not isinstance(name, str) or not name:
            raise InvalidBudget(f"{where} has the name {name!r}", "give names of tools")
        checked = checked_count(f"{where}[{name!r}]", count, 0)
        if checked is None:
            raise InvalidBudget(f"{where}[{name!r}]=None", "give a whole number, or leave the tool out")
        counts[name] = checked
    return counts
