"""`wakeful agent` and `wakeful send`: agents of a runtime from a terminal, without the process that runs them."""

import asyncio
import json
from pathlib import Path

import pytest

from kit.surfaces.command_line import ME, Wakeful
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
    assert wakeful("agent", "stop", "desk").out.startswith("agent desk is stopped; it refuses messages\n")
    lines = wakeful("agent").out.splitlines()
    assert [line.split()[:2] for line in lines] == [["AGENT", "STATE"], ["ops", "paused"], ["desk", "stopped"]]
    assert "maintenance (you) until " in lines[1] and lines[2].endswith("by you")
    found = json.loads(wakeful("agent", "list", "desk", "--json").out)
    assert [(each["agent"], each["control"], each["changed_by"]) for each in found] == [("desk", "stopped", ME)]
    assert wakeful("agent", "resume", "desk").out == "agent desk is running\n"


def test_what_is_sent_while_nobody_runs_the_agents_is_answered_by_the_next_runtime(
    wakeful: Wakeful, home: Path
) -> None:
    told = wakeful("send", "ops", "Check the backups.", "--key", "backups-7")
    assert told.code == 0 and " is stored for agent ops, thread main\n" in told.out
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
    assert "agent desk was stopped by you: it takes no messages" in refused.err
    assert "wakeful agent resume desk" in refused.err
    unknown = wakeful("send", "opps", "Hello?")
    assert (
        unknown.code != 0
        and "the runtime has no agent 'opps'" in unknown.err
        and "did you mean ops? It has: ops, desk." in unknown.err
    )
    asked = {words: wakeful(*words.split()) for words in ("tail opps", "why opps", "thread list opps", "notices opps")}
    assert [words for words, done in asked.items() if done.code != 2 or "did you mean ops?" not in done.err] == []
    wakeful("send", "ops", "One.", "--key", "k")
    assert "belongs to another message" in wakeful("send", "ops", "Two.", "--key", "k").err
    assert "is not a duration" in wakeful("agent", "pause", "ops", "--for", "soon").err


def test_why_an_agent_does_what_it_does_is_told_in_a_sentence_with_its_facts(wakeful: Wakeful, home: Path) -> None:
    idle = wakeful("why", "ops")
    assert (idle.code, idle.out) == (0, "ops owes nothing.\n")
    wakeful("agent", "pause", "ops", "--reason", "maintenance")
    kept = wakeful("send", "ops", "hello").out.splitlines()
    assert kept[1:3] == ["it is paused and keeps the message", "to resume: wakeful agent resume ops"]
    told = wakeful("why", "ops")
    assert told.out.splitlines() == [
        "ops is paused: maintenance (you).", "    queue main", "  to let it run again: wakeful agent resume ops",
    ]  # fmt: skip
    data = json.loads(wakeful("why", "ops", "--json").out)
    assert (data["agent"], data["state"], data["threads"][0]["evidence"]) == ("ops", "paused", ["queue main"])
    assert wakeful("why", "nobody").code != 0


def test_everything_is_paused_stopped_and_resumed_from_a_terminal(wakeful: Wakeful, home: Path) -> None:
    told = wakeful("pause", "--all", "--reason", "wrong prices")
    assert told.out.splitlines() == ["all agents are paused", "to resume: wakeful resume --all"]
    assert wakeful("why", "ops").out.splitlines() == [
        "ops is paused: everything was, wrong prices (you).", "  to let it run again: wakeful resume --all",
    ]  # fmt: skip
    held = "Everything is paused, by you. To let it run: wakeful resume --all"
    assert wakeful("agent", "--wide").out.count(held) == 2
    assert wakeful("agent", "resume", "ops").out.splitlines() == ["agent ops runs again when everything does", held]
    assert held in wakeful("send", "ops", "hello").out.splitlines()
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
    assert wakeful("timer", "cancel", "look").code == 0, "by the name that the list shows"
    assert json.loads(wakeful("timer", "list", "ops", "--json").out)[0]["state"] == "cancelled"
    assert wakeful("timer", "cancel", timer).code != 0
    assert wakeful("notices").out == "no notices\n"
    assert wakeful("notify", "test", "ops").code == 0
    answered(home)
    (notice,) = json.loads(wakeful("notices", "ops", "--json").out)
    assert (notice["kind"], notice["state"]) == ("test", "not_sent")


# --- what an agent is ------------------------------------------------------------------------------------------------


@pytest.fixture
def own_home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own home: templates are kept there."""
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("WAKEFUL_AGENT_ID", raising=False)
    return folder


def test_an_agent_is_created_with_a_home_shown_and_changed(wakeful: Wakeful, own_home: Path) -> None:
    made = wakeful("agent", "create", "ops", "--model", "scripted:demo", "--template", "wakeful-default")
    assert made.out.splitlines() == [
        "agent ops is created",
        f"home: {own_home}/home/agents/ops",
        "no daemon runs: wakeful daemon start",
        'now: wakeful send ops "hello"',
    ]
    assert (own_home / "home/agents/ops/memory/self.md").exists()
    told = wakeful("agent", "show", "ops").out.splitlines()
    assert told[:3] == [
        "ops",
        "  status     idle, completed",
        "  identity   named, public, self_owned, public_named",
    ]
    assert told[4] == "  model      scripted:demo (of its definition)"
    assert told[5].endswith(" ago, 0 turns since")
    assert wakeful("agent", "model", "ops", "scripted:refund.yaml").out == (
        "agent ops: scripted:refund.yaml (override of scripted:demo)\n"
    )
    shown = json.loads(wakeful("agent", "show", "ops", "--json").out)
    assert (shown["model"]["source"], shown["state"]["model_override"]) == ("agent_override", "scripted:refund.yaml")
    assert wakeful("agent", "model", "ops", "--clear").out == "agent ops: scripted:demo (of its definition)\n"
    assert "were both given" in wakeful("agent", "model", "ops", "scripted:demo", "--clear").err
    again = wakeful("agent", "create", "ops", "--model", "scripted:demo")
    assert again.code != 0 and "there is an agent called 'ops' already" in again.err
    wrong = wakeful("agent", "create", "desk", "--model", "scripted:demo", "--template", "nobody-has-it")
    assert wrong.code != 0 and "there are: wakeful-default, wakeful-developer" in wrong.err.lower()
    assert "the runtime has no agent 'desk'" in wakeful("agent", "show", "desk").err


def test_revisions_are_listed_and_compared(wakeful: Wakeful, home: Path) -> None:
    async def changed() -> None:
        async with Runtime(home, agents=[Agent("ops", scripted(["x"], leftover="ignore"), "Be brief.")]):
            pass

    asyncio.run(changed())
    lines = wakeful("agent", "history", "ops").out.splitlines()
    assert lines[0].split() == ["REVISION", "SINCE", "TURNS", "STATE", "FROM"]
    assert len(lines) == 3 and " in force " in lines[1]
    assert '+instructions: "Be brief."' in wakeful("agent", "diff", "ops").out
    revisions = json.loads(wakeful("agent", "history", "ops", "--json").out)
    assert [each["in_force"] for each in revisions] == [True, False]
    assert "was never changed" in wakeful("agent", "diff", "desk").err


def test_an_agent_is_archived_brought_back_and_deleted(wakeful: Wakeful, own_home: Path) -> None:
    wakeful("agent", "create", "ops", "--model", "scripted:demo")
    assert wakeful("agent", "archive", "ops", "--reason", "summer").out == (
        "agent ops is archived\nto bring it back: wakeful agent resume ops\n"
    )
    assert "no agents yet" in wakeful("agent").out
    assert "summer (you)" in wakeful("agent", "--archived").out
    wakeful("agent", "resume", "ops")
    wakeful("send", "ops", "Hello?")
    refused = wakeful("agent", "delete", "ops")
    assert refused.code != 0 and "agent 'ops' cannot be deleted now: 1 queued messages" in refused.err
    wakeful("agent", "create", "desk", "--model", "scripted:demo")
    assert json.loads(wakeful("agent", "delete", "desk", "--json").out) == {"agent": "desk", "deleted": True}
    assert "the runtime has no agent 'desk'" in wakeful("agent", "show", "desk").err


# --- runs of an agent ------------------------------------------------------------------------------------------------


@pytest.mark.spec("HOL-AGENT-10")
def test_a_run_that_names_no_agent_leaves_none_behind(wakeful: Wakeful, own_home: Path) -> None:
    assert wakeful("run", "hello").code == 0
    assert "no agents yet" in wakeful("agent", "--private").out
    (turn,) = (json.loads(line) for line in wakeful("events", "--json").out.splitlines())
    assert (turn["agent"], turn["thread"]) == ("assistant", "main")
    assert turn["agent_id"] != turn["agent"], "it has a stream of its own, which nobody comes back to"


@pytest.mark.spec("HOL-AGENT-11", "HOL-AGENT-12", "HOL-AGENT-08")
def test_a_run_is_for_an_agent_that_is_there_or_is_to_be_created(wakeful: Wakeful, own_home: Path) -> None:
    missing = wakeful("run", "hello", "--agent", "ops")
    assert missing.code != 0 and "the runtime has no agent 'ops'" in missing.err
    (own_home / "one.yaml").write_text("- text: one\n")
    for _ in range(2):
        made = wakeful("run", "hello", "--agent", "ops", "--create-agent", "--model", "scripted:one.yaml")
        assert made.out == "one\n", "the second time it is there"
    assert wakeful("run", "again", "--agent", "ops").out == "one\n"
    turns = [json.loads(line) for line in wakeful("events", "--json").out.splitlines()]
    assert {(each["agent_id"], each["thread"]) for each in turns} == {("ops", "main")}, "one conversation"
    shown = json.loads(wakeful("agent", "show", "ops", "--json").out)
    assert (shown["visibility"], shown["ownership"], shown["state"]["total_message_count"]) == (
        "public",
        "self_owned",
        3,
    )
    other = wakeful("run", "hello", "--agent", "ops", "--model", "scripted:demo")
    assert other.code != 0 and "wakeful agent model ops scripted:demo" in other.err
    assert "--create-agent needs the name" in wakeful("run", "hello", "--create-agent").err
    wakeful("agent", "pause", "ops", "--reason", "maintenance")
    assert "agent 'ops' is paused: maintenance" in wakeful("run", "hello", "--agent", "ops").err
    wakeful("agent", "stop", "ops")
    assert "agent ops was stopped by you" in wakeful("run", "hello", "--agent", "ops").err


def test_an_agent_of_a_program_is_run_with_its_code_or_not_at_all(wakeful: Wakeful, home: Path) -> None:
    refused = wakeful("run", "hello", "--agent", "ops")
    assert refused.code != 0 and "agent ops is defined in a program" in refused.err


@pytest.mark.spec("HOL-AGENT-13")
def test_a_run_of_an_agent_works_where_the_agent_does(wakeful: Wakeful, own_home: Path) -> None:
    place = own_home / "place"
    place.mkdir()
    (place / "here.txt").write_text("it is here")
    (own_home / "read.yaml").write_text("- calls: [{name: read_file, arguments: {path: here.txt}}]\n- text: done\n")
    model = f"scripted:{own_home}/read.yaml"
    wakeful("agent", "create", "ops", "--model", model, "--workspace", "place")
    result = json.loads(wakeful("run", "read it", "--agent", "ops", "--json").out)
    assert result["status"] == "completed"
    shown = json.loads(wakeful("agent", "show", "ops", "--json").out)
    assert [(each["tool_name"], each["total_calls"]) for each in shown["state"]["tool_latency"]] == [
        ("wakeful/read_file", 1)
    ]
    assert "it is here" in wakeful("events", result["turn_id"], "--json").out, (
        "not in the folder that the command was typed in"
    )


def test_the_default_agent_is_made_by_the_first_run_that_names_it(wakeful: Wakeful, own_home: Path) -> None:
    assert wakeful("run", "hello", "--agent", "main", "--model", "scripted:demo").code == 0
    shown = json.loads(wakeful("agent", "show", "--json").out)
    assert (shown["agent"], shown["kind"]) == ("main", "default")
    assert (own_home / "home/agents/main/AGENTS.md").exists()
