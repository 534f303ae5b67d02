"""What a turn does next.

`decide` reads the state and names the steps that may begin now, beyond what is already under way. It is asked after
every outcome, not every batch. A step's facts are folded as soon as it is decided, so that asking again gives only what
is new; an empty answer means: wait, or it is over.

The order of precedence: a stop (cancel, limit) first, then a lost attempt, then open calls, then the end of a round.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from wakeful.contracts.events import ActionRequired, LimitName, RuntimeToolRequested, StopCause
from wakeful.contracts.tools import MAX_PARALLEL_PER_TURN
from wakeful.decisions.retries import MAX_ATTEMPTS, NO_BACKOFF, Backoff, backoff
from wakeful.decisions.state import Call, Pending, TurnState

Because: TypeAlias = Literal["cancelled", "budget", "completed"]
"""Why a call is not run."""


@dataclass(slots=True, frozen=True)
class AskModel:
    """Send a request."""

    step: int
    candidate: int
    attempt: int
    backoff: Backoff = NO_BACKOFF


@dataclass(slots=True, frozen=True)
class TakeUp:
    """Bring a call before the gate and, if it passes, run it."""

    call_id: str
    scheduling: Literal["parallel", "serial"]


@dataclass(slots=True, frozen=True)
class SkipCall:
    """Close a call that will not be run."""

    call_id: str
    because: Because


@dataclass(slots=True, frozen=True)
class Suspend:
    """Rest until somebody outside has said something. Costs nothing meanwhile."""

    reason: Literal["approval_required", "runtime_tool_pending"]
    waiting_for: tuple[str, ...]


@dataclass(slots=True, frozen=True)
class HitLimit:
    """A limit would be passed by what comes next."""

    name: LimitName
    limit: float
    observed: float


@dataclass(slots=True, frozen=True)
class StopWork:
    """Tell what is running that the turn is to end."""

    running: tuple[str, ...]
    waiting: tuple[str, ...]


@dataclass(slots=True, frozen=True)
class CheckAnswer:
    """See whether the final text fits the output type."""


@dataclass(slots=True, frozen=True)
class AskCaller:
    """Ask whoever holds the loop whether to go on."""


@dataclass(slots=True, frozen=True)
class Finish:
    """End the turn."""

    status: Literal["completed", "incomplete", "failed", "cancelled"]
    reason: StopCause
    message: str = ""


Step: TypeAlias = AskModel | TakeUp | SkipCall | Suspend | HitLimit | StopWork | CheckAnswer | AskCaller | Finish


def decide(state: TurnState) -> list[Step]:
    """The steps that may begin now."""
    phase = state.phase
    if phase in ("new", "ended", "suspended"):
        return []
    if state.stop is not None:
        return _stopping(state)
    if phase == "acting":
        return _acting(state)
    if phase == "asking":
        return []
    if phase == "ready":
        return [_next_round(state)]
    if phase == "lost":
        return _lost(state)
    if phase == "closing":
        return _closing(state)
    if state.structured and not state.answer_checked:
        return [CheckAnswer()]
    return [Finish("completed", "natural")]


def _next_round(state: TurnState) -> Step:
    """Another round, unless it would be one too many."""
    limits = state.limits
    if limits.max_steps is not None and state.step >= limits.max_steps:
        return HitLimit("max_steps", limits.max_steps, state.step + 1)
    return _afford(state) or AskModel(state.step + 1, 0, 1)


def _afford(state: TurnState) -> HitLimit | None:
    """The limit that one more request would pass."""
    limits = state.limits
    if limits.model_calls is not None and state.model_calls >= limits.model_calls:
        return HitLimit("llm_calls", limits.model_calls, state.model_calls + 1)
    return _out_of_time(state)


def _out_of_time(state: TurnState) -> HitLimit | None:
    seconds = state.limits.seconds
    if seconds is not None and state.active_ms() >= seconds * 1000:
        return HitLimit("wall_clock", seconds, state.active_ms() / 1000)
    return None


def _lost(state: TurnState) -> list[Step]:
    asked = state.asked
    if asked is None or asked.failure is None:
        return []
    failure = asked.failure
    if failure.stage == "crash":
        # Not one of the provider's attempts: the same one again.
        return [_afford(state) or AskModel(asked.step, asked.candidate, asked.attempt)]
    if failure.disposition == "retry":
        wait = backoff(asked.attempt + 1, failure.retry_after_ms)
        return [_afford(state) or AskModel(asked.step, asked.candidate, asked.attempt + 1, wait)]
    if failure.disposition == "fallback":
        return [_afford(state) or AskModel(asked.step, asked.candidate + 1, 1)]
    tried = len(state.attempts)
    spent = " (retries exhausted)" if failure.attempt >= MAX_ATTEMPTS else ""
    again = f" after {tried} attempts{spent}" if tried > 1 else ""
    return [Finish("failed", "provider_error", f"{failure.model_ref}{again}: {failure.message}")]


def _acting(state: TurnState) -> list[Step]:
    """Reads together, a writer alone: a serial call waits for all before it, and all after it wait.

    A call that waits for somebody outside holds nobody up. When only such calls are left, the turn rests.
    """
    if state.completed_by in state.calls:
        return [SkipCall(call.call_id, "completed") for call in state.open_calls() if not call.running]
    steps: list[Step] = []
    waiting: list[Pending] = []
    running = state.running
    config = state.config
    room = state.limits.tool_calls
    for call in state.batch[state.front :]:
        if call.pending is not None and call.is_waiting:
            waiting.append(call.pending)
            continue
        serial = _is_serial(state, call)
        if call.answer is None and not call.taken_up:
            if running >= MAX_PARALLEL_PER_TURN or (serial and running):
                break
            if room is not None and state.tool_calls + len(steps) >= room and not _was_counted(call):
                return steps or [HitLimit("tool_calls", room, state.tool_calls + 1)]
            if config is None:
                break
            if not steps and (late := _out_of_time(state)):
                return [late]
            steps.append(TakeUp(call.call_id, "serial" if serial else "parallel"))
            running += 1
        if serial and call.answer is None:
            break
    if waiting and not steps and not running:
        return [_suspend(waiting)]
    return steps


def _suspend(waiting: list[Pending]) -> Suspend:
    person = any(isinstance(pending.asked, ActionRequired) for pending in waiting)
    return Suspend(
        "approval_required" if person else "runtime_tool_pending", tuple(pending.action_id for pending in waiting)
    )


def _was_counted(call: Call) -> bool:
    """A call that a client was asked to run counted then; its answer is no second one."""
    return call.pending is not None and isinstance(call.pending.asked, RuntimeToolRequested)


def _is_serial(state: TurnState, call: Call) -> bool:
    declaration = state.config.tool(call.part.name) if state.config is not None else None
    return call.alone or (declaration is not None and declaration.serial)


def _closing(state: TurnState) -> list[Step]:
    if state.go_on is None:
        return [AskCaller()]
    return [Finish("completed", "natural")]


def _stopping(state: TurnState) -> list[Step]:
    """Running work is told once; waiting calls are closed; then, when nothing runs, the turn ends."""
    stop = state.stop
    assert stop is not None
    open_calls = state.open_calls() if state.phase == "acting" else []
    running = tuple(call.call_id for call in open_calls if call.running)
    waiting = [call for call in open_calls if not call.running]
    if not stop.applied:
        return [StopWork(running, tuple(call.call_id for call in waiting))]
    because: Literal["cancelled", "budget"] = "cancelled" if stop.status == "cancelled" else "budget"
    if waiting:
        return [SkipCall(call.call_id, because) for call in waiting]
    if running or state.phase == "asking":
        return []
    return [Finish(stop.status, stop.reason, stop.message)]
