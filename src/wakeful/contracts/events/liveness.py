"""Facts about liveness: a thread was found in a state that must not be, and is put right by the same fact."""

from typing import ClassVar, Literal, TypeAlias

from wakeful.contracts.events.base import THREAD, Need, RuntimeFact

Owed: TypeAlias = Literal["turn", "queue", "deferral", "wait", "timer", "hint", "pause"]
"""What a thread still has to do: a turn that is open, queued messages, a deferred one, a wait, a timer, pending hints,
the end of its agent's pause."""
ViolationKind: TypeAlias = Literal["no_wake", "no_alarm", "cut_off"]
"""no_wake: nothing would ever look at it. no_alarm: its time is known, and the runtime would not look at it. cut_off:
a turn is under way, and no process runs it."""


class LivenessViolated(RuntimeFact):
    """A thread owed something that nothing would have done. Its wake is written again with this fact."""

    kind: ClassVar[str] = "liveness.violated"
    needs: ClassVar[tuple[Need, ...]] = THREAD

    violation: ViolationKind
    owed: Owed
    subject: str
    """The subject of the wake that is written again."""
    owed_id: str
    """The turn, message, wait or timer; of a queue, its thread."""
    due_at: int | None = None
    """Unix microseconds: when it is looked at from now on. None: no time moves it."""
    cause: str = ""
    """The cause of that wake; blank: there is none to write."""
    words: str = ""
