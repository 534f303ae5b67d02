"""What a command finds around it: a plain shell, the workspace's virtual environment, who the user is to git."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kit.gates.confined_commands import level, place_outside, said, sandbox, sh
from kit.gates.hostile_model import attack, command
from wakeful.sandbox.confinement import Sandbox
from wakeful.sandbox.environment import git_settings
from wakeful.workspaces.git import user_settings

LEVELS = ["bubblewrap", "landlock", "not_enforced"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user with a name, other than the one who runs the tests."""
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / ".gitconfig").write_text(
        '[user]\n\tname = "Ann \\"A\\" Example"\n\temail = ann@example.com\n'
        f'[includeIf "gitdir:{tmp_path}/job/"]\n\tpath = job.gitconfig\n[alias]\n\tx = !false\n'
    )
    (folder / "job.gitconfig").write_text("[user]\n\temail = ann@job.example.com\n")
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    return folder


@pytest.mark.usefixtures("home")
async def test_an_agent_commits_in_its_users_name_without_being_told_who_that_is(root: Path, tmp_path: Path) -> None:
    work = "echo x > file && git add file && git commit -qm first && git switch -qc other && git log --format='%an %ae'"
    result = await attack(root, [command(work)], store=tmp_path / "state.db")
    (call,) = result.calls()
    assert 'Ann \\"A\\" Example ann@example.com' in call.result.replace('\\\\\\"', '\\"'), call.result
    assert '"exit_status":0' in call.result
    subprocess.run(["git", "-C", str(root), "config", "user.email", "ann@project.example.com"], check=True)
    result = await attack(root, [command("git commit -q --allow-empty -m second && git log -1 --format=%ae")])
    assert "ann@project.example.com" in result.calls()[0].result, "what the repository says comes first"


async def test_who_the_user_is_depends_on_the_folder_and_nothing_else_is_taken(home: Path, root: Path) -> None:
    assert user_settings(root) == [("user.name", 'Ann "A" Example'), ("user.email", "ann@example.com")]
    work = root.parent / "job"
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    subprocess.run(["git", "-C", str(work), "config", "safe.directory", "*"], check=True)
    assert user_settings(work)[-1] == ("user.email", "ann@job.example.com")
    assert not any(key == "safe.directory" for key, _ in user_settings(work)), "a repository does not trust itself"
    (home / ".gitconfig").unlink()
    assert user_settings(root) == []


@pytest.mark.parametrize("mode", LEVELS)
async def test_names_with_odd_characters_arrive_whole_at_every_level(root: Path, mode: str) -> None:
    odd = 'O"Hara \\ Zoë; # no\tcomment'
    where = Sandbox(root, level=level(mode), git_settings=lambda: [("user.name", odd), ("user.email", "o@example.com")])
    ended = await sh(where, "git config user.name; git config gc.auto")
    assert said(ended) == f"{odd}\n0\n"


@pytest.mark.parametrize("mode", LEVELS)
async def test_the_virtual_environment_of_the_workspace_comes_first_on_the_path(mode: str) -> None:
    with place_outside() as root:
        assert "VIRTUAL_ENV" not in said(await sh(sandbox(root, mode), "env"))
        made = [sys.executable, "-m", "venv", "--without-pip", str(root / ".venv")]
        subprocess.run(made, check=True)
        (root / ".venv/bin/own-tool").write_text("#!/bin/sh\necho of the workspace\n")
        (root / ".venv/bin/own-tool").chmod(0o755)
        ended = await sh(sandbox(root, mode), "own-tool; echo $VIRTUAL_ENV; command -v python")
        assert said(ended).splitlines() == ["of the workspace", f"{root}/.venv", f"{root}/.venv/bin/python"]


async def test_a_shell_is_plain_unless_a_login_shell_is_asked_for_and_is_the_systems_own(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    (root / ".venv/bin").mkdir(parents=True)
    (root / ".venv/pyvenv.cfg").write_text("")
    for name in ("bash", "sh"):
        (root / f".venv/bin/{name}").write_text("#!/bin/sh\necho planted\n")
        (root / f".venv/bin/{name}").chmod(0o755)
    asks = "shopt -q login_shell && echo login || echo plain"
    batch = ("wakeful/exec_command_batch", {"items": [{"cmd": asks}]})
    result = await attack(root, [command(asks), batch, command(asks, login=True)])
    shown = [call.result for call in result.calls()]
    assert ["plain" in text for text in shown] == [True, True, False]
    assert "login" in shown[2]
    assert not any("planted" in text for text in shown)


@pytest.mark.parametrize("place", ["beside the workspace", "in a folder of the system"])
async def test_wherever_the_store_is_commands_run(tmp_path: Path, place: str) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    with place_outside() as outside:
        store = (outside if place == "in a folder of the system" else tmp_path) / "state.db"
        result = await attack(root, [command(f"echo ran; cat {store}* | wc -c; true")], store=store)
        (call,) = result.calls()
        assert "ran\\n0\\n" in call.result, "it runs, and reads nothing of it"


def test_settings_of_git_are_written_as_git_reads_them(tmp_path: Path) -> None:
    (tmp_path / "c").write_text(git_settings([("user.name", "a"), ("safe.directory", "/x"), ("safe.directory", "/y")]))
    read = ["git", "config", "--file", str(tmp_path / "c"), "--list"]
    listed = subprocess.run(read, capture_output=True, text=True, check=True, env={"PATH": os.environ["PATH"]}).stdout
    assert listed.splitlines() == [
        "gc.auto=0",
        "maintenance.auto=false",
        "user.name=a",
        "safe.directory=/x",
        "safe.directory=/y",
    ]
