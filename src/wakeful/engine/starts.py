"""What begins once its facts are on disk."""

from collections.abc import Callable
from typing import NamedTuple


class Start(NamedTuple):
    """Something that begins once its facts are on disk. `begin` is given the number of its first fact."""

    begin: Callable[[int], None]
    needs_barrier: bool = False
    """Its facts have to survive a power cut before it may begin."""
    fact_index: int = 0
    """Which fact of the pass is its first."""
    asks: bool = False
    """It asks an approver, if there is one: until it has begun, nobody knows whether the turn has to rest."""
    runs: bool = False
    """It is a call that runs."""
    alone: bool = False
    """Nothing may begin beside it."""
