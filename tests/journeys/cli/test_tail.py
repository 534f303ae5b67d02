"""`wakeful tail` and `wakeful transcript`: what agents do and say, from a terminal."""

import asyncio
import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from kit.runs.engine_runs import calls
from kit.surfaces.command_line import ME, Wakeful, command_line
from wakeful import Agent, Runtime, tool
from wakeful.ports import ModelRequest
from wakeful.testing import scripted


@tool(effect="pure")
def look_up(order: str) -> str:
    return f"order {order}: shipped"


@tool(effect="irreversible", approval=True)
def refund(order: str) -> str:
    return "done"


@pytest.fixture
def home(folder: Path) -> Path:
    """A home in which agents worked, and one of them waits for a person."""
    left: list[Any] = [
        calls(("look_up", {"order": "A17"})),
        "Order A17 was\nshipped \x1b[31mred.",
        calls(("refund", {"order": "A17"})),
    ]

    def reply(request: ModelRequest) -> Any:
        return left.pop(0)

    async def once() -> None:
        agents = [Agent("ops", scripted(reply), tools=[look_up, refund]), Agent("desk", scripted(["ok"]))]
        async with Runtime(folder / "home", agents=agents) as rt:
            await rt.answer(await rt.send("ops", "Where is A17?"))
            await rt.answer(await rt.send("desk", "Hello?"))
            await rt.answer(await rt.send("ops", "Refund it."))

    asyncio.run(once())
    return folder / "home"


def shown(text: str) -> list[str]:
    """Lines without their times; the day stands above them."""
    day, *lines = text.splitlines()
    assert len(day) == len("2026-01-01")
    return [line[9:].rstrip() for line in lines]


@pytest.mark.spec("HOL-PRES-01", "HOL-DISPLAY-08", "HOL-DISPLAY-10")
def test_the_newest_lines_in_each_display_mode(wakeful: Wakeful, home: Path) -> None:
    info = shown(wakeful("tail").out)
    assert info == [
        "ops          Order A17 was shipped \\x1b[31mred.",
        "desk         ok",
        info[2],
    ]
    assert info[2] == "ops          NEEDS YOU  wants to call refund(order='A17')"
    assert shown(wakeful("tail", "--display", "3").out) == info
    verbose = shown(wakeful("tail", "ops", "--display", "4").out)
    assert [line.split()[1:3] for line in verbose] == [
        ["message", "from"],
        ["Model", "requested"],
        ["ok", "look_up,"],
        ["Order", "A17"],
        ["message", "from"],
        ["Model", "requested"],
        ["NEEDS", "YOU"],
    ]
    debug = wakeful("tail", "ops", "--display", "debug", "--limit", "6").out
    assert '         | look_up(order="A17")\n' in debug, "arguments"
    assert "         | order A17: shipped\n" in debug, "results"
    assert all(len(line) <= 80 for line in debug.splitlines())
    found = [json.loads(line) for line in wakeful("tail", "--json").out.splitlines()]
    assert [each["presentation"]["visibility"] for each in found] == ["turn_result", "turn_result", "action_required"]
    assert {"event_id", "event_seq", "ts", "kind", "agent_id", "message_id"} <= found[0]["envelope"].keys()


def test_new_lines_are_printed_as_they_come(wakeful: Wakeful, home: Path) -> None:
    first = wakeful("tail", "--display", "verbose", "--limit", "1", "--json")
    (newest,) = [json.loads(line) for line in first.out.splitlines()]
    following = subprocess.Popen(
        command_line("tail", "ops", "--display", "verbose", "--follow", "--limit", "1", "--json"),
        stdin=subprocess.DEVNULL,
        cwd=home.parent,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert following.stdout is not None
    assert json.loads(following.stdout.readline()) == newest
    wakeful("send", "desk", "Not for this one.")
    wakeful("send", "ops", "And B2?")
    came = json.loads(following.stdout.readline())
    assert came["presentation"]["summary"] == f"message from {ME}: And B2?"
    following.send_signal(signal.SIGINT)
    following.communicate()
    assert following.returncode == 130


@pytest.mark.spec("HOL-CONSOLE-06")
def test_a_transcript_is_messages_and_briefs(wakeful: Wakeful, home: Path) -> None:
    lines = [line[17:] if line[:2] == "20" else line for line in wakeful("transcript", "ops").out.splitlines()]
    assert lines == [
        "you",
        "  Where is A17?",
        "ops",
        "  Order A17 was",
        "  shipped \\x1b[31mred.",
        "you",
        "  Refund it.",
    ]
    found = [json.loads(line) for line in wakeful("transcript", "ops", "--json").out.splitlines()]
    assert [each["kind"] for each in found] == ["operator_message", "brief", "operator_message"]
    assert wakeful("transcript", "ops", "--thread", "side").out == "no messages yet\n"


def test_lines_fit_the_screen_whatever_they_hold(
    wakeful: Wakeful, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def once() -> None:
        agent = Agent("ops", scripted(["\u767a\u9001" * 60 + "\u202e\x1b]0;owned\x07"]))
        async with Runtime(folder / "home", agents=[agent]) as rt:
            await rt.answer(await rt.send("ops", "e\u0301" * 90))

    asyncio.run(once())
    monkeypatch.setenv("COLUMNS", "80")
    lines = wakeful("tail", "--display", "debug").out.splitlines()
    assert len(lines) >= 3
    assert all(cell_len(line) <= 80 and line.isprintable() for line in lines)
    whole = wakeful("tail", "--wide").out
    assert "\\u202e\\x1b]0;owned\\x07" in whole


def test_wrong_requests_say_what_to_do(wakeful: Wakeful, home: Path) -> None:
    wrong = wakeful("tail", "--display", "loud")
    assert wrong.code == 2 and "there is no display mode 'loud'" in wrong.err
    unknown = wakeful("tail", "opps")
    assert unknown.code == 2 and "the runtime has no agent 'opps'" in unknown.err and "ops" in unknown.err
    assert wakeful("transcript", "opps").code == 2
    raw = wakeful("tail", "--display", "trace")
    assert "wakeful events" in raw.err


def test_a_decision_without_a_daemon_names_what_goes_on_with_the_turn(wakeful: Wakeful, home: Path) -> None:
    """A turn that a runtime began has tools that nothing else gives: no line with them could be typed."""
    (waiting,) = json.loads(wakeful("approvals", "--json").out)
    decided = wakeful("approve", waiting["approval_id"])
    assert decided.code == 0
    assert decided.out.splitlines()[-1] == "no daemon runs: wakeful daemon start"
    assert "MODULE" not in decided.out
    listed = wakeful("resume", "--list").out
    assert "continue: wakeful daemon start, or the program that runs the agent" in listed
    refused = wakeful("resume", waiting["turn_id"])
    assert refused.code == 3
    assert "was begun by a runtime" in refused.err and "wakeful daemon start, or your program" in refused.err


def test_a_turn_that_somebody_cancelled_did_not_fail(wakeful: Wakeful, home: Path) -> None:
    (waiting,) = json.loads(wakeful("approvals", "--json").out)
    assert wakeful("cancel", waiting["turn_id"]).code == 0
    last = shown(wakeful("tail", "ops").out)[-1]
    assert last == "ops          turn cancelled: you asked the turn to stop"
