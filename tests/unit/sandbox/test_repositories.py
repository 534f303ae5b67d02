"""Where repositories are, as git would find them, and what git runs because of them."""

import subprocess
from pathlib import Path

import pytest

from wakeful.sandbox.repositories import Census, Repository, attached, repository_at, run_by_git, settings_in


def git(where: Path, *line: str) -> None:
    settings = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", *settings, *line], cwd=where, check=True, capture_output=True)


def made(root: Path) -> Path:
    root.mkdir(parents=True)
    git(root, "init", "-q", "-b", "main")
    git(root, "commit", "-q", "--allow-empty", "-m", "first")
    return root


def found(root: Path) -> set[str]:
    return {each.git.removeprefix(f"{root}/") for each in Census().find([str(root)]).repositories}


def test_every_shape_of_a_repository_is_found(tmp_path: Path) -> None:
    root = made(tmp_path / "top")
    made(root / "vendor/lib")
    git(root, "init", "-q", "--bare", "mirror.git")
    git(root, "worktree", "add", "-q", "tree", "-b", "tree")
    made(tmp_path / "outside")
    git(root, "submodule", "add", "-q", str(tmp_path / "outside"), "sub")
    (root / "link").mkdir()
    (root / "link/.git").symlink_to("../vendor/lib/.git")
    (root / "empty/.git").mkdir(parents=True)
    assert found(root) == {
        ".git",
        ".git/modules/sub",
        ".git/worktrees/tree",
        "mirror.git",
        "vendor/lib/.git",
    }
    assert Census().find([str(root)]).links == [f"{root}/link/.git"]


def test_what_changes_is_seen_the_next_time_and_what_does_not_is_not_looked_at_again(tmp_path: Path) -> None:
    root = made(tmp_path / "top")
    (root / "far/down").mkdir(parents=True)
    census = Census()
    assert len(census.find([str(root)]).repositories) == 1
    made(root / "far/down/repository")
    assert len(census.find([str(root)]).repositories) == 2
    (root / "far/down/repository/.git").rename(root / "far/down/repository/other")
    assert {each.git for each in census.find([str(root)]).repositories} == {
        f"{root}/.git",
        f"{root}/far/down/repository/other",
    }


def test_a_work_tree_belongs_to_its_repository_when_both_say_so(tmp_path: Path) -> None:
    root = made(tmp_path / "top")
    git(root, "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "tree")
    assert attached(str(tmp_path / "tree")) == f"{root}/.git"
    assert attached(str(root)) is None
    made(tmp_path / "outside")
    git(root, "submodule", "add", "-q", str(tmp_path / "outside"), "sub")
    assert attached(str(root / "sub")) == f"{root}/.git/modules/sub"
    for claimed in (f"{root}/.git", f"{root}/.git/worktrees/tree", f"{root}/.git/modules/sub", "/nowhere"):
        stranger = tmp_path / "stranger"
        stranger.mkdir(exist_ok=True)
        (stranger / ".git").write_text(f"gitdir: {claimed}\n")
        assert attached(str(stranger)) is None, claimed


def test_hooks_included_settings_and_named_programs_in_the_workspace_are_known(tmp_path: Path) -> None:
    root = made(tmp_path / "top")
    (root / "tools").mkdir()
    (root / "tools/clean.sh").write_text("")
    for key, value in {
        "core.hooksPath": ".husky/_",
        "include.path": "../.gitsettings",
        "filter.odd.clean": "tools/clean.sh --fast",
        "core.pager": "less",
        "alias.x": "!tools/missing",
    }.items():
        git(root, "config", key, value)
    known = run_by_git(repository_at(str(root)), [str(root)])
    assert set(known) == {f"{root}/.husky", f"{root}/.gitsettings", f"{root}/tools/clean.sh"}
    git(root, "config", "core.hooksPath", "/usr/share/hooks")
    assert f"{root}/.husky" not in run_by_git(repository_at(str(root)), [str(root)])
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.gitconfig").write_text("[core]\n\thooksPath = .githooks\n")
    other = Repository(f"{root}/.git", str(root))
    assert f"{root}/.githooks" in run_by_git(other, [str(root)], str(tmp_path / "home"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[core]\n\tbare = false\n[remote "a b"]\n\tUrl = x\n', [("core.bare", "false"), ("remote.a b.url", "x")]),
        ("[core] bare = true\n# no\n; no\n[x]\nflag\n", [("core.bare", "true"), ("x.flag", "true")]),
        ('[core]\n\thooksPath = "with space"\n', [("core.hookspath", "with space")]),
        ("[core]\n\tpager = a \\\n b\n", [("core.pager", "a  b")]),
        ("nonsense = 1", [(".nonsense", "1")]),
    ],
)
def test_settings_are_read_as_git_writes_them(tmp_path: Path, text: str, expected: list[tuple[str, str]]) -> None:
    (tmp_path / "config").write_text(text)
    assert settings_in(str(tmp_path / "config")) == expected
