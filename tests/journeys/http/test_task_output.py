"""What a command says is followed over HTTP while it is said: of one in the background from any place on, to its end;
of one in the foreground with the chat of its turn."""

import os
import pty
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.surfaces.command_line import command_line
from kit.surfaces.served_home import HomeClient, ServedHome
from kit.surfaces.watched_screen import watching
from wakeful.service.serving.options import ServeOptions

KEY = "sk-proj-4f9a1c7e2b8d6035af91c7e2"
WAITS = "for _ in $(seq 1200); do [ -e {} ] && break; sleep 0.05; done"
"""Until a file is there; not for ever, where a test fails."""


class WorkingHome(ServedHome):
    """Its agent `ops` begins commands in a folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "home", ServeOptions(port=0, tools=("kit.surfaces.task_agents:agents",)))
        self.work = folder / "work"
        self.work.mkdir()

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, "WORK": str(self.work), "OPENAI_API_KEY": KEY}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkingHome]:
    found = WorkingHome(tmp_path_factory.mktemp("place"))
    found.start()
    yield found
    found.end()


def begin(client: HomeClient, command: str) -> str:
    """The task of a command, which outlives its call: one that is over at once is no task."""
    known = {task["task_id"] for task in client.get("/tasks?agent=ops&over=true").body}
    assert client.post("/agents/ops/messages", {"text": f"begin {command}"}).status == 200
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for task in client.get("/tasks?agent=ops&over=true").body:
            if task["task_id"] not in known:
                found: str = task["task_id"]
                return found
        time.sleep(0.05)
    raise AssertionError("no task was begun")


def test_lines_come_while_the_command_runs_and_its_end_comes_last(home: WorkingHome, client: HomeClient) -> None:
    task = begin(client, f"echo one; printf half; {WAITS.format('go')}; echo ' two'; printf end")
    with client.stream(f"/tasks/{task}/output") as frames, client.stream(f"/tasks/{task}/output") as other:
        first = frames.until("output")[-1]
        assert (first.data["text"], first.id) == ("one\n", "4"), "half a line is waited for"
        assert other.until("output")[-1] == first, "all who follow a task are told by one who looks"
        assert client.get(f"/tasks/{task}").body["status"] == "running"
        with client.stream(f"/tasks/{task}/output") as leaving:
            leaving.until("output")
        (home.work / "go").touch()
        rest = frames.all()
        assert other.all() == rest, "also after another one has left"
    assert "".join(each.data["text"] for each in rest[:-1]) == "half two\nend"
    assert (rest[-1].event, rest[-1].data["exit_status"], rest[-1].id) == ("ended", 0, "")
    with client.stream(f"/tasks/{task}/output", last=first.id) as frames:
        again = frames.all()
    assert "".join(each.data["text"] for each in again[:-1]) == "half two\nend", "from the place that is known"
    assert client.get(f"/tasks/{task}/output").body["output"].startswith("one\nhalf two")


def test_a_line_without_an_end_is_cut_and_the_next_one_is_whole(home: WorkingHome, client: HomeClient) -> None:
    task = begin(client, f"head -c 700000 /dev/zero | tr '\\0' x; echo; echo last; {WAITS.format('cut')}")
    (home.work / "cut").touch()
    with client.stream(f"/tasks/{task}/output") as frames:
        said = frames.all()
    shown = [each.data for each in said[:-1]]
    assert shown[0]["text"].endswith("x [the rest of the line is left out]\n") and len(shown[0]["text"]) < 70_000
    assert "".join(each["text"] for each in shown[1:]) == "last\n"
    assert shown[-1]["next"] == 700_006 and sum(each["skipped_bytes"] for each in shown) > 400_000


def test_a_key_is_hidden_also_from_a_reader_that_begins_in_the_middle_of_it(
    home: WorkingHome, client: HomeClient
) -> None:
    first, second = KEY[:12], KEY[12:]
    task = begin(client, f"echo before; printf 'key {first}'; echo {second}; echo after; {WAITS.format('hidden')}")
    (home.work / "hidden").touch()
    for place, expected in ((0, "before\nkey [redacted]\nafter\n"), (7, "key [redacted]\nafter\n"), (15, "after\n")):
        with client.stream(f"/tasks/{task}/output?after={place}") as frames:
            said = frames.all()[:-1]
        shown = "".join(each.data["text"] for each in said)
        assert (KEY not in shown, KEY[15:] not in shown, shown) == (True, True, expected), place
    assert sum(each.data["skipped_bytes"] for each in said) == len(f"before\nkey {KEY}\n") - 15


def test_what_cannot_be_followed_says_why(client: HomeClient) -> None:
    for path, status in (("/tasks/nothing/output", 404), ("/tasks/nothing/output?after=-1", 422)):
        for accept in ("application/json", "text/event-stream"):
            refused = client.get(path, headers={"accept": accept})
            assert refused.status == status and refused.body["error"]["message"], refused


def test_lines_of_a_command_in_the_foreground_come_with_the_chat_while_it_runs(
    home: WorkingHome, client: HomeClient
) -> None:
    script = f"echo one; printf 'half of '; {WAITS.format('on')}; echo $KEY_OF_OURS; printf 'no end'"
    said = {"text": f"run KEY_OF_OURS={KEY}; {script}", "thread": "foreground"}
    with client.stream("/agents/ops/chat", said) as frames:
        first = frames.until("tool_output")[-1]
        began = {name: first.data[name] for name in ("text", "offset", "name", "depth")}
        assert began == {"text": "one\n", "offset": 0, "name": "wakeful/exec_command", "depth": 0}
        assert first.id == "", "it is stored nowhere: nobody comes back to it"
        (home.work / "on").touch()
        rest = frames.all()
    lines = [each.data for each in rest if each.event == "tool_output"]
    assert [(each["text"], each["offset"]) for each in lines] == [("half of [redacted]\n", 4)]
    ended = next(each.data for each in rest if each.event == "tool_call_update")
    assert (ended["status"], ended["tool_call_id"]) == ("end", first.data["tool_call_id"])
    turn = first.data["turn_id"]
    assert not [each for each in client.get(f"/turns/{turn}/chat").body["messages"] if each["type"] == "tool_output"]


def test_whoever_comes_late_hears_the_lines_that_a_command_put_out_before(
    home: WorkingHome, client: HomeClient, observer: HomeClient
) -> None:
    said = {"text": f"run echo early; {WAITS.format('late')}; echo later", "thread": "late"}
    with client.stream("/agents/ops/chat", said) as frames:
        turn = frames.until("tool_output")[-1].data["turn_id"]
        with observer.stream(f"/turns/{turn}/chat") as others:
            assert others.until("tool_output")[-1].data["text"] == "early\n"
            (home.work / "late").touch()
            found = [each.data["text"] for each in others.all() if each.event == "tool_output"]
        assert found == ["later\n"]
        assert [each.data["text"] for each in frames.all() if each.event == "tool_output"] == ["later\n"]


async def test_the_terminal_ui_shows_the_newest_lines_of_a_running_command(home: WorkingHome) -> None:
    async with watching(home.socket, agent="ops") as screen:
        await screen.type(f"run seq 5; printf 'a bell\\a\\n'; {WAITS.format('seen')}")
        shown = await screen.until("   a bell")
        assert "   5\n" in "\n".join(line.rstrip() for line in shown.splitlines()) + "\n"
        assert "\a" not in shown, "text of a command moves no terminal"
        (home.work / "seen").touch()
        await screen.gone("   a bell")


def test_run_at_a_terminal_shows_lines_of_the_command_that_the_daemon_runs(home: WorkingHome) -> None:
    ours, theirs = pty.openpty()
    said = f"run seq 20; {WAITS.format('ran')}; echo over"
    line = command_line("run", "--agent", "ops", "--thread", "pty", said)
    environment = {**home.environment, "COLUMNS": "80"}
    process = subprocess.Popen(line, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    seen = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        seen += piece
        if b"    | 20" in seen:
            (home.work / "ran").touch()
    os.close(ours)
    assert process.wait(60) == 0, seen
    assert seen.count(b"    | 20") == 1 and b"It runs." in seen
