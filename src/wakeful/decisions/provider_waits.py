"""The wait of a level for a provider: how it is written down, and which levels wait."""

from wakeful.contracts.events import ModelFailed, ModelWaiting
from wakeful.contracts.tools import PREVIEW_CHARS
from wakeful.decisions.levels import Level
from wakeful.decisions.retries import outlook
from wakeful.decisions.state import TurnState
from wakeful.decisions.step import WaitForProvider

SHOWN_FROM = 2_000_000
"""Microseconds from the loss of a request: a wait that is over by then is not worth a word."""


def wait_fact(state: TurnState, step: WaitForProvider, next_try: int) -> ModelWaiting:
    """The wait as a fact, until a time that was drawn."""
    this, failure = state.level(step.level).round, step.wait.because
    waited = [each.event for each in this.lost.values() if outlook(each.event) == "wait"]
    since = step.wait.since if this.wait is None else this.wait.since
    return ModelWaiting(
        model_ref=failure.model_ref,
        failure_kind=failure.failure_kind,
        message=failure.message[:PREVIEW_CHARS],
        wait=1 if this.wait is None else this.wait.wait + 1,
        since=since,
        next_try=next_try,
        rests=step.wait.rests,
        absent=bool(waited) and all(_is_absent(each) for each in waited),
        told=next_try - since >= SHOWN_FROM and not _is_known(state, failure),
    )


def _is_known(state: TurnState, failure: ModelFailed) -> bool:
    """Have people been told that the turn waits for this provider, with this reason?"""
    told = [level.round.told_wait for level in (state, *state.tree.levels.values())]
    known = [(each.model_ref.partition(":")[0], each.failure_kind) for each in told if each is not None]
    return (failure.model_ref.partition(":")[0], failure.failure_kind) in known


def waiting_levels(state: TurnState) -> list[Level]:
    """Levels that wait for a provider; of a turn at rest, too."""
    found = [level for level in state.tree.levels.values() if level.phase == "waiting"]
    root = state.rest.phase_before if state.phase == "suspended" else state.phase
    return [state, *found] if root == "waiting" else found


def _is_absent(lost: ModelFailed) -> bool:
    return lost.transport_diagnostics is not None and lost.transport_diagnostics.is_absent
