"""Telling the host what happened: the log, read on from where it was, event by event.

Nothing is told before it is stored, and the order is the log's by construction. An observer that raises changes nothing
but the log, where it leaves a trace.
"""

import asyncio
import copy
from collections.abc import Callable
from typing import Any

from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import AnyEvent, ObserverFailed
from wakeful.hosts.host_calls import at_once
from wakeful.hosts.loop.loop_events import LoopEvent
from wakeful.hosts.loop.view import LoopView
from wakeful.ports import Clock, Store
from wakeful.service.hooks import HookRegistry

ON_EVENT = "on_event"
HOOK = "loop_event"


class Teller:
    """Follows one run's stream: into the view, and to whoever listens."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        agent_id: str,
        view: LoopView,
        on_event: Callable[[str, dict[str, Any]], Any] | None,
        hooks: HookRegistry,
    ) -> None:
        self._store = store
        self._clock = clock
        self._agent_id = agent_id
        self._view = view
        self._on_event = on_event
        self._hooks = hooks
        self._seen = 0
        self._one_at_a_time = asyncio.Lock()
        self._thread_id: str | None = None
        self._turn_id: str | None = None

    async def catch_up(self) -> None:
        """Tell everything that is stored and has not been told."""
        async with self._one_at_a_time:
            while new := await self._store.read(self._agent_id, after=self._seen):
                for recorded in new:
                    self._seen = recorded.seq
                    fact = recorded.fact
                    self._thread_id, self._turn_id = fact.thread_id or self._thread_id, fact.turn_id or self._turn_id
                    for event in self._view.take(recorded):
                        await self._tell(event)

    async def record(self, *events: AnyEvent) -> None:
        """Append facts of the loop itself, under the run's ids once it has some."""
        now = self._clock.now()
        facts = [Fact(event, now, self._thread_id, self._turn_id) for event in events]
        await self._store.admit(self._agent_id, facts)

    async def _tell(self, event: LoopEvent) -> None:
        failures: list[tuple[str, Exception]] = []
        if self._on_event is not None:
            try:
                await at_once(self._on_event, event.name, copy.deepcopy(event.payload))
            except Exception as error:
                failures.append((ON_EVENT, error))
        failures += [(HOOK, error) for error in await self._hooks.observe(HOOK, event.name, event.payload)]
        # An observer that fails at hearing that an observer failed is not worth another trace: there would be no end.
        if event.name != "observer_failed":
            await self._trace(failures)

    async def _trace(self, failures: list[tuple[str, Exception]]) -> None:
        for surface, error in failures:
            await self.record(ObserverFailed(surface=surface, error=describe(error)))


def describe(error: Exception) -> str:
    """An exception in a line that fits an event."""
    return f"{type(error).__name__}: {error}"[:500]
