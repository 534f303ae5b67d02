"""The last fact of a turn, from its state."""

from typing import Any

from wakeful.contracts.events import TurnCompleted, TurnFailed
from wakeful.contracts.failures import FailureArtifact
from wakeful.contracts.models import ProviderAttemptTimeline
from wakeful.contracts.tools import PREVIEW_CHARS
from wakeful.contracts.values import unchecked
from wakeful.decisions.failures import model_failure
from wakeful.decisions.retries import can_be_retried
from wakeful.decisions.state import TurnState
from wakeful.decisions.step import Finish
from wakeful.decisions.turn_retry import can_help

_turn_completed = unchecked(TurnCompleted)


def ending(state: TurnState, step: Finish, now: int) -> TurnCompleted | TurnFailed:
    """The terminal fact for how the turn ends at `now`."""
    figures: dict[str, Any] = {
        "turn_index": state.terms.turn_index,
        "duration_ms": (now - state.time.started_at) / 1000,
        "active_ms": (state.time.active_us + max(0, now - state.time.stretch_from)) / 1000,
        "token_usage": state.model_usage.tokens if state.model_usage.is_reported else None,
        "model_calls": state.ledger.model_calls,
        "tool_calls": state.ledger.tool_calls,
        "steps": state.step,
        "final_preview": state.answer.last_text[:PREVIEW_CHARS],
        "unknown": tuple(state.unknown),
    }
    if step.status == "completed":
        waits = {"wait_ids": tuple(state.waits)} if state.is_to_rest else {}
        return _turn_completed(stop_reason="natural", retryable=False, **waits, **figures)
    return TurnFailed(
        status=step.status,
        stop_reason=step.reason,
        retryable=_can_be_retried(state, step),
        message=step.message[:2000],
        failure_artifact=_artifact(state, step),
        timeline=_timeline(state, step),
        **figures,
    )


def _can_be_retried(state: TurnState, step: Finish) -> bool:
    """May the turn come to more when it is tried again?"""
    if step.status == "cancelled" or not can_help(step.reason):
        return False
    failure = state.round.request.failure if state.round.request is not None else None
    if step.reason != "provider_error" or failure is None:
        return True
    return any(can_be_retried(lost.event) for lost in state.round.lost.values()) or can_be_retried(failure)


def _timeline(state: TurnState, step: Finish) -> ProviderAttemptTimeline | None:
    """Every attempt of the round that ended the turn."""
    if step.reason != "provider_error" or not state.round.attempts:
        return None
    usages = [record.token_usage for record in state.round.attempts if record.token_usage is not None]
    return ProviderAttemptTimeline(
        attempts=tuple(state.round.attempts),
        requested_model_ref=state.round.attempts[0].model_ref,
        active_model_ref=state.round.attempts[-1].model_ref,
        aggregated_token_usage=sum(usages[1:], usages[0]) if usages else None,
    )


def _artifact(state: TurnState, step: Finish) -> FailureArtifact | None:
    if step.status == "cancelled":
        return None
    if step.reason == "provider_error" and state.round.request is not None and state.round.request.failure is not None:
        return model_failure(state.round.request.failure)
    return FailureArtifact(category="runtime", kind=step.reason, summary=step.message[:PREVIEW_CHARS])
