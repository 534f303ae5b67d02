"""Notices through `Runtime`: what people are told without asking, delivered at least once, and bounded."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kit.wires.notice_receiver import passes, receiving
from wakeful import Agent, Runtime, tool
from wakeful.contracts.approvals import Approve
from wakeful.errors import AgentStopped, InvalidConfig, InvalidValue
from wakeful.service.commands.agents import reask
from wakeful.service.commands.approvals import decide
from wakeful.service.queries.overview import overview
from wakeful.testing import FixedClock, scripted

MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = 3600
BROKEN = [{"fail": [{"kind": "contract_error", "message": "no such parameter"}]}]


async def test_a_failure_is_sent_once_and_a_quiet_success_sends_nothing(tmp_path: Path) -> None:
    async with receiving() as there:
        agents = [Agent("ops", scripted(BROKEN), notify={"to": there.url}), Agent("desk", scripted(["fine"]))]
        async with Runtime(tmp_path, agents=agents, notify={"to": there.url}, clock=FixedClock()) as rt:
            failed = await rt.answer(await rt.send("ops", "Check."))
            await rt.answer(await rt.send("desk", "Hello."))
            await rt.settled()
            (notice,) = await rt.notices()
            assert (notice.kind, notice.cause, notice.state, notice.attempts, notice.turn_id) == (
                "failure",
                "turn.failed",
                "delivered",
                1,
                failed.turn_id,
            )
            assert "secret" not in notice.to and notice.to.startswith("http://127.0.0.1:")
        (got,) = there.got
        assert (got["notice_id"], got["agent"], got["kind"]) == (notice.notice_id, "ops", "failure")
        assert there.keys == [notice.notice_id]


async def test_a_notice_that_cannot_be_delivered_is_tried_again_with_the_same_id_and_at_last_given_up(
    tmp_path: Path,
) -> None:
    clock = FixedClock()
    async with receiving() as there:
        there.status = 503
        agent = Agent("ops", scripted(BROKEN), notify={"to": there.url})
        async with Runtime(tmp_path, agents=[agent], clock=clock) as rt:
            await rt.answer(await rt.send("ops", "Check."))
            for _ in range(40):
                await passes(rt, clock, HOUR)
            (notice,) = await rt.notices("ops")
            assert (notice.state, notice.attempts, notice.error) == ("given_up", 32, "127.0.0.1 answered HTTP 503")
        assert [each["attempt"] for each in there.got] == list(range(1, 33))
        assert {each["notice_id"] for each in there.got} == {notice.notice_id}


async def test_a_notice_is_delivered_by_the_next_runtime(tmp_path: Path) -> None:
    clock = FixedClock()
    async with receiving() as there:
        there.status = 500
        agent = Agent("ops", scripted(BROKEN), notify={"to": there.url})
        async with Runtime(tmp_path, agents=[agent], clock=clock) as rt:
            await rt.answer(await rt.send("ops", "Check."))
            await rt.settled()
        there.status = 204
        clock.advance(HOUR)
        async with Runtime(tmp_path, agents=[agent], clock=clock) as rt:
            await rt.settled()
            (notice,) = await rt.notices()
            assert (notice.state, notice.attempts) == ("delivered", 2)


async def test_a_paused_agent_is_told_of_while_it_is_paused(tmp_path: Path) -> None:
    """An agent whose code is missing is paused, and that is the thing to be told."""
    clock = FixedClock()
    async with receiving() as there:
        async with Runtime(tmp_path, agents=[Agent("ops", scripted(["x"]))], clock=clock) as rt:
            await rt.pause("ops")
            await rt.send("ops", "Hello?")
        async with Runtime(tmp_path, notify={"to": there.url}, clock=clock) as rt:
            await rt.resume("ops")
            await rt.settled()
            (notice,) = await rt.notices()
            assert (notice.kind, notice.cause, notice.state) == ("failure", "agent.state_changed", "delivered")
            assert "the code of agent 'ops' was not supplied" in notice.text


async def test_a_command_is_given_the_notice_on_its_standard_input(tmp_path: Path) -> None:
    code = f"import sys; open({str(tmp_path / 'got')!r}, 'a').write(sys.stdin.read())"
    agent = Agent("ops", scripted(BROKEN), notify={"to": [sys.executable, "-c", code]})
    async with Runtime(tmp_path / "home", agents=[agent], clock=FixedClock()) as rt:
        await rt.answer(await rt.send("ops", "Check."))
        await rt.settled()
        (notice,) = await rt.notices()
        assert (notice.state, notice.error) == ("delivered", "")
    assert json.loads((tmp_path / "got").read_text())["notice_id"] == notice.notice_id


async def test_kinds_that_nobody_wants_are_listed_and_not_sent(tmp_path: Path) -> None:
    async with receiving() as there:
        agent = Agent("ops", scripted(BROKEN), notify={"to": there.url, "on": ["missed"]})
        async with Runtime(tmp_path, agents=[agent, Agent("desk", scripted(BROKEN))], clock=FixedClock()) as rt:
            await rt.answer(await rt.send("ops", "Check."))
            await rt.answer(await rt.send("desk", "Check."))
            await rt.settled()
            assert [(each.agent, each.state) for each in await rt.notices()] == [
                ("desk", "not_sent"),
                ("ops", "not_sent"),
            ]
        assert there.got == []


async def test_missed_times_are_told(tmp_path: Path) -> None:
    clock = FixedClock(MIDNIGHT)
    async with receiving() as there:
        agent = Agent("ops", scripted(["done"], leftover="ignore"), notify={"to": there.url})
        async with Runtime(tmp_path, agents=[agent], clock=clock) as rt:
            await rt.arm_timer("ops", "Look.", cron="0 * * * *", catch_up="none")
        clock.advance(5 * HOUR + 600)
        async with Runtime(tmp_path, agents=[agent], clock=clock) as rt:
            await rt.settled()
            (notice,) = await rt.notices()
            assert (notice.kind, notice.text) == ("missed", "missed 5 times, the last at 2026-01-01T05:00:00.000Z")
        assert len(there.got) == 1


async def test_in_quiet_hours_only_what_needs_a_decision_comes_through(tmp_path: Path) -> None:
    @tool(effect="irreversible", approval=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    clock = FixedClock(datetime(2026, 1, 1, 23, tzinfo=UTC))
    async with receiving() as there:
        target = {"to": there.url, "quiet": "22:00-07:00"}
        asks = Agent("asks", scripted([{"calls": [{"name": "pay"}]}]), tools=[pay], notify=target)
        async with Runtime(tmp_path, agents=[Agent("ops", scripted(BROKEN), notify=target), asks], clock=clock) as rt:
            await rt.answer(await rt.send("ops", "Check."))
            await rt.answer(await rt.send("asks", "Pay."))
            await rt.settled()
            assert [each["kind"] for each in there.got] == ["action_required"]
            await passes(rt, clock, 8 * HOUR - 1)
            assert [each["kind"] for each in there.got] == ["action_required"]
            await passes(rt, clock, 1)
            assert [each["kind"] for each in there.got] == ["action_required", "failure"]


async def test_an_address_of_this_network_is_refused_unless_it_is_allowed(tmp_path: Path) -> None:
    """A URL that names this machine means it; a name that leads there does not."""
    agent = Agent("ops", scripted(BROKEN), notify={"to": "http://10.0.0.1:9/hook"})
    async with Runtime(tmp_path, agents=[agent], clock=FixedClock()) as rt:
        await rt.answer(await rt.send("ops", "Check."))
        await rt.settled()
        (notice,) = await rt.notices()
        assert (notice.state, notice.attempts) == ("pending", 1)
        assert notice.error == "10.0.0.1 is a private address, and no request goes there"


async def test_inversion_an_address_that_is_allowed_is_spoken_to(tmp_path: Path) -> None:
    async with receiving() as there:
        agent = Agent("ops", scripted(BROKEN), notify={"to": there.url, "allow_private": True})
        async with Runtime(tmp_path, agents=[agent], clock=FixedClock()) as rt:
            await rt.answer(await rt.send("ops", "Check."))
            await rt.settled()
        assert len(there.got) == 1


async def test_what_an_agent_tells_its_operator_is_a_notice_where_it_is_wanted(tmp_path: Path) -> None:
    said = {"calls": [{"name": "notify_operator", "arguments": {"text": "Half of it is done."}}]}
    async with receiving() as there:
        target = {"to": there.url, "on": ["progress"]}
        agent = Agent("ops", scripted([said, "done"]), work_items=True, notify=target)
        async with Runtime(tmp_path, agents=[agent], clock=FixedClock()) as rt:
            await rt.answer(await rt.send("ops", "Work."))
            await rt.settled()
        assert [(each["kind"], each["text"]) for each in there.got] == [("progress", "ops: Half of it is done.")]


@pytest.mark.parametrize(
    "notify",
    [
        {"to": "ftp://x"},
        {"to": []},
        {"on": ["failure"]},
        {"to": "https://x.example", "on": ["everything"]},
        {"to": "https://x.example", "quiet": "late"},
        {"to": "https://x.example", "timezone": "Europe/Nowhere"},
        {"to": "https://x.example", "unknown": 1},
    ],
)
def test_a_target_that_leads_nowhere_is_refused(notify: Any) -> None:
    with pytest.raises(InvalidConfig):
        Agent("ops", scripted(["x"]), notify=notify)
    with pytest.raises(InvalidConfig):
        Runtime("home", notify=notify)


# --- approvals -------------------------------------------------------------------------------------------------------


@tool(effect="irreversible", approval=True)
def pay() -> str:
    """Pay."""
    return "paid"


async def test_an_approval_is_reminded_of_once_and_what_expires_is_no_refusal(tmp_path: Path) -> None:
    clock, seen = FixedClock(MIDNIGHT), list[str]()

    def reply(request: Any) -> Any:
        last = request.history[-1]
        if last.role == "tool":
            seen.append(last.text)
            return "nobody was there"
        return {"calls": [{"name": "pay"}]}

    async with receiving() as there:
        agent = Agent("ops", scripted(reply), tools=[pay], approval_expiry=2 * HOUR, notify={"to": there.url})
        async with Runtime(tmp_path, agents=[agent], clock=clock) as rt:
            asked = await rt.answer(await rt.send("ops", "Pay."))
            await passes(rt, clock, HOUR - 1)
            assert [each["about"] for each in there.got] == [asked.approvals[0].approval_id]
            await passes(rt, clock, 1)
            await passes(rt, clock, 600)
            assert [notice.cause for notice in await rt.notices()] == ["action.reminded", "action.required"]
            await passes(rt, clock, HOUR)
            assert (await rt.notices())[0].cause == "action.resolved"
            turn = await rt._here.engine.store.turn(asked.turn_id)
            assert turn is not None and turn.state == "completed"
            (told,) = seen
            assert "timed_out" in told or "time" in told
            assert "reject" not in told and "refuse" not in told
        assert [each["kind"] for each in there.got] == ["action_required"] * 3


async def test_an_approval_whose_time_ran_out_while_its_agent_was_paused_is_not_said_to_wait(tmp_path: Path) -> None:
    clock = FixedClock(MIDNIGHT)

    def reply(request: Any) -> Any:
        return "fine" if request.history[-1].role == "tool" else {"calls": [{"name": "pay"}]}

    agent = Agent("ops", scripted(reply), tools=[pay], approval_expiry=2 * HOUR)
    async with Runtime(tmp_path, agents=[agent], clock=clock) as rt:
        await rt.answer(await rt.send("ops", "Pay."))
        await rt.pause("ops", seconds=3 * HOUR)
        await passes(rt, clock, 3 * HOUR)
        assert [notice.cause for notice in await rt.notices()] == ["action.resolved", "action.required"]
        assert (await rt.why("ops")).state == "idle"


async def test_a_decision_ends_the_reminder(tmp_path: Path) -> None:
    clock = FixedClock(MIDNIGHT)
    agent = Agent("ops", scripted([{"calls": [{"name": "pay"}]}, "paid"]), tools=[pay], approval_expiry=2 * HOUR)
    async with Runtime(tmp_path, agents=[agent], clock=clock) as rt:
        asked = await rt.answer(await rt.send("ops", "Pay."))
        await decide(rt._here.engine, asked.approvals[0].approval_id, Approve())
        await passes(rt, clock, 3 * HOUR)
        assert [notice.cause for notice in await rt.notices()] == ["action.required"]


# --- providers that let nobody in --------------------------------------------------------------------------------


async def test_a_key_that_is_refused_parks_the_agents_of_its_provider_and_is_told_once(tmp_path: Path) -> None:
    clock, is_refused, asked = FixedClock(MIDNIGHT), [True], list[str]()

    def reply(request: Any) -> Any:
        asked.append(request.turn_id)
        return {"fail": [{"kind": "auth_error", "message": "no such key"}]} if is_refused[0] else "fine"

    async with receiving() as there:
        agents = [Agent(f"a{number}", scripted(reply)) for number in range(5)]
        async with Runtime(tmp_path, agents=agents, notify={"to": there.url}, clock=clock) as rt:
            first = await rt.answer(await rt.send("a0", "Hello."))
            assert (first.status, first.waiting_for) == ("waiting", "provider")
            await rt.settled()
            waiting = [await rt.send(f"a{number}", "Hello.") for number in range(5)]
            await rt.settled()
            parked = [each for each in await rt.agents() if each.agent != "a0"]
            assert {(each.control, each.cause) for each in parked} == {("paused", "provider")}
            assert [(each["kind"], each["about"]) for each in there.got] == [("failure", "scripted")]
            assert len(asked) == 1
            await passes(rt, clock, 60)
            assert asked[1:] == ["probe"]
            for _ in range(10):
                await passes(rt, clock, 60)
            assert asked[1:] == ["probe"] * 3, "probes back off: after 1, 3 and 7 minutes"
            is_refused[0] = False
            await passes(rt, clock, HOUR)
            assert [(await rt.answer(each)).output for each in waiting] == ["fine"] * 5
            assert {each.control for each in await rt.agents()} == {"running"}
        assert len(there.got) == 1


async def test_a_resume_asks_the_provider_at_once(tmp_path: Path) -> None:
    clock, is_refused = FixedClock(MIDNIGHT), [True]

    def reply(request: Any) -> Any:
        return {"fail": [{"kind": "quota_exhausted", "message": "empty"}]} if is_refused[0] else "fine"

    async with Runtime(tmp_path, agents=[Agent("ops", scripted(reply))], clock=clock) as rt:
        await rt.answer(await rt.send("ops", "Hello."))
        await rt.settled()
        sent = await rt.send("ops", "And now?")
        await rt.settled()
        assert (await rt.why("ops")).state == "paused"
        is_refused[0] = False
        await rt.resume("ops")
        assert (await rt.answer(sent)).output == "fine"


async def test_an_expired_approval_can_be_asked_for_again(tmp_path: Path) -> None:
    clock = FixedClock(MIDNIGHT)

    def reply(request: Any) -> Any:
        return "fine" if request.history[-1].role == "tool" else {"calls": [{"name": "pay"}]}

    agent = Agent("ops", scripted(reply), tools=[pay], approval_expiry=HOUR)
    async with Runtime(tmp_path, agents=[agent], clock=clock) as rt:
        asked = await rt.answer(await rt.send("ops", "Pay."))
        (first,) = asked.approvals
        engine = rt._here.engine
        with pytest.raises(InvalidValue, match="is still pending"):
            await reask(engine, first.approval_id, by="operator")
        await passes(rt, clock, 2 * HOUR)
        await rt.stop_all()
        with pytest.raises(AgentStopped):
            await reask(engine, first.approval_id, by="operator")
        await rt.resume_all()
        again = await reask(engine, first.approval_id, by="operator")
        await rt.settled()
        pending = await engine.store.actions(pending_only=True)
        assert [row.status for row in pending] == ["pending"]
        assert pending[0].action_id != first.approval_id
        assert (await reask(engine, first.approval_id, by="operator")).message_id == again.message_id
        await decide(engine, pending[0].action_id, Approve())
        await rt.settled()
        with pytest.raises(InvalidValue, match="was approved by program"):
            await reask(engine, pending[0].action_id, by="operator")


async def test_an_agent_that_waits_for_its_operator_says_so_and_needs_somebody(tmp_path: Path) -> None:
    question = {"name": "wait_for", "arguments": {"reason": "Refund A or B?", "wake": "operator_input"}}
    ops = Agent("ops", scripted(lambda request: "done" if len(request.history) > 1 else {"calls": [question]}))
    async with (
        receiving() as there,
        Runtime(tmp_path, agents=[ops], notify={"to": there.url}, clock=FixedClock()) as rt,
    ):
        await rt.answer(await rt.send("ops", "Refund the order."))
        await rt.settled()
        (notice,) = await rt.notices()
        assert (notice.kind, notice.cause, notice.text) == (
            "action_required",
            "wait.created",
            "waits for your answer: Refund A or B?",
        )
        seen = await overview(rt._here.engine, None)
        assert [(each.agent, each.needs) for each in seen.agents] == [("ops", ("asks you: Refund A or B?",))]
        await rt.answer(await rt.send("ops", "A."))
        await rt.settled()
        assert [each.needs for each in (await overview(rt._here.engine, None)).agents] == [()]
    assert [each["kind"] for each in there.got] == ["action_required"]


async def test_a_provider_is_asked_by_another_agent_where_the_one_that_found_out_is_gone(tmp_path: Path) -> None:
    clock, is_refused, asked = FixedClock(MIDNIGHT), [True], list[str]()

    def reply(request: Any) -> Any:
        asked.append(request.turn_id)
        return {"fail": [{"kind": "auth_error", "message": "no such key"}]} if is_refused[0] else "fine"

    finder, other = Agent("finder", scripted(reply)), Agent("other", scripted(reply))
    async with Runtime(tmp_path, agents=[finder, other], clock=clock) as rt:
        await rt.answer(await rt.send("finder", "Hello."))
        await rt.settled()
        sent = await rt.send("other", "Hello.")
        await rt.settled()
    async with Runtime(tmp_path, agents=[other], clock=clock) as rt:
        await passes(rt, clock, 60)
        assert asked[1:] == ["probe"]
        assert (await rt.agent("other")).cause == "provider", "it still refuses"
        is_refused[0] = False
        await passes(rt, clock, HOUR)
        assert (await rt.agent("other")).control == "running"
        assert (await rt.answer(sent)).output == "fine"


async def test_the_model_that_an_operator_gave_is_the_one_that_is_asked_again(tmp_path: Path) -> None:
    """A definition that names another model says nothing about the one that was refused."""
    clock, script = FixedClock(MIDNIGHT), tmp_path / "script.json"
    script.write_text(json.dumps([{"fail": [{"kind": "auth_error", "message": "no such key"}]}]))
    async with Runtime(tmp_path / "home", agents=[Agent("ops", "scripted:demo")], clock=clock) as rt:
        await rt.set_model("ops", f"scripted:{script}")
        assert (await rt.answer(await rt.send("ops", "Hello."))).status == "waiting"
        await rt.settled()
        waiting = await rt.send("ops", "And now?")
        await rt.settled()
        await passes(rt, clock, 60)
        row = await rt._here.engine.store.message(waiting.message_id)
        assert row is not None
        assert row.state == "queued", "no turn was spent on a provider that still refuses"
        assert (await rt.agent("ops")).cause == "provider"
