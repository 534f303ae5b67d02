"""Parts of a runtime that fail with an error that nobody expected: told, and gone on with. None of them ends silently.

A part is begun again after a pause that grows. People are told once, until the part has worked again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import ForTheCaller
from wakeful.contracts.events import RuntimePartFailed
from wakeful.engine.run_request import Engine
from wakeful.runtime.parked_providers import append_to_runtime

LOG = logging.getLogger(__name__)
FIRST_PAUSE, LAST_PAUSE = 1.0, 300.0
"""Seconds before a part is begun again; one that went on for the longest pause works."""
ERROR_CHARS = 500


@dataclass(slots=True)
class FailingParts:
    """Keeps the parts of a runtime at work."""

    engine: Engine
    _told: set[str] = field(default_factory=set)
    """Parts that fail, and of which people were told."""
    down: list[str] = field(default_factory=list)
    """Parts that failed and were not begun again yet."""

    async def keep_up(self, part: str, run: Callable[[], Awaitable[None]]) -> None:
        """Run what goes on until it is cancelled, and begin it again where it fails."""
        clock, pause = self.engine.clock, FIRST_PAUSE
        while True:
            began = clock.monotonic()
            try:
                await run()
                return
            except asyncio.CancelledError as problem:
                this = asyncio.current_task()
                if this is None or this.cancelling():
                    raise
                failure: BaseException = problem  # of something inside
            except Exception as problem:
                failure = problem
            if clock.monotonic() - began > LAST_PAUSE:
                pause = FIRST_PAUSE
                self._told.discard(part)
            self.down.append(part)
            try:
                await self._tell(part, failure)
                await clock.sleep(pause)
            finally:
                self.down.remove(part)
            pause = min(LAST_PAUSE, pause * 2)

    async def safely(self, part: str, work: Awaitable[object]) -> bool:
        """One look of a part that looks again soon, also where the store cannot be read now. Was it done?"""
        try:
            await work
            self._told.discard(part)
            return True
        except ForTheCaller:
            return False
        except Exception as problem:
            await self._tell(part, problem)
            return False

    async def _tell(self, part: str, problem: BaseException) -> None:
        LOG.error("%s of the runtime failed, and is tried again", part, exc_info=problem)
        if part in self._told:
            return
        error = self.engine.keys().hide(f"{type(problem).__name__}: {problem}")[:ERROR_CHARS]
        with suppress(Exception):  # it cannot be written now; the next failure tries again
            event = RuntimePartFailed(part=part, error=error)
            await append_to_runtime(self.engine, Fact(event, self.engine.clock.now()))
            self._told.add(part)
