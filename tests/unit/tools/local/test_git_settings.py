"""Settings of a repository that a command wrote: what may stay."""

import subprocess
from pathlib import Path

import pytest

from wakeful.tools.local.git_settings import harmless, only_follows_branches

USUAL = """[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
[remote "origin"]
\turl = https://example.com/a.git
\tfetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
\tremote = origin
\tmerge = refs/heads/main
"""
PROGRAMS = {
    "plain": "[core]\n\tfsmonitor = ./evil\n",
    "on the line of its section": "[core] fsmonitor = ./evil\n",
    "quoted section": '[filter "x"]\n\tclean = ./evil\n',
    "old section": "[filter.x]\n\tclean = ./evil\n",
    "capitals": "[CORE]\n\tFsMonitor = ./evil\n",
    "continued": "[core]\n\tbare = \\\nfalse\n\tpager = ./evil\n",
    "continued comment": "[core]\n# a \\\n\tpager = ./evil\n",
    "after a quote": '[core]\n\tbare = "false\n\tpager = ./evil"\n[core]\n\tpager = ./evil\n',
    "included": "[include]\n\tpath = ../evil\n",
    "included if": '[includeIf "gitdir:/"]\n\tpath = ../evil\n',
    "an update that is a command": '[submodule "x"]\n\tupdate = !./evil\n',
    "a remote's own program": '[remote "origin"]\n\tuploadpack = ./evil\n',
    "another address": '[url "ext::./evil"]\n\tinsteadOf = https://\n',
    "files somewhere else": "[core]\n\tworktree = /evil\n",
    "alias": "[alias]\n\tstatus = !./evil\n",
    "with a carriage return": "[core]\r\n\tpager = ./evil\r\n",
    "with a form feed": "[core]\n\tbare = false\f\tpager = ./evil\n",
    "with a byte order mark": "\ufeff[core]\n\tpager = ./evil\n",
}


def as_git_reads(tmp_path: Path, text: str) -> list[str]:
    (tmp_path / "config").write_bytes(text.encode())
    line = ["git", "config", "--file", str(tmp_path / "config"), "--no-includes", "--list"]
    return subprocess.run(line, capture_output=True, text=True, check=False).stdout.splitlines()


@pytest.mark.parametrize("way", PROGRAMS)
def test_nothing_that_names_a_program_stays_however_it_is_written(tmp_path: Path, way: str) -> None:
    filtered = harmless(USUAL + PROGRAMS[way])
    assert not any("evil" in line for line in as_git_reads(tmp_path, filtered.text))
    assert filtered.left_out
    assert set(as_git_reads(tmp_path, USUAL)) <= set(as_git_reads(tmp_path, filtered.text)), "the rest stays"
    assert not only_follows_branches(USUAL, USUAL + PROGRAMS[way])
    assert not only_follows_branches(USUAL, PROGRAMS[way] + USUAL)


def test_settings_that_git_itself_writes_stay(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path / "up")], check=True)
    subprocess.run(
        ["git", "clone", "-q", str(tmp_path / "up"), str(tmp_path / "down")], check=True, capture_output=True
    )
    for repository in ("up", "down"):
        text = (tmp_path / repository / ".git/config").read_text()
        assert harmless(text) == (text, ())


def test_what_a_branch_follows_may_change_to_a_remote_that_has_a_name() -> None:
    more = '[branch "x"]\n\tremote = origin\n\tmerge = refs/heads/x\n'
    assert only_follows_branches(USUAL, USUAL + more)
    assert only_follows_branches(USUAL + more, USUAL)
    assert only_follows_branches(USUAL, USUAL)
    assert not only_follows_branches(USUAL, USUAL + more.replace("= origin", "= https://example.com/elsewhere.git"))
    assert not only_follows_branches(USUAL, USUAL.replace("example.com/a", "example.com/elsewhere"))
    assert not only_follows_branches(USUAL, USUAL.replace("\tbare = false", '[branch "x"]\n\tbare = false'))
