"""Named locks: never shared, all or nothing, first come first served, timed, and given back whatever happens."""

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.runs.asked_runs import REFUND, World, agent, check_replay, say
from kit.runs.engine_runs import Died, Dying, of_kind
from wakeful import Approve, RunContext, run, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.events import PermissionEvaluated, ToolFailed, ToolResult
from wakeful.engine.run_request import RunRequest
from wakeful.gate.locks import LockTable
from wakeful.service.commands.interruption import cancel_turn
from wakeful.service.commands.turns import run_turn
from wakeful.store.memory import Memory, MemoryStore

NAMES = ("a", "b", "c", "d")


class Checked(LockTable):
    """A table that is looked at after everything that happens to it."""

    def check(self) -> None:
        waiting = self._waiting
        for place, waiter in enumerate(waiting):
            # Nobody waits without a reason: a name that is held, or that somebody earlier waits for.
            earlier = frozenset[str]().union(*(each.names for each in waiting[:place]))
            assert not waiter.names.isdisjoint(self._held) or not waiter.names.isdisjoint(earlier)
            assert waiter.owner not in self._held.values(), "all or nothing: who waits holds nothing"

    @property
    def held(self) -> dict[str, str]:
        return dict(self._held)


steps = st.lists(
    st.tuples(
        st.sampled_from(["claim", "release", "cancel"]), st.integers(0, 7), st.sets(st.sampled_from(NAMES), min_size=1)
    ),
    max_size=60,
)


@given(steps)
@settings(max_examples=100, deadline=None)
def test_whatever_is_asked_in_whatever_order_no_name_is_shared_and_nobody_waits_in_vain(asked: Any) -> None:
    async def play() -> None:
        table = Checked()
        order: list[tuple[str, frozenset[str]]] = []
        """Who asked, first to last, as long as they wait."""
        tasks: dict[str, asyncio.Task[bool]] = {}
        has: dict[str, frozenset[str]] = {}

        async def claim(owner: str, names: frozenset[str]) -> bool:
            return await table.claim(owner, sorted(names), 60)

        async def settle() -> None:
            for _ in range(5):
                await asyncio.sleep(0)
            for owner in [owner for owner, task in tasks.items() if task.done()]:
                task = tasks.pop(owner)
                names = next(names for who, names in order if who == owner)
                place = order.index((owner, names))
                if not task.cancelled() and task.result():
                    # Fair: nobody earlier who wants any of these still waits.
                    assert all(names.isdisjoint(other) for who, other in order[:place] if who in tasks)
                    has[owner] = names
                order.remove((owner, names))
            taken = [name for names in has.values() for name in names]
            assert len(taken) == len(set(taken)), "no name is held twice"
            assert table.held == {name: owner for owner, names in has.items() for name in names}
            table.check()

        for number, (what, who, names) in enumerate(asked):
            if what == "claim":
                owner = f"{who}.{number}"
                order.append((owner, frozenset(names)))
                tasks[owner] = asyncio.ensure_future(claim(owner, frozenset(names)))
            elif what == "release" and has:
                owner = sorted(has)[who % len(has)]
                del has[owner]
                table.release(owner)
            elif what == "cancel" and tasks:
                tasks[sorted(tasks)[who % len(tasks)]].cancel()
            await settle()
        # No deadlock: when everybody who has something gives it back, everybody gets their turn.
        for _ in range(len(asked) + 1):
            for owner in list(has):
                del has[owner]
                table.release(owner)
            await settle()
        assert not tasks and not has and table.held == {}

    asyncio.run(play())


async def test_a_wait_has_an_end_and_leaves_nothing_behind() -> None:
    table = LockTable()
    assert await table.claim("one", ["a", "b"], 1)
    assert not await table.claim("two", ["b", "c"], 0.01)
    assert table.holders(["a", "b", "c"]) == {"a": "one", "b": "one"}
    assert table.try_claim("three", ["c"]), "who gave up waits for nothing any more"
    table.release("one")
    assert table.try_claim("two", ["a", "b"])


async def test_who_gives_up_lets_those_behind_go_on() -> None:
    table = LockTable()
    table.try_claim("one", ["a"])
    impatient = asyncio.ensure_future(table.claim("two", ["a", "b"], 0.02))
    patient = asyncio.ensure_future(table.claim("three", ["b"], 60))
    await asyncio.sleep(0)
    assert not patient.done(), "first come, first served: b is free, and somebody earlier wants it"
    assert not await impatient
    assert await asyncio.wait_for(patient, 60)


async def test_a_claim_that_is_granted_to_somebody_who_just_left_is_free_again() -> None:
    table = LockTable()
    table.try_claim("one", ["a"])
    waiting = asyncio.ensure_future(table.claim("two", ["a"], 60))
    await asyncio.sleep(0)
    table.release("one")
    assert table.holders(["a"]) == {"a": "two"}
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert table.holders(["a"]) == {}


def test_who_has_them_already_keeps_them() -> None:
    table = LockTable()
    assert table.try_claim("one", ["a", "b"]) and table.try_claim("one", ["a", "b"])
    assert not table.try_claim("two", ["a"])
    table.release("one")
    assert table.try_claim("two", ["a", "b"])


class Watched(LockTable):
    """A table that says when somebody waits at it."""

    def __init__(self) -> None:
        super().__init__()
        self.somebody_waits = asyncio.Event()

    async def claim(self, owner: str, names: Sequence[str], timeout: float) -> bool:
        self.somebody_waits.set()
        return await super().claim(owner, names, timeout)


class Impatient(LockTable):
    """A table at which nobody waits long."""

    async def claim(self, owner: str, names: Sequence[str], timeout: float) -> bool:
        return await super().claim(owner, names, 0.02)


# --- in runs -------------------------------------------------------------------------------------------------------


class Floor:
    """Who is inside, and who was inside together."""

    def __init__(self) -> None:
        self.inside: set[str] = set()
        self.together: list[frozenset[str]] = []
        self.entered = asyncio.Event()

    def tool(self, name: str, *locks: str, pauses: int = 3, **options: Any) -> Any:
        async def work() -> str:
            self.inside.add(name)
            self.entered.set()
            self.together.append(frozenset(self.inside))
            for _ in range(pauses):
                await asyncio.sleep(0.001)
            self.inside.discard(name)
            return name

        return tool(work, **{"effect": "pure", "name": name, "locks": locks, **options})

    def ever(self, *names: str) -> bool:
        return any(group.issuperset(names) for group in self.together)


async def test_no_two_calls_of_a_turn_hold_a_lock_together_and_others_go_on() -> None:
    floor = Floor()
    tools = [floor.tool("x", "a", "b"), floor.tool("y", "b", "c"), floor.tool("z", "d"), floor.tool("free")]
    result = await run(agent(tools, ("x", "y", "z", "free", "x", "y")), "go")
    assert result.output == "done"
    assert not floor.ever("x", "y") and floor.ever("x", "z") and floor.ever("x", "free")


async def test_without_its_locks_they_run_together() -> None:
    """The inversion: what keeps them apart is the lock."""
    floor = Floor()
    await run(agent([floor.tool("x", "a"), floor.tool("y", "b")], ("x", "y")), "go")
    assert floor.ever("x", "y")


async def test_turns_of_one_process_do_not_hold_a_lock_together_either() -> None:
    floor, store = Floor(), MemoryStore()
    one, two = floor.tool("one", "a"), floor.tool("two", "a", "b")
    results = await asyncio.gather(
        run(agent([one], ("one",), ("one",)), "go", store=store),
        run(agent([two], ("two",), ("two",)), "go", store=MemoryStore()),
    )
    assert [result.output for result in results] == ["done", "done"]
    assert not floor.ever("one", "two")


@pytest.mark.parametrize("seed", range(3))
async def test_many_turns_with_many_locks_all_come_to_an_end(seed: int) -> None:
    luck, floor = Random(seed), Floor()
    tools = [floor.tool(f"t{n}", *luck.sample(NAMES, luck.randint(1, 3)), pauses=1) for n in range(6)]
    rounds = [tuple(luck.sample([each.name for each in tools], 4)) for _ in range(2)]
    runs = [run(agent(tools, *rounds), "go") for _ in range(6)]
    results = await asyncio.wait_for(asyncio.gather(*runs), 60)
    assert {result.output for result in results} == {"done"}
    locks = {each.name: set(each.declaration.locks) for each in tools}
    for group in floor.together:
        taken = [lock for name in group for lock in locks[name]]
        assert len(taken) == len(set(taken))


async def test_a_lock_that_does_not_become_free_is_a_result_of_that_call_alone() -> None:
    floor = Floor()
    around = replace(new_engine(MemoryStore()), locks=Impatient())
    around.locks.try_claim("somebody else", ["a"])
    support = agent([floor.tool("stuck", "a"), floor.tool("free", "b")], ("stuck", "free"), ("free",))
    request = RunRequest(support, "go")
    result = await run_turn(around, request)
    await check_replay(around.store, result)
    assert result.output == "done"
    (lost,) = of_kind(result, ToolFailed)
    assert (lost.tool_name, lost.status, lost.tool_error.kind, lost.retryable) == (
        "stuck",
        "timed_out",
        "lock_timeout",
        True,
    )
    assert "somebody else" in lost.message
    assert [event.tool_name for event in of_kind(result, ToolResult)] == ["free", "free"]
    verdicts = of_kind(result, PermissionEvaluated)
    assert [verdict.layer for verdict in verdicts].count("locks") == 1


async def test_a_lock_that_does_not_become_free_is_told_to_a_call_that_was_approved_too() -> None:
    world, around = World(), replace(new_engine(MemoryStore()), locks=Impatient())
    support = agent([world.tool(locks=["a"], approval=True)], (REFUND,))
    first = await run_turn(around, RunRequest(support, "go", key="k"))
    await say(around.store, first.approvals[0], Approve())
    around.locks.try_claim("somebody else", ["a"])
    result = await run_turn(around, RunRequest(support, "go", key="k"))
    assert (result.status, world.done) == ("completed", [])
    (lost,) = of_kind(result, ToolFailed)
    assert (lost.tool_error.kind, lost.metadata.approval_status) == ("lock_timeout", "approved")
    await check_replay(around.store, result)


async def test_a_call_that_waits_for_its_locks_is_skipped_when_the_turn_is_cancelled() -> None:
    floor, table = Floor(), Watched()
    around = replace(new_engine(MemoryStore()), locks=table)
    table.try_claim("somebody else", ["a"])
    running = asyncio.ensure_future(run_turn(around, RunRequest(agent([floor.tool("x", "a")], ("x",)), "go")))
    await table.somebody_waits.wait()
    (row,) = await around.store.turns()
    await cancel_turn(around, row.turn_id)
    result = await asyncio.wait_for(running, 60)
    assert (result.status, floor.together) == ("cancelled", [])
    around.locks.release("somebody else")
    assert await around.locks.claim("next", ["a"], 20), "nothing stayed behind"
    await check_replay(around.store, result)


async def test_a_run_that_is_abandoned_leaves_no_lock_behind() -> None:
    floor, around = Floor(), new_engine(MemoryStore())
    long = agent([floor.tool("x", "a", pauses=100_000)], ("x",))
    running = asyncio.ensure_future(run_turn(around, RunRequest(long, "go", key="k")))
    await floor.entered.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert await around.locks.claim("next", ["a"], 20)


async def test_a_run_that_is_abandoned_while_it_waits_for_a_lock_does_not_take_it_later() -> None:
    floor, table = Floor(), Watched()
    around = replace(new_engine(MemoryStore()), locks=table)
    table.try_claim("somebody else", ["a"])
    running = asyncio.ensure_future(run_turn(around, RunRequest(agent([floor.tool("x", "a")], ("x",)), "go")))
    await table.somebody_waits.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    around.locks.release("somebody else")
    assert await around.locks.claim("next", ["a"], 20) and floor.together == []


async def test_a_thread_that_is_still_at_it_keeps_its_locks_until_it_is_over() -> None:
    let_go, inside = threading.Event(), threading.Event()

    @tool(effect="pure", locks=["a"], timeout=0.05)
    def slow() -> str:
        inside.set()
        let_go.wait(60)
        return "late"

    around = new_engine(MemoryStore())
    result = await run_turn(around, RunRequest(agent([slow], ("slow",)), "go"))
    assert [event.status for event in of_kind(result, ToolFailed)] == ["timed_out"]
    assert await asyncio.to_thread(inside.wait, 30)
    assert not around.locks.try_claim("next", ["a"]), "it cannot be stopped, and is still at it"
    let_go.set()
    assert await around.locks.claim("next", ["a"], 20)


async def test_a_store_that_refuses_the_intent_leaves_no_lock_behind() -> None:
    floor, memory = Floor(), Memory()
    around = new_engine(Dying(memory, before=2))
    with pytest.raises(Died):
        await run_turn(around, RunRequest(agent([floor.tool("x", "a")], ("x",)), "go", key="k"))
    assert floor.together == []
    assert around.locks.try_claim("next", ["a"])


async def test_a_run_after_a_crash_takes_its_locks_too() -> None:
    """The first run was cut off; the second waits for whoever has the lock now, and holds it while it runs."""
    memory, holders = Memory(), list[dict[str, str]]()

    def keyed(around: Any) -> Any:
        @tool(effect="keyed", locks=["a"], name="x")
        async def x(ctx: RunContext[None]) -> str:
            holders.append(around.locks.holders(["a"]))
            return "done"

        return agent([x], ("x",))

    dying = new_engine(Dying(memory, before=3))
    with pytest.raises(Died):
        await run_turn(dying, RunRequest(keyed(dying), "go", key="k"))
    table = Watched()
    around = replace(new_engine(MemoryStore(memory)), locks=table)
    table.try_claim("somebody else", ["a"])
    running = asyncio.ensure_future(run_turn(around, RunRequest(keyed(around), "go", key="k")))
    await table.somebody_waits.wait()
    assert len(holders) == 1, "it has not begun again"
    around.locks.release("somebody else")
    result = await asyncio.wait_for(running, 60)
    assert (result.output, len(holders)) == ("done", 2)
    assert all(held["a"].endswith(f"/{attempt}") for attempt, held in enumerate(holders, 1))
    assert around.locks.holders(["a"]) == {}
    await check_replay(around.store, result)
