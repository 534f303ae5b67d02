"""What a repository's references and logs name, and keeping what a command would have lost of it.

A commit counts as lost when no reference leads to it any more and no log of git's names it: after `git branch -D`, a
forced update of a reference, `git stash drop`. An amended or rebased commit is in the log, where people look for it.
"""

import os
import re
import time
from pathlib import Path
from typing import NamedTuple

from wakeful.sandbox.repositories import regular_bytes, walk_files
from wakeful.tools.local.repository_copy import RepositoryCopy, clear_the_way
from wakeful.workspaces.git import GitFailed, run_git

KEPT = "refs/wakeful/kept"
_HASH = re.compile(r"[0-9a-f]{40,64}")
_STASH = "logs/refs/stash"
_MOST_READ = 256 * 1024 * 1024
"""Of one file of references or entries of a log."""
_MOST_ASKED = 50
"""More lost names than this are kept without asking git whether they are lost."""


class Note(NamedTuple):
    """What was found after a command, and done about it."""

    text: str
    path: str
    is_undone: bool
    """Something that the command did was taken back, which it was not allowed to do."""


def tips(git: str) -> dict[str, str]:
    """What every reference names, by its name; of the stash, every entry."""
    found: dict[str, str] = {}
    for line in _lines(f"{git}/packed-refs"):
        named, _, name = line.partition(" ")
        if _HASH.fullmatch(named) and name:
            found[name] = named
    for path, _ in walk_files(f"{git}/refs"):
        found[f"refs/{path}"] = (_lines(f"{git}/refs/{path}") or [""])[0]
    for path in ("HEAD", *(f"worktrees/{name}/HEAD" for name in _names(f"{git}/worktrees"))):
        found[path] = (_lines(f"{git}/{path}") or [""])[0]
    for line in _lines(f"{git}/{_STASH}"):
        entry = line.split(" ", 2)
        if len(entry) > 2:
            found[f"refs/stash@{entry[1][:12]}"] = entry[1]
    return {name: named for name, named in found.items() if _HASH.fullmatch(named)}


def kept(copy: RepositoryCopy, before: dict[str, str]) -> list[Note]:
    """Put back what is gone, and give a name to what nothing names any more."""
    notes = []
    if damaged := copy.damaged_objects():
        copy.put_back(damaged)
        text = f"git: {len(damaged):,} files with objects of {copy.git} were gone or damaged; they were put back"
        notes.append(Note(text, copy.git, False))
    after = tips(copy.git)
    notes += [
        Note(f"git: entries of {copy.git}/{name} were removed; they were put back", f"{copy.git}/{name}", False)
        for name in sorted(name for name in copy.names() if name.startswith("logs/") and name != _STASH)
        if _log_mended(copy, name, after)
    ]
    for name, named in _lost(copy.git, before, after).items():
        where = f"{KEPT}/{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{named[:8]}/{name.removeprefix('refs/')}"
        where = where.replace("@", "-")
        try:
            clear_the_way(Path(copy.git), Path(copy.git, KEPT))
            run_git([f"--git-dir={copy.git}", "update-ref", where, named], copy.git)
        except GitFailed as problem:
            notes.append(
                Note(f"git: {name} of {copy.git} named {named}, which could not be kept: {problem}", name, False)
            )
            continue
        notes.append(
            Note(f"git: nothing led to {named} any more, which was {name}; it is kept as {where}", name, False)
        )
    return notes


def mended(copy: RepositoryCopy) -> list[Note]:
    """A git directory that git would not know as one any more is put back, as far as it is missing."""
    git = Path(copy.git)
    whole = all((git / name).exists() for name in ("HEAD", "objects", "refs")) and not git.is_symlink()
    if whole or not copy.names():
        return []
    if git.is_symlink() or git.is_file():
        git.unlink()
    missing = {name for name in copy.names() if not os.path.lexists(git / name)}
    for name in ("objects", "refs"):
        (git / name).mkdir(parents=True, exist_ok=True)
    copy.put_back(missing)
    text = f"the command removed the repository {git}, or parts that it cannot be without; it was put back"
    return [Note(text, str(git), is_undone=True)]


def has_its_own(git: Path) -> bool:
    """Is there anything in it that no remote has, as far as it knows?"""
    asked = [f"--git-dir={git}", "rev-list", "-n", "1", "--all", "--reflog", "--not", "--remotes"]
    try:
        return bool(run_git(asked, git).text.strip())
    except GitFailed:
        return True


def _lost(git: str, before: dict[str, str], after: dict[str, str]) -> dict[str, str]:
    gone = {named: name for name, named in before.items() if named not in after.values()}
    if not gone:
        return {}
    logged = "\n".join("\n".join(_lines(f"{git}/logs/{path}")) for path, _ in walk_files(f"{git}/logs"))
    lost = {}
    for number, (named, name) in enumerate(gone.items()):
        if named in logged:
            continue
        if number >= _MOST_ASKED or not _is_reached(git, named):
            lost[name] = named
    return lost


def _is_reached(git: str, named: str) -> bool:
    try:
        asked = [f"--git-dir={git}", "rev-list", "-n", "1", named, "--not", "--all"]
        return not run_git(asked, git).text.strip()
    except GitFailed:
        return False


def _log_mended(copy: RepositoryCopy, name: str, after: dict[str, str]) -> bool:
    """A log only grows as long as its reference is there; a deleted branch takes its log along."""
    was, path = copy.read(name), Path(copy.git, name)
    if not was:
        return False
    try:
        now = regular_bytes(str(path), _MOST_READ)
    except FileNotFoundError:
        now = b""
    except OSError:
        return False
    if now.startswith(was):
        return False
    reference = name.removeprefix("logs/")
    if not now and reference != "HEAD" and reference not in after:
        return False
    known = set(was.splitlines())
    clear_the_way(Path(copy.git), path.parent)
    if path.is_symlink():
        path.unlink()
    path.write_bytes(was + b"".join(line + b"\n" for line in now.splitlines() if line not in known))
    return True


def _lines(path: str) -> list[str]:
    try:
        return regular_bytes(path, _MOST_READ).decode(errors="replace").splitlines()
    except OSError:
        return []


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
