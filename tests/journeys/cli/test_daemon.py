"""`wakeful daemon` and `wakeful serve`, as a person types them, with real processes in a home of their own."""

import json
import os
import pty
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kit.surfaces.served_home import AGENTS, TESTS, HomeClient, python_path
from wakeful.service.serving.lifecycle import DaemonProblem, _await_ready, daemon_status, stop_daemon
from wakeful.service.serving.run_files import make_run_folder, serving_lock

FREE = ("--port", "0", "--tools", AGENTS)
SERVE = (sys.executable, "-m", "wakeful.surfaces.cli", "serve")


class Home:
    """A home, and commands in it. Whatever was started is ended with the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    @property
    def around(self) -> dict[str, str]:
        around = {name: value for name, value in os.environ.items() if not name.startswith("WAKEFUL_")}
        return {**around, "WAKEFUL_HOME": str(self.folder), "PYTHONPATH": python_path(TESTS), "COLUMNS": "80"}

    def wakeful(self, *words: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "wakeful.surfaces.cli", *words],
            env=self.around,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == expect, (words, done.stdout, done.stderr)
        return done

    def json(self, *words: str, expect: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.wakeful(*words, "--json", expect=expect).stdout)
        return found

    @property
    def record(self) -> Path:
        return self.folder / "run" / "daemon.json"

    @property
    def client(self) -> HomeClient:
        return HomeClient(Path(json.loads(self.record.read_text())["socket_path"]))


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    found = Home(tmp_path / "home")
    try:
        yield found
    finally:
        found.wakeful("daemon", "stop")


@pytest.mark.spec("HOL-DAEMON-01", "HOL-DAEMON-06", "HOL-DAEMON-07", "HOL-DAEMON-15")
@pytest.mark.journey("daemon start --json", "daemon stop --json")
def test_a_daemon_is_started_once_looked_at_and_stopped(home: Home) -> None:
    first = home.json("daemon", "start", *FREE)
    again = home.json("daemon", "start", *FREE)
    assert (first["pid"], first["healthy"]) == (again["pid"], True), "it ran already, and nothing was started"
    other = home.wakeful("daemon", "start", "--listen", "none", expect=2)
    assert "wakeful daemon restart" in other.stderr, "another configuration is not taken in silence"
    status = home.json("daemon", "status")
    assert status["home_dir"] == str(home.folder)
    assert (status["socket_path"], status["http_addr"]) == (first["socket_path"], first["http_addr"])
    assert status["fingerprint_matches"] is True
    copied = Home(home.folder.parent / "copy")
    (copied.folder / "run").mkdir()
    shutil.copy2(home.record, copied.record)
    assert copied.json("daemon", "status")["running"] is False, "the record in a copy is about another home"
    assert copied.json("daemon", "stop") == {"stopped": False}
    assert home.json("daemon", "status")["pid"] == first["pid"], "and its process is not ended from there"
    assert "process" in home.wakeful("daemon", "status").stdout
    assert home.json("daemon", "stop") == {"stopped": True}
    assert home.json("daemon", "status")["running"] is False
    assert home.json("daemon", "stop") == {"stopped": False}


@pytest.mark.spec("HOL-DAEMON-02", "HOL-DAEMON-28", "HOL-DAEMON-29", "HOL-DAEMON-14")
@pytest.mark.journey("serve")
def test_serve_in_a_terminal_is_the_same_runtime_and_a_drain_stops_no_agent(home: Home) -> None:
    around = {**os.environ, "WAKEFUL_HOME": str(home.folder), "PYTHONPATH": python_path(TESTS)}
    command = [sys.executable, "-m", "wakeful.surfaces.cli", "serve", *FREE]
    process = subprocess.Popen(command, env=around, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert "serves" in process.stdout.readline()
        process.stdout.readline()
        status = home.json("daemon", "status")
        assert (status["running"], status["pid"]) == (True, process.pid), "serve is what a daemon runs"
        told = home.client.get("/control/runtime/status")
        assert told.body["pid"] == process.pid
        assert home.client.post("/control/runtime/shutdown").status == 200
        process.communicate(timeout=30)
        assert process.returncode == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    agents = home.json("agent", "show", "clerk")
    assert agents["control"] == "running", "shutting down is not stopping an agent"


def test_a_terminal_that_is_closed_ends_it_in_order(home: Home) -> None:
    """With a signal, and nobody reads what it says. What was begun with `nohup` goes on."""
    for before, goes_on in (((), False), (("nohup",), True)):
        master, slave = pty.openpty()
        line, place = [*before, *SERVE, *FREE], home.folder  # nohup leaves a file where it is typed
        process = subprocess.Popen(line, env=home.around, cwd=place, stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)
        try:
            until_served(home, process.pid)
            os.close(master)
            process.send_signal(signal.SIGHUP)
            if goes_on:
                assert home.client.get("/control/runtime/status").body["pid"] == process.pid
                process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
            assert not home.record.exists(), "it took its files with it"
            assert home.json("daemon", "status")["last_failure"] is None
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def until_served(home: Home, pid: int) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with suppress(OSError, ValueError):
            if home.client.get("/control/runtime/status").body["pid"] == pid:
                return
        time.sleep(0.05)
    raise AssertionError("it does not answer")


@pytest.mark.spec("HOL-DAEMON-03", "HOL-DAEMON-04", "HOL-DAEMON-05", "HOL-DAEMON-10")
def test_options_are_checked_before_anything_is_launched(home: Home) -> None:
    wrong = (
        ("--access", "everybody"),
        ("--host", "0.0.0.0"),
        ("--access", "tailnet"),
        ("--access", "tunnel"),
        ("--listen", "nonsense"),
        ("--advertise", "hooks.example.org"),
        ("--token", "short"),
        ("--token-file", "/no/such/file"),
        ("--port", "70000"),
    )
    for verb in ("start", "restart"):
        for options in wrong:
            refused = home.wakeful("daemon", verb, *options, expect=2)
            assert "Hint:" in refused.stderr, options
    assert not home.record.exists(), "nothing was launched"
    home.wakeful("daemon", "start", *FREE, "--advertise", "https://hooks.example.org/base/")
    made = home.client.post("/control/agents/clerk/triggers", {})
    shown = home.client.post(f"/control/triggers/{made.body['external_trigger_id']}/url", {})
    assert shown.body["trigger_url"].startswith("https://hooks.example.org/base/callbacks/"), shown
    before = home.json("daemon", "status")
    restarted = home.json("daemon", "restart", "--listen", "none")
    assert (restarted["http_addr"], restarted["pid"] != before["pid"]) == (None, True), "with the options given now"


def test_a_restart_keeps_the_code_it_was_started_with_wherever_it_is_typed(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    for folder, agent in ((project, "shopper"), (elsewhere, "impostor")):
        folder.mkdir()
        (folder / "shop.py").write_text(f'from wakeful import Agent\nagents = [Agent("{agent}", "scripted:demo")]\n')
    (elsewhere / "other.py").write_text('from wakeful import Agent\nagents = [Agent("other", "scripted:demo")]\n')

    def at_work() -> list[str]:
        agents = json.loads(home.wakeful("agent", "list", "--json").stdout)
        return [each["agent"] for each in agents if each["control"] == "running"]

    monkeypatch.chdir(project)
    home.wakeful("daemon", "start", "--listen", "none", "--tools", "shop:agents", "--model", "scripted:demo")
    monkeypatch.chdir(elsewhere)
    said = home.wakeful("daemon", "restart", "--listen", "none").stdout
    assert "kept     --tools shop:agents --model scripted:demo" in said and "dropped" not in said
    assert at_work() == ["shopper"]
    _kill(home.json("daemon", "status")["pid"])
    told = home.json("daemon", "restart", "--listen", "none")
    assert told["kept_options"] == ["--tools shop:agents", "--model scripted:demo"], "also of one that was killed"
    assert home.json("daemon", "status")["fingerprint_matches"] is True
    other = home.json("daemon", "restart", "--listen", "none", "--tools", "other:agents")
    assert other["kept_options"] == ["--model scripted:demo"]
    (elsewhere / "other.py").unlink()
    failed = home.wakeful("daemon", "restart", expect=1)
    assert f"daemon goes on as it was, process {other['pid']}." in " ".join(failed.stderr.split())
    assert home.json("daemon", "status")["pid"] == other["pid"]


def test_a_restart_stays_at_its_address_and_goes_nowhere_where_it_could_not_start(home: Home) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = f"127.0.0.1:{other.getsockname()[1]}"
        first = home.json("daemon", "start", "--listen", "127.0.0.1:0")
        placed = home.json("daemon", "restart", "--listen", first["http_addr"])
        again = home.json("daemon", "restart")
        assert (again["http_addr"], again["pid"] != placed["pid"]) == (first["http_addr"], True)
        refused = home.wakeful("daemon", "restart", "--listen", taken, expect=1)
        assert f"{taken} cannot be listened on" in " ".join(refused.stderr.split())
        file = home.folder / "wakeful.toml"
        before = file.read_text() if file.exists() else None
        file.write_text("[models]\nnonsense = 3\n")
        refused = home.wakeful("daemon", "restart", expect=1)
        assert "[models] has no setting 'nonsense'" in " ".join(refused.stderr.split())
        file.unlink() if before is None else file.write_text(before)
        assert home.json("daemon", "status")["pid"] == again["pid"], "it was never stopped"


@pytest.mark.spec("HOL-DAEMON-10")
def test_a_restart_says_which_access_options_it_was_not_given_again(home: Home) -> None:
    reached = ("--advertise", "https://hooks.example.org")
    home.wakeful("daemon", "start", "--listen", "none", *reached)
    assert "dropped" not in home.wakeful("daemon", "restart", "--listen", "none", *reached).stdout
    assert "dropped  --advertise https://hooks.example.org (give" in (
        home.wakeful("daemon", "restart", "--listen", "none").stdout
    )


@pytest.mark.spec("HOL-DAEMON-08", "HOL-DAEMON-09", "HOL-TROUBLE-06")
@pytest.mark.journey("daemon restart --json")
def test_stale_files_are_cleaned_by_the_next_command(home: Home) -> None:
    pid = home.json("daemon", "start", *FREE)["pid"]
    _kill(pid)
    assert home.record.exists(), "a killed process leaves its files"
    assert home.json("daemon", "status")["running"] is False
    assert home.json("daemon", "restart", *FREE)["healthy"] is True
    _kill(home.json("daemon", "status")["pid"])
    assert home.json("daemon", "stop") == {"stopped": False}
    assert not home.record.exists()


@pytest.mark.spec("HOL-DAEMON-12", "HOL-TROUBLE-07")
def test_a_socket_that_somebody_else_has_is_left_alone(home: Home) -> None:
    (home.folder / "run").mkdir()
    place = home.folder / "run" / "wakeful.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(str(place))
        other.listen(8)
        refused = home.wakeful("daemon", "start", *FREE, expect=2)
        assert str(place) in refused.stderr.replace("\n  ", "").replace("\n", "")
        assert place.is_socket(), "it is still there"
    place.unlink()


def test_starts_at_the_same_moment_are_one_start(home: Home) -> None:
    """The second one waits for the first, and finds its daemon; a killed one has left its socket behind."""
    _kill(home.json("daemon", "start", *FREE)["pid"])
    line = [sys.executable, "-m", "wakeful.surfaces.cli", "daemon", "start", *FREE, "--json"]
    begun = [subprocess.Popen(line, env=home.around, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    told = [json.loads(each.communicate(timeout=120)[0]) for each in begun]
    assert [each.returncode for each in begun] == [0, 0, 0]
    assert len({each["pid"] for each in told}) == 1 and all(each["healthy"] for each in told)
    refused = home.wakeful("serve", *FREE, expect=2)
    assert f"process {told[0]['pid']} serves" in refused.stderr and "wakeful daemon restart" in refused.stderr
    assert home.json("daemon", "status")["last_failure"] is None, "the daemon that runs has not failed"


def test_a_socket_is_taken_away_by_nobody_while_a_process_begins_to_serve(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two that find a stale socket, each would take away the one that the other has just made."""
    monkeypatch.setenv("WAKEFUL_HOME", str(home.folder))
    make_run_folder()
    place = home.folder / "run" / "wakeful.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(str(place))  # bound, and not listening yet: it looks like a stale one
        with serving_lock():
            assert stop_daemon() is False and place.is_socket()
            refused = home.wakeful("serve", *FREE, expect=2)
            assert f"process {os.getpid()} serves" in refused.stderr and place.is_socket()
    assert stop_daemon() is False and not place.exists(), "of nobody, it is stale"


def test_a_process_that_does_not_come_up_is_ended(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would keep the home from the next one. This one does not listen to being asked."""
    monkeypatch.setenv("WAKEFUL_HOME", str(home.folder))
    code = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"deaf\n"
        with pytest.raises(DaemonProblem, match="and was ended"):
            _await_ready(process, 0.2)
        assert process.poll() == -signal.SIGKILL


@pytest.mark.spec("HOL-DAEMON-11", "HOL-DAEMON-13")
@pytest.mark.journey("daemon start", "daemon restart", "daemon stop")
def test_a_restart_replaces_the_process_and_turns_go_on(home: Home) -> None:
    home.wakeful("daemon", "start", *FREE)
    sent = home.client.post("/agents/clerk/messages", {"text": "slow 1.5"}).body
    with home.client.stream("/agents/clerk/events") as frames:
        seen = frames.until("tool.started")
    home.wakeful("daemon", "restart", *FREE)
    with home.client.stream("/agents/clerk/events", last=seen[-1].id) as frames:
        frames.until("turn.completed")
    assert home.client.until_ended(sent)["state"] == "completed"
    home.wakeful("daemon", "stop")


@pytest.mark.spec("HOL-DAEMON-16", "HOL-DAEMON-17", "HOL-DAEMON-18", "HOL-DAEMON-19")
def test_the_status_says_what_the_agents_are_at(home: Home) -> None:
    home.wakeful("daemon", "start", *FREE)
    idle = home.json("daemon", "status")["activity"]
    assert (idle["state"], idle["active_agent_count"], idle["active_task_count"]) == ("idle", 2, 0)
    home.client.post("/agents/clerk/messages", {"text": "hold busy"})
    with home.client.stream("/agents/clerk/events") as frames:
        frames.until("tool.started")
    busy = home.client.get("/control/runtime/status").body["activity"]
    assert (busy["state"], busy["processing_agent_count"]) == ("processing", 1)
    (home.folder / "busy").touch()
    with home.client.stream("/agents/clerk/events") as frames:
        frames.until("turn.completed")
    home.client.post("/agents/keeper/messages", {"text": "wait for it"})
    with home.client.stream("/agents/keeper/events") as frames:
        frames.until("turn.completed")
    waiting = home.json("daemon", "status")["activity"]
    assert (waiting["state"], waiting["waiting_agent_count"]) == ("waiting", 1)


@pytest.mark.spec("HOL-DAEMON-20", "HOL-DAEMON-21")
def test_a_failed_turn_stays_visible(home: Home) -> None:
    home.wakeful("daemon", "start", *FREE)
    assert home.json("daemon", "status")["last_failure"] is None
    home.client.post("/agents/clerk/messages", {"text": "fail"})
    with home.client.stream("/agents/clerk/events") as frames:
        frames.until("turn.failed")
    failure = home.json("daemon", "status")["last_failure"]
    assert (failure["phase"], "clerk" in failure["summary"]) == ("runtime_turn", True)
    assert failure["detail_hint"].startswith("wakeful events turn_")
    assert failure["occurred_at"] > 0


@pytest.mark.spec("HOL-DAEMON-22", "HOL-DAEMON-23", "HOL-DAEMON-26", "HOL-TROUBLE-08")
def test_a_start_that_fails_is_on_record_until_one_succeeds(home: Home) -> None:
    failed = home.wakeful("daemon", "start", "--port", "0", "--tools", "kit.surfaces.served_agents:nothing", expect=1)
    assert "served_agents' has no 'nothing'\nHint: did you mean --tools kit.surfaces.served_agents:" in failed.stderr
    assert failed.stderr.endswith("More: wakeful daemon logs\n")
    status = home.json("daemon", "status")
    assert (status["last_failure"]["phase"], status["next_step"]) == ("startup", "wakeful daemon logs")
    assert home.json("daemon", "logs")["startup_failure"]["summary"] == status["last_failure"]["summary"]
    home.wakeful("daemon", "start", *FREE)
    assert home.json("daemon", "status")["last_failure"] is None
    assert home.json("daemon", "logs")["startup_failure"] is None


def test_the_first_token_reaches_no_log_and_is_in_a_file_of_its_owner(home: Home, tmp_path: Path) -> None:
    log = tmp_path / "journal"
    with log.open("wb") as kept:
        process = subprocess.Popen([*SERVE, *FREE], env=home.around, stdout=kept, stderr=kept)
        try:
            until = time.monotonic() + 60
            while not home.record.exists():
                assert process.poll() is None and time.monotonic() < until, log.read_text()
                time.sleep(0.02)
            file = home.folder / "run" / "first-token"
            token = file.read_text().strip()
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            assert "".join(str(file).split()) in "".join(log.read_text().split()), "it says where the token is"
            assert "wk_" not in log.read_text()
            port = int(home.json("daemon", "status")["http_addr"].rpartition(":")[2])
            assert HomeClient(port, token).get("/agents").status == 200
        finally:
            process.terminate()
            process.wait(60)


def test_the_first_token_is_shown_to_a_person_at_a_terminal(home: Home) -> None:
    terminal, shown = pty.openpty()
    with os.fdopen(terminal, "rb", buffering=0) as screen:
        process = subprocess.Popen([*SERVE, *FREE], env=home.around, stdout=subprocess.PIPE, stderr=shown)
        os.close(shown)
        try:
            said = b""
            while b"wk_" not in said:
                said += screen.read(1024)
        finally:
            process.terminate()
            process.communicate(timeout=60)
    assert not (home.folder / "run" / "first-token").exists()


@pytest.mark.spec("HOL-DAEMON-25", "HOL-DAEMON-27", "HOL-TROUBLE-03")
def test_logs_say_where_everything_is_and_show_the_end(home: Home) -> None:
    home.wakeful("daemon", "start", *FREE)
    found = home.json("daemon", "logs", "--lines", "2")
    assert found["log_path"] == str(home.folder / "run" / "daemon.log")
    assert found["metadata_path"] == str(home.record)
    assert found["failure_path"].startswith(str(home.folder))
    assert 1 <= len(found["lines"]) <= 2
    assert "wk_" not in (home.folder / "run" / "daemon.log").read_text(), "no token reaches a log"
    _kill(home.json("daemon", "status")["pid"])
    home.folder.joinpath("run", "failure.json").write_text(
        json.dumps({"occurred_at": 1.0, "summary": "the disk was full", "phase": "shutdown"})
    )
    shown = home.wakeful("daemon", "status").stdout
    assert "the disk was full" in shown
    assert "next: wakeful daemon logs" in shown


@pytest.mark.spec("HOL-DAEMON-24")
def test_an_answer_of_another_version_is_read_as_far_as_it_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAKEFUL_HOME", str(tmp_path))
    (tmp_path / "run").mkdir()
    body = json.dumps({"pid": 7, "something": "new", "activity": {"state": "resting"}}).encode()

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(tmp_path / "run" / "wakeful.sock"))
        server.listen(1)

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(10_000)
                head = f"HTTP/1.1 200 OK\r\nwakeful-api: 9\r\ncontent-length: {len(body)}\r\n\r\n"
                connection.sendall(head.encode() + body)

        thread = threading.Thread(target=answer)
        thread.start()
        status = daemon_status()
        thread.join()
    assert (status.healthy, status.pid, status.activity, status.fingerprint_matches) == (True, 7, None, None)


def test_tokens_are_shown_once_listed_without_and_revoked(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    made = home.json("token", "create", "phone", "--scope", "observe")
    assert made["token"].startswith("wk_")
    assert made["token"] not in (home.folder / "tokens.json").read_text()
    assert home.wakeful("token", "create", "phone", expect=2).stderr.count("wakeful token revoke phone") == 1
    assert "observe" in home.wakeful("token", "create", "x", "--scope", "everything", expect=2).stderr
    listed = home.wakeful("token", "list").stdout
    assert "phone" in listed and "observe" in listed and "wk_" not in listed
    assert home.json("token", "revoke", "phone")["name"] == "phone"
    assert "no tokens" in home.wakeful("token", "list").stdout
    assert "there is no token" in home.wakeful("token", "revoke", "phone", expect=2).stderr


def _kill(pid: int) -> None:
    """Until it is gone, or waits for its parent to ask how it ended."""
    handle = os.pidfd_open(pid)
    try:
        os.kill(pid, signal.SIGKILL)
        assert select.select([handle], [], [], 60)[0], f"{pid} is still there"
    finally:
        os.close(handle)
