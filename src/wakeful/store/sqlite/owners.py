"""The living: each process that owns leases holds a lock on a file of its own for as long as it lives.

Whoever can lock the file knows its process is gone: the kernel lets go of the lock, however the process ended. The
owner locks exclusively, everybody else only shares, so that two who look at once do not take each other for the owner.
"""

import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from socket import gethostname

from wakeful.store.leases import Holder
from wakeful.store.sqlite.file_rights import FILE, make_folder


class LivingOwners:
    """Who uses a database, as their lock files tell."""

    def __init__(self, database: Path) -> None:
        self._folder = database.with_name(f"{database.name}.owners")
        self.me = ""

    def alive(self, owner: str) -> bool:
        try:
            descriptor = os.open(self._path(owner), os.O_RDONLY)
        except FileNotFoundError:
            return False
        except PermissionError:
            return True  # another user's: nobody can say that it is gone
        try:
            return not _shared(descriptor)
        finally:
            os.close(descriptor)

    @property
    def has_others(self) -> bool:
        """Does any other process, or another store of this one, use the database?"""
        return next(self._others(), None) is not None

    def anybody(self) -> str | None:
        """Somebody else who uses the database, in words."""
        found = next(self._others(), None)
        return None if found is None else str(self.holder(found) or "another process")

    def holder(self, owner: str) -> Holder | None:
        """Who that is, as far as its file tells."""
        path = self._path(owner)
        try:
            told = json.loads(path.read_text("utf-8"))
            since = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")
            return Holder(told["pid"], told["host"], since)
        except (OSError, ValueError, KeyError):
            return None

    def others(self) -> list[str]:
        """All others who use the database."""
        return list(self._others())

    def bell(self, owner: str) -> Path:
        """Where a process is told that something was committed."""
        return self._folder / f"{owner}.bell"

    def _others(self) -> Iterator[str]:
        names = (path.stem for path in self._folder.glob("own_*.lock"))
        return (name for name in names if name != self.me and self.alive(name))

    def _path(self, owner: str) -> Path:
        return self._folder / f"{owner}.lock"


class Owners(LivingOwners):
    """This process's lock file, and a look at the others'."""

    def __init__(self, database: Path) -> None:
        super().__init__(database)
        make_folder(self._folder)
        self._sweep()
        self.me = f"own_{secrets.token_hex(8)}"
        self._descriptor = self._lock()

    def close(self) -> None:
        """Leave. The file goes first: without it, the owner is as dead as without its lock."""
        self._path(self.me).unlink(missing_ok=True)
        os.close(self._descriptor)
        try:
            self._folder.rmdir()
        except OSError:
            pass  # others are there

    def drop(self) -> None:
        """In a forked child: the lock is the parent's, and has to end with it."""
        os.close(self._descriptor)

    def _lock(self) -> int:
        path = self._path(self.me)
        while True:
            make_folder(self._folder)  # the last one to leave may have removed it just now
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT, FILE)
                os.fchmod(descriptor, FILE)
            except FileNotFoundError:
                continue
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # A sweep between opening and locking may have taken the name away: a lock without a name protects nothing.
            if path.exists() and path.stat().st_ino == os.fstat(descriptor).st_ino:
                os.write(descriptor, json.dumps({"pid": os.getpid(), "host": gethostname()}).encode())
                return descriptor
            os.close(descriptor)

    def _sweep(self) -> None:
        for path in self._folder.glob("own_*.lock"):
            try:
                descriptor = os.open(path, os.O_RDONLY)
            except FileNotFoundError:
                continue
            try:
                if _shared(descriptor):
                    self.bell(path.stem).unlink(missing_ok=True)
                    path.unlink(missing_ok=True)
            finally:
                os.close(descriptor)


def _shared(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
