"""`wakeful workspace`: where an agent works, from a terminal, without the process that runs it."""

import asyncio
import json
from pathlib import Path

import pytest

from kit.runs.repositories import repository
from kit.surfaces.command_line import Wakeful
from wakeful import Agent, Runtime
from wakeful.testing import scripted


@pytest.fixture
def repo(folder: Path) -> Path:
    """A repository, and a home in which a runtime was at work once."""

    async def once() -> None:
        async with Runtime(folder / "home", agents=[Agent("ops", scripted(["fine"], leftover="ignore"))]):
            pass

    asyncio.run(once())
    return repository(folder / "shop")


def test_a_workspace_is_attached_used_left_and_detached(wakeful: Wakeful, repo: Path, folder: Path) -> None:
    assert wakeful("workspace", "attach", "ops", "shop").out == "agent ops may work in shop\n"
    known = json.loads(wakeful("workspace", "list", "ops", "--json").out)
    name = known["attached_workspaces"][1]["workspace_id"]
    assert (known["active_workspace_id"], known["attached_workspaces"][1]["workspace_anchor"]) == (
        "agent_home",
        str(repo),
    )
    assert wakeful("workspace", "use", "ops", name, "--isolated", "--label", "tea").code == 0
    known = json.loads(wakeful("workspace", "list", "ops", "--json").out)
    session = known["worktree_session"]
    assert session["worktree_branch"].startswith("wakeful/tea-")
    Path(session["worktree_path"], "tea.txt").write_text("tea\n")
    refused = wakeful("workspace", "detach", "ops", name)
    assert refused.code == 2
    assert "agent_home" in refused.err
    assert wakeful("workspace", "use", "ops", "agent_home").code == 0
    (tree,) = json.loads(wakeful("workspace", "list", "ops", "--json").out)["worktrees"]
    told = wakeful("workspace", "clean", "ops", tree["worktree_id"])
    assert told.out == f"{tree['worktree_path']} is kept: changed files: 1\n"
    assert f"wakeful workspace clean ops {tree['worktree_id']}" in wakeful("workspace", "ops").out
    Path(session["worktree_path"], "tea.txt").unlink()
    assert wakeful("workspace", "clean", "ops", tree["worktree_id"]).out == f"{tree['worktree_id']} is removed\n"
    assert wakeful("workspace", "detach", "ops", name).out == f"{name} is detached from agent ops\n"
    assert repo.is_dir()


@pytest.mark.spec("HOL-EXEC-11")
def test_the_list_fits_80_columns_and_names_each_of_the_five_limits(
    wakeful: Wakeful, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    wakeful("workspace", "attach", "ops", "shop")
    wakeful("workspace", "use", "ops", "--path", "shop", "--isolated")
    shown = wakeful("workspace", "ops").out
    words = " ".join(shown.split())
    level = json.loads(wakeful("workspace", "ops", "--json").out)["execution"]["policy"]
    held = level["process_execution"]
    assert f"commands ({level['backend']}):" in words
    for name, field in (
        ("path", "path_confinement"),
        ("write", "write_confinement"),
        ("network", "network_confinement"),
        ("secrets", "secret_isolation"),
        ("child processes", "child_process_containment"),
    ):
        assert f"{name} {held[field]}" in words
    table = shown.splitlines()[:3]
    assert max(map(len, table)) <= 80


def test_the_home_is_no_workspace_and_neither_is_what_holds_it_or_is_of_the_runtime(
    wakeful: Wakeful, repo: Path, folder: Path
) -> None:
    (folder / "home" / "agents").mkdir(exist_ok=True)
    before = wakeful("workspace", "list", "ops", "--json").out
    for words, told in (
        (("workspace", "attach", "ops", "home"), "is the home of wakeful"),
        (("workspace", "attach", "ops", "."), "holds the home of wakeful"),
        (("workspace", "use", "ops", "--path", "home/agents"), "is a folder of the runtime"),
        (("agent", "create", "new", "--model", "scripted:demo", "--workspace", "home"), "is the home of wakeful"),
    ):
        done = wakeful(*words)
        assert done.code == 2, words
        said = " ".join(done.err.split())
        assert told in said and "folder outside of the home" in said, (words, done.err)
    assert wakeful("workspace", "list", "ops", "--json").out == before
    assert "new" not in wakeful("agent", "list").out
    for fine in (folder / "home" / "agents" / "ops" / "work", folder / "home" / "shop"):
        fine.mkdir(parents=True, exist_ok=True)
        assert wakeful("workspace", "attach", "ops", str(fine)).code == 0, "its own folder, and a project in the home"


def test_wrong_words_are_told_what_would_be_right(wakeful: Wakeful, repo: Path) -> None:
    for words, told in (
        (("attach", "ops", "nowhere"), "Name a folder that exists"),
        (("attach", "nobody", "shop"), "It has: ops"),
        (("use", "ops"), "neither a workspace nor --path was given"),
        (("use", "ops", "agent_home", "--path", "shop"), "a workspace and --path were both given"),
        (("use", "ops", "--path", "shop", "--label", "x"), "--isolated"),
        (("detach", "ops", "ws_9"), "It has: agent_home"),
        (("clean", "ops", "wt_9"), "wakeful workspace list"),
    ):
        done = wakeful("workspace", *words)
        assert done.code == 2, words
        assert told.lower() in " ".join(done.err.split()).lower(), (words, done.err)
