"""What becomes of the work that a crash cut off.

The intent is on disk before an effect begins, so whatever is open has an intent, and the intent's own effect class says
what may be done about it:

    model.requested          lost, at stage `crash`; asked again, and not one of the provider's attempts
    model.response.accepted  the answer is asked for by its id; nothing is sent again
    pure, keyed              run again, same call, same key
    probeable                its probe is asked; not where the owner before may still be alive: then as irreversible
    irreversible             closed: nobody knows whether it happened
    any call, 3rd time       closed in the same way: it keeps killing the process
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from wakeful.decisions.levels import Call, Level
from wakeful.decisions.state import TurnState

MAX_DISPATCHES = 3
"""An intent found open after this many tries is not tried again."""


@dataclass(slots=True, frozen=True)
class LoseAttempt:
    """The request's answer, if there was one, is gone."""

    level: str | None = None


@dataclass(slots=True, frozen=True)
class Reattach:
    """The provider works at the request by itself: its answer is there, or will be."""

    response_id: str
    level: str | None = None


@dataclass(slots=True, frozen=True)
class Rerun:
    """Safe to repeat."""

    call_id: str
    attempt: int


@dataclass(slots=True, frozen=True)
class ProbeStep:
    """Ask the tool what happened."""

    call_id: str


@dataclass(slots=True, frozen=True)
class CloseUnknown:
    """Nobody can say; the model and the operator are told so."""

    call_id: str
    why: Literal["interrupted", "crash_loop", "late_owner"]


Settlement: TypeAlias = LoseAttempt | Reattach | Rerun | ProbeStep | CloseUnknown


ResumeCause: TypeAlias = Literal["recovery", "supplied", "decision", "window", "provider", "retry", "closing"]
"""As `turn.resumed` has it."""


def resume_cause(state: TurnState) -> ResumeCause:
    """Why a turn goes on: it was cut off, somebody supplied what it lacked or decided, there is money again, a provider
    is asked again, or it had failed and is tried again."""
    suspended = state.rest.suspended_for
    if state.phase != "suspended":
        return "recovery"
    if suspended is None:
        return "retry"
    if suspended.reason == "budget_window":
        return "window"
    if suspended.reason == "provider":
        return "provider"
    return "supplied" if suspended.reason in ("tool_missing", "agent_missing") else "decision"


def settle(state: TurnState, *, from_late_owner: bool = False) -> list[Settlement]:
    """One settlement for everything that was open when the process ended.

    An owner that was only late may wake up and do what its probe says it did not.
    """
    settled = [each for level in (state, *state.tree.levels.values()) for each in _settle_level(level)]
    if not from_late_owner:
        return settled
    return [CloseUnknown(each.call_id, "late_owner") if isinstance(each, ProbeStep) else each for each in settled]


def unknown_among(settlements: Iterable[Settlement]) -> list[CloseUnknown]:
    """Those that take none of the agent's code: nobody can say what became of these calls."""
    return [each for each in settlements if isinstance(each, CloseUnknown)]


def _settle_level(level: Level) -> list[Settlement]:
    """A call that waits for its children stays open: they are settled one by one."""
    if level.phase == "asking":
        accepted = level.round.request.response_id if level.round.request is not None else None
        return [LoseAttempt(level.id) if accepted is None else Reattach(accepted, level.id)]
    if level.phase not in ("acting", "suspended"):
        return []
    return [_settle_call(call) for call in level.round.open_calls() if call.running and not call.children]


def _settle_call(call: Call) -> Settlement:
    if call.dispatches >= MAX_DISPATCHES:
        return CloseUnknown(call.call_id, "crash_loop")
    if call.effect in ("pure", "keyed"):
        return Rerun(call.call_id, call.dispatches + 1)
    if call.effect == "probeable":
        return ProbeStep(call.call_id)
    return CloseUnknown(call.call_id, "interrupted")
