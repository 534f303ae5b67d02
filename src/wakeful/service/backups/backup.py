"""Taking a backup of a home that is in use.

Large contents first, as links beside the store, so that nothing that the copy of the database refers to is removed by
retention meanwhile; then the database as it is at one moment; then contents that came in between. Files of agents are
read last, each as it is when it is read.
"""

import fcntl
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

from wakeful._version import __version__
from wakeful.contracts.errors import InvalidRequest, StoreLocked
from wakeful.service.backups.archive import ArchiveWriter, new_archive
from wakeful.service.backups.contents import (
    FILES,
    contents_of,
    holds_literal_secrets,
    secrets_of,
)
from wakeful.settings.agent_homes import FOLDER as AGENTS
from wakeful.settings.home_state import check_usable, clear_state, write_state
from wakeful.views.home_backup import BackupReport
from wakeful.workspaces.rooted_paths import FOLDER, READ, look

STAGING = "backup-staging"
_PIECE = 1 << 20


class CopiedStore(NamedTuple):
    """What is in the copy of a store."""

    agents: Sequence[str]
    tasks: Sequence[str]
    """That run."""
    damaged: Sequence[str]
    """What is not what was written, in words."""


def file_name(now: float) -> str:
    """The name of a backup where none is given."""
    return time.strftime("wakeful-%Y-%m-%d-%H%M%S.tar.gz", time.localtime(now))


def back_up(
    home: Path,
    store: Path,
    file: Path,
    *,
    copy_database: Callable[[Path, Path], None],
    inspect: Callable[[Path], CopiedStore],
    final: bool,
) -> BackupReport:
    """Write the home to a file. `inspect` looks into a copy of the store.

    Raises InvalidRequest, StoreProblem; then there is no file, and the home is as it was.
    """
    contents = contents_of(home, store)
    check_usable(home)
    if file.absolute().is_relative_to(home.absolute() / AGENTS):
        raise InvalidRequest(f"{file} would be in the folder of an agent", "Name a file elsewhere.")
    secrets, left = secrets_of(home), [f"{name}: not part of a backup" for name in contents.left_out(home)]
    with _staging(home) as staging:
        header = {"wakeful": __version__, "created_at": time.time(), "home": str(home), "database": contents.database}
        with new_archive(file, header) as archive:
            if final:
                write_state(home, "retired", file)
            try:
                database = staging / "database"
                blobs = staging / "blobs"
                _link_blobs(store, blobs)
                copy_database(store, database)
                _link_blobs(store, blobs)
                found = inspect(database)
                with database.open("rb") as opened:
                    archive.add(contents.database, opened)
                _add_folder(archive, contents.blobs, blobs, left)
                _add_home(archive, home, left)
                archive.end({"secrets": secrets, "left_out": left, "agents": [*found.agents], "tasks": [*found.tasks]})
            except BaseException:
                if final:
                    clear_state(home)
                raise
    return BackupReport(
        file=str(file),
        home=str(home),
        size_bytes=file.stat().st_size,
        agents=tuple(found.agents),
        files=len(archive.files),
        secrets=tuple(secrets),
        left_out=tuple(left),
        running_tasks=tuple(found.tasks),
        damaged=tuple(found.damaged),
        retired=final,
    )


@contextmanager
def _staging(home: Path) -> Iterator[Path]:
    """A folder for what a backup is made of; one at a time. A backup that was killed leaves it, and the next empties
    it."""
    folder = home / STAGING
    folder.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreLocked(f"another backup of {home} is being taken", "Wait until it has ended.") from None
        for left in folder.iterdir():
            shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)


def _link_blobs(store: Path, target: Path) -> None:
    """Large contents never change: a second name keeps what retention may remove."""
    target.mkdir(mode=0o700, exist_ok=True)
    folder = store.with_name(f"{store.name}.blobs")
    for path in folder.glob("*/*/*"):
        if path.suffix == ".partial" or not path.is_file():
            continue
        place = target / path.relative_to(folder)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError, FileNotFoundError):
            try:
                os.link(path, place)
            except PermissionError:  # a file system without second names
                if not place.exists():
                    shutil.copyfile(path, place)


def _add_home(archive: ArchiveWriter, home: Path, left: list[str]) -> None:
    for name in FILES:
        path = home / name
        if name == "mcp.json" and holds_literal_secrets(path):
            continue  # it is listed among the secrets
        if path.is_symlink() or path.is_file():
            _add(archive, name, path, left)
    if (home / AGENTS).is_dir():
        _add_folder(archive, AGENTS, home / AGENTS, left)


def _add_folder(
    archive: ArchiveWriter, name: str, path: str | Path, left: list[str], inside: int | None = None
) -> None:
    """The files below a folder, by name. Links and what is no file are left out, and said to be.

    From handle to handle: an agent that works there meanwhile cannot have a link followed that it puts in the way.
    """
    folder = os.open(path, FOLDER if inside is not None else FOLDER & ~os.O_NOFOLLOW, dir_fd=inside)
    try:
        for each in sorted(os.listdir(folder)):  # noqa: PTH208  (a handle, not a path)
            within, found = f"{name}/{each}", look(folder, each)
            if found is None:
                continue  # gone since it was listed
            if stat.S_ISLNK(found.st_mode):
                left.append(f"{within}: a link")
            elif stat.S_ISDIR(found.st_mode):
                try:
                    _add_folder(archive, within, each, left, folder)
                except FileNotFoundError:
                    continue
                except NotADirectoryError:
                    left.append(f"{within}: not a plain file")
            else:
                _add(archive, within, each, left, folder)
    finally:
        os.close(folder)


def _add(archive: ArchiveWriter, name: str, path: str | Path, left: list[str], inside: int | None = None) -> None:
    try:
        descriptor = os.open(path, READ | os.O_NOFOLLOW, dir_fd=inside)
    except FileNotFoundError:
        return  # gone since it was listed
    except OSError as error:
        left.append(f"{name}: {error.strerror or error}")
        return
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            left.append(f"{name}: not a plain file")
            return
        is_program = bool(found.st_mode & stat.S_IXUSR)
        with _settled(file) as settled:
            archive.add(name, settled, is_program=is_program)


@contextmanager
def _settled(file: IO[bytes]) -> Iterator[IO[bytes]]:
    """A copy that nobody writes any more: its length is its length."""
    import tempfile

    with tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(file, copy, _PIECE)
        copy.seek(0)
        yield copy
