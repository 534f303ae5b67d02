"""What follows from a lost attempt: again, elsewhere, or not at all.

At most three attempts on a candidate, counted from 1. Backoff 0.2 s doubling to at most 8 s; the caller draws a time
below it (full jitter). A provider's Retry-After is honoured up to 60 s; a longer one ends that candidate.
"""

from typing import NamedTuple

from wakeful.contracts.models import RETRYABLE, Disposition, FailureKind

MAX_ATTEMPTS = 3
FIRST_BACKOFF_MS = 200
LONGEST_BACKOFF_MS = 8_000
LONGEST_RETRY_AFTER_MS = 60_000


class Backoff(NamedTuple):
    """How long to wait before an attempt."""

    ms: int
    jitter: bool
    """True: anything up to `ms`. False: exactly that, because the provider said so."""


NO_BACKOFF = Backoff(0, False)


def dispose(
    kind: FailureKind,
    *,
    retryable: bool | None,
    attempt: int,
    retry_after_ms: int | None,
    more_candidates: bool,
) -> Disposition:
    """Retry on the same candidate, fall back to the next, or give up."""
    if kind in ("cancelled", "context_length_exceeded"):
        return "abort"  # nobody waits any more; or the conversation itself is too long, wherever it is sent
    may_retry = retryable if retryable is not None else kind in RETRYABLE
    if may_retry and too_long(retry_after_ms) is None and attempt < MAX_ATTEMPTS:
        return "retry"
    return "fallback" if more_candidates else "abort"


def too_long(retry_after_ms: int | None) -> str | None:
    """Why a provider's Retry-After is not waited for, in words; None when it is, or when it gave none."""
    if retry_after_ms is None or retry_after_ms <= LONGEST_RETRY_AFTER_MS:
        return None
    asked, longest = retry_after_ms / 1000, LONGEST_RETRY_AFTER_MS / 1000
    return f"it asks to wait {asked:,.0f} s before the next attempt, which is longer than the {longest:.0f} s allowed"


def backoff(attempt: int, retry_after_ms: int | None) -> Backoff:
    """The wait before attempt number `attempt` (2 is the first retry)."""
    if retry_after_ms is not None:
        return Backoff(retry_after_ms, False)
    return Backoff(min(FIRST_BACKOFF_MS * 2 ** (attempt - 2), LONGEST_BACKOFF_MS), True)
