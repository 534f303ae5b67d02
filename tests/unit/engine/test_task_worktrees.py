"""Worktrees of tasks: one for each, with a branch of its own; what becomes of them is the task's affair."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kit.runs.repositories import branches, commit, git, repository
from wakeful import Agent, Runtime
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import InvalidRequest
from wakeful.engine.run_request import Engine
from wakeful.engine.worktrees import clean_up_task_worktree, create_task_worktree, task_workspace_events
from wakeful.ports.workspaces import WorktreeRow
from wakeful.testing import scripted
from wakeful.workspaces import workspace_id


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo")


@pytest.fixture
async def rt(tmp_path: Path, repo: Path) -> AsyncIterator[Runtime]:
    agents = [Agent(name, scripted(["done"], leftover="ignore"), workspace=repo) for name in ("boss", "child")]
    async with Runtime(tmp_path / "home", agents=agents) as runtime:
        yield runtime


async def tree_of(engine: Engine, repo: Path, task_id: str) -> WorktreeRow:
    anchor = str(repo)
    return await create_task_worktree(
        engine, "boss", task_id, workspace_id=workspace_id(anchor), workspace_anchor=anchor, label="Part one"
    )


@pytest.mark.spec("HOL-TREE-05", "HOL-TREE-07", "HOL-CMD-33")
async def test_each_task_has_a_worktree_of_its_own_which_goes_when_it_is_clean(rt: Runtime, repo: Path) -> None:
    engine = rt._here.engine
    one, two = await tree_of(engine, repo, "task_1"), await tree_of(engine, repo, "task_2")
    assert one.worktree_path != two.worktree_path
    assert one.worktree_branch != two.worktree_branch
    assert one.worktree_branch.startswith("wakeful/part-one-")
    assert await tree_of(engine, repo, "task_1") == one, "asked for again, it is the same"
    cleaned = await clean_up_task_worktree(engine, "task_1")
    assert cleaned is not None
    assert (cleaned.cleanup_status, cleaned.cleanup_reason) == ("cleaned", "clean_worktree")
    assert (Path(one.worktree_path).exists(), branches(repo)) == (False, sorted(["main", two.worktree_branch]))
    assert (one.agent_id, one.task_id) == ("boss", "task_1"), "it belongs to the supervising task"
    assert await engine.store.worktrees_of("child") == []
    assert await clean_up_task_worktree(engine, "task_9") is None


@pytest.mark.spec("HOL-TREE-06", "HOL-TREE-08", "HOL-TREE-09", "HOL-EXEC-14")
async def test_a_worktree_with_changes_is_kept_and_told_of_and_no_task_waits_for_it(rt: Runtime, repo: Path) -> None:
    engine = rt._here.engine
    tree = await tree_of(engine, repo, "task_1")
    Path(tree.worktree_path, "work.txt").write_text("work\n")
    kept = await clean_up_task_worktree(engine, "task_1")
    assert kept is not None
    assert (kept.cleanup_status, kept.cleanup_reason, kept.changed_files) == (
        "retained",
        "changed_files",
        ("work.txt",),
    )
    assert (kept.worktree_path, kept.worktree_branch) == (tree.worktree_path, tree.worktree_branch)
    events = [entry.fact.event.kind for entry in await engine.store.read("boss")]
    assert events[-2:] == ["worktree.cleanup_requested", "worktree.retained"]
    (shown,) = (await rt.workspaces("boss")).worktrees
    assert (shown.task_id, shown.state) == ("task_1", "kept")
    commit(tree.worktree_path, "work")
    git(repo, "merge", "-q", tree.worktree_branch)
    assert (await rt.clean_up_worktree("boss", tree.worktree_id)).worktrees == ()


async def test_the_child_works_there_and_leaving_it_removes_nothing(rt: Runtime, repo: Path) -> None:
    engine = rt._here.engine
    tree = await tree_of(engine, repo, "task_1")
    events = task_workspace_events(tree, "parent")
    await engine.store.admit("child", [Fact(event, engine.clock.now(), "main") for event in events])
    known = await rt.workspaces("child")
    assert (known.execution.execution_root, known.execution.workspace_anchor) == (tree.worktree_path, str(repo))
    assert known.worktree_session is None
    await rt.use_workspace("child", workspace_id="agent_home")
    await rt.settled()
    assert Path(tree.worktree_path).is_dir()


async def test_what_is_no_repository_is_refused(rt: Runtime, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    with pytest.raises(InvalidRequest, match="cannot be isolated"):
        await tree_of(rt._here.engine, plain, "task_1")
