"""A runtime that lives: agents whose code is here, run as they become due, until it is closed.

It holds nothing that the log does not hold. A runtime that was killed is opened again and goes on where it was.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from wakeful.contracts.agent_identity import AgentControl, ControlCause
from wakeful.contracts.budgets import Budget
from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.errors import (
    AgentMissing,
    AgentStopped,
    EventRefused,
    ForTheCaller,
    ForThePerson,
    MessageNotFound,
    RetryRefused,
    StoreDamaged,
)
from wakeful.contracts.notices import NotifyTarget
from wakeful.contracts.retention import Retention
from wakeful.contracts.retries import USUAL
from wakeful.contracts.work_items import WorkItem
from wakeful.engine.agent import Agent
from wakeful.engine.drain import Drain
from wakeful.engine.run_request import Engine, HostTerms
from wakeful.engine.worktrees import settle_worktree
from wakeful.ports import TurnRow, WakeRow
from wakeful.ports.notices import RuntimeHoldRow
from wakeful.ports.runtime_agents import RuntimeAgentRow
from wakeful.runtime.absent_providers import AbsentProviders
from wakeful.runtime.channel_listeners import Connect
from wakeful.runtime.channel_messages import ChannelDesk
from wakeful.runtime.child_agents import active_children
from wakeful.runtime.child_places import keep_to_parent
from wakeful.runtime.clock_steps import ClockWatch, move_due_times
from wakeful.runtime.failing_parts import FailingParts
from wakeful.runtime.heartbeat import Heartbeat, Ping
from wakeful.runtime.inbox import defer_message
from wakeful.runtime.missing_folders import MissingFolders
from wakeful.runtime.notice_delivery import NoticeDelivery, SendNotice, remind_of_action
from wakeful.runtime.parked_providers import ProviderParking, providers_of
from wakeful.runtime.refusals import RefusalTally
from wakeful.runtime.result_changes import tell_change
from wakeful.runtime.retention import keep_retention
from wakeful.runtime.scheduler import DueWork, Places, Scheduler
from wakeful.runtime.tasks import RuntimeTasks
from wakeful.runtime.thread_lives import Watchdog, cut_off_threads
from wakeful.runtime.timers import fire_timer
from wakeful.runtime.waits import end_wait
from wakeful.runtime.wake_hints import trigger_hints
from wakeful.runtime.work_queue import remind_of_blocker, wake_for_work
from wakeful.service.agent_supply import AgentSupply
from wakeful.service.commands.agents import (
    RUNTIME,
    agent_named,
    end_of_pause,
    pause_agent,
    resume_agent,
    stop_agent,
    task_named,
)
from wakeful.service.commands.channels import carry_out
from wakeful.service.commands.interruption import cancel_turn
from wakeful.service.commands.runtime_holds import hold_everything, hold_turns, release_everything
from wakeful.service.commands.thread_queue import take_next
from wakeful.service.commands.turn_claims import DUE_AT_ONCE, recall, rests_for_somebody
from wakeful.service.commands.turn_retries import check_retry, retry_turn
from wakeful.service.commands.turns_at_rest import end_waiting
from wakeful.service.commands.work_items import enqueue
from wakeful.service.file_reloads import can_watch, watch_files
from wakeful.service.live_words import LiveWords
from wakeful.service.parked_agents import ParkedAgents
from wakeful.service.queries.agent_lives import why_agent
from wakeful.service.queries.model_probe import ask_for_a_word
from wakeful.service.queries.notices import hold_record
from wakeful.service.run_result import RunResult
from wakeful.service.wake_checks import run_check
from wakeful.settings.heartbeat import owner_heartbeat
from wakeful.settings.limit_overrides import provider_probe_seconds
from wakeful.settings.notify_targets import default_target, resolve_target
from wakeful.settings.retry import owner_patience
from wakeful.views.child_agents import ActiveChild
from wakeful.views.runtime_records import AgentLife, RuntimeHold

if TYPE_CHECKING:
    from wakeful.service.telemetry import TelemetryReader

_log = logging.getLogger("wakeful.runtime")
RESTART = "restart it (wakeful daemon restart); turns continue where they are"
WATCHDOG_SECONDS = 60.0
"""How often the watchdog looks at threads that owe something."""


@dataclass(slots=True)
class LivingRuntime:
    """Agents at work. Made by `bootstrap.runtimes`."""

    engine: Engine
    supply: AgentSupply
    scheduler: Scheduler
    tasks: RuntimeTasks
    watchdog: Watchdog
    retention: Callable[[], Retention]
    """How long things are kept, as of now."""
    parking: ProviderParking
    refusals: RefusalTally
    """What was refused, by number."""
    words: LiveWords
    """What models say while they say it."""
    channels: ChannelDesk
    heartbeat: Heartbeat
    parts: FailingParts
    parked: ParkedAgents
    absent: AbsentProviders
    """Providers that do not answer."""
    drain: Drain
    """Of the turns that the scheduler runs."""
    public_url: str = ""
    """Where programs outside reach the runtime; blank: nowhere."""
    default_model: str | None = None
    """The model of the default agent, which is made when it is first sent something."""
    grace: float | None = 10.0
    """How many seconds what runs has to come to rest when it is closed. None: as long as it takes."""
    telemetry: "TelemetryReader | None" = None
    """Reads the log for traces and metrics, where the owner's file wants them."""
    _loops: "list[asyncio.Task[None]]" = field(default_factory=list)
    _is_closing: bool = False

    async def start(self) -> None:
        """Make the agents known, take up what was cut off, and run what is due."""
        await self.supply.introduce()
        await self.parked.recall()
        await move_due_times(self.engine)
        await self.tasks.start()
        await self.tasks.children.take_up(self.supply.has)
        await self.parking.let_go()
        await self._take_up_cut_off()
        self._keep_going("the scheduler", self.scheduler.run)
        self._keep_going("the watchdog", self._watch_over)
        self._keep_going("the watch over children", self.tasks.children.watch_held)
        self._keep_going("the listener of channels", self.channels.run)
        self._keep_going("the heartbeat", self.heartbeat.run)
        store, clock = self.engine.store, self.engine.clock
        upkeep = partial(keep_retention, store, clock, self.retention, self.tasks.folder)
        self._keep_going("the upkeep of the store", upkeep)
        if self.telemetry is not None:
            self.telemetry.start()
        if self.supply.folder is not None and self.supply.owner is not None and can_watch():
            owner = self.supply.owner
            watching = partial(watch_files, self.supply.folder, owner.is_changed, self.supply.reload)
            self._keep_going("the watch over files", watching)

    def _keep_going(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        task = asyncio.create_task(self.parts.keep_up(name, run), name=name)
        task.add_done_callback(self._tell_end)
        self._loops.append(task)

    def _tell_end(self, loop: "asyncio.Task[None]") -> None:
        """Nobody waits for a loop: what it ended with is told here, or nowhere."""
        if _has_died(loop) and not self._is_closing:
            problem = None if loop.cancelled() else loop.exception()
            _log.error("%s of the runtime has died", loop.get_name(), exc_info=problem)

    @property
    def problems(self) -> list[str]:
        """What does not work in this process, in words: it is tried again, or the process has to be started again."""
        return [*self._broken, *self.absent.problems]

    @property
    def _broken(self) -> list[str]:
        dead = [f"{loop.get_name()} of the runtime has died: {RESTART}" for loop in self._loops if _has_died(loop)]
        return [*dead, *(f"{part} of the runtime failed, and is tried again" for part in self.parts.down)]

    async def is_well(self, asker: str) -> bool:
        """Does the store answer, do all loops run, does what is due begin, and was no agent left without anything that
        would move it, since the last question of whoever asks? Raises StoreProblem."""
        lying = await self.scheduler.left_lying()
        for row in lying:
            _log.error("a wake of %s, thread %s, is overdue: nothing begins it", row.agent_id, row.thread_id)
        return await self.watchdog.is_well(asker) and not self._broken and not lying

    def begin_no_step(self) -> None:
        """Begin nothing more, and have turns come to rest once the steps that are under way have ended."""
        self.scheduler.begin_nothing_more()
        self.drain.begin()

    async def close(self) -> None:
        """Begin nothing more; give what runs its grace, then let go of it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.grace):
                await self.scheduler.drain()
        await self.scheduler.abandon()
        self._is_closing = True
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        if self.telemetry is not None:
            await self.telemetry.close()
        await self.tasks.close()
        await self.refusals.write_all()

    async def answer(self, message_id: str) -> RunResult[Any]:
        """The result of the turn that takes a message, once it has ended or rests until somebody acts.

        A turn that is about to go on, because its pause was lifted, say, does not rest.
        """
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
                        f"message {message_id} is empty, so no turn answered it",
                        "Send a message with text.",
                    )
                turn = await store.turn(row.turn_id) if row.turn_id else None
                if turn is not None and (not turn.is_open or await self._needs_somebody(turn)):
                    found = self.supply.roster.get(turn.agent_name)
                    return await recall(self.engine, turn, found.agent if found is not None else None)
                await watch.wait()
        finally:
            watch.close()

    async def settled(self) -> None:
        """Until nothing runs and nothing is due."""
        await self.scheduler.settled()
        while await self.tasks.children.begun():
            await self.scheduler.settled()

    async def pause(self, agent: str, *, by: str, reason: str = "", seconds: float | None = None) -> RuntimeAgentRow:
        resumes_at = end_of_pause(self.engine, seconds)
        return await pause_agent(self.engine, agent, by=by, reason=reason, resumes_at=resumes_at)

    async def stop(self, agent: str, *, by: str, reason: str = "") -> RuntimeAgentRow:
        row = await stop_agent(self.engine, agent, by=by, reason=reason)
        await self.tasks.children.look_at(agent)
        return row

    async def resume(self, agent: str, *, by: str) -> RuntimeAgentRow:
        await agent_named(self.engine.store, agent)
        with self.scheduler.letting_run(agent):
            row = await resume_agent(self.engine, agent, by=by)
            await self._ask_provider(agent)
            self.scheduler.forget_failures(agent)
            await self._take_up_cut_off(agent)
        return row

    async def hold(self, control: AgentControl, *, by: str, reason: str = "") -> RuntimeHold:
        """Pause or stop everything, or let it run again."""
        if control == "running":
            with self.scheduler.letting_run():
                row = await release_everything(self.engine, by=by)
                await self._take_up_cut_off()
            return hold_record(row)
        row = await hold_everything(self.engine, control, by=by, reason=reason)
        await self.tasks.end_commands("everything was stopped")
        return hold_record(row)

    async def enqueue(self, agent: str, objective: str, *, by: str) -> WorkItem:
        """Raises InvalidRequest for an agent without work items."""
        async with self.refusals.counting(agent):
            return await enqueue(self.engine, agent, objective, by=by)

    async def _ask_provider(self, agent: str) -> None:
        """Somebody says that an agent may go on: a provider that let nobody in is asked at once whether it does now,
        and turns that wait for one ask it."""
        with suppress(AgentMissing):  # its code is not here: nothing of it waits for a provider
            blocks = await self.parking.blocks(await self.supply.as_it_runs(agent))
            if blocks is not None:
                await self.parking.probe_now(blocks.provider)
        await self.press(agent)

    async def press(self, agent: str) -> None:
        """Have turns of an agent that wait for a provider ask it at once."""
        wakes = await self.engine.store.wakes_of(agent)
        self.absent.press((wake.agent_id, wake.thread_id) for wake in wakes if wake.cause == "provider")

    async def retry(
        self, turn: TurnRow, *, by: str, budget: Budget | None = None, max_steps: int | None = None
    ) -> TurnRow:
        """Open a failed turn again, where the code is here that goes on with it. Raises RetryRefused."""
        if await self.engine.store.runtime_agent(turn.agent_id) is not None:
            await check_retry(self.engine.store, turn.turn_id, by, budget, max_steps)  # what no code would help
            try:
                await self.supply.agent(turn.agent_id)
            except (ForTheCaller, AgentMissing) as missing:
                words = f"the code of agent {turn.agent_name} is not here: {missing.message}"
                raise RetryRefused(words, missing.hint) from missing
        return await retry_turn(self.engine, turn.turn_id, requested_by=by, budget=budget, max_steps=max_steps)

    async def children(self, agent: str) -> list[ActiveChild]:
        await agent_named(self.engine.store, agent)
        return await active_children(self.engine, agent)

    async def why(self, agent: str) -> AgentLife:
        """What an agent is at, as its rows say; and what holds it up in this process, which no row can say."""
        life = await why_agent(self.engine, agent)
        if life.state in ("paused", "stopped"):
            return life
        if away := self.absent.words_of(agent):
            sentence = f"{agent} waits: {away}. To ask it now: wakeful agent resume {agent}"
            return life.model_copy(update={"state": "waiting", "sentence": sentence})
        held_up = self.scheduler.held_up(agent)
        if not held_up:
            return life
        words = f"{agent} is held up: {held_up}. It is tried again until that is over."
        return life.model_copy(update={"state": "waiting", "sentence": words})

    async def stop_task(self, task_id: str, *, reason: str) -> str:
        await task_named(self.engine.store, task_id)
        return (await self.tasks.stop(task_id, reason=reason)).status

    # --- what nobody asks for ------------------------------------------------------------------------------------

    async def _needs_somebody(self, turn: TurnRow) -> bool:
        if turn.state != "suspended":
            return False
        wake = await self.engine.store.wake(turn.agent_id, turn.thread_id, turn.turn_id)
        if wake is not None and wake.cause == "provider":
            return await rests_for_somebody(self.engine.store, turn)
        return wake is not None and wake.cause not in DUE_AT_ONCE

    async def _take_up_cut_off(self, agent: str | None = None) -> None:
        self.scheduler.look_at(await cut_off_threads(self.engine, self.scheduler.is_running, agent))

    async def _watch_over(self) -> None:
        clock = ClockWatch(self.engine)
        while True:
            await self.engine.clock.sleep(WATCHDOG_SECONDS)
            await self.parts.safely("the look at the clock", clock.look())
            await self.parts.safely("the look at threads", self.watchdog.look())
            await self.parts.safely("the look at turns that wait for a provider", self.absent.look())
            await self.parts.safely("the look at tasks", self.tasks.look_at_all())
            await self.parts.safely("the look at paused agents", self.parked.look())


def _has_died(loop: "asyncio.Task[None]") -> bool:
    """A loop that has no more to do returns; every other end is its death."""
    return loop.done() and (loop.cancelled() or loop.exception() is not None)


def living_runtime(
    engine: Engine,
    supply: AgentSupply,
    places: Places,
    tasks: RuntimeTasks,
    retention: Callable[[], Retention],
    send: SendNotice,
    connect: Connect,
    ping: Ping,
    notify: NotifyTarget | None = None,
    public_url: str = "",
) -> LivingRuntime:
    """Put a runtime together around an engine. `notify` is where notices of agents go that say nothing else."""

    async def go_on(agent_id: str, cause: ControlCause, changed_at: int) -> None:
        """A pause ends by itself: what waited is due again, and a turn that was cut off meanwhile is taken up."""
        with scheduler.letting_run(agent_id):
            await resume_agent(engine, agent_id, by=RUNTIME, cause=cause, instead_of=changed_at)
            scheduler.look_at(await cut_off_threads(engine, scheduler.is_running, agent_id))

    async def resume_after(agent_id: str, changed_at: int) -> None:
        await go_on(agent_id, "provider", changed_at)

    async def patience_of(agent_id: str) -> float:
        """What its definition says, or the owner's file."""
        retry = USUAL
        with suppress(AgentMissing, ForTheCaller):  # its definition cannot be had here: its turns do not wait for ever
            retry = (await supply.as_it_runs(agent_id)).retry
        return owner_patience() if retry is USUAL else retry.patience

    async def give_up_waiting(turn_id: str, seconds: float) -> None:
        await end_waiting(engine, turn_id, seconds)

    first_probe = provider_probe_seconds(os.environ) * 1_000_000
    parking = ProviderParking(engine, supply.as_it_runs, ask_for_a_word, resume_after, first_probe)
    words = LiveWords()

    async def run_thread(agent_id: str, thread_id: str) -> None:
        row = await engine.store.runtime_agent(agent_id)
        is_made = row is not None and row.parent is not None
        if is_made:
            await tasks.children.look_at(agent_id)
            row = await engine.store.runtime_agent(agent_id)
        name = agent_id, thread_id
        if row is not None and row.control != "running":
            absent.leave(name)
            return  # it was paused or stopped since it became due
        await absent.may_ask(name)
        request = await supply.request(agent_id, thread_id, row)
        if await is_paused_for_provider(agent_id, request.agent):
            absent.leave(name)
            return
        request.drain = drain
        request.patience.is_pressing = await absent.may_ask(name, providers_of(request.agent))
        if row is not None and is_made:
            await keep_to_parent(engine, row)
            request.host = await terms_of(row)
        absent.begins(name)
        began = engine.clock.now()
        facts: Sequence[StoredFact] = ()
        try:
            with words.running(agent_id, thread_id) as request.seats:
                result = await take_next(engine if supply.owner is None else supply.owner.applied(engine), request)
            facts = result.facts() if result is not None else ()
        finally:
            # An answer from before says nothing of the provider now.
            await absent.learn(name, [entry for entry in facts if entry.fact.at >= began])
        if result is not None and result.waiting_for == "provider":
            await parking.look_at(agent_id, facts)
            await is_paused_for_provider(agent_id, request.agent)
        elif result is not None and result.status == "completed":
            await tell_change(
                engine, partial(named_target, request.agent), agent_id, result.turn_id, result.final_content
            )
        if is_made:
            await tasks.children.look_at(agent_id)

    async def is_paused_for_provider(agent_id: str, agent: Agent[Any, Any]) -> bool:
        """Was the agent paused, because every provider that it could ask refuses requests?"""
        parked = await parking.blocks(agent)
        if parked is None:
            return False
        reason = f"the provider {parked.provider} refuses requests: {parked.message}"
        with suppress(AgentStopped):  # in this moment
            await pause_agent(engine, agent_id, by=RUNTIME, cause="provider", reason=reason)
        return True

    async def terms_of(row: RuntimeAgentRow) -> HostTerms:
        """What holds for the turns of an agent that another one made."""
        lineage = await supply.lineage(row)
        payers = [(name, (await supply.maker(name)).agent.spend_windows) for name in lineage]
        return HostTerms(limits=await tasks.children.limits_of(row), payers=tuple(payers), generation=len(lineage))

    async def target_of(agent_id: str) -> NotifyTarget | None:
        return await target_for(await supply.find(agent_id))

    async def target_for(agent: Agent[Any, Any] | None) -> NotifyTarget | None:
        """Notices about a child go where those about its parent go."""
        return named_target(agent) or await channels.default_target()

    def named_target(agent: Agent[Any, Any] | None) -> NotifyTarget | None:
        """Where somebody said that notices go; a phone that is paired is told of no changes by itself."""
        target = (agent.notify if agent is not None else None) or notify or default_target()
        return None if target is None else resolve_target(target)

    absent = AbsentProviders(engine, lambda names: scheduler.look_at(names), give_up_waiting, patience_of)
    channels = ChannelDesk(engine, connect, partial(carry_out, engine))
    parked = ParkedAgents(engine, supply)
    drain = Drain()
    asked: set[str] = set()
    enforced: list[int] = []

    async def enforce(hold: RuntimeHoldRow) -> None:
        if hold.changed_at not in enforced:
            await tasks.end_commands("everything was stopped")
            asked.clear()
            enforced[:] = [hold.changed_at]  # only now: what the store refused is tried again
        await hold_turns(engine, hold.control, asked)

    async def give_up(agent_id: str, problem: BaseException) -> None:
        is_damaged = isinstance(problem, StoreDamaged)
        wants_code = isinstance(problem, ForTheCaller | ForThePerson) and not is_damaged
        cause: ControlCause = "configuration" if wants_code else "failure"
        with suppress(AgentStopped):  # somebody stopped it: it stays so
            await pause_agent(engine, agent_id, by=RUNTIME, cause=cause, reason=str(problem), is_damaged=is_damaged)
        await parked.note(agent_id)
        await tasks.children.look_at(agent_id)

    async def end_pause(wake: WakeRow) -> None:
        row = await engine.store.runtime_agent(wake.agent_id)
        if row is not None and row.control == "paused" and row.resumes_at is not None:
            with suppress(EventRefused):
                await go_on(row.agent_id, "runtime", row.changed_at)

    async def reload_files(_: WakeRow) -> None:
        await supply.reload()

    tasks.children.end_turn = partial(cancel_turn, engine, requested_by=RUNTIME, reason="parent_cancelled")
    due_work: dict[str, DueWork] = {
        "agent": end_pause,
        "timer": partial(fire_timer, engine, partial(run_check, engine, supply)),
        "wait": partial(end_wait, engine),
        "hint": partial(trigger_hints, engine),
        "work": partial(wake_for_work, engine),
        "recheck": partial(remind_of_blocker, engine),
        "notice": NoticeDelivery(engine, target_of, send, channels.deliver).deliver,
        "channel": channels.work,
        "reminder": partial(remind_of_action, engine),
        "provider": parking.probe,
        "reload": reload_files,
        "worktree": partial(settle_worktree, engine),
        "task": tasks.carry_out_stop,
    }
    folders = MissingFolders(engine.store, partial(defer_message, engine, reason="the folder is back", within=0))
    parts = FailingParts(engine)
    scheduler = Scheduler(
        engine.store, engine.clock, run_thread, give_up, due_work, places, enforce, folders, parts.safely
    )
    watchdog = Watchdog(engine, scheduler.has_in_hand, scheduler.look_at)
    refusals = RefusalTally(engine)

    async def is_well() -> bool:
        return await living.is_well("heartbeat")

    heartbeat = Heartbeat(engine, owner_heartbeat, is_well, ping)
    living = LivingRuntime(
        engine,
        supply,
        scheduler,
        tasks,
        watchdog,
        retention,
        parking,
        refusals,
        words,
        channels,
        heartbeat,
        parts,
        parked,
        absent,
        drain,
        public_url,
    )
    return living
