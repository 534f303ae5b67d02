"""What would be decided at a point of a log, and which recorded step it explains.

Somebody outside may write between two appends of the owner, who learns of it with its next append. So such a fact is
held back until a decision cannot be explained without it, and for as long as the owner could have decided without it:
at its end and when it is taken up again, a turn has seen everything.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import AnyEvent
from wakeful.contracts.events.tools import Opinion
from wakeful.decisions.differences import Difference, words
from wakeful.decisions.evolve.facts import evolve
from wakeful.decisions.levels import Call, Level
from wakeful.decisions.recovery import Settlement
from wakeful.decisions.state import TurnState
from wakeful.decisions.step import Step
from wakeful.decisions.turn import decide, places_left

Gate: TypeAlias = Callable[[TurnState, Call, Literal["parallel", "serial"], tuple[Opinion, ...]], Sequence[AnyEvent]]
"""The events with which a call is let through, asked about or refused, given what code outside the log said."""


@dataclass(slots=True)
class Redecision:
    """What is decided now, in the state that the facts so far have come to."""

    state: TurnState
    gate: Gate
    checked: dict[str, int] = field(default_factory=dict)
    """Decisions that came out the same, by the kind of their event."""
    unseen: list[Fact] = field(default_factory=list)
    """What outsiders wrote and no decision has needed so far."""
    decided: list[Step] = field(default_factory=list)
    """What was decided together with the last decision and has not come yet."""
    late: bool = False
    """Something was seen since the last outcome, that may have been seen before what was decided since."""
    unmade: int = 0
    """Requests decided since the last outcome that were not made: too dear for a level, or turned down."""
    admission: list[AnyEvent] = field(default_factory=list)
    """The rest of what a call is let through or refused with."""
    settlements: list[Settlement] = field(default_factory=list)
    """What a recovery has settled and has not written yet."""

    def find(self, is_it: Callable[[Step], bool]) -> Step | None:
        """The step among those that may be taken now, with as little of what is unseen as it needs."""
        found = next(filter(is_it, self.decided), None)
        if found is None:
            self.decided = decide(self.state)
            found = next(filter(is_it, self.decided), None)
        while found is None and self.unseen:
            self.see_next()
            self.decided = decide(self.state)
            found = next(filter(is_it, self.decided), None)
        if found is not None:
            self.decided.remove(found)
        elif self.late and places_left(self.state) > 0:
            # What was decided together with this may have brought up steps that now stand before it. Its owner had
            # given out the places before; that there is one is all that can be held to it.
            enough = len(self.state.tree.calls) + len(self.state.tree.levels) + 1
            found = next(filter(is_it, decide(self.state, more_places=enough)), None)
        return found

    def hold(self, is_it: Callable[[Step], bool]) -> None:
        """Decide before the first of a step's facts: by the time of the next one, the turn's seconds may be used up."""
        if any(map(is_it, self.decided)):
            return
        decided = decide(self.state)
        if any(map(is_it, decided)):
            self.decided = decided

    def one_of(self, fact: Fact, step: Step, or_this: Callable[[Step], bool] = lambda _: False) -> Difference | None:
        if self.find(lambda each: each == step or or_this(each)) is None:
            return Difference(words(step), self.would())
        return self.same(fact)

    def would(self) -> str:
        return "; ".join(map(words, self.decided)) or "nothing: wait for what is under way"

    def same(self, fact: Fact) -> Difference | None:
        self.checked[fact.event.kind] = self.checked.get(fact.event.kind, 0) + 1
        return None

    def see_next(self) -> None:
        evolve(self.state, self.unseen.pop(0))
        self.late = True

    def see_all(self) -> None:
        while self.unseen:
            self.see_next()

    def level(self, level_id: str | None) -> Level:
        """The level of a fact; of one that names none that is open, the root: the decision will not fit."""
        return self.state.tree.levels.get(level_id, self.state) if level_id is not None else self.state
