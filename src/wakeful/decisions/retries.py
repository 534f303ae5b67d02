"""What follows from a lost attempt: again, elsewhere, later, or not at all.

At first three quick attempts on a candidate, counted from 1: backoff 0.2 s doubling, of which the caller draws a part
(full jitter). A provider that asks to be left alone for longer than a second gets no quick attempt. Then the next
candidate. When all are lost, what they were lost for says whether the request is made again later:

    wait   a provider that is away, or busy: 1 s doubling to 60 s, or as long as it asks for
    rest   a key, a quota, a model that is not there: somebody has to change something; 1 min doubling to 1 h
    fail   asking again comes to the same

After a wait there is one attempt on each candidate.
"""

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple, TypeAlias

from wakeful.contracts.events import ModelFailed
from wakeful.contracts.models import RETRYABLE, Disposition, FailureKind

MAX_ATTEMPTS: Final = 3
FIRST_BACKOFF_MS: Final = 200
LONGEST_QUICK_MS: Final = 1_000
"""A provider that asks for more is not asked again quickly."""
WAITED_FOR: Final[frozenset[FailureKind]] = RETRYABLE - {"empty_response"}
"""connection, timeout, rate_limited, overloaded, server_error, stream_interrupted"""
ONCE_MORE: Final[frozenset[FailureKind]] = frozenset(
    {"empty_response", "invalid_response", "content_filtered", "unknown"}
)
"""What a model said badly it may say well the second time."""
RESTED_FOR: Final[frozenset[FailureKind]] = frozenset({"auth_error", "quota_exhausted"})

Outlook: TypeAlias = Literal["wait", "rest", "fail"]


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
    has_waited: bool = False,
) -> Disposition:
    """Retry on the same candidate, fall back to the next, or give up for now."""
    if kind in ("cancelled", "context_length_exceeded"):
        return "abort"  # nobody waits any more; or the conversation itself is too long, wherever it is sent
    if retryable is not False and not _asks_for_time(retry_after_ms) and attempt < _most(kind, retryable, has_waited):
        return "retry"
    return "fallback" if more_candidates else "abort"


def _most(kind: FailureKind, retryable: bool | None, has_waited: bool) -> int:
    """Quick attempts on one candidate."""
    if kind in ONCE_MORE:
        return 2
    if kind in WAITED_FOR or retryable:
        return 1 if has_waited else MAX_ATTEMPTS
    return 1


def _asks_for_time(retry_after_ms: int | None) -> bool:
    return retry_after_ms is not None and retry_after_ms > LONGEST_QUICK_MS


def backoff(attempt: int, retry_after_ms: int | None) -> Backoff:
    """The wait before attempt number `attempt` (2 is the first retry)."""
    if retry_after_ms is not None:
        return Backoff(retry_after_ms, False)
    return Backoff(FIRST_BACKOFF_MS * 2 ** (attempt - 2), True)


def outlook(lost: ModelFailed) -> Outlook:
    """What asking again later would come to."""
    kind = lost.failure_kind
    if kind in RESTED_FOR or lost.unknown_model or (kind == "contract_error" and lost.status == 404):
        return "rest"
    return "wait" if kind in WAITED_FOR and lost.retryable is not False else "fail"


def can_be_retried(lost: ModelFailed) -> bool:
    """May a turn that failed for it come to more when it is tried again?"""
    return outlook(lost) != "fail" or (lost.failure_kind in ONCE_MORE and lost.failure_kind != "content_filtered")


# --- later --------------------------------------------------------------------------------------------------------

FIRST_WAIT_MS: Final = 1_000
LONGEST_WAIT_MS: Final = 60_000
FIRST_PROBE_MS: Final = 60_000
LAST_PROBE_MS: Final = 3_600_000
LONGEST_ASKED_MS: Final = 24 * 3_600_000
"""As long as a provider may ask to be left alone."""


class CandidateLoss(NamedTuple):
    """The newest lost attempt on a candidate."""

    event: ModelFailed
    at: int
    """Unix microseconds."""

    @property
    def not_before(self) -> int:
        """When the provider may be asked again, by its own word; 0: it gave none."""
        asked = self.event.retry_after_ms
        if asked is None or not _asks_for_time(asked):
            return 0
        return self.at + min(asked, LONGEST_ASKED_MS) * 1000


class Wait(NamedTuple):
    """How long a chain of models is waited for, and because of whom. Times are Unix microseconds."""

    because: ModelFailed
    first: int
    """The earliest time at which it may be tried again."""
    last: int
    """The latest one: the caller draws a time between the two."""
    rests: bool
    since: int
    """When the newest attempt was lost."""

    def draw(self, part: float) -> int:
        """A time; `part` is between 0 and 1."""
        return self.first + round((self.last - self.first) * part)


def wait_for(lost: Iterable[CandidateLoss], number: int) -> Wait | None:
    """The wait that follows when every candidate is lost, counted from 1. None: asking again would not help."""
    by_outlook: dict[Outlook, list[CandidateLoss]] = {"wait": [], "rest": [], "fail": []}
    for each in lost:
        by_outlook[outlook(each.event)].append(each)
    waited, rested = by_outlook["wait"], by_outlook["rest"]
    if not waited and not rested:
        return None
    soonest = min(waited or rested, key=lambda each: each.not_before if waited else 0)
    now = max(each.at for each in (*waited, *rested))
    if waited and soonest.not_before:
        return Wait(soonest.event, soonest.not_before, soonest.not_before, False, now)
    first, last = (FIRST_WAIT_MS, LONGEST_WAIT_MS) if waited else (FIRST_PROBE_MS, LAST_PROBE_MS)
    longest = min(first << min(number - 1, 32), last) * 1000
    return Wait(soonest.event, now + longest // 2, now + longest, not waited, now)
