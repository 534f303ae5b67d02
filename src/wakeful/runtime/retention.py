"""Retention at work: what has reached its age leaves the store, a step at a time, between other work.

The order of a pass: logs that were cut before, what was said in deleted threads, details of turns, rows of their logs,
logs of temporary agents, idempotency keys, results that were kept whole, output of tasks, blobs that nothing refers to,
rows of the feed, indexes of deleted agents, space.
Each walk goes along the turns by their end and notes how far it has come, so that a pass costs what is new since the
last one; `everything` begins at the beginning. What may go is said by `decisions.retention`. Killed anywhere, the next
pass goes on.
"""

import asyncio
import json
import logging
import shutil
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from wakeful.contracts.envelope import MAIN_THREAD, Fact, StoredFact, named
from wakeful.contracts.errors import EventRefused, ForTheCaller, StoreDamaged, StoreProblem
from wakeful.contracts.events import (
    BriefCreated,
    ContextResolved,
    LeftOfEvent,
    OutputExpired,
    OutputSpilled,
    RetentionApplied,
    SessionStarted,
    StoreSizeNoticed,
    TurnEmptied,
)
from wakeful.contracts.events.holds import RUNTIME_STREAM
from wakeful.contracts.retention import DAY_US, GB, Retention, RetentionReport
from wakeful.decisions.retention import expiring_kinds, is_noticed, is_of_conversation, without_words
from wakeful.decisions.task_ends import result_message_id
from wakeful.engine.turn_messages import read_turn
from wakeful.ports import Clock, Store, TurnRow
from wakeful.ports.artifacts import ArtifactRow
from wakeful.ports.operator_feed import FEED
from wakeful.ports.tables import RowQuery
from wakeful.ports.turns import TURNS, TURNS_BY_DELETION, TURNS_BY_END, TURNS_OF_THREAD
from wakeful.runtime.own_streams import append_to_stream

LOG = logging.getLogger(__name__)
RETENTION_STREAM = "runtime-retention"
"""The stream in which passes are recorded: they belong to no single agent."""
LOOK_SECONDS = 600.0
EVERY_US = 6 * 3_600_000_000
"""Between two passes of a runtime."""
PAGE = 100
EVER = 1 << 62
"""Behind every time."""
TOGETHER = 100
"""Events whose words leave the log in one step."""
SPACE_PAGES = 500
"""Pages that are given back in one step."""
_UNREAD: Final = ("queued", "deferred", "taken", "interjected")
_LAST_PASS, _SWEPT, _NOTICED, _KEYS = "pass", "swept", "noticed", "request_keys"


def stream_of_keys(at: int) -> str:
    """The stream with the idempotency keys of a day."""
    return f"request-keys-{datetime.fromtimestamp(at // 1_000_000, UTC):%Y-%m-%d}"


class RetentionPass:
    """One pass over a store."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: Retention,
        tasks_folder: str | None = None,
        *,
        dry: bool = False,
        everything: bool = False,
    ) -> None:
        self._store, self._clock, self._settings = store, clock, settings
        self._tasks = None if tasks_folder is None else Path(tasks_folder)
        self._dry = dry
        self._everything = everything or dry
        self._now = clock.now()
        self._keep_from: dict[tuple[str, str], tuple[int, str]] = {}
        self._done = RetentionReport(dry_run=dry)
        self._is_sweep_due = False

    async def run(self) -> RetentionReport:
        """Remove what has reached its age. Raises what the store raises; what was removed until then stays so.

        Where a log is damaged no blob is removed, and everything else is; a person who asks for a pass over everything
        is told at its end (StoreDamaged).
        """
        if not self._dry:
            await self._finish_cuts()
        await self._empty_deleted()
        await self._expire_turns()
        if not self._dry:
            await self._bundle_logs()
        await self._cut_temporary()
        await self._cut_request_keys()
        await self._expire_outputs()
        await self._expire_task_output()
        damage = await self._blobs_swept()
        await self._expire_feed()
        if not self._dry:
            await _drop_indexes(self._store)
            left = 1
            while left:
                left = await self._store.retention.release_space(SPACE_PAGES)
                await asyncio.sleep(0)
            await self._record()
        if damage is not None and self._everything and not self._dry:
            raise damage
        return self._done

    # --- the steps -----------------------------------------------------------------------------------------------

    async def _blobs_swept(self) -> StoreDamaged | None:
        try:
            await self._sweep_blobs()
        except StoreDamaged as damage:
            LOG.warning("retention goes on without blobs: %s", damage.message)
            return damage
        return None

    async def _finish_cuts(self) -> None:
        more: int | None = 0
        while more is not None:
            freed = await self._store.retention.finish_cuts()
            self._add(freed_bytes=freed.bytes)
            more = freed.more
            await asyncio.sleep(0)

    async def _empty_deleted(self) -> None:
        """Whatever their age: somebody deleted them."""
        async for row in self._walk(TURNS_BY_DELETION, "deleted", EVER):
            with suppress(StoreDamaged):
                await self._empty_turn(row)
                self._is_sweep_due = True

    async def _empty_turn(self, row: TurnRow) -> None:
        """What rows follow from is written beside the events first; then their bodies go. Briefs keep their words."""
        facts = await read_turn(self._store, row)
        told = {_text_of(entry) for entry in facts}
        going = [entry for entry in facts if is_of_conversation(entry.fact.event) and entry.event_id not in told]
        events = 0
        for first in range(0, len(going), TOGETHER):
            some = going[first : first + TOGETHER]
            if not self._dry:
                emptied = TurnEmptied(of_turn=row.turn_id, left=tuple(_left_of(some)))
                await self._store.admit(row.agent_id, [Fact(emptied, self._clock.now(), row.thread_id)])
            seqs = {entry.seq for entry in some}
            freed = await self._store.retention.expire_facts(row.agent_id, seqs, dry=self._dry)
            events += freed.items
            self._add(events=freed.items, freed_bytes=max(0, freed.bytes))
            await asyncio.sleep(0)
        self._add(turns=int(events > 0))

    async def _expire_turns(self) -> None:
        cutoff = self._settings.before(self._settings.turns, self._now)
        async for row in self._ended("turns", cutoff):
            with suppress(StoreDamaged):  # whoever reads that log is told; the others go on
                await self._expire_turn(row, cutoff or 0)

    async def _bundle_logs(self) -> None:
        """After all details are gone: a bundle would have to be taken apart again. A walk of its own, so that a kill
        between the two leaves no log as it is."""
        cutoff = self._settings.before(self._settings.turns, self._now)
        agents: set[str] = set()
        last: TurnRow | None = None
        async for last in self._ended("bundles", cutoff, marks=False):
            agents.add(last.agent_id)
        for agent_id in sorted(agents):
            with suppress(StoreDamaged):
                await self._bundle_rows(agent_id, cutoff or 0)
        if last is not None:
            await self._mark("bundles", [last.ended_at, last.turn_id])

    async def _expire_turn(self, row: TurnRow, cutoff: int) -> None:
        if row.deleted_at is not None:
            return  # it was emptied
        kept_from, newest = await self._kept_from(row, cutoff)
        is_followed = newest != row.turn_id
        is_tainted = is_followed and row.last_seq >= kept_from and await self._is_tainted(row)
        kinds = expiring_kinds(
            last_seq=row.last_seq, keep_from=kept_from, is_followed=is_followed, is_tainted=is_tainted
        )
        events, after = 0, 0
        while True:
            freed = await self._store.retention.expire_events(row, kinds, after=after, dry=self._dry)
            events += freed.items
            self._add(events=freed.items, freed_bytes=max(0, freed.bytes))  # a digest may take more than a fact did
            if freed.more is None:
                break
            after = freed.more
            await asyncio.sleep(0)
        self._add(turns=int(events > 0))

    async def _bundle_rows(self, agent_id: str, cutoff: int) -> None:
        anew = self._everything
        while True:
            freed = await self._store.retention.bundle_rows(agent_id, before=cutoff, anew=anew)
            self._add(rows=freed.items, freed_bytes=freed.bytes)
            if freed.more is None:
                return
            anew = False
            await asyncio.sleep(0)

    async def _is_tainted(self, row: TurnRow) -> bool:
        facts = await self._store.read(row.agent_id, turn_id=row.turn_id)
        return any(isinstance(each.fact.event, ContextResolved) and each.fact.event.untrusted_refs for each in facts)

    async def _kept_from(self, row: TurnRow, cutoff: int) -> tuple[int, str]:
        """The first event that somebody begins to read the turn's thread with: the oldest turn of it that has not
        reached its age, or the newest of all, on which the next one will rest. And which turn that is."""
        place = row.agent_id, row.thread_id
        if place in self._keep_from:
            return self._keep_from[place]
        newest, at = row, row.first_seq - 1
        while True:
            page = await self._store.list_rows(
                TURNS, TURNS_OF_THREAD, row.thread_id, row.agent_id, after=(at,), limit=PAGE
            )
            for each in page:
                newest = each
                if each.ended_at is None or each.ended_at >= cutoff:
                    break
            else:
                if len(page) == PAGE:
                    at = page[-1].first_seq
                    await asyncio.sleep(0)
                    continue
            break
        # A turn that was admitted and has not begun has no window yet: it begins where the one before it did.
        first = newest.first_seq if newest.window_from <= 0 else min(newest.window_from, newest.first_seq)
        if not newest.turn_index:
            first = 0
        self._keep_from[place] = first, newest.turn_id
        return self._keep_from[place]

    async def _cut_temporary(self) -> None:
        cutoff = self._settings.before(self._settings.temporary_agents, self._now)
        seen: set[str] = set()
        async for row in self._ended("temporary", cutoff):
            if row.agent_id in seen or cutoff is None:
                continue
            seen.add(row.agent_id)
            try:
                if not await self._is_temporary(row.agent_id):
                    continue
                if not self._dry:
                    await _drop_indexes(self._store, row.agent_id)  # before its log: afterwards nobody comes by again
                freed = await self._store.retention.cut_log(row.agent_id, now=self._now, before=cutoff, dry=self._dry)
            except (EventRefused, StoreDamaged):
                continue  # something in it is open, or is asked for again, or it cannot be read
            self._add(streams=int(freed.items > 0), freed_bytes=freed.bytes)
            if freed.more is not None:
                await self._finish_cuts()
            await asyncio.sleep(0)

    async def _cut_request_keys(self) -> None:
        """The keys of a day go together, when the last of them has reached its age."""
        cutoff = self._settings.before(self._settings.request_keys, self._now)
        if cutoff is None:
            return
        mark = None if self._everything else await self._store.retention.retention_mark(_KEYS)
        oldest = await self._store.oldest_keyed_request()
        first = int(mark) if mark is not None else (oldest.begun_at if oldest is not None else cutoff) // DAY_US
        for day in range(first, cutoff // DAY_US + 1):
            try:
                freed = await self._store.retention.cut_log(
                    stream_of_keys(day * DAY_US), now=self._now, before=cutoff, dry=self._dry
                )
            except (EventRefused, StoreDamaged):
                continue  # it was cut before, or it cannot be read
            self._add(streams=int(freed.items > 0), freed_bytes=freed.bytes)
            if freed.more is not None:
                await self._finish_cuts()
            await asyncio.sleep(0)
        if not self._dry:
            await self._store.retention.set_retention_mark(_KEYS, str(cutoff // DAY_US))

    async def _is_temporary(self, agent_id: str) -> bool:
        first = await self._store.read(agent_id, limit=1)
        event = first[0].fact.event if first else None
        return isinstance(event, SessionStarted) and event.temporary

    async def _expire_outputs(self) -> None:
        cutoff = self._settings.before(self._settings.spilled_output, self._now)
        due: dict[str, ArtifactRow] = {}
        sizes: dict[str, int] = {}
        last: TurnRow | None = None
        async for last in self._ended("outputs", cutoff, marks=False):
            with suppress(StoreDamaged):
                for digest, size in await self._spilled(last):
                    newest = await self._store.turns_of_artifact(digest, limit=1)
                    if newest and newest[0].turn_id == last.turn_id:  # else it goes with the later one that left it
                        due[digest], sizes[digest] = newest[0], size
        store, free = self._store.retention, set[str]()
        if due:
            free = await store.doubt_outputs(due, now=self._now, dry=self._dry, anew=self._everything)
        for digest in due:
            if digest in free:  # else something else has the same bytes
                await self._expire_output(due[digest], sizes[digest])
        if last is not None:
            await self._mark("outputs", [last.ended_at, last.turn_id])

    async def _expire_output(self, row: ArtifactRow, size: int) -> None:
        if row.expired_at is None and not self._dry:
            fact = OutputExpired(output_ref=row.artifact_id, of_turn=row.turn_id, size_bytes=size)
            await self._store.admit(row.agent_id, [Fact(fact, self._clock.now())])
        freed = await self._store.retention.remove_blob(row.artifact_id, dry=self._dry)
        self._add(outputs=freed.items, freed_bytes=freed.bytes)

    async def _spilled(self, row: TurnRow) -> list[tuple[str, int]]:
        facts = await self._store.read(row.agent_id, turn_id=row.turn_id)
        events = (entry.fact.event for entry in facts)
        return [(event.output_ref, event.size_bytes) for event in events if isinstance(event, OutputSpilled)]

    async def _expire_task_output(self) -> None:
        cutoff = self._settings.before(self._settings.task_output, self._now)
        if cutoff is None or self._tasks is None or not self._tasks.is_dir():
            return
        for folder in await asyncio.to_thread(lambda: sorted(self._tasks.iterdir())):  # type: ignore[union-attr]
            row = await self._store.task(folder.name) if folder.is_dir() else None
            if row is None or row.ended_at is None or row.ended_at >= cutoff or await self._is_untold(row.task_id):
                continue
            size = await asyncio.to_thread(_size_of, folder)
            if not self._dry:
                ref = f"task:{row.task_id}"
                fact = OutputExpired(output_ref=ref, of_turn=row.parent_turn_id, size_bytes=size)
                await self._store.admit(row.agent_id, [Fact(fact, self._clock.now())])
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            self._add(tasks=1, freed_bytes=size)

    async def _is_untold(self, task_id: str) -> bool:
        """Is its agent still to read how the task ended? Then it may want to see what it said."""
        message = await self._store.message(result_message_id(task_id))
        return message is not None and message.state in _UNREAD

    async def _sweep_blobs(self) -> None:
        grace, store = self._settings.blobs, self._store.retention
        if not grace:
            return
        swept = await store.retention_mark(_SWEPT)
        is_fresh = swept is not None and is_within(int(swept), self._now, DAY_US // 2)
        if is_fresh and not self._everything and not self._is_sweep_due:
            return
        freed = await store.sweep_blobs(
            now=self._now, grace=round(grace * DAY_US), dry=self._dry, anew=self._everything
        )
        self._add(blobs=freed.items, freed_bytes=freed.bytes)
        if not self._dry:
            await store.set_retention_mark(_SWEPT, str(self._now))

    async def _expire_feed(self) -> None:
        cutoff = self._settings.before(self._settings.feed, self._now)
        after: int | None = 0
        while cutoff is not None and after is not None:
            freed = await self._store.retention.expire_rows(FEED, before=cutoff, after=after, dry=self._dry)
            self._add(feed=freed.items)
            after = freed.more
            await asyncio.sleep(0)

    # --- beside them ---------------------------------------------------------------------------------------------

    def _ended(self, name: str, cutoff: int | None, *, marks: bool = True) -> AsyncIterator[TurnRow]:
        """Turns that ended before a time and were not looked at by this walk, in the order of their ends."""
        return self._walk(TURNS_BY_END, name, cutoff, marks=marks)

    async def _walk(
        self, query: RowQuery, name: str, cutoff: int | None, *, marks: bool = True
    ) -> AsyncIterator[TurnRow]:
        """Turns along a time that is before `cutoff`, from where this walk came the last time. Without `marks`, whoever
        walks notes how far it came."""
        if cutoff is None:
            return
        mark = None if self._everything else await self._store.retention.retention_mark(name)
        after: list[int | str] = [] if mark is None else json.loads(mark)
        while True:
            page = await self._store.list_rows(TURNS, query, after=after, limit=PAGE)
            due = [row for row in page if TURNS.values_of(row, query.order)[0] < cutoff]
            for row in due:
                yield row
            if due:
                after = [*TURNS.values_of(due[-1], query.order)]
                if marks:
                    await self._mark(name, after)
            if len(due) < PAGE:
                return
            await asyncio.sleep(0)

    async def _mark(self, name: str, place: Sequence[int | str | None]) -> None:
        if not self._dry:
            await self._store.retention.set_retention_mark(name, json.dumps(place))

    def _add(self, **counts: int) -> None:
        now = {name: getattr(self._done, name) + count for name, count in counts.items()}
        self._done = self._done.model_copy(update=now)

    async def _record(self) -> None:
        """Say what was done, and that the store has become large."""
        store, at = self._store, self._clock.now()
        if not self._done.is_empty:
            applied = Fact(RetentionApplied(**self._done.model_dump(exclude={"dry_run"})), at)
            await append_to_stream(store, RETENTION_STREAM, [applied])
        size, notice = await store.retention.used_bytes(), round(self._settings.notice_gb * GB)
        was_noticed = await store.retention.retention_mark(_NOTICED) == "yes"
        if is_noticed(size, notice, was_noticed=was_noticed):
            noticed = Fact(StoreSizeNoticed(size_bytes=size, notice_bytes=notice), at, MAIN_THREAD)
            await append_to_stream(store, RUNTIME_STREAM, [noticed])
            LOG.warning("the store %s takes %.1f GB: wakeful store stats", store.location, size / GB)
        if (is_large := bool(notice) and size > notice) != was_noticed:
            await store.retention.set_retention_mark(_NOTICED, "yes" if is_large else "no")
        await store.retention.set_retention_mark(_LAST_PASS, str(at))


def is_within(then: int, now: int, us: int) -> bool:
    """Is it less than so long ago? What is said to lie ahead was written by a clock that was set back since."""
    return 0 <= now - then < us


async def keep_retention(store: Store, clock: Clock, settings: Callable[[], Retention], tasks_folder: str) -> None:
    """Let passes run in a runtime, until it is cancelled. A store that cannot be written now is looked at again.
    `settings` are those of the moment: the owner may have changed them."""
    while True:
        await clock.sleep(LOOK_SECONDS)
        try:
            last = await store.retention.retention_mark(_LAST_PASS)
            if last is None or not is_within(int(last), clock.now(), EVERY_US):
                await RetentionPass(store, clock, settings(), tasks_folder).run()
        except (StoreProblem, ForTheCaller, OSError) as problem:
            LOG.warning("retention could not run and tries again: %s", problem)


async def _drop_indexes(store: Store, agent_id: str | None = None) -> None:
    """The index of an agent's memory; without one, of all that were deleted."""
    from wakeful.engine.agent_memory import drop_deleted, drop_index  # a start must not pay for it

    with suppress(OSError):
        await (drop_deleted(store) if agent_id is None else drop_index(store, agent_id))


def _text_of(entry: StoredFact) -> str | None:
    """The event that holds the words of a brief, where this is one."""
    event = entry.fact.event
    if not isinstance(event, BriefCreated) or event.text_ref is None:
        return None
    return named(event.text_ref, entry.agent_id, entry.seq)


def _left_of(entries: Sequence[StoredFact]) -> Iterator[LeftOfEvent]:
    for entry in entries:
        left = without_words(entry.fact.event)
        if left is not None:
            yield LeftOfEvent(event_seq=entry.seq, payload=left.model_dump(mode="json", exclude_none=True))


def _size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
