"""Folders that agents work in and that are not there: when one is back, what waits for it begins within seconds.

Only folders are looked at in which a turn could not begin, and only while they are missing. Messages that were set
aside for it are due at once then; without this they would wait for as long again as they have waited.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from wakeful.contracts.errors import EventRefused, WorkspaceMissing

LOOK_SECONDS = 2.0
"""Between two looks while a folder is missing."""


@dataclass(slots=True)
class MissingFolders:
    """What waits for which folder, in this process."""

    release: Callable[[str], Awaitable[None]]
    """Makes a message that was set aside due. Raises EventRefused where a turn has it."""
    _missing: dict[tuple[str, str], WorkspaceMissing] = field(default_factory=dict)

    def note(self, agent_id: str, thread_id: str, problem: WorkspaceMissing) -> None:
        """A turn of this thread could not begin."""
        self._missing[agent_id, thread_id] = problem

    def forget(self, agent_id: str, thread_id: str) -> None:
        """It did begin."""
        self._missing.pop((agent_id, thread_id), None)

    @property
    def look_within(self) -> float | None:
        """Seconds until the next look; None: nothing is missing."""
        return LOOK_SECONDS if self._missing else None

    async def returned(self) -> list[tuple[str, str]]:
        """Threads whose folder is back; what was set aside in them is due."""
        if not self._missing:
            return []
        back = await asyncio.to_thread(_there, dict(self._missing))
        for name in back:
            problem = self._missing.pop(name, None)
            for message_id in problem.set_aside if problem is not None else ():
                with suppress(EventRefused):
                    await self.release(message_id)
        return back


def _there(missing: Mapping[tuple[str, str], WorkspaceMissing]) -> list[tuple[str, str]]:
    return [name for name, problem in missing.items() if Path(problem.folder).is_dir()]
