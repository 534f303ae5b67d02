"""Takes a backup or restores one, and is killed at its Nth look at the disk below a folder: `COMMAND FILE FOLDER N`."""

import os
import signal
import sys
from typing import Any

WATCHED = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "shutil.rmtree")


def main() -> None:
    command, file, folder, point = sys.argv[1:5]
    from wakeful.surfaces.cli import backup  # noqa: F401  (what is imported is not what is watched)
    from wakeful.surfaces.cli.main import main as command_line

    left = int(point)

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if event in WATCHED and any(
            str(each).startswith(folder) for each in arguments if isinstance(each, str | os.PathLike)
        ):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    command_line([command, file])


if __name__ == "__main__":
    main()
