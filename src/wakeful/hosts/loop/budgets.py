"""The budgets of a run, in the words of hosts.

What is left of them becomes the one budget of the turn (`allowed`), which holds the run to it. What the turn uses is
counted back into the host's own objects, from the log, and a limit that it reached has the host's name (`reached`).
"""

from collections.abc import Mapping
from datetime import UTC, datetime

from wakeful.contracts.budgets import Budget
from wakeful.contracts.events import LimitChanged
from wakeful.hosts.loop.iteration_budget import TOOL_CALLS, TURNS, WALL_CLOCK, IterationBudget

SECOND = 1_000_000


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
        """What the turn may use, beside its rounds."""
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
