"""An agent that has lived long: its turns and the passes of retention are as much work as when it was young."""

import asyncio
from pathlib import Path

import pytest
from benchmarks.work_counts import WorkCounts, counted_steps
from benchmarks.year import look_up, reply

from wakeful import Agent, Retention, Runtime
from wakeful.runtime.retention import RetentionPass
from wakeful.testing import FixedClock, scripted

HOUR = 3_600.0
YOUNG, OLD = 120, 420
"""Turns. Whatever reads a row for each of them does a quarter more work than a turn is, at the least."""


class Life:
    """Of one agent that is asked about orders, in a thread of its own each time."""

    def __init__(self, rt: Runtime, clock: FixedClock, counts: WorkCounts) -> None:
        self.rt, self.clock, self.counts = rt, clock, counts
        self.turns = 0

    async def turn(self) -> None:
        self.turns += 1
        words = f"Where is order {self.turns:06d}"
        await self.rt.answer(await self.rt.send("ops", words, thread=f"t{self.turns}"))
        self.clock.advance(HOUR / 4)

    async def until(self, turns: int) -> None:
        while self.turns < turns:
            await self.turn()

    async def settled(self) -> None:
        """What a turn leaves to do for others is done."""
        for _ in range(20):
            await asyncio.sleep(0)

    async def work_of_a_turn(self) -> tuple[int, int]:
        """Calls and steps: the least of a few, because what others do beside a turn is no part of it."""
        found = []
        for _ in range(8):
            await self.settled()
            with self.counts.counting():
                await self.turn()
            found.append((self.counts.calls, self.counts.steps))
        return min(calls for calls, _ in found), min(steps for _, steps in found)

    async def work_of_a_pass(self) -> int:
        """Steps of a pass in which one turn has reached its age."""
        store, terms = self.rt._here.engine.store, Retention(turns=1, feed=1, spilled_output=1, temporary_agents=1)
        for _ in range(2):
            await self.turn()
            self.clock.advance(3 * 24 * HOUR)
            await self.settled()
            with self.counts.counting():
                await RetentionPass(store, self.clock, terms).run()
        return self.counts.steps


async def test_a_turn_and_a_pass_are_not_more_work_when_there_were_many_turns(tmp_path: Path) -> None:
    clock = FixedClock()
    ops = Agent("ops", scripted(reply), tools=[look_up])
    for_ever = Retention(turns=0, temporary_agents=0, task_output=0, spilled_output=0, blobs=0, feed=0)
    with counted_steps() as counts:
        async with Runtime(tmp_path, agents=[ops], clock=clock, retention=for_ever) as rt:
            life = Life(rt, clock, counts)
            await life.until(YOUNG)
            young, passed = await life.work_of_a_turn(), await life.work_of_a_pass()
            await life.until(OLD)
            old, passed_then = await life.work_of_a_turn(), await life.work_of_a_pass()
    assert young[1] > 1_000, "it is counted"
    assert old[0] == pytest.approx(young[0], rel=0.05)
    assert old[1] == pytest.approx(young[1], rel=0.05)
    # Names of blobs are listed, one or none a turn. A row of the log for each would take 20 steps and more.
    assert passed_then - passed < 12 * (OLD - YOUNG)
