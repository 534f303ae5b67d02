"""Repositories in the care of the runtime while a command runs: what git would run stays as it was, history stays.

Before a command every repository below the folders it may write is looked at, and the owner's are copied
(`repository_copy`). After it:

1. a git directory that is gone or has holes is put back;
2. hooks, settings and what leads git elsewhere are as they were; what git runs because of them, too, unless it came
   from a remote, as with `git switch`;
3. objects that are gone or damaged are put back, and so are entries of logs;
4. what a branch or a tag named and nothing names any more is kept below `refs/wakeful/kept`;
5. in repositories that the command made, hooks are taken away and settings that are not harmless left out.

It holds at every level of confinement. Mounts of the sandbox come before it, where there are any: they refuse at once
what is only undone here. Ordinary work (`add`, `commit`, `switch`, `rebase`, `stash`, `clone`) passes without a word.
"""

import contextlib
import hashlib
import os
import stat
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path

from wakeful.sandbox.confinement import Sandbox
from wakeful.sandbox.places import is_below
from wakeful.sandbox.repositories import Census, Repository, run_by_git, walk_files
from wakeful.settings.home import home
from wakeful.tools.local import repository_history
from wakeful.tools.local.custody_records import CustodyRecord, RepositoryBefore, key_of
from wakeful.tools.local.git_settings import harmless, only_follows_branches
from wakeful.tools.local.held_files import (
    HeldContent,
    content_of,
    contents_of,
    first_link,
    held_areas,
    is_plain_work_tree,
    text_of,
    write_again,
)
from wakeful.tools.local.repository_history import Note
from wakeful.tools.local.repository_shelf import KEPT, Shelf, mend_after_kills, set_aside
from wakeful.workspaces.git import GitFailed, run_git

_records: "weakref.WeakSet[CustodyRecord]" = weakref.WeakSet()
"""Of every command of this process that nobody has looked at since."""


def custody_of(sandbox: Sandbox) -> "RepositoryCustody":
    """For the commands of a sandbox, with copies in the runtime's own home."""
    return custody_below(sandbox.write_roots)


def custody_below(roots: Sequence[str]) -> "RepositoryCustody":
    """The same for commands that may write below these folders."""
    return RepositoryCustody(roots, home() / "repositories", os.environ.get("HOME"))


class RepositoryCustody:
    """Looks after the repositories below some folders. Safe to be used by several commands at a time."""

    def __init__(self, roots: Sequence[str], home: Path, environ_home: str | None = None) -> None:
        """`home` is a folder of the runtime, out of reach of commands. It is made when there is something to keep."""
        self._roots = tuple(roots)
        self._home = home
        self._environ_home = environ_home
        self._census = Census()
        self._copies: dict[str, Shelf] = {}
        self._of_commands: set[str] = set()
        self._is_mended = False
        self._under_way = 0
        """Commands that have begun, and that nobody has looked at since."""
        self._is_to_close = False
        self._lock = threading.Lock()
        weakref.finalize(self, _close_all, self._copies)

    def close(self) -> None:
        """Drop the copies, until the next command: now, or when the last command that runs was looked at. It also
        happens by itself when nobody uses them any more."""
        with self._lock:
            self._is_to_close = self._under_way > 0
            if not self._under_way:
                _close_all(self._copies)

    def before(self) -> CustodyRecord:
        """To be called before a command."""
        with self._lock:
            mended = [] if self._is_mended else mend_after_kills(self._home, self._roots)
            self._is_mended = True
            found = self._census.find(self._roots)
            record = CustodyRecord(links=frozenset(found.links), notes=mended, is_whole=found.is_whole)
            if not found.is_whole:
                text = "there are too many folders to look through: repositories far down are not looked after"
                record.notes.append(Note(text, self._roots[0], False))
            for repository in found.repositories:
                if repository.git not in record.repositories or repository.link is not None:
                    record.repositories[key_of(repository)] = self._seen(repository, record.notes)
            self._under_way += 1
            _records.add(record)
            return record

    def before_it_began(self, kept: CustodyRecord) -> CustodyRecord:
        """The same for a command that another process began, and whose picture was kept: what is new since then is the
        command's. Copies of histories are made of what is there now."""
        now = self.before()
        for key, before in kept.repositories.items():
            before.copy = now.repositories[key].copy if key in now.repositories else None
        kept.notes += now.notes
        _records.discard(now)
        _records.add(kept)
        return kept

    def after(self, record: CustodyRecord) -> list[Note]:
        """To be called once, when the command and everything it started has ended."""
        with self._lock:
            self._under_way -= 1
            _records.discard(record)
            try:
                return self._look_at(record)
            finally:
                if self._is_to_close and not self._under_way:
                    self._is_to_close = False
                    _close_all(self._copies)

    def _look_at(self, record: CustodyRecord) -> list[Note]:
        notes = list(record.notes)
        for before in record.repositories.values():
            notes += self._examine(before)
        found = self._census.find(self._roots)
        if not found.is_whole and record.is_whole:
            text = "the command made too many folders to look through: repositories far down are not looked after"
            notes.append(Note(text, self._roots[0], False))
        for link in found.links:
            if link not in record.links:
                Path(link).unlink(missing_ok=True)
                notes.append(Note(f"{link} was a link to a repository elsewhere; it was removed", link, True))
        known = {each.key for each in record.repositories.values()}
        gits = {each.git for each in found.repositories}
        for repository in found.repositories:
            if key_of(repository) not in known:
                notes += self._judge_new(repository, gits)
        for before in record.repositories.values():
            if not self._under_way and before.copy is not None and (shelf := self._copies.get(before.repository.git)):
                shelf.at_rest()
        return notes

    # --- before -------------------------------------------------------------------------------------------------------

    def _seen(self, repository: Repository, notes: list[Note]) -> RepositoryBefore:
        notes += [note._replace(is_undone=False) for note in _without_pipes(repository.git)]
        run = run_by_git(repository, self._roots, self._environ_home)
        areas = tuple(area for area in held_areas(repository, run) if first_link(area, self._roots) is None)
        held = contents_of(areas)
        is_inner = repository.link is not None and not is_below(repository.git, self._roots)
        if repository.git in self._of_commands or is_inner or _is_work_tree_of_another(repository.git):
            return RepositoryBefore(repository, areas, held, {}, None)
        shelf = self._copies.get(repository.git)
        if shelf is None:
            shelf = self._copies[repository.git] = Shelf(self._home, repository.git)
        shelf.copy.refresh()
        if shelf.copy.not_copied:
            many = f"{shelf.copy.not_copied:,} files of {repository.git} could not be copied: they are not looked after"
            notes.append(Note(many, repository.git, False))
            shelf.copy.not_copied = 0
        tips = repository_history.tips(repository.git)
        shelf.in_use(tips)
        return RepositoryBefore(repository, areas, held, tips, shelf.copy)

    # --- after --------------------------------------------------------------------------------------------------------

    def _examine(self, before: RepositoryBefore) -> list[Note]:
        repository, notes = before.repository, self._unlinked(before)
        notes += _without_pipes(repository.git)
        if before.copy is not None:
            if self._is_gone(repository):
                return self._removed_with_its_folder(before)
            notes += repository_history.mended(before.copy)
        elif not Path(repository.git).exists():
            return []
        notes += self._held_again(before)
        if before.copy is not None:
            notes += repository_history.kept(before.copy, before.tips)
        return notes

    def _is_gone(self, repository: Repository) -> bool:
        """Is it away with its whole folder? A person may have moved a project; nothing is put where it was. Of a git
        directory elsewhere that the workspace belongs to, its folder is the one that it stands in."""
        if Path(repository.folder).is_dir():
            return False
        is_elsewhere = repository.folder in self._roots and repository.folder == repository.git
        return not (is_elsewhere and Path(repository.git).parent.is_dir())

    def _unlinked(self, before: RepositoryBefore) -> list[Note]:
        """Where there was none, a link on the way to what is held leads git, and whoever mends it, somewhere else."""
        notes = []
        for area in (*before.areas, *before.held, f"{before.repository.git}/HEAD"):
            while is_below(area, self._roots) and (link := first_link(area, self._roots)) is not None:
                Path(link).unlink()
                text = f"the command put a link at {link}, on the way to what git obeys or runs; it was removed"
                notes.append(Note(text, link, is_undone=True))
        return notes

    def _held_again(self, before: RepositoryBefore) -> list[Note]:
        notes = []
        now = contents_of(before.areas)
        for path in sorted(before.held.keys() | now.keys()):
            was, found = before.held.get(path), now.get(path)
            if was is not None and not was.is_whole:
                continue  # more than is held for one repository
            if was == found or self._is_allowed(before.repository, path, was, found):
                continue
            kept = set_aside(self._home, path, found)
            _put_back(path, was)
            how = "made" if was is None else "changed" if found is not None else "removed"
            text = f"{path}, which git obeys or runs, was {how} while the command ran; it is as it was before{kept}"
            notes.append(Note(text, path, is_undone=True))
        return notes

    def _is_allowed(
        self, repository: Repository, path: str, was: HeldContent | None, found: HeldContent | None
    ) -> bool:
        name = os.path.relpath(path, repository.git)
        if found is not None and not found.is_whole:
            return False
        if name.startswith("worktrees/"):
            return found is None or (was is None and is_plain_work_tree(repository.git, path, found))
        if name == "config" and was is not None and found is not None and not found.is_link:
            return only_follows_branches(text_of(was), text_of(found))
        if not is_below(path, [repository.git]):
            return found is None or (path != repository.link and self._came_from_a_remote(repository, path, found))
        return False

    def _came_from_a_remote(self, repository: Repository, path: str, found: HeldContent) -> bool:
        if found.is_link or not is_below(path, [repository.folder]):
            return False
        blob = hashlib.sha1(b"blob %d\0" % len(found.data) + found.data, usedforsecurity=False).hexdigest()
        asked = ["log", "-1", "--format=%H", "--remotes", f"--find-object={blob}", "--"]
        try:
            return bool(run_git([*asked, os.path.relpath(path, repository.folder)], repository.folder).text.strip())
        except GitFailed:
            return False

    def _removed_with_its_folder(self, before: RepositoryBefore) -> list[Note]:
        """A folder is removed as any other, with what can be had again. What exists nowhere else is kept."""
        assert before.copy is not None
        shelf = self._copies.pop(before.repository.git)
        if not repository_history.has_its_own(shelf.files):
            shelf.drop()
            return []
        kept = shelf.keep(self._home / KEPT)
        text = (
            f"the repository in {before.repository.folder} was removed, or moved away, with its folder; its history is "
            f"kept in {kept}"
        )
        return [Note(text, before.repository.folder, False)]

    def _judge_new(self, repository: Repository, gits: set[str]) -> list[Note]:
        """A repository that the command made may stay, without whatever would make git run something."""
        self._of_commands.add(repository.git)
        if not is_below(repository.git, self._roots):
            assert repository.link is not None
            Path(repository.link).unlink(missing_ok=True)
            text = f"{repository.link} led git to {repository.git}, outside the workspace; it was removed"
            return [Note(text, repository.link, True)]
        notes = _without_pipes(repository.git)
        for path, content in contents_of(held_areas(repository, ())).items():
            name = os.path.relpath(path, repository.git)
            if path == repository.link:
                continue
            if not content.is_whole:
                _put_back(path, None)
                notes.append(
                    Note(f"{path} in a new repository is too large to be looked at; it was removed", path, True)
                )
                continue
            if name.startswith("hooks/") and path.endswith(".sample") and not content.is_link:
                continue
            if name == "commondir" and not content.is_link:
                target = os.path.realpath(os.path.join(repository.git, text_of(content).strip()))
                if target in gits or is_plain_work_tree(
                    os.path.dirname(os.path.dirname(repository.git)), path, content
                ):
                    continue
            if name.startswith("worktrees/") and is_plain_work_tree(repository.git, path, content):
                continue
            if name in ("config", "config.worktree") and not content.is_link:
                filtered = harmless(text_of(content))
                if not filtered.left_out:
                    continue
                kept = set_aside(self._home, path, content)
                _put_back(path, HeldContent(filtered.text.encode(errors="surrogateescape"), content.mode, False))
                told = "; ".join(filtered.left_out)[:200]
                text = f"settings in {path} that could run something were left out: {told}{kept}"
                notes.append(Note(text, path, True))
                continue
            kept = set_aside(self._home, path, content)
            _put_back(path, None)
            text = f"{path} was made in a new repository, and git would obey or run it; it was removed{kept}"
            notes.append(Note(text, path, True))
        return notes


def _put_back(path: str, content: HeldContent | None) -> None:
    """Make it so, and for every command that runs: one that began meanwhile would hold what is taken back here."""
    write_again(path, content)
    now = content_of(path)
    for record in list(_records):
        for before in record.repositories.values():
            if is_below(path, before.areas):
                before.held.pop(path, None)
                before.held |= {path: now} if now is not None else {}


def _close_all(copies: dict[str, Shelf]) -> None:
    for shelf in list(copies.values()):
        shelf.drop()
    copies.clear()


def _without_pipes(git: str) -> list[Note]:
    """Pipes and devices have no place in a git directory: git, and whoever looks after it, would wait for them."""
    notes = []
    for name, found in walk_files(git, ("objects",)):
        path, mode = f"{git}/{name}", found.st_mode
        if stat.S_ISLNK(mode):
            with contextlib.suppress(OSError):
                mode = os.stat(path).st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            os.unlink(path)
            notes.append(Note(f"{path} was a pipe or a device, or led to one; it was removed", path, True))
    return notes


def _is_work_tree_of_another(git: str) -> bool:
    """Its history is in another git directory."""
    return (Path(git) / "commondir").is_file() and Path(git).parent.name == "worktrees"
