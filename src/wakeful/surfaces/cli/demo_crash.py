"""`wakeful demo crash`: a real process, killed for real at the worst moment, and the same line run again.

Everything that is shown was run: each line is printed before it is run, and can be typed again in the demo's folder.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from wakeful.bootstrap import without_keys
from wakeful.surfaces.cli.problems import NeedsPerson
from wakeful.surfaces.cli.shown import plain

KILLED = -signal.SIGKILL
PROGRAM, ONCE = "refund.py", "once.py"
BANK, STORE, ONCE_STORE, ONCE_BANK = "bank.txt", "runs.db", "once.db", "once.txt"
COMMAND_SECONDS = 60


def command(
    keep: Annotated[bool, typer.Option("--keep/--no-keep", help="Leave the folder there, to go on trying.")] = True,
) -> None:
    """Kill a run in the middle of a payment, run the same line again, and see that it paid once.

    Offline: a scripted model, a file for a bank, a temporary folder. No key, no question, a few seconds.
    """
    folder = Path(tempfile.mkdtemp(prefix="wakeful-demo-"))
    try:
        _Demo(folder).play()
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


class _Demo:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._console = Console(highlight=False, soft_wrap=True)

    def play(self) -> None:
        program = (files("wakeful.surfaces.cli.demos") / "refund.txt").read_text("utf-8")
        (self._folder / PROGRAM).write_text(program)
        other = program.replace('effect="keyed"', 'effect="irreversible"')
        (self._folder / ONCE).write_text(other.replace(STORE, ONCE_STORE).replace(BANK, ONCE_BANK))
        self._say(f"A support agent refunds an order. Its program is {self._folder / PROGRAM}.")
        self._killed_and_finished()
        self._from_the_log()
        self._nobody_can_know()
        self._what_next()

    def _killed_and_finished(self) -> None:
        self._title("1. Killed at the worst moment: the bank has paid, and nobody has written it down")
        self._run(["python", PROGRAM], crash=True)
        self._show(BANK)
        self._title("2. The same line again")
        self._run(["python", PROGRAM])
        self._show(BANK)
        self._say("It took the run up inside the refund and gave the bank the same key: one payment.", "green")

    def _from_the_log(self) -> None:
        self._title("3. Once more: the answer is in the log, no model and no tool is asked")
        before = self._events()
        self._run(["python", PROGRAM])
        after = self._events()
        if before != after:
            raise NeedsPerson(f"the log grew from {before} to {after} events", f"look into {self._folder}")
        self._say(f"The log had {before} events before and has {after} now.", "green")

    def _nobody_can_know(self) -> None:
        self._title('4. The same program with effect="irreversible": a bank that takes no keys')
        self._run(["python", ONCE], crash=True)
        self._run(["python", ONCE])
        self._show(ONCE_BANK)
        self._say("It was not paid again, and nobody pretends to know. A person looks, and says:", "green")
        self._run(["wakeful", "unknown", "--store", ONCE_STORE])
        self._run(["wakeful", "resolve", "call_2_1", "--happened", "refunded 4200", "--store", ONCE_STORE])

    def _what_next(self) -> None:
        self._title("What to try next")
        for words in (
            f"cd {self._folder}",
            f"wakeful events --store {STORE}",
            f"wakeful replay --store {STORE}          # decide everything again, from the log alone",
            f"wakeful doctor --store {STORE}",
            'wakeful run "hello"                     # a run of your own, with a script for a model',
        ):
            self._console.print(Text(f"  {words}"))

    # --- running and showing ----------------------------------------------------------------------------------------

    def _run(self, line: list[str], *, crash: bool = False) -> None:
        """Print a line and run it. It has to end as the demo says it does."""
        typed = " ".join(f'"{word}"' if " " in word else word for word in line)
        self._console.print(Text(f"$ {'CRASH=1 ' if crash else ''}{typed}", "bold cyan"))
        done = self._done(line, crash=crash)
        for words in plain(done.stdout).splitlines():
            self._console.print(Text(f"  {words}"))
        if crash and done.returncode == KILLED:
            self._console.print(Text("  killed (signal 9)", "red"))
        if done.returncode != (KILLED if crash else 0):
            said = done.stderr.strip() or f"exit code {done.returncode}"
            raise NeedsPerson(f"the demo did not go as it should: {typed}\n{said}", f"look into {self._folder}")

    def _done(self, line: list[str], *, crash: bool = False) -> subprocess.CompletedProcess[str]:
        program = {"python": [], "wakeful": ["-m", "wakeful.surfaces.cli"]}[line[0]]
        return subprocess.run(
            [sys.executable, *program, *line[1:]],
            cwd=self._folder,
            env={**without_keys(os.environ), "CRASH": "1" if crash else ""},
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )

    def _events(self) -> int:
        listed = self._done(["wakeful", "events", "--json", "--store", STORE])
        return int(json.loads(listed.stdout.splitlines()[0])["last_seq"])

    def _show(self, file: str) -> None:
        """The bank's book. What is claimed about it is checked."""
        self._console.print(Text(f"$ cat {file}", "bold cyan"))
        payments = (self._folder / file).read_text().splitlines()
        for words in payments:
            self._console.print(Text(f"  {words}"))
        if len(payments) != 1:
            raise NeedsPerson(f"the bank paid {len(payments)} times, and once is right", f"look into {self._folder}")

    def _title(self, words: str) -> None:
        self._console.print()
        self._console.print(Text(words, "bold"))

    def _say(self, words: str, style: str = "") -> None:
        self._console.print(Text(words, style))
