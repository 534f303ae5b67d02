"""The stage of a demo: a temporary folder, commands that are printed before they are run, and their output.

Everything that is shown was run, and can be typed again in the demo's folder. A line that ends otherwise than the demo
says stops it. The commands have a home of their own and no setting of wakeful's from around them: a demo neither reads
nor writes the store of whoever looks on.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from rich.console import Console
from rich.text import Text

from wakeful.bootstrap.keys import without_keys
from wakeful.surfaces.cli.problems import NeedsPerson
from wakeful.surfaces.cli.screen import folded, width
from wakeful.surfaces.cli.shown_values import plain

KILLED = -signal.SIGKILL
HOME = "home"
OWN, OWN_HOME = "WAKEFUL_", "WAKEFUL_HOME"
"""How variables that wakeful reads begin, and the one that each demo has of its own."""
COMMAND_SECONDS = 120
INDENT = "  "
KeepOption: TypeAlias = Annotated[bool, typer.Option("--keep/--no-keep", help="Keep the folder, to try more in it.")]


class Stage:
    """One demo's folder and screen."""

    def __init__(self, folder: Path, *, keep: bool) -> None:
        self.folder, self.home, self._keep = folder, folder / HOME, keep
        self._console = Console(highlight=False, soft_wrap=True)

    def program(self, name: str) -> str:
        """A program that ships with the demos."""
        return (files("wakeful.surfaces.cli.demos") / name).read_text("utf-8")

    def run(self, line: Sequence[str], *, crash: bool = False, ends: int = 0) -> str:
        """Print a command, run it, and return what it printed. It must end with the expected exit code."""
        typed = " ".join(f'"{word}"' if " " in word else word for word in line)
        self._console.print(Text(f"$ {'CRASH=1 ' if crash else ''}{typed}", "bold cyan"))
        done = self.done(line, crash=crash)
        words = done.stdout + (done.stderr if ends else "")
        for each in plain(words).splitlines():
            self._console.print(Text(folded(each, sys.stdout, indent=INDENT)))
        if crash and done.returncode == KILLED:
            self._console.print(Text("  killed (signal 9)", "red"))
        if done.returncode != (KILLED if crash else ends):
            said = done.stderr.strip() or f"exit code {done.returncode}"
            raise NeedsPerson(f"the demo failed at: {typed}\n{said}", f"look into {self.folder}")
        return done.stdout

    def done(self, line: Sequence[str], *, crash: bool = False) -> "subprocess.CompletedProcess[str]":
        program = {"python": [], "wakeful": ["-m", "wakeful.surfaces.cli"]}[line[0]]
        return subprocess.run(
            [sys.executable, *program, *line[1:]],
            cwd=self.folder,
            env={
                **{name: value for name, value in without_keys(os.environ).items() if not name.startswith(OWN)},
                OWN_HOME: str(self.home),
                "CRASH": "1" if crash else "",
                "COLUMNS": str(width() - len(INDENT)),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )

    def show_payments(self, file: str, *, many: int = 1) -> None:
        """Print the payments, and check how many there are."""
        self._console.print(Text(f"$ cat {file}", "bold cyan"))
        payments = (self.folder / file).read_text().splitlines()
        for words in payments:
            self._console.print(Text(f"  {words}"))
        if len(payments) != many:
            raise NeedsPerson(f"the bank paid {len(payments)} times, and {many} is right", f"look into {self.folder}")

    def title(self, words: str) -> None:
        self._console.print()
        self._console.print(Text(_folded(words), "bold"))

    def say(self, words: str, style: str = "") -> None:
        self._console.print(Text(_folded(words), style))

    def what_next(self, lines: Sequence[str]) -> None:
        """Lines for a person to type in the demo's folder, as long as it is there."""
        if not self._keep:
            return
        self.title("Try next")
        for words in (f"cd {self.folder}", *_path_lines(), *_unset_lines(), *lines):
            self._console.print(Text(f"  {words}"))


def _folded(words: str) -> str:
    return "\n".join(folded(line, sys.stdout) for line in words.splitlines())


def _path_lines() -> Iterator[str]:
    """The line that puts `python` and `wakeful` of this installation on the path, where it is needed."""
    here = Path(sys.executable).parent
    found = shutil.which("wakeful")
    if (found is None or Path(found).parent != here) and (here / "activate").exists():
        yield f". {shlex.quote(str(here / 'activate'))}"


def _unset_lines() -> Iterator[str]:
    """The line that takes away what would lead the next commands elsewhere."""
    if named := sorted(name for name in os.environ if name.startswith(OWN) and name != OWN_HOME):
        yield f"unset {' '.join(named)}"


@contextmanager
def staged(*, keep: bool) -> Iterator[Stage]:
    """A stage in a folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="wakeful-demo-"))
    try:
        yield Stage(folder, keep=keep)
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
