"""Who watches a run for this command: somebody at a terminal, or nobody.

Drawing is expensive to import, so it is loaded only when there is somebody to draw for.
"""

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Self

from wakeful.agents.watching import Glimpse
from wakeful.contracts.envelope import Recorded


class Silent:
    """Nobody looks; only the turn's id is kept."""

    def __init__(self) -> None:
        self.turn_id: str | None = None
        """Known as soon as the run is safe in the store."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def paused(self) -> AbstractContextManager[object]:
        """While somebody is asked: nothing moves on the screen."""
        return nullcontext()

    def begun(self, turn_id: str, agent_id: str) -> None:
        """The turn is safe."""
        self.turn_id = turn_id

    def facts(self, recorded: Sequence[Recorded]) -> None:
        return None

    def glimpse(self, seen: Glimpse) -> None:
        return None


def somebody_or_nobody(*, quiet: bool) -> Silent:
    """The watcher for this run: progress where stderr is a terminal and nobody asked for quiet."""
    if quiet or not sys.stderr.isatty():
        return Silent()
    from wakeful.surfaces.cli.progress import Progress

    return Progress()
