"""Priorities through `Runtime`: what interjects, what only comes first, and what waits for everything else."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from wakeful import Agent, Runtime, open_store, tool
from wakeful.errors import InvalidValue
from wakeful.testing import FixedClock, scripted


class Busy:
    """An agent whose first turn calls a tool that ends when it is let go."""

    def __init__(self) -> None:
        self.begun, self.gate = asyncio.Event(), asyncio.Event()
        self.asked: list[list[str]] = []
        """What each request shows of the conversation since its turn began."""

    def agent(self, *last: str) -> Agent[None, str]:
        @tool(effect="pure")
        async def work() -> str:
            """Work."""
            self.begun.set()
            await self.gate.wait()
            return "worked"

        def reply(request: Any) -> Any:
            self.asked.append([item.text for item in request.history if item.role == "user"])
            return {"calls": [{"name": "work", "arguments": {}}]} if len(self.asked) == 1 else "done"

        return Agent("ops", scripted(reply), tools=[work])


async def test_a_message_that_supersedes_stops_the_running_turn_and_is_answered(tmp_path: Path) -> None:
    busy = Busy()
    async with Runtime(tmp_path, agents=[busy.agent()], clock=FixedClock()) as rt:
        first = await rt.send("ops", "Work.")
        await busy.begun.wait()
        with pytest.raises(InvalidValue, match="an interjection is read by the turn that runs"):
            await rt.send("ops", "Both?", priority="interject", supersede=True)
        waiting = await rt.send("ops", "Then tidy up.", thread="side")
        newer = await rt.send("ops", "No, something else.", key="newer", sender="ada", supersede=True)
        answered = await rt.answer(newer)
        assert (answered.status, answered.output) == ("completed", "done")
        stopped = await rt.answer(first)
        assert (stopped.status, stopped.stop_reason) == ("cancelled", "superseded")
        assert (await rt.answer(waiting)).status == "completed", "another thread is left alone"
        again = await rt.send("ops", "No, something else.", key="newer", sender="ada", supersede=True)
        assert (await rt.answer(again)).turn_id == answered.turn_id


@pytest.mark.spec("HOL-PRIO-03")
async def test_an_operators_word_enters_the_running_turn_at_its_next_safe_point(tmp_path: Path) -> None:
    busy = Busy()
    async with Runtime(tmp_path, agents=[busy.agent()], clock=FixedClock()) as rt:
        first = await rt.send("ops", "Work.")
        await busy.begun.wait()
        sent = await rt.send("ops", "Leave the mail out.", priority="interject", sender="ada")
        assert sent.state == "interjected" and sent.turn_id is not None
        busy.gate.set()
        done = await rt.answer(first)
        assert (await rt.answer(sent)).turn_id == done.turn_id, "one turn answers both"
        assert busy.asked == [["Work."], ["Work.", "Leave the mail out."]]
        envelope = await rt.message(sent)
        assert (envelope.kind, envelope.priority, envelope.origin.model_dump()) == (
            "operator_prompt",
            "interject",
            {"kind": "operator", "actor_id": "ada"},
        )
        await rt.settled()
    async with open_store(tmp_path / "wakeful.db") as store:
        (turn,) = await store.turns()
        kinds = [event.type async for event in store.events(turn.turn_id)]
        assert kinds.count("turn.interjected") == 1


async def test_an_interjection_sent_twice_under_one_key_is_one(tmp_path: Path) -> None:
    busy = Busy()
    async with Runtime(tmp_path, agents=[busy.agent()], clock=FixedClock()) as rt:
        await rt.send("ops", "Work.")
        await busy.begun.wait()
        sent = [await rt.send("ops", "Stop at five.", priority="interject", key="five") for _ in range(2)]
        assert sent[0].message_id == sent[1].message_id
        busy.gate.set()
        await rt.settled()
        assert busy.asked[-1] == ["Work.", "Stop at five."]


@pytest.mark.spec("HOL-PRIO-03", "HOL-PRIO-04", "HOL-PRIO-06")
async def test_with_nothing_running_an_interjection_is_first_then_what_is_next_and_last_the_background(
    tmp_path: Path,
) -> None:
    busy = Busy()
    async with Runtime(tmp_path, agents=[busy.agent()], clock=FixedClock()) as rt:
        await rt.pause("ops")
        for band in ("background", "normal", "next", "interject"):
            await rt.send("ops", band, priority=band, key=band)  # type: ignore[arg-type]
        busy.gate.set()
        await rt.resume("ops")
        await rt.settled()
    async with open_store(tmp_path / "wakeful.db") as store:
        begun = [turn.prompt for turn in reversed(await store.turns())]
    assert begun == ["interject", "next", "normal", "background"]


@pytest.mark.spec("HOL-PRIO-04")
async def test_what_is_next_waits_for_the_running_turn_and_goes_before_what_came_earlier(tmp_path: Path) -> None:
    busy = Busy()
    async with Runtime(tmp_path, agents=[busy.agent()], clock=FixedClock()) as rt:
        await rt.send("ops", "Work.")
        await busy.begun.wait()
        await rt.send("ops", "Whenever.", key="normal")
        sent = await rt.send("ops", "Then this.", priority="next", key="next")
        assert sent.state == "queued", "the turn that runs is left alone"
        busy.gate.set()
        await rt.settled()
    async with open_store(tmp_path / "wakeful.db") as store:
        begun = [turn.prompt for turn in reversed(await store.turns())]
    assert begun == ["Work.", "Then this.", "Whenever."]


@pytest.mark.spec("HOL-PRIO-03")
async def test_nobody_else_interjects(tmp_path: Path) -> None:
    busy = Busy()
    async with Runtime(tmp_path, agents=[busy.agent()], clock=FixedClock()) as rt:
        await rt.send("ops", "Work.")
        await busy.begun.wait()
        with pytest.raises(InvalidValue, match="priority: interject cannot be set"):
            await rt.receive("ops", "Me first.", channel="chat", priority="interject")
        assert (await rt.deliver(await rt.trigger_url("ops"), b"me too")).outcome == "accepted"
        busy.gate.set()
        await rt.settled()
        assert busy.asked[1] == ["Work."], "the turn that ran did not hear of it"
