"""Wake hints through `Runtime`: a busy agent is not disturbed, none is lost, and what says nothing asks no model."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from wakeful import Agent, Runtime, tool
from wakeful.errors import AgentStopped, InvalidRequest
from wakeful.testing import FixedClock, scripted


async def events(rt: Runtime, prefix: str) -> list[Any]:
    found = [entry.fact.event for entry in await rt._here.engine.store.read("ops")]
    return [event for event in found if event.kind.startswith(prefix)]


@pytest.mark.spec("HOL-HINT-01", "HOL-HINT-05", "HOL-CONT-18", "HOL-WAKE-11")
async def test_a_hint_without_a_body_wakes_nobody_and_asks_no_model(tmp_path: Path) -> None:
    def never(request: Any) -> str:
        raise AssertionError("no model is asked")

    async with Runtime(tmp_path, agents=[Agent("ops", scripted(never))], clock=FixedClock()) as rt:
        await rt.wake("ops", "something changed")
        await rt.settled()
        kinds = [event.kind for event in await events(rt, "")]
        assert kinds[2:] == [
            "wake_hint.stored",
            "wake_hint.triggered",
            "message.admitted",
            "continuation.resolved",
            "message.settled",
        ]
        row = await rt._here.engine.store.last_continuation("ops")
        assert row is not None and (row.treatment, row.resolution["class"]) == ("settled", "liveness_only")


@pytest.mark.spec("HOL-HINT-02", "HOL-HINT-06", "HOL-TICK-02", "HOL-WAKE-12")
async def test_a_hint_with_a_body_is_shown_as_what_came_from_outside(tmp_path: Path) -> None:
    asked: list[str] = []

    def reply(request: Any) -> str:
        asked.append(request.history[-1].text)
        return "looked"

    async with Runtime(tmp_path, agents=[Agent("ops", scripted(reply))], clock=FixedClock()) as rt:
        await rt.wake("ops", "build", body="the build is red", source="ci")
        await rt.settled()
        assert len(asked) == 1 and "the build is red" in asked[0]
        (stored,) = await events(rt, "wake_hint.stored")
        assert (stored.target_agent_id, stored.delivery_mode, stored.source, stored.body, stored.content_type) == (
            "ops",
            "wake_hint",
            "ci",
            "the build is red",
            "text/plain",
        )
        (tick,) = await events(rt, "message.admitted")
        assert (tick.message_kind, tick.authority_class, tick.derived_from, tick.source_refs["source"]) == (
            "system_tick",
            "integration_signal",
            "external_evidence",
            "ci",
        )


@pytest.mark.spec("HOL-HINT-04", "HOL-HINT-07", "HOL-TICK-05", "HOL-TICK-06")
async def test_hints_on_a_busy_agent_are_one_tick_when_it_is_free(tmp_path: Path) -> None:
    begun, gate = asyncio.Event(), asyncio.Event()

    @tool(effect="pure")
    async def work() -> str:
        """Work."""
        begun.set()
        await gate.wait()
        return "worked"

    asked: list[str] = []

    def reply(request: Any) -> Any:
        asked.append(request.history[-1].text)
        return {"calls": [{"name": "work", "arguments": {}}]} if len(asked) == 1 else "done"

    agent = Agent("ops", scripted(reply), tools=[work])
    async with Runtime(tmp_path, agents=[agent], clock=FixedClock()) as rt:
        await rt.send("ops", "Work.")
        await begun.wait()
        for number in range(20):
            await rt.wake("ops", body="first" if number == 3 else None)
        await rt.wake("ops", body="second")
        assert await events(rt, "wake_hint.triggered") == []
        gate.set()
        await rt.settled()
        (triggered,) = await events(rt, "wake_hint.triggered")
        assert triggered.hints == 21
        assert asked[-1].endswith("first\n\nsecond\n\n(21 hints in all; these are the newest that say something.)")
        assert len(await events(rt, "turn.completed")) == 2


async def test_a_hint_ends_a_wait_for_something_outside(tmp_path: Path) -> None:
    replies: list[Any] = [
        {"calls": [{"name": "wait_for", "arguments": {"reason": "the build", "wake": "external"}}]},
        "it is green",
    ]
    agent = Agent("ops", scripted(lambda request: replies.pop(0)))
    async with Runtime(tmp_path, agents=[agent], clock=FixedClock()) as rt:
        await rt.answer(await rt.send("ops", "Wait for the build."))
        await rt.wake("ops", body="green")
        await rt.settled()
        assert (replies, await rt._here.engine.store.open_waits("ops")) == ([], [])
        (stored,) = await events(rt, "wake_hint.stored")
        (created,) = await events(rt, "wait.created")
        assert stored.wait_ids == (created.wait_id,)


async def test_a_stopped_agent_is_not_woken_and_nothing_is_stored(tmp_path: Path) -> None:
    agent = Agent("ops", scripted(["done"]))
    async with Runtime(tmp_path, agents=[agent], clock=FixedClock()) as rt:
        await rt.stop("ops")
        with pytest.raises(AgentStopped, match="waking it changes nothing"):
            await rt.wake("ops", body="the build is red")
        assert await events(rt, "wake_hint") == []


async def test_a_hint_that_is_too_large_is_refused(tmp_path: Path) -> None:
    agent = Agent("ops", scripted(["done"]))
    async with Runtime(tmp_path, agents=[agent], clock=FixedClock()) as rt:
        with pytest.raises(InvalidRequest, match="a wake hint has 32,001 bytes"):
            await rt.wake("ops", body="x" * 32_001)
        with pytest.raises(InvalidRequest, match="reason has 70,000 characters"):
            await rt.wake("ops", "x" * 70_000)
        with pytest.raises(InvalidRequest, match="body holds half of a surrogate pair"):
            await rt.wake("ops", body="\ud800")
