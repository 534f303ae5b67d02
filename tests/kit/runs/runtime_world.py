"""A seeded world around a runtime: messages, triggers, waits, timers, work, tasks, children, money that runs out,
pauses, stops, of one agent or of all, cancelled turns, decisions, jumps of time, kills, and a provider that is away,
busy or breaks off, in any order.

`live(seed)` lets it run on a virtual clock and gives back what is wrong at the end, in words; nothing: all invariants
held (`runtime_invariants`). The same seed is the same story. `wrap` and `fault` put in a part that is broken on
purpose: what is wrong then must be found.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from kit.runs.runtime_invariants import (
    HOUR_US,
    PERSON,
    overspent,
    what_is_left,
    what_is_wrong_between,
    what_is_wrong_with,
)
from kit.runs.world_agents import AGENTS, HOURLY, SPENDER, TROUBLES, WORDS, WORKER, Deeds, Fault, Sky, agents_of
from kit.runs.world_clocks import WrongClocks
from wakeful import Approve, Reject, Runtime
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.messages import Priority
from wakeful.contracts.retention import Retention
from wakeful.contracts.spending import agent_scope
from wakeful.contracts.waking import CatchUp
from wakeful.errors import AgentStopped
from wakeful.ports import Store
from wakeful.service.commands.approvals import decide
from wakeful.service.commands.interruption import cancel_turn
from wakeful.service.commands.spend_windows import grant
from wakeful.store.memory import MemoryStore
from wakeful.testing import FixedClock, SequentialIds
from wakeful.testing.crash_rows import find_misfits
from wakeful.testing.crash_snapshot import find_differences

THREADS = ("main", "chat-1", "chat-2")
TRIGGER = "ci"
"""The named trigger that brings messages; the other one of an agent hints."""
HOUR, DAY = 3_600.0, 86_400.0
STEPS = 24
PACES = (0, 2, 5, 15, 40, 150)
"""How far agents get between two things that happen."""
MOST_ROUNDS = 80
"""Hours that pass at the end until nothing is owed any more: money comes by the hour."""
OUTAGES = (0.25, 3.0, HOUR, 5 * HOUR)
"""Seconds that the provider is away."""
CATCH_UP: tuple[CatchUp, ...] = ("one", "all", "none")


class _AtOnce(ThreadPoolExecutor):
    """Does what is handed to a thread at once, so that a story does not depend on how fast threads are."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        done: Future[Any] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except BaseException as problem:
            done.set_exception(problem)
        return done


@dataclass
class World:
    """What happened so far, beside the store: what was acknowledged, and what tools did."""

    seed: int
    fault: Fault = ""
    wrap: Callable[[Store], Any] = lambda store: store
    clock: FixedClock = field(default_factory=FixedClock)
    ids: SequentialIds = field(default_factory=SequentialIds)
    acknowledged: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By message: its agent and thread."""
    granted: dict[int, Decimal] = field(default_factory=dict)
    """By hour: dollars that somebody allowed besides."""
    refused: int = 0
    let_in: list[str] = field(default_factory=list)
    """What was accepted while everything was stopped."""

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.memory = MemoryStore()
        self.store = self.wrap(self.memory)
        self.deeds = Deeds(self.chance, Sky(self.clock.monotonic), self.fault)
        self.agents = agents_of(self.deeds)
        keeps = Retention() if self.seed % 8 == 0 else Retention(blobs=0)
        self.options: dict[str, Any] = {"clock": self.clock, "ids": self.ids, "grace": 0, "retention": keeps}

    @asynccontextmanager
    async def runtime(self) -> AsyncIterator[Runtime]:
        async with Runtime(store=self.store, agents=self.agents, max_turns=4, **self.options) as rt:
            self.deeds.rt = rt
            self.deeds.is_open.set()
            yield rt
            self.deeds.is_open.clear()  # and it is gone in the middle of what it did


async def live(seed: int, *, wrap: Callable[[Store], Any] = lambda store: store, fault: Fault = "") -> list[str]:
    """One story, and what is wrong at its end."""
    asyncio.get_running_loop().set_default_executor(_AtOnce())
    world = World(seed, fault, wrap)
    clocks = WrongClocks(world.clock, seed)
    left = STEPS
    while left > 0:
        world.deeds.patience.clear()
        clocks.set_for_a_life()
        async with world.runtime() as rt:
            for _ in range(min(left, world.chance.randrange(1, 12))):
                left -= 1
                await _something(world, rt)
                for _ in range(world.chance.choice(PACES)):
                    await asyncio.sleep(0)  # the agents get so far with it, and no further
    world.deeds.patience.set()
    clocks.set_right()
    async with world.runtime() as rt:
        await _come_to_an_end(world, rt)
    return await _wrong(world)


async def _come_to_an_end(world: World, rt: Runtime) -> None:
    """Nothing new is asked for: everything that was owed comes to its end, if hours pass."""
    for timer in await rt.timers():
        await rt.cancel_timer(timer.timer_id)
    for agent in AGENTS:
        await rt.resume(agent)
    await rt.resume_all()
    await _until_nothing_is_owed(world, rt)
    world.clock.advance(30 * HOUR)
    await _until_nothing_is_owed(world, rt)  # what an agent began by itself in the meantime


async def _until_nothing_is_owed(world: World, rt: Runtime) -> None:
    for _ in range(MOST_ROUNDS):
        await _settle(world, rt)
        if not await _owed(world):
            return
        world.clock.advance(HOUR)


async def _settle(world: World, rt: Runtime) -> None:
    """Until nothing runs and nothing is due: people decide, commands end, and what comes of that has run."""
    for _ in range(MOST_ROUNDS):
        await rt.settled()
        acted = await _decide(world, all_of_them=True)
        running = [row for row in await world.store.open_tasks() if row.kind == "command_task"]
        if not acted and not running:
            return
        world.deeds.end_commands(all_of_them=True)
        for _ in range(20 if running else 0):
            await asyncio.sleep(0)  # their ends are written down


async def _owed(world: World) -> bool:
    """Is there anything that a time would bring on?"""
    store = world.memory
    if await store.busy_threads() or await store.open_tasks() or await store.all_open_waits(limit=1):
        return True
    return bool(await store.all_deferred(limit=1) or await store.all_pending_hints(limit=1))


async def _something(world: World, rt: Runtime) -> None:
    chance = world.chance
    agent = chance.choice(AGENTS)
    match chance.randrange(27):
        case 0 | 1 | 2 | 3 | 4 | 5:
            await _send(world, rt, agent)
        case 6:
            with suppress(AgentStopped):  # it stays so
                await rt.pause(agent, seconds=chance.choice((None, 5.0, 600.0, 2 * DAY)))
        case 7:
            await rt.stop(agent)
        case 8:
            await rt.resume(agent)
        case 9:
            world.clock.advance(chance.choice((0.5, 20.0, 3_600.0, DAY)))
        case 10:
            world.deeds.patience.set()
            await rt.settled()
            world.deeds.patience.clear()
        case 11:
            await _decide(world)
        case 12 | 13:
            await _arm(world, rt, agent)
        case 14:
            await _hint(world, rt, agent)
        case 15:
            await _enqueue(world, rt)
        case 16:
            world.clock.skip(chance.choice((7_200.0, -7_200.0)))
        case 17 | 18:
            await _deliver(world, rt, agent)
        case 19:
            await _hold(world, rt)
        case 20 | 21:
            await rt.resume_all()
        case 22:
            await _cancel(world)
        case 23:
            world.deeds.sky.away_until = world.clock.monotonic() + chance.choice(OUTAGES)
        case 24 | 25:
            world.deeds.sky.troubles += chance.choices(TROUBLES, k=chance.choice((1, 1, 2, 4)))
        case _:
            world.deeds.end_commands()
            await _grant(world)


async def _send(world: World, rt: Runtime, agent: str) -> None:
    chance, thread = world.chance, world.chance.choice(THREADS)
    words = chance.choice(WORDS)
    try:
        match chance.randrange(4):
            case 0:
                key = f"key-{chance.randrange(1_000_000)}"
                sent = await rt.send(agent, words, thread=thread, key=key)
                again = await rt.send(agent, words, thread=thread, key=key)
                assert again.message_id == sent.message_id
            case 1:
                band: Priority = chance.choice(("next", "background", "interject"))
                sent = await rt.send(agent, words, thread=thread, priority=band)
            case 2:
                sent = await rt.send(agent, words, thread=thread, supersede=True)
            case _:
                sent = await rt.receive(agent, {"says": words}, webhook="ci", thread=thread)
    except AgentStopped:
        world.refused += 1
        return
    await _acknowledged(world, sent.message_id, agent, thread)


async def _acknowledged(world: World, message_id: str, agent: str, thread: str) -> None:
    world.acknowledged[message_id] = agent, thread
    hold = await world.memory.runtime_hold()
    if hold is not None and hold.control == "stopped":
        world.let_in.append(f"message {message_id} was let in while everything was stopped")


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


async def _deliver(world: World, rt: Runtime, agent: str) -> None:
    """A program outside calls an address, and calls it again when it is not sure."""
    chance = world.chance
    named = chance.choice((agent, f"{agent}/{TRIGGER}"))
    if "/" in named and not any(row.name == TRIGGER for row in await rt.triggers(agent)):
        await rt.create_trigger(agent, TRIGGER, say=chance.choice(("", "please act")))
    elif "/" not in named:
        await rt.create_trigger(agent)
    address = await rt.trigger_url(named)
    body = chance.choice((b"", b"please act", b"please start", b"please spawn"))
    receipt = await rt.deliver(address, body, {"Content-Type": "text/plain"})
    if receipt.outcome == "refused":
        world.refused += 1
    elif receipt.message_id is not None:
        await _acknowledged(world, receipt.message_id, agent, "main")


async def _hold(world: World, rt: Runtime) -> None:
    """Somebody wants quiet, and says it once more when it is quiet already."""
    hold = rt.pause_all if world.chance.random() < 0.6 else rt.stop_all
    await hold()


async def _cancel(world: World) -> None:
    """A person has a turn stopped, whatever it is at."""
    engine = new_engine(world.store, clock=world.clock, ids=world.ids)
    turns = [row async for row in world.store.open_turns()]
    if turns:
        await cancel_turn(engine, world.chance.choice(turns).turn_id, requested_by=PERSON)


async def _grant(world: World) -> None:
    """A person allows more money in this hour."""
    engine = new_engine(world.store, clock=world.clock, ids=world.ids)
    amount = Decimal("0.20")
    await grant(engine, agent_scope(SPENDER), amount, "hour", by=PERSON)
    hour = world.clock.now() // HOUR_US
    world.granted[hour] = world.granted.get(hour, Decimal(0)) + amount


async def _enqueue(world: World, rt: Runtime) -> None:
    try:
        await rt.enqueue(WORKER, "Tidy up.")
    except AgentStopped:
        world.refused += 1


async def _decide(world: World, *, all_of_them: bool = False) -> bool:
    """A person approves what waits. Was there anything?"""
    engine = new_engine(world.store, clock=world.clock, ids=world.ids)
    waiting = await world.store.actions(pending_only=True)
    for action in waiting:
        if all_of_them or world.chance.random() < 0.5:
            said = Approve() if all_of_them or world.chance.random() < 0.7 else Reject("not now")
            await decide(engine, action.action_id, said, by=PERSON)
    return bool(waiting)


async def _wrong(world: World) -> list[str]:
    found = [*await find_misfits(world.memory), *await find_differences(world.memory), *world.let_in]
    logs = {agent: await world.memory.read(agent) for agent in await world.memory.agents()}
    for agent, entries in logs.items():
        found += what_is_wrong_with(agent, entries)
    found += what_is_wrong_between(logs)
    found += overspent(logs, SPENDER, HOURLY, world.granted)
    found += await what_is_left(world.memory, logs, world.acknowledged, world.clock.now())
    effects = Counter(world.deeds.effects)
    return found + [f"effect {key} was made {count} times" for key, count in effects.items() if count > 1]
