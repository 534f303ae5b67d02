"""Which failures are tried again, and which end their candidate: from the answer on the wire to the decision."""

import json

import httpx2
import pytest

from wakeful.contracts.models import FailureKind
from wakeful.decisions.retries import dispose
from wakeful.providers.wire.failures import from_exception, from_status


def decided(status: int, body: object = None) -> str:
    failure = from_status(
        "openai", "openai:gpt-5.5", status, {}, json.dumps(body or {"error": {"message": "no"}}).encode()
    )
    return dispose(failure.kind, retryable=failure.retryable, attempt=1, retry_after_ms=None, more_candidates=True)


@pytest.mark.spec("HOL-RETRY-03")
@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_what_may_pass_is_tried_again_on_the_same_candidate(status: int) -> None:
    assert decided(status) == "retry"


@pytest.mark.spec("HOL-RETRY-03")
@pytest.mark.parametrize(
    "error", [httpx2.ReadTimeout("slow"), httpx2.ConnectError("refused"), httpx2.ReadError("reset")]
)
def test_timeouts_and_lost_connections_are_tried_again(error: Exception) -> None:
    failure = from_exception("openai", "openai:gpt-5.5", error, stage="connect")
    assert (
        dispose(failure.kind, retryable=failure.retryable, attempt=1, retry_after_ms=None, more_candidates=True)
        == "retry"
    )


@pytest.mark.spec("HOL-RETRY-04")
@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 422])
def test_what_would_fail_again_ends_its_candidate_at_once(status: int) -> None:
    assert decided(status) == "fallback"


@pytest.mark.spec("HOL-RETRY-04")
@pytest.mark.parametrize("kind", ["unsupported_transport", "contract_error", "auth_error"])
def test_a_request_nobody_takes_and_a_transport_nobody_speaks_end_their_candidate_at_once(kind: str) -> None:
    judged = dispose(kind, retryable=None, attempt=1, retry_after_ms=None, more_candidates=True)  # type: ignore[arg-type]
    assert judged == "fallback"


def test_a_provider_that_wants_more_than_a_moment_is_left_for_the_next_one() -> None:
    assert dispose("rate_limited", retryable=None, attempt=1, retry_after_ms=2_000, more_candidates=True) == "fallback"
    assert dispose("rate_limited", retryable=None, attempt=1, retry_after_ms=1_000, more_candidates=True) == "retry"


@pytest.mark.parametrize("kind", ["invalid_response", "empty_response", "content_filtered"])
def test_an_answer_of_no_use_is_asked_for_once_more(kind: FailureKind) -> None:
    judged = [
        dispose(kind, retryable=None, attempt=number, retry_after_ms=None, more_candidates=True) for number in (1, 2)
    ]
    assert judged == ["retry", "fallback"]
    assert dispose(kind, retryable=False, attempt=1, retry_after_ms=None, more_candidates=True) == "fallback"
