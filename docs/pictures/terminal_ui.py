"""Draw `terminal-ui.svg` and `terminal-approval.svg` from a real session of `wakeful tui` in tmux: `make picture`.

A daemon serves a home with two agents, whose models are scripted; a terminal of 100 columns is typed into and read.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from frame import drawn
from rich.text import Text

HERE = Path(__file__).parent
COLUMNS, ROWS = 100, 22
BIN = Path(sys.executable).parent
AGENTS = '''
from wakeful import Agent, tool
from wakeful.testing import scripted


@tool(effect="pure")
def list_backups(host: str) -> str:
    """Backups of a host."""
    return "2026-11-15  41 GB\\n2026-11-16  41 GB\\n2025-03-02  12 GB"


@tool(effect="irreversible", approval=True)
def delete_backup(host: str, day: str) -> str:
    """Delete the backup of a day."""
    return f"deleted {day}"


def reply(request):
    if request.history[-1].role == "tool":
        return "Both backups of this week are there, 41 GB each. One of March 2025 is left over."
    if "Delete" in request.history[-1].text:
        return {"calls": [{"name": "delete_backup", "arguments": {"host": "db1", "day": "2025-03-02"}}]}
    return {"calls": [{"name": "list_backups", "arguments": {"host": "db1"}}]}


every_morning = [{"cron": "0 7 * * *", "say": "Look at the mail of the shop."}]
agents = [
    Agent("ops", scripted(reply), tools=[list_backups, delete_backup]),
    Agent("shop", scripted(["Nothing new."]), wake=every_morning),
]
'''


class Terminal:
    """A terminal in tmux, whose server is its own."""

    def __init__(self, folder: Path) -> None:
        self.name = f"wakeful-{os.getpid()}"
        self._environment = {
            **{name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TMUX")},
            "WAKEFUL_HOME": str(folder / "home"),
            "TERM": "tmux-256color",
            "COLORTERM": "truecolor",
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "LC_ALL": "C.UTF-8",
        }
        self._folder = folder

    def run(self, *line: str) -> str:
        options = {"cwd": self._folder, "env": self._environment, "capture_output": True, "text": True}
        return str(subprocess.run(line, check=True, timeout=60, **options).stdout)  # type: ignore[call-overload]

    def tmux(self, *words: str) -> str:
        return self.run("tmux", "-u", "-L", self.name, "-f", os.devnull, *words)

    def type(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    def until(self, words: str) -> None:
        until = time.monotonic() + 60
        while words not in (shown := self.tmux("capture-pane", "-p")):
            if time.monotonic() > until:
                raise SystemExit(f"{words!r} did not come:\n{shown}")
            time.sleep(0.1)

    def picture(self, title: str) -> str:
        shown = self.tmux("capture-pane", "-p", "-e")
        lines = [Text.from_ansi(line, no_wrap=True, overflow="crop") for line in shown.splitlines()]
        return drawn(lines, title, COLUMNS)


@contextmanager
def session() -> Iterator[Terminal]:
    """A daemon, and the terminal UI before it."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "shown_agents.py").write_text(AGENTS)
        terminal = Terminal(folder)
        terminal.run("wakeful", "daemon", "start", "--port", "0", "--tools", "shown_agents:agents")
        try:
            terminal.tmux("new-session", "-d", "-x", str(COLUMNS), "-y", str(ROWS), "wakeful tui --agent ops")
            yield terminal
        finally:
            subprocess.run(["tmux", "-L", terminal.name, "kill-server"], check=False, capture_output=True)
            terminal.run("wakeful", "daemon", "stop")


def pictures() -> dict[str, str]:
    """The conversation, and an approval that is asked for in it."""
    with session() as terminal:
        terminal.until("> to ops:")
        terminal.type("/display verbose", "Enter")
        terminal.type("Check the backups of db1.", "Enter")
        terminal.until("left over")
        terminal.type("Delete the old one.", "Enter")
        terminal.until("1 NEEDS YOU")
        terminal.until("turn $")
        conversation = terminal.picture("wakeful tui")
        terminal.type("F6")
        terminal.until("[y] once")
        return {"terminal-ui.svg": conversation, "terminal-approval.svg": terminal.picture("wakeful tui, F6")}


if __name__ == "__main__":
    for name, picture in pictures().items():
        (HERE / name).write_text(picture)
