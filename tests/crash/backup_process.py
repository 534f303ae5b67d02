"""Takes a backup or restores one, and is killed at its Nth look at the disk below a folder."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

WATCHED = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "shutil.rmtree")


def main(home: Path, command: str, file: Path, folder: Path, point: int) -> None:
    os.environ["WAKEFUL_HOME"] = str(home)
    from wakeful.surfaces.cli import backup  # noqa: F401  (what is imported is not what is watched)
    from wakeful.surfaces.cli.main import main as command_line

    left = point

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if event in WATCHED and any(
            str(each).startswith(str(folder)) for each in arguments if isinstance(each, str | os.PathLike)
        ):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    command_line([command, str(file)])


def say(home: Path, *words: str) -> None:
    """The same without a kill: `wakeful` with these words."""
    os.environ["WAKEFUL_HOME"] = str(home)
    from wakeful.surfaces.cli.main import main as command_line

    command_line([*words])
