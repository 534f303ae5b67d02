"""The scheduler: what is due is read from the table of wakes, and each thread is handed to whoever runs it.

One loop for all agents. It looks when something was committed that may be due, when the next time has come, and when a
thread that it runs has come to rest; it never goes over agents. To look too early changes nothing: whoever runs a
thread decides from the log what there is to do. A thread that cannot be run is tried again after a while that grows,
and after some failures in a row its agent is paused, with the reason.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from wakeful.contracts.errors import (
    AgentBusy,
    AgentMissing,
    ForTheCaller,
    StoreDamaged,
    StoreProblem,
    ToolMissing,
    WakefulError,
    WorkspaceMissing,
)
from wakeful.ports import Clock
from wakeful.ports.notices import RuntimeHoldRow
from wakeful.ports.store import DueStore
from wakeful.ports.wakes import WakeRow
from wakeful.runtime.missing_folders import MissingFolders

LOG = logging.getLogger(__name__)
PAGE = 256
"""Wakes that are read at once."""
FIRST_RETRY = 1.0
LAST_RETRY = 300.0
MOST_FAILURES = 5
"""Failures in a row after which an agent is paused."""
LONGEST_SLEEP = 30.0
"""Seconds after which the clock on the wall is looked at again: somebody may have set it."""

OVERDUE_SECONDS = 60.0
"""What is due and has a place is begun at once: what lies there for so long is begun by nobody."""
ANY_AGENT = ""
WITH_TURNS = "timer:"
"""Work that runs turns, as threads do: the check of a timer is one."""
EVEN_IF_HELD = ("notice:", "task:", "reload:", "channel:")
"""People are told and heard, tasks ended and files read, whatever is paused or stopped."""

RunThread: TypeAlias = Callable[[str, str], Awaitable[None]]
"""Runs what is next in an agent's thread until it rests. Raises AgentBusy while another process is at it."""
DueWork: TypeAlias = Callable[[WakeRow], Awaitable[None]]
"""Does what a due time stands for: writes a fact, and the message that it causes."""
GiveUp: TypeAlias = Callable[[str, BaseException], Awaitable[None]]
"""Pauses an agent that cannot be run, and says why."""


class Places(NamedTuple):
    """How many turns run at the same time."""

    in_all: int = 256
    of_agent: int = 64
    starts: int = 1_000
    """Begun within a second."""


WORK_PLACES = Places()
"""Of the runtime's own work, which no turn keeps waiting: people are told, tasks ended, files read."""


class StartRate:
    """So many beginnings a second, by the clock's growing seconds: after an outage everything is due at once.

    A bucket that fills with time. Whoever was idle for a while may begin a whole second's worth together.
    """

    def __init__(self, clock: Clock, per_second: int) -> None:
        self._clock, self._per_second = clock, per_second
        self._left, self._filled_at = float(per_second), clock.monotonic()

    def take(self) -> bool:
        """Begin one more now, if there is room."""
        now = self._clock.monotonic()
        self._left = min(self._per_second, self._left + max(0.0, now - self._filled_at) * self._per_second)
        self._filled_at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True

    @property
    def pause(self) -> float:
        """Seconds until there is room for one more."""
        return max(0.0, 1 - self._left) / self._per_second


class DueJob(NamedTuple):
    """What runs at most once at a time: a thread, or what one due time stands for."""

    agent_id: str
    thread_id: str
    subject: str = ""

    @property
    def runs_turns(self) -> bool:
        return not self.subject or self.subject.startswith(WITH_TURNS)


DueJobs: TypeAlias = dict[DueJob, set[WakeRow | None]]
"""Jobs with all that makes them due; None: a turn that was cut off."""


class ThreadHeld(Exception):
    """Nothing of the thread is to run for now, and nothing has failed. `words` say why."""

    def __init__(self, words: str, seconds: float) -> None:
        super().__init__(words)
        self.words = words
        self.seconds = seconds


class _Taken:
    """Places that are taken, in all and by agent: those of turns, and those of other work."""

    def __init__(self) -> None:
        self._in_all: Counter[bool] = Counter()
        self._of_agent: dict[tuple[str, bool], int] = {}

    def add(self, job: DueJob) -> None:
        runs_turns = job.runs_turns
        self._in_all[runs_turns] += 1
        place = job.agent_id, runs_turns
        self._of_agent[place] = self._of_agent.get(place, 0) + 1

    def remove(self, job: DueJob) -> None:
        runs_turns = job.runs_turns
        self._in_all[runs_turns] -= 1
        place = job.agent_id, runs_turns
        left = self._of_agent[place] = self._of_agent[place] - 1
        if not left:
            del self._of_agent[place]

    def has_room(self, job: DueJob, of_turns: Places) -> bool:
        runs_turns = job.runs_turns
        places = of_turns if runs_turns else WORK_PLACES
        of_agent = self._of_agent.get((job.agent_id, runs_turns), 0)
        return self._in_all[runs_turns] < places.in_all and of_agent < places.of_agent

    def of_turns(self) -> int:
        return self._in_all[True]

    def of_agent(self, agent_id: str) -> int:
        return self._of_agent.get((agent_id, True), 0) + self._of_agent.get((agent_id, False), 0)


@dataclass(slots=True)
class _Setback:
    """A job that could not be done, or that changed nothing."""

    rows: set[WakeRow | None] = field(default_factory=set)
    """What it was begun for in vain: anything else that makes the job due is not held up by it."""
    failures: int = 0
    waits: float = 0.0
    until: float = 0.0
    """By the clock's growing seconds."""
    words: str = ""
    """What went wrong, where it mends itself once its cause is gone."""


@dataclass(slots=True)
class Scheduler:
    """Runs threads as they become due, until it is stopped."""

    store: DueStore
    clock: Clock
    run_thread: RunThread
    give_up: GiveUp
    due_work: Mapping[str, DueWork]
    """By the first word of a wake's subject (`timer:17`). Every other subject is a thread's to run."""
    places: Places
    enforce: Callable[[RuntimeHoldRow], Awaitable[None]]
    """Ends what still runs while everything is held."""
    folders: MissingFolders
    safely: Callable[[str, Awaitable[None]], Awaitable[bool]]
    """Does what nothing else of the scheduler is to fail with. Was it done?"""
    _running: "dict[DueJob, asyncio.Task[None]]" = field(default_factory=dict)
    _taken: _Taken = field(default_factory=_Taken)
    """By what runs."""
    _setbacks: dict[DueJob, _Setback] = field(default_factory=dict)
    _cut_off: dict[DueJob, None] = field(default_factory=dict)
    """Threads to look at although no wake says so."""
    _let_run: Counter[str] = field(default_factory=Counter)
    """Agents that somebody lets run at this moment."""
    _stirred: asyncio.Event = field(default_factory=asyncio.Event)
    _looks: int = 0
    _at_rest: "list[tuple[int, asyncio.Future[None]]]" = field(default_factory=list)
    """Who waits until nothing runs and nothing is due, after how many looks."""
    _overdue: dict[WakeRow, float] = field(default_factory=dict)
    """What is due and was not begun, and since when that is known, by the clock's growing seconds."""
    _draining: bool = False
    _farther: WakeRow | None = None
    """Behind it the runtime's own work is looked for next, while no turn has a place."""
    _rate: StartRate = field(init=False)

    def __post_init__(self) -> None:
        self._rate = StartRate(self.clock, self.places.starts)

    async def run(self) -> None:
        """Until it is cancelled."""
        watch = self.store.watch_wakes()
        watch.call_on_commit(self._stirred.set)
        try:
            while True:
                self._stirred.clear()
                self._looks += 1
                try:
                    await self.safely("the look for missing folders", self._look_for_folders())
                    later = await self._begin_due()
                except StoreProblem:
                    later = FIRST_RETRY  # a full disk, a lock: what is due stays due, and is looked at again
                if not self._running:
                    self._tell_rest()
                await self._wait(later)
        finally:
            watch.close()

    async def _look_for_folders(self) -> None:
        for name in await self.folders.returned():
            self._setbacks.pop(DueJob(*name), None)
            self._cut_off[DueJob(*name)] = None

    def look_at(self, threads: Iterable[tuple[str, str]]) -> None:
        """Run these threads soon: their turns were cut off, and no time makes them due."""
        for job in (DueJob(*thread) for thread in threads):
            self._cut_off[job] = None
            if (setback := self._setbacks.get(job)) is not None:
                setback.until = 0.0
        self._stirred.set()

    def forget_failures(self, agent_id: str) -> None:
        """Try an agent again at once: the cause of its failures may be gone."""
        for job in [job for job in self._setbacks if job.agent_id == agent_id]:
            del self._setbacks[job]
        self._stirred.set()

    def held_up(self, agent_id: str) -> str:
        """What an agent cannot go on for: a full disk, a folder that is missing. Blank: nothing that mends itself."""
        found = [each.words for job, each in self._setbacks.items() if job.agent_id == agent_id and each.words]
        return found[0] if found else self.folders.words_of(agent_id)

    async def left_lying(self) -> list[WakeRow]:
        """What has been due for long, and nothing holds up: whoever asks from time to time learns that this scheduler
        does not do its work."""
        hold, now = await self.store.runtime_hold(), self.clock.monotonic()
        due: list[WakeRow] = []
        if not self._draining and (hold is None or hold.control == "running"):
            due = await self.store.due_wakes(self.clock.now() - int(OVERDUE_SECONDS * 1_000_000), limit=PAGE)
        self._overdue = {row: self._overdue.get(row, now) for row in due if self._may_begin(row, now)}
        return [row for row, since in self._overdue.items() if now - since >= OVERDUE_SECONDS]

    def _may_begin(self, row: WakeRow, now: float) -> bool:
        job = self._job_of(row)
        setback = self._setbacks.get(job)
        is_set_back = setback is not None and setback.until > now
        return job not in self._running and not is_set_back and self._taken.has_room(job, self.places)

    def is_running(self, agent_id: str, thread_id: str) -> bool:
        return DueJob(agent_id, thread_id) in self._running

    def has_in_hand(self, agent_id: str, thread_id: str) -> bool:
        """Is the thread run, or about to be looked at?"""
        job = DueJob(agent_id, thread_id)
        return job in self._running or job in self._cut_off or not {agent_id, ANY_AGENT}.isdisjoint(self._let_run)

    @contextmanager
    def letting_run(self, agent_id: str = ANY_AGENT) -> Iterator[None]:
        """Somebody lets an agent run, or all: turns of it that were cut off are looked at before this is over."""
        self._let_run[agent_id] += 1
        try:
            yield
        finally:
            self._let_run[agent_id] -= 1
            self._let_run += Counter()  # without those that are over

    async def settled(self) -> None:
        """Until nothing runs and nothing is due. What is due later, or is tried again later, is not waited for."""
        rest = asyncio.get_running_loop().create_future()
        self._at_rest.append((self._looks, rest))
        self._stirred.set()
        await rest

    def begin_nothing_more(self) -> None:
        self._draining = True

    async def drain(self) -> None:
        """Begin nothing more, and wait until what runs rests."""
        self.begin_nothing_more()
        while self._running:
            await asyncio.wait(self._running.values())

    async def abandon(self) -> None:
        """Let go of what runs, as a kill would: the log knows where each turn is."""
        self.begin_nothing_more()
        for task in self._running.values():
            task.cancel()
        await self.drain()

    async def _begin_due(self) -> float:
        """Begin what is due and has a place. In how many seconds to look again."""
        now, later = self.clock.now(), self.folders.look_within or LONGEST_SLEEP
        hold = await self.store.runtime_hold()
        is_held = hold is not None and hold.control != "running"
        if hold is not None and is_held:
            is_done = await self.safely("what ends turns while everything is held", self.enforce(hold))
            later = later if is_done else FIRST_RETRY
        due: DueJobs = {job: {None} for job in self._cut_off}
        page, is_farther = None, False
        while not self._draining:
            rows = await self.store.due_wakes(now, limit=PAGE, after=page)
            for row in rows:
                due.setdefault(self._job_of(row), set()).add(row)
            if is_held:
                due = {job: rows for job, rows in due.items() if job.subject.startswith(EVEN_IF_HELD)}
            later = min(later, self._begin(due))
            if len(rows) < PAGE:
                self._farther = None
                break
            due, page = {}, rows[-1]
            if self._taken.of_turns() >= self.places.in_all:
                if is_farther:
                    self._farther, later = page, min(later, FIRST_RETRY)
                    break
                # Behind the turns that have no place may be work that needs none: a page of it with each look.
                is_farther, page = True, self._farther or page
        following = await self.store.next_wake(after=now)
        if following is None or following.alarm is None:
            return later
        return min(later, (following.alarm - now) / 1_000_000)

    def _begin(self, due: DueJobs) -> float:
        """Begin what may be begun, in turns: agents that have little under way first. How soon there is more to do."""
        soonest, clock = LONGEST_SLEEP, self.clock.monotonic()
        taken, before = self._taken, Counter[str]()
        order: list[tuple[int, int, DueJob]] = []
        for index, job in enumerate(due):
            if job not in self._running:
                agent_id = job.agent_id
                order.append((taken.of_agent(agent_id) + before[agent_id], index, job))
                before[agent_id] += 1
        for _, _, job in sorted(order):
            if self._draining:
                break
            setback = self._setbacks.get(job)
            if setback is not None and due[job] <= setback.rows and setback.until > clock:
                soonest = min(soonest, setback.until - clock)
            elif taken.has_room(job, self.places):
                if not self._rate.take():
                    return min(soonest, self._rate.pause)
                taken.add(job)
                self._cut_off.pop(job, None)
                self._running[job] = asyncio.create_task(self._do(job, due[job]))
        return soonest

    def _job_of(self, row: WakeRow) -> DueJob:
        word = row.subject.partition(":")[0]
        return DueJob(row.agent_id, row.thread_id, row.subject if word in self.due_work else "")

    async def _do(self, job: DueJob, rows: set[WakeRow | None]) -> None:
        try:
            if job.subject:
                for row in rows:
                    assert row is not None
                    await self.due_work[job.subject.partition(":")[0]](row)
            else:
                await self.run_thread(job.agent_id, job.thread_id)
                self.folders.forget(job.agent_id, job.thread_id)
            if await self._are_as_before(rows):
                self._set_back(job, rows)  # it was looked at too early: later, and not at once
            else:
                self._setbacks.pop(job, None)
        except AgentBusy:
            self._set_back(job, rows)
        except ThreadHeld as held:
            setback = self._setbacks.setdefault(job, _Setback())
            setback.rows |= rows
            setback.until, setback.words = self.clock.monotonic() + held.seconds, held.words
            if None in rows:
                self._cut_off[job] = None  # no time makes it due: it is looked at again all the same
        except Exception as problem:
            await self._failed(job, rows, problem)
        finally:
            del self._running[job]
            self._taken.remove(job)
            self._stirred.set()

    async def _are_as_before(self, rows: set[WakeRow | None]) -> bool:
        """Is all that made a job due still so? Then it came to nothing."""
        for row in rows:
            if row is None or await self.store.wake(row.agent_id, row.thread_id, row.subject) != row:
                return False
        return True

    async def _failed(self, job: DueJob, rows: set[WakeRow | None], problem: Exception) -> None:
        setback = self._set_back(job, rows)
        setback.failures += 1
        setback.words = problem.message if isinstance(problem, StoreProblem | WorkspaceMissing) else ""
        is_damaged = isinstance(problem, StoreDamaged) and problem.agent_id == job.agent_id
        if isinstance(problem, StoreProblem) and not is_damaged:
            # Nothing can be written now. A turn that was under way has no wake of its own: it is looked at again.
            if not job.subject:
                setback.rows.add(None)
                self._cut_off[job] = None
            return
        if isinstance(problem, WorkspaceMissing):
            self.folders.note(job.agent_id, job.thread_id, problem.folder)
            return  # what waits was set aside with the reason
        if not isinstance(problem, WakefulError):
            LOG.error("%s of %s could not be done", job.subject or job.thread_id, job.agent_id, exc_info=problem)
        needs_a_person = is_damaged or isinstance(problem, ForTheCaller | AgentMissing | ToolMissing)
        if needs_a_person or setback.failures >= MOST_FAILURES:
            try:
                await self.give_up(job.agent_id, problem)
                self.forget_failures(job.agent_id)
            except WakefulError:
                return  # it is tried again; the next failure tries to pause it again
            except Exception:
                LOG.exception("%s could not be paused; it is tried again", job.agent_id)

    def _set_back(self, job: DueJob, rows: set[WakeRow | None]) -> _Setback:
        setback = self._setbacks.setdefault(job, _Setback())
        setback.rows |= rows
        setback.waits = min(LAST_RETRY, max(FIRST_RETRY, setback.waits * 2))
        setback.until = self.clock.monotonic() + setback.waits
        return setback

    def _tell_rest(self) -> None:
        due = [rest for looks, rest in self._at_rest if looks < self._looks]
        self._at_rest = [each for each in self._at_rest if each[0] >= self._looks]
        for rest in due:
            if not rest.done():
                rest.set_result(None)

    async def _wait(self, seconds: float) -> None:
        """Until there is something to look at, or the time has come."""
        if self._stirred.is_set():
            await asyncio.sleep(0)
            return
        alarm = asyncio.create_task(self._stir_after(seconds))
        try:
            await self._stirred.wait()
        finally:
            alarm.cancel()

    async def _stir_after(self, seconds: float) -> None:
        await self.clock.sleep(seconds)
        self._stirred.set()
