"""Token counts as servers write them: as numbers, as floats, as text.

Rule: a count that is there and cannot be read is unknown, and so is the usage it belongs to. It is never taken for 0,
because nothing used and nothing known are not the same to a budget.
"""

from typing import Any

from wakeful.contracts.models import MOST_TOKENS

_LONGEST = len(str(MOST_TOKENS))


class UnknownCount(ValueError):
    """A number of tokens that nobody can read."""


def count(value: Any, *, missing: int | None = None) -> int:
    """A count that the usage stands on. `missing` is what it means where it is left out. Raises UnknownCount."""
    if value is None and missing is not None:
        return missing
    read = _read(value)
    if read is None:
        raise UnknownCount(f"{value!r} is no number of tokens")
    return read


def portion(value: Any) -> int:
    """A count that is only a part of another one: 0 where it is not told."""
    return _read(value) or 0


def _read(value: Any) -> int | None:
    if isinstance(value, str) and len(value) <= _LONGEST and value.isascii() and value.isdecimal():
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= MOST_TOKENS else None
