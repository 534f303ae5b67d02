"""Lives of agents to be killed: each is a story that is told again from its beginning until it comes to its end.

A step that was acknowledged before the kill changes nothing when it is said again: messages have keys, timers have
names. Time goes on where the log left it.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kit.runs.deliveries import SECRET, standard
from kit.runs.repositories import branches, repository
from wakeful import Agent, RunContext, Runtime, tool
from wakeful.bootstrap.runtimes import open_runtime
from wakeful.ports import ModelRequest, Store
from wakeful.service import Places
from wakeful.service.commands.agents import send_message
from wakeful.testing import FixedClock, Ledger, scripted

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = 3_600.0
OPS = "ops"
VARIABLE = "WAKEFUL_TEST_CI_SECRET"


@asynccontextmanager
async def living(store: Store, agent: Agent[Any, Any]) -> "AsyncIterator[tuple[Runtime, FixedClock]]":
    await store.agents()
    newest = [entry.fact.at for name in await store.agents() for entry in await store.read(name)]
    clock = FixedClock(max([round(NOON.timestamp() * 1_000_000), *newest]))
    async with Runtime(store=store, agents=[agent], clock=clock) as rt:
        yield rt, clock


def clerk(ledger: Ledger, **options: Any) -> Agent[None, str]:
    """Pays when it is told to pay, waits when it is told to wait, goes on with its work until it is done."""

    @tool(effect="keyed")
    def pay(ctx: RunContext[None]) -> str:
        """Pay a bill."""
        ledger.once("pay", ctx.idempotency_key)
        return "paid"

    def answer(request: ModelRequest) -> object:
        if request.answered:
            return "done"
        text = str(request.history[-1].text)
        if "Pay" in text:
            return {"calls": [{"name": "pay", "arguments": {}}]}
        if "Wait" in text:
            arguments = {"reason": "the vote", "wake": "external", "deadline_ms": 3_600_000}
            return {"calls": [{"name": "wait_for", "arguments": arguments}]}
        item = next((word.rstrip(",.:") for word in text.split() if word.startswith("wi_")), None)
        if item is not None:
            name = "pick_work_item" if "Pick one" in text else "complete_work_item"
            return {"calls": [{"name": name, "arguments": {"work_item_id": item}}]}
        return "done"

    return Agent(OPS, scripted(answer), tools=[pay], **options)


async def messages_and_pauses(store: Store, ledger: Ledger) -> None:
    """Messages of two threads, one of them to a paused agent; stopped and let run again, it answers each once."""
    async with living(store, clerk(ledger)) as (rt, _):
        if (await rt.agent(OPS)).control == "stopped":  # killed before it could let it run again
            await rt.resume(OPS)
        first = await rt.send(OPS, "Pay it.", key="first")
        await rt.answer(first)
        await rt.pause(OPS)
        kept = await rt.send(OPS, "Pay it.", key="kept", thread="side")
        await rt.settled()
        await rt.resume(OPS)
        await rt.answer(kept)
        await rt.settled()  # killed while it answers the last message, it is at that by now: a stop would end its turn
        await rt.stop(OPS)
        await rt.resume(OPS)
        last = await rt.send(OPS, "Say something.", key="last")
        assert (await rt.answer(last)).output == "done"
        await rt.settled()


async def a_timer_and_a_wait(store: Store, ledger: Ledger) -> None:
    """A due time is told of once, and so is a wait whose deadline comes first."""
    async with living(store, clerk(ledger)) as (rt, clock):
        if not await rt.timers(OPS):
            at = NOON + timedelta(hours=3)
            await rt.arm_timer(OPS, "Pay it.", at=at, name="noon")
        await rt.answer(await rt.send(OPS, "Wait for it.", key="wait"))
        for _ in range(5):
            await rt.settled()
            clock.advance(HOUR)
        await rt.settled()
        (timer,) = await rt.timers(OPS)
        assert timer.state == "done", timer
        assert await store.open_waits(OPS) == []
        assert await store.wakes_of(OPS) == []


async def work_from_outside(store: Store, ledger: Ledger) -> None:
    """An item that is put into the queue is picked and completed, and nothing of it is left to do."""
    async with living(store, clerk(ledger, work_items=True)) as (rt, clock):
        if not await rt.work_items(OPS) and not await rt.work_items(OPS, completed=True):
            await rt.enqueue(OPS, "Tidy up.")
        for _ in range(4):
            await rt.settled()
            clock.advance(60)
        await rt.settled()
        assert await rt.work_items(OPS) == []
        (item,) = await rt.work_items(OPS, completed=True)
        assert item.state == "completed"


async def a_shutdown_in_the_middle(store: Store, ledger: Ledger) -> None:
    """A runtime that is closed while a tool runs lets go of it; the next one goes on."""
    begun, late = asyncio.Event(), asyncio.Event()

    @tool(effect="keyed")
    async def pay(ctx: RunContext[None]) -> str:
        """Pay a bill, and take a while to say so."""
        ledger.once("pay", ctx.idempotency_key)
        begun.set()
        await late.wait()
        return "paid"

    script = [{"calls": [{"name": "pay", "arguments": {}}]}, "done"]
    agent = Agent(OPS, scripted(script), tools=[pay])
    async with Runtime(store=store, agents=[agent], grace=0) as rt:
        sent = await rt.send(OPS, "Pay it.", key="once")
        if not ledger.entries():
            await begun.wait()
    late.set()
    async with Runtime(store=store, agents=[agent]) as rt:
        assert (await rt.answer(sent)).output == "done"
        await rt.settled()


def spawner(ledger: Ledger, mode: str = "inherit", **options: Any) -> Agent[None, str]:
    """Has a child pay a bill; one that is to dig has another child dig deeper, and both wait."""

    @tool(effect="keyed")
    def pay(ctx: RunContext[None]) -> str:
        """Pay a bill."""
        ledger.once("pay", ctx.idempotency_key)
        return "paid"

    def spawn(words: str) -> object:
        return {"calls": [{"name": "spawn_agent", "arguments": {"initial_message": words, "workspace_mode": mode}}]}

    def answer(request: ModelRequest) -> object:
        first, newest = str(request.history[0].text), str(request.history[-1].text)
        if request.answered or "Task task_" in newest:
            return "done"
        if "Have it paid" in first:
            return spawn("Pay it.")
        if "Have it dug" in first:
            return spawn("Dig a hole.")
        if "Dig a hole" in first:
            return spawn("Dig deeper.")
        if "Dig deeper" in first:
            arguments = {"reason": "rain", "wake": "external", "deadline_ms": 86_400_000}
            return {"calls": [{"name": "wait_for", "arguments": arguments}]}
        return {"calls": [{"name": "pay", "arguments": {}}]}

    return Agent(OPS, scripted(answer), tools=[pay], spawn=True, **options)


async def _told(store: Store) -> list[str]:
    """What became of the messages about tasks of the agent."""
    rows = [await store.message(fact.event.message_id) for fact in await _facts(store) if _is_told(fact.event)]
    return [row.state for row in rows if row is not None]


async def _facts(store: Store) -> list[Any]:
    return [entry.fact for entry in await store.read(OPS)]


def _is_told(event: Any) -> bool:
    return event.kind == "message.admitted" and event.message_kind == "task_result"


async def a_child_that_works(store: Store, ledger: Ledger) -> None:
    """A child is made once, pays once, and its parent hears of it once."""
    async with living(store, spawner(ledger)) as (rt, _):
        await rt.answer(await rt.send(OPS, "Have it paid.", key="first"))
        await rt.settled()
        (task,) = await store.tasks_of(OPS)
        assert (task.status, await _told(store)) == ("completed", ["processed"])
        assert len(await store.runtime_agents()) == 2


async def a_family_that_is_stopped(store: Store, ledger: Ledger) -> None:
    """An agent is stopped: its child and its child's child are over, and it hears of that when it runs again."""
    async with living(store, spawner(ledger)) as (rt, _):
        await rt.answer(await rt.send(OPS, "Have it dug.", key="first"))
        await rt.settled()
        if not await _told(store):
            await rt.stop(OPS)
            await rt.settled()
        rows = await store.runtime_agents()
        assert [row.control for row in rows if row.agent_id != OPS] == ["stopped"] * 2, rows
        assert await store.open_tasks() == []
        await rt.resume(OPS)
        await rt.settled()
        assert await _told(store) == ["processed"]
        assert [task.status for task in await store.tasks_of(OPS)] == ["cancelled"]


async def a_child_in_a_worktree(store: Store, ledger: Ledger) -> None:
    """A child works in a worktree of its own: made once, and gone when the task is over, with its branch."""
    repo = Path(ledger.path).with_suffix(".repo")
    if not repo.exists():
        fresh = repository(repo.with_suffix(".new"))
        fresh.rename(repo)
    agent = spawner(ledger, mode="worktree", workspace=repo)
    async with living(store, agent) as (rt, _):
        await rt.answer(await rt.send(OPS, "Have it paid.", key="first"))
        await rt.settled()
        (task,) = await store.tasks_of(OPS)
        assert (task.status, await _told(store)) == ("completed", ["processed"])
        (tree,) = await store.worktrees_of_task(task.task_id)
        assert (tree.state, branches(repo), Path(tree.worktree_path).exists()) == ("removed", ["main"], False)


async def deliveries_to_a_trigger(store: Store, ledger: Ledger) -> None:
    """Each delivery is one message, however often its sender sends it."""
    os.environ[VARIABLE] = SECRET
    async with living(store, clerk(ledger)) as (rt, _):
        if not any(row.name == "ci" for row in await rt.triggers(OPS)):
            await rt.create_trigger(OPS, "ci", say="Pay it.", signature="standard_webhooks", signing_env=VARIABLE)
        address = await rt.trigger_url(f"{OPS}/ci")
        sent = []
        for name in ("first", "second", "first"):
            receipt = await rt.deliver(address, b"", standard(b"", name, NOON))
            assert receipt.outcome in ("accepted", "duplicate"), receipt
            assert receipt.message_id is not None
            assert (await rt.answer(receipt.message_id)).output == "done"
            sent.append(receipt.message_id)
        assert sent[0] == sent[2]
        await rt.settled()


def _define(home: Path, revision: str) -> None:
    """The agent's file, replaced as an editor does it."""
    folder = home / "agents"
    folder.mkdir(parents=True, exist_ok=True)
    script = home / f"{revision}.yaml"
    script.write_text(f"- text: {revision}\n")
    written = home / f"{revision}.new"
    written.write_text(json.dumps({"name": OPS, "model": f"scripted:{script}", "instructions": revision}))
    written.rename(folder / f"{OPS}.yaml")


async def a_file_that_changes(store: Store, ledger: Ledger) -> None:
    """An agent's file is changed and read again: each revision is known once, and the newest is in force."""
    home = Path(ledger.path).with_suffix(".home")
    if not (home / "agents" / f"{OPS}.yaml").exists():
        _define(home, "first")
    async with open_runtime(store, (), folder=home / "agents", places=Places(), grace=None) as rt:
        row = await send_message(rt.engine, OPS, "Who are you?", key="first")
        assert (await rt.answer(row.message_id)).output == "first"
        _define(home, "second")
        assert await rt.supply.reload() == []
        row = await send_message(rt.engine, OPS, "And now?", key="second")
        assert (await rt.answer(row.message_id)).output == "second"
        await rt.settled()
        revised = [fact.event.revision for fact in await _facts(store) if fact.event.kind == "agent.revised"]
        assert len(revised) == len({*revised}) == 2, revised
        (known,) = await store.runtime_agents()
        assert known.revision == revised[-1]
