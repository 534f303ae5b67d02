"""How much of each request was in the one before: what a provider's cache of prompts can use again."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple


class Stability(NamedTuple):
    """Over a run of requests, each against the one before it."""

    sent: int
    """Bytes of all requests but the first."""
    again: int
    """Of those, how many stood at the same place in the request before."""
    before: int
    """Bytes of all requests but the last."""
    worst_kept: float
    """The least share of a request that the next one began with."""

    @property
    def share(self) -> float:
        """Of what is sent: what is new in each request is part of the rest."""
        return self.again / self.sent if self.sent else 1.0

    @property
    def kept(self) -> float:
        """Of what was sent before: what the next request begins with."""
        return self.again / self.before if self.before else 1.0


def shared_prefix(before: bytes, after: bytes) -> int:
    """How many bytes the two have in common at their beginning."""
    low, high = 0, min(len(before), len(after))
    while low < high:
        middle = (low + high + 1) // 2
        if before[low:middle] == after[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def stability(bodies: Sequence[bytes]) -> Stability:
    """Of encoded requests, in the order they were sent."""
    sent = again = earlier = 0
    worst = 1.0
    for before, after in pairwise(bodies):
        shared = shared_prefix(before, after)
        sent += len(after)
        again += shared
        earlier += len(before)
        worst = min(worst, shared / len(before)) if before else worst
    return Stability(sent, again, earlier, worst)
