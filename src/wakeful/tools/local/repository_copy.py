"""A protective copy of one git directory: made before a command, kept where commands do not reach, used to put back.

Objects and packs never change once they are written, so that each is copied once; of the rest the copy has what was
there before the newest command. Files are cloned where the file system can; up to a bound they are copied; beyond it
they are linked, which holds against deletion and not against being overwritten in place.
"""

import fcntl
import os
import re
import shutil
import stat
import time
from pathlib import Path
from typing import NamedTuple

from wakeful.sandbox.repositories import SETTLED_NS, walk_files

COPIED_BYTES = 2 * 1024**3
"""Of one repository; what is more is linked."""
_FICLONE = 0x40049409
_OBJECT = re.compile(
    r"objects/(?:[0-9a-f]{2}/[0-9a-f]{38,62}|pack/pack-[0-9a-f]{40,64}\.(?:pack|idx|rev|keep|promisor))"
)
_LEFT_OUT = ("modules", "lfs", "annex")
"""Submodules have copies of their own; the others hold files and no history."""


class CopyMark(NamedTuple):
    """What a file was when it was copied: whatever is done to it changes one of these."""

    inode: int
    size: int
    modified_ns: int
    changed_ns: int


class RepositoryCopy:
    """The copy of a git directory in a folder."""

    def __init__(self, git: str, folder: Path) -> None:
        self.git = git
        self._folder = folder
        self._marks: dict[str, CopyMark] = {}
        self._gone_through: dict[str, int] = {}
        self._copied = 0
        self._can_clone = True
        self.not_copied = 0
        """Files that could be neither copied nor linked."""

    def path(self, name: str) -> Path:
        return self._folder / name

    def read(self, name: str) -> bytes | None:
        try:
            return self.path(name).read_bytes()
        except OSError:
            return None

    def names(self) -> set[str]:
        return set(self._marks)

    def adopt(self) -> None:
        """Take what is in the folder for the copy, as another process left it."""
        for name, _ in walk_files(str(self._folder)):
            self._marks[name] = CopyMark(0, 0, 0, 0)

    def refresh(self) -> None:
        """Take in what is new. An object that looks other than it did is not taken: the copy is right."""
        present = set()
        for name, found in walk_files(self.git, {*_LEFT_OUT, *self._nothing_new()}):
            if _is_passing(name) or not (stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode)):
                continue
            present.add(name)
            mark = CopyMark(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
            known = self._marks.get(name)
            if known == mark or (known is not None and _OBJECT.fullmatch(name)):
                continue
            if self._take(name, found.st_size):
                self._marks[name] = mark
            else:
                self.not_copied += 1
        for name in self._marks.keys() - present:
            if not _OBJECT.fullmatch(name):
                del self._marks[name]
                self.path(name).unlink(missing_ok=True)

    def _nothing_new(self) -> list[str]:
        """Folders of objects to which nothing was added since they were last gone through."""
        same, now = [], time.time_ns()
        for name in os.listdir(f"{self.git}/objects") if os.path.isdir(f"{self.git}/objects") else ():
            folder = f"objects/{name}"
            changed = os.lstat(f"{self.git}/{folder}").st_ctime_ns
            if len(name) == 2 and self._gone_through.get(folder) == changed:
                same.append(folder)
            elif now - changed > SETTLED_NS:
                self._gone_through[folder] = changed
        return same

    def damaged_objects(self) -> list[str]:
        """Objects and packs that are gone, or are not what they were."""
        now = dict(walk_files(f"{self.git}/objects"))
        wrong = []
        for name, mark in self._marks.items():
            if not _OBJECT.fullmatch(name):
                continue
            found = now.get(name.removeprefix("objects/"))
            if found is None:
                wrong.append(name)
            elif CopyMark(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns) != mark:
                if stat.S_ISREG(found.st_mode) and self._is_same(name):
                    self._marks[name] = CopyMark(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
                else:
                    wrong.append(name)
        return wrong

    def put_back(self, names: "list[str] | set[str]") -> int:
        """Write these files again, each whole or not at all. How many there were."""
        for name in sorted(names):
            target = Path(self.git, name)
            clear_the_way(Path(self.git), target.parent)
            beside = target.with_name(f".wakeful-{os.getpid()}.tmp")
            beside.unlink(missing_ok=True)
            if self.path(name).is_symlink():
                beside.symlink_to(os.readlink(self.path(name)))
            else:
                shutil.copy2(self.path(name), beside)
            if target.is_dir() and not target.is_symlink():
                shutil.rmtree(target)
            beside.replace(target)
            found = os.lstat(target)
            self._marks[name] = CopyMark(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        return len(names)

    def _take(self, name: str, size: int) -> bool:
        source, target = Path(self.git, name), self.path(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        try:
            if source.is_symlink():
                target.symlink_to(os.readlink(source))
            elif self._can_clone and _clone(source, target):
                pass
            elif self._copied + size <= COPIED_BYTES:
                self._can_clone = False
                shutil.copy2(source, target)
                self._copied += size
            else:
                os.link(source, target)
        except FileNotFoundError:
            return True  # it went away meanwhile
        except OSError:
            return False
        return True

    def _is_same(self, name: str) -> bool:
        try:
            with Path(self.git, name).open("rb") as now, self.path(name).open("rb") as kept:
                while True:
                    one, other = now.read(1 << 20), kept.read(1 << 20)
                    if one != other:
                        return False
                    if not one:
                        return True
        except OSError:
            return False


def _is_passing(name: str) -> bool:
    """Files that git makes on its way to another one."""
    last = name.rpartition("/")[2]
    return last.endswith(".lock") or (name.startswith("objects/") and last.startswith(("tmp_", "incoming-")))


def clear_the_way(top: Path, folder: Path) -> None:
    """Make the folder, with nothing but folders on the way to it: a link could lead what is written elsewhere."""
    parts = folder.relative_to(top).parts
    for step in (top.joinpath(*parts[:count]) for count in range(len(parts) + 1)):
        if step.is_symlink() or (step.exists() and not step.is_dir()):
            step.unlink()
        step.mkdir(exist_ok=True)


def _clone(source: Path, target: Path) -> bool:
    """A copy that shares its blocks with the original until one of them is written, where the file system has that."""
    try:
        with source.open("rb") as read, target.open("xb") as written:
            fcntl.ioctl(written.fileno(), _FICLONE, read.fileno())
        shutil.copystat(source, target)
    except OSError:
        target.unlink(missing_ok=True)
        return False
    return True
