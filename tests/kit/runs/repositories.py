"""Git repositories for tests, and what is in them."""

import os
import subprocess
from pathlib import Path


def git(folder: Path | str, *words: str) -> str:
    """Run git as a person would, who has a name and no settings."""
    who = {f"GIT_{role}_{field}": "ada@example.com" for role in ("AUTHOR", "COMMITTER") for field in ("NAME", "EMAIL")}
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", **who}
    done = subprocess.run(["git", *words], cwd=folder, env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def repository(folder: Path) -> Path:
    """One with a commit on `main`."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "README.md").write_text("hello\n")
    commit(folder, "begin")
    return folder


def commit(folder: Path | str, message: str) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)


def branches(folder: Path) -> list[str]:
    return git(folder, "branch", "--format=%(refname:short)").splitlines()
