"""`wakeful agent` and `wakeful send`: agents of a runtime from a terminal, without the process that runs them."""

import asyncio
import json
from pathlib import Path

import pytest

from kit.surfaces.command_line import Wakeful
from wakeful import Agent, Runtime
from wakeful.testing import scripted


@pytest.fixture
def home(folder: Path) -> Path:
    """A home in which a runtime was at work once."""

    async def once() -> None:
        async with Runtime(folder / "home", agents=[Agent("ops", scripted(["fine"])), Agent("desk", scripted(["ok"]))]):
            pass

    asyncio.run(once())
    return folder / "home"


def answered(home: Path) -> list[str]:
    """A runtime comes back, answers what waits, and ends."""

    async def run() -> list[str]:
        agents = [Agent("ops", scripted(["fine"])), Agent("desk", scripted(["ok"]))]
        async with Runtime(home, agents=agents) as rt:
            await rt.settled()
            return [f"{each.agent} {each.control}" for each in await rt.agents()]

    return asyncio.run(run())


def test_agents_are_listed_with_why_they_do_not_run(wakeful: Wakeful, home: Path) -> None:
    told = wakeful("agent", "pause", "ops", "--for", "1h", "--reason", "maintenance")
    assert told.code == 0 and told.out.startswith("agent ops is paused until ")
    assert told.out.endswith("to resume: wakeful agent resume ops\n")
    assert wakeful("agent", "stop", "desk", "--as", "ada").out.startswith(
        "agent desk is stopped; it refuses messages\n"
    )
    lines = wakeful("agent").out.splitlines()
    assert [line.split()[:2] for line in lines] == [["AGENT", "STATE"], ["ops", "paused"], ["desk", "stopped"]]
    assert "maintenance (operator) until " in lines[1] and lines[2].endswith("by ada")
    found = json.loads(wakeful("agent", "list", "desk", "--json").out)
    assert [(each["agent"], each["control"], each["changed_by"]) for each in found] == [("desk", "stopped", "ada")]
    assert wakeful("agent", "resume", "desk").out == "agent desk is running\n"


def test_what_is_sent_while_nobody_runs_the_agents_is_answered_by_the_next_runtime(
    wakeful: Wakeful, home: Path
) -> None:
    told = wakeful("send", "ops", "Check the backups.", "--key", "backups-7")
    assert told.code == 0 and told.out.endswith(" is stored for agent ops, thread main\n")
    sent = json.loads(wakeful("send", "ops", "Check the backups.", "--key", "backups-7", "--json").out)
    assert sent["state"] == "queued", "the same key is the same message"
    assert answered(home) == ["ops running", "desk running"]
    again = json.loads(wakeful("send", "ops", "Check the backups.", "--key", "backups-7", "--json").out)
    assert (again["message_id"], again["state"]) == (sent["message_id"], "processed")


def test_a_stopped_agent_an_unknown_one_and_another_message_under_a_key_are_refused(
    wakeful: Wakeful, home: Path
) -> None:
    wakeful("agent", "stop", "desk")
    refused = wakeful("send", "desk", "Hello?")
    assert refused.code != 0
    assert "agent desk was stopped by operator: it takes no messages" in refused.err
    assert "wakeful agent resume desk" in refused.err
    unknown = wakeful("send", "opps", "Hello?")
    assert unknown.code != 0 and "the runtime has no agent 'opps'" in unknown.err and "it has: ops, desk" in unknown.err
    wakeful("send", "ops", "One.", "--key", "k")
    assert "belongs to another message" in wakeful("send", "ops", "Two.", "--key", "k").err
    assert "is not a duration" in wakeful("agent", "pause", "ops", "--for", "soon").err


def test_why_an_agent_does_what_it_does_is_told_in_a_sentence_with_its_facts(wakeful: Wakeful, home: Path) -> None:
    idle = wakeful("why", "ops")
    assert (idle.code, idle.out) == (0, "ops owes nothing.\n")
    wakeful("agent", "pause", "ops", "--reason", "maintenance")
    wakeful("send", "ops", "hello")
    told = wakeful("why", "ops")
    assert told.out.splitlines() == ["ops is paused: maintenance (operator).", "    queue main"]
    data = json.loads(wakeful("why", "ops", "--json").out)
    assert (data["agent"], data["state"], data["threads"][0]["evidence"]) == ("ops", "paused", ["queue main"])
    assert wakeful("why", "nobody").code != 0


def test_everything_is_paused_stopped_and_resumed_from_a_terminal(wakeful: Wakeful, home: Path) -> None:
    told = wakeful("pause", "--all", "--reason", "wrong prices")
    assert told.out.splitlines() == ["all agents are paused", "to resume: wakeful resume --all"]
    assert wakeful("why", "ops").out == "ops is paused: everything was, wrong prices (operator).\n"
    assert wakeful("send", "ops", "hello").code == 0
    assert answered(home) == ["ops running", "desk running"]
    stopped = wakeful("stop", "--all", "--json")
    assert json.loads(stopped.out)["control"] == "stopped"
    refused = wakeful("send", "ops", "more")
    assert refused.code != 0 and "wakeful resume --all" in refused.err
    assert wakeful("resume", "--all").code == 0
    assert wakeful("send", "ops", "more").code == 0
    for wrong in (("pause",), ("pause", "turn_1", "--all"), ("stop",), ("resume", "turn_1", "--all")):
        assert wakeful(*wrong).code == 2


def test_timers_and_notices_are_listed(wakeful: Wakeful, home: Path) -> None:
    async def arm() -> str:
        async with Runtime(home, agents=[Agent("ops", scripted(["fine"])), Agent("desk", scripted(["ok"]))]) as rt:
            return (await rt.arm_timer("ops", "Look.", cron="0 7 * * *", name="look")).timer_id

    timer = asyncio.run(arm())
    listed = wakeful("timer", "list").out
    assert "look" in listed and "0 7 * * * UTC" in listed
    assert wakeful("timer", "cancel", timer).code == 0
    assert json.loads(wakeful("timer", "list", "ops", "--json").out)[0]["state"] == "cancelled"
    assert wakeful("timer", "cancel", timer).code != 0
    assert wakeful("notices").out == "no notices\n"
    assert wakeful("notify", "test", "ops").code == 0
    answered(home)
    (notice,) = json.loads(wakeful("notices", "ops", "--json").out)
    assert (notice["kind"], notice["state"]) == ("test", "not_sent")
