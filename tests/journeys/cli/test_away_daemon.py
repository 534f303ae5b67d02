"""Commands that follow a daemon while it is killed and started again: they go on where they were and miss nothing."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kit.surfaces.command_line import Wakeful, command_line
from kit.surfaces.served_home import AGENTS, ServedHome, served
from kit.surfaces.shown_terminal import at_terminal
from wakeful.service.serving.daemon_client import NoAnswer
from wakeful.service.serving.options import ServeOptions
from wakeful.surfaces.cli.daemon_turns import answer_of
from wakeful.surfaces.cli.places import asking, place_to_ask

GONE = "The daemon is gone; waiting for it. Ctrl-C ends the waiting."
BACK = "The daemon is back."


@pytest.fixture
def home(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedHome]:
    monkeypatch.setenv("WAKEFUL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    with served(tmp_path / "home", ServeOptions(host=None, tools=(AGENTS,))) as found:
        yield found


def say(home: ServedHome, text: str, thread: str = "main") -> str:
    """A message to the clerk, and its id."""
    return str(home.client.post("/agents/clerk/messages", {"text": text, "thread": thread}).body["message_id"])


def held(home: ServedHome, name: str) -> str:
    """A turn that is in its tool, until a file of this name is in the home."""
    with home.client.stream(f"/messages/{say(home, f'hold {name}', name)}") as frames:
        return str(frames.until("tool_call_update")[-1].data["turn_id"])


def following(folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        command_line(*arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
    )


def read(lines: Any, words: str) -> list[str]:
    """Up to a line with these words, which has to come."""
    found = []
    for line in lines:
        found.append(line)
        if words in line:
            return found
    raise AssertionError(f"it ended before {words!r}: {found}")


def again(home: ServedHome, how: str) -> None:
    """The daemon goes away."""
    if how == "kill":
        home.kill()
    else:
        assert home.end_now() == 0
        assert "Cancel" not in home.said.read_text(), "nobody was waited for until the time was over"


def test_the_feed_is_followed_over_it_and_each_entry_is_printed_once(home: ServedHome, folder: Path) -> None:
    home.client.until_ended({"message_id": say(home, "first")})
    with following(folder, "tail", "--follow", "--display", "verbose", "--json", "--limit", "1000") as child:
        assert child.stdout is not None and child.stderr is not None
        try:
            printed = read(child.stdout, "you said")
            for how in ("kill", "end"):
                again(home, how)
                home.start()
                home.client.until_ended({"message_id": say(home, "more", how)})
                printed += read(child.stdout, "you said")
        finally:
            child.send_signal(signal.SIGINT)
        assert (child.wait(60), child.stderr.read()) == (130, "")
    cursors = [json.loads(line)["cursor"] for line in printed]
    whole = [entry["cursor"] for entry in home.client.get("/feed?limit=1000").body]
    assert cursors == whole[whole.index(cursors[0]) : whole.index(cursors[-1]) + 1]


def test_a_person_is_told_and_ends_the_waiting_with_ctrl_c(home: ServedHome, folder: Path) -> None:
    home.client.until_ended({"message_id": say(home, "first")})
    with following(folder, "tail", "--follow") as child:
        assert child.stdout is not None and child.stderr is not None
        try:
            read(child.stdout, "you said")
            home.kill()
            assert read(child.stderr, GONE) == [f"{GONE}\n"]
            home.start()
            assert read(child.stderr, BACK) == [f"{BACK}\n"]
            home.kill()
            assert read(child.stderr, GONE) == [f"{GONE}\n"]
        finally:
            child.send_signal(signal.SIGINT)
        assert (child.wait(60), child.stderr.read()) == (130, "")


def test_a_turn_is_followed_over_it_to_its_end_in_each_of_its_views(
    home: ServedHome, folder: Path, wakeful: Wakeful
) -> None:
    turn = held(home, "go")
    views = ("facts", "stream", "transcript", "wire")
    with ExitStack() as all_of_them:
        children = [
            all_of_them.enter_context(following(folder, "events", turn, "--follow", "--as", view, "--json"))
            for view in views
        ]
        first = [child.stdout.readline() for child in children if child.stdout is not None]
        home.kill()
        home.start()
        (home.folder / "go").touch()
        rest = [child.stdout.read() for child in children if child.stdout is not None]
        assert [child.wait(60) for child in children] == [0] * len(views)
    for view, begun, ended in zip(views, first, rest, strict=True):
        done = wakeful("events", turn, "--as", view, "--json")
        assert (done.code, done.err) == (0, "")
        assert begun + ended == done.out


def test_the_output_of_a_task_is_followed_over_it_to_its_end(
    tmp_path: Path, folder: Path, wakeful: Wakeful, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAKEFUL_HOME", str(tmp_path / "home"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.setenv("WORK", str(work))
    with served(tmp_path / "home", ServeOptions(host=None, tools=("kit.surfaces.task_agents:agents",))) as home:
        words = "begin echo one; until [ -e go ]; do sleep 0.05; done; echo two; exit 3"
        home.client.post("/agents/ops/messages", {"text": words})
        ends = time.monotonic() + 60
        while not (tasks := home.client.get("/tasks").body) and time.monotonic() < ends:
            time.sleep(0.05)
        command = ("task", "output", tasks[0]["task_id"], "--follow")
        with following(folder, *command) as child, following(folder, *command, "--json") as program:
            assert child.stdout is not None and child.stderr is not None and program.stdout is not None
            assert child.stdout.readline() == "one\n"
            first = json.loads(program.stdout.readline())
            home.kill()
            read(child.stderr, GONE)
            (work / "go").touch()
            home.start()
            assert (child.stdout.read(), child.wait(60), program.wait(60)) == ("two\n", 0, 0)
            lines = [first, *(json.loads(line) for line in program.stdout)]
        assert "".join(line["text"] for line in lines[:-1]) == "one\ntwo\n"
        assert (lines[-1]["task_id"], lines[-1]["exit_status"]) == (tasks[0]["task_id"], 3)
        assert wakeful(*command).out == "one\ntwo\n", "of a task that is over all of it is printed"


@pytest.mark.parametrize("how", ["kill", "end"])
def test_an_answer_is_waited_for_over_it(home: ServedHome, folder: Path, how: str) -> None:
    answers = folder / "answers"
    with (
        answers.open("wb") as stdout,
        at_terminal("run", "hold go", "--agent", "clerk", folder=folder, answers=stdout.fileno()) as shown,
    ):
        shown.until("→ work_until")
        again(home, how)
        shown.until(GONE)
        home.start()
        (home.folder / "go").touch()
        code, words = shown.to_end()
    assert (code, answers.read_text()) == (0, "finished\n")
    assert words.index(GONE) < words.index(BACK) < words.index("✓ work_until")
    assert (words.count(GONE), words.count(BACK)) == (1, 1)
    assert words.count("→ work_until") == 1, "what was shown is not shown again"


def test_a_chat_goes_on_over_it_and_shows_how_its_answers_come_about(home: ServedHome, folder: Path) -> None:
    with at_terminal("chat", "clerk", folder=folder) as shown:
        shown.until("> ")
        shown.type("hold go\n")
        shown.until("→ work_until")
        home.kill()
        shown.until(GONE)
        home.start()
        (home.folder / "go").touch()
        shown.until("\nfinished\n")
        home.kill()  # while nothing is asked, nobody notices
        home.start()
        shown.type("hello\n")
        shown.until("hello\n> ")
        shown.type("\x04")
        code, words = shown.to_end()
    assert (code, words.count(GONE)) == (0, 1)


def test_where_it_stays_away_the_command_that_shows_the_answer_is_named(home: ServedHome, wakeful: Wakeful) -> None:
    message = say(home, "hold go")
    with asking(None):
        place = place_to_ask(None)
        home.kill()
        with pytest.raises(NoAnswer) as told:
            answer_of(message, place, quiet=True, patience=0)
    assert "goes on with the turn once it runs again" in told.value.message
    assert told.value.hint == f"The answer then: wakeful why {message}"
    home.start()
    (home.folder / "go").touch()
    home.client.until_ended({"message_id": message})
    assert wakeful("why", message).code == 0
