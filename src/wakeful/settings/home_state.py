"""What a whole home is, where it is not simply in use: being restored, or retired by a final backup.

A small file says so, `home-state.json`. It is written before anything else is done and removed last, so that a process
that was killed in the middle leaves a home that says what happened to it, and not one that looks whole.
"""

import json
import os
import time
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from wakeful.contracts.errors import StoreProblem, StoreReadOnly

FILE = "home-state.json"
State: TypeAlias = Literal["restoring", "retired"]


class HomeState(NamedTuple):
    """What is done with a home, or was done."""

    state: State
    file: str
    """The backup that it is restored from, or that was taken last."""
    at: float


def state_path(home: Path) -> Path:
    return home / FILE


def read_state(home: Path) -> HomeState | None:
    """None: it is in use like any other. A file that cannot be read counts as a restore that was cut off."""
    try:
        data = json.loads(state_path(home).read_text("utf-8"))
        state: State = "retired" if data["state"] == "retired" else "restoring"
        return HomeState(state, str(data["file"]), float(data["at"]))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, TypeError, KeyError, OSError):
        return HomeState("restoring", "the backup", 0.0)


def write_state(home: Path, state: State, file: Path) -> None:
    """On disk when this returns."""
    path = state_path(home)
    fresh = path.with_name(f"{FILE}.new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "w", encoding="utf-8") as out:  # noqa: PTH123  (a handle, not a path)
        json.dump({"state": state, "file": str(file.absolute()), "at": time.time()}, out)
        out.flush()
        os.fsync(descriptor)
    fresh.replace(path)
    sync_folder(home)


def clear_state(home: Path) -> None:
    state_path(home).unlink(missing_ok=True)
    sync_folder(home)


def check_usable(home: Path) -> None:
    """Raises StoreReadOnly for a retired home, which can still be read, and StoreProblem for half a restore."""
    found = read_state(home)
    if found is None:
        return
    if found.state == "retired":
        where = f"its last backup is {found.file}"
        if not Path(found.file).exists():
            where = f"its last backup was to be {found.file}, which is not there now"
        raise StoreReadOnly(
            f"the home {home} was retired by a final backup: {where}",
            f"Go on where it was restored. To use this one again although another may be in use: rm {state_path(home)}",
        )
    raise StoreProblem(
        f"the home {home} is half of a restore that was cut off",
        f"Run it again: wakeful restore {found.file}",
    )


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
