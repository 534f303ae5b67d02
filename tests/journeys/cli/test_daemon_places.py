"""Where commands go when the daemon is not as it should be: each case is one sentence and the next command.

Every one of them is a real socket with a real process or thread behind it.
"""

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kit.surfaces.command_line import Wakeful
from kit.surfaces.served_home import ServedHome, served
from wakeful.service.serving.options import ServeOptions
from wakeful.service.serving.run_files import ProcessRecord, write_record
from wakeful.service.serving.socket_place import run_folder, socket_path


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedHome]:
    """A daemon of another home."""
    with served(tmp_path_factory.mktemp("elsewhere"), ServeOptions(host=None)) as found:
        yield found


@pytest.fixture
def here(wakeful: Wakeful) -> Path:
    """The place of the socket of this home, which has a store."""
    assert wakeful("run", "hello").code == 0
    run_folder().mkdir(mode=0o700)
    return socket_path()


@contextmanager
def answering(path: Path, answer: bytes) -> Iterator[None]:
    """A program that says the same to everybody who connects."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(path))
        listening.listen(8)

        def serve() -> None:
            while True:
                try:
                    peer, _ = listening.accept()
                except OSError:
                    return
                with peer:
                    peer.recv(65_536)
                    peer.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join(10)
    path.unlink()


def http(body: bytes, *headers: str) -> bytes:
    lines = ["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def test_without_a_daemon_the_file_is_asked(wakeful: Wakeful, here: Path) -> None:
    assert wakeful("status").code == 0
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as left:
        left.bind(str(here))  # what a process that was killed leaves: nobody accepts there
    assert here.is_socket() and wakeful("status").code == 0
    talk = wakeful("chat", "assistant")
    assert (talk.code, talk.out) == (2, "")
    assert talk.err == "Error: no daemon runs for this home\nHint: start it: wakeful daemon start\n"


def test_a_named_daemon_that_is_not_there_is_no_reason_to_ask_the_file(wakeful: Wakeful, here: Path) -> None:
    missing = wakeful("status", "--connect", str(here))
    assert (missing.code, missing.out) == (2, "")
    assert missing.err == (
        f"Error: no daemon answers at {here}: No such file or directory\nHint: start it: wakeful daemon start\n"
    )


def test_a_program_that_is_no_daemon(wakeful: Wakeful, here: Path) -> None:
    for answer in (http(b"{}"), b"220 mail.example ESMTP\r\n", http(b"{}")[:-1]):
        with answering(here, answer):
            told = json.loads(wakeful("daemon", "status", "--json").out)
            assert (told["running"], f"another program answers at {here}" in told["next_step"]) == (False, True)
            refused = wakeful("status")
            assert (refused.code, refused.out) == (2, "")
            assert f"another program answers at {here}" in refused.err and "--store FILE" in refused.err
            assert wakeful("status", "--store", str(here.parents[1] / "wakeful.db")).code == 0


def test_a_daemon_of_another_interface(wakeful: Wakeful, here: Path) -> None:
    with answering(here, http(b'{"status": "ok"}', "Wakeful-Api: 2", "Wakeful-Version: 9.0")):
        refused = wakeful("agent", "pause", "ops", "--json")
    told = json.loads(refused.out)["error"]
    assert (refused.code, told["type"]) == (2, "NoAnswer")
    assert "is wakeful 9.0 and speaks interface 2; this command is" in told["message"]
    assert "wakeful daemon restart" in told["hint"]


def test_a_daemon_of_another_version_that_answers_in_another_shape(wakeful: Wakeful, here: Path) -> None:
    with answering(here, http(b'{"status": "ok"}', "Wakeful-Api: 1", "Wakeful-Version: 9.0")):
        refused = wakeful("agent", "--connect", str(here))
    assert refused.code == 2
    assert "the daemon is wakeful 9.0 and answers in another shape" in " ".join(refused.err.split())
    assert "wakeful daemon restart" in refused.err


def test_an_error_that_is_told_in_another_shape(wakeful: Wakeful, here: Path) -> None:
    answer = http(b'{"error": "no"}', "Wakeful-Api: 1", "Wakeful-Version: 9.0").replace(b"200 OK", b"502 No")
    with answering(here, answer):
        refused = wakeful("status")
    assert (refused.code, refused.err.splitlines()[0]) == (1, "Error: it answered with status 502")


def test_the_socket_of_another_home(wakeful: Wakeful, here: Path, elsewhere: ServedHome) -> None:
    here.symlink_to(elsewhere.socket)
    refused = wakeful("status")
    assert (refused.code, refused.out) == (2, "")
    assert f"serves another home: {elsewhere.folder}" in " ".join(refused.err.split())
    assert f"WAKEFUL_HOME={elsewhere.folder}" in refused.err
    assert wakeful("status", "--connect", str(elsewhere.socket)).code == 0, "asked for by its name it is fine"


def test_a_daemon_that_shuts_down(wakeful: Wakeful, here: Path) -> None:
    with answering(here, http(b'{"status": "draining"}', "Wakeful-Api: 1", "Wakeful-Version: 1")):
        refused = wakeful("status")
    assert refused.code == 2 and f"the daemon at {here} is shutting down" in refused.err
    sleeping = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as closed:
            closed.bind(str(here))
        from wakeful.processes.process_identity import ProcessIdentity

        found = ProcessIdentity.of(sleeping.pid)
        write_record(ProcessRecord(pid=found.pid, started_ticks=found.started, boot=found.boot, socket_path=str(here)))
        refused = wakeful("status")
        assert refused.code == 2 and "is shutting down" in refused.err and "again in a moment" in refused.err
    finally:
        sleeping.communicate(b"\n", 30)
    assert wakeful("status").code == 0, "it is gone"


def test_a_token_that_is_missing_or_wrong(
    wakeful: Wakeful, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(tmp_path_factory.mktemp("networked"), ServeOptions(port=0)) as home:
        place = f"http://127.0.0.1:{home.port}"
        for token, words in (("", "a token is needed here"), ("wk_wrong", "the token is not valid here")):
            monkeypatch.setenv("WAKEFUL_TOKEN", token)
            refused = wakeful("status", "--connect", place)
            assert (refused.code, refused.out) == (2, "")
            assert words in refused.err and "wakeful token create NAME" in refused.err
            assert "wk_wrong" not in refused.err
    gone = wakeful("status", "--connect", place)
    assert gone.code == 2 and "no daemon answers" in gone.err and "wakeful serve" in gone.err


def test_an_address_that_is_none(wakeful: Wakeful) -> None:
    for wrong in ("http://", "http://u:p@host", "http://h?x=1", "ftp://host"):
        refused = wakeful("status", "--connect", wrong)
        assert refused.code == 2 and "is not the address of a daemon" in refused.err
    bare = wakeful("status", "--connect", "nas:7717")
    assert bare.code == 2 and "did you mean http://nas:7717?" in bare.err
    unknown = wakeful("status", "--connect", "office")
    assert unknown.code == 2 and "no such address" in unknown.err and "[connect.office]" in unknown.err


def test_the_settings_name_another_store_than_the_daemon_serves(
    wakeful: Wakeful, elsewhere: ServedHome, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WAKEFUL_HOME", str(elsewhere.folder))
    owner = tmp_path / "other.toml"
    owner.write_text('store = "other.db"\n')
    monkeypatch.setenv("WAKEFUL_CONFIG", str(owner))
    refused = wakeful("status")
    assert refused.code == 2 and "and the settings say" in " ".join(refused.err.split())
    assert "wakeful daemon restart" in refused.err
