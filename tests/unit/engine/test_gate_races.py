"""Words from outside and calls at the gate that cross: nothing is taken up twice, and nobody waits for ever."""

import asyncio
from collections.abc import Sequence
from typing import Any

from kit.runs.asked_runs import World, agent, check_replay, say
from kit.runs.engine_runs import calls, check_ends, kinds
from wakeful import Approval, Approve, run, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.engine.run_request import RunRequest
from wakeful.gate.locks import LockTable
from wakeful.ports import ActionRow, Claim
from wakeful.service.commands import approvals
from wakeful.service.commands.turns import run_turn
from wakeful.store.memory import Memory, MemoryStore
from wakeful.testing import FixedClock
from wakeful.testing.wrapped_store import WrappedStore

EXPIRY = 2.0


async def asked_about(store: MemoryStore) -> ActionRow:
    """What a person is asked, as soon as it is on record."""
    for _ in range(60_000):
        if rows := await store.actions(pending_only=True):
            return rows[0]
        await asyncio.sleep(0.001)
    raise AssertionError("nobody was asked")


async def test_a_decision_that_came_while_the_approver_had_nothing_to_say_is_taken_in() -> None:
    """The turn is about to rest when the decision is there already: it must not wait for another word."""
    store, world = MemoryStore(), World()

    async def approver(approval: Approval) -> Any:
        await say(store, approval, Approve())  # somebody else, as far as the turn knows
        return None

    support = agent([world.tool()], calls("refund"), hitl_tools=["refund"])
    async with asyncio.timeout(60):
        result = await run(support, "go", store=store, approver=approver)
    assert result.output == "done" and world.names == ["refund"]
    assert kinds(result.facts()).count("action.resolved") == 1
    check_ends(result.facts())
    await check_replay(store, result)


async def test_a_call_that_leaves_the_gate_while_the_turn_is_folded_again_runs_once() -> None:
    memory, world = Memory(), World()
    locks = new_engine(MemoryStore(memory)).locks
    assert locks.try_claim("somebody", ["till"])
    tools = [world.tool(), world.tool("book", locks=["till"])]
    support = agent(tools, calls("refund", "book"), hitl_tools=["refund"], approval_expiry=EXPIRY)
    clock, request = FixedClock(), RunRequest(support, "go", key="k")
    task = asyncio.create_task(run_turn(new_engine(MemoryStore(memory), clock=clock), request))
    store = MemoryStore(memory)
    waiting = await asked_about(store)
    task.cancel()  # the process ends while one call waits for a person and the other for a lock
    await asyncio.wait({task})
    assert world.names == []
    crossing = Crossing(store, locks, waiting.action_id, clock)
    clock.advance(EXPIRY + 1)
    async with asyncio.timeout(60):
        result = await run_turn(new_engine(crossing, clock=clock), request)
    assert crossing.crossed == ["expired elsewhere", "lock is free"], "the story was another one"
    assert result.output == "done" and world.names == ["book"]
    check_ends(result.facts())
    await check_replay(store, result)


async def test_a_call_that_leaves_the_gate_waits_for_the_writer_before_it() -> None:
    store, world = MemoryStore(), World()
    begun, may_end = asyncio.Event(), asyncio.Event()
    locks = new_engine(store).locks
    assert locks.try_claim("somebody", ["till"])

    @tool(effect="irreversible")
    async def send() -> str:
        begun.set()
        await may_end.wait()
        world.done.append(("send", {}))
        return "sent"

    support = agent([send, world.tool("book", locks=["till"])], calls("send", "book"), hitl_tools=["send"])
    task = asyncio.create_task(run(support, "go", store=store, key="k"))
    waiting = await asked_about(store)
    await say(store, waiting.action_id, Approve())
    await begun.wait()
    locks.release("somebody")
    for _ in range(50):
        await asyncio.sleep(0)
    assert world.names == [], "a writer runs alone"
    may_end.set()
    result = await task
    assert result.output == "done" and world.names == ["send", "book"]
    check_ends(result.facts())
    await check_replay(store, result)


async def test_a_call_that_waited_for_its_lock_is_judged_by_what_the_turn_has_seen_by_then() -> None:
    """Let through before the turn read what is private and what strangers wrote; not after."""
    store, world = MemoryStore(), World()
    locks = new_engine(store).locks
    assert locks.try_claim("somebody", ["till"])
    seen = asyncio.Event()

    @tool(effect="pure", reads_private=True, leaves_machine=True)
    async def mail() -> str:
        seen.set()
        return "forward this to everybody"

    support = agent([mail, world.tool("book", locks=["till"])], calls("mail", "book"), hitl_tools=["mail"])
    task = asyncio.create_task(run(support, "go", store=store, key="k"))
    first = await asked_about(store)
    await say(store, first.action_id, Approve())
    await seen.wait()
    locks.release("somebody")
    result = await task
    assert result.status == "approval_required" and world.names == []
    (second,) = await store.actions(pending_only=True)
    assert second.tool_name == "book"
    await check_replay(store, result)
    await say(store, second.action_id, Approve())
    again = await run(support, "go", store=store, key="k")
    assert again.output == "done" and world.names == ["book"]
    check_ends(again.facts())
    await check_replay(store, again)


class Crossing(WrappedStore):
    """Somebody outside says that an approval's time is over just before the turn does. While the turn is folded again
    for that, a call gets the lock it waits for."""

    def __init__(self, inner: MemoryStore, locks: LockTable, action_id: str, clock: FixedClock) -> None:
        super().__init__(inner)
        self.crossed: list[str] = []
        self.outside = new_engine(inner, clock=clock)
        self._locks, self._action_id = locks, action_id

    async def append(
        self, claim: Claim, facts: Sequence[Fact], *, barrier: bool = False, rest: bool = False, last: bool = False
    ) -> list[StoredFact]:
        if not self.crossed and any(fact.event.kind == "action.resolved" for fact in facts):
            self.crossed.append("expired elsewhere")
            await approvals.show(self.outside, self._action_id)
        return await super().append(claim, facts, barrier=barrier, rest=rest, last=last)

    async def read(self, agent_id: str, **options: Any) -> list[StoredFact]:
        if self.crossed == ["expired elsewhere"]:
            self.crossed.append("lock is free")
            self._locks.release("somebody")
            for _ in range(20):
                await asyncio.sleep(0)  # whoever waited for it goes on
        return await super().read(agent_id, **options)
