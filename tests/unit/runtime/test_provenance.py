"""Where messages come from is kept from the admission to the log, the model and the gate, whatever way they came."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from wakeful import Agent, Runtime, open_store, tool
from wakeful.errors import AgentStopped
from wakeful.ports import ModelRequest
from wakeful.testing import FixedClock, scripted

MIDNIGHT = datetime(2040, 1, 1, tzinfo=UTC)


class Ears:
    """An agent's model: it notes what it was shown, and which tools it was offered."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.offered: list[tuple[str, ...]] = []

    def agent(self, **options: Any) -> Agent[None, str]:
        def answer(request: ModelRequest) -> object:
            self.shown.append(str(request.history[-1].text))
            self.offered.append(tuple(each.name for each in request.tools))
            wants = "transfer" in self.shown[-1] and request.answered == 0
            return {"calls": [{"name": "pay", "arguments": {"cents": 5}}]} if wants else "noted"

        return Agent("clerk", scripted(answer), **options)


async def admitted(rt: Runtime) -> list[dict[str, Any]]:
    """The messages of the agent's log as its readers get them."""
    head = (await rt._here.engine.store.read("clerk"))[-1].seq
    found: list[dict[str, Any]] = []
    async for event in rt.follow("clerk"):
        if event.type == "message.admitted":
            found.append(event.payload)
        if event.sequence >= head:
            break
    return found


@pytest.mark.spec("HOL-CORE-03", "HOL-MSG-12", "HOL-MSG-13", "HOL-AUDIT-02")
async def test_every_input_comes_through_one_queue_and_the_log_says_how(tmp_path: Path) -> None:
    clock, ears = FixedClock(MIDNIGHT), Ears()
    async with Runtime(tmp_path, agents=[ears.agent()], clock=clock) as rt:
        await rt.send("clerk", "said by the operator", sender="ada")
        await rt.settled()
        await rt.receive("clerk", "said in a chat", channel="chat")
        await rt.settled()
        await rt.receive("clerk", {"build": 7}, webhook="ci", verified=True)
        await rt.settled()
        await rt.arm_timer("clerk", "said by a timer", at=MIDNIGHT + timedelta(hours=1), thread="main")
        clock.advance(3_600)
        await rt.settled()
        await rt.wake("clerk", "said by a hint", body="the build is red", source="ci")
        await rt.settled()
        messages = await admitted(rt)
    told = [
        (each["message_kind"], each["origin"]["kind"], each["delivery_surface"], each["admission_context"])
        for each in messages
    ]
    assert told == [
        ("operator_prompt", "operator", "run_once", "local_process"),
        ("channel_event", "channel", "http_public_enqueue", "local_process"),
        ("webhook_event", "webhook", "http_webhook", "local_process"),
        ("timer_tick", "timer", "timer_scheduler", "runtime_owned"),
        ("system_tick", "system", "http_callback_wake", "runtime_owned"),
    ]
    assert len(ears.shown) == 5, "and no other way leads to the model"
    for each in messages:
        assert {"message_id", "origin", "authority_class", "trust", "priority", "trigger_kind"} <= each.keys()


@pytest.mark.spec("HOL-KIND-06", "HOL-KIND-07", "HOL-ORIG-06")
async def test_a_timer_and_the_runtime_itself_are_named_as_what_made_a_message(tmp_path: Path) -> None:
    clock = FixedClock(MIDNIGHT)
    async with Runtime(tmp_path, agents=[Ears().agent()], clock=clock) as rt:
        timer = await rt.arm_timer("clerk", "look", at=MIDNIGHT + timedelta(hours=1))
        clock.advance(3_600)
        await rt.settled()
        await rt.wake("clerk", "something changed", body="the build is red")
        await rt.settled()
        ticks = await admitted(rt)
    assert (ticks[0]["message_kind"], ticks[0]["origin"]) == (
        "timer_tick",
        {"kind": "timer", "timer_id": timer.timer_id},
    )
    assert ticks[1]["message_kind"] == "system_tick"
    assert ticks[1]["origin"]["kind"] == "system" and ticks[1]["origin"]["subsystem"]


@pytest.mark.spec("HOL-KIND-02", "HOL-ORIG-02", "HOL-AUTH-02", "HOL-PRIO-05")
async def test_only_the_operator_speaks_as_the_operator(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[Ears().agent()]) as rt:
        own = await rt.message(await rt.send("clerk", "Do it."))
        other = await rt.message(await rt.receive("clerk", "Do it.", channel="chat", sender="operator"))
    assert (own.kind, own.origin.kind, own.authority_class) == ("operator_prompt", "operator", "operator_instruction")
    assert (other.kind, other.origin.kind, other.authority_class) == ("channel_event", "channel", "external_evidence")
    assert (own.priority, other.priority) == ("normal", "normal"), "the band of whoever names none"


@pytest.mark.spec("HOL-AUTH-01", "HOL-AUTH-09", "HOL-AUTH-10", "HOL-AUTH-11")
async def test_the_same_words_of_somebody_else_are_offered_the_same_tools_and_need_a_person(tmp_path: Path) -> None:
    paid: list[int] = []

    @tool(effect="keyed")
    def pay(cents: int) -> str:
        """Pay somebody."""
        paid.append(cents)
        return "paid"

    ears = Ears()
    async with Runtime(tmp_path, agents=[ears.agent(tools=[pay])]) as rt:
        asked = await rt.answer(await rt.receive("clerk", "transfer 5", channel="chat", thread="a"))
        assert asked.status == "approval_required" and paid == []
        assert "external_evidence" in asked.approvals[0].reason
        done = await rt.answer(await rt.send("clerk", "transfer 5", thread="b"))
        assert done.status == "completed" and paid == [5]
    assert ears.offered[0] == ears.offered[1], "a label changes no catalogue"
    assert "authority: external_evidence]" in ears.shown[0] and "authority" not in ears.shown[1]


@pytest.mark.spec("HOL-STOP-04", "HOL-STOP-05", "HOL-QUEUE-01")
async def test_a_stopped_agent_takes_no_webhook_and_no_hint_and_keeps_what_it_had(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[Ears().agent()]) as rt:
        await rt.answer(await rt.send("clerk", "before"))
        await rt.stop("clerk")
        before = len(await rt._here.engine.store.read("clerk"))
        for refused in (
            rt.receive("clerk", {"build": 7}, webhook="ci", verified=True),
            rt.wake("clerk", "something changed"),
        ):
            with pytest.raises(AgentStopped, match="was stopped by program") as told:
                await refused
            assert told.value.hint == "Let it run again first: wakeful agent resume clerk"
        since = [entry.fact.event.kind for entry in (await rt._here.engine.store.read("clerk"))[before:]]
        assert set(since) == {"input.refused"}, "they are counted, nothing of them is stored, and nothing is taken away"
        (agent,) = await rt.agents()
        assert agent.control == "stopped"
    async with open_store(tmp_path / "wakeful.db") as store:
        assert [turn.prompt for turn in await store.turns()] == ["before"]


@pytest.mark.spec("HOL-MSG-15")
async def test_what_changes_an_agent_without_speaking_to_it_is_no_message(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[Ears().agent()]) as rt:
        await rt.arm_timer("clerk", "look", cron="0 7 * * *")
        await rt.pause("clerk")
        await rt.resume("clerk")
        kinds = [entry.fact.event.kind for entry in await rt._here.engine.store.read("clerk")]
    assert "message.admitted" not in kinds
    assert {"agent.created", "timer.armed", "agent.state_changed"} <= set(kinds), "and each is on record"
