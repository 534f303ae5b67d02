"""Iteration budgets: a name, a ceiling, and how much of it is used. N allows N.

Names that a loop counts by itself are `turns`, `tool_calls`, `tool_calls_<tool name>` and `wall_clock_seconds`. Any
other name is counted by whoever made it, with `increment`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from wakeful.contracts.errors import InvalidValue

INVALID = "invalid_iteration_budget"
TURNS = "turns"
TOOL_CALLS = "tool_calls"
ONE_TOOL = "tool_calls_"
WALL_CLOCK = "wall_clock_seconds"


@dataclass(slots=True)
class IterationBudget:
    """A counter that is held against its ceiling."""

    name: str
    ceiling: int
    """The last unit that is allowed."""
    current: int = 0

    def __post_init__(self) -> None:
        name: Any = self.name
        if not isinstance(name, str) or not name.strip():
            raise InvalidValue(INVALID, "name", f"is a name, not {name!r}")
        for field in ("ceiling", "current"):
            value = getattr(self, field)
            if not isinstance(value, int) or isinstance(value, bool):
                raise InvalidValue(INVALID, field, f"is a whole number, not {value!r}", f"of budget {self.name!r}")
        if self.ceiling < 1:
            raise InvalidValue(INVALID, "ceiling", f"is at least 1, not {self.ceiling}", f"of budget {self.name!r}")
        self.current = max(0, self.current)

    @property
    def dimension(self) -> str:
        """What it bounds, in the words of events."""
        if self.name == WALL_CLOCK:
            return "wall_clock"
        return TOOL_CALLS if self.tool is not None else self.name

    @property
    def tool(self) -> str | None:
        """The one tool whose calls it counts."""
        return self.name.removeprefix(ONE_TOOL) if self.name.startswith(ONE_TOOL) else None

    @property
    def is_callers(self) -> bool:
        """Does nobody count it but whoever made it?"""
        return self.name not in (TURNS, TOOL_CALLS, WALL_CLOCK) and self.tool is None

    def increment(self, by: int = 1) -> int:
        """Note units that were used; returns how many there are now."""
        if by < 0:
            raise ValueError(f"a budget is used, never given back: increment({by})")
        self.current += by
        return self.current

    def remaining(self) -> int:
        """How many more units are allowed."""
        return max(0, self.ceiling - self.current)

    def exceeded(self) -> bool:
        """Was more used than is allowed? The ceiling itself is allowed."""
        return self.current > self.ceiling


def by_name(budgets: Iterable[IterationBudget]) -> dict[str, IterationBudget]:
    """Budgets keyed by their names. Two of one name are an error: one of them would not be kept."""
    named: dict[str, IterationBudget] = {}
    for budget in budgets:
        if budget.name in named:
            raise InvalidValue(INVALID, "name", f"there are two budgets {budget.name!r}", "give each its own name")
        named[budget.name] = budget
    return named
