"""Child agents of a runtime: made once their task is on disk, looked after until they are over, found after a restart.

A child and its parent have streams of their own, and no transaction spans both. So every step is one that may be done
again: the names follow from the call that asked for the child, a message has one id, and a task ends once. Whoever
comes after a kill does the steps that are missing. Where somebody tries the failed turn of a child again, its task goes
on with it, and ends and is told anew.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Set
from typing import TypeAlias

from wakeful.contracts.authority import Authority, known_authority, lowest
from wakeful.contracts.budgets import Limits
from wakeful.contracts.children import ChildSpec
from wakeful.contracts.envelope import MAIN_THREAD, Fact
from wakeful.contracts.errors import EventRefused, ForTheCaller, InvalidRequest, StoreDamaged
from wakeful.contracts.events import (
    AgentCreated,
    AgentStateChanged,
    AnyEvent,
    GrantRenewed,
    GrantSettled,
    MessageExpired,
    TaskEnded,
    TaskRetried,
    TaskStatusChanged,
    TurnInterruptRequested,
    WaitCancelled,
)
from wakeful.contracts.failures import FailureArtifact
from wakeful.contracts.tasks import OpenStatus
from wakeful.decisions.child_ends import ChildStanding, end_of_child, next_step
from wakeful.decisions.grants import nothing_of
from wakeful.decisions.salted_secrets import SALT
from wakeful.decisions.spawn_terms import bootstrap, delegation, notice, question, taken, task_of
from wakeful.decisions.task_ends import TaskParent, result_message
from wakeful.engine.run_request import Engine
from wakeful.ports.runtime_agents import RuntimeAgentRow
from wakeful.ports.tasks import ChildOfTask, TaskRow
from wakeful.runtime.child_agents import (
    LastTurn,
    child_facts,
    child_standing,
    limits_left,
    newest_words,
    retried_turn,
    told_briefs,
)
from wakeful.runtime.child_places import leave_worktree, workspaces_for_child
from wakeful.views.child_agents import observability_of, supervision_of

LOG = logging.getLogger(__name__)
RUNTIME = "runtime"
StopTask: TypeAlias = Callable[[str], Awaitable[TaskRow]]
IsHere: TypeAlias = Callable[[str], Awaitable[bool]]
EndTurn: TypeAlias = Callable[[str], Awaitable[object]]
"""Ends a turn at rest, with what it waits for."""


class RuntimeChildren:
    """Every agent of a runtime that another one spawned."""

    def __init__(self, engine: Engine, names: Callable[[], Set[str]], stop_task: StopTask) -> None:
        """`names` are those of the agents whose code is here; `stop_task` stops a task of a child."""
        self._engine, self._store, self._clock = engine, engine.store, engine.clock
        self._names = names
        self._stop_task = stop_task
        self.end_turn: EndTurn | None = None
        """Given by a runtime that lives: nobody else ends children."""
        self._open: dict[str, TaskRow] = {}
        """Tasks that supervise a child, or make an agent, and are not over."""
        self._locks: dict[str, asyncio.Lock] = {}
        """By task: what is decided about a child is decided by one at a time."""
        self._interrupted: set[str] = set()
        """Turns of children that were asked to stop."""
        self._beginning: dict[asyncio.Task[None], str] = {}
        """Tasks whose child is being made."""
        self._unmade: set[str] = set()
        """Tasks whose child could not be made when it was asked for: a full disk, say."""
        self._over: dict[str, asyncio.Event] = {}

    async def start(self) -> None:
        """Find what the runtime before has left. Supervision that was cut off is on record as that."""
        for row in await self._store.open_tasks():
            if row.kind == "child_agent_task":
                self._open[row.task_id] = row
                if row.status == "running":
                    await self._change(row, "interrupted", "the runtime that supervised it is gone")

    async def take_up(self, is_here: IsHere) -> None:
        """Go on with all of them. One whose code is not here stays as it is, and is interrupted."""
        for row in list(self._open.values()):
            spec = row.child
            if spec is None:
                continue
            try:
                if await is_here(row.agent_id):
                    await self._begin(row.task_id)
                await self.look(row.task_id)
            except ForTheCaller:
                LOG.exception("the child of task %s could not be taken up; it is tried again", row.task_id)

    async def look_at_all(self) -> None:
        """Whatever became of children without anybody here having seen it."""
        for task_id in list(self._open):
            await self.look(task_id)

    async def watch_held(self) -> None:
        """Look at children that somebody elsewhere has paused or stopped, as soon as that is committed; until it is
        cancelled. Only what changed since the last look is read."""
        watch = self._store.watch_wakes()
        try:
            newest = next(iter((await self._store.held_agents())[-1:]), None)
            while True:
                await watch.wait()
                with contextlib.suppress(ForTheCaller):  # it cannot be read now: the next commit brings another look
                    rows = await self._store.held_agents(after=newest) if self._open else []
                    newest = rows[-1] if rows else newest
                    for row in rows:
                        if row.ownership == "parent_supervised":
                            await self.look(task_of(row.agent_id))
        finally:
            watch.close()

    async def close(self) -> None:
        for task in list(self._beginning):
            task.cancel()
        await asyncio.gather(*self._beginning, return_exceptions=True)

    # --- for turns -------------------------------------------------------------------------------------------------

    def begin_child(self, task_id: str) -> None:
        making = asyncio.get_running_loop().create_task(self._begin_safely(task_id))
        self._beginning[making] = task_id
        making.add_done_callback(self._beginning.pop)

    async def begun(self) -> bool:
        """Wait until all agents are made that somebody asked for. Were there any?"""
        if not self._beginning:
            return False
        await asyncio.wait(self._beginning)
        return True

    def open_children(self, agent_id: str) -> Set[str]:
        return {task_id for task_id, row in self._open.items() if row.agent_id == agent_id}

    def being_made(self) -> Set[str]:
        return set(self._beginning.values())

    def names(self) -> Set[str]:
        return self._names()

    async def child(self, row: TaskRow) -> ChildOfTask | None:
        """The child of a task, as its parent is shown it."""
        facts = await child_facts(self._engine, row)
        if facts is None:
            return None
        last = await newest_words(self._store, facts)
        return ChildOfTask(supervision_of(facts), observability_of(facts), last.text, last.untrusted)

    async def say(self, task_id: str, words: str, *, behind: Authority, key: str) -> bool:
        async with self._lock(task_id):
            row = await self._store.task(task_id)
            if row is None or row.is_over or row.status == "cancelling" or row.child is None:
                return False
            await self._begun(row, row.child)
            if await self._store.runtime_agent(row.child.agent_id) is None:
                return False
            said = delegation(task_id, words, behind, number=key)
            await self._store.admit(row.child.agent_id, [Fact(said, self._clock.now(), MAIN_THREAD)])
            return True

    async def stop(self, row: TaskRow, reason: str) -> TaskRow:
        """Stop a child with everything it has begun. It is over when all of that is."""
        await self._change(row, "cancelling", reason)
        await self.look(row.task_id)
        return await self._store.task(row.task_id) or row

    async def until_over(self, task_id: str) -> None:
        over = self._over.setdefault(task_id, asyncio.Event())
        if task_id in self._open:
            await over.wait()

    # --- for whoever runs them --------------------------------------------------------------------------------------

    async def limits_of(self, agent: RuntimeAgentRow) -> Limits | None:
        """What the next turn of a child may use; None: it is nobody's child."""
        row = await self._task_of(agent)
        if row is None or row.child is None or row.child.grant is None:
            return None
        return await limits_left(self._store, agent.agent_id, row.child.grant)

    async def look_at(self, agent_id: str) -> None:
        """Something became of an agent that may be somebody's child."""
        agent = await self._store.runtime_agent(agent_id)
        if agent is not None and agent.ownership == "parent_supervised":
            await self.look(task_of(agent_id))

    async def look(self, task_id: str) -> None:
        """Do what has to be done about the child of a task now."""
        async with self._lock(task_id):
            row = await self._store.task(task_id)
            if row is not None and row.is_over:
                row = await self._taken_up_again(row)
            if row is None or row.is_over:
                self._forget(task_id)
                return
            spec = row.child
            if spec is None or spec.preset != "private_child":
                return
            row = await self._with_parent(row)
            found = await child_standing(self._engine, row, spec.agent_id)
            if found is None:
                if row.status == "cancelling":
                    await self._end_unborn(row, spec)
                elif task_id in self._unmade:
                    await self._begun(row, spec)
                    self._unmade.discard(task_id)
                return
            standing, last = found
            step = next_step(standing)
            if step == "stop":
                await self._stop_all(spec.agent_id, standing)
                again = await child_standing(self._engine, row, spec.agent_id)
                if again is None or next_step(again[0]) != "end":
                    return
                (standing, last), step = again, "end"
            if step == "end" and standing.has_open_turn and self.end_turn is not None:
                await self._end_turns(spec.agent_id, self.end_turn)
                again = await child_standing(self._engine, row, spec.agent_id)
                if again is None or next_step(again[0]) != "end":
                    return
                standing, last = again
            if step == "end":
                await self._end(row, spec, standing, last)
            else:
                await self._tell_progress(row, spec)

    # --- the life of a child ----------------------------------------------------------------------------------------

    async def _begin_safely(self, task_id: str) -> None:
        try:
            await self._begin(task_id)
        except ForTheCaller:
            self._unmade.add(task_id)
            LOG.exception("the agent of task %s could not be made; it is tried again", task_id)

    async def _begin(self, task_id: str) -> None:
        async with self._lock(task_id):
            row = await self._store.task(task_id)
            if row is None or row.is_over or row.child is None:
                return
            self._open[task_id] = row
            if row.child.preset == "public_named":
                await self._make_named(row, row.child)
            elif (row := await self._with_parent(row)).status != "cancelling" and row.child is not None:
                await self._begun(row, row.child)

    async def _begun(self, row: TaskRow, spec: ChildSpec) -> None:
        """Make the child, with its first message. Done again, it changes nothing."""
        self._open[row.task_id] = row
        now = self._clock.now()
        if await self._store.runtime_agent(spec.agent_id) is None:
            created = AgentCreated(
                agent_name=spec.agent_id,
                agent_kind="child",
                visibility="private",
                ownership="parent_supervised",
                profile_preset="private_child",
                lineage_parent_agent_id=row.agent_id,
                source="agent",
                created_by=row.agent_id,
                salt=self._engine.ids.new(SALT),
            )
            try:
                places = await workspaces_for_child(self._engine, row, spec)
            except InvalidRequest as problem:
                await self._end_unborn(row, spec, problem.message)
                return
            first = delegation(row.task_id, spec.initial_message, row.derived_from)
            events: list[AnyEvent] = [*places, first]
            await self._store.admit(
                spec.agent_id, [Fact(created, now), *(Fact(event, now, MAIN_THREAD) for event in events)]
            )
        if row.status in ("queued", "interrupted"):
            words = "the child is there" if row.status == "queued" else "found again after a restart"
            await self._change(row, "running", words)
        agent = await self._store.runtime_agent(spec.agent_id)
        if agent is not None and (agent.control, agent.cause) == ("paused", "configuration"):
            again = AgentStateChanged(
                control="running", cause="configuration", changed_by=RUNTIME, instead_of=agent.changed_at
            )
            with contextlib.suppress(EventRefused):
                await self._store.admit(spec.agent_id, [Fact(again, now)])

    async def _taken_up_again(self, row: TaskRow) -> TaskRow:
        """The task, which goes on where the failed turn of its child was opened again: before that runs, so that
        whoever comes after a kill finds it. The child has what it had left of its grant, from the turn that had it
        back."""
        spec = row.child
        agent = await self._store.runtime_agent(spec.agent_id) if spec is not None else None
        if spec is None or agent is None or spec.preset != "private_child" or agent.control == "stopped":
            return row
        turn = await retried_turn(self._store, spec.agent_id)
        if turn is None:
            return row
        if spec.workspace_mode == "worktree":
            with contextlib.suppress(InvalidRequest):  # the turn will say what is missing
                await workspaces_for_child(self._engine, row, spec)
        events: list[AnyEvent] = [TaskRetried(task_id=row.task_id, turn=turn.turn_id, requested_by=turn.requested_by)]
        if spec.grant is not None:
            left = turn.left if turn.left is not None else nothing_of(spec.grant)
            events.append(GrantRenewed(task_id=row.task_id, child_agent_id=spec.agent_id, grant=left))
        await self._write(row, events)
        again = await self._store.task(row.task_id) or row
        if not again.is_over:
            self._open[row.task_id] = again
        return again

    async def _with_parent(self, row: TaskRow) -> TaskRow:
        """The task, which is to end when its agent was stopped, also where the child was asked for in that moment."""
        parent = await self._store.runtime_agent(row.agent_id)
        if parent is None or parent.control != "stopped" or row.status == "cancelling":
            return row
        await self._change(row, "cancelling", "its parent was stopped")
        return await self._store.task(row.task_id) or row

    async def _make_named(self, row: TaskRow, spec: ChildSpec) -> None:
        """Make a public agent, where there is none of that name. It is its own master from here on."""
        now, maker = self._clock.now(), f"{row.agent_id}/{row.task_id}"
        stream = await self._store.read(spec.agent_id, limit=1)
        if not stream:
            created = AgentCreated(
                agent_name=spec.agent_id,
                lineage_parent_agent_id=row.agent_id,
                source="agent",
                created_by=maker,
                salt=self._engine.ids.new(SALT),
            )
            facts = [Fact(created, now)]
            facts += [Fact(event, now, MAIN_THREAD) for event in await workspaces_for_child(self._engine, row, spec)]
            if spec.initial_message:
                said = bootstrap(row.agent_id, row.task_id, spec.initial_message, row.derived_from)
                facts.append(Fact(said, now, MAIN_THREAD))
            with contextlib.suppress(EventRefused):
                await self._store.admit(spec.agent_id, facts)
            stream = await self._store.read(spec.agent_id, limit=1)
        first = stream[0].fact.event if stream else None
        is_ours = isinstance(first, AgentCreated) and first.created_by == maker
        words = f"the agent {spec.agent_id} was made" if is_ours else taken(spec.agent_id).message
        failure = None
        if not is_ours:
            failure = FailureArtifact(category="task", kind="agent_exists", summary=words, task_id=row.task_id)
        ended = TaskEnded(
            task_id=row.task_id,
            status="completed" if is_ours else "failed",
            result_summary=words,
            failure_artifact=failure,
        )
        told = [] if is_ours else [result_message(TaskParent(row.summary, row.derived_from), ended)]
        await self._write(row, [ended, *told])
        self._forget(row.task_id)

    async def _stop_all(self, child_id: str, standing: ChildStanding) -> None:
        """Ask everything of a child to end: what waits, what runs, what it has begun."""
        now = self._clock.now()
        await self._expire_messages(child_id, "the child was stopped")
        for thread in await self._store.busy_threads(child_id):
            for turn in await self._store.turns_of_thread(child_id, thread.thread_id, open_only=True):
                if turn.turn_id not in self._interrupted and standing.control == "running":
                    self._interrupted.add(turn.turn_id)
                    event = TurnInterruptRequested(
                        interrupt_id=self._engine.ids.new("int"), requested_by=RUNTIME, reason="parent_cancelled"
                    )
                    await self._store.admit(child_id, [Fact(event, now, thread.thread_id, turn.turn_id)])
        for task_id in standing.open_tasks:
            await self._stop_task(task_id)

    async def _end_turns(self, child_id: str, end_turn: EndTurn) -> None:
        """A child that is over asks nobody for anything: turns of it that rest end, and people are not asked any more
        for what these wait for."""
        for thread in await self._store.busy_threads(child_id):
            for turn in await self._store.turns_of_thread(child_id, thread.thread_id, open_only=True):
                if turn.state == "suspended":
                    with contextlib.suppress(StoreDamaged):  # of its own log: nothing can be told to it any more
                        await end_turn(turn.turn_id)

    async def _expire_messages(self, child_id: str, reason: str) -> None:
        """No turn will take them any more."""
        store = self._store
        waiting = await store.deferred(child_id, MAIN_THREAD)
        for thread in await store.busy_threads(child_id):
            waiting += await store.queued(child_id, thread.thread_id)
        for message in waiting:
            expired = MessageExpired(message_id=message.message_id, reason=reason)
            with contextlib.suppress(EventRefused):
                await store.admit(child_id, [Fact(expired, self._clock.now(), message.thread_id)])

    async def _end_waits(self, child_id: str) -> None:
        """A child that is over waits for nothing: no deadline comes, and nothing of it is kept as open."""
        for wait in await self._store.open_waits(child_id):
            event = WaitCancelled(wait_id=wait.wait_id, cancelled_by=RUNTIME, reason="the child is over")
            with contextlib.suppress(EventRefused):
                await self._store.admit(child_id, [Fact(event, self._clock.now(), wait.thread_id)])

    async def _end(self, row: TaskRow, spec: ChildSpec, standing: ChildStanding, last: LastTurn) -> None:
        """Let nothing more of the child run, and tell its parent: once, with what the child left of its grant. A parent
        that was deleted meanwhile is told nothing."""
        now = self._clock.now()
        if standing.control != "stopped":
            is_given_up = (standing.control, standing.cause) == ("paused", "failure")
            rest = AgentStateChanged(
                control="stopped",
                cause="failure" if is_given_up else "runtime",
                changed_by=RUNTIME,
                reason=standing.reason if is_given_up else "what it was made for is over",
                instead_of=standing.changed_at,
            )
            try:
                await self._store.admit(spec.agent_id, [Fact(rest, now)])
            except EventRefused:
                return  # its turn is tried again in this moment: that brings another look
        await self._expire_messages(spec.agent_id, "the child is over")
        await self._end_waits(spec.agent_id)
        left_behind = await leave_worktree(self._engine, row)
        duration_ms = max(0, (now - (row.retried_at or row.created_at)) // 1_000)
        ended = end_of_child(row.task_id, standing, last.words, duration_ms, left_behind)
        lowered: tuple[str, ...] = ("external_evidence",) if last.words.untrusted else ()
        behind = known_authority(lowest((row.derived_from, *lowered)))
        parent = TaskParent(row.summary, behind, row.work_item_id, spec.agent_id, row.retried_at)
        has_parent = await self._store.runtime_agent(row.agent_id) is not None
        facts: list[AnyEvent] = [ended, *([result_message(parent, ended)] if has_parent else [])]
        grant = spec.grant
        if grant is not None:
            left = last.left if last.left is not None else nothing_of(grant) if standing.has_begun else grant
            facts.append(GrantSettled(task_id=row.task_id, child_agent_id=spec.agent_id, left=left))
        await self._write(row, facts)
        self._forget(row.task_id)

    async def _end_unborn(self, row: TaskRow, spec: ChildSpec, problem: str = "") -> None:
        """Stopped before it was there, or it cannot be made."""
        await leave_worktree(self._engine, row)
        ended = TaskEnded(task_id=row.task_id, status="cancelled", result_summary="it was stopped before it began")
        if problem:
            failure = FailureArtifact(category="task", kind="child_not_made", summary=problem, task_id=row.task_id)
            words = f"it could not be made: {problem}"
            ended = TaskEnded(task_id=row.task_id, status="failed", result_summary=words, failure_artifact=failure)
        facts: list[AnyEvent] = [
            ended,
            result_message(TaskParent(row.summary, row.derived_from, None, spec.agent_id), ended),
        ]
        if spec.grant is not None:
            facts.append(GrantSettled(task_id=row.task_id, child_agent_id=spec.agent_id, left=spec.grant))
        await self._write(row, facts)
        self._forget(row.task_id)

    async def _tell_progress(self, row: TaskRow, spec: ChildSpec) -> None:
        """What a child wants its operator to know, or to say, goes to its parent, who reads it with `task_status`."""
        if await self._store.runtime_agent(row.agent_id) is None:
            return
        briefs = [brief_id for brief_id, _ in await told_briefs(self._store, spec.agent_id)]
        waits = [wait.wait_id for wait in await self._store.open_waits(spec.agent_id) if wait.wake == "operator_input"]
        told = [notice(row.task_id, row.summary, brief_id, row.derived_from) for brief_id in briefs]
        told += [question(row.task_id, row.summary, wait_id, row.derived_from) for wait_id in waits]
        for said in told:
            if await self._store.message(said.message_id) is None:
                await self._write(row, [said])

    async def _change(self, row: TaskRow, status: OpenStatus, reason: str) -> None:
        event = TaskStatusChanged(task_id=row.task_id, status=status, reason=reason)
        with contextlib.suppress(EventRefused):  # it is over
            await self._write(row, [event])

    async def _write(self, row: TaskRow, events: list[AnyEvent]) -> None:
        """Into the parent's stream. A grant concerns the turn that gave it, where that is not over."""
        now = self._clock.now()
        turn = await self._store.turn(row.parent_turn_id)
        giving = turn.turn_id if turn is not None and turn.is_open else None
        facts = [
            Fact(event, now, row.thread_id, giving if isinstance(event, GrantSettled | GrantRenewed) else None)
            for event in events
        ]
        with contextlib.suppress(EventRefused):  # it has ended before, and was told
            await self._store.admit(row.agent_id, facts)

    async def _task_of(self, agent: RuntimeAgentRow) -> TaskRow | None:
        if agent.ownership != "parent_supervised":
            return None
        return await self._store.task(task_of(agent.agent_id))

    def _lock(self, task_id: str) -> asyncio.Lock:
        return self._locks.setdefault(task_id, asyncio.Lock())

    def _forget(self, task_id: str) -> None:
        self._open.pop(task_id, None)
        over = self._over.pop(task_id, None)
        if over is not None:
            over.set()
