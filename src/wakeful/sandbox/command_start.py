"""A prepared command is started: its process, where its output comes from and where its input goes.

Nothing here waits. Whoever starts a command reads it, holds it to its limits and ends it: the runtime itself
(`command_process`), or a supervisor, which has the standard library and nothing else.
"""

import fcntl
import os
import signal
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any, NamedTuple

_SIZE_OF_TERMINAL = (40, 120)


class SpawnFailed(Exception):
    """The command never began; the text says why."""


class PreparedLine(NamedTuple):
    """A prepared line. `tells` is the status pipe's end for the child, `hears` the end of the pipe it waits on."""

    line: Sequence[str]
    environment: Mapping[str, str]
    tty: bool
    accepts_input: bool
    tells: int
    hears: int
    hears_as_stdin: bool
    passed: tuple[int, ...]
    tasks: int
    memory_bytes: int
    growth_bytes: int
    write_roots: tuple[str, ...]
    """Folders that may grow by so much."""
    shared: str | None
    """A folder in memory, as the command sees it, that counts as memory."""
    private: str | None = None
    """A folder of the command alone. Whoever runs it removes it."""
    stand_ins: tuple[dict[str, Any], ...] = ()
    """What stands in for places that no command may make (`SandboxPlace.as_dict`): it has to stay while this one
    runs."""
    take_terminal: tuple[str, ...] = ()
    """A line before the line, for a command with a terminal: it makes the terminal its own."""


class StartedCommand(NamedTuple):
    """What there is after a start. Everything is closed by the stack that `spawn` was given."""

    process: "subprocess.Popen[bytes]"
    output: tuple[int, ...]
    """Standard output and error; with a terminal, one transcript."""
    input: int | None
    """Where its input goes; None: it has none, or it is said on the line on which the word is."""


def spawn(start: PreparedLine, holding: ExitStack, line: Sequence[str] | None = None) -> StartedCommand:
    """Start it. Raises SpawnFailed. `line` is what to run where that is not the prepared line itself."""
    line, passed = list(start.line if line is None else line), start.passed
    terminal = _terminal() if start.tty else None
    stdin = start.hears if start.hears_as_stdin else subprocess.PIPE if start.accepts_input else subprocess.DEVNULL
    output = subprocess.PIPE
    if terminal is not None:
        stdin = output = terminal[1]
        if start.take_terminal:
            line = [*start.take_terminal, str(start.hears), *line]
            passed = (*passed, start.hears)
    try:
        # Not asyncio's own: that one starts a thread for every process to wait for it.
        process = subprocess.Popen(
            line,
            stdin=stdin,
            stdout=output,
            stderr=output,
            env=dict(start.environment),
            cwd="/",
            pass_fds=passed,
            start_new_session=terminal is None,
            bufsize=0,
        )
    except (OSError, ValueError) as problem:
        for end in terminal or ():
            os.close(end)
        raise SpawnFailed(f"{line[0]}: {problem}") from problem
    if terminal is not None:
        os.close(terminal[1])
        holding.callback(os.close, terminal[0])
        return StartedCommand(process, (terminal[0],), terminal[0])
    for pipe in (process.stdout, process.stderr, process.stdin):
        if pipe is not None:
            holding.callback(pipe.close)
    assert process.stdout is not None
    assert process.stderr is not None
    said = None if process.stdin is None else process.stdin.fileno()
    return StartedCommand(process, (process.stdout.fileno(), process.stderr.fileno()), said)


def kill_all(process: "subprocess.Popen[bytes]") -> None:
    """Kill a started line and what it has started so far. Between its first and its last step a sandbox is two
    processes, and the second one would wait for the first for ever."""
    with suppress(ProcessLookupError, PermissionError):
        if process.poll() is None and os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()  # does nothing for one that has been waited for


def _terminal() -> tuple[int, int]:
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *_SIZE_OF_TERMINAL, 0, 0))
    return ours, theirs
