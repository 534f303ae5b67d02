"""What a command in the background says is followed over HTTP: while it is said, from any place on, to its end."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.surfaces.served_home import HomeClient, ServedHome
from wakeful.service.serving.options import ServeOptions

KEY = "sk-proj-4f9a1c7e2b8d6035af91c7e2"


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
    waits = "for _ in $(seq 1200); do [ -e go ] && break; sleep 0.05; done"  # not for ever, where a test fails
    task = begin(client, f"echo one; printf half; {waits}; echo ' two'; printf end")
    with client.stream(f"/tasks/{task}/output") as frames:
        first = frames.until("output")[-1]
        assert (first.data["text"], first.id) == ("one\n", "4"), "half a line is waited for"
        assert client.get(f"/tasks/{task}").body["status"] == "running"
        (home.work / "go").touch()
        rest = frames.all()
    assert "".join(each.data["text"] for each in rest[:-1]) == "half two\nend"
    assert (rest[-1].event, rest[-1].data["exit_status"], rest[-1].id) == ("ended", 0, "")
    with client.stream(f"/tasks/{task}/output", last=first.id) as frames:
        again = frames.all()
    assert "".join(each.data["text"] for each in again[:-1]) == "half two\nend", "from the place that is known"
    assert client.get(f"/tasks/{task}/output").body["output"].startswith("one\nhalf two")


def test_a_line_without_an_end_is_cut_and_the_next_one_is_whole(client: HomeClient) -> None:
    task = begin(client, "head -c 700000 /dev/zero | tr '\\0' x; echo; echo last")
    with client.stream(f"/tasks/{task}/output") as frames:
        said = frames.all()
    shown = [each.data for each in said[:-1]]
    assert shown[0]["text"].endswith("x [the rest of the line is left out]\n") and len(shown[0]["text"]) < 70_000
    assert "".join(each["text"] for each in shown[1:]) == "last\n"
    assert shown[-1]["next"] == 700_006 and sum(each["skipped_bytes"] for each in shown) > 400_000


def test_a_key_is_hidden_also_from_a_reader_that_begins_in_the_middle_of_it(client: HomeClient) -> None:
    first, second = KEY[:12], KEY[12:]
    task = begin(client, f"echo before; printf 'key {first}'; echo {second}; echo after")
    for place, expected in ((0, "before\nkey [redacted]\nafter\n"), (7, "key [redacted]\nafter\n"), (15, "after\n")):
        with client.stream(f"/tasks/{task}/output?after={place}") as frames:
            said = frames.all()[:-1]
        shown = "".join(each.data["text"] for each in said)
        assert (KEY not in shown, KEY[15:] not in shown, shown) == (True, True, expected), place
    assert sum(each.data["skipped_bytes"] for each in said) == len(f"before\nkey {KEY}\n") - 15


def test_what_cannot_be_followed_says_why(client: HomeClient) -> None:
    for path, status in (("/tasks/nothing/output", 422), ("/tasks/nothing/output?after=-1", 422)):
        for accept in ("application/json", "text/event-stream"):
            refused = client.get(path, headers={"accept": accept})
            assert refused.status == status and refused.body["error"]["message"], refused
