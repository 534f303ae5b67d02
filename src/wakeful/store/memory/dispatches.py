"""Dispatches, and imported agents, in memory."""

from collections.abc import Callable

from wakeful.ports import DispatchEvent, DispatchKind, DispatchRow, ImportedAgent


class DispatchShelf:
    """What is kept."""

    def __init__(self) -> None:
        self.runs: dict[str, DispatchRow] = {}
        self.events: dict[str, list[DispatchEvent]] = {}
        self.agents: dict[str, ImportedAgent] = {}


class MemoryDispatches:
    """`Dispatches` in memory. `check_open` raises when its store was closed."""

    def __init__(self, shelf: DispatchShelf, check_open: Callable[[], None]) -> None:
        self._shelf = shelf
        self._check_open = check_open

    async def claim(
        self,
        run_id: str,
        kind: DispatchKind,
        session_id: str,
        status: str,
        record: str,
        *,
        at: int,
        event: str,
        payload: str,
    ) -> bool:
        self._check_open()
        if run_id in self._shelf.runs:
            return False
        self._shelf.runs[run_id] = DispatchRow(run_id, kind, session_id, status, record, 1, at, at)
        self._shelf.events[run_id] = [DispatchEvent(1, at, event, payload)]
        return True

    async def get(self, run_id: str) -> DispatchRow | None:
        self._check_open()
        return self._shelf.runs.get(run_id)

    async def all(self, kind: DispatchKind, *, limit: int | None = None) -> list[DispatchRow]:
        self._check_open()
        return [row for row in reversed(self._shelf.runs.values()) if row.kind == kind][:limit]

    async def change(
        self, run_id: str, revision: int, status: str, record: str, *, at: int, event: str, payload: str
    ) -> bool:
        self._check_open()
        row = self._shelf.runs.get(run_id)
        if row is None or row.revision != revision:
            return False
        self._shelf.runs[run_id] = row._replace(status=status, record=record, revision=revision + 1, updated_at=at)
        return await self.note(run_id, at=at, event=event, payload=payload)

    async def note(self, run_id: str, *, at: int, event: str, payload: str) -> bool:
        self._check_open()
        if run_id not in self._shelf.runs:
            return False
        events = self._shelf.events[run_id]
        events.append(DispatchEvent(len(events) + 1, at, event, payload))
        return True

    async def events(self, run_id: str, *, after: int = 0, limit: int | None = None) -> list[DispatchEvent]:
        self._check_open()
        return [event for event in self._shelf.events.get(run_id, []) if event.seq > after][:limit]


class MemoryImportedAgents:
    """The agents that came in bundles."""

    def __init__(self, shelf: DispatchShelf, check_open: Callable[[], None]) -> None:
        self._shelf = shelf
        self._check_open = check_open

    async def put(self, slug: str, definition: str, *, at: int, replace: bool) -> bool:
        self._check_open()
        if slug in self._shelf.agents and not replace:
            return False
        self._shelf.agents[slug] = ImportedAgent(slug, definition, at)
        return True

    async def get(self, slug: str) -> ImportedAgent | None:
        self._check_open()
        return self._shelf.agents.get(slug)

    async def all(self) -> list[ImportedAgent]:
        self._check_open()
        return sorted(self._shelf.agents.values())
