"""One process, and not another that got its number later."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from wakeful.processes.process_identity import ProcessIdentity


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.wait()
    assert process.stdin is not None
    process.stdin.close()


def test_a_process_is_alive_until_it_ends_also_while_nobody_has_waited_for_it(
    sleeper: "subprocess.Popen[bytes]",
) -> None:
    who = ProcessIdentity.of(sleeper.pid)
    assert who.is_alive()
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert not who.is_alive(), "what is left of it is no process that runs"


@pytest.mark.parametrize("other", ["started", "boot"])
def test_a_number_that_was_given_again_is_never_signalled(sleeper: "subprocess.Popen[bytes]", other: str) -> None:
    """The process that has the number now is not the one that is meant."""
    who = ProcessIdentity.of(sleeper.pid)
    earlier = who._replace(started=who.started - 1) if other == "started" else who._replace(boot="another")
    assert not earlier.is_alive()
    assert earlier.open() is None
    assert earlier.kill() is False
    assert sleeper.poll() is None
    assert ProcessIdentity(sleeper.pid, 0, "").kill() is False, "of which nobody can tell"
    assert sleeper.poll() is None
    assert who.kill() is True
    assert sleeper.wait() == -signal.SIGKILL


def test_by_its_number_alone_the_other_process_would_have_been_ended(sleeper: "subprocess.Popen[bytes]") -> None:
    who = ProcessIdentity.of(sleeper.pid)
    earlier = who._replace(started=who.started - 1)
    os.kill(earlier.pid, signal.SIGKILL)
    assert sleeper.wait() == -signal.SIGKILL
