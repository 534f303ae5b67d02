"""Repositories below the folders that a command may write: where they are, and what git runs or reads because of them.

Found by their shape, as git finds them: a folder or a file named `.git`, and a folder that looks like the inside of
one. Nothing here runs git, and nothing is changed. Folders are looked at again only when they have changed.
"""

import errno
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from wakeful.sandbox.places import is_below

MOST_FOLDERS = 100_000
"""More are not looked through for repositories; nearer ones come first."""
SETTLED_NS = 100_000_000
"""A folder that changed so short a time ago may change again without another time of change."""
_SECTION = re.compile(r'\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]\s*(.*)')
_ENTRY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*?))?\s*$")
_INCLUDES = re.compile(r"include\.path|includeif\..*path")
_DEEPEST_INCLUDE = 10
"""As git has it."""
_PROGRAMS = re.compile(
    r"core\.(?:fsmonitor|sshcommand|editor|pager|askpass|gitproxy)|sequence\.editor|diff\.external|credential\..*helper"
    r"|filter\..+\.(?:clean|smudge|process)|diff\..+\.(?:command|textconv)|merge\..+\.driver|gpg\..*program|alias\..+"
)


@dataclass(frozen=True, slots=True)
class Repository:
    """A git directory, the folder whose files it keeps, and the `.git` file that leads there, if it is one."""

    git: str
    folder: str
    link: str | None = None


@dataclass(slots=True)
class FoundRepositories:
    """What there is below some folders."""

    repositories: list[Repository] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    """What is named `.git` and is a symbolic link."""
    is_whole: bool = True
    """False where there were too many folders to look through."""


@dataclass(frozen=True, slots=True)
class _Folder:
    inode: int
    changed_ns: int
    looked_ns: int
    inner: tuple[str, ...]
    kind: str | None
    """How git would see it: a folder, file or link named `.git` in it, or itself the inside of one (`bare`)."""

    def holds(self, now: os.stat_result) -> bool:
        is_same = (self.inode, self.changed_ns) == (now.st_ino, now.st_ctime_ns)
        return is_same and self.looked_ns - self.changed_ns > SETTLED_NS


class Census:
    """Looks for repositories, and remembers folders that have not changed since."""

    def __init__(self) -> None:
        self._known: dict[str, _Folder] = {}

    def find(self, roots: Iterable[str]) -> FoundRepositories:
        found, fresh = FoundRepositories(), dict[str, _Folder]()
        waiting = list(roots)
        for path in waiting:  # it grows while it is gone through: what is nearer comes first
            if len(fresh) >= MOST_FOLDERS:
                found.is_whole = False
                break
            folder = self._look(path)
            if folder is None:
                continue
            fresh[path] = folder
            _add(found, path, folder.kind)
            if folder.kind != "bare":
                waiting += [f"{path}/{name}" for name in folder.inner]
        self._known = fresh
        return found

    def _look(self, path: str) -> _Folder | None:
        try:
            now = os.lstat(path)
            known = self._known.get(path)
            if known is not None and known.holds(now):
                return known
            looked = time.time_ns()
            with os.scandir(path) as entries:
                seen = {entry.name: _kind(entry) for entry in entries}
        except OSError:
            return None
        inner = tuple(name for name, kind in seen.items() if kind == "folder" and name.lower() != ".git")
        return _Folder(now.st_ino, now.st_ctime_ns, looked, inner, _shape(seen))


def looks_like_git(names: Iterable[str]) -> bool:
    """Would git take a folder with these names in it for the inside of a repository?"""
    names = set(names)
    return "HEAD" in names and ("commondir" in names or {"objects", "refs"} <= names)


def regular_bytes(path: str, most: int) -> bytes:
    """What stands in a file, as far as `most`. Raises OSError for anything that is no file: a pipe or a device with the
    name of one would be waited for, or read, without end."""
    with open(path, "rb", opener=_without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        return file.read(most)


def git_directory(link: str) -> str | None:
    """Where a `.git` file leads."""
    try:
        said = os.fsdecode(regular_bytes(link, 4096)).strip()
    except OSError:
        return None
    if not said.startswith("gitdir:"):
        return None
    return os.path.realpath(os.path.join(os.path.dirname(link), said.removeprefix("gitdir:").strip()))


def repository_at(folder: str) -> Repository:
    """The repository whose files are in this folder, if it is one."""
    place = f"{folder}/.git"
    git = git_directory(place) if os.path.isfile(place) else None
    return Repository(place, folder) if git is None else Repository(git, folder, place)


def inner_repositories(git: str) -> list[str]:
    """The git directories of submodules, which live below this one."""
    found = []
    for folder, folders, files in os.walk(f"{git}/modules"):
        if looks_like_git([*folders, *files]):
            found.append(folder)
            folders[:] = [name for name in folders if name == "modules"]
    return found


def attached(root: str) -> str | None:
    """The git directory elsewhere that a workspace belongs to: of its main work tree, or of the repository around it.

    Believed only when that place names this one in turn. A `.git` file that came with an archive names whatever it
    likes, and nobody's repository becomes writable for it.
    """
    link = f"{root}/.git"
    git = git_directory(link) if os.path.isfile(link) and not os.path.islink(link) else None
    if git is None or is_below(git, [root]) or not os.path.isdir(git):
        return None
    back = _read_line(f"{git}/gitdir")
    if back is not None and os.path.realpath(os.path.join(git, back)) == os.path.realpath(link):
        common = os.path.realpath(os.path.join(git, _read_line(f"{git}/commondir") or ""))
        if os.path.dirname(git) == f"{common}/worktrees" and os.path.isdir(f"{common}/objects"):
            return common
    for key, value in settings_in(f"{git}/config"):
        if key == "core.worktree" and os.path.realpath(os.path.join(git, value)) == os.path.realpath(root):
            return git
    return None


def run_by_git(repository: Repository, roots: Iterable[str], environ_home: str | None = None) -> tuple[str, ...]:
    """Paths below the roots, outside the git directory, that git runs or reads as configuration because of it: a
    folder of hooks, included files, programs that are named."""
    roots = list(roots)
    common = os.path.realpath(os.path.join(repository.git, _read_line(f"{repository.git}/commondir") or ""))
    given = [*_with_included(f"{common}/config"), *_with_included(f"{repository.git}/config.worktree")]
    if environ_home:
        xdg = os.environ.get("XDG_CONFIG_HOME") or f"{environ_home}/.config"
        for path in (f"{environ_home}/.gitconfig", f"{xdg}/git/config", "/etc/gitconfig"):
            given += [one for one in _with_included(path) if one[1] == "core.hookspath"]
    found: dict[str, None] = {}
    for folder, key, value in given:
        if key == "core.hookspath":
            path = os.path.normpath(os.path.join(repository.folder, os.path.expanduser(value)))
            path = os.path.dirname(path) if os.path.basename(path) == "_" else path  # made from what lies beside it
        elif _INCLUDES.fullmatch(key):
            path = os.path.normpath(os.path.join(folder, os.path.expanduser(value)))
        elif _PROGRAMS.fullmatch(key):
            path = os.path.normpath(
                os.path.join(repository.folder, (value.lstrip("!").split() or [""])[0].strip("'\""))
            )
            if not os.path.isfile(path):
                continue
        else:
            continue
        if is_below(path, roots) and path not in roots and not is_below(path, [repository.git, common]):
            found[path] = None
    return tuple(found)


def _with_included(path: str, depth: int = 0) -> Iterator[tuple[str, str, str]]:
    """What a file of settings says, and the files that it includes: each with the folder that its paths count from.
    Whether a condition holds is not asked."""
    folder = os.path.dirname(path)
    for key, value in settings_in(path):
        yield folder, key, value
        if _INCLUDES.fullmatch(key) and depth < _DEEPEST_INCLUDE:
            yield from _with_included(os.path.join(folder, os.path.expanduser(value)), depth + 1)


def settings_in(path: str) -> list[tuple[str, str]]:
    """What a file of git's settings says, as far as it is written the usual way: keys in small letters."""
    try:
        text = regular_bytes(path, 1_000_000).decode(errors="surrogateescape")
    except OSError:
        return []
    found: list[tuple[str, str]] = []
    section = ""
    for line in text.replace("\\\n", "").splitlines():
        rest = line.strip()
        if header := _SECTION.match(rest):
            inner = header.group(2)
            section = header.group(1).lower() + ("" if inner is None else f".{inner}")
            rest = header.group(3)
        if rest and rest[0] not in "#;" and (entry := _ENTRY.match(rest)):
            value = entry.group(2) if entry.group(2) is not None else "true"
            found.append((f"{section}.{entry.group(1).lower()}", re.sub(r'(?<!\\)"', "", value).replace('\\"', '"')))
    return found


def _kind(entry: "os.DirEntry[str]") -> str:
    try:
        if entry.is_symlink():
            return "link"
        return "folder" if entry.is_dir(follow_symlinks=False) else "file"
    except OSError:
        return "file"


def _shape(seen: dict[str, str]) -> str | None:
    for name, kind in seen.items():
        if name.lower() == ".git":
            return f"{kind}:{name}"
    return "bare" if looks_like_git(seen) else None


def _add(found: FoundRepositories, path: str, kind: str | None) -> None:
    if kind is None:
        return
    if kind == "bare":
        found.repositories.append(Repository(path, path))
        return
    what, name = kind.split(":", 1)
    place = f"{path}/{name}"
    if what == "link":
        found.links.append(place)
    elif what == "file":
        target = git_directory(place)
        found.repositories.append(Repository(target if target is not None else place, path, place))
    elif _has_something(place):  # an empty one may stand in for it, and holds nothing
        found.repositories.append(Repository(place, path))
        found.repositories.extend(Repository(git, git) for git in inner_repositories(place))


def _has_something(folder: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is not None
    except OSError:
        return False


def _read_line(path: str) -> str | None:
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return None
        return os.fsdecode(regular_bytes(path, 4096)).strip()
    except OSError:
        return None


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def walk_files(folder: str, skipped: Iterable[str] = ()) -> Iterator[tuple[str, os.stat_result]]:
    """Every file and link below a folder, by its path from there."""
    left_out = set(skipped)
    waiting = [""]
    while waiting:
        inside = waiting.pop()
        try:
            with os.scandir(f"{folder}/{inside}" if inside else folder) as entries:
                for entry in entries:
                    path = f"{inside}/{entry.name}" if inside else entry.name
                    if path in left_out:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(path)
                    else:
                        yield path, entry.stat(follow_symlinks=False)
        except OSError:
            continue  # it went away meanwhile
