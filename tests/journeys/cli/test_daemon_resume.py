"""`wakeful resume TURN` where a daemon runs the turn's agent: a paused turn goes on there, and others get an answer."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.surfaces.command_line import Done, Wakeful
from kit.surfaces.served_home import ServedHome, served
from wakeful.service.serving.options import ServeOptions
from wakeful.surfaces.cli.screen import short


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedHome]:
    with served(
        tmp_path_factory.mktemp("home"), ServeOptions(host=None, tools=("kit.surfaces.served_agents:agents",))
    ) as found:
        yield found


@pytest.fixture(autouse=True)
def at_home(home: ServedHome, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAKEFUL_HOME", str(home.folder))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))


def ok(done: Done) -> str:
    assert (done.code, done.err) == (0, ""), done
    return done.out


def held(home: ServedHome, wakeful: Wakeful, name: str) -> str:
    """A turn that is in its tool, until a file of this name is there."""
    sent: dict[str, Any] = json.loads(ok(wakeful("send", "clerk", f"hold {name}", "--thread", name, "--json")))
    with home.client.stream(f"/messages/{sent['message_id']}") as frames:
        return str(frames.until("tool_call_update")[-1].data["turn_id"])


def paused(home: ServedHome, wakeful: Wakeful, name: str, *where: str) -> str:
    """A turn that rests because it was paused."""
    turn = held(home, wakeful, name)
    rests, go_on = ok(wakeful("pause", turn, *where)).splitlines()
    assert rests == f"turn {short(turn)} pauses as soon as its running calls have finished"
    assert go_on == " ".join(("to continue: wakeful resume", short(turn), *where))
    (home.folder / name).touch()
    with home.client.stream(f"/turns/{turn}/chat") as frames:
        frames.until("turn_suspended")
    return turn


def waiting(home: ServedHome, wakeful: Wakeful) -> str:
    """A turn that waits for a decision."""
    done = wakeful("run", "refund 5", "--agent", "clerk", "--thread", "money", "--json")
    assert done.code == 3, done
    return str(json.loads(done.out)["turn_id"])


def test_a_paused_turn_of_the_daemon_goes_on_in_the_daemon(home: ServedHome, wakeful: Wakeful) -> None:
    turn = paused(home, wakeful, "one")
    assert wakeful("events").out.splitlines()[1].split()[0] == short(turn)
    said, watch = ok(wakeful("resume", "1")).splitlines()
    assert said == f"turn {short(turn)} is not paused any more; the daemon goes on with it"
    assert watch == f"watch it: wakeful events {short(turn)} --follow"
    assert home.client.until_over(turn)["state"] == "completed"
    assert ok(wakeful("resume", turn)) == "finished\n", "of a turn that is over the answer is printed"


def test_a_daemon_that_is_named_lets_its_turn_go_on_and_tells_the_answer(home: ServedHome, wakeful: Wakeful) -> None:
    where = ("--connect", str(home.socket))
    turn = paused(home, wakeful, "two", *where)
    told = json.loads(ok(wakeful("resume", turn, "--json", *where)))
    assert (told["turn_id"], told["accepted"], told["ahead"]) == (turn, True, None)
    assert home.client.until_over(turn)["state"] == "completed"
    assert ok(wakeful("resume", turn, *where)) == "finished\n"
    assert json.loads(ok(wakeful("resume", turn, "--json", *where)))["turn_id"] == turn
    every = wakeful("resume", *where)
    assert every.code == 2 and "works on the file of a store" in every.err


def test_a_turn_that_was_not_paused_says_what_it_does(home: ServedHome, wakeful: Wakeful) -> None:
    turn = held(home, wakeful, "three")
    said = ok(wakeful("resume", turn)).splitlines()[0]
    assert said == f"turn {short(turn)} was not paused; the daemon goes on with it"
    refused = wakeful("resume", turn, "--tools", "shop:both")
    assert refused.code == 2 and "--tools is for a run in this process, and the daemon runs agent clerk" in refused.err
    (home.folder / "three").touch()
    home.client.until_over(turn)

    turn = waiting(home, wakeful)
    done = wakeful("resume", turn)
    assert (done.code, done.err) == (3, "")
    assert f"turn {short(turn)} was not paused. clerk (thread money) waits for a decision about refund" in done.out
    assert done.out.endswith("\nnext: wakeful approvals\n")


def test_a_turn_whose_agent_is_held_says_what_lets_it_run(home: ServedHome, wakeful: Wakeful) -> None:
    turn = paused(home, wakeful, "four")
    ok(wakeful("agent", "pause", "clerk"))
    done = wakeful("resume", turn)
    assert (done.code, done.err) == (3, "")
    assert done.out.splitlines() == [
        f"turn {short(turn)} is not paused any more. Agent clerk is paused.",
        "next: wakeful agent resume clerk",
    ]
    ok(wakeful("agent", "resume", "clerk"))
    assert home.client.until_over(turn)["state"] == "completed"
    turn = held(home, wakeful, "five")
    ok(wakeful("pause", "--all"))
    assert wakeful("resume", turn).out.endswith("\nnext: wakeful resume --all\n")
    ok(wakeful("resume", "--all"))
    (home.folder / "five").touch()
    assert home.client.until_over(turn)["state"] == "completed"


def test_a_run_that_no_daemon_runs_goes_on_in_a_process_of_its_own(
    home: ServedHome, wakeful: Wakeful, process: Wakeful
) -> None:
    cut = process("run", "refund", "--model", "scripted:refund.yaml", "--tools", "shop:both", "--key", "r1", crash=True)
    assert cut.code == -9, cut
    far = wakeful("resume", "r1", "--connect", str(home.socket))
    assert far.code == 2 and "which the daemon does not run" in far.err
    done = wakeful("resume", "r1", "--tools", "shop:both")
    assert (done.code, done.out) == (0, "Done \\x1b[31mred.\n"), done
