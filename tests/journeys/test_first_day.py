"""A newcomer's first day, step by step as docs/guides/first-day.md says: installed, set up, answered, asked, woken."""

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.surfaces.real_terminal import needs_tmux, terminal
from kit.wires import anthropic_samples
from kit.wires.provider_server import Answer, Asked, ProviderServer, messages_words, serving

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "guides" / "first-day.md").read_text()


def answer(asked: Asked) -> Answer:
    """A provider on this machine: runs a command where it is to check, and speaks otherwise."""
    last = json.dumps(asked.body["messages"][-1])
    if "tool_result" in last:
        return messages_words("Backups fine: 1 of 1.")
    if "Check the backups" in last:
        name = next(each["name"] for each in asked.body["tools"] if each["name"].endswith("exec_command"))
        block = anthropic_samples.call_block(0, "toolu_1", name, json.dumps({"cmd": "ls backups"}))
        return Answer(
            anthropic_samples.sse([anthropic_samples.started(), *block, *anthropic_samples.ended("tool_use")])
        )
    return messages_words("The build failed." if "build" in last else "Good day.")


@pytest.fixture
def provider() -> Iterator[ProviderServer]:
    with serving() as server:
        server.always = answer
        yield server


class Newcomer:
    """Somebody at a shell in an empty folder."""

    def __init__(self, folder: Path, *program: str) -> None:
        self.folder = folder
        self.program = program or (sys.executable, "-m", "wakeful.surfaces.cli")
        around = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_BASE_URL"))}
        self.environment = {
            **{name: value for name, value in around.items() if not name.startswith("WAKEFUL_")},
            "HOME": str(folder),
            "WAKEFUL_HOME": str(folder / "home"),
            "XDG_STATE_HOME": str(folder / "state"),
            "COLUMNS": "80",
        }

    def types(self, *words: str) -> str:
        done = subprocess.run(
            [*self.program, *words],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def sees(self, text: str, *words: str) -> str:
        """Looks until it is there."""
        until = time.monotonic() + 90
        while text not in (shown := self.types(*words)):
            assert time.monotonic() < until, (text, shown)
        return shown


@pytest.mark.timeout(300)
def test_a_newcomer_gets_from_nothing_to_an_agent_that_a_webhook_wakes(
    tmp_path: Path, provider: ProviderServer
) -> None:
    person = Newcomer(tmp_path)
    (tmp_path / "shop" / "backups").mkdir(parents=True)
    (tmp_path / "shop" / "backups" / "monday.tar").touch()

    assert "no key, no cost" in person.types("run", "hello", "--model", "scripted:demo")  # the first answer, offline

    person.environment["ANTHROPIC_API_KEY"] = "sk-ant-newcomer"
    person.types(
        "init", "--model", "anthropic", "--base-url", provider.url, "--spend", "5", "--reach", "none", "--no-autostart",
        "--listen", "127.0.0.1:0",
    )  # fmt: skip
    try:
        del person.environment["ANTHROPIC_API_KEY"]  # it is in secrets.env of the home
        person.types("send", "main", "hello")
        person.sees("Good day.", "tail", "main")
        person.types("notify", "test", "main")
        person.sees(
            "not_sent: no notices are sent. To get them on a phone: wakeful channel add ntfy", "notices", "main"
        )

        person.types(
            "agent", "new", "ops", "--at", "weekdays 07:00", "--workspace", "shop", "--say", "Check the backups."
        )
        with (tmp_path / "home" / "agents" / "ops.yaml").open("a") as file:
            file.write("hitl_tools: [exec_command]\n")
        person.types("reload")
        person.types("timer", "run", "ops")
        person.sees("exec_command", "approvals")
        assert "ops" in person.types("why")
        person.types("approve", "1")
        person.sees("Backups fine: 1 of 1.", "tail", "ops")

        person.types("trigger", "create", "main", "ci", "--say", "A build reported in.")
        address = person.types("trigger", "url", "main/ci").strip()
        request = urllib.request.Request(address, b'{"build": 17, "ok": false}')  # as curl -d sends it
        with urllib.request.urlopen(request, timeout=30) as told:
            assert told.status == 202
        person.sees("The build failed.", "tail", "main")
    finally:
        person.types("daemon", "stop")


@pytest.fixture
def installed(tmp_path: Path) -> str:
    """The command of a wheel that was made and installed as `uv tool install wakeful` does it: without extras."""
    around = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}

    def pip(*words: str) -> "subprocess.CompletedProcess[str]":
        line = [str(tmp_path / "venv/bin/python"), "-m", "pip", "--quiet", "--retries", "0", *words]
        return subprocess.run(line, env=around, capture_output=True, text=True, timeout=280, check=False)

    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], env=around, check=True, timeout=120)
    if pip("download", "--no-deps", "--dest", str(tmp_path / "asked"), "hatchling").returncode != 0:
        pytest.skip("no package index answers: a wheel is made with what comes from there")
    done = pip("install", "--constraint", str(ROOT / "requirements" / "dev.txt"), str(ROOT))
    assert done.returncode == 0, done.stderr
    return str(tmp_path / "venv" / "bin" / "wakeful")


@needs_tmux
@pytest.mark.timeout(600)
def test_what_is_installed_without_extras_carries_the_first_day_up_to_the_terminal_ui(
    installed: str, tmp_path: Path
) -> None:
    person = Newcomer(tmp_path, installed)
    told = person.types(
        "init", "--model", "scripted:demo", "--spend", "5", "--reach", "none", "--no-autostart",
        "--listen", "127.0.0.1:0",
    )  # fmt: skip
    try:
        assert "wakeful tui" in told, "the command that it names next"
        person.types("send", "main", "hello")
        with terminal(person.environment) as screen:
            screen.start(f"{installed} tui")
            screen.until("> to main:")
            screen.until("you  hello")
            screen("send-keys", "C-q")
            screen.until("LEFT 0")
    finally:
        person.types("daemon", "stop")


@pytest.mark.parametrize(
    "step",
    [
        "run",
        "init",
        "send",
        "tail",
        "tui",
        "agent new",
        "reload",
        "timer run",
        "approvals",
        "approve",
        "why",
        "trigger create",
        "trigger url",
    ],
)
def test_no_step_of_that_day_is_missing_from_the_guide(step: str) -> None:
    assert re.search(rf"wakeful {step}\b", GUIDE)


def test_the_readme_leads_to_the_guide() -> None:
    assert "docs/guides/first-day.md" in (ROOT / "README.md").read_text()
