"""A turn that is told to stop when its time is over: it comes to the same whichever was heard first."""

from itertools import permutations

import pytest

from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import LimitChanged, TurnInterruptApplied, TurnInterruptRequested
from wakeful.decisions.evolve.facts import evolve
from wakeful.decisions.state import Stop, TurnState

LIMIT = Fact(LimitChanged(limit_name="wall_clock", limit=10.0, observed=11.0), 1, turn_id="t")
ASKED = Fact(TurnInterruptRequested(interrupt_id="int_1", requested_by="ann", reason="user_interrupt"), 2, turn_id="t")
TOLD = Fact(TurnInterruptApplied(interrupt_id="limit:wall_clock", latency_ms=0), 3, turn_id="t")


def stop_after(*facts: Fact) -> Stop | None:
    state = TurnState()
    for fact in facts:
        evolve(state, fact)
    return state.stop


@pytest.mark.parametrize("facts", [[*order, TOLD] for order in permutations((LIMIT, ASKED))] + [[LIMIT, TOLD, ASKED]])
def test_a_cancel_and_the_end_of_its_time_come_to_the_same_in_each_order(facts: list[Fact]) -> None:
    stop = stop_after(*facts)
    assert stop is not None
    assert (stop.status, stop.reason, stop.is_overdue, stop.applied) == ("cancelled", "cancelled", True, True)
