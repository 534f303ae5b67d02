"""Git as the runtime runs it: every program that a repository can name is planted, and none of them runs."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from wakeful.workspaces.git import GitFailed, run_git

ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/nowhere", "GIT_CONFIG_NOSYSTEM": "1"}


def git(root: Path, *args: str) -> subprocess.CompletedProcess[bytes]:
    """Git as anybody would run it."""
    return subprocess.run(["git", *args], cwd=root, env=ENVIRON, capture_output=True, timeout=240, check=False)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    root.mkdir()
    git(root, "init", "-q")
    git(root, "config", "user.email", "a@example.com")
    git(root, "config", "user.name", "a")
    (root / "file.txt").write_text("one\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    (root / "file.txt").write_text("two\n")
    return root


def program(root: Path, name: str) -> tuple[Path, Path]:
    """A program that leaves a trace when it runs."""
    made, trace = root.parent / name, root.parent / f"{name}.ran"
    made.write_text(f"#!/bin/sh\ntouch {trace}\nexit 0\n")
    made.chmod(0o755)
    return made, trace


Plant = Callable[[Path, Path], None]


def hook(name: str) -> Plant:
    def plant(root: Path, made: Path) -> None:
        (root / ".git/hooks").mkdir(exist_ok=True)
        (root / ".git/hooks" / name).write_bytes(made.read_bytes())
        (root / ".git/hooks" / name).chmod(0o755)

    return plant


def setting(key: str, attributes: str = "") -> Plant:
    def plant(root: Path, made: Path) -> None:
        git(root, "config", key, str(made))
        if attributes:
            (root / ".git/info").mkdir(exist_ok=True)
            (root / ".git/info/attributes").write_text(attributes)

    return plant


PLANTED: dict[str, tuple[Plant, list[str]]] = {
    "pre-commit": (hook("pre-commit"), ["commit", "-qam", "second"]),
    "post-checkout": (hook("post-checkout"), ["checkout", "-q", "-b", "other"]),
    "hooks elsewhere": (
        lambda root, made: (hook("pre-commit")(root, made), git(root, "config", "core.hooksPath", ".git/hooks"))[0],
        ["commit", "-qam", "second"],
    ),
    "fsmonitor": (setting("core.fsmonitor"), ["status"]),
    "clean filter": (setting("filter.evil.clean", "*.txt filter=evil\n"), ["add", "."]),
    "filter with an equals sign": (setting("filter.e=vil.clean", "*.txt filter=e=vil\n"), ["add", "."]),
    "process filter": (setting("filter.evil.process", "*.txt filter=evil\n"), ["add", "."]),
    "smudge filter": (setting("filter.evil.smudge", "*.txt filter=evil\n"), ["checkout", "-q", "-f", "HEAD"]),
    "external diff": (setting("diff.external"), ["diff"]),
    "diff driver": (setting("diff.evil.command", "*.txt diff=evil\n"), ["diff"]),
    "text converter": (setting("diff.evil.textconv", "*.txt diff=evil\n"), ["diff"]),
    "signature": (
        lambda root, made: (setting("gpg.program")(root, made), git(root, "config", "commit.gpgSign", "true"))[0],
        ["commit", "-qam", "second"],
    ),
    "credential helper": (setting("credential.helper"), ["credential", "fill"]),
    "transport": (
        lambda root, made: (
            (
                git(root, "config", "protocol.ext.allow", "always"),
                git(root, "remote", "add", "origin", f"ext::{made} %S"),
            )[0]
            and None
        ),
        ["fetch", "origin"],
    ),
    "ssh": (
        lambda root, made: (
            (
                git(root, "config", "core.sshCommand", str(made)),
                git(root, "remote", "add", "origin", "ssh://127.0.0.1/nowhere"),
            )[0]
            and None
        ),
        ["fetch", "origin"],
    ),
    "editor": (setting("core.editor"), ["commit", "-a"]),
}


@pytest.mark.parametrize("name", PLANTED)
def test_what_a_repository_plants_does_not_run(repository: Path, name: str) -> None:
    plant, args = PLANTED[name]
    made, trace = program(repository, "evil")
    plant(repository, made)
    twin = repository.parent / "twin"
    shutil.copytree(repository, twin, symlinks=True)
    try:
        run_git(args, repository)
    except GitFailed:
        pass  # without its editor, transport or helper a command may fail; it must not run them
    assert not trace.exists()
    asks = b"url=https://x.invalid\n\n"  # for the helper
    subprocess.run(["git", *args], cwd=twin, env=ENVIRON, input=asks, capture_output=True, timeout=240, check=False)
    assert trace.exists(), "git as anybody runs it does run it: the trap was real"


def test_a_folder_that_pretends_to_be_a_repository_is_not_one(repository: Path) -> None:
    made, trace = program(repository, "evil")
    nested = repository / "data"
    subprocess.run(["git", "init", "-q", "--bare", str(nested)], check=True, env=ENVIRON)
    for key, value in {"core.bare": "false", "core.worktree": str(repository), "core.fsmonitor": str(made)}.items():
        subprocess.run(["git", "config", "-f", str(nested / "config"), key, value], check=True, env=ENVIRON)
    with pytest.raises(GitFailed, match="bareRepository"):
        run_git(["status"], nested)
    assert not trace.exists()
    git(nested, "status")
    assert trace.exists()


def test_it_still_is_git(repository: Path) -> None:
    assert run_git(["status", "--short"], repository).text == " M file.txt\n"
    assert "+two" in run_git(["diff"], repository).text
    run_git(["commit", "-qam", "second"], repository)
    assert run_git(["log", "--format=%s"], repository).text == "second\nfirst\n"


def test_a_failure_says_what_git_said(repository: Path) -> None:
    with pytest.raises(GitFailed, match=r"git checkout missing ended with 1: .*did not match"):
        run_git(["checkout", "missing"], repository)


def test_variables_of_whoever_started_the_runtime_steer_nothing(repository: Path) -> None:
    code = "import sys; from wakeful.workspaces.git import run_git\n"
    code += "print(run_git(['rev-parse', '--git-dir'], sys.argv[1]).text)"
    environ = {**os.environ, "GIT_DIR": "/nowhere", "GIT_EXTERNAL_DIFF": "/nowhere"}
    line = [sys.executable, "-c", code, str(repository)]
    done = subprocess.run(line, env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ".git"
