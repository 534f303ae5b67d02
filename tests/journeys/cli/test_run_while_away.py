"""`wakeful run` and a provider that is away: it says that it waits, keeps the turn, and prints how to go on."""

import json
import os
import pty
import select
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.surfaces.command_line import Wakeful, command_line
from wakeful.testing import ProviderServer

HELLO = ("run", "Hello.", "--model", "openai:gpt-5.5", "--profile", "chat")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ProviderServer]:
    with ProviderServer(["There you are."]) as served:
        for name, value in served.environment().items():
            monkeypatch.setenv(name, value)
        yield served


def next_line(err: str, words: str) -> list[str]:
    return err.split(f"{words}: wakeful ")[1].splitlines()[0].split()


def test_what_the_provider_puts_off_for_an_hour_is_kept_with_the_line_that_goes_on(
    wakeful: Wakeful, server: ProviderServer
) -> None:
    server.weather.next("429 after=3600")
    done = wakeful(*HELLO)
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("waiting (provider): openai does not answer: ")
    later = wakeful("resume")
    assert later.code == 3 and len(server.requests) == 1, "it is not due"
    again = wakeful(*next_line(done.err, "earlier, or then"))
    assert (again.code, again.out) == (0, "There you are.\n"), again.err


def test_a_key_that_is_refused_keeps_the_turn_until_it_is_mended(wakeful: Wakeful, server: ProviderServer) -> None:
    server.weather.next("401")
    done = wakeful(*HELLO)
    assert done.code == 3 and "openai lets nobody in: openai" in done.err
    again = wakeful(*next_line(done.err, "to continue"))
    assert (again.code, again.out) == (0, "There you are.\n"), again.err


def test_json_says_what_it_waits_for_and_when_it_is_tried_again(wakeful: Wakeful, server: ProviderServer) -> None:
    server.weather.next("429 after=3600")
    done = wakeful(*HELLO, "--json")
    document = json.loads(done.out)
    assert (done.code, document["status"], document["waiting_for"]) == (3, "waiting", "provider")
    assert document["next_try"].endswith("Z")


def test_somebody_at_a_terminal_is_told_of_the_wait_and_ctrl_c_keeps_the_turn(
    process: Wakeful, folder: Path, server: ProviderServer
) -> None:
    server.weather.next("429 after=60")
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        command_line(*HELLO),
        stdin=subprocess.DEVNULL,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    os.close(theirs)
    seen = b""
    while b"waiting for openai (rate_limited), next try in" not in seen:
        assert select.select([ours], [], [], 240)[0], seen
        seen += os.read(ours, 65536)
    child.send_signal(signal.SIGINT)
    while select.select([ours], [], [], 240)[0]:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    assert child.wait(timeout=240) == 130
    os.close(ours)
    words = seen.decode().replace("\r", "")
    line = words.split("Interrupted. To continue: wakeful ")[1].splitlines()[0].split()
    done = process(*line)
    assert (done.code, done.out) == (0, "There you are.\n"), done.err
