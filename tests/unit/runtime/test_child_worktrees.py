"""Where child agents work: where their parent works, or in a worktree of the task that supervises them."""

from pathlib import Path
from typing import Any

import pytest

from kit.runs.child_agents import (
    calls,
    family,
    heard,
    name_of,
    of_kind,
    on_task,
    only_task,
    refusals,
    spawning,
    tool_results,
    until_over,
)
from kit.runs.repositories import branches, commit, git, repository
from wakeful import Runtime
from wakeful.contracts.events import ContextResolved, MessageAdmitted, WorktreeRetained
from wakeful.errors import InvalidRequest
from wakeful.ports import ModelRequest, Store
from wakeful.workspaces import workspace_id


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo")


def parent(*replies: Any, **arguments: Any) -> Any:
    return spawning(*replies, workspace_mode="worktree", **arguments)


def writes(request: ModelRequest) -> Any:
    """A child that leaves a file behind."""
    return calls("write_file", path="hole.txt", content="deep\n") if not request.answered else "A hole."


def waits(request: ModelRequest) -> Any:
    return calls("wait_for", reason="rain", wake="external")


def store_of(rt: Runtime) -> Store:
    return rt._here.engine.store


async def places(store: Store, agent: str) -> list[str]:
    """Where the turns of an agent worked."""
    return [each.workspace_refs[0].ref for each in await of_kind(store, agent, ContextResolved)]


async def begun(rt: Runtime) -> Store:
    await rt.answer(await rt.send("ops", "Have a hole dug."))
    await rt.settled()
    return store_of(rt)


@pytest.mark.spec("HOL-TREE-04", "HOL-TREE-05", "HOL-TREE-07", "HOL-CMD-22")
async def test_a_child_works_in_a_worktree_of_its_task_which_goes_when_nothing_is_in_it(
    tmp_path: Path, repo: Path
) -> None:
    agent = family(parent(on_task("task_output"), on_task("task_status"), "done"), workspace=repo)
    async with Runtime(tmp_path / "home", agents=[agent]) as rt:
        store = await begun(rt)
        task = await only_task(store)
        (tree,) = await store.worktrees_of_task(task.task_id)
        assert (tree.agent_id, tree.worktree_branch.startswith("wakeful/dig-a-hole-")) == ("ops", True)
        active = await store.active_workspace(name_of(task))
        assert active is not None
        assert (active.execution_root, active.workspace_anchor) == (tree.worktree_path, str(repo))
        assert active.worktree_session is None, "the worktree is the task's"
        assert await places(store, name_of(task)) == [tree.worktree_path]
        _, output, status = await tool_results(store)
        shown = status["task"]
        assert (task.recovered.child.workspace_mode, shown["workspace_mode"]) == ("worktree", "worktree")  # type: ignore[union-attr]
        assert shown["child_supervision"]["worktree"] == output["task"]["child_supervision"]["worktree"]
        assert shown["child_supervision"]["worktree"] | {"worktree_id": "", "changed_files": []} == {
            "worktree_id": "",
            "worktree_path": tree.worktree_path,
            "worktree_branch": tree.worktree_branch,
            "base_branch": "main",
            "state": "removed",
            "cleanup_status": "cleaned",
            "cleanup_reason": "clean_worktree",
            "changed_files": [],
        }
    assert not Path(tree.worktree_path).exists()
    assert branches(repo) == ["main"]


@pytest.mark.spec("HOL-TREE-06", "HOL-TREE-08", "HOL-TREE-09")
async def test_a_worktree_with_work_is_kept_and_the_end_of_the_task_says_where_it_is(
    tmp_path: Path, repo: Path
) -> None:
    agent = family(parent("It digs."), writes, workspace=repo)
    async with Runtime(tmp_path / "home", agents=[agent]) as rt:
        store = await begun(rt)
        task = await only_task(store)
        (tree,) = await store.worktrees_of_task(task.task_id)
        assert (task.status, tree.state, tree.changed_files) == ("completed", "kept", ("hole.txt",))
        assert (Path(tree.worktree_path) / "hole.txt").read_text() == "deep\n"
        assert not (repo / "hole.txt").exists(), "its parent's folder is untouched"
        (told,) = [each for each in await of_kind(store, "ops", MessageAdmitted) if each.message_kind == "task_result"]
        assert f"its worktree {tree.worktree_path} on branch {tree.worktree_branch} was kept" in told.item.text
        assert len(await of_kind(store, "ops", WorktreeRetained)) == 1
        assert [each.worktree_id for each in (await rt.workspaces("ops")).worktrees] == [tree.worktree_id]
        commit(tree.worktree_path, "hole")
        git(repo, "merge", "-q", tree.worktree_branch)
        assert (await rt.clean_up_worktree("ops", tree.worktree_id)).worktrees == ()


@pytest.mark.spec("HOL-CMD-50")
@pytest.mark.parametrize("how", ["task", "parent"])
async def test_stopping_the_task_or_the_parent_cleans_up_its_worktree(tmp_path: Path, repo: Path, how: str) -> None:
    def asked(request: ModelRequest) -> Any:
        if heard(request)[-1] == "Stop.":
            return on_task("task_stop")(request) if not request.answered else "Stopped."
        return parent("It digs.")(request)

    agent = family(asked, waits, workspace=repo)
    async with Runtime(tmp_path / "home", agents=[agent]) as rt:
        store = await begun(rt)
        (tree,) = await store.worktrees_of_task((await only_task(store)).task_id)
        assert Path(tree.worktree_path).is_dir()
        with pytest.raises(InvalidRequest, match="works in worktree"):
            await rt.clean_up_worktree("ops", tree.worktree_id)
        if how == "task":
            await rt.answer(await rt.send("ops", "Stop."))
        else:
            await rt.stop("ops")
        await rt.settled()
        assert (await until_over(store)).status == "cancelled"
        (tree,) = await store.worktrees_of_task(tree.task_id)
        assert (tree.state, tree.cleanup_status) == ("removed", "cleaned")
    assert branches(repo) == ["main"]


async def test_a_place_that_is_no_repository_ends_the_task_before_a_child_is_made(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    agent = family(parent("It digs."), workspace=tmp_path / "plain")
    async with Runtime(tmp_path / "home", agents=[agent]) as rt:
        store = await begun(rt)
        task = await only_task(store)
        assert (task.status, (task.failure or {})["kind"]) == ("failed", "child_not_made")
        assert "cannot be isolated" in task.result_summary
        assert [row.agent_id for row in await store.runtime_agents()] == ["ops"]


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ({}, {"initial_message": "Dig."}),
        ({"workspace": "."}, {"preset": "public_named", "agent_id": "digger"}),
    ],
    ids=["no files", "public"],
)
async def test_a_worktree_of_nothing_and_for_a_public_agent_are_refused_by_field(
    tmp_path: Path, repo: Path, options: dict[str, Any], arguments: dict[str, Any]
) -> None:
    def asks(request: ModelRequest) -> Any:
        return calls("spawn_agent", workspace_mode="worktree", **arguments) if not request.answered else "No."

    given = {"workspace": repo} if options else {}
    async with Runtime(tmp_path / "home", agents=[family(asks, spawn="public_named", **given)]) as rt:
        store = await begun(rt)
        assert [(each["error"], each["field"]) for each in await refusals(store)] == [
            ("invalid_input", "workspace_mode")
        ]
        assert await store.tasks_of("ops") == []


# --- what is inherited -----------------------------------------------------------------------------------------------


async def test_a_child_works_where_the_turn_of_its_parent_works(tmp_path: Path, repo: Path) -> None:
    other = repository(tmp_path / "other")
    move = calls("use_workspace", workspace_id=workspace_id(str(other)), mode="isolated")
    steps = [move, calls("spawn_agent", initial_message="Dig a hole."), "It digs."]

    def moving(request: ModelRequest) -> Any:
        return "told" if "Task task_" in heard(request)[-1] else steps[request.answered]

    async with Runtime(tmp_path / "home", agents=[family(moving, waits, workspace=repo)]) as rt:
        await rt.attach_workspace("ops", str(other))
        store = await begun(rt)
        mine, child = await store.active_workspace("ops"), name_of(await only_task(store))
        its = await store.active_workspace(child)
        assert mine is not None
        assert its is not None
        assert its.execution_root == mine.execution_root
        assert (mine.worktree_id is not None, its.worktree_id) == (True, None), "the worktree stays its parent's"
        await rt.use_workspace("ops", workspace_id="agent_home")
        await rt.settled()
        assert Path(its.execution_root).is_dir(), "it stays while a child works in it"
        rows = await store.attached_workspaces(child)
        assert {row.workspace_anchor for row in rows} == {str(repo), str(other)}


@pytest.mark.spec("HOL-DELEG-11")
async def test_a_public_agent_has_the_workspaces_of_its_maker_and_not_its_place(tmp_path: Path, repo: Path) -> None:
    move = calls("use_workspace", workspace_id=workspace_id(str(repo)), mode="isolated")
    make = calls("spawn_agent", preset="public_named", agent_id="digger", initial_message="Dig a hole.")
    steps = [move, make, "done"]

    def maker(request: ModelRequest) -> Any:
        return steps[request.answered]

    agent = family(maker, workspace=repo, spawn="public_named")
    async with Runtime(tmp_path / "home", agents=[agent]) as rt:
        store = await begun(rt)
        rows = await store.attached_workspaces("digger")
        assert [row.workspace_anchor for row in rows] == [str(repo)]
        assert await store.active_workspace("digger") is None
        mine = await store.active_workspace("ops")
        assert mine is not None
        assert mine.worktree_session is not None


async def test_a_workspace_that_the_parent_loses_is_lost_by_its_child(tmp_path: Path, repo: Path) -> None:
    other = repository(tmp_path / "other")
    move = calls("use_workspace", workspace_id=workspace_id(str(other)))

    def child(request: ModelRequest) -> Any:
        return waits(request) if len(heard(request)) == 1 else "A hole."

    steps = [move, calls("spawn_agent", initial_message="Dig a hole."), "It digs."]

    def moving(request: ModelRequest) -> Any:
        return "told" if "Task task_" in heard(request)[-1] else steps[request.answered]

    async with Runtime(tmp_path / "home", agents=[family(moving, child, workspace=repo)]) as rt:
        await rt.attach_workspace("ops", str(other))
        store = await begun(rt)
        task = await only_task(store)
        await rt.use_workspace("ops", workspace_id=workspace_id(str(repo)))
        await rt.detach_workspace("ops", workspace_id(str(other)))
        await rt._here.tasks.children.say(task.task_id, "Go on.", behind="operator_instruction", key="one")
        await rt.settled()
        assert [row.workspace_anchor for row in await store.attached_workspaces(name_of(task))] == [str(repo)]
        before, after = await places(store, name_of(task))
        assert (before, after == before) == (str(other), False)
