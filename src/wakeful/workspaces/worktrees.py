"""Git worktrees on disk: made, looked at, removed. Nothing here knows who asked.

A worktree is removed by git, which refuses to remove one with changes; its branch is deleted only while it is where it
was seen to be. So work that appears between the look and the removal is not lost. Making one again that is there
already, and removing one that is gone, changes nothing.
"""

import os
import shutil
import time
from pathlib import Path
from typing import NamedTuple

from wakeful.contracts.workspaces import MAX_CHANGED_FILES, CleanupReason
from wakeful.workspaces.git import GitFailed, run_git

MAKING_SECONDS = 600.0
"""For the files of a large repository."""
LEFT_SECONDS = 5.0
"""How long a git is waited for that outlived its runtime."""
_DETAIL_CHARS = 500


class Base(NamedTuple):
    """Where a worktree begins."""

    root: str
    """The top of the repository's work tree."""
    branch: str
    """Blank: no branch is checked out."""
    commit: str


class WorktreePlace(NamedTuple):
    """A worktree: of which repository, where, and which branch it has for itself."""

    repository: str
    path: str
    branch: str
    base_branch: str
    base_commit: str


class Removal(NamedTuple):
    """What became of a worktree that was to be removed."""

    is_gone: bool
    reason: CleanupReason
    changed_files: tuple[str, ...] = ()
    detail: str = ""


class NotARepository(Exception):
    """No worktree can be made of this folder: the text says why."""


def base_of(folder: str) -> Base:
    """Where a worktree of this folder's repository would begin. Raises NotARepository."""
    try:
        root = _line(["rev-parse", "--show-toplevel"], folder)
    except GitFailed as problem:
        raise NotARepository(f"{folder} is in no git repository") from problem
    try:
        commit = _line(["rev-parse", "--verify", "HEAD^{commit}"], folder)
    except GitFailed as problem:
        raise NotARepository(f"the repository {root} has no commit yet") from problem
    try:
        branch = _line(["symbolic-ref", "--quiet", "--short", "HEAD"], folder)
    except GitFailed:
        branch = ""
    return Base(os.path.realpath(root), branch, commit)


def is_worktree_of(folder: str, repository: str) -> bool:
    """Is the folder a worktree of that repository, other than its own? The repository says so, and the folder too:
    a `.git` file that came with an archive names whatever it likes."""
    if is_same_folder(folder, repository) or _entry_of(folder, repository) is None:
        return False
    try:
        return _common(folder) == _common(repository)
    except GitFailed:
        return False


def is_same_folder(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def branch_at(folder: str) -> str:
    """The branch that is checked out there; blank: none, or it cannot be told."""
    try:
        return _line(["symbolic-ref", "--quiet", "--short", "HEAD"], folder)
    except GitFailed:
        return ""


def make_worktree(place: WorktreePlace) -> None:
    """Make it, or finish what was begun. Raises GitFailed, and leaves nothing then."""
    if _comes_to_be(place):
        return
    take_back(place)
    Path(place.path).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    line = ["worktree", "add", "--no-track", "-b", place.branch, place.path, place.base_commit]
    try:
        run_git(line, place.repository, timeout=MAKING_SECONDS)
    except GitFailed:
        take_back(place)
        raise


def _comes_to_be(place: WorktreePlace) -> bool:
    """Is it there? A git that a killed runtime has left is given the time to finish."""
    deadline = time.monotonic() + LEFT_SECONDS
    while not is_whole(place):
        if "locked" not in (_listed(place) or ()) or time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def is_whole(place: WorktreePlace) -> bool:
    """Is it there, as git left it when it had made it? While git makes one, it keeps it locked."""
    entry = _listed(place)
    return entry is not None and "locked" not in entry and Path(place.path, ".git").is_file()


def take_back(place: WorktreePlace) -> None:
    """Remove what is left of a worktree whose making was cut off, in which nobody can have worked."""
    if _listed(place) is not None:
        _quietly(["worktree", "remove", "--force", "--force", place.path], place.repository)
    shutil.rmtree(place.path, ignore_errors=True)
    _quietly(["worktree", "prune"], place.repository)
    if _tip(place) == place.base_commit:
        _quietly(["update-ref", "-d", f"refs/heads/{place.branch}", place.base_commit], place.repository)


def remove_worktree(place: WorktreePlace) -> Removal:
    """Remove it with its branch where no work is lost by that, and say why not where some would be."""
    if not Path(place.repository).is_dir():
        return Removal(False, "branch_inspection_failed", detail=f"the repository {place.repository} is not there")
    tip = _tip(place)
    if not Path(place.path).is_dir():
        return _branch_removed(place, tip, "worktree_path_missing")
    if tip is None:
        return Removal(False, "branch_mismatch", detail=f"branch {place.branch} is no longer there")
    if not is_worktree_of(place.path, place.repository):
        return Removal(False, "branch_mismatch", detail=f"{place.path} is not a worktree of {place.repository}")
    here = branch_at(place.path)
    if here != place.branch:
        found = f"branch {here}" if here else "no branch"
        return Removal(False, "branch_mismatch", detail=f"{found} is checked out there, and not {place.branch}")
    try:
        changed = _changed(place.path)
        nested = _nested(place.path)
    except (GitFailed, OSError) as problem:
        return Removal(False, "change_detection_failed", detail=str(problem)[:_DETAIL_CHARS])
    if changed:
        return Removal(False, "changed_files", tuple(changed[:MAX_CHANGED_FILES]))
    if nested:
        return Removal(False, "nested_repository", tuple(nested[:MAX_CHANGED_FILES]))
    kept = _unmerged(place, tip)
    if kept is not None:
        return kept
    try:
        run_git(["worktree", "remove", place.path], place.repository)  # git looks once more, and refuses changes
    except GitFailed as refused:
        return Removal(False, "removal_refused", detail=refused.stderr.strip()[:_DETAIL_CHARS])
    return _branch_removed(place, tip, "clean_worktree")


def _branch_removed(place: WorktreePlace, tip: str | None, reason: CleanupReason) -> Removal:
    """The folder is gone. The branch goes too, unless it has what its base does not have."""
    _quietly(["worktree", "prune"], place.repository)
    if tip is None:
        return Removal(True, reason)
    kept = _unmerged(place, tip)
    if kept is not None:
        return kept
    try:
        run_git(["update-ref", "-d", f"refs/heads/{place.branch}", tip], place.repository)
    except GitFailed as refused:
        return Removal(False, "removal_refused", detail=refused.stderr.strip()[:_DETAIL_CHARS])
    return Removal(True, reason)


def _unmerged(place: WorktreePlace, tip: str) -> Removal | None:
    """Commits of the branch that neither its base branch nor the commit it began with leads to. Where there is no base
    branch (no branch was checked out, or it is gone), any other branch of the repository keeps them as well."""
    base = f"refs/heads/{place.base_branch}"
    others = [f"--exclude={place.branch}", "--branches"]
    known = [place.base_commit, *(others if _ref(base, place.repository) is None else [base])]
    try:
        left = run_git(["rev-list", "--oneline", "--max-count=20", tip, "--not", *known], place.repository)
    except GitFailed as problem:
        return Removal(False, "branch_inspection_failed", detail=problem.stderr.strip()[:_DETAIL_CHARS])
    return Removal(False, "unmerged_commits", detail=left.text.strip()[:_DETAIL_CHARS]) if left.text.strip() else None


def _changed(path: str) -> list[str]:
    """Files that are in no commit. What the repository ignores does not count."""
    told = run_git(["status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"], path).text
    return [*(entry[3:] for entry in told.split("\0") if entry), *_passed_over(path)]


def _passed_over(path: str) -> list[str]:
    """Files with changes that git was told not to look at (`assume-unchanged`, `skip-worktree`): `git status` says
    nothing of them, and `git worktree remove` would take them along."""
    told = run_git(["ls-files", "-v", "-z"], path).text
    names = [entry[2:] for entry in told.split("\0") if entry and (entry[0].islower() or entry[0] == "S")]
    found = []
    for name in names:
        file = Path(path, name)
        if file.is_symlink() or (file.exists() and _line(["hash-object", "--", name], path) != _staged(name, path)):
            found.append(name)
    return found


def _staged(name: str, path: str) -> str:
    """The hash of a file's content as git has it."""
    return _line(["rev-parse", "--verify", f":./{name}"], path)


def _nested(path: str) -> list[str]:
    """Repositories inside the worktree that its own does not know: what git ignores may hold one."""
    ignored = run_git(["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"], path).text
    found = []
    for name in filter(None, ignored.split("\0")):
        top = Path(path, name)
        if name.endswith("/"):
            found += [
                str(Path(folder, ".git").relative_to(path))
                for folder, folders, files in os.walk(top)
                if ".git" in folders or ".git" in files
            ]
    return found


def _listed(place: WorktreePlace) -> set[str] | None:
    return _entry_of(place.path, place.repository)


def _entry_of(folder: str, repository: str) -> set[str] | None:
    """What git's list says of a worktree, by the first word of each line; None: it is not in the list."""
    try:
        told = run_git(["worktree", "list", "--porcelain"], repository).text
    except GitFailed:
        return None
    for block in told.split("\n\n"):
        lines = block.splitlines()
        if lines and is_same_folder(lines[0].removeprefix("worktree "), folder):
            return {line.partition(" ")[0] for line in lines}
    return None


def _common(folder: str) -> str:
    """The git directory that all worktrees of a repository share."""
    return os.path.realpath(Path(folder, _line(["rev-parse", "--git-common-dir"], folder)))


def _tip(place: WorktreePlace) -> str | None:
    return _ref(f"refs/heads/{place.branch}", place.repository)


def _ref(name: str, folder: str) -> str | None:
    try:
        return _line(["rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"], folder)
    except GitFailed:
        return None


def _line(args: list[str], folder: str) -> str:
    return run_git(args, folder).text.strip()


def _quietly(args: list[str], folder: str) -> None:
    try:
        run_git(args, folder)
    except GitFailed:
        return
