"""What a task says while it says it, for those who follow: whole lines from its files, and its end.

Nothing of it is in the log, and nothing is kept for a reader: the place where it goes on is a number of bytes. Lines
are shown whole, because a secret that is cut in two would not be found: a reader that begins in the middle of a line,
or where something was dropped, is shown the next line. Of a line that is too long the beginning is shown.

The supervisor of a command tells nobody that it wrote something, so the files are looked at again and again: once for
all who follow the same task.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

from wakeful.contracts.errors import InvalidRequest
from wakeful.engine.run_request import Engine
from wakeful.engine.watchers import LEFT_OUT
from wakeful.processes.output_segments import OutputPiece, output_end, read_piece
from wakeful.service.commands.agents import task_named
from wakeful.service.queries.tasks import output_of
from wakeful.views.task_records import OutputChunk, TaskOutput

LOOK_AGAIN_SECONDS = 0.2
PIECE_BYTES = 256 * 1024
"""Read at once: a line that is longer is cut."""
LINE_CHARS = 64 * 1024
"""Shown of a line that is too long."""


class OutputState(NamedTuple):
    """How far a task has come: what changes when there is something new to read."""

    folder: str | None
    is_over: bool
    end: int | None


class TaskWatcher:
    """Looks whether a task has said more, or is over: one for all who follow it, while anybody does."""

    def __init__(self, engine: Engine, task_id: str) -> None:
        self.engine, self.task_id = engine, task_id
        self._followers = 0
        self._looking: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._state: OutputState | None = None
        self._failure: Exception | None = None

    @property
    def is_followed(self) -> bool:
        return self._followers > 0

    @asynccontextmanager
    async def followed(self) -> AsyncIterator[None]:
        self._followers += 1
        if self._looking is None or self._looking.done():
            self._state, self._failure = None, None
            self._looking = asyncio.create_task(self._look())
        try:
            yield
        finally:
            self._followers -= 1
            if not self._followers and self._looking is not None:
                looking, self._looking = self._looking, None
                looking.cancel()
                with suppress(asyncio.CancelledError):
                    await looking

    async def changed(self, known: OutputState | None) -> OutputState:
        """How far it is, once that is something else than is known. Raises what stands in the way of looking."""
        while self._state is None or self._state == known:
            if self._failure is not None:
                raise self._failure
            await self._news.wait()
        return self._state

    async def _look(self) -> None:
        try:
            while True:
                found = await self._seen()
                if found != self._state:
                    self._state = found
                    self._tell()
                await self.engine.clock.sleep(LOOK_AGAIN_SECONDS)
        except Exception as problem:  # those who follow are told
            self._failure = problem
            self._tell()

    async def _seen(self) -> OutputState:
        row = await task_named(self.engine.store, self.task_id)  # first: once it is over, the files have all of it
        folder = row.recovered.folder if row.recovered is not None else None
        end = await asyncio.to_thread(output_end, folder) if folder is not None else None
        return OutputState(folder, row.is_over, end)

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


async def follow_output(watcher: TaskWatcher, after: int = 0) -> AsyncGenerator[OutputChunk | TaskOutput, None]:
    """The lines of a task from a place on, then those that come, and when it is over its output in short.

    Raises TaskNotFound, and InvalidRequest for a task that is no command.
    """
    engine, task_id = watcher.engine, watcher.task_id
    row = await task_named(engine.store, task_id)
    if row.child is not None:
        name = row.child.agent_id
        where = f"wakeful tail {name} --follow   Over HTTP: GET /agents/{name}/events"
        raise InvalidRequest(f"task {task_id} supervises the agent {name}", f"Follow that one: {where}")
    reader = _LineReader(row.task_id, after)
    async with watcher.followed():
        state = await watcher.changed(None)
        while True:
            folder = state.folder  # a task has no files in its first moment, and none that were taken away
            piece = await asyncio.to_thread(read_piece, folder, reader.place, PIECE_BYTES) if folder else None
            chunk = None
            if piece is not None:
                is_last = state.is_over and len(piece.data) < PIECE_BYTES and not piece.ends_at_gap
                chunk = reader.take(engine, piece, is_last=is_last)
            if chunk is not None:
                yield chunk
            elif piece is None or not reader.has_moved:
                if state.is_over:
                    break
                state = await watcher.changed(state)
    yield await output_of(engine, task_id)


class _LineReader:
    """Makes whole lines of pieces."""

    def __init__(self, task_id: str, place: int) -> None:
        self._task_id = task_id
        self.place = max(0, place - 1)
        self.has_moved = False
        """Did the last piece bring it on?"""
        self._skipped = self.place - place
        self._is_in_line = place > 0
        """The next bytes are the rest of a line, up to its end: after a line break that is the break alone."""

    def take(self, engine: Engine, piece: OutputPiece, *, is_last: bool) -> OutputChunk | None:
        """The lines of a piece that begins at or behind `place`; None: none is whole yet."""
        begin, data = piece.begin, piece.data
        before, self._skipped = self.place, self._skipped + begin - self.place
        self.place = begin
        self._is_in_line |= begin > before
        if self._is_in_line and data:
            rest = data.find(b"\n") + 1 or len(data)
            self._is_in_line = not data[:rest].endswith(b"\n")
            data, self.place, self._skipped = data[rest:], self.place + rest, self._skipped + rest
        whole = len(data) if is_last else data.rfind(b"\n") + 1
        is_long = not whole and len(data) >= PIECE_BYTES
        shown = data if is_long else data[:whole]
        self.place += len(shown)
        if not shown and piece.ends_at_gap:  # the rest of this line is gone
            self._is_in_line = True
            self.place, self._skipped = self.place + len(data), self._skipped + len(data)
        self.has_moved = self.place != before
        if not shown:
            return None
        text = engine.keys().hide(shown.decode("utf-8", "replace"))
        if is_long:
            self._is_in_line = True
            text = text[:LINE_CHARS] + LEFT_OUT
        skipped, self._skipped = self._skipped, 0
        return OutputChunk(task_id=self._task_id, next=self.place, text=text, skipped_bytes=skipped)
