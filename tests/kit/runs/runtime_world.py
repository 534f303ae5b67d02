"""A seeded world around a runtime: messages, pauses, stops, jumps of time and kills, in any order, on a virtual clock.

`live(seed)` lets it run and gives back what is wrong at the end, in words; nothing: all invariants held. The same seed
is the same story. `wrap` and `repeats` put in a part that is broken on purpose: what is wrong then must be found.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from wakeful import Agent, Approve, RunContext, Runtime, tool
from wakeful.bootstrap import new_engine
from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.events import (
    AgentStateChanged,
    MessageAdmitted,
    TimerFired,
    TimerFolded,
    TimerMissed,
    TurnStarted,
)
from wakeful.contracts.waking import CatchUp
from wakeful.errors import AgentStopped
from wakeful.ports import ModelRequest, Store
from wakeful.service.commands.approvals import decide
from wakeful.store.memory import MemoryStore
from wakeful.testing import FixedClock, SequentialIds, scripted
from wakeful.testing.crash_rows import find_misfits

AGENTS = ("ada", "bob", "cleo")
THREADS = ("main", "chat-1", "chat-2")
DAY = 86_400.0
STEPS = 30
CATCH_UP: tuple[CatchUp, ...] = ("one", "all", "none")
FROM_OUTSIDE = ("operator_prompt", "channel_event", "webhook_event")


@dataclass
class World:
    """What happened so far, beside the store: what was acknowledged, and what tools did."""

    seed: int
    repeats: bool = False
    """The tool makes its effect again when it is asked again: what a keyed tool must not do."""
    wrap: Callable[[Store], Any] = lambda store: store
    clock: FixedClock = field(default_factory=FixedClock)
    ids: SequentialIds = field(default_factory=SequentialIds)
    acknowledged: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By message: its agent and thread."""
    refused: int = 0
    effects: list[str] = field(default_factory=list)
    """The keys of effects, each time one was made."""

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.patience = asyncio.Event()
        """Set: tools that take a while have come to their end."""
        self.memory = MemoryStore()
        self.store = self.wrap(self.memory)
        self.agents = [self._agent(name) for name in AGENTS]

    def _agent(self, name: str) -> Agent[None, str]:
        @tool(effect="keyed")
        async def act(ctx: RunContext[None]) -> str:
            """Do something, and take a while to say so."""
            if self.repeats or ctx.idempotency_key not in self.effects:
                self.effects.append(ctx.idempotency_key)
            if self.chance.random() < 0.5:
                await self.patience.wait()
            return "done"

        def answer(request: ModelRequest) -> object:
            acts = request.answered == 0 and "act" in str(request.history[-1].text)
            return {"calls": [{"name": "act", "arguments": {}}]} if acts else "ok"

        return Agent(name, scripted(answer), tools=[act])

    def runtime(self) -> Runtime:
        return Runtime(store=self.store, agents=self.agents, clock=self.clock, ids=self.ids, grace=0, max_turns=4)


async def live(seed: int, *, wrap: Callable[[Store], Any] = lambda store: store, repeats: bool = False) -> list[str]:
    """One story, and what is wrong at its end."""
    world = World(seed, repeats, wrap)
    left = STEPS
    while left > 0:
        world.patience.clear()
        async with world.runtime() as rt:
            for _ in range(min(left, world.chance.randrange(1, 12))):
                left -= 1
                await _something(world, rt)
                for _ in range(world.chance.randrange(200)):
                    await asyncio.sleep(0)  # the agents get so far with it, and no further
        # The runtime is gone in the middle of what it did.
    world.patience.set()
    async with world.runtime() as rt:
        for timer in await rt.timers():
            await rt.cancel_timer(timer.timer_id)
        for agent in AGENTS:
            await rt.resume(agent)
        for _ in range(12):
            await rt.settled()
            await _decide(world, all_of_them=True)
            world.clock.advance(400)
        await rt.settled()
    return await _wrong(world)


async def _something(world: World, rt: Runtime) -> None:
    chance = world.chance
    agent = chance.choice(AGENTS)
    match chance.randrange(14):
        case 0 | 1 | 2 | 3 | 4:
            await _send(world, rt, agent)
        case 5:
            await rt.pause(agent, seconds=chance.choice((None, 5.0, 600.0, 2 * DAY)))
        case 6:
            await rt.stop(agent)
        case 7:
            await rt.resume(agent)
        case 8:
            world.clock.advance(chance.choice((0.5, 20.0, 3_600.0, DAY)))
        case 9:
            world.patience.set()
            await rt.settled()
            world.patience.clear()
        case 10:
            await _decide(world)
        case 11 | 12:
            await _arm(world, rt, agent)
        case 13:
            await _hint(world, rt, agent)


async def _send(world: World, rt: Runtime, agent: str) -> None:
    chance, thread = world.chance, world.chance.choice(THREADS)
    words = chance.choice(("hello", "please act"))
    try:
        match chance.randrange(3):
            case 0:
                key = f"key-{chance.randrange(1_000_000)}"
                sent = await rt.send(agent, words, thread=thread, key=key)
                again = await rt.send(agent, words, thread=thread, key=key)
                assert again.message_id == sent.message_id
            case 1:
                sent = await rt.send(agent, words, thread=thread, priority=chance.choice(("next", "background")))
            case _:
                sent = await rt.receive(agent, {"says": words}, webhook="ci", thread=thread)
    except AgentStopped:
        world.refused += 1
        return
    world.acknowledged[sent.message_id] = agent, thread


async def _arm(world: World, rt: Runtime, agent: str) -> None:
    """A single time, or a cron line that is due often."""
    chance, name = world.chance, f"timer-{world.chance.randrange(1_000_000)}"
    catch_up: CatchUp = chance.choice(CATCH_UP)
    thread = chance.choice(("fresh", "main"))
    if chance.random() < 0.5:
        at = datetime.fromtimestamp(world.clock.now() / 1e6 + chance.choice((1.0, 500.0, DAY)), UTC)
        await rt.arm_timer(agent, "hello", at=at, name=name, thread=thread, catch_up=catch_up)
    else:
        cron = chance.choice(("*/20 * * * *", "0 7 * * *"))
        await rt.arm_timer(agent, "please act", cron=cron, name=name, thread=thread, catch_up=catch_up)


async def _hint(world: World, rt: Runtime, agent: str) -> None:
    try:
        await rt.wake(agent, "something changed", body=world.chance.choice((None, "the build is red")))
    except AgentStopped:
        world.refused += 1


def _due_times(entries: Sequence[StoredFact]) -> list[str]:
    """Due times of timers that were settled more than once."""
    found: list[str] = []
    settled: dict[str, int] = {}
    for entry in entries:
        event = entry.fact.event
        if isinstance(event, TimerFired | TimerFolded | TimerMissed):
            if event.due_at <= settled.get(event.timer_id, 0):
                found.append(f"due time {event.due_at} of {event.timer_id} was settled again, by {event.kind}")
            settled[event.timer_id] = event.due_at if isinstance(event, TimerFired) else event.last
    return found


def _let_in_while_stopped(agent: str, entries: Sequence[StoredFact]) -> list[str]:
    """Messages from outside that a stopped agent has all the same."""
    found, control = [], "running"
    for entry in entries:
        event = entry.fact.event
        if isinstance(event, AgentStateChanged):
            control = event.control
        elif (
            isinstance(event, MessageAdmitted) and control == "stopped" and event.delivery_surface != "timer_scheduler"
        ):
            found.append(f"message {event.message_id} was let in while {agent} was stopped")
    return found


async def _decide(world: World, *, all_of_them: bool = False) -> None:
    """A person approves what waits."""
    engine = new_engine(world.store, clock=world.clock, ids=world.ids)
    for action in await world.store.actions(pending_only=True):
        if all_of_them or world.chance.random() < 0.5:
            await decide(engine, action.action_id, Approve(), by="ada")


async def _wrong(world: World) -> list[str]:
    found = [*await find_misfits(world.memory)]
    admitted: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    for agent in AGENTS:
        entries = await world.memory.read(agent)
        found += [*_let_in_while_stopped(agent, entries), *_due_times(entries)]
        admitted.update(e.fact.event.message_id for e in entries if isinstance(e.fact.event, MessageAdmitted))
        for entry in entries:
            if isinstance(entry.fact.event, TurnStarted):
                taken.update(entry.fact.event.message_ids)
    for message, (agent, _) in world.acknowledged.items():
        row = await world.memory.message(message)
        if row is None or admitted[message] != 1:
            found.append(f"message {message} of {agent} was acknowledged and is not in the log once")
        elif row.state != "processed":
            found.append(f"message {message} of {agent} was acknowledged and is {row.state}")
        if taken[message] > 1:
            found.append(f"message {message} of {agent} was taken by {taken[message]} turns")
    found += [f"effect {key} was made {count} times" for key, count in Counter(world.effects).items() if count > 1]
    for thread in await world.memory.busy_threads():
        found.append(f"thread {thread.thread_id} of {thread.agent_id} is open and nobody runs it")
    return found
