"""Files that git obeys or runs, held as they are: hooks, settings, and what leads git to another place for these."""

import contextlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from wakeful.sandbox.places import is_below
from wakeful.sandbox.repositories import Repository, git_directory, regular_bytes
from wakeful.tools.local.git_settings import harmless

HELD_FILES = ("config", "config.worktree", "commondir")
_OF_WORK_TREES = ("commondir", "gitdir", "config.worktree")
_MOST_BYTES = 256 * 1024 * 1024
"""Of all files that are held for one repository."""


class HeldContent(NamedTuple):
    """A file as it was."""

    data: bytes
    mode: int
    is_link: bool
    is_whole: bool = True
    """False: there is too much to read, and the data is left out."""


def held_areas(repository: Repository, run: Iterable[str]) -> tuple[str, ...]:
    """Files and folders that are held for a repository; `run` are those outside its git directory."""
    git = repository.git
    areas = [f"{git}/{name}" for name in (*HELD_FILES, "hooks")]
    with contextlib.suppress(OSError):
        trees = [tree for tree in os.listdir(f"{git}/worktrees") if not os.path.islink(f"{git}/worktrees/{tree}")]
        areas += [f"{git}/worktrees/{tree}/{name}" for tree in trees for name in _OF_WORK_TREES]
    return (*areas, *([repository.link] if repository.link else []), *run)


def contents_of(areas: Iterable[str]) -> dict[str, HeldContent]:
    """Every file in them, by its path."""
    found: dict[str, HeldContent] = {}
    left = _MOST_BYTES
    for area in areas:
        waiting = [area]
        while waiting:
            path = waiting.pop()
            if os.path.isdir(path) and not os.path.islink(path):
                with contextlib.suppress(OSError):
                    waiting += [f"{path}/{name}" for name in os.listdir(path)]
            elif (content := content_of(path, left)) is not None:
                found[path] = content
                left -= len(content.data)
    return found


def content_of(path: str, most: int = _MOST_BYTES) -> HeldContent | None:
    """What is there; None also for what stands in for nothing: an empty file of settings, a `commondir` to itself."""
    try:
        if os.path.islink(path):
            return HeldContent(os.fsencode(os.readlink(path)), 0, True)
        data = regular_bytes(path, most + 1)
        mode = os.stat(path).st_mode & 0o111
    except OSError:
        return None
    if len(data) > most:
        return HeldContent(b"", mode, False, is_whole=False)
    name = os.path.basename(path)
    if (name in ("config", "config.worktree") and not data.strip()) or (name == "commondir" and data.strip() == b"."):
        return None
    return HeldContent(data, mode, False)


def first_link(path: str, roots: Iterable[str]) -> str | None:
    """The first part of the way to a path that is a symbolic link, below the folder that a command may write."""
    root = max((root for root in roots if is_below(path, [root])), key=len, default=None)
    if root is None:
        return None
    at = root
    for part in Path(path).parent.relative_to(root).parts:
        at = f"{at}/{part}"
        if os.path.islink(at):
            return at
    return None


def write_again(path: str, content: HeldContent | None) -> None:
    """Make it so. What is in the way goes, a folder too. There must be no link on the way (`first_link`): what is
    written would be written elsewhere."""
    place = Path(path)
    if content is None:
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    beside = place.with_name(f".wakeful-{os.getpid()}.tmp")
    beside.unlink(missing_ok=True)
    if content.is_link:
        beside.symlink_to(os.fsdecode(content.data))
    else:
        beside.write_bytes(content.data)
        beside.chmod(0o644 | content.mode)
    beside.replace(place)


def text_of(content: HeldContent) -> str:
    """Its bytes as text; none is lost."""
    return content.data.decode(errors="surrogateescape")


def is_plain_work_tree(git: str, path: str, content: HeldContent) -> bool:
    """As `git worktree add` writes it: it leads back to this git directory, and to a `.git` file that leads here."""
    if content.is_link:
        return False
    name = os.path.basename(path)
    if name == "commondir":
        return os.path.realpath(os.path.join(os.path.dirname(path), text_of(content).strip())) == os.path.realpath(git)
    if name == "gitdir":
        target = git_directory(os.path.join(os.path.dirname(path), text_of(content).strip()))
        return target is None or target == os.path.realpath(os.path.dirname(path))
    return not harmless(text_of(content)).left_out
