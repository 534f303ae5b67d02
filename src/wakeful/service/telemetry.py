"""Telemetry follows the log: turns that ended are read from it, and become spans and metrics.

It is a reader like any other. Nothing of a turn waits for it; an endpoint that hangs or refuses leaves spans where they
are, in the log, until it takes them. A process that was killed sends again at most what it had just sent, under the
same ids.
"""

import asyncio
import hashlib
import logging
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from wakeful.contracts.errors import InvalidRequest, StoreDamaged, WakefulError
from wakeful.engine.turn_messages import read_turn
from wakeful.ports import Clock, Store, TurnRow
from wakeful.service.ended_turns import EndedTurns, cursor_at
from wakeful.service.queries.turns import EventReader
from wakeful.telemetry.meters import Figures, Meters
from wakeful.views.turn_spans import SpanRecord, turn_spans

LOG = logging.getLogger("wakeful.telemetry")
BATCH = 20
"""Turns that are sent with one request."""
KNOWN = 64
"""Turns whose spans are kept for the other reader."""
LOOK_AGAIN_SECONDS = 30.0
PAUSE_SECONDS = 0.5
"""Between two looks: turns that end meanwhile are sent together."""
BACKOFF_SECONDS = 1.0, 60.0


class TakesSpans(Protocol):
    """Where spans go."""

    async def send(self, spans: Sequence[SpanRecord]) -> bool: ...

    def close(self) -> None: ...


@dataclass(slots=True)
class TelemetryReader:
    """Reads a store for as long as a runtime is at work on it."""

    store: Store
    clock: Clock
    sender: TakesSpans | None = None
    meters: Meters | None = None
    cursor_file: Path | None = None
    content: bool = False
    where: str = ""
    """The endpoint, without its secrets."""
    keys: Callable[[], frozenset[str]] = frozenset
    refused: Callable[[], Mapping[str, int]] = dict
    failures: int = 0
    is_failing: bool = False
    _spans: "OrderedDict[str, tuple[SpanRecord, ...]]" = field(default_factory=OrderedDict)
    _loops: "list[asyncio.Task[None]]" = field(default_factory=list)

    def start(self) -> None:
        """From where it was when spans are concerned; metrics count from now on."""
        now = self.clock.now()
        if self.sender is not None:
            self._loops.append(asyncio.create_task(self._follow(cursor_at(self.cursor_file, now), self._send)))
        if self.meters is not None:
            self._loops.append(asyncio.create_task(self._follow(EndedTurns(now), self._measure)))

    async def close(self) -> None:
        """What was not sent is sent by the next process: nothing is waited for but a last word of the metrics."""
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        if self.sender is not None:
            self.sender.close()
        if self.meters is not None:
            await self.meters.close()

    def problems(self) -> list[str]:
        if not self.is_failing:
            return []
        return [f"telemetry: {self.where} takes no spans; they wait in the log ({self.failures} failed requests)"]

    async def metrics(self) -> bytes:
        """Everything that is counted, in the format of Prometheus. Raises InvalidRequest where that is not wanted."""
        found = b"" if self.meters is None else await self._text(self.meters)
        if not found:
            raise metrics_are_off()
        return found

    async def _text(self, meters: Meters) -> bytes:
        meters.figures = await self._figures()
        return meters.text()

    async def _follow(self, cursor: EndedTurns, handle: "Callable[[list[TurnRow]], Any]") -> None:
        watch = self.store.watch_feed()
        wait = BACKOFF_SECONDS[0]
        try:
            while True:
                done = False
                try:
                    cursor.turn_back(self.clock.now())
                    rows = await cursor.fresh(self.store, BATCH)
                    done = not rows or await handle(rows)
                except WakefulError as problem:
                    LOG.warning("the log cannot be read for telemetry: %s", problem.message)
                except Exception:
                    LOG.exception("telemetry")
                if not done:
                    await asyncio.sleep(wait)
                    wait = min(wait * 2, BACKOFF_SECONDS[1])
                    continue
                wait = BACKOFF_SECONDS[0]
                if rows:
                    cursor.take(rows)
                if len(rows) < BATCH:
                    await watch.wait(timeout=LOOK_AGAIN_SECONDS)
                await asyncio.sleep(PAUSE_SECONDS if len(rows) < BATCH else 0)
        finally:
            watch.close()

    async def _send(self, rows: list[TurnRow]) -> bool:
        assert self.sender is not None
        spans = [span for row in rows for span in await self._readable_spans(row)]
        taken = not spans or await self._sent(self.sender, spans)
        if not taken:
            self.failures += 1
        if not taken and not self.is_failing:
            LOG.warning("%s takes no spans; they wait in the log", self.where)
        elif taken and self.is_failing:
            LOG.info("%s takes spans again", self.where)
        self.is_failing = not taken
        return taken

    async def _sent(self, sender: TakesSpans, spans: Sequence[SpanRecord]) -> bool:
        """In one request; or, where that is too large and a single span is taken, in smaller ones."""
        if await sender.send(spans):
            return True
        half = len(spans) // 2
        if not half or not await sender.send(spans[:1]):
            return False
        return await self._sent(sender, spans[1 : half + 1]) and (
            half + 1 == len(spans) or await self._sent(sender, spans[half + 1 :])
        )

    async def _measure(self, rows: list[TurnRow]) -> bool:
        assert self.meters is not None
        for row in rows:
            self.meters.take(await self._readable_spans(row))
        self.meters.figures = await self._figures()
        return True

    async def _readable_spans(self, row: TurnRow) -> tuple[SpanRecord, ...]:
        """None of a turn that cannot be read: those that ended after it do not wait for it."""
        try:
            return await self.spans_of(row)
        except StoreDamaged as damage:
            LOG.warning("turn %s is left out of telemetry: %s", row.turn_id, damage.message)
            return ()

    async def spans_of(self, row: TurnRow) -> tuple[SpanRecord, ...]:
        """The spans of one turn, read from the log."""
        found = self._spans.get(row.turn_id)
        if found is None:
            facts = await read_turn(self.store, row)
            shown = None
            if self.content:
                reader = EventReader(self.store, keys=self.keys())
                await reader.learn(facts)
                shown = {each.seq: (await reader.read(each)).payload for each in facts}
            found = turn_spans(self.store.runtime_id, facts, shown)
            await asyncio.sleep(0)  # turns that run come first
            if self.sender is not None and self.meters is not None:
                self._spans[row.turn_id] = found
                while len(self._spans) > KNOWN:
                    self._spans.popitem(last=False)
        return found

    async def _figures(self) -> Figures:
        agents = Counter(str(row.control) for row in await self.store.runtime_agents())
        turns = 0
        async for _ in self.store.open_turns():
            turns += 1
        return Figures(
            dict(agents),
            len(await self.store.open_tasks()),
            len(await self.store.actions(pending_only=True)),
            turns,
            dict(self.refused()),
            self.failures,
        )


def cursor_name(runtime_id: str) -> str:
    """The file of a store's cursor in `run/` of the home."""
    return f"telemetry-{hashlib.sha256(runtime_id.encode()).hexdigest()[:8]}.json"


def metrics_are_off() -> InvalidRequest:
    return InvalidRequest(
        "this process has no metrics to show",
        "Write [telemetry] metrics_route = true into wakeful.toml, then: wakeful daemon restart",
    )
