"""A runtime that lives: agents whose code is here, run as they become due, until it is closed.

It holds nothing that the log does not hold. A runtime that was killed is opened again and goes on where it was.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from wakeful.contracts.errors import EventRefused, ForTheCaller, ForThePerson, InvalidRequest, MessageNotFound
from wakeful.contracts.events.agents import ControlCause
from wakeful.contracts.retention import Retention
from wakeful.contracts.work_items import WorkItem
from wakeful.engine.run_request import Engine, RunRequest
from wakeful.ports import WakeRow
from wakeful.ports.runtime_agents import RuntimeAgentRow
from wakeful.runtime.retention import keep_retention
from wakeful.runtime.scheduler import DueWork, Places, Scheduler
from wakeful.runtime.tasks import RuntimeTasks
from wakeful.runtime.thread_lives import Watchdog
from wakeful.runtime.timers import ClockWatch, fire_timer
from wakeful.runtime.waits import end_wait
from wakeful.runtime.wake_hints import trigger_hints
from wakeful.runtime.work_queue import enqueue_work_item, remind_of_blocker, wake_for_work
from wakeful.service.agent_supply import AgentSupply
from wakeful.service.commands.agents import (
    RUNTIME,
    agent_named,
    pause_agent,
    resume_agent,
    stop_agent,
)
from wakeful.service.commands.thread_queue import take_next
from wakeful.service.commands.turn_claims import recall
from wakeful.service.run_result import RunResult
from wakeful.service.wake_checks import run_check

WATCHDOG_SECONDS = 60.0
"""How often the watchdog looks at threads that owe something."""


@dataclass(slots=True)
class LivingRuntime:
    """Agents at work. Made by `bootstrap.open_runtime`."""

    engine: Engine
    supply: AgentSupply
    scheduler: Scheduler
    tasks: RuntimeTasks
    watchdog: Watchdog
    retention: Retention
    _loops: "list[asyncio.Task[None]]" = field(default_factory=list)

    async def start(self) -> None:
        """Make the agents known, take up what was cut off, and run what is due."""
        await self.supply.introduce()
        await self.tasks.start()
        await self._take_up_cut_off()
        self._loops += [asyncio.create_task(self.scheduler.run()), asyncio.create_task(self._watch_over())]
        upkeep = keep_retention(self.engine.store, self.engine.clock, self.retention, self.tasks.folder)
        self._loops.append(asyncio.create_task(upkeep))

    async def close(self, *, grace: float | None = 10.0) -> None:
        """Begin nothing more; wait so many seconds for what runs, then let go of it. None: as long as it takes."""
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self.scheduler.drain()
        await self.scheduler.abandon()
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        await self.tasks.close()

    async def answer(self, message_id: str) -> RunResult[Any]:
        """The result of the turn that takes a message, once it rests or has ended."""
        store = self.engine.store
        row = await store.message(message_id)
        if row is None:
            raise MessageNotFound(f"there is no message {message_id}", "Give the message_id that `send` returned.")
        watch = store.watch(row.agent_id, thread_id=row.thread_id)
        try:
            while True:
                row = await store.message(message_id) or row
                if row.state == "expired":
                    raise MessageNotFound(f"message {message_id} expired before a turn took it", "Send it again.")
                if row.state == "processed" and not row.turn_id:
                    raise MessageNotFound(
                        f"message {message_id} needed no turn: it says nothing that could be answered",
                        "Say something in it.",
                    )
                turn = await store.turn(row.turn_id) if row.turn_id else None
                if turn is not None and (not turn.is_open or turn.state == "suspended"):
                    found = self.supply.roster.get(turn.agent_name)
                    return await recall(self.engine, turn, found.agent if found is not None else None)
                await watch.wait()
        finally:
            watch.close()

    async def settled(self) -> None:
        """Until nothing runs and nothing is due."""
        await self.scheduler.settled()

    async def pause(self, agent: str, *, by: str, reason: str = "", seconds: float | None = None) -> RuntimeAgentRow:
        resumes_at = None if seconds is None else self.engine.clock.now() + round(seconds * 1_000_000)
        return await pause_agent(self.engine, agent, by=by, reason=reason, resumes_at=resumes_at)

    async def stop(self, agent: str, *, by: str, reason: str = "") -> RuntimeAgentRow:
        return await stop_agent(self.engine, agent, by=by, reason=reason)

    async def resume(self, agent: str, *, by: str) -> RuntimeAgentRow:
        row = await resume_agent(self.engine, agent, by=by)
        self.scheduler.forget_failures(agent)
        await self._take_up_cut_off(agent)
        return row

    async def enqueue(self, agent: str, objective: str, *, by: str) -> WorkItem:
        """Raises InvalidRequest for an agent without work items."""
        row = await agent_named(self.engine.store, agent)
        known = await self.supply.agent(row.agent_id)
        if not known.work_items:
            raise InvalidRequest(
                f"agent {agent!r} keeps no work items",
                "Give it work_items=True, or send it a message instead.",
            )
        return await enqueue_work_item(self.engine, agent, objective, by=by)

    # --- what nobody asks for ------------------------------------------------------------------------------------

    async def _take_up_cut_off(self, agent: str | None = None) -> None:
        """Threads whose turn nobody runs: their process is gone, and no time would make them due."""
        store = self.engine.store
        found = []
        for thread in await store.busy_threads(agent):
            place = thread.agent_id, thread.thread_id
            if not thread.turns or self.scheduler.is_running(*place):
                continue
            row = await store.runtime_agent(thread.agent_id)
            if row is None or row.control != "running" or await store.is_held(*place):
                continue
            turns = await store.turns_of_thread(*place, open_only=True)
            if any(turn.state != "suspended" for turn in turns):
                found.append(place)
        self.scheduler.look_at(found)

    async def _watch_over(self) -> None:
        clock = ClockWatch(self.engine)
        while True:
            await self.engine.clock.sleep(WATCHDOG_SECONDS)
            with suppress(ForTheCaller):
                await clock.look()
            with suppress(ForTheCaller):  # the store cannot be read now; the next minute brings another look
                await self.watchdog.look()


def living_runtime(
    engine: Engine, supply: AgentSupply, places: Places, tasks: RuntimeTasks, retention: Retention
) -> LivingRuntime:
    """Put a runtime together around an engine."""

    async def run_thread(agent_id: str, thread_id: str) -> None:
        await take_next(engine, RunRequest(await supply.agent(agent_id), "", thread=thread_id))

    async def give_up(agent_id: str, problem: BaseException) -> None:
        wants_code = isinstance(problem, ForTheCaller | ForThePerson)
        cause: ControlCause = "configuration" if wants_code else "failure"
        await pause_agent(engine, agent_id, by=RUNTIME, cause=cause, reason=str(problem))

    async def end_pause(wake: WakeRow) -> None:
        row = await engine.store.runtime_agent(wake.agent_id)
        if row is not None and row.control == "paused" and row.resumes_at is not None:
            with suppress(EventRefused):
                await resume_agent(engine, row.agent_id, by=RUNTIME, cause="runtime", instead_of=row.changed_at)

    due_work: dict[str, DueWork] = {
        "agent": end_pause,
        "timer": partial(fire_timer, engine, partial(run_check, engine, supply)),
        "wait": partial(end_wait, engine),
        "hint": partial(trigger_hints, engine),
        "work": partial(wake_for_work, engine),
        "recheck": partial(remind_of_blocker, engine),
    }
    scheduler = Scheduler(engine.store, engine.clock, run_thread, give_up, due_work, places)
    watchdog = Watchdog(engine, scheduler.is_running, scheduler.look_at)
    return LivingRuntime(engine, supply, scheduler, tasks, watchdog, retention)
