"""Which files of a folder were changed since a moment, and what stands in them.

A change is told by the time of the last change of the file's entry (`ctime`), which no program can set back. Links are
not followed. A git directory counts as one thing: messages, notes and names of branches can be read from it as well as
files. So does a folder of the runtime's own.
"""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

MOST_ENTRIES = 50_000
"""More than this are not looked at."""
MOST_NAMED = 300
MOST_CHARS = 20_000
"""More changed files, or longer names, than this: they are named by the first folder they are in. A fact has room for
these and their digests."""
SLACK_NS = 20_000_000
"""File systems write down the time of the last clock tick, which is a little earlier than now."""
SHORTEST = 16
"""Bytes; the digest of less says nothing: an empty file is like any other."""
LARGEST = 8 * 1024 * 1024
_AS_ONE = frozenset({".git", ".wakeful"})
_NOT_WRITTEN_BY_HAND = frozenset({"index", "index.lock", "commondir", "config", "config.worktree"})
"""Of a git directory: what every look at a repository, and the runtime's own care for it, writes anew."""


def changed_files(root: str, since_ns: int, most: int = MOST_ENTRIES) -> dict[str, str] | None:
    """Paths below the root to digests, as `files.tainted` has them; None: there are too many entries to tell."""
    if _is_git_directory(root):  # of a work tree that is attached to it
        return None if _holds_a_change(root, since_ns, most) else {}
    found: list[str] = []
    whole: dict[str, str] = {}
    seen = 0
    for entry in _walk(root):
        seen += 1
        if seen > most:
            return None
        try:
            if entry.name in _AS_ONE:
                if entry.is_dir(follow_symlinks=False) and _holds_a_change(entry.path, since_ns, most):
                    whole[f"{_text(os.path.relpath(entry.path, root))}/"] = ""
                continue
            changed = not entry.is_dir(follow_symlinks=False) and _changed_at(entry) >= since_ns - SLACK_NS
        except OSError:
            continue  # gone meanwhile
        if changed:
            found.append(os.path.relpath(entry.path, root))
    if len(found) > MOST_NAMED or sum(map(len, found)) > MOST_CHARS:
        paths = [*map(_text, found), *whole]
        tops = {f"{top}/" if below else top for top, below, _ in (path.partition("/") for path in paths)}
        few = len(tops) <= MOST_NAMED and sum(map(len, tops)) <= MOST_CHARS
        return dict.fromkeys(sorted(tops), "") if few else None
    return {_text(path): digest_of(f"{root}/{path}") for path in sorted(found)} | whole


def changed_at(path: str) -> int:
    """When the file was changed last, in Unix nanoseconds; 0: it is not there."""
    try:
        return os.lstat(path).st_ctime_ns
    except OSError:
        return 0


def digest_of(path: str) -> str:
    """The digest of a file; blank where it says nothing, or cannot be had."""
    try:
        size = os.lstat(path).st_size
        if not SHORTEST <= size <= LARGEST:
            return ""
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _text(path: str) -> str:
    """A name that is no text, as one that can be written down: its digest is what finds it."""
    return os.fsencode(path).decode("utf-8", "replace")


def _changed_at(entry: "os.DirEntry[str]") -> int:
    return entry.stat(follow_symlinks=False).st_ctime_ns


def _is_git_directory(folder: str) -> bool:
    return Path(folder, "HEAD").is_file() and Path(folder, "objects").is_dir()


def _holds_a_change(folder: str, since_ns: int, most: int) -> bool:
    """Was anything below it changed since? Where there is too much to tell, yes."""
    seen = 0
    waiting = [folder]
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except OSError:
            continue
        for entry in entries:
            seen += 1
            try:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif entry.name not in _NOT_WRITTEN_BY_HAND and _changed_at(entry) >= since_ns - SLACK_NS:
                    return True
            except OSError:
                continue  # gone meanwhile
        if seen > most:
            return True
    return False


def _walk(root: str) -> Iterator["os.DirEntry[str]"]:
    folders = [root]
    while folders:
        try:
            entries = list(os.scandir(folders.pop()))
        except OSError:
            continue
        for entry in entries:
            yield entry
            try:
                if entry.name not in _AS_ONE and entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
            except OSError:
                continue
