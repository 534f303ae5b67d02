"""Which commands a test runs: in its process, through the `wakeful` fixture, or as processes of their own.

A test that is the journey of a command says so, and in which of its ways, and fails where it does not run it so:

    @pytest.mark.journey("stop", "stop --json", "stop --store")
"""

import sys
from collections.abc import Iterable, Sequence
from inspect import signature
from typing import Any, NamedTuple

from wakeful.surfaces.cli.command_table import COMMANDS
from wakeful.surfaces.cli.main import app_of

WAYS = ("--json", "--store")
WRONG_REQUEST = 2


class Call(NamedTuple):
    """A command line, and what it ended with; None: a process of its own knows."""

    words: tuple[str, ...]
    code: int | None = None

    @property
    def command(self) -> str:
        two = " ".join(self.words[:2])
        return two if two in COMMANDS else " ".join(self.words[:1])

    @property
    def way(self) -> str:
        """`stop --json`: the command, and which of the options is given."""
        given = [way for way in WAYS if any(word == way or word.startswith(f"{way}=") for word in self.words)]
        return " ".join([self.command, *given])


CALLS: list[Call] = []
"""What the test that runs now has called."""


def ways_of(command: str) -> set[str]:
    """The command by itself, and with each of the options that it takes."""
    takes = signature(next(iter(app_of(command).registered_commands)).callback or len).parameters
    return {command, *(f"{command} {way}" for way in WAYS if way.removeprefix("--") in takes)}


def not_run(ways: Iterable[str], calls: Sequence[Call]) -> list[str]:
    """The ways that nobody went. One with both options counts for each; one that was refused as wrong does not."""
    gone: set[str] = set()
    for call in calls:
        options = call.way.removeprefix(call.command).split()
        if call.code != WRONG_REQUEST:
            gone |= {f"{call.command} {option}" for option in options} if options else {call.command}
    return sorted(set(ways) - gone)


def notice_processes() -> None:
    """From now on every process that is started with a command of ours is noted."""
    sys.addaudithook(_notice)


def _notice(event: str, details: tuple[Any, ...]) -> None:
    if event != "subprocess.Popen":
        return
    line = [str(word) for word in details[1]] if not isinstance(details[1], str | bytes) else [str(details[1])]
    if line[1:3] == ["-m", "wakeful.surfaces.cli"]:
        CALLS.append(Call(tuple(line[3:])))
    elif line and line[0].endswith("/wakeful"):
        CALLS.append(Call(tuple(line[1:])))
    for word in line[1:]:  # a line for a shell, as in a terminal
        _, found, rest = word.partition("/bin/wakeful ")
        if found:
            CALLS.append(Call(tuple(rest.partition(";")[0].split())))
