"""Which limits are known to be low, so that an account at its end is told of once and not with every answer.

A limit is told of when it gets low, and again when it still is after the moment at which it was to be full again. What
the log says of earlier answers counts: a turn that is taken up, or the thread's next one, does not repeat it.
"""

from collections.abc import Sequence

from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.events import QuotaLow
from wakeful.decisions.limits import until_ms


class LowLimits:
    """What was told, by model and limit, and until when it says the same."""

    def __init__(self, recent: Sequence[StoredFact] = ()) -> None:
        self._recent = recent
        """Looked through when an answer has something to say about limits, and not before."""
        self._told: dict[tuple[str, str | None], int] | None = None

    def crossed(self, model_ref: str, low: QuotaLow | None, now: int) -> QuotaLow | None:
        """What is worth a fact of what an answer says at this moment (microseconds)."""
        told = self._told
        if told is None:
            earlier = [entry.fact for entry in self._recent if isinstance(entry.fact.event, QuotaLow)]
            self._recent = ()
            told = self._told = {}
            for fact in earlier:
                assert isinstance(fact.event, QuotaLow)
                told[fact.event.model_ref, fact.event.limit_name] = until_ms(fact.event, fact.at)
        if low is None:
            for key in [key for key in told if key[0] == model_ref]:
                del told[key]
            return None
        key = (model_ref, low.limit_name)
        if key in told and (low.resets_at is None or now // 1000 < told[key]):
            return None
        told[key] = until_ms(low, now)
        return low
