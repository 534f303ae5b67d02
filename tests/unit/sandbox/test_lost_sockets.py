"""A sandbox that could not be made because a socket outside went away is made again, and nothing else is."""

import sys
from contextlib import ExitStack

import pytest

from wakeful.sandbox.capture import StreamCapture
from wakeful.sandbox.command_process import CommandEnd, CommandPipes, ShownOutput, Stopped, run
from wakeful.sandbox.command_start import PreparedLine
from wakeful.sandbox.confinement import lost_a_socket

SOCKET = "/var/tmp/home/wakeful.db.owners/own_1.bell"
LINE = ["bwrap", "--ro-bind", "/dev/null", SOCKET, "--", "sh"]


def ended(said: str, *, status: int | None = None, stopped: Stopped | None = None, out: str = "") -> CommandEnd:
    streams = [StreamCapture(lambda _: None), StreamCapture(lambda _: None)]
    streams[0].take(out.encode())
    streams[1].take(said.encode())
    return CommandEnd(status, stopped, streams[0], streams[1], 1.0)


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("create file at ", "Read-only file system"),
        ("mkdir parents for ", "Read-only file system"),
        (
            "bind mount /oldroot/dev/null on /newroot",
            "Unable to mount source on destination: No such file or directory",
        ),
        ("bind mount /oldroot/dev/null on /newroot", f'Unable to find "/newroot{SOCKET}" in mount table'),
        ("bind mount /oldroot/dev/null on /newroot", "No such file or directory"),
    ],
)
def test_a_cover_that_has_no_place_any_more_is_told_from_an_end_of_the_command(what: str, why: str) -> None:
    said = f"bwrap: Can't {what}{SOCKET}: {why}\n"
    assert lost_a_socket(ended(said), LINE)
    assert lost_a_socket(ended("", out=said.replace("\n", "\r\n")), LINE), "at a terminal"
    assert not lost_a_socket(ended(said, status=1), LINE), "the command said it"
    assert not lost_a_socket(ended(said, stopped="memory"), LINE)
    assert not lost_a_socket(ended(said, out="begun\n"), LINE)
    assert not lost_a_socket(ended(said.replace("own_1", "own_2")), LINE), "another place"
    assert not lost_a_socket(ended("bwrap: Can't find source path /x: No such file or directory\n"), LINE)


ENDS_AT_ONCE = """
import json, os, subprocess, sys
gone = subprocess.Popen(["true"])
gone.wait()
os.write(int(sys.argv[1]), json.dumps({"child-pid": gone.pid}).encode() + b"\\n")
sys.exit(sys.argv[2])
"""
"""As bubblewrap does whose first process could not be made: it has told its number before."""


async def test_a_first_process_that_is_gone_before_it_is_looked_at_is_an_end_without_a_status() -> None:
    said = f"bwrap: Can't create file at {SOCKET}: Read-only file system"
    with ExitStack() as holding:
        pipes = CommandPipes(holding)
        line = [sys.executable, "-c", ENDS_AT_ONCE, str(pipes.tells), said, SOCKET]
        start = PreparedLine(
            line=line,
            environment={},
            tty=False,
            accepts_input=False,
            tells=pipes.tells,
            hears=pipes.hears,
            hears_as_stdin=True,
            passed=(pipes.tells,),
            tasks=10,
            memory_bytes=2**30,
            growth_bytes=2**30,
            write_roots=(),
            shared=None,
        )
        found = await run(start, pipes, timeout=60, show=lambda stream, text: None, kept_bytes=1_000)
    assert found.exit_status is None and found.stopped is None
    assert lost_a_socket(found, line), "so that the sandbox is made again"


def test_nobody_reads_the_words_of_a_sandbox_that_is_made_again() -> None:
    seen: list[tuple[str, str]] = []
    failed = ShownOutput(lambda stream, text: seen.append((stream, text)))
    failed("stderr", f"bwrap: Can't create file at {SOCKET}: Read-only file system\n")
    assert seen == []
    own = ShownOutput(lambda stream, text: seen.append((stream, text)))
    own("stderr", "bwrap: of the command itself\n")
    own("stdout", "more\n")
    own.release()
    own("stderr", "bwrap: again\n")
    said = [("stderr", "bwrap: of the command itself\n"), ("stdout", "more\n"), ("stderr", "bwrap: again\n")]
    assert seen == said, "in its order"
    seen.clear()
    usual = ShownOutput(lambda stream, text: seen.append((stream, text)))
    usual("stdout", "at once\n")
    assert seen == [("stdout", "at once\n")]
