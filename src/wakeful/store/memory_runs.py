"""Runs of tasks and packages, and imported agents, in memory."""

from collections.abc import Callable

from wakeful.ports import ImportedAgent, RunKind, TaskRunEvent, TaskRunRow


class RunShelf:
    """What is kept."""

    def __init__(self) -> None:
        self.runs: dict[str, TaskRunRow] = {}
        self.events: dict[str, list[TaskRunEvent]] = {}
        self.agents: dict[str, ImportedAgent] = {}


class MemoryTaskRuns:
    """A TaskRunStore. `check_open` raises when its store was closed."""

    def __init__(self, shelf: RunShelf, check_open: Callable[[], None]) -> None:
        self._shelf = shelf
        self._check_open = check_open

    async def claim(
        self,
        run_id: str,
        kind: RunKind,
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
        self._shelf.runs[run_id] = TaskRunRow(run_id, kind, session_id, status, record, 1, at, at)
        self._shelf.events[run_id] = [TaskRunEvent(1, at, event, payload)]
        return True

    async def get(self, run_id: str) -> TaskRunRow | None:
        self._check_open()
        return self._shelf.runs.get(run_id)

    async def all(self, kind: RunKind, *, limit: int | None = None) -> list[TaskRunRow]:
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
        events.append(TaskRunEvent(len(events) + 1, at, event, payload))
        return True

    async def events(self, run_id: str, *, after: int = 0, limit: int | None = None) -> list[TaskRunEvent]:
        self._check_open()
        return [event for event in self._shelf.events.get(run_id, []) if event.seq > after][:limit]


class MemoryImportedAgents:
    """The agents that came in bundles."""

    def __init__(self, shelf: RunShelf, check_open: Callable[[], None]) -> None:
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
