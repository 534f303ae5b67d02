"""Two readers of one store that is written to meanwhile: what they say is compared of a moment that both have seen."""

import time
from collections.abc import Callable
from typing import TypeVar

Read = TypeVar("Read")


def read_both(one: Callable[[], Read], other: Callable[[], Read], seconds: float = 60.0) -> tuple[Read, Read]:
    """What both say, while the first of them says the same before and after the second.

    They differ only where they read the same store differently: when something was written in between, both read again.
    """
    until = time.monotonic() + seconds
    while True:
        here, there = one(), other()
        if here == there or here == one():
            return here, there
        assert time.monotonic() < until, f"it changes all the time: {here}"
