"""Where an agent stands when nothing of it runs: done, able to go on by itself, waiting for something, or failed.

A table over a record of facts; the first row that applies wins, and says which facts it read. `completed` needs a turn
that was seen to end: that nothing is waited for is no proof that anything is finished.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from wakeful.contracts.events import TurnStatus
from wakeful.contracts.waking import ClosureDecision, Posture, WaitingReason, WaitWake, WorkSignal

ItemWait: TypeAlias = Literal["task", "external", "timer", "operator", "system", "blocked"]
"""What the focused work item waits for. blocked: it has a blocker, and nothing was named that would lift it."""


class OpenWait(NamedTuple):
    """A wait of the agent that is bound to no work item."""

    wait_id: str
    wake: WaitWake


class FocusedItem(NamedTuple):
    """The work item that the agent is at, as the scheduler sees it."""

    work_item_id: str
    waits_for: ItemWait | None = None
    """None: it waits for nothing."""


@dataclass(frozen=True, slots=True)
class ClosureFacts:
    """Everything that the decision reads."""

    runtime_error: str = ""
    """What went wrong outside a turn since the last completed turn or resume; blank: nothing."""
    running_turn: str = ""
    """A turn that is under way or at rest; blank: none."""
    started_turn: str = ""
    """The newest turn that began; blank: none ever did."""
    terminal: TurnStatus | None = None
    """How that turn ended; None: no end of it was recorded."""
    runnable: WorkSignal | None = None
    waits: tuple[OpenWait, ...] = ()
    """Only the timers of waits and sleeps are among them: a schedule makes nobody wait."""
    focused: FocusedItem | None = None
    posture: Posture = "awake"


def work_signal(current: str | None, queued: str | None) -> WorkSignal | None:
    """The runnable work there is: the current item, where it is runnable, else the first queued one that is."""
    if current is not None:
        return WorkSignal(work_item_id=current, status="active", reactivation_mode="continue_active")
    if queued is not None:
        return WorkSignal(work_item_id=queued, status="queued", reactivation_mode="activate_queued")
    return None


def closure_of(facts: ClosureFacts) -> ClosureDecision:
    """The first row of the table that applies."""
    for row in _TABLE:
        decision = row(facts)
        if decision is not None:
            return decision
    return _decided(facts, "completed", f"turn {facts.started_turn} completed" if facts.started_turn else "no turn yet")


_BY_WAKE: Final[dict[WaitWake, WaitingReason]] = {
    "operator_input": "awaiting_operator_input",
    "external": "awaiting_external_change",
    "task_result": "awaiting_task_result",
    "timer": "awaiting_timer",
}
_BY_ITEM: Final[dict[ItemWait, WaitingReason]] = {
    "operator": "awaiting_operator_input",
    "external": "awaiting_external_change",
    "task": "awaiting_task_result",
    "timer": "awaiting_timer",
    "system": "awaiting_external_change",
    "blocked": "awaiting_external_change",
}


def _failed_outside_a_turn(facts: ClosureFacts) -> ClosureDecision | None:
    return _decided(facts, "failed", f"runtime error: {facts.runtime_error}") if facts.runtime_error else None


def _turn_in_progress(facts: ClosureFacts) -> ClosureDecision | None:
    if not facts.running_turn:
        return None
    return _waiting(facts, "awaiting_external_change", f"turn {facts.running_turn} is in progress")


def _turn_failed(facts: ClosureFacts) -> ClosureDecision | None:
    if facts.terminal in (None, "completed"):
        return None
    return _decided(facts, "failed", f"turn {facts.started_turn} ended as {facts.terminal}")


def _turn_without_end(facts: ClosureFacts) -> ClosureDecision | None:
    if not facts.started_turn or facts.terminal is not None:
        return None
    return _waiting(facts, "awaiting_external_change", f"turn {facts.started_turn} started and has no end")


def _runnable_work(facts: ClosureFacts) -> ClosureDecision | None:
    signal = facts.runnable
    if signal is None:
        return None
    evidence = f"work item {signal.work_item_id} is runnable ({signal.status})"
    return ClosureDecision(
        outcome="continuable", work_signal=signal, runtime_posture=facts.posture, evidence=(evidence,)
    )


def _wait_for(*wakes: WaitWake) -> Callable[[ClosureFacts], ClosureDecision | None]:
    def row(facts: ClosureFacts) -> ClosureDecision | None:
        found = next((wait for wait in facts.waits if wait.wake in wakes), None)
        if found is None:
            return None
        return _waiting(facts, _BY_WAKE[found.wake], f"wait {found.wait_id} for {found.wake} is open")

    return row


def _focused_item_waits(facts: ClosureFacts) -> ClosureDecision | None:
    item = facts.focused
    if item is None or item.waits_for is None:
        return None
    words = "is blocked" if item.waits_for == "blocked" else f"waits ({item.waits_for})"
    return _waiting(facts, _BY_ITEM[item.waits_for], f"work item {item.work_item_id} {words}")


_TABLE: Final[tuple[Callable[[ClosureFacts], ClosureDecision | None], ...]] = (
    _failed_outside_a_turn,
    _turn_in_progress,
    _turn_failed,
    _turn_without_end,
    _runnable_work,
    _wait_for("operator_input"),
    _wait_for("external", "task_result"),
    _wait_for("timer"),
    _focused_item_waits,
)


def _decided(facts: ClosureFacts, outcome: Literal["completed", "failed"], evidence: str) -> ClosureDecision:
    return ClosureDecision(outcome=outcome, runtime_posture=facts.posture, evidence=(evidence,))


def _waiting(facts: ClosureFacts, reason: WaitingReason, evidence: str) -> ClosureDecision:
    return ClosureDecision(
        outcome="waiting", waiting_reason=reason, runtime_posture=facts.posture, evidence=(evidence,)
    )
