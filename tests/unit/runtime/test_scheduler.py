"""The scheduler, where the store fails it and where something new makes a thread due that could not be run before."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kit.runs.engine_runs import calls
from wakeful import Agent, Runtime, tool
from wakeful.contracts.errors import StoreFull
from wakeful.ports import WakeRow
from wakeful.service.file_reloads import request_reload
from wakeful.store.memory import MemoryStore
from wakeful.testing import FixedClock, scripted
from wakeful.testing.wrapped_store import WrappedStore


class Failing(WrappedStore):
    """Cannot be read for a while."""

    is_full = False
    odd: str = ""
    """What fails with an error that nobody expects."""

    async def all_open_waits(self, **options: Any) -> Any:
        if self.odd == "the watchdog":
            raise KeyError("odd")
        return await self.inner.all_open_waits(**options)

    async def due_wakes(self, now: int, *, limit: int, after: WakeRow | None = None) -> list[WakeRow]:
        if self.odd == "the scheduler":
            raise KeyError("odd")
        if self.is_full:
            raise StoreFull("the disk is full", "Make room.")
        return await self.inner.due_wakes(now, limit=limit, after=after)


async def test_a_store_that_fails_for_a_while_stops_nobody_for_good(tmp_path: Path) -> None:
    store, clock = Failing(MemoryStore()), FixedClock()
    async with Runtime(store=store, agents=[Agent("ops", scripted(["done"]))], clock=clock) as rt:
        store.is_full = True
        sent = await rt.send("ops", "Hello?")
        await rt.settled()
        assert (await rt._here.engine.store.message(sent.message_id)).state == "queued"  # type: ignore[union-attr]
        store.is_full = False
        clock.advance(2)
        await rt.settled()
        assert (await rt.answer(sent)).output == "done"


@pytest.mark.parametrize(("odd", "part"), [("the scheduler", "the scheduler"), ("the watchdog", "the look at threads")])
async def test_an_error_that_nobody_expects_ends_neither_the_scheduler_nor_the_watchdog(odd: str, part: str) -> None:
    """It ended the loop, silently: nothing ran any more until the runtime was started again."""
    store, clock = Failing(MemoryStore()), FixedClock()
    async with Runtime(store=store, agents=[Agent("ops", scripted(lambda request: "done"))], clock=clock) as rt:
        await rt.settled()
        store.odd = odd
        sent = await rt.send("ops", "Hello?")
        while not await rt.notices():
            clock.advance(1)
            await asyncio.sleep(0)
        for _ in range(200):
            clock.advance(1)
            await asyncio.sleep(0)
        (told,) = await rt.notices()
        assert (told.kind, told.cause) == ("failure", "runtime.part_failed")
        assert told.text == f"{part} of the runtime failed, and is tried again: KeyError: 'odd'"
        store.odd = ""
        clock.advance(300)
        assert (await rt.answer(sent)).output == "done"
        assert not any(loop.done() for loop in rt._here._loops)


async def test_after_an_outage_so_many_begin_within_a_second_and_agents_take_turns(tmp_path: Path) -> None:
    clock, began = FixedClock(), list[str]()

    def agent(name: str) -> Agent[None, str]:
        return Agent(name, scripted(lambda request: began.append(name) or "done"))

    agents = [agent(name) for name in ("ada", "bob", "cleo")]
    async with Runtime(tmp_path, agents=agents, clock=clock) as rt:
        await rt.pause_all()
        for number in range(20):
            await rt.send("ada", "Hello?", thread=f"chat-{number}")
        for name in ("bob", "cleo"):
            await rt.send(name, "Hello?")
    async with Runtime(tmp_path, agents=agents, clock=clock, max_starts=4) as rt:
        await rt.resume_all()
        for second in range(1, 8):
            await rt.settled()
            assert len(began) <= 4 * second
            if second == 1:
                assert {"bob", "cleo"} < set(began), "those with one message do not wait behind twenty of another"
            clock.advance(1)
        await rt.settled()
        assert sorted(began) == ["ada"] * 20 + ["bob", "cleo"]


@pytest.mark.parametrize("waiting", [0, 600])
async def test_what_the_runtime_does_itself_waits_for_no_turn(tmp_path: Path, waiting: int) -> None:
    """One turn has the only place, and so many wait for it."""

    @tool(effect="pure", timeout=600)
    async def look() -> str:
        await asyncio.Event().wait()
        return "never"

    def reply(request: Any) -> Any:
        return calls(("look", {})) if request.history[-1].text == "Look." else "done"

    agents = [Agent("ops", scripted(reply), tools=[look]), Agent("ada", scripted(reply))]
    async with Runtime(tmp_path, agents=agents, max_turns=1, grace=0) as rt:
        engine, sent = rt._here.engine, await rt.send("ops", "Look.")
        for number in range(waiting):
            await rt.send("ada", "Hello?", thread=f"chat-{number}")
        assert (await request_reload(engine, by="ada")).loaded
        assert (await engine.store.message(sent.message_id)).state == "taken"  # type: ignore[union-attr]
        assert len(await engine.store.busy_threads("ada")) == waiting
