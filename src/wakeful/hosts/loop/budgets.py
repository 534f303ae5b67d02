"""The budgets of a run, in the words of hosts: a name, a ceiling, and how much of it is used. N allows N.

Names that a loop counts by itself are `turns`, `tool_calls`, `tool_calls_<tool name>` and `wall_clock_seconds`. Any
other name is counted by whoever made it, with `increment`. What is left of them becomes the one budget of the turn
(`allowed`), which holds the run to it. What the turn uses is counted back into the host's own objects, from the log,
and a limit that it reached has the host's name (`reached`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from wakeful.contracts.budgets import Budget
from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.events import LimitChanged

INVALID = "invalid_iteration_budget"
TURNS = "turns"
TOOL_CALLS = "tool_calls"
ONE_TOOL = "tool_calls_"
WALL_CLOCK = "wall_clock_seconds"
SECOND = 1_000_000


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
        """The name of the limit, as events spell it."""
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


class RunBudgets:
    """Every budget of one run, by name. Without one for the turns there is one of `max_turns`."""

    def __init__(self, given: Mapping[str, IterationBudget], max_turns: int | None) -> None:
        """`max_turns`: what was asked for beside the budgets; None when nothing was."""
        own = given.get(TURNS)
        self._host_turns = own
        if own is None:
            turns = IterationBudget(TURNS, max_turns or 1)
        elif max_turns is not None and max_turns < own.remaining():
            turns = IterationBudget(TURNS, max_turns)  # the smaller of two limits is the one that is reached
        else:
            turns = own
        self.turns = turns
        self.wall_clock = given.get(WALL_CLOCK)
        self._named = {**given, TURNS: turns}
        self._calls = [budget for budget in given.values() if budget.name == TOOL_CALLS or budget.tool is not None]
        self._began: tuple[int, int] | None = None
        self.turns_allowed = turns.remaining()
        self._seconds = self.wall_clock.remaining() if self.wall_clock is not None else None

    def allowed(self) -> Budget:
        """The limits of the turn, without its rounds."""
        total = self._named.get(TOOL_CALLS)
        return Budget(
            seconds=self._seconds,
            tool_calls=total.remaining() if total is not None else None,
            per_tool={each.tool: each.remaining() for each in self._calls if each.tool is not None},
            profile="unlimited",
        )

    def reached(self, event: LimitChanged) -> IterationBudget:
        """The budget behind a limit of the turn. A limit of N allows N: the one after was refused."""
        match event.limit_name:
            case "max_steps":
                return self.turns
            case "wall_clock" if self.wall_clock is not None:
                return self.wall_clock
            case "tool_calls":
                names = (event.what, event.what.rpartition("/")[2]) if event.what else ()
                for budget in self._calls:
                    if budget.remaining() < 1 and (budget.tool in names if names else budget.name == TOOL_CALLS):
                        return budget
        return IterationBudget(event.limit_name, max(1, int(event.limit)), max(0, int(event.observed) - 1))

    def shown(self) -> dict[str, dict[str, int]]:
        """As a provider's adapter is told."""
        return {name: {"current": each.current, "limit": each.ceiling} for name, each in self._named.items()}

    def used_up(self) -> IterationBudget | None:
        """A budget that allows no turn at all, before the first one."""
        for budget in (self.turns, self.wall_clock):
            if budget is not None and budget.remaining() < 1:
                return budget
        return self.passed()

    def passed(self) -> IterationBudget | None:
        """A budget of which more was used than it allows: its owner counts it, or others count calls in it too."""
        theirs = (each for each in self._named.values() if each.is_callers or each in self._calls)
        return next((each for each in theirs if each.exceeded()), None)

    # --- calls --------------------------------------------------------------------------------------------------------

    def ran(self, tool_name: str) -> None:
        """A call was let through, or given to a client."""
        bare = tool_name.rpartition("/")[2]
        for budget in self._calls:
            if budget.name == TOOL_CALLS or budget.tool in (tool_name, bare):
                budget.increment()

    # --- turns and time -----------------------------------------------------------------------------------------------

    def took_a_turn(self) -> None:
        self.turns.increment()
        if self._host_turns is not None and self._host_turns is not self.turns:
            self._host_turns.increment()

    @property
    def deadline(self) -> datetime | None:
        """When the wall clock allows no more."""
        if self._began is None or self._seconds is None:
            return None
        return datetime.fromtimestamp(self._began[0] / SECOND + self._seconds, UTC)

    def at(self, moment: int) -> None:
        """The time of a fact, in microseconds."""
        clock = self.wall_clock
        if clock is None:
            return
        if self._began is None:
            self._began = (moment, clock.current)
        began, before = self._began
        clock.current = max(clock.current, before + (moment - began) // SECOND)
