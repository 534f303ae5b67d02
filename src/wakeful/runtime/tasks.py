"""Tasks of a runtime: made of commands that take longer, looked after until they end, found again after a restart.

The order of things is what keeps the promise. A task is on disk before its command may outlive anybody. Its end and the
message that tells of it are one transaction, which the row of the task lets through once. What a killed runtime left
open is taken up by the next: the command is found again, or how it ended is read, or it is lost and told so.
"""

import asyncio
import contextlib
import logging
import secrets
import shutil
import tempfile
from collections.abc import Callable, Coroutine, Iterator, Set
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from wakeful.contracts.authority import Authority
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import EventRefused, ForTheCaller
from wakeful.contracts.events import TaskCreated, TaskStatusChanged
from wakeful.contracts.tasks import CommandSpec, SupervisedEnd, SupervisorRef, TaskRecovery
from wakeful.decisions.task_ends import (
    SUMMARY_CHARS,
    CommandOutcome,
    OutputExcerpt,
    TaskParent,
    end_of_command,
    result_message,
)
from wakeful.engine.run_request import Engine
from wakeful.ports import WakeRow
from wakeful.ports.tasks import ChildOfTask, Settle, TaskCommand, TaskOrder, TaskRow
from wakeful.processes.frames import KEY
from wakeful.processes.output_segments import FIRST, read_output
from wakeful.processes.process_identity import ProcessIdentity
from wakeful.processes.supervised_command import STOP_GRACE_SECONDS, SupervisedCommand, find
from wakeful.runtime.children import RuntimeChildren
from wakeful.tools.local.output_budget import both_ends
from wakeful.tools.local.repository_custody import custody_below

LOG = logging.getLogger(__name__)
TRY_AGAIN_SECONDS = 5.0
"""Between two tries to write down how a task ended, where the store cannot be written."""
IN_MEMORY = ":memory:"
SUFFIX = ".tasks"
_NOT_EMPTY = ".tasks"
"""In the folder of tasks, so that nobody takes it for one that stands in for another."""


@contextlib.contextmanager
def tasks_folder(location: str) -> Iterator[str]:
    """Where the tasks of a store have their folders: beside it. Those of a store in memory go with it."""
    if location != IN_MEMORY:
        yield f"{Path(location).absolute()}{SUFFIX}"
        return
    with tempfile.TemporaryDirectory(prefix="wakeful-tasks-", ignore_cleanup_errors=True) as folder:
        yield folder


class _WatchedTask(NamedTuple):
    """A command task that is looked after."""

    agent_id: str
    watcher: "asyncio.Task[None]"


class RuntimeTasks:
    """Every task of a runtime; for tools, the board at which they find those of their agent."""

    def __init__(self, engine: Engine, folder: str, names: Callable[[], Set[str]]) -> None:
        """`names` are those of the agents whose code is here."""
        self._store, self._clock, self._ids = engine.store, engine.clock, engine.ids
        self.children = RuntimeChildren(engine, names, partial(self.stop, reason="its child agent was stopped"))
        self._folder = Path(folder)
        self._hide: Callable[[str], str] = lambda text: engine.keys().hide(text)
        """Takes out of what a command said what may not be written down."""
        self._commands: dict[str, asyncio.Future[TaskCommand]] = {}
        """Of the tasks that run; a future, because one is looked for after a restart."""
        self._stopping: set[str] = set()
        """Tasks whose command was asked to end from here."""
        self._foreground: list[TaskCommand] = []
        """Commands that a call waits for."""
        self._over: dict[str, asyncio.Event] = {}
        self._watching: dict[str, _WatchedTask] = {}

    @property
    def folder(self) -> str:
        return str(self._folder)

    async def start(self) -> None:
        """Take up what the runtime before has left. Does not wait for any of it."""
        await asyncio.to_thread(self._make_folder)
        await self.children.start()
        rows = {row.task_id: row for row in await self._store.open_tasks()}
        for row in rows.values():
            if row.kind == "command_task":
                self._commands[row.task_id] = asyncio.get_running_loop().create_future()
                self._watch(row, self._take_up(row))
        for left in await asyncio.to_thread(self._left_over):
            if await self._store.task(left.name) is None:
                await asyncio.to_thread(shutil.rmtree, left, ignore_errors=True)

    async def close(self) -> None:
        """Leave the tasks: they go on, and the next runtime finds them. Of a store in memory nobody will: they end."""
        await self.children.close()
        if self._store.location == IN_MEMORY:
            await self._end_all()
        watching = [watched.watcher for watched in self._watching.values()]
        for watch in watching:
            watch.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
        for command in self._commands.values():
            if command.done() and not command.cancelled():
                await command.result().end()
            command.cancel()

    async def _end_all(self) -> None:
        for command in list(self._commands.values()):
            if command.done() and not command.cancelled():
                await command.result().stop(0)
        while self._watching:
            await asyncio.wait([watched.watcher for watched in self._watching.values()])

    async def end_commands(self, reason: str) -> None:
        """End every command that runs: those that a call waits for, and tasks. Their agents are told as usual."""
        for command in list(self._foreground):
            await command.stop(STOP_GRACE_SECONDS)
        for row in await self._store.open_tasks():
            if row.kind == "command_task" and row.status != "cancelling":
                await self.stop(row.task_id, reason=reason)
        ending = [self._watching[name].watcher for name in list(self._commands) if name in self._watching]
        if ending:
            await asyncio.wait(ending)

    async def give_up(self) -> list[TaskRow]:
        """End every command task as lost, without looking for its process: in a store that was restored from a backup
        it belongs to another home."""
        lost = [row for row in await self._store.open_tasks() if row.kind == "command_task"]
        for row in lost:
            await self._finish(row, None, _nothing_undone, is_after_restart=True)
        return lost

    # --- the board of tools ----------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def running(self, command: TaskCommand) -> Iterator[None]:
        self._foreground.append(command)
        try:
            yield
        finally:
            self._foreground.remove(command)

    async def same_command(self, turn_id: str, spec: CommandSpec) -> TaskRow | None:
        turn = await self._store.turn(turn_id)
        rows = await self._store.same_commands(turn.agent_id, spec.digest) if turn is not None else []
        return rows[0] if rows else None

    async def promote(self, command: TaskCommand, order: TaskOrder, settle: Settle) -> TaskRow:
        task_id = self._ids.new("task")
        folder = self._folder / task_id
        try:
            await asyncio.to_thread(_make_task_folder, folder)
            await self._created(task_id, folder, command, order)
            await command.promote(str(folder))
        except BaseException:
            await command.end()
            await settle()
            if await self._store.task(task_id) is None:
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            raise
        row = await self._store.task(task_id)
        assert row is not None
        self._commands[task_id] = asyncio.get_running_loop().create_future()
        self._commands[task_id].set_result(command)
        self._watch(row, self._look_after(row, command, settle, is_after_restart=False))
        return row

    async def task(self, turn_id: str, task_id: str) -> TaskRow | None:
        turn, row = await self._store.turn(turn_id), await self._store.task(task_id)
        return row if row is not None and turn is not None and row.agent_id == turn.agent_id else None

    def open_tasks(self, agent_id: str) -> Set[str]:
        commands = {task_id for task_id, watched in self._watching.items() if watched.agent_id == agent_id}
        return commands | self.children.open_children(agent_id) | self.children.being_made()

    async def wait(self, task_id: str, seconds: float) -> TaskRow:
        over = self._over.setdefault(task_id, asyncio.Event())
        row = await self._row(task_id)
        if not row.is_over:
            is_child = row.kind == "child_agent_task"
            ends = asyncio.ensure_future(self.children.until_over(task_id) if is_child else _reached(over))
            time_is_up = asyncio.ensure_future(self._clock.sleep(seconds))
            try:
                await asyncio.wait({ends, time_is_up}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                ends.cancel()
                time_is_up.cancel()
        return await self._row(task_id)

    async def send_input(self, task_id: str, data: bytes, *, close: bool = False) -> int:
        command = await self._command(task_id)
        if command is None:
            return 0
        taken = await command.send_input(data) if data else 0
        if close:
            await command.close_input()
        return taken

    async def stop(self, task_id: str, *, force: bool = False, reason: str = "") -> TaskRow:
        row = await self._row(task_id)
        if row.kind == "child_agent_task" and not row.is_over:
            return await self.children.stop(row, reason)
        command = await self._command(task_id)
        if row.is_over or command is None:
            return row
        event = TaskStatusChanged(task_id=task_id, status="cancelling", reason=reason)
        with contextlib.suppress(EventRefused):  # it ended meanwhile
            await self._store.admit(row.agent_id, [Fact(event, self._clock.now(), row.thread_id)])
        self._stopping.add(task_id)
        await command.stop(0 if force else STOP_GRACE_SECONDS)
        return await self._row(task_id)

    async def carry_out_stop(self, wake: WakeRow) -> None:
        """End a task that is to end, whoever asked for it: another process, or a runtime that was killed over it."""
        row = await self._store.task(wake.cause_id)
        if row is None or row.is_over:
            return
        if row.kind == "child_agent_task":
            await self.children.look(row.task_id)
            return
        command = await self._command(row.task_id)
        if command is not None and row.task_id not in self._stopping:
            self._stopping.add(row.task_id)
            await command.stop(STOP_GRACE_SECONDS)

    def begin_child(self, task_id: str) -> None:
        self.children.begin_child(task_id)

    def open_children(self, agent_id: str) -> Set[str]:
        return self.children.open_children(agent_id)

    def names(self) -> Set[str]:
        return self.children.names()

    async def child(self, row: TaskRow) -> ChildOfTask | None:
        return await self.children.child(row)

    async def say(self, task_id: str, words: str, *, behind: Authority, key: str) -> bool:
        return await self.children.say(task_id, self._hide(words), behind=behind, key=key)

    # --- the life of a task ----------------------------------------------------------------------------------------

    async def _created(self, task_id: str, folder: Path, command: TaskCommand, order: TaskOrder) -> None:
        turn = await self._store.turn(order.turn_id)
        if turn is None:
            raise EventRefused(f"there is no turn {order.turn_id}", "A task belongs to the turn that began it.")
        pid, started, boot = command.identity
        recovery = TaskRecovery(
            summary=order.spec.cmd,
            spec=order.spec,
            supervisor=SupervisorRef(pid=pid, started=started, boot=boot),
            folder=str(folder),
            write_roots=order.write_roots,
        )
        event = TaskCreated(
            task_id=task_id,
            task_kind="command_task",
            summary=order.spec.cmd,
            parent_turn_id=order.turn_id,
            parent_call_id=order.call_id,
            derived_from=order.derived_from,
            recovery=recovery,
            output_path=str(folder / FIRST),
            initial_output=self._hide(order.initial_output),
        )
        await self._store.admit(turn.agent_id, [Fact(event, self._clock.now(), turn.thread_id)])

    async def _take_up(self, row: TaskRow) -> None:
        """A task that another process began."""
        recovery = row.recovered
        found: SupervisedCommand | SupervisedEnd | None = None
        if recovery is not None and recovery.folder is not None and recovery.supervisor is not None:
            who = recovery.supervisor
            found = await find(recovery.folder, ProcessIdentity(who.pid, who.started, who.boot))
        custody = custody_below(recovery.write_roots if recovery is not None else ())
        record = await asyncio.to_thread(custody.before)

        async def settle() -> list[str]:
            notes = await asyncio.to_thread(custody.after, record)
            custody.close()
            return [note.text for note in notes if note.is_undone]

        if isinstance(found, SupervisedCommand):
            self._commands[row.task_id].set_result(found)
            status = "cancelling" if row.status == "cancelling" else "running"
            event = TaskStatusChanged(task_id=row.task_id, status=status, reason="found again after a restart")
            with contextlib.suppress(EventRefused):
                await self._store.admit(row.agent_id, [Fact(event, self._clock.now(), row.thread_id)])
            await self._look_after(row, found, settle, is_after_restart=True)
        else:
            self._commands[row.task_id].cancel()
            await self._finish(row, found, settle, is_after_restart=True)

    async def _look_after(self, row: TaskRow, command: TaskCommand, settle: Settle, *, is_after_restart: bool) -> None:
        end = await command.wait()
        await self._finish(row, end, settle, is_after_restart=is_after_restart)
        await command.end()

    async def _finish(self, row: TaskRow, end: SupervisedEnd | None, settle: Settle, *, is_after_restart: bool) -> None:
        """Write down how it ended, with the message that tells of it. Tried again until the store takes it."""
        try:
            undone = tuple(await settle())
        except Exception as problem:
            LOG.exception("what task %s did to repositories could not be looked at", row.task_id)
            undone = (f"repositories could not be looked at: {problem}",)
        outcome = CommandOutcome(is_lost=True) if end is None else CommandOutcome(
            exit_status=end.exit_status,
            limit=end.limit,
            stop_requested=end.stop_requested,
            duration_ms=round(end.duration_ms),
        )  # fmt: skip
        outcome = outcome._replace(undone=undone, is_after_restart=is_after_restart)
        event = end_of_command(row.task_id, outcome, await self._excerpt(row))
        told = result_message(TaskParent(row.summary, row.derived_from, row.work_item_id), event)
        while True:
            now = self._clock.now()
            try:
                await self._store.admit(row.agent_id, [Fact(event, now, row.thread_id), Fact(told, now, row.thread_id)])
                await self.children.look_at(row.agent_id)
                return
            except EventRefused:
                return  # it has ended before, and was told
            except ForTheCaller:
                LOG.exception("the end of task %s could not be written; it is tried again", row.task_id)
                await self._clock.sleep(TRY_AGAIN_SECONDS)

    async def _excerpt(self, row: TaskRow) -> OutputExcerpt:
        recovery = row.recovered
        stored = None
        if recovery is not None and recovery.folder is not None:
            stored = await asyncio.to_thread(read_output, recovery.folder, SUMMARY_CHARS)
        if stored is None:
            return OutputExcerpt(row.initial_output, len(row.initial_output.encode()), True)
        text, is_cut = both_ends(stored.head + stored.tail, stored.dropped_bytes, SUMMARY_CHARS)
        return OutputExcerpt(self._hide(text), stored.total_bytes, is_cut)

    def _watch(self, row: TaskRow, work: Coroutine[Any, Any, None]) -> None:
        async def watched() -> None:
            try:
                await work
            except Exception:
                LOG.exception("task %s is not looked after any more", row.task_id)
            finally:
                self._watching.pop(row.task_id, None)
            self._commands.pop(row.task_id, None)
            self._stopping.discard(row.task_id)
            over = self._over.pop(row.task_id, None)
            if over is not None:
                over.set()

        self._watching[row.task_id] = _WatchedTask(row.agent_id, asyncio.create_task(watched()))

    async def _command(self, task_id: str) -> TaskCommand | None:
        """The command of a task that runs here."""
        known = self._commands.get(task_id)
        if known is None:
            return None
        try:
            return await asyncio.shield(known)
        except asyncio.CancelledError:
            if known.cancelled():
                return None
            raise

    async def _row(self, task_id: str) -> TaskRow:
        row = await self._store.task(task_id)
        if row is None:
            raise EventRefused(f"there is no task {task_id}", "Use the id that exec_command gave.")
        return row

    def _make_folder(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        (self._folder / _NOT_EMPTY).touch()

    def _left_over(self) -> list[Path]:
        return [place for place in self._folder.iterdir() if place.is_dir()]


async def _nothing_undone() -> list[str]:
    return []


async def _reached(event: asyncio.Event) -> None:
    await event.wait()


def _make_task_folder(folder: Path) -> None:
    """With its key, which nobody else can read."""
    folder.mkdir(mode=0o700)
    key = folder / KEY
    key.touch(mode=0o600)
    key.write_text(secrets.token_hex(32), encoding="ascii")
