"""A hostile command and files: what is outside cannot be written, what is secret cannot be read, git cannot be planted.

Every attempt is also made without a sandbox, where it succeeds: the attempt is real.
"""

import os
import subprocess
from pathlib import Path

import pytest

from kit.gates.confined_commands import place_outside, said, sandbox, sh

CANARY = "canary-7f3a"
CONFINED = ["bubblewrap", "landlock"]


@pytest.mark.parametrize("mode", CONFINED)
async def test_nothing_outside_the_workspace_is_written(tmp_path: Path, mode: str) -> None:
    with place_outside() as outside:
        attempts = {
            "absolute": f"echo x > {outside}/absolute",
            "dots": f"echo x > ./{os.path.relpath(outside, tmp_path)}/dots",
            "through-a-link": f"ln -s {outside} link && echo x > link/through-a-link",
            "hard-link": f"echo x > own && ln own {outside}/hard-link",
            "moved": f"echo x > own2 && mv own2 {outside}/moved",
        }
        for name, attempt in attempts.items():
            ended = await sh(sandbox(tmp_path, mode), attempt)
            assert ended.exit_status != 0, name
            assert list(outside.iterdir()) == [], name
        (tmp_path / "link").unlink()
        for name in ("absolute", "dots", "through-a-link"):
            await sh(sandbox(tmp_path, "not_enforced"), attempts[name])
            assert (outside / name).exists(), "without a sandbox it is written"


@pytest.mark.parametrize("mode", CONFINED)
async def test_a_link_that_is_swapped_while_it_is_written_to_leads_nowhere(tmp_path: Path, mode: str) -> None:
    with place_outside() as outside:
        swap = (
            "mkdir -p there; i=0\n"
            "(while :; do rm -rf way; ln -s there way; rm -rf way; "
            f"ln -s {outside} way; done) 2>/dev/null & swapper=$!\n"
            "while [ $i -lt 300 ]; do i=$((i+1)); echo x > way/escaped$i; done 2>/dev/null\n"
            "kill $swapper; echo tried $i"
        )
        ended = await sh(sandbox(tmp_path, mode), swap)
        assert "tried 300" in said(ended)
        assert list(outside.iterdir()) == []
        await sh(sandbox(tmp_path, "not_enforced"), f"rm -rf way; ln -s {outside} way; echo x > way/escaped")
        assert (outside / "escaped").exists()


@pytest.mark.parametrize("mode", CONFINED)
async def test_secrets_in_the_home_and_of_the_runtime_are_not_readable(tmp_path: Path, mode: str) -> None:
    with place_outside() as home:
        secret = {
            ".ssh/id_ed25519",
            ".aws/credentials",
            ".netrc",
            ".config/gh/hosts.yml",
            ".mozilla/firefox/logins.json",
        }
        secret |= {"state/wakeful.db", "notes/hidden-by-the-owner"}
        for name in secret:
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(CANARY)
        environ = {"PATH": os.environ["PATH"], "HOME": str(home), "WAKEFUL_HOME": str(home / "state")}
        hidden = (str(home / "notes/hidden-by-the-owner"),)
        look = "; ".join(f"cat {home}/{name}" for name in sorted(secret))
        look += f"; cat /proc/1/root{home}/.ssh/id_ed25519; ls -R {home}/.ssh; cp -r {home}/.aws stolen"
        ended = await sh(sandbox(tmp_path, mode, environ, hidden=hidden), look)
        assert CANARY not in said(ended)
        assert "id_ed25519\n" not in ended.stdout.data.decode()
        assert not any(path.read_text() == CANARY for path in tmp_path.rglob("*") if path.is_file())
        ended = await sh(sandbox(tmp_path, "not_enforced", environ, hidden=hidden), look)
        assert said(ended).count(CANARY) >= len(secret), "without a sandbox they are read"


async def test_the_shadow_file_is_hidden_from_a_runtime_that_runs_as_root(tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root could read it anyway")
    for mode in CONFINED:
        assert (await sh(sandbox(tmp_path, mode), "cat /etc/shadow")).exit_status != 0
    assert (await sh(sandbox(tmp_path, "not_enforced"), "test -r /etc/shadow")).exit_status == 0


def repository(root: Path) -> None:
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    for key, value in {"user.email": "a@example.com", "user.name": "a"}.items():
        subprocess.run(["git", "-C", str(root), "config", key, value], check=True)


PLANTS = {
    "hook": "printf '#!/bin/sh\\n' > .git/hooks/pre-commit",
    "new hook folder": "rm -rf .git/hooks && mkdir .git/hooks && touch .git/hooks/pre-commit",
    "git config": "git config core.fsmonitor ./evil",
    "config": "printf '[core]\\nfsmonitor = ./evil\\n' >> .git/config",
    "config replaced": "cp .git/config c && echo >> c && mv c .git/config",
    "repository moved away": "mv .git old && mkdir -p .git/hooks && touch .git/hooks/pre-commit",
    "repository removed": "rm -rf .git; mkdir -p .git/hooks && touch .git/hooks/pre-commit",
    "sent elsewhere": "mkdir other && rm -f .git/commondir && echo ../other > .git/commondir",
    "ours": "mkdir -p .wakeful && touch .wakeful/settings",
}


@pytest.mark.parametrize("plant", PLANTS)
async def test_nothing_can_be_planted_that_git_or_the_runtime_would_run_later(tmp_path: Path, plant: str) -> None:
    inside, free = tmp_path / "inside", tmp_path / "free"
    for root in (inside, free):
        root.mkdir()
        repository(root)
    before = (inside / ".git/config").read_bytes(), sorted((inside / ".git/hooks").iterdir())
    where = sandbox(inside, "bubblewrap")
    assert (await sh(where, PLANTS[plant])).exit_status != 0
    assert ((inside / ".git/config").read_bytes(), sorted((inside / ".git/hooks").iterdir())) == before
    where.close()
    assert not (inside / ".wakeful").exists()
    assert not (inside / ".git/commondir").exists()
    assert (await sh(sandbox(free, "not_enforced"), PLANTS[plant])).exit_status == 0, "without a sandbox it is planted"


async def test_git_itself_works_in_the_sandbox(tmp_path: Path) -> None:
    repository(tmp_path)
    where = sandbox(tmp_path, "bubblewrap")
    ended = await sh(
        where, "echo x > file && git add file && git commit -qm first && git checkout -qb other && git log"
    )
    assert (ended.exit_status, said(ended).count("first")) == (0, 1), said(ended)
    outside = subprocess.run(["git", "status", "--short"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert outside.stdout == "", "git outside sees nothing of what was put there"


async def test_where_there_is_no_repository_none_comes_to_be_and_nothing_is_left(tmp_path: Path) -> None:
    where = sandbox(tmp_path, "bubblewrap")
    for _ in range(2):  # the second time there is a stand-in already
        ended = await sh(where, "git init -q . ; mkdir .git ; touch .git/HEAD; echo x > file")
        assert list((tmp_path / ".git").iterdir()) == []
        assert ended.exit_status == 0
    where.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]
    assert (await sh(sandbox(tmp_path, "not_enforced"), "git init -q .")).exit_status == 0


async def test_a_submodules_hooks_and_configuration_are_held_too(tmp_path: Path) -> None:
    repository(tmp_path)
    inner = tmp_path / ".git/modules/lib"
    subprocess.run(["git", "init", "-q", "--bare", str(inner)], check=True)
    where = sandbox(tmp_path, "bubblewrap")
    assert (await sh(where, "touch .git/modules/lib/hooks/post-checkout")).exit_status != 0
    assert (await sh(where, "echo >> .git/modules/lib/config")).exit_status != 0
    assert (await sh(where, "mv .git/modules/lib .git/modules/old")).exit_status != 0


async def test_a_database_in_the_workspace_and_its_journals_are_out_of_reach(tmp_path: Path) -> None:
    from wakeful.sandbox.places import store_files

    (tmp_path / "wakeful.db").write_text(CANARY)
    (tmp_path / "wakeful.db-wal").write_text(CANARY)
    (tmp_path / "wakeful.db.owners").mkdir()
    (tmp_path / "wakeful.db.owners/own_1.lock").write_text(CANARY)
    hidden = store_files(str(tmp_path / "wakeful.db"))
    attack = "cat wakeful.db*; echo x > wakeful.db; echo x > wakeful.db-journal; rm -f wakeful.db-wal; mv wakeful.db d"
    attack += "; cat wakeful.db.owners/*; rm -rf wakeful.db.owners"
    ended = await sh(sandbox(tmp_path, "bubblewrap", hidden=hidden), attack)
    assert ended.exit_status != 0
    assert CANARY not in said(ended)
    assert (tmp_path / "wakeful.db").read_text() == (tmp_path / "wakeful.db-wal").read_text() == CANARY
    assert (tmp_path / "wakeful.db-journal").read_bytes() == b""
    assert (tmp_path / "wakeful.db.owners/own_1.lock").read_text() == CANARY, "who is alive is not for a command to say"
    ended = await sh(sandbox(tmp_path, "not_enforced", hidden=hidden), "cat wakeful.db")
    assert CANARY in said(ended)


async def test_a_protected_place_that_is_a_link_is_refused_not_followed(tmp_path: Path) -> None:
    from wakeful.sandbox.confinement import NotConfined

    repository(tmp_path)
    (tmp_path / ".git/hooks").rename(tmp_path / "elsewhere")
    (tmp_path / ".git/hooks").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotConfined, match="hooks is a link"):
        await sh(sandbox(tmp_path, "bubblewrap"), "true")
