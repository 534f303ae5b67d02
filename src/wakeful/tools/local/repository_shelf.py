"""Where copies of repositories are kept: a folder a repository and process, with a lock that is free when it is gone.

While a command runs, a record beside the copy says so. Whoever finds one whose process was killed finishes its work.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wakeful.sandbox.places import is_below
from wakeful.tools.local import repository_history
from wakeful.tools.local.held_files import HELD_FILES, HeldContent, content_of, write_again
from wakeful.tools.local.repository_copy import RepositoryCopy, clear_the_way
from wakeful.tools.local.repository_history import Note

KEPT = "kept"
"""The folder with what nobody else has."""
_MOST_SET_ASIDE = 1_000
_MOST_BYTES_SET_ASIDE = 1_000_000
"""How many files, and how large: whoever plants hooks does not fill the disk."""
LONGEST_COMMAND_NS = 700 * 1_000_000_000
"""What was changed later than this after a command began was not changed by it."""


class Shelf:
    """Where the copy of a repository is: a folder with a lock that is free when its process is gone."""

    def __init__(self, home: Path, git: str) -> None:
        self._git = git
        around = home / hashlib.sha256(os.fsencode(git)).hexdigest()[:24]
        try:
            around.mkdir(parents=True, mode=0o700, exist_ok=True)
            self._place, self._is_at_home = Path(tempfile.mkdtemp(dir=around)), True
        except OSError:
            self._place, self._is_at_home = Path(tempfile.mkdtemp(prefix="wakeful-repository-")), False
        self._lock = os.open(self._place / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.files = self._place / "git"
        self.files.mkdir()
        self.copy = RepositoryCopy(git, self.files)

    def in_use(self, tips: dict[str, str]) -> None:
        """A command may begin."""
        record = {"git": self._git, "began_ns": time.time_ns(), "tips": tips}
        (self._place / "record.json").write_text(json.dumps(record))

    def at_rest(self) -> None:
        (self._place / "record.json").unlink(missing_ok=True)

    def drop(self) -> None:
        shutil.rmtree(self._place, ignore_errors=True)
        self._let_go()

    def keep(self, folder: Path) -> Path:
        """Give the copy a name under which somebody finds it."""
        folder.mkdir(parents=True, exist_ok=True)
        name = Path(self._git).parent.name if Path(self._git).name == ".git" else Path(self._git).name
        kept = folder / f"{name}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.urandom(3).hex()}.git"
        self.files.rename(kept)
        self.drop()
        return kept

    def _let_go(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._lock)
        if self._is_at_home:
            with contextlib.suppress(OSError):
                self._place.parent.rmdir()


def set_aside(home: Path, path: str, content: HeldContent | None) -> str:
    """Keep what stands where something else is put back, and say where: nobody can tell whether the command wrote it,
    or a person while the command ran. Blank where there is nothing to keep, or no room for it."""
    if content is None or content.is_link or not content.is_whole or not 0 < len(content.data) <= _MOST_BYTES_SET_ASIDE:
        return ""
    folder = home / KEPT / "replaced"
    file = folder / f"{hashlib.sha256(content.data).hexdigest()[:12]}-{Path(path).name}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not file.exists():
            if len(os.listdir(folder)) >= _MOST_SET_ASIDE:
                return ""
            with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as kept:
                kept.write(content.data)
    except OSError:
        return ""
    return f"; what stood there is kept in {file}"


def mend_after_kills(home: Path, roots: Sequence[str]) -> list[Note]:
    """What commands below these folders lost, whose runtime was killed before it could look, is put back."""
    notes: list[Note] = []
    for place in sorted(lock.parent for lock in home.glob("*/*/lock")):
        try:
            handle = os.open(place / "lock", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            told = _record(place)
            if told is None or is_below(told["git"], roots):
                notes += [] if told is None else _after_a_kill(place, told)
                shutil.rmtree(place, ignore_errors=True)
                with contextlib.suppress(OSError):
                    place.parent.rmdir()
        except BlockingIOError:
            continue  # its runtime lives
        finally:
            os.close(handle)
    return [note._replace(is_undone=False) for note in notes]  # by another command than the one that hears of it


def _record(place: Path) -> dict[str, Any] | None:
    """What was under way; None when nothing was."""
    try:
        told = json.loads((place / "record.json").read_text())
        return {"git": str(told["git"]), "began_ns": int(told["began_ns"]), "tips": dict(told["tips"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _after_a_kill(place: Path, told: dict[str, Any]) -> list[Note]:
    copy = RepositoryCopy(told["git"], place / "git")
    copy.adopt()
    around = os.path.dirname(copy.git)
    if not os.path.isdir(around) or os.path.realpath(around) != around:  # a link would lead what is written elsewhere
        return []
    notes = repository_history.mended(copy)
    for name in sorted(copy.names()):
        if name.startswith("hooks/") or name in HELD_FILES:
            path = Path(copy.git, name)
            with contextlib.suppress(OSError):
                changed = os.lstat(path).st_ctime_ns
                was, now = content_of(str(copy.path(name))), content_of(str(path))
                if was != now and told["began_ns"] <= changed <= told["began_ns"] + LONGEST_COMMAND_NS:
                    kept = set_aside(place.parent.parent, str(path), now)
                    clear_the_way(Path(copy.git), path.parent)
                    write_again(str(path), was)
                    text = f"{path} was changed while a command ran whose runtime was killed; it is as before{kept}"
                    notes.append(Note(text, str(path), False))
    return notes + repository_history.kept(copy, told["tips"])
