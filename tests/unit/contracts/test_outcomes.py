"""Run outcomes: every status keeps its name, and only a completion is completed."""

from typing import Any, get_args

import pytest

from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.outcomes import OutcomeStatus, RunFailure, RunOutcome, stop_reason

STATUSES = get_args(OutcomeStatus)


@pytest.mark.spec("API-OUT-01")
def test_an_outcome_has_its_schema_and_fields() -> None:
    outcome = RunOutcome.of(
        "failed",
        stop_reason="provider_error",
        failure=RunFailure(type="provider", message="gone"),
        provider_error={"status": 500},
        assertions=[{"name": "kept", "ok": True}],
        metadata={"k": 1},
    )
    assert outcome.model_dump(mode="json", exclude_none=True) == {
        "schema": "wakeful.run-outcome",
        "version": 1,
        "status": "failed",
        "completed": False,
        "stop_reason": "provider_error",
        "retryable": True,
        "failure": {"type": "provider", "message": "gone"},
        "provider_error": {"status": 500},
        "assertions": [{"name": "kept", "ok": True}],
        "metadata": {"k": 1},
    }
    assert RunOutcome.normalise(outcome.model_dump(mode="json", exclude_none=True)) == outcome


@pytest.mark.spec("API-OUT-02")
@pytest.mark.parametrize("status", STATUSES)
def test_any_status_but_completed_forces_completed_to_false(status: Any) -> None:
    outcome = RunOutcome.normalise({"status": status, "completed": True})
    assert outcome.completed is (status == "completed")
    assert outcome.status == status


@pytest.mark.spec("API-OUT-03")
def test_stop_reason_is_natural_max_turns_provider_error_or_the_status() -> None:
    assert stop_reason("completed") == "natural"
    assert stop_reason("budget_exceeded", turn_limit=True) == "max_turns"
    assert stop_reason("failed", provider_error=True) == "provider_error"
    for status in STATUSES:
        if status != "completed":
            assert RunOutcome.of(status).stop_reason == status
    with pytest.raises(InvalidValue, match="natural"):
        RunOutcome.of("failed", stop_reason="natural")


@pytest.mark.spec("API-OUT-04")
def test_retryable_follows_from_the_status_unless_the_adapter_says_otherwise() -> None:
    assert {status: RunOutcome.of(status).retryable for status in STATUSES} == {
        "completed": False,
        "failed": True,
        "runtime_tool_pending": False,
        "approval_required": False,
        "budget_exceeded": True,
        "stalled": False,
        "cancelled": False,
        "interrupted": False,
        "incomplete": True,
    }
    assert RunOutcome.of("failed", retryable=False).retryable is False
    with pytest.raises(InvalidValue, match="not one to try again"):
        RunOutcome.of("cancelled", retryable=True)


@pytest.mark.spec("API-OUT-05")
@pytest.mark.parametrize("status", ["running", "suspended", "unheard-of", "", None])
def test_an_unknown_status_is_an_error_and_never_read_as_another(status: Any) -> None:
    with pytest.raises(InvalidValue, match=r"^invalid_run_outcome: "):
        RunOutcome.normalise({"status": status})
