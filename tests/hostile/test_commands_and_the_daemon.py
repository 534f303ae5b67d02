"""A confined command and the daemon that runs it: it reaches neither the socket nor the tokens nor the port."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.gates.confined_commands import PYTHON, level, place_outside
from kit.surfaces.served_home import ServedHome, served
from kit.surfaces.served_tokens import make_token
from wakeful.service.serving.options import ServeOptions

TRY = """
import json, os, socket, sys
place, port = sys.argv[1], int(sys.argv[2])
def tried(what):
    try:
        return repr(what())
    except BaseException as error:
        return "refused: " + type(error).__name__
def ask(family, where):
    s = socket.socket(family, socket.SOCK_STREAM)
    s.settimeout(30)
    s.connect(where)
    s.sendall(b"POST /control/runtime/hold HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Type: application/json\\r\\n"
              b"Content-Length: 20\\r\\n\\r\\n" + b'{"control": "stopped"')
    return s.recv(200)
print(json.dumps({
    "tokens": tried(lambda: open(os.path.join(place, "tokens.json")).read()),
    "record": tried(lambda: open(os.path.join(place, "run", "daemon.json")).read()),
    "socket": tried(lambda: ask(socket.AF_UNIX, os.path.join(place, "run", "wakeful.sock"))),
    "port": tried(lambda: ask(socket.AF_INET, ("127.0.0.1", port))),
    "write": tried(lambda: open(os.path.join(place, "tokens.json"), "a").write("x")),
}))
"""


def told_by_a_command(home: ServedHome, workspace: Path) -> dict[str, str]:
    """By the command of an agent: what it could do."""
    (workspace / "try.py").write_text(TRY)
    command = f"{PYTHON} try.py {home.folder} {home.port}"
    script = [{"calls": [{"name": "exec_command", "arguments": {"cmd": command}}]}, "done"]
    (home.folder / "script.json").write_text(json.dumps(script))
    definition = {"name": "worker", "model": f"scripted:{home.folder}/script.json", "workspace": str(workspace)}
    made = home.client.post("/agents", {"definition": definition})
    assert made.status == 200, made
    home.client.post("/agents/worker/messages", {"text": "Try it."})
    with home.client.stream("/agents/worker/events") as frames:
        seen = frames.until("turn.completed", seconds=60)
    (result,) = [frame.data["payload"] for frame in seen if frame.event == "tool.result"]
    found: dict[str, str] = json.loads(json.loads(result["preview"])["stdout_preview"])
    return found


@pytest.fixture
def place() -> Iterator[Path]:
    with place_outside() as found:
        (found / "shop").mkdir()
        yield found


def test_a_confined_command_reaches_nothing_of_the_daemon(place: Path) -> None:
    level("bubblewrap")
    with served(place / "home", ServeOptions(port=0)) as home:
        make_token(home.folder, "phone", ("operate",))
        told = told_by_a_command(home, place / "shop")
        assert {name: words.split(":")[0] for name, words in told.items()} == dict.fromkeys(told, "refused")
        assert set(told) == {"tokens", "record", "socket", "port", "write"}
        assert home.client.get("/agents/worker/status").body["control"] == "running", "nobody stopped anything"


def test_the_same_program_without_a_wall_reaches_all_of_it(place: Path) -> None:
    """The inversion: what is refused above is there to be reached."""
    with served(place / "home", ServeOptions(port=0)) as home:
        make_token(home.folder, "phone", ("operate",))
        words = [PYTHON, "-c", TRY, str(home.folder), str(home.port)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
        assert [name for name, said in json.loads(done.stdout).items() if said.startswith("refused")] == []
