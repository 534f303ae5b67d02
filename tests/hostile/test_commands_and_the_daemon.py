"""A confined command and the daemon that runs it: it reaches neither the socket nor the tokens, and has no say at the
port, whatever holds it and whatever network it was granted."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from kit.gates.confined_commands import PYTHON, level, place_outside
from kit.gates.planted import path_without_bubblewrap
from kit.surfaces.served_home import ServedHome, served
from kit.surfaces.served_tokens import make_token
from wakeful.sandbox.level_probe import interpreter
from wakeful.sandbox.settings import Network
from wakeful.service.serving.options import ServeOptions

CONFINED = ("bubblewrap", "landlock")
NO_SAY = "'HTTP/1.1 401 "
TRY = """
import json, os, socket, sys
place, port, pid = sys.argv[1], int(sys.argv[2]), sys.argv[3]
where = os.path.join(place, "run", "wakeful.sock")
def tried(what):
    try:
        return repr(what())
    except BaseException as error:
        return "refused: " + type(error).__name__
def ask(s, at):
    s.settimeout(30)
    s.connect(at)
    s.sendall(b"POST /control/runtime/hold HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Type: application/json\\r\\n"
              b"Content-Length: 21\\r\\n\\r\\n" + b'{"control":"stopped"}')
    return s.recv(200).decode()
def made(family):
    return socket.socket(family, socket.SOCK_STREAM)
def paired(kind):
    return socket.socketpair(socket.AF_UNIX, kind)[0]
found = {
    "tokens": tried(lambda: open(os.path.join(place, "tokens.json")).read()),
    "record": tried(lambda: open(os.path.join(place, "run", "daemon.json")).read()),
    "environment": tried(lambda: open("/proc/%s/environ" % pid).read()),
    "socket": tried(lambda: ask(made(socket.AF_UNIX), where)),
    "socket by its process": tried(lambda: ask(made(socket.AF_UNIX), "/proc/%s/root%s" % (pid, where))),
    "socket with half a pair": tried(lambda: ask(paired(socket.SOCK_STREAM), where)),
    "port": tried(lambda: ask(made(socket.AF_INET), ("127.0.0.1", port))),
    "write": tried(lambda: open(os.path.join(place, "tokens.json"), "a").write("")),
}
open("told.json", "w").write(json.dumps(found))
"""
NOT_EVEN_OPEN = frozenset({"socket with half a pair"})
"""The ends of a pair are connected to each other: nobody can connect them to anything else."""


def attempt(home: ServedHome) -> tuple[str, str, str]:
    assert home.process is not None
    return str(home.folder), str(home.port), str(home.process.pid)


def told_by_a_command(home: ServedHome, workspace: Path, network: str) -> dict[str, str]:
    """By the command of an agent: what it could do."""
    (workspace / "try.py").write_text(TRY)
    command = f"{PYTHON} try.py {' '.join(attempt(home))}"
    script = [{"calls": [{"name": "exec_command", "arguments": {"cmd": command}}]}, "done"]
    (home.folder / "script.json").write_text(json.dumps(script))
    definition = {"name": "worker", "model": f"scripted:{home.folder}/script.json", "workspace": str(workspace)}
    made = home.client.post("/agents", {"definition": {**definition, "sandbox": {"network": network}}})
    assert made.status == 200, made
    sent = home.client.post("/agents/worker/messages", {"text": "Try it."})
    with home.client.stream("/agents/worker/events") as frames:
        if network == "full":
            asked = frames.until("action.required", seconds=60)[-1].data["payload"]
            decided = home.client.post(f"/approvals/{asked['action_id']}/decision", {"decision": "approved"})
            assert decided.status == 200, decided
        frames.until("turn.completed", seconds=60)
    assert home.client.until_ended(sent.body)["state"] == "completed"
    found: dict[str, str] = json.loads((workspace / "told.json").read_text())
    return found


@pytest.fixture
def place() -> Iterator[Path]:
    with place_outside() as found:
        (found / "shop").mkdir()
        yield found


@pytest.fixture(params=CONFINED)
def held_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A machine that holds commands with this."""
    mode: str = request.param
    level(mode)
    if mode == "bubblewrap":
        yield mode
        return
    with path_without_bubblewrap() as path:
        monkeypatch.setenv("PATH", path)
        yield mode


@pytest.mark.parametrize("network", get_args(Network))
def test_a_confined_command_reaches_nothing_of_the_daemon(place: Path, held_by: str, network: str) -> None:
    with served(place / "home", ServeOptions(port=0)) as home:
        make_token(home.folder, "phone", ("operate",))
        told = told_by_a_command(home, place / "shop", network)
        if network == "full":
            assert told.pop("port").startswith(NO_SAY), "whoever reaches the port has no token"
        assert {name: words.split(":")[0] for name, words in told.items()} == dict.fromkeys(told, "refused")
        assert len(told) == (7 if network == "full" else 8)
        assert home.client.get("/agents/worker/status").body["control"] == "running", "nobody stopped anything"


def test_inversion_the_same_program_without_a_wall_reaches_all_of_it(place: Path) -> None:
    with served(place / "home", ServeOptions(port=0)) as home:
        make_token(home.folder, "phone", ("operate",))
        told = told_by([PYTHON, "-c", TRY, *attempt(home)], place / "shop")
        assert {name for name, said in told.items() if said.startswith("refused")} == NOT_EVEN_OPEN
        assert told["socket"].startswith("'HTTP/1.1 200 ")


def test_inversion_landlock_without_the_filter_leaves_the_socket_open(place: Path) -> None:
    """It holds files that are opened, not sockets that are connected to."""
    level("landlock")
    with served(place / "home", ServeOptions(port=0)) as home:
        make_token(home.folder, "phone", ("operate",))
        for filtered, expected in ((False, "'HTTP/1.1 200 "), (True, "refused: PermissionError")):
            told = told_by([*interpreter(f"{held(filtered)}\n{TRY}"), *attempt(home)], place / "shop")
            assert told["tokens"] == "refused: PermissionError", "Landlock holds this process"
            assert told["socket"].startswith(expected)


def told_by(words: list[str], workspace: Path) -> dict[str, str]:
    """By the program, started by itself."""
    subprocess.run(words, timeout=60, check=True, cwd=workspace)
    found: dict[str, str] = json.loads((workspace / "told.json").read_text())
    return found


def held(filtered: bool) -> str:
    """A program that holds itself, as the launcher does with a command that was granted the network."""
    lines = ["import sys", "from wakeful.sandbox import landlock, seccomp"]
    lines += ["seccomp.apply(seccomp.program(sockets=True))"] if filtered else []
    return "\n".join([*lines, "landlock.restrict(['/usr', '/lib', sys.base_prefix], ['.'], [], network=True)"])
