"""A runtime that drains: steps under way end, no other begins, and the log replays as it stands."""

import asyncio
from collections.abc import Callable
from typing import Any

from wakeful import Agent, Runtime, open_store, tool
from wakeful.ports import ModelRequest
from wakeful.testing import scripted


class Desk:
    """A turn that calls two tools at once, of which each ends when it is told to."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.asked = 0
        self.may_end = {"left": asyncio.Event(), "right": asyncio.Event()}

    def agents(self) -> list[Agent[Any, Any]]:
        @tool(effect="pure")
        async def look(side: str) -> str:
            """Look."""
            self.began.append(side)
            await self.may_end[side].wait()
            return f"{side} is clear"

        def answer(request: ModelRequest) -> object:
            self.asked += 1
            if request.answered:
                return "The road is clear."
            return {"calls": [{"name": "look", "arguments": {"side": side}} for side in self.may_end]}

        return [Agent("scout", scripted(answer), tools=[look])]


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(6000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come")


async def test_calls_under_way_end_and_the_next_request_is_made_by_the_next_runtime(tmp_path: Any) -> None:
    desk = Desk()
    async with Runtime(tmp_path / "home", agents=desk.agents()) as rt:
        sent = await rt.send("scout", "Is the road clear?")
        await until(lambda: len(desk.began) == 2)
        living = rt._here
        living.begin_no_step()
        drained = asyncio.create_task(living.scheduler.drain())
        late = await rt.send("scout", "And the bridge?", thread="bridge")
        desk.may_end["left"].set()
        await until(lambda: len(living.drain.under_way()) == 1)
        [step] = living.drain.under_way()
        assert (step.agent_id, step.tool) == ("scout", "look") and step.seconds > 0
        assert not drained.done()
        desk.may_end["right"].set()
        await asyncio.wait_for(drained, 60)
        assert (desk.asked, living.drain.under_way()) == (1, [])
    async with Runtime(tmp_path / "home", agents=desk.agents()) as rt:
        result = await rt.answer(sent)
        assert (result.output, (await rt.answer(late)).output) == ("The road is clear.",) * 2
        assert (desk.asked, len(desk.began)) == (4, 4), "two requests and two calls for each message"
    async with open_store(tmp_path / "home" / "wakeful.db") as store:
        assert (await store.replay(result.turn_id)).identical
        kinds = [event.type async for event in store.events(result.turn_id)]
        assert kinds.count("tool.started") == 2, "no call was made twice"


async def test_a_turn_that_ends_with_its_step_ends_in_the_drain(tmp_path: Any) -> None:
    asked, may_answer = asyncio.Event(), asyncio.Event()

    class Slow:
        ref = "scripted:slow"

        def __init__(self) -> None:
            self.model = scripted(["Done."])

        def __getattr__(self, name: str) -> Any:
            return getattr(self.model, name)

        async def respond(self, request: ModelRequest) -> Any:
            asked.set()
            await may_answer.wait()
            async for piece in self.model.respond(request):
                yield piece

    async with Runtime(tmp_path / "home", agents=[Agent("scout", Slow())]) as rt:
        sent = await rt.send("scout", "Go.")
        await asyncio.wait_for(asked.wait(), 60)
        rt._here.begin_no_step()
        [step] = rt._here.drain.under_way()
        assert step.tool == ""
        may_answer.set()
        await asyncio.wait_for(rt._here.scheduler.drain(), 60)
        assert (await rt.answer(sent)).output == "Done."
