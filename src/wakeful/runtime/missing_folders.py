"""Folders that agents work in and that are not there: when one is back, what waits for it begins within seconds.

Only folders are looked at in which a turn could not begin, and only while they are missing. Messages that were set
aside for one are due at once when it is back, or when their agent works elsewhere; without this they would wait for as
long again as they have waited. A deferral names its folder, so a runtime that is started again knows what waits.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from wakeful.contracts.errors import EventRefused
from wakeful.ports.mailbox import MessageRow
from wakeful.ports.store import Store

LOOK_SECONDS = 2.0
"""Between two looks while a folder is missing."""
PAGE = 256
"""Messages that were set aside, read at once."""

ThreadName = tuple[str, str]


@dataclass(slots=True)
class MissingFolders:
    """Which thread waits for which folder."""

    store: Store
    release: Callable[[str], Awaitable[None]]
    """Makes a message that was set aside due. Raises EventRefused where a turn has it."""
    _missing: dict[ThreadName, str] = field(default_factory=dict)
    _is_recalled: bool = False

    def note(self, agent_id: str, thread_id: str, folder: str) -> None:
        """A turn of this thread could not begin without the folder."""
        self._missing[agent_id, thread_id] = folder

    def forget(self, agent_id: str, thread_id: str) -> None:
        """It did begin."""
        self._missing.pop((agent_id, thread_id), None)

    @property
    def look_within(self) -> float | None:
        """Seconds until the next look; None: nothing is missing."""
        return LOOK_SECONDS if self._missing else None

    def words_of(self, agent_id: str) -> str:
        """For which folder an agent waits, in a sentence; blank: for none."""
        found = [folder for (name, _), folder in self._missing.items() if name == agent_id]
        return f"agent {agent_id!r} works in {found[0]}, and that folder is not there" if found else ""

    async def returned(self) -> list[ThreadName]:
        """Threads whose folder is back, or whose agent works elsewhere now; what was set aside in them is due."""
        if not self._is_recalled:
            await self._recall()
            self._is_recalled = True
        if not self._missing:
            return []
        there = await asyncio.to_thread(_there, dict(self._missing))
        found: list[ThreadName] = []
        for name, folder in list(self._missing.items()):
            is_back = name in there
            if (is_back or await self._is_left(name[0], folder)) and (await self._released(name, folder) or is_back):
                self._missing.pop(name, None)
                found.append(name)
        return found

    async def _recall(self) -> None:
        """What a runtime before this one set aside."""
        last: MessageRow | None = None
        threads: dict[ThreadName, None] = {}
        while rows := await self.store.all_deferred(after=last, limit=PAGE):
            threads |= dict.fromkeys((row.agent_id, row.thread_id) for row in rows)
            last = rows[-1]
        for name in threads:
            for wake in await self.store.deferrals(*name):
                if wake.cause_id != wake.subject:
                    self.note(*name, wake.cause_id)

    async def _is_left(self, agent_id: str, folder: str) -> bool:
        place = await self.store.active_workspace(agent_id)
        return place is not None and folder not in place.folders

    async def _released(self, name: ThreadName, folder: str) -> bool:
        """Was anything set aside for the folder? A turn that had begun in it needs that one."""
        waiting = [wake.subject for wake in await self.store.deferrals(*name) if wake.cause_id == folder]
        for message_id in waiting:
            with suppress(EventRefused):
                await self.release(message_id)
        return bool(waiting)


def _there(missing: Mapping[ThreadName, str]) -> set[ThreadName]:
    return {name for name, folder in missing.items() if Path(folder).is_dir()}
