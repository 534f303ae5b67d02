"""`wakeful tui` in a real terminal, and where there is none."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.surfaces.real_terminal import Tmux, needs_tmux, terminal
from kit.surfaces.served_home import HomeClient, ServedHome

ROOT = Path(__file__).resolve().parents[3]
BIN = Path(sys.executable).parent


@pytest.fixture
def tmux(home: ServedHome) -> Iterator[Tmux]:
    with terminal(home.environment) as found:
        yield found


@needs_tmux
@pytest.mark.spec("HOL-CONSOLE-01", "HOL-CONSOLE-03")
@pytest.mark.journey("tui")
def test_a_session_in_a_real_terminal(tmux: Tmux, client: HomeClient, home: ServedHome) -> None:
    tmux.start(f"{BIN}/wakeful tui --agent clerk --display 4")
    tmux.until("> to clerk:")
    assert tmux("display", "-p", "#{alternate_on}").strip() == "1"
    tmux("send-keys", "refund 30", "Enter")  # all keys at once: Enter does not overtake the letters
    tmux.until("1 NEEDS YOU (F6)")
    tmux("send-keys", "F6")
    tmux.until("[y] once")
    tmux("send-keys", "y")
    tmux.until("nothing needs you")
    tmux("send-keys", "Escape")
    assert "ok refund" in tmux.until("clerk finished")
    shown = tmux.until("nothing needs you   today")
    assert re.search(r"^ wakeful   3 agents   nothing needs you   today \$0\.00 +\w{3} \d\d:\d\d$", shown, re.M)
    codes = re.findall(r"\x1b\[([\d;]*)m", tmux("capture-pane", "-p", "-e"))
    assert [code for code in codes if re.search(r"\b(3[0-8]|4[0-8]|9\d|10\d)\b", code)] == [], (
        "no colours, as was asked"
    )
    tmux("send-keys", "C-q")
    tmux.until("LEFT 0")
    assert client.get("/control/runtime/status").body["pid"] == home.record["pid"]


@needs_tmux
@pytest.mark.spec("HOL-CONSOLE-11")
def test_it_can_stay_in_the_scrollback(tmux: Tmux) -> None:
    tmux.start(f"echo BEFORE; {BIN}/wakeful tui --agent keeper --no-alt-screen")
    tmux.until("> to keeper:")
    assert tmux("display", "-p", "#{alternate_on}").strip() == "0"
    tmux("send-keys", "hello from the scrollback", "Enter")
    tmux.until("keeper you said:")
    tmux("send-keys", "C-q")
    tmux.until("LEFT 0")
    assert "hello from the scrollback" in tmux("capture-pane", "-p", "-S", "-100")


def typed(home: ServedHome, *words: str, **more: str) -> "subprocess.CompletedProcess[str]":
    line = [f"{BIN}/wakeful", *words]
    return subprocess.run(
        line, env={**home.environment, **more}, capture_output=True, text=True, timeout=60, check=False
    )


def test_without_a_terminal_it_says_what_programs_use(home: ServedHome) -> None:
    found = typed(home, "tui")
    assert found.returncode == 2
    assert found.stderr == (
        "Error: wakeful tui needs a terminal\nHint: for programs: wakeful tail --json, wakeful send\n"
    )


def test_a_display_mode_that_is_none_is_refused(home: ServedHome) -> None:
    found = typed(home, "tui", "--display", "trace")
    assert (found.returncode, "there is no display mode 'trace'" in found.stderr) == (2, True)


@needs_tmux
@pytest.mark.spec("HOL-TROUBLE-04")
def test_without_a_daemon_it_names_the_command_that_starts_one(tmux: Tmux, tmp_path: Path) -> None:
    tmux.start(f"WAKEFUL_HOME={tmp_path} {BIN}/wakeful tui")
    shown = tmux.until("LEFT 2")
    assert "no daemon answers at" in shown
    assert "wakeful daemon start" in shown


@pytest.mark.spec("HOL-TROUBLE-01", "HOL-TROUBLE-02", "HOL-TROUBLE-04", "HOL-TROUBLE-05")
def test_the_order_of_looking_for_trouble_is_documented(home: ServedHome) -> None:
    guide = (ROOT / "docs" / "guides" / "daemon.md").read_text()
    steps = re.findall(r"^(\d)\. (.*)$", guide.partition("## When something is wrong")[2], re.M)
    named = [re.findall(r"`(wakeful [^`]*)`", words) for _, words in steps]
    assert [each[0] for each in named] == [
        "wakeful run --json",
        "wakeful daemon status",
        "wakeful daemon logs",
        "wakeful status",
        "wakeful tui",
        "wakeful serve",
    ]
    assert named[3][:3] == ["wakeful status", "wakeful tail", "wakeful transcript AGENT"]
    words = [said for _, said in steps]
    assert "reproduce it once, without the daemon" in words[0]
    assert "once you know that the daemon is healthy" in words[4]
    assert "in a terminal" in words[5]
    (home.folder / "replies.json").write_text('["It works."]')
    once = typed(home, "run", "hello", "--model", f"scripted:{home.folder}/replies.json", "--json")
    assert (once.returncode, "It works." in once.stdout) == (0, True), "it ends by itself, beside a daemon that runs"
    second = typed(home, "serve", "--port", "0")
    assert second.returncode != 0, "the owner of the home is the process that serves it, one at a time"
    assert second.stderr
