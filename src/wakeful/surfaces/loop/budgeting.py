"""The budgets of a run: who counts them, and what they still allow.

The counters are the host's own objects, and what the loop counts is counted from the log: a turn when it was asked for,
a call when it was let through. Between being let through at the gate and the fact of it, a call is reserved, so that
calls that run together do not use one unit twice.
"""

from collections.abc import Mapping
from datetime import UTC, datetime

from wakeful.contracts.iteration_budgets import TOOL_CALLS, TURNS, WALL_CLOCK, IterationBudget

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
        self._reserved: dict[str, tuple[IterationBudget, ...]] = {}
        self._began: tuple[int, int] | None = None
        self.turns_allowed = turns.remaining()
        self.seconds_allowed = self.wall_clock.remaining() if self.wall_clock is not None else None

    @property
    def counts_calls(self) -> bool:
        return bool(self._calls)

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
        """A budget of which its owner used more than it allows."""
        return next((each for each in self._named.values() if each.is_callers and each.exceeded()), None)

    # --- calls --------------------------------------------------------------------------------------------------------

    def refusing(self, call_id: str, tool_name: str) -> IterationBudget | None:
        """The budget that does not allow this call."""
        for budget in self._of(tool_name):
            waiting = sum(budget in held for other, held in self._reserved.items() if other != call_id)
            if budget.remaining() - waiting < 1:
                return budget
        return None

    def reserve(self, call_id: str, tool_name: str) -> None:
        self._reserved[call_id] = self._of(tool_name)

    def is_reserved(self, call_id: str) -> bool:
        return call_id in self._reserved

    def ran(self, call_id: str, tool_name: str) -> None:
        """The call was let through, or given to a client."""
        self._reserved.pop(call_id, None)
        for budget in self._of(tool_name):
            budget.increment()

    def let_go(self, call_id: str) -> None:
        """The call is over, or rests with a person: nothing is reserved for it any more."""
        self._reserved.pop(call_id, None)

    def _of(self, tool_name: str) -> tuple[IterationBudget, ...]:
        bare = tool_name.rpartition("/")[2]
        return tuple(each for each in self._calls if each.name == TOOL_CALLS or each.tool in (tool_name, bare))

    # --- turns and time -----------------------------------------------------------------------------------------------

    def took_a_turn(self) -> None:
        self.turns.increment()
        if self._host_turns is not None and self._host_turns is not self.turns:
            self._host_turns.increment()

    @property
    def deadline(self) -> datetime | None:
        """When the wall clock allows no more."""
        if self._began is None or self.seconds_allowed is None:
            return None
        return datetime.fromtimestamp(self._began[0] / SECOND + self.seconds_allowed, UTC)

    def at(self, moment: int) -> None:
        """The time of a fact, in microseconds."""
        clock = self.wall_clock
        if clock is None:
            return
        if self._began is None:
            self._began = (moment, clock.current)
        began, before = self._began
        clock.current = max(clock.current, before + (moment - began) // SECOND)
