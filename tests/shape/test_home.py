"""Tests leave the home of the person who runs them alone: they and the processes that they start find another one."""

import os
import pwd
import subprocess
import sys
from pathlib import Path

from wakeful.settings.home import home


def test_a_test_and_its_processes_find_a_home_of_their_own() -> None:
    person = Path(pwd.getpwuid(os.getuid()).pw_dir).resolve()
    program = "from pathlib import Path; from wakeful.settings.home import home; print(Path.home(), home(), sep='\\n')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(Path.home()), str(home())]
    found = Path.home().resolve()
    assert found != person
    assert found in home().resolve().parents
