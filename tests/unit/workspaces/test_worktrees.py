"""Worktrees on disk: made whole or not at all, removed only where nothing is lost."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kit.runs.repositories import branches, commit, git, repository
from wakeful.workspaces.git import GitFailed
from wakeful.workspaces.worktrees import (
    NotARepository,
    WorktreePlace,
    base_of,
    is_whole,
    is_worktree_of,
    make_worktree,
    remove_worktree,
    take_back,
)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo")


def place(repo: Path, name: str = "one") -> WorktreePlace:
    base = base_of(str(repo))
    return WorktreePlace(base.root, str(repo.parent / "trees" / name), f"wakeful/{name}", base.branch, base.commit)


def made(repo: Path, name: str = "one") -> WorktreePlace:
    tree = place(repo, name)
    make_worktree(tree)
    return tree


def test_made_again_it_is_the_same(repo: Path) -> None:
    tree = made(repo)
    Path(tree.path, "work.txt").write_text("work\n")
    make_worktree(tree)
    assert is_whole(tree)
    assert Path(tree.path, "work.txt").read_text() == "work\n"
    assert is_worktree_of(tree.path, str(repo))
    assert not is_worktree_of(str(repo), str(repo))


def test_a_making_that_was_cut_off_is_finished(repo: Path) -> None:
    tree = place(repo)
    git(repo, "branch", tree.branch)  # git makes the branch, then the folder, then the files
    folder = Path(tree.path)
    folder.mkdir(parents=True)
    (folder / "half.tmp").write_text("half")
    make_worktree(tree)
    assert sorted(path.name for path in folder.iterdir()) == [".git", "README.md"]
    take_back(tree)
    assert (folder.exists(), branches(repo)) == (False, ["main"])


def test_what_cannot_be_made_leaves_nothing(repo: Path) -> None:
    tree = place(repo)._replace(base_commit="0" * 40)
    with pytest.raises(GitFailed):
        make_worktree(tree)
    assert (Path(tree.path).exists(), branches(repo)) == (False, ["main"])


def test_a_folder_without_a_commit_cannot_be_isolated(tmp_path: Path) -> None:
    with pytest.raises(NotARepository, match="in no git repository"):
        base_of(str(tmp_path))
    git(tmp_path, "init", "-q")
    with pytest.raises(NotARepository, match="has no commit yet"):
        base_of(str(tmp_path))


def test_a_clean_worktree_goes_with_its_branch(repo: Path) -> None:
    tree = made(repo)
    assert remove_worktree(tree).is_gone
    assert (Path(tree.path).exists(), branches(repo)) == (False, ["main"])
    assert remove_worktree(tree) == (True, "worktree_path_missing", (), ""), "again changes nothing"


def _untracked(tree: WorktreePlace, repo: Path) -> None:
    Path(tree.path, "new.txt").write_text("new\n")


def _modified(tree: WorktreePlace, repo: Path) -> None:
    Path(tree.path, "README.md").write_text("other\n")


def _staged(tree: WorktreePlace, repo: Path) -> None:
    _modified(tree, repo)
    git(tree.path, "add", "-A")


def _committed(tree: WorktreePlace, repo: Path) -> None:
    _untracked(tree, repo)
    commit(tree.path, "work")


def _detached(tree: WorktreePlace, repo: Path) -> None:
    git(tree.path, "checkout", "-q", "--detach")


def _other_branch(tree: WorktreePlace, repo: Path) -> None:
    git(tree.path, "switch", "-q", "-c", "mine")


def _branch_deleted(tree: WorktreePlace, repo: Path) -> None:
    git(repo, "update-ref", "-d", f"refs/heads/{tree.branch}")


def _nested(tree: WorktreePlace, repo: Path) -> None:
    Path(tree.path, ".git").read_text()
    (Path(repo, ".git") / "info").mkdir(exist_ok=True)
    (Path(repo, ".git") / "info" / "exclude").write_text("build/\n")
    repository(Path(tree.path, "build", "inner"))


def _locked(tree: WorktreePlace, repo: Path) -> None:
    git(repo, "worktree", "lock", tree.path)


def _passed_over(flag: str) -> Callable[[WorktreePlace, Path], None]:
    """A change that git was told not to look at."""

    def change(tree: WorktreePlace, repo: Path) -> None:
        git(tree.path, "update-index", flag, "README.md")
        _modified(tree, repo)

    return change


def _replaced_by_a_link(tree: WorktreePlace, repo: Path) -> None:
    git(tree.path, "update-index", "--skip-worktree", "README.md")
    Path(tree.path, "README.md").unlink()
    Path(tree.path, "README.md").symlink_to("elsewhere")


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_a_file_that_git_passes_over_holds_no_worktree_as_long_as_it_is_as_committed(repo: Path, flag: str) -> None:
    tree = made(repo)
    git(tree.path, "update-index", flag, "README.md")
    assert remove_worktree(tree).is_gone


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_untracked, "changed_files"),
        (_passed_over("--assume-unchanged"), "changed_files"),
        (_passed_over("--skip-worktree"), "changed_files"),
        (_replaced_by_a_link, "changed_files"),
        (_modified, "changed_files"),
        (_staged, "changed_files"),
        (_committed, "unmerged_commits"),
        (_detached, "branch_mismatch"),
        (_other_branch, "branch_mismatch"),
        (_branch_deleted, "branch_mismatch"),
        (_nested, "nested_repository"),
        (_locked, "removal_refused"),
    ],
)
def test_a_worktree_is_kept_where_something_would_be_lost(repo: Path, change: object, reason: str) -> None:
    tree = made(repo)
    assert callable(change)
    change(tree, repo)
    before = sorted(path.name for path in Path(tree.path).iterdir())
    removal = remove_worktree(tree)
    assert (removal.is_gone, removal.reason) == (False, reason)
    assert sorted(path.name for path in Path(tree.path).iterdir()) == before


@pytest.mark.parametrize("base", ["none was checked out", "it was renamed"])
def test_without_a_base_branch_work_that_another_branch_has_holds_no_worktree(repo: Path, base: str) -> None:
    if base == "none was checked out":
        git(repo, "checkout", "-q", "--detach")
    tree = made(repo)
    _committed(tree, repo)
    if base == "it was renamed":
        git(repo, "branch", "-m", "trunk")
    assert remove_worktree(tree).reason == "unmerged_commits", "its own branch is not another one"
    git(repo, "branch", "merged", tree.branch)
    assert remove_worktree(tree).is_gone


def test_a_branch_with_work_stays_when_its_folder_was_deleted(repo: Path) -> None:
    tree = made(repo)
    _committed(tree, repo)
    git(repo, "worktree", "remove", "--force", tree.path)
    removal = remove_worktree(tree)
    assert (removal.is_gone, removal.reason) == (False, "unmerged_commits")
    assert tree.branch in branches(repo)


def test_inversion_without_the_look_at_commits_they_are_lost_with_the_branch(repo: Path) -> None:
    """Merged, the same branch goes: it is the look at its commits that keeps it."""
    tree = made(repo)
    _committed(tree, repo)
    assert not remove_worktree(tree).is_gone
    git(repo, "merge", "-q", tree.branch)
    assert remove_worktree(tree).is_gone
    assert branches(repo) == ["main"]


def test_inversion_without_force_git_itself_refuses_what_changed_after_the_look(repo: Path) -> None:
    tree = made(repo)
    _untracked(tree, repo)
    with pytest.raises(GitFailed):
        from wakeful.workspaces.git import run_git

        run_git(["worktree", "remove", tree.path], tree.repository)
    assert Path(tree.path, "new.txt").exists()


def test_a_folder_that_names_a_repository_which_does_not_name_it_is_no_worktree(repo: Path, tmp_path: Path) -> None:
    tree = made(repo)
    liar = tmp_path / "liar"
    liar.mkdir()
    (liar / ".git").write_text(Path(tree.path, ".git").read_text())
    assert not is_worktree_of(str(liar), str(repo))


def test_nothing_that_the_repository_names_is_run(repo: Path, tmp_path: Path) -> None:
    """Hooks, a filter and a file system monitor, as a command could not plant them but a clone could bring them."""
    trace = tmp_path / "ran"
    script = f"#!/bin/sh\ntouch {trace}\ncat\n"
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        hook = repo / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(script)
        hook.chmod(0o755)
    program = tmp_path / "program"
    program.write_text(script)
    program.chmod(0o755)
    (repo / ".gitattributes").write_text("* filter=evil\n")
    commit(repo, "attributes")
    trace.unlink(missing_ok=True)
    for key in ("filter.evil.smudge", "filter.evil.clean", "core.fsmonitor"):
        git(repo, "config", key, str(program))
    trace.unlink(missing_ok=True)
    tree = made(repo)
    assert is_whole(tree)
    remove_worktree(tree)
    assert not os.path.lexists(trace)
