"""Tasks of a runtime: made of commands that take longer, looked after until they end, found again after a restart.

The order of things is what keeps the promise. A task is on disk before its command may outlive anybody. Its end and the
message that tells of it are one transaction, which the row of the task lets through once. What a killed runtime left
open is taken up by the next: the command is found again, or how it ended is read, or it is lost and told so. What goes
wrong while a task is looked after is tried again, and after some failures ends the task: none is `running` for ever.
"""

import asyncio
import contextlib
import logging
import shutil
from collections.abc import Callable, Coroutine, Iterator, Set
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from wakeful.contracts.authority import Authority
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import EventRefused, ForTheCaller, StoreProblem
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
from wakeful.ports.tasks import ChildOfTask, RunningCommand, Settle, TaskCommand, TaskOrder, TaskRow
from wakeful.processes.output_segments import FIRST, read_output
from wakeful.processes.process_identity import ProcessIdentity
from wakeful.processes.supervised_command import STOP_GRACE_SECONDS, SupervisedCommand, find
from wakeful.runtime.children import RuntimeChildren
from wakeful.runtime.task_folders import IN_MEMORY, folders_in, make_folder, make_task_folder
from wakeful.tools.local.custody_records import CustodyRecord, forget_record, read_record
from wakeful.tools.local.output_budget import both_ends
from wakeful.tools.local.repository_custody import RepositoryCustody, custody_below

LOG = logging.getLogger(__name__)
TRY_AGAIN_SECONDS = 5.0
"""Between two tries to write down how a task ended, where the store cannot be written."""
MOST_TRIES = 3
"""To look after a task, before it is given up."""


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
        self._foreground: list[RunningCommand] = []
        """Commands that a call waits for."""
        self._being_made: set[str] = set()
        """Tasks that are on disk, and whose command is just told to outlive this process."""
        self._over: dict[str, asyncio.Event] = {}
        self._watching: dict[str, _WatchedTask] = {}
        self._told: set[str] = set()
        """Tasks that are watched, and whose end is told."""

    @property
    def folder(self) -> str:
        return str(self._folder)

    async def start(self) -> None:
        """Take up what the runtime before has left. Does not wait for any of it."""
        await asyncio.to_thread(make_folder, self._folder)
        await self.children.start()
        await self._look_after_all()
        for left in await asyncio.to_thread(folders_in, self._folder):
            if await self._store.task(left.name) is None:
                await asyncio.to_thread(shutil.rmtree, left, ignore_errors=True)

    async def look_at_all(self) -> None:
        """Look after every open task that nobody looks after, and at the children."""
        await self._look_after_all()
        await self.children.look_at_all()

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
        """End every command that runs: those that a call waits for, and tasks. Their agents are told as usual.

        Where the store refuses something all are asked to end all the same, and then its first refusal is raised.
        """
        for command in list(self._foreground):
            await command.stop(STOP_GRACE_SECONDS)
        refusals: list[StoreProblem] = []
        for row in await self._store.open_tasks():
            if row.kind == "command_task" and row.status != "cancelling":
                await self._stop_or_note(row.task_id, reason, refusals)
        running = [name for name in self._commands if name in self._watching]
        for name in running:
            if name not in self._stopping:  # it became a task while others were being ended
                await self._stop_or_note(name, reason, refusals)
        if refusals:
            raise refusals[0]
        ending = [self._watching[name].watcher for name in running if name in self._watching]
        if ending:
            await asyncio.wait(ending)

    async def _stop_or_note(self, task_id: str, reason: str, refusals: list[StoreProblem]) -> None:
        try:
            await self.stop(task_id, reason=reason)
        except StoreProblem as refusal:
            refusals.append(refusal)

    async def give_up(self) -> list[TaskRow]:
        """End every command task as lost, without looking for its process: in a store that was restored from a backup
        it belongs to another home."""
        lost = [row for row in await self._store.open_tasks() if row.kind == "command_task"]
        for row in lost:
            await self._write_end(row, CommandOutcome(is_lost=True, is_after_restart=True), await self._excerpt(row))
        return lost

    # --- the board of tools ----------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def running(self, command: RunningCommand) -> Iterator[None]:
        self._foreground.append(command)
        looking = asyncio.get_running_loop().create_task(self._end_if_held(command))
        try:
            yield
        finally:
            looking.cancel()
            self._foreground.remove(command)

    async def _end_if_held(self, command: RunningCommand) -> None:
        """A command that was about to begin when everything was paused or stopped is ended like those that ran."""
        with contextlib.suppress(ForTheCaller):  # the store cannot be read: nothing more of the turn will be done
            hold = await self._store.runtime_hold()
            if hold is not None and hold.control != "running":
                await command.stop(STOP_GRACE_SECONDS)

    async def same_command(self, turn_id: str, spec: CommandSpec) -> TaskRow | None:
        turn = await self._store.turn(turn_id)
        rows = await self._store.same_commands(turn.agent_id, spec.digest) if turn is not None else []
        return next((row for row in rows if row.status != "cancelling"), None)

    async def promote(self, command: TaskCommand, order: TaskOrder, settle: Settle) -> TaskRow:
        task_id = self._ids.new("task")
        folder = self._folder / task_id
        self._being_made.add(task_id)
        try:
            await asyncio.to_thread(make_task_folder, folder)
            await asyncio.to_thread(order.keep, str(folder))
            await self._created(task_id, folder, command, order)
            await command.promote(str(folder))
        except BaseException:
            await command.end()
            await settle()
            if await self._store.task(task_id) is None:
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            raise
        else:
            row = await self._store.task(task_id)
            assert row is not None
            self._commands[task_id] = asyncio.get_running_loop().create_future()
            self._commands[task_id].set_result(command)
            self._watch(row, self._look_after(row, command, settle, is_after_restart=False))
            return row
        finally:
            self._being_made.discard(task_id)

    async def task(self, turn_id: str, task_id: str) -> TaskRow | None:
        turn, row = await self._store.turn(turn_id), await self._store.task(task_id)
        return row if row is not None and turn is not None and row.agent_id == turn.agent_id else None

    def open_tasks(self, agent_id: str) -> Set[str]:
        commands = {task_id for task_id, watched in self._watching.items() if watched.agent_id == agent_id}
        return (commands - self._told) | self.children.open_children(agent_id) | self.children.being_made()

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
            return await self._row(task_id)
        event = TaskStatusChanged(task_id=task_id, status="cancelling", reason=reason)
        try:
            with contextlib.suppress(EventRefused):  # it ended meanwhile
                await self._store.admit(row.agent_id, [Fact(event, self._clock.now(), row.thread_id)])
        finally:  # also where the store takes nothing now: its end will say that it was asked for
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

    async def _look_after_all(self) -> None:
        for row in await self._store.open_tasks():
            name = row.task_id
            if row.kind == "command_task" and name not in self._watching and name not in self._being_made:
                self._look_for_command(name)
                self._watch(row, self._take_up(name))

    async def _take_up(self, task_id: str) -> None:
        """A task that another process began, or that could not be looked after so far."""
        row = await self._row(task_id)
        if row.is_over:
            return
        recovery = row.recovered
        found: SupervisedCommand | SupervisedEnd | None = None
        if recovery is not None and recovery.folder is not None and recovery.supervisor is not None:
            found = await find(recovery.folder, _identity(recovery.supervisor))
        settle = await self._custody_of_left(row, recovery)
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

    async def _custody_of_left(self, row: TaskRow, recovery: TaskRecovery | None) -> Settle:
        """Repositories are compared with what they were when the task began. Where they cannot be (a full disk), its
        end will say so."""
        custody = custody_below(recovery.write_roots if recovery is not None else ())
        folder = recovery.folder if recovery is not None else None
        try:
            record = await asyncio.to_thread(_before, custody, folder)
        except OSError as problem:
            LOG.warning("the repositories of task %s could not be checked: %s", row.task_id, problem)
            return partial(_not_looked_at, problem)

        async def settle() -> list[str]:
            notes = await asyncio.to_thread(custody.after, record)
            custody.close()
            if folder is not None:
                await asyncio.to_thread(forget_record, folder)
            return [note.text for note in notes if note.is_undone]

        return settle

    async def _look_after(self, row: TaskRow, command: TaskCommand, settle: Settle, *, is_after_restart: bool) -> None:
        end = await command.wait()
        await self._finish(row, end, settle, is_after_restart=is_after_restart)
        await command.end()

    async def _finish(self, row: TaskRow, end: SupervisedEnd | None, settle: Settle, *, is_after_restart: bool) -> None:
        """Say how it ended."""
        try:
            undone = tuple(await settle())
        except Exception as problem:
            LOG.exception("what task %s did to repositories could not be checked", row.task_id)
            undone = (f"repositories could not be checked: {problem}",)
        outcome = CommandOutcome(is_lost=True) if end is None else CommandOutcome(
            exit_status=end.exit_status,
            limit=end.limit,
            stop_requested=end.stop_requested,
            duration_ms=round(end.duration_ms),
        )  # fmt: skip
        outcome = outcome._replace(undone=undone, is_after_restart=is_after_restart)
        await self._write_end(row, outcome, await self._excerpt(row))

    async def _write_end(self, row: TaskRow, outcome: CommandOutcome, said: OutputExcerpt) -> None:
        """Write down how it ended, with the message that tells of it. Tried again until the store takes it."""
        event = end_of_command(row.task_id, outcome, said)
        told = result_message(TaskParent(row.summary, row.derived_from, row.work_item_id), event)
        while True:
            now = self._clock.now()
            try:
                await self._store.admit(row.agent_id, [Fact(event, now, row.thread_id), Fact(told, now, row.thread_id)])
                self._told.add(row.task_id)
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
                await self._until_told(row, work)
            except Exception:
                LOG.exception("task %s is left until the watchdog looks at it", row.task_id)
            finally:
                self._watching.pop(row.task_id, None)
                self._told.discard(row.task_id)
            self._commands.pop(row.task_id).cancel()
            self._stopping.discard(row.task_id)
            over = self._over.pop(row.task_id, None)
            if over is not None:
                over.set()

        self._watching[row.task_id] = _WatchedTask(row.agent_id, asyncio.create_task(watched()))

    def _look_for_command(self, task_id: str) -> None:
        """From now on, whoever wants the command waits until it is found."""
        if task_id in self._commands:
            self._commands[task_id].cancel()
        self._commands[task_id] = asyncio.get_running_loop().create_future()

    async def _until_told(self, row: TaskRow, work: Coroutine[Any, Any, None]) -> None:
        """Until its end is told, whatever goes wrong on the way."""
        for tries in range(1, MOST_TRIES + 1):
            try:
                await work
                return
            except Exception as problem:
                LOG.exception("task %s could not be looked after (%s of %s tries)", row.task_id, tries, MOST_TRIES)
                if tries == MOST_TRIES:
                    await self._end_unseen(row, problem)
                    return
            self._look_for_command(row.task_id)
            await self._clock.sleep(TRY_AGAIN_SECONDS)
            work = self._take_up(row.task_id)

    async def _end_unseen(self, row: TaskRow, problem: Exception) -> None:
        """End a task that cannot be looked after, and its command with it."""
        with contextlib.suppress(ValueError):  # who holds it cannot be read
            recovery = row.recovered
            if recovery is not None and recovery.supervisor is not None:
                _identity(recovery.supervisor).kill()
        outcome = CommandOutcome(problem=self._hide(f"{type(problem).__name__}: {problem}"))
        await self._write_end(row, outcome, OutputExcerpt(row.initial_output, len(row.initial_output.encode()), True))

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


def _before(custody: RepositoryCustody, folder: str | None) -> CustodyRecord:
    kept = read_record(folder) if folder is not None else None
    return custody.before() if kept is None else custody.before_it_began(kept)


async def _not_looked_at(problem: OSError) -> list[str]:
    raise problem


async def _reached(event: asyncio.Event) -> None:
    await event.wait()


def _identity(supervisor: SupervisorRef) -> ProcessIdentity:
    return ProcessIdentity(supervisor.pid, supervisor.started, supervisor.boot)
