"""A stopped process does not use up its turn's seconds."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from wakeful.system import SKIP_SECONDS, TICK_SECONDS

PROGRAM = Path(__file__).with_name("suspended.py")


@pytest.mark.slow
def test_the_time_for_which_a_process_was_stopped_is_not_counted() -> None:
    """The second clock is the control: without the check, the turn is out of time when it wakes up."""
    ends = {"noticing": "completed natural", "unnoticing": "incomplete wall_clock"}
    with ExitStack() as stack:
        children = {clock: stack.enter_context(_suspended(clock)) for clock in ends}
        for child in children.values():
            assert _line(child) == "stopped\n"
            os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
        time.sleep(SKIP_SECONDS + 2 * TICK_SECONDS)
        for child in children.values():
            os.kill(child.pid, signal.SIGCONT)
        assert {clock: _line(child).rstrip("\n") for clock, child in children.items()} == ends


@contextmanager
def _suspended(clock: str) -> "Iterator[subprocess.Popen[str]]":
    with subprocess.Popen([sys.executable, str(PROGRAM), clock], stdout=subprocess.PIPE, text=True) as child:
        try:
            yield child
        finally:
            if child.poll() is None:
                child.kill()


def _line(child: "subprocess.Popen[str]") -> str:
    assert child.stdout is not None
    return child.stdout.readline()
