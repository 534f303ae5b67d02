"""The same story told to two stores at once: model, tools, cancels, people and crashes in any order."""

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kit.runs.engine_runs import check_ends, essence, facts_of, folded
from wakeful import Agent, OutcomeUnknown, RunContext, ToolRetry, cancel, run, tool
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import UnknownResolved
from wakeful.ports import ModelRequest, Store, TurnRow
from wakeful.providers.scripted import ScriptedModel
from wakeful.service.queries.replay import replay_turn
from wakeful.store.memory import MemoryStore
from wakeful.store.sqlite import SqliteStore

NAMES = ("pure", "keyed", "irreversible")
QUIET = 4
"""So many looks in a row must show the same before a world counts as waiting."""


class World:
    """One store, and the run on it. Its model and its tools wait until they are told what to say."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.asked: asyncio.Future[Any] | None = None
        self.waiting: dict[str, asyncio.Future[Any]] = {}
        self.task: asyncio.Task[Any] | None = None
        self.turns = 0
        self.agent: Agent[None, str] = Agent("any", ScriptedModel(self._answer), tools=[self._tool(n) for n in NAMES])

    async def _answer(self, request: ModelRequest) -> Any:
        self.asked = asyncio.get_running_loop().create_future()
        try:
            return await self.asked
        finally:
            self.asked = None

    def _tool(self, effect: Any) -> Any:
        @tool(name=effect, effect=effect)
        async def act(ctx: RunContext[None]) -> Any:
            future = self.waiting[ctx.call_id] = asyncio.get_running_loop().create_future()
            try:
                return await future
            finally:
                del self.waiting[ctx.call_id]

        return act

    def go(self) -> None:
        work = run(self.agent, f"turn {self.turns}", store=self.store, thread="t", key=f"k{self.turns}")
        self.task = asyncio.get_running_loop().create_task(work)

    @property
    def look(self) -> tuple[bool, bool, list[str]]:
        over = self.task is None or self.task.done()
        return over, self.asked is not None, sorted(self.waiting)

    async def row(self) -> TurnRow:
        found = await self.store.turn_of_key(f"k{self.turns}")
        assert found is not None
        return found


class Interleavings(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.mkdtemp()
        self.worlds = self.loop.run_until_complete(self._open())

    async def _open(self) -> list[World]:
        return [World(MemoryStore()), World(await SqliteStore.open(Path(self.folder) / "runs.db"))]

    def _do(self, action: Any) -> None:
        async def both() -> None:
            for world in self.worlds:
                outcome = action(world)
                if asyncio.iscoroutine(outcome):
                    await outcome
            await self._settle()

        self.loop.run_until_complete(both())

    async def _settle(self) -> None:
        """Until both worlds wait for the same things."""
        seen: list[Any] = []
        for _ in range(3000):
            looks = [world.look for world in self.worlds]
            seen = [*seen, looks[0]] if looks[0] == looks[1] and (not seen or looks[0] == seen[-1]) else []
            if len(seen) >= QUIET and any(looks[0]) and await self._agree():
                return
            await asyncio.sleep(0.002)
        raise AssertionError(f"the worlds do not agree: {[world.look for world in self.worlds]}")

    async def _agree(self) -> bool:
        """A commit may still be on its way to the disk; it has a few seconds to come."""
        if not self.worlds[0].turns:
            return True
        first, second = [essence(await folded(world.store, await world.row())) for world in self.worlds]
        return first == second

    @property
    def over(self) -> bool:
        return self.worlds[0].look[0]

    @precondition(lambda self: self.over)
    @rule()
    def begin(self) -> None:
        def start(world: World) -> None:
            world.turns += 1
            world.go()

        self._do(start)

    @precondition(lambda self: self.worlds[0].look[1])
    @rule(names=st.lists(st.sampled_from((*NAMES, "nowhere")), max_size=4))
    def model_answers(self, names: list[str]) -> None:
        step: Any = {"text": "so", "calls": [{"name": name} for name in names]} if names else "done"
        self._do(lambda world: world.asked.set_result(step))

    @precondition(lambda self: self.worlds[0].look[2])
    @rule(which=st.integers(0, 7), how=st.sampled_from(("returns", "raises", "retries", "unsure", "large")))
    def tool_ends(self, which: int, how: str) -> None:
        call_id = self.worlds[0].look[2][which % len(self.worlds[0].look[2])]

        def end(world: World) -> None:
            future = world.waiting[call_id]
            if how == "returns":
                future.set_result(f"result of {call_id}")
            elif how == "large":
                future.set_result("0123456789" * 10_000)
            else:
                errors = {"raises": ValueError("no"), "retries": ToolRetry("again"), "unsure": OutcomeUnknown("?")}
                future.set_exception(errors[how])

        self._do(end)

    @precondition(lambda self: not self.over)
    @rule()
    def crash(self) -> None:
        async def die(world: World) -> None:
            assert world.task is not None
            world.task.cancel()
            await asyncio.wait({world.task})
            world.go()

        self._do(die)

    @precondition(lambda self: not self.over)
    @rule()
    def somebody_cancels(self) -> None:
        async def stop(world: World) -> None:
            await cancel(world.store, (await world.row()).turn_id)

        self._do(stop)

    @precondition(lambda self: self.worlds[0].turns > 0)
    @rule(which=st.integers(0, 7), happened=st.booleans())
    def somebody_finds_out(self, which: int, happened: bool) -> None:
        async def resolve(world: World) -> None:
            unknown = await world.store.unknown()
            if not unknown:
                return
            found = unknown[which % len(unknown)]
            event = UnknownResolved(
                call_id=found.call_id, tool_name=found.tool, happened=happened, result="seen", source="operator"
            )
            now = (await world.row()).created_at
            await world.store.admit(found.agent_id, [Fact(event, now, found.thread_id, found.turn_id, found.step)])

        self._do(resolve)

    @invariant()
    def both_fold_the_same(self) -> None:
        async def compare() -> None:
            if not self.worlds[0].turns:
                return
            states = [essence(await folded(world.store, await world.row())) for world in self.worlds]
            assert states[0] == states[1]
            told = [[(row.call_id, row.tool) for row in await world.store.unknown()] for world in self.worlds]
            assert told[0] == told[1]

        self.loop.run_until_complete(compare())

    def teardown(self) -> None:
        self.loop.run_until_complete(self._end())
        self.loop.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    async def _end(self) -> None:
        """Let every turn end, and hold its decisions to the log."""
        for world in self.worlds:
            while not world.look[0]:
                if world.asked is not None and not world.asked.done():
                    world.asked.set_result("done")
                for future in world.waiting.values():
                    if not future.done():
                        future.set_result("fine")
                await asyncio.sleep(0.002)
            if world.task is not None:
                world.task.result()
            for row in await world.store.turns():
                check_ends(await facts_of(world.store, row.turn_id))
                replayed = await replay_turn(world.store, row)
                assert replayed.identical, replayed.divergence
            assert await world.store.verify() == []
            await world.store.close()


Interleavings.TestCase.settings = settings(
    max_examples=20, stateful_step_count=16, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestInterleavings = Interleavings.TestCase
