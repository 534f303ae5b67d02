"""A workspace: a root, and the only ways through which tools read and write beneath it.

A path is relative to the root, or absolute and inside it. Nothing is checked on names alone: every operation opens the
root, goes down from handle to handle (`beneath`), and works on the last handle; what is swapped meanwhile is either
seen or not used. The root itself must be the folder it was when the workspace was made.

A write is all or nothing: a file beside the target, flushed, then renamed over it. The two halves can be had apart
(`stage`, `place`), for whoever changes several files together. Protected names (`protection`) are checked on where a
path really leads.
"""

import contextlib
import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, TypeAlias

from wakeful.contracts.errors import InvalidConfig, ToolReported
from wakeful.workspaces.protection import PROTECTED, completes_repository, holding, protecting
from wakeful.workspaces.refusals import explained, outside, refused
from wakeful.workspaces.rooted_paths import FOLDER, READ, RootedPlace, kernel_resolves, look, open_beneath, split, walk

MAX_READ_BYTES = 16_000_000
"""The largest file that is read whole."""
Kind: TypeAlias = Literal["file", "directory", "link", "other"]


@dataclass(frozen=True, slots=True)
class Entry:
    """What is at a path."""

    path: str
    """Relative to the root."""
    kind: Kind
    size: int
    mode: int
    """Permission bits."""
    modified_ns: int = 0


@dataclass(frozen=True, slots=True)
class FileContent:
    """A file as it was read."""

    entry: Entry
    data: bytes


@dataclass(frozen=True, slots=True)
class Workspace:
    """Made by `Workspace.at`. Holds no handle: it can be kept, copied, and used by several threads."""

    root: Path
    named: Path
    """The root as it was given, which may lead through links."""
    identity: tuple[int, int]
    protected: tuple[str, ...] = PROTECTED
    unseen: tuple[Path, ...] = ()
    """Files that are not even read, under whatever name: the runtime's own database."""
    kernel: bool = field(default_factory=kernel_resolves)
    """Let the kernel resolve what is read; else it is walked."""
    links: bool = True
    """Follow links that stay inside; else none."""

    @classmethod
    def at(
        cls, root: str | os.PathLike[str], protected: tuple[str, ...] = PROTECTED, unseen: tuple[Path, ...] = ()
    ) -> "Workspace":
        """The workspace in an existing folder. Raises InvalidConfig."""
        named = Path(os.path.abspath(root))  # noqa: PTH100  (Path.absolute keeps `..`)
        try:
            real = named.resolve(strict=True)
            found = real.stat()
        except OSError as error:
            raise InvalidConfig(f"the workspace {named} cannot be used: {error}", "name an existing folder") from error
        if not stat.S_ISDIR(found.st_mode):
            raise InvalidConfig(f"the workspace {named} is not a folder", "name an existing folder")
        return cls(real, named, (found.st_dev, found.st_ino), protected, unseen)

    def unprotected(self) -> "Workspace":
        """The same root for the runtime's own files."""
        return replace(self, protected=())

    @classmethod
    def of_agent(cls, home: Path) -> "Workspace":
        """The home of an agent, for files that the runtime itself reads and writes there. Raises InvalidConfig.

        An agent whose workspace it is can put there what it likes: no link is followed, not even one that stays inside.
        """
        return replace(cls.at(home, protected=()), links=False)

    # --- reading ------------------------------------------------------------------------------------------------

    def read(self, path: str, limit: int = MAX_READ_BYTES) -> FileContent:
        """A whole file. Raises ToolReported: `not_found`, `is_a_directory`, `too_large`, `outside_workspace` ..."""
        parts = self._parts(path)
        with self._missing_named(path), explained(path, str(self.root)), self._opened() as root:
            handle = open_beneath(root, parts, READ, kernel=self.kernel, links=self.links)
            with open(handle, "rb") as file:  # noqa: PTH123  (a handle, not a path)
                found = os.fstat(handle)
                if stat.S_ISDIR(found.st_mode):
                    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
                if not stat.S_ISREG(found.st_mode):
                    raise _not_a_file(path)
                self._see(path, found)
                data = file.read(limit + 1)
        if len(data) > limit:
            raise refused(
                "too_large",
                f"{path!r} has {max(found.st_size, len(data)):,} bytes; at most {limit:,} are read",
                "Read a part of it with a command such as sed -n '1,200p', or search it.",
                path=path,
                size=found.st_size,
                limit=limit,
            )
        return FileContent(_entry(parts, found), data)

    def stat(self, path: str) -> Entry | None:
        """What is at a path, links followed; None when there is nothing."""
        with explained(path, str(self.root)), self._opened() as root:
            try:
                with walk(root, self._parts(path), links=self.links) as place:
                    return None if place.found is None else _entry(place.parts, place.found)
            except FileNotFoundError:
                return None

    def list(self, path: str = ".") -> list[Entry]:
        """What is in a folder, by name; links are shown as links."""
        with (
            explained(path, str(self.root)),
            self._opened() as root,
            walk(root, self._parts(path), links=self.links) as place,
        ):
            if place.found is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            folder = os.open(place.name, FOLDER, dir_fd=place.folder)
            base = place.parts
            try:
                named = [(name, look(folder, name)) for name in sorted(os.listdir(folder))]  # noqa: PTH208
            finally:
                os.close(folder)
        return [_entry((*base, name), found) for name, found in named if found is not None]

    # --- writing ------------------------------------------------------------------------------------------------

    def write(self, path: str, data: bytes, mode: int | None = None, tag: str | None = None) -> Entry:
        """Replace a file, or make it and the folders it is in. Permission bits stay unless `mode` says others.

        With a `tag` of its own, a write that was killed leaves nothing once it is made again."""
        tag = tag if tag is not None else secrets.token_hex(8)
        try:
            self.stage(path, data, tag, mode)
            self.place(path, tag)
        except BaseException:
            with contextlib.suppress(ToolReported):
                self.unstage(path, tag)
            raise
        found = self.stat(path)
        return found if found is not None else Entry(path, "file", len(data), mode or 0)

    def locate(self, path: str) -> str:
        """Where a write to the path would go, without links. Raises ToolReported when it may not go there."""
        with explained(path, str(self.root)), self._opened() as root:
            try:
                with self._target(root, path) as place:
                    return "/".join(place.parts)
            except FileNotFoundError:  # a folder on the way is not there yet: its name is judged as it stands
                parts = self._parts(path)
                if ".." in parts:
                    raise
                self._permit(path, parts)
                return "/".join(parts)

    def stage(self, path: str, data: bytes, tag: str, mode: int | None = None) -> None:
        """Put the bytes beside their target, flushed. Nobody sees a change yet."""
        with explained(path, str(self.root)), self._opened() as root, self._target(root, path, make=True) as place:
            bits = mode if mode is not None else stat.S_IMODE(place.found.st_mode) & 0o777 if place.found else None
            beside = _beside(place.name, tag)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(beside, dir_fd=place.folder)  # left by a call that was killed
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            handle = os.open(beside, flags, 0o666, dir_fd=place.folder)
            try:
                with open(handle, "wb") as file:  # noqa: PTH123
                    file.write(data)
                    file.flush()
                    if bits is not None:
                        os.fchmod(handle, bits)
                    os.fsync(handle)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(beside, dir_fd=place.folder)
                raise

    def place(self, path: str, tag: str) -> None:
        """Rename what was staged over its target: the moment at which the write happens."""
        with explained(path, str(self.root)), self._opened() as root, self._target(root, path) as place:
            os.rename(_beside(place.name, tag), place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
            os.fsync(place.folder)

    def staged(self, path: str, tag: str) -> bool:
        """Are there bytes beside the target, waiting?"""
        try:
            with self._opened() as root, self._target(root, path) as place:
                return look(place.folder, _beside(place.name, tag)) is not None
        except (OSError, ToolReported):
            return False

    def unstage(self, path: str, tag: str) -> None:
        """Take away what was staged, if it is there."""
        missing = contextlib.suppress(FileNotFoundError)
        with explained(path, str(self.root)), missing, self._opened() as root, self._target(root, path) as place:
            os.unlink(_beside(place.name, tag), dir_fd=place.folder)

    def delete(self, path: str) -> None:
        """Take away a file, a link itself, or an empty folder."""
        with (
            explained(path, str(self.root)),
            self._opened() as root,
            self._target(root, path, follow=False, folders=True) as place,
        ):
            if place.found is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            if stat.S_ISDIR(place.found.st_mode):
                os.rmdir(place.name, dir_fd=place.folder)
            else:
                os.unlink(place.name, dir_fd=place.folder)
            os.fsync(place.folder)

    def rename(self, path: str, new_path: str) -> None:
        """Move a file, a link itself or a folder to a name that is free."""
        with (
            explained(path, str(self.root)),
            self._opened() as root,
            self._target(root, path, follow=False, folders=True) as old,
        ):
            if old.found is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            with (
                explained(new_path, str(self.root)),
                self._target(root, new_path, follow=False, folders=True, make=True) as new,
            ):
                if new.found is not None:
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
                os.rename(old.name, new.name, src_dir_fd=old.folder, dst_dir_fd=new.folder)
                os.fsync(new.folder)
                os.fsync(old.folder)

    # --- the way down -------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        try:
            handle = os.open(self.root, FOLDER)
        except OSError as error:
            raise self._changed(str(error)) from error
        try:
            found = os.fstat(handle)
            if (found.st_dev, found.st_ino) != self.identity:
                raise self._changed("it is another folder than it was")
            yield handle
        finally:
            os.close(handle)

    def _changed(self, why: str) -> ToolReported:
        return refused(
            "no_workspace",
            f"the workspace {self.root} cannot be used: {why}",
            "Files cannot be read or written until somebody restores the folder and starts the run again.",
        )

    def _parts(self, path: str) -> tuple[str, ...]:
        """The path as parts below the root. Only names are looked at here; where they lead is seen on the way."""
        try:
            os.fsencode(path)
        except UnicodeEncodeError:
            path_is_text = False
        else:
            path_is_text = "\x00" not in path and path != ""
        if not path_is_text:
            raise refused("invalid_path", f"{path!r} cannot be a path", "Give a relative path such as 'src/main.py'.")
        if not path.startswith("/"):
            return tuple(split(path))
        for root in (self.root, self.named):
            if path == str(root) or path.startswith(f"{root}/"):
                return tuple(split(path[len(str(root)) :]))
        raise outside(path, str(self.root))

    def _target(
        self, root: int, path: str, *, follow: bool = True, folders: bool = False, make: bool = False
    ) -> RootedPlace:
        """Where a write would go, if it may go there."""

        def agree(parts: tuple[str, ...]) -> None:
            self._permit(path, parts)

        place = walk(root, self._parts(path), follow=follow, links=self.links, make=agree if make else None)
        try:
            agree(place.parts)
            if place.name == ".":
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            found = place.found
            if folders:
                held = holding(place.parts, self.protected)
                if held is not None:
                    raise _protected(path, held)
            elif found is not None:
                if stat.S_ISDIR(found.st_mode):
                    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
                if not stat.S_ISREG(found.st_mode):
                    raise _not_a_file(path)
                if not found.st_mode & 0o222:
                    raise refused(
                        "permission_denied",
                        f"{path!r} is marked read-only",
                        "Make it writable first (chmod u+w), if it is meant to be changed.",
                        path=path,
                    )
        except BaseException:
            os.close(place.folder)
            raise
        return place

    def _permit(self, path: str, parts: tuple[str, ...]) -> None:
        pattern = protecting(parts, self.protected)
        if pattern is not None:
            raise _protected(path, pattern)
        if self.protected and completes_repository(self.root, parts):
            raise _protected(path, "the inside of a repository")

    def _see(self, path: str, found: os.stat_result) -> None:
        """By what the file is, not by what it is called: a link to it is the same file."""
        for own in self.unseen:
            with contextlib.suppress(OSError):
                if os.path.samestat(own.stat(), found):
                    raise refused(
                        "protected_path",
                        f"{path!r} belongs to the runtime: tools neither read nor change it",
                        "Do without it; ask the person you work for if you need to know what is in it.",
                        path=path,
                    )

    @contextlib.contextmanager
    def _missing_named(self, path: str) -> Iterator[None]:
        """To a file that is not there, say which ones are."""
        try:
            yield
        except ToolReported as report:
            if report.error.kind != "not_found":
                raise
            folder, _, name = path.rstrip("/").rpartition("/")
            try:
                names = [Path(entry.path).name for entry in self.list(folder or ".")]
            except ToolReported:
                raise report from None
            near = get_close_matches(name, names, n=3, cutoff=0.6)
            if not near:
                raise
            words = ", ".join(repr(f"{folder}/{each}" if folder else each) for each in near)
            error = report.error.model_copy(update={"recovery_hint": f"Did you mean {words}?"})
            raise ToolReported(error) from None


def workspace_id(anchor: str) -> str:
    """What a workspace is called: the same for the same folder, however it was named."""
    return "ws_" + hashlib.sha256(str(Path(anchor).resolve()).encode()).hexdigest()[:16]


def _protected(path: str, pattern: str) -> ToolReported:
    return refused(
        "protected_path",
        f"{path!r} is protected ({pattern.lstrip('/')}): tools may read it and not change it",
        "Do without changing it, or ask the person you work for to do it.",
        path=path,
        protected=pattern.lstrip("/"),
    )


def _not_a_file(path: str) -> ToolReported:
    return refused(
        "not_a_file",
        f"{path!r} is neither a file nor a directory",
        "Pipes, sockets and devices are not used.",
        path=path,
    )


def _entry(parts: tuple[str, ...], found: os.stat_result) -> Entry:
    kinds: dict[int, Kind] = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}
    kind = kinds.get(stat.S_IFMT(found.st_mode), "other")
    return Entry("/".join(parts) or ".", kind, found.st_size, stat.S_IMODE(found.st_mode), found.st_mtime_ns)


def _beside(name: str, tag: str) -> str:
    """The name of the staged bytes: short whatever the target's is, and the same when the same call comes again."""
    return f".wakeful-{hashlib.sha256(f'{tag}/{name}'.encode(errors='surrogateescape')).hexdigest()[:16]}.tmp"
