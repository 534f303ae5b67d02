"""A stopped process does not use up its turn's seconds."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from wakeful.system import SKIP_SECONDS, TICK_SECONDS

PROGRAM = Path(__file__).with_name("suspended.py")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("clock", "ended"), [("noticing", "completed natural"), ("unnoticing", "incomplete wall_clock")]
)
def test_the_time_for_which_a_process_was_stopped_is_not_counted(clock: str, ended: str) -> None:
    """The second clock is the control: without the check, the turn is out of time when it wakes up."""
    command = [sys.executable, str(PROGRAM), clock]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "stopped\n"
            os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
            time.sleep(SKIP_SECONDS + 2 * TICK_SECONDS)
            os.kill(child.pid, signal.SIGCONT)
            assert child.stdout.readline() == f"{ended}\n"
        finally:
            if child.poll() is None:
                child.kill()
