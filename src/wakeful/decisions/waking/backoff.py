"""Turns that an agent starts itself and that come to nothing are spaced out, so that no agent spins.

Self-started is a turn whose messages all come from the agent's own timers, waits and work. Progress is a change of
work, the result of a tool that changes something, or words to the operator. A changed todo list or plan alone counts
twice in a row and no more.
"""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from wakeful.contracts.authority import Authority
from wakeful.contracts.messages import MessageKind

Sign: TypeAlias = Literal["work", "effect", "brief", "plan"]
"""work: the state of work changed. effect: a tool that changes something gave a result. brief: the operator was told
something. plan: a todo list or a plan changed, or a blocker was named."""

FREE_TURNS: Final = 3
"""So many in a row without progress cost nothing."""
MOST_TURNS: Final = 10
"""At so many the item is blocked, and the operator is told."""
FIRST_PAUSE: Final = 30 * 1_000_000
LONGEST_PAUSE: Final = 3600 * 1_000_000
PLANS_IN_A_ROW: Final = 2
NO_PROGRESS: Final = "no progress"
"""What an item is blocked by then."""

_OWN: Final[frozenset[MessageKind]] = frozenset({"timer_tick", "system_tick", "internal_followup"})


class TurnSigns(NamedTuple):
    """A turn that has ended: who started it, and what came of it."""

    is_self_started: bool
    signs: frozenset[Sign] = frozenset()


class BackoffPause(NamedTuple):
    """How long the next self-started turn has to wait after the last one's end."""

    turns: int
    """Self-started turns without progress so far, in a row."""
    microseconds: int
    is_stalled: bool
    """It was so often that somebody has to be told."""


def is_self_started(kinds: Sequence[tuple[MessageKind, Authority]]) -> bool:
    """Did the agent itself start a turn with these messages? Behind a schedule is its owner, behind a hint another."""
    return bool(kinds) and all(kind in _OWN and authority == "runtime_instruction" for kind, authority in kinds)


def pause_after(turns: Sequence[TurnSigns]) -> BackoffPause:
    """What the newest turns of a thread come to. `turns` are those that have ended, newest first."""
    count = _without_progress(turns)
    if count < FREE_TURNS:
        return BackoffPause(count, 0, False)
    doublings = min(count - FREE_TURNS, MOST_TURNS)
    return BackoffPause(count, min(FIRST_PAUSE << doublings, LONGEST_PAUSE), count >= MOST_TURNS)


def _without_progress(turns: Sequence[TurnSigns]) -> int:
    oldest_first = [*turns][::-1]
    count = plans = 0
    for turn in oldest_first:
        plans = plans_after(plans, turn)
        count = 0 if has_progress(plans, turn) or not turn.is_self_started else count + 1
    return count


def plans_after(plans: int, turn: TurnSigns) -> int:
    """How often a changed plan was the only sign, given how often it was before. A turn that the agent started itself
    and that shows no sign at all is no other sign."""
    if turn.signs == {"plan"}:
        return plans + 1
    return plans if turn.is_self_started and not turn.signs else 0


def has_progress(plans: int, turn: TurnSigns) -> bool:
    """Did the turn get anywhere? `plans` counts it."""
    return bool(turn.signs - {"plan"}) or (turn.signs == {"plan"} and plans <= PLANS_IN_A_ROW)
