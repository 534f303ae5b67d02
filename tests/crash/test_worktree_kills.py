"""A runtime is killed while a worktree is made or removed, and started again: no work is lost, and nothing is left."""

from pathlib import Path

import pytest

from crash import worktree_process
from crash.forked import Ended, run_forked
from kit.runs.repositories import branches, git, repository

BOTH = ("worktree.requested", "worktree.created", "workspace.used", "worktree.cleanup_requested")
POINTS = [
    *((kind, work) for kind in BOTH for work in ("none", "work")),
    ("worktree.removed", "none"),
    ("worktree.retained", "work"),
]


def started(folder: Path, work: str, kind: str = "-", when: str = "-") -> Ended:
    return run_forked(worktree_process.main, folder, work, kind, when)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("kind", "work"), POINTS)
def test_a_worktree_is_made_once_and_no_work_is_lost_over_a_kill(
    tmp_path: Path, kind: str, work: str, when: str
) -> None:
    repo = repository(tmp_path / "repo")
    killed = started(tmp_path, work, kind, when)
    assert killed.returncode == -9, killed.said
    done = started(tmp_path, work)
    assert done.returncode == 0, done.said
    made = sorted(path.name for path in (tmp_path / "home" / "worktrees").iterdir())
    listed = git(repo, "worktree", "list", "--porcelain").count("worktree ")
    if work == "none":
        assert (done.said, made, listed, branches(repo)) == ("agent_home \n", [], 1, ["main"])
    else:
        assert done.said == "agent_home kept:changed_files\n"
        (name,) = made
        assert (tmp_path / "home" / "worktrees" / name / "work.txt").read_text() == "work\n"
        assert (listed, len(branches(repo))) == (2, 2)
    assert git(repo, "status", "--porcelain") == ""
