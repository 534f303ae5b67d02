"""What follows from lost attempts: quick ones, the next candidate, a wait, a rest, or the end."""

import pytest

from wakeful.contracts.events import ModelFailed
from wakeful.contracts.models import FailureKind
from wakeful.decisions.retries import (
    FIRST_WAIT_MS,
    LONGEST_ASKED_MS,
    LONGEST_WAIT_MS,
    CandidateLoss,
    can_be_retried,
    dispose,
    outlook,
    wait_for,
)

NOW = 1_000_000_000


def lost(kind: FailureKind, *, at: int = NOW, candidate: int = 0, **more: object) -> CandidateLoss:
    fields = {"model_ref": f"m:{candidate}", "candidate": candidate, "attempt": 1, "failure_kind": kind}
    event = ModelFailed(**fields, stage="headers", disposition="abort", message="no", **more)  # type: ignore[arg-type]
    return CandidateLoss(event, at)


@pytest.mark.parametrize(
    ("kind", "attempts", "after_a_wait", "then", "again"),
    [
        ("connection", 3, 1, "wait", True),
        ("timeout", 3, 1, "wait", True),
        ("rate_limited", 3, 1, "wait", True),
        ("overloaded", 3, 1, "wait", True),
        ("server_error", 3, 1, "wait", True),
        ("stream_interrupted", 3, 1, "wait", True),
        ("auth_error", 1, 1, "rest", True),
        ("quota_exhausted", 1, 1, "rest", True),
        ("empty_response", 2, 2, "fail", True),
        ("invalid_response", 2, 2, "fail", True),
        ("unknown", 2, 2, "fail", True),
        ("content_filtered", 2, 2, "fail", False),
        ("context_length_exceeded", 1, 1, "fail", False),
        ("contract_error", 1, 1, "fail", False),
        ("unsupported_transport", 1, 1, "fail", False),
        ("cancelled", 1, 1, "fail", False),
    ],
)
def test_each_kind_of_failure_has_its_attempts_and_what_comes_after_them(
    kind: FailureKind, attempts: int, after_a_wait: int, then: str, again: bool
) -> None:
    def made(has_waited: bool) -> int:
        number = 1
        given = {"retryable": None, "retry_after_ms": None, "more_candidates": False, "has_waited": has_waited}
        while dispose(kind, attempt=number, **given) == "retry":  # type: ignore[arg-type]
            number += 1
        return number

    assert (made(False), made(True)) == (attempts, after_a_wait)
    assert outlook(lost(kind).event) == then
    assert can_be_retried(lost(kind).event) is again


def test_a_model_that_nobody_knows_is_rested_for_and_what_the_provider_calls_final_is_not_waited_for() -> None:
    assert outlook(lost("contract_error", status=404).event) == "rest"
    assert outlook(lost("contract_error", status=400, unknown_model=True).event) == "rest"
    assert outlook(lost("timeout", retryable=False).event) == "fail"


def test_a_provider_that_asks_for_more_than_a_moment_gets_no_quick_attempt() -> None:
    given = {"retryable": None, "attempt": 1, "more_candidates": True}
    assert dispose("rate_limited", retry_after_ms=1_000, **given) == "retry"  # type: ignore[arg-type]
    assert dispose("rate_limited", retry_after_ms=1_001, **given) == "fallback"  # type: ignore[arg-type]


def test_waits_double_up_to_a_minute_and_are_drawn_from_their_second_half() -> None:
    longest = []
    for number in (1, 2, 3, 7, 8, 1_000):
        wait = wait_for([lost("overloaded")], number)
        assert wait is not None and not wait.rests
        assert wait.draw(0) - NOW == (wait.draw(1) - NOW) // 2
        longest.append((wait.draw(1) - NOW) // 1000)
    assert longest == [FIRST_WAIT_MS, 2_000, 4_000, LONGEST_WAIT_MS, LONGEST_WAIT_MS, LONGEST_WAIT_MS]


def test_a_wait_is_as_long_as_the_provider_asks_and_never_longer_than_a_day() -> None:
    wait = wait_for([lost("rate_limited", retry_after_ms=90_000)], 1)
    assert wait is not None and wait.draw(0) == wait.draw(1) == NOW + 90_000_000
    wait = wait_for([lost("rate_limited", retry_after_ms=10**15)], 1)
    assert wait is not None and wait.draw(0) == NOW + LONGEST_ASKED_MS * 1000


def test_a_chain_waits_for_whoever_may_come_back_first_and_fails_when_nobody_will() -> None:
    puts_off, is_down = lost("rate_limited", retry_after_ms=3_600_000), lost("connection", candidate=1)
    wait = wait_for([puts_off, is_down], 1)
    assert wait is not None and wait.because is is_down.event and wait.draw(1) == NOW + FIRST_WAIT_MS * 1000
    shut, wrong = lost("auth_error"), lost("contract_error", candidate=1)
    for chain in ([shut, wrong], [wrong, shut]):
        rest = wait_for(chain, 1)
        assert rest is not None and rest.rests and rest.because is shut.event
        assert rest.draw(1) - NOW == 60_000_000
    assert wait_for([shut, is_down], 1) is not None
    assert wait_for([wrong], 1) is None and wait_for([], 1) is None
