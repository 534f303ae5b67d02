"""A sandbox that could not be made because a socket outside went away is made again, and nothing else is."""

import pytest

from wakeful.sandbox.capture import StreamCapture
from wakeful.sandbox.command_process import CommandEnd, Stopped
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
