"""A seeded world around a runtime: messages, waits, timers, work, pauses, stops, jumps of time and kills, in any order.

`live(seed)` lets it run on a virtual clock and gives back what is wrong at the end, in words; nothing: all invariants
held (`runtime_invariants`). The same seed is the same story. `wrap` and `repeats` put in a part that is broken on
purpose: what is wrong then must be found.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from kit.runs.runtime_invariants import what_is_left, what_is_wrong_with
from wakeful import Agent, Approve, RunContext, Runtime, tool
from wakeful.bootstrap import new_engine
from wakeful.contracts.messages import Priority
from wakeful.contracts.waking import CatchUp
from wakeful.errors import AgentStopped
from wakeful.ports import ModelRequest, Store
from wakeful.service.commands.approvals import decide
from wakeful.store.memory import MemoryStore
from wakeful.testing import FixedClock, SequentialIds, scripted
from wakeful.testing.crash_rows import find_misfits

AGENTS = ("ada", "bob", "cleo")
WORKER = "cleo"
"""The one with work items."""
THREADS = ("main", "chat-1", "chat-2")
HOUR, DAY = 3_600.0, 86_400.0
STEPS = 30
CATCH_UP: tuple[CatchUp, ...] = ("one", "all", "none")
WORDS = ("hello", "please act", "please wait", "please sleep", "please plan")


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
            if request.answered:
                return "ok"
            call = self._call(str(request.history[-1].text), works=name == WORKER)
            return "ok" if call is None else {"calls": [{"name": call[0], "arguments": call[1]}]}

        return Agent(name, scripted(answer), tools=[act], work_items=name == WORKER)

    def _call(self, text: str, *, works: bool) -> tuple[str, dict[str, Any]] | None:
        """What a model does about the words it is woken with."""
        chance = self.chance
        item = next((word.rstrip(",.:") for word in text.split() if word.startswith("wi_")), None)
        if works and item is not None:
            if "Pick one" in text:
                return "pick_work_item", {"work_item_id": item}
            return None if chance.random() < 0.5 else ("complete_work_item", {"work_item_id": item})
        if "please act" in text:
            return "act", {}
        if works and "please plan" in text:
            return "create_work_item", {"objective": "Tidy up."}
        if "please wait" in text:
            wake = chance.choice(("operator_input", "external", "timer"))
            return "wait_for", {"reason": "the bus", "wake": wake, "deadline_ms": chance.choice((1_000, 7_200_000))}
        if "please sleep" in text:
            return "sleep", {"reason": "tired"} | chance.choice(({}, {"duration_ms": 600_000}))
        return None

    def runtime(self) -> Runtime:
        return Runtime(store=self.store, agents=self.agents, clock=self.clock, ids=self.ids, grace=0, max_turns=4)


async def live(seed: int, *, wrap: Callable[[Store], Any] = lambda store: store, repeats: bool = False) -> list[str]:
    """One story, and what is wrong at its end."""
    asyncio.get_running_loop().set_default_executor(_AtOnce())
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
        await _come_to_an_end(world, rt)
    return await _wrong(world)


async def _come_to_an_end(world: World, rt: Runtime) -> None:
    """Nothing new is asked for: everything that was owed comes to its end within two days."""
    for timer in await rt.timers():
        await rt.cancel_timer(timer.timer_id)
    for agent in AGENTS:
        await rt.resume(agent)
    for hours in (0.1, 0.1, 0.5, 0.5, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 30):
        await rt.settled()
        await _decide(world, all_of_them=True)
        world.clock.advance(hours * HOUR)
    await rt.settled()
    await _decide(world, all_of_them=True)
    await rt.settled()


async def _something(world: World, rt: Runtime) -> None:
    chance = world.chance
    agent = chance.choice(AGENTS)
    match chance.randrange(16):
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
        case 14:
            await _enqueue(world, rt)
        case 15:
            world.clock.skip(chance.choice((7_200.0, -7_200.0)))


async def _send(world: World, rt: Runtime, agent: str) -> None:
    chance, thread = world.chance, world.chance.choice(THREADS)
    words = chance.choice(WORDS)
    try:
        match chance.randrange(3):
            case 0:
                key = f"key-{chance.randrange(1_000_000)}"
                sent = await rt.send(agent, words, thread=thread, key=key)
                again = await rt.send(agent, words, thread=thread, key=key)
                assert again.message_id == sent.message_id
            case 1:
                band: Priority = chance.choice(("next", "background", "interject"))
                sent = await rt.send(agent, words, thread=thread, priority=band)
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


async def _enqueue(world: World, rt: Runtime) -> None:
    try:
        await rt.enqueue(WORKER, "Tidy up.")
    except AgentStopped:
        world.refused += 1


async def _decide(world: World, *, all_of_them: bool = False) -> None:
    """A person approves what waits."""
    engine = new_engine(world.store, clock=world.clock, ids=world.ids)
    for action in await world.store.actions(pending_only=True):
        if all_of_them or world.chance.random() < 0.5:
            await decide(engine, action.action_id, Approve(), by="ada")


async def _wrong(world: World) -> list[str]:
    found = [*await find_misfits(world.memory)]
    for agent in AGENTS:
        found += what_is_wrong_with(agent, await world.memory.read(agent), "act")
    found += await what_is_left(world.memory, AGENTS, world.acknowledged, world.clock.now())
    found += [f"effect {key} was made {count} times" for key, count in Counter(world.effects).items() if count > 1]
    return found
