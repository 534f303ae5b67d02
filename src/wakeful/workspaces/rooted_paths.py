"""Opening a path beneath a directory handle, so that no link leads out, whenever it is put there.

Two ways. Where the kernel has `openat2` it resolves the whole path itself and refuses to leave the handle; that is one
system call, and nothing can be swapped in the middle of it. Elsewhere, and wherever the true place of a name has to be
known (every write), the path is walked: each part is opened from the handle of the one before it without following
links, a link is read and its parts are walked in turn, and `..` goes back to a handle that is held already. Links that
stay inside are followed. An absolute link leads out by definition, also when it would come back in.

Everything here raises OSError; EXDEV means that the path leads out, EMLINK that it leads through a link and none
was to be followed, ENAMETOOLONG that it has more levels than anybody works in.
"""

import ctypes
import errno
import functools
import os
import stat
import sys
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from io import BufferedReader
from types import TracebackType
from typing import Any

MAX_LINKS = 40
MAX_LEVELS = 200
"""A path with more folders is refused (ENAMETOOLONG): while one is walked, a handle of each is open."""
READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
"""Without blocking: somebody may have put a pipe where a file was."""
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW

_TRIES = 20
"""How often an open is tried again that lost a race against a rename."""
_OPENAT2 = 437
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_BENEATH = 0x08


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


@dataclass(slots=True)
class RootedPlace:
    """Where a path really leads: an open folder, and a name in it that is no link that should have been followed."""

    folder: int
    name: str
    parts: tuple[str, ...]
    """The way from the root, without links and without `..`."""
    found: os.stat_result | None
    """What is there, itself and not what it links to; None when there is nothing."""

    def __enter__(self) -> "RootedPlace":
        return self

    def __exit__(self, kind: type[BaseException] | None, raised: object, trace: TracebackType | None) -> None:
        os.close(self.folder)


def open_plain(path: str | os.PathLike[str]) -> BufferedReader:
    """A file wherever its path leads, for reading. What is no plain file raises OSError: nobody waits at a pipe."""
    handle = os.open(path, READ)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is not a plain file")
    return os.fdopen(handle, "rb")


def kernel_resolves() -> bool:
    """Does this machine have `openat2`, and may we call it?"""
    if not sys.platform.startswith("linux"):
        return False
    handle = os.open("/", FOLDER)
    try:
        os.close(_openat2(handle, b".", FOLDER))
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def split(path: str) -> list[str]:
    """The parts of a relative path; empty ones and `.` say nothing."""
    return [part for part in path.split("/") if part not in ("", ".")]


def open_beneath(root: int, parts: Iterable[str], flags: int = READ, *, kernel: bool, links: bool = True) -> int:
    """A handle of what the path names, links followed as long as they stay inside; without `links`, none."""
    listed = list(parts)
    _refuse_depth(len(listed))
    for attempt in range(_TRIES):
        try:
            if kernel and links:
                return _openat2(root, os.fsencode("/".join(listed) or "."), flags)
            with walk(root, listed, links=links) as place:
                return os.open(place.name, flags | os.O_NOFOLLOW, dir_fd=place.folder)
        except OSError as error:
            # EAGAIN: the kernel saw a rename and cannot vouch for `..`. The others: what was a link when we looked is
            # none now, or the other way round.
            walked = not (kernel and links)
            again = error.errno == errno.EAGAIN or (walked and error.errno in (errno.ELOOP, errno.EINVAL))
            if not again or attempt == _TRIES - 1:
                raise
    raise AssertionError("unreachable")


def walk(
    root: int,
    parts: Iterable[str],
    *,
    follow: bool = True,
    links: bool = True,
    make: Callable[[tuple[str, ...]], None] | None = None,
) -> RootedPlace:
    """The place a path leads to. With `make`, missing folders on the way are made, once `make(the whole way)` agreed.

    `follow` is about the last part: a link there is followed, or is itself what was meant. Without `links`, none is
    followed anywhere.
    """
    todo = deque(parts)
    _refuse_depth(len(todo))
    held = [os.dup(root)]
    names: list[str] = []
    followed = 0
    try:
        while todo:
            part = todo.popleft()
            if part == "..":
                if not names:
                    raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
                os.close(held.pop())
                names.pop()
                continue
            if todo:
                inner = _enter(held[-1], part, (*names, part, *todo), make)
                if inner is not None:
                    held.append(inner)
                    names.append(part)
                    continue
            else:
                found = look(held[-1], part)
                if found is None or not follow or not stat.S_ISLNK(found.st_mode):
                    return RootedPlace(held.pop(), part, (*names, part), found)
            if not links:
                raise OSError(errno.EMLINK, os.strerror(errno.EMLINK))
            followed += 1
            if followed > MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            target = os.readlink(part, dir_fd=held[-1])
            if target.startswith("/"):
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
            todo.extendleft(reversed(split(target)))
            _refuse_depth(len(names) + len(todo))
        found = os.fstat(held[-1])
        return RootedPlace(held.pop(), ".", tuple(names), found)
    finally:
        for handle in held:
            os.close(handle)


def _refuse_depth(levels: int) -> None:
    if levels > MAX_LEVELS:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))


def look(folder: int, name: str) -> os.stat_result | None:
    """What a name is, itself; None when it is not there."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _enter(
    folder: int, name: str, parts: tuple[str, ...], make: Callable[[tuple[str, ...]], None] | None
) -> int | None:
    """A handle of the folder, or None when the name is a link."""
    for _ in range(_TRIES):
        try:
            return os.open(name, FOLDER, dir_fd=folder)
        except FileNotFoundError:
            if make is None or ".." in parts:
                raise
            make(parts)
            try:
                os.mkdir(name, dir_fd=folder)
            except FileExistsError:
                pass  # somebody else was faster
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                raise
            found = look(folder, name)
            if found is not None and stat.S_ISLNK(found.st_mode):
                return None
            if found is not None and not stat.S_ISDIR(found.st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from None
    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))


@functools.cache
def _syscall() -> Any:
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    return call


def _openat2(root: int, path: bytes, flags: int) -> int:
    call = _syscall()
    how = _How(flags=flags & ~os.O_NOFOLLOW, mode=0, resolve=_RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)
    while True:
        handle = int(
            call(
                ctypes.c_long(_OPENAT2),
                ctypes.c_int(root),
                ctypes.c_char_p(path),
                ctypes.byref(how),
                ctypes.c_size_t(ctypes.sizeof(how)),
            )
        )
        if handle >= 0:
            return handle
        number = ctypes.get_errno()
        if number != errno.EINTR:
            raise OSError(number, os.strerror(number))
