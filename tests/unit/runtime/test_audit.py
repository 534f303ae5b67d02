"""What the log can tell afterwards: what woke an agent, whose word it was, and what came of which task."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kit.gates.confined_commands import place_outside
from kit.runs.engine_runs import calls
from wakeful import Agent, HookInput, HookVerdict, Runtime, hook, open_store, tool
from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.events import MessageAdmitted
from wakeful.ports import ModelRequest
from wakeful.testing import FixedClock, scripted
from wakeful.views.transcript import Transcript, UserMessage

BUILDS = "while [ ! -e go ]; do sleep 0.01; done; echo built"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("WAKEFUL_HOME", str(folder))
    return folder


@pytest.fixture
async def workspace() -> AsyncIterator[Path]:
    with place_outside() as root:
        yield root


async def log(rt: Runtime, agent: str = "ops") -> list[StoredFact]:
    return await rt._here.engine.store.read(agent)


async def admitted(rt: Runtime, kind: str) -> list[MessageAdmitted]:
    events = [entry.fact.event for entry in await log(rt)]
    return [event for event in events if isinstance(event, MessageAdmitted) and event.message_kind == kind]


async def task_result(rt: Runtime, workspace: Path) -> MessageAdmitted:
    """What the end of the agent's task is told as: the task may end now."""
    (workspace / "go").touch()
    async for event in rt.follow("ops"):
        if event.type == "message.admitted" and event.payload["message_kind"] == "task_result":
            break
    return (await admitted(rt, "task_result"))[0]


@pytest.mark.spec("HOL-KIND-08", "HOL-ORIG-07", "HOL-MSG-09", "HOL-QUEUE-05")
async def test_the_end_of_a_task_comes_back_through_the_queue_with_its_identity(
    tmp_path: Path, workspace: Path
) -> None:
    begun = [calls(("exec_command", {"cmd": BUILDS, "yield_time_ms": 1})), "It runs."]

    def reply(request: ModelRequest) -> Any:
        return begun.pop(0) if begun else "told"

    agent = Agent("ops", scripted(reply), workspace=workspace)
    async with Runtime(tmp_path / "rt", agents=[agent]) as rt:
        sent = await rt.send("ops", "Build it.")
        await rt.answer(sent)
        result = await task_result(rt, workspace)
        envelope = await rt.message(result.message_id)
        assert (envelope.kind, envelope.trigger_kind) == ("task_result", "task_result")
        assert envelope.task_id is not None
        assert envelope.origin.model_dump() == {"kind": "task", "task_id": envelope.task_id}
        assert (envelope.delivery_surface, envelope.causation_id) == ("task_rejoin", envelope.task_id)
        answer = await rt.answer(result.message_id)
        assert answer.output == "told"
        row = await rt._here.engine.store.message(result.message_id)
        assert row is not None and row.state == "processed", "it waited in the queue of the thread, and a turn took it"
        first = await rt.message(sent)
        assert (first.task_id, first.work_item_id) == (None, None)


@pytest.mark.spec("HOL-MSG-08", "HOL-MSG-16")
async def test_a_message_about_a_work_item_is_tied_to_it_before_a_turn_begins(tmp_path: Path) -> None:
    agent = Agent("ops", scripted(lambda request: "noted"), work_items=True)
    async with Runtime(tmp_path / "rt", agents=[agent], clock=FixedClock()) as rt:
        item = await rt.enqueue("ops", "Mend the build.")
        await rt.settled()
        tick = (await admitted(rt, "system_tick"))[0]
        envelope = await rt.message(tick.message_id)
        assert (envelope.work_item_id, envelope.trigger_kind, envelope.task_id) == (item.id, "system_tick", None)
        entries = await log(rt)
        named = next(entry.seq for entry in entries if entry.fact.event is tick or entry.fact.event == tick)
        begun = next(entry.seq for entry in entries if entry.fact.event.kind == "turn.started")
        assert named < begun, "admission has said it all"


class Labels:
    """A hook that notes what a permission-sensitive call is judged by."""

    def __init__(self) -> None:
        self.seen: list[HookInput] = []

    def hook(self) -> Any:
        @hook("pre_tool_use")
        def note(call: HookInput) -> HookVerdict | None:
            self.seen.append(call)
            return None

        return note


@pytest.mark.spec("HOL-AUTH-14")
async def test_a_hook_reads_whose_word_is_behind_a_call_and_what_would_hold_it(tmp_path: Path, workspace: Path) -> None:
    labels = Labels()

    def reply(request: ModelRequest) -> Any:
        return calls(("exec_command", {"cmd": "echo hello"})) if request.answered == 0 else "done"

    agent = Agent("ops", scripted(reply), workspace=workspace, hooks=[labels.hook()])
    async with Runtime(tmp_path / "rt", agents=[agent]) as rt:
        await rt.answer(await rt.send("ops", "Say hello.", thread="a"))
        await rt.answer(await rt.receive("ops", "Say hello.", channel="mail", thread="b"))
    own, other = labels.seen
    assert (own.derived_from, other.derived_from) == ("operator_instruction", "external_evidence")
    assert own.confinement is not None
    assert own.confinement.mode in ("bubblewrap", "landlock", "not_enforced") and own.confinement.network == "none"
    told = other.to_dict()
    assert told["derived_from"] == "external_evidence" and told["confinement"]["cwd"] == str(workspace)


@pytest.mark.spec("HOL-AUTH-15", "HOL-MSG-18", "HOL-AUDIT-01")
async def test_from_the_log_one_can_tell_what_woke_an_agent_and_why_it_acted(tmp_path: Path) -> None:
    shown: list[str] = []

    @tool(effect="keyed", approval=True)
    def pay(cents: int) -> str:
        """Pay somebody."""
        return "paid"

    def reply(request: ModelRequest) -> Any:
        shown.append(str(request.history[-1].text))
        return calls(("pay", {"cents": 5})) if request.answered == 0 and "bill" in shown[-1] else "noted"

    agent = Agent("ops", scripted(reply), tools=[pay])
    place = tmp_path / "rt"
    async with Runtime(place, agents=[agent], clock=FixedClock()) as rt:
        await rt.create_trigger("ops", "bills")
        receipt = await rt.deliver(
            await rt.trigger_url("ops/bills"), b'{"bill": 5}', {"Content-Type": "application/json"}
        )
        assert receipt.message_id is not None
        asked = await rt.answer(receipt.message_id)
        assert asked.status == "approval_required"
        entries = await log(rt)
    way = "via http_callback_enqueue, external_trigger_capability; authority: integration_signal]"
    assert way in shown[0], "the model is told"
    async with open_store(place / "wakeful.db") as store:
        told = await store.why(asked.approvals[0].call_id)
        (woke,) = told.messages
        assert (woke.message_id, woke.kind, woke.origin.kind) == (receipt.message_id, "callback_event", "callback")
        assert (woke.authority_class, woke.derived_from) == ("integration_signal", "external_evidence")
        assert (woke.delivery_surface, woke.admission_context) == (
            "http_callback_enqueue",
            "external_trigger_capability",
        )
        assert told.verdict == "ask" and any("approval" in step.words or step.rules for step in told.steps)
        events = [event async for event in store.events(asked.turn_id)]
        (message,) = [event.payload for event in events if event.type == "message.admitted"]
        assert (message["trust"], message["trigger_kind"]) == ("trusted_integration", "external_event")
    of_turn = [entry._replace() for entry in entries]
    for entry in of_turn:
        if isinstance(entry.fact.event, MessageAdmitted):
            entry.fact.turn_id = asked.turn_id
    transcript = Transcript()
    (heard,) = [each for entry in of_turn if isinstance(each := transcript.feed(entry), UserMessage)]
    assert heard.data.message == woke, "the transcript says the same"


@pytest.mark.spec("HOL-AUDIT-01")
async def test_which_task_caused_a_follow_up_is_told_with_the_call(tmp_path: Path, workspace: Path) -> None:
    @tool(effect="keyed")
    def tell(words: str) -> str:
        """Tell somebody."""
        return "told"

    begun = [
        calls(("exec_command", {"cmd": BUILDS, "yield_time_ms": 1})),
        "It runs.",
        calls(("tell", {"words": "it is built"})),
        "Done.",
    ]
    agent = Agent("ops", scripted(lambda request: begun.pop(0)), workspace=workspace, tools=[tell])
    async with Runtime(tmp_path / "rt", agents=[agent]) as rt:
        await rt.answer(await rt.send("ops", "Build it."))
        result = await task_result(rt, workspace)
        done = await rt.answer(result.message_id)
    async with open_store(tmp_path / "rt" / "wakeful.db") as store:
        names = [event.tool_call_id async for event in store.events(done.turn_id) if event.type == "tool.started"]
        told = await store.why(f"{done.turn_id}/{names[0]}")
    assert [(each.kind, each.task_id) for each in told.messages] == [("task_result", result.task_id)]


@pytest.mark.spec("HOL-AUDIT-03")
async def test_deliveries_revocations_and_every_change_from_outside_are_events(tmp_path: Path) -> None:
    agent = Agent("ops", scripted(lambda request: "noted"), work_items=True)
    async with Runtime(tmp_path / "rt", agents=[agent], clock=FixedClock()) as rt:
        await rt.create_trigger("ops", "ci", by="ada")
        await rt.deliver(await rt.trigger_url("ops/ci", by="ada"), b"red")
        await rt.rotate_trigger("ops/ci", by="ada")
        await rt.revoke_trigger("ops/ci", by="ada", reason="not used")
        timer = await rt.arm_timer("ops", "Look.", cron="0 7 * * *", by="ada")
        await rt.cancel_timer(timer.timer_id, by="ada")
        await rt.enqueue("ops", "Mend the build.", by="ada")
        await rt.pause("ops", by="ada")
        await rt.resume("ops", by="ada")
        events = [entry.fact.event for entry in await log(rt)]
    made = {event.kind: event for event in events}
    who = {
        "trigger.created": "created_by",
        "trigger.url_given": "given_to",
        "trigger.rotated": "rotated_by",
        "trigger.revoked": "revoked_by",
        "timer.armed": "armed_by",
        "timer.cancelled": "cancelled_by",
        "work_item.enqueued": "enqueued_by",
        "agent.state_changed": "changed_by",
    }
    assert {kind: getattr(made[kind], field) for kind, field in who.items()} == dict.fromkeys(who, "ada")
    assert made["trigger.delivered"].target_agent_id == "ops"  # type: ignore[union-attr]
    assert made["trigger.revoked"].reason == "not used"  # type: ignore[union-attr]


@pytest.mark.spec("HOL-CORE-01")
async def test_one_message_at_a_time_is_answered_in_a_thread_and_threads_run_side_by_side(tmp_path: Path) -> None:
    """HOL-CORE-01 holds for a thread (W22)."""
    running: list[str] = []
    together: set[tuple[str, ...]] = set()
    gate, both = asyncio.Event(), asyncio.Event()

    @tool(effect="pure")
    async def work(name: str) -> str:
        """Work."""
        running.append(name)
        together.add(tuple(sorted(running)))
        if len(running) == 2:
            both.set()
        await gate.wait()
        running.remove(name)
        return "worked"

    def reply(request: ModelRequest) -> Any:
        return calls(("work", {"name": str(request.history[-1].text)})) if request.answered == 0 else "done"

    agent = Agent("ops", scripted(reply), tools=[work])
    async with Runtime(tmp_path / "rt", agents=[agent], clock=FixedClock()) as rt:
        for name, thread in (("a1", "a"), ("a2", "a"), ("b1", "b")):
            await rt.send("ops", name, thread=thread, key=name)
        await both.wait()
        gate.set()
        await rt.settled()
    assert ("a1", "b1") in together, "two threads of one agent run at the same time"
    assert not [names for names in together if {"a1", "a2"} <= set(names)], "and one thread answers one after another"


@pytest.mark.spec("HOL-CORE-02")
async def test_an_agent_is_awake_while_it_works_and_asleep_until_something_comes(tmp_path: Path) -> None:
    begun, gate = asyncio.Event(), asyncio.Event()

    @tool(effect="pure")
    async def work() -> str:
        """Work."""
        begun.set()
        await gate.wait()
        return "worked"

    replies = [calls(("work", {})), calls(("wait_for", {"reason": "the build", "wake": "external"}))]
    agent = Agent("ops", scripted(lambda request: replies.pop(0) if replies else "done"), tools=[work])
    async with Runtime(tmp_path / "rt", agents=[agent], clock=FixedClock()) as rt:
        assert (await rt.closure("ops")).runtime_posture == "sleeping"
        sent = await rt.send("ops", "Work.")
        await begun.wait()
        assert (await rt.closure("ops")).runtime_posture == "awake", "it waits for a tool"
        gate.set()
        await rt.answer(sent)
        await rt.settled()
        stands = await rt.closure("ops")
        assert (stands.runtime_posture, stands.waiting_reason) == ("sleeping", "awaiting_external_change")
        assert json.loads(stands.model_dump_json())["runtime_posture"] in ("awake", "sleeping"), "and nothing else"
