"""Workspaces of agents that live: attached, used, left, over restarts, and when they are gone."""

import asyncio
import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kit.runs.repositories import branches, commit, git, repository
from kit.wires.notice_receiver import passes
from wakeful import Agent, Approve, Runtime, open_store
from wakeful.errors import AgentNotFound, InvalidRequest
from wakeful.ports import ModelRequest
from wakeful.sandbox.level_probe import probe
from wakeful.testing import FixedClock, scripted
from wakeful.views.execution_snapshot import (
    ActiveWorkspaceEntry,
    AgentWorkspaces,
    CommandConfinement,
    WorkspaceRecord,
    execution_snapshot,
)


def calls(name: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": arguments}]}


def writes(path: str, text: str = "x\n") -> dict[str, Any]:
    return calls("write_file", path=path, content=text)


def named(known: AgentWorkspaces, folder: Path) -> WorkspaceRecord:
    return next(each for each in known.attached_workspaces if each.workspace_anchor == str(folder))


class House:
    """A home, a repository, and an agent whose turns follow a script."""

    def __init__(self, root: Path) -> None:
        self.root, self.home = root, root / "home"
        self.repo = repository(root / "repo")
        self.clock = FixedClock(datetime(2040, 1, 1, tzinfo=UTC))
        self.script: list[Any] = ["done"]
        self.prompts: list[str] = []
        self.results: list[str] = []
        self.offered: list[str] = []
        self.history: list[Any] = []

    def agent(self, name: str = "ops", **options: Any) -> Agent[None, str]:
        def reply(request: ModelRequest) -> Any:
            self.prompts.append(request.instructions)
            self.results = [str(item) for item in request.history]
            self.history = list(request.history)
            self.offered = [tool.name for tool in request.tools]
            return self.script[min(request.answered, len(self.script) - 1)]

        return Agent(name, scripted(reply), **options)

    def results_of(self, tool: str) -> list[str]:
        """What calls of a tool told the model."""
        return [item.text for item in self.history if item.role == "tool" and item.name == tool]

    def runtime(self, *agents: Agent[Any, Any]) -> Runtime:
        return Runtime(self.home, agents=agents, clock=self.clock)

    async def run(self, rt: Runtime, *script: Any, agent: str = "ops") -> str:
        self.script = [*script, "done"]
        return str((await rt.answer(await rt.send(agent, "Go on."))).output)


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    monkeypatch.setenv("WAKEFUL_HOME", str(tmp_path / "wakeful-home"))
    return House(tmp_path)


@pytest.mark.spec("HOL-EXEC-04", "HOL-WS-06", "HOL-STATE-07")
async def test_an_agent_without_a_project_works_in_its_home_which_cannot_be_detached(house: House) -> None:
    async with house.runtime(house.agent()) as rt:
        known = await rt.workspaces("ops")
        assert known.active_workspace_id == "agent_home"
        assert [each.workspace_id for each in known.attached_workspaces] == ["agent_home"]
        assert (known.cwd, known.worktree_session) == (known.active_workspace_entry.execution_root, None)
        with pytest.raises(InvalidRequest, match="agent_home cannot be detached"):
            await rt.detach_workspace("ops", "agent_home")


@pytest.mark.spec("HOL-EXEC-05", "HOL-EXEC-06", "HOL-EXEC-01")
async def test_the_workspace_of_a_definition_is_attached_and_used(house: House) -> None:
    async with house.runtime(house.agent(workspace=house.repo)) as rt:
        await house.run(rt, writes("a.txt"))
        known = await rt.workspaces("ops")
    assert (house.repo / "a.txt").read_text() == "x\n"
    snapshot = known.execution
    assert (snapshot.workspace_anchor, snapshot.execution_root) == (str(house.repo), str(house.repo))
    assert snapshot.projection_kind == "canonical_root"
    assert [(each.active, each.attached_by) for each in known.attached_workspaces] == [
        (False, "runtime"),
        (True, "definition"),
    ]


@pytest.mark.spec("HOL-WS-01")
@pytest.mark.parametrize("given", [{}, {"path": "x", "workspace_id": "agent_home"}])
async def test_exactly_one_of_path_and_workspace_id_is_taken(house: House, given: dict[str, Any]) -> None:
    async with house.runtime(house.agent(workspace=house.repo)) as rt:
        with pytest.raises(InvalidRequest, match="takes a path or a workspace_id"):
            await rt.use_workspace("ops", **given)
        await house.run(rt, calls("use_workspace", **given))
        assert "Give exactly one of them" in house.results[-1]


@pytest.mark.spec("HOL-WS-02", "HOL-WS-04", "HOL-EXEC-07")
async def test_a_path_is_attached_and_used_and_stays_so_over_a_restart(house: House) -> None:
    other = house.root / "other"
    (other / "src").mkdir(parents=True)
    agent = house.agent(workspace=house.repo)
    async with house.runtime(agent) as rt:
        used = await rt.use_workspace("ops", other / "src")
        anchor = other / "src"
        assert (used.execution.workspace_anchor, used.cwd) == (str(anchor), str(anchor))
        inside = await rt.use_workspace("ops", house.repo, cwd=".")
        assert inside.cwd == str(house.repo)
        with pytest.raises(InvalidRequest, match="is not a folder in"):
            await rt.use_workspace("ops", house.repo, cwd="..")
        used = await rt.use_workspace("ops", workspace_id=used.active_workspace_id)
    async with house.runtime(agent) as rt:
        again = await rt.workspaces("ops")
        assert again.active_workspace_entry == used.active_workspace_entry
        await house.run(rt, writes("b.txt"))
        assert (anchor / "b.txt").exists()
        await rt.use_workspace("ops", workspace_id="agent_home")
        await house.run(rt, writes("c.txt"))
        home = Path((await rt.workspaces("ops")).cwd)
    assert (home / "c.txt").exists()


async def test_commands_begin_in_the_folder_that_was_chosen(house: House) -> None:
    (house.repo / "src").mkdir()
    async with house.runtime(house.agent(workspace=house.repo)) as rt:
        await rt.use_workspace("ops", house.repo / "src")
        assert (await rt.workspaces("ops")).execution.workspace_anchor == str(house.repo)
        await house.run(rt, calls("exec_command", cmd="pwd"))
    assert f"{house.repo}/src" in house.results[-1]


@pytest.mark.spec("HOL-WS-07", "HOL-WS-08", "HOL-WS-09", "HOL-WS-11")
async def test_detaching_takes_a_binding_and_nothing_from_the_disk(house: House) -> None:
    other = house.root / "other"
    other.mkdir()
    async with house.runtime(house.agent(workspace=house.repo), house.agent("dev", workspace=other)) as rt:
        name = named(await rt.attach_workspace("ops", other), other).workspace_id
        await rt.use_workspace("ops", workspace_id=name)
        with pytest.raises(InvalidRequest, match="works in") as refused:
            await rt.detach_workspace("ops", name)
        assert "agent_home" in refused.value.hint
        left = await rt.use_workspace("ops", workspace_id="agent_home")
        assert [each.workspace_id for each in left.attached_workspaces].count(name) == 1
        assert name not in {each.workspace_id for each in (await rt.detach_workspace("ops", name)).attached_workspaces}
        assert (await rt.workspaces("dev")).active_workspace_id == name, "of that one agent alone"
        with pytest.raises(InvalidRequest, match="has no workspace"):
            await rt.detach_workspace("ops", name)
    assert other.is_dir()


@pytest.mark.spec("HOL-WS-10")
async def test_a_workspace_that_is_gone_can_be_detached(house: House) -> None:
    other = house.root / "other"
    other.mkdir()
    async with house.runtime(house.agent(workspace=house.repo)) as rt:
        name = named(await rt.attach_workspace("ops", other), other).workspace_id
        other.rmdir()
        assert named(await rt.workspaces("ops"), other).state == "missing"
        with pytest.raises(InvalidRequest, match="is not there"):
            await rt.use_workspace("ops", workspace_id=name)
        assert len((await rt.detach_workspace("ops", name)).attached_workspaces) == 2


async def test_bad_input_is_told_what_is_wrong_and_changes_nothing(house: House) -> None:
    async with house.runtime(house.agent(workspace=house.repo)) as rt:
        before = await rt.workspaces("ops")
        with pytest.raises(AgentNotFound):
            await rt.attach_workspace("nobody", house.repo)
        with pytest.raises(InvalidRequest, match="cannot be a workspace"):
            await rt.attach_workspace("ops", house.root / "missing")
        with pytest.raises(InvalidRequest, match="not a folder"):
            await rt.attach_workspace("ops", house.repo / "README.md")
        with pytest.raises(InvalidRequest, match="is in no git repository"):
            (house.root / "plain").mkdir()
            await rt.use_workspace("ops", house.root / "plain", mode="isolated")
        with pytest.raises(InvalidRequest, match="agent_home takes no mode"):
            await rt.use_workspace("ops", workspace_id="agent_home", mode="isolated")
        after = await rt.workspaces("ops")
    assert after.active_workspace_entry == before.active_workspace_entry


async def test_the_home_of_this_runtime_is_no_workspace_whichever_home_the_installation_has(house: House) -> None:
    (house.home / "secret").mkdir(parents=True)
    for folder, how in (
        (house.home, "is the home of wakeful"),
        (house.root, "holds the home of wakeful"),
        (house.home / "secret", "is a folder of the runtime"),
    ):
        async with house.runtime(house.agent()) as rt:
            with pytest.raises(InvalidRequest, match=how):
                await rt.attach_workspace("ops", folder)
            with pytest.raises(InvalidRequest, match=how):
                await rt.use_workspace("ops", folder)
            assert [each.workspace_id for each in (await rt.workspaces("ops")).attached_workspaces] == ["agent_home"]
        with pytest.raises(InvalidRequest, match=how):
            async with house.runtime(house.agent(workspace=folder)):
                raise AssertionError("an agent that works there was taken")


@pytest.mark.spec("HOL-EXEC-02", "HOL-EXEC-10", "HOL-EXEC-13")
async def test_the_policy_claims_what_holds_on_this_machine_and_no_more(house: House) -> None:
    async with house.runtime(house.agent(workspace=house.repo)) as rt:
        policy = (await rt.workspaces("ops")).execution.policy
    is_bare = probe().mode == "not_enforced"
    held = policy.process_execution
    assert policy.backend == ("host_local" if is_bare else "sandboxed")
    assert {held.path_confinement, held.network_confinement, held.secret_isolation} == {
        "not_enforced" if is_bare else "hard_enforced"
    }
    assert policy.resource_authority.process_execution == "runtime_shaped"


async def test_a_network_that_was_granted_is_held_by_nothing(house: House) -> None:
    async with house.runtime(house.agent(workspace=house.repo, sandbox={"network": "full"})) as rt:
        held = (await rt.workspaces("ops")).execution.policy.process_execution
    assert held.network_confinement == "not_enforced"


LIMITS = (
    "path_confinement",
    "write_confinement",
    "network_confinement",
    "secret_isolation",
    "child_process_containment",
)


@pytest.mark.parametrize(
    ("confined", "weak"),
    [
        (CommandConfinement("bubblewrap", "", False), {}),
        (CommandConfinement("bubblewrap", "", True), {"network_confinement": "not_enforced"}),
        (CommandConfinement("bubblewrap", "", None), {"network_confinement": "runtime_shaped"}),
        (
            CommandConfinement("landlock", "", False),
            {"write_confinement": "runtime_shaped", "child_process_containment": "runtime_shaped"},
        ),
        (CommandConfinement("not_enforced", "no bwrap", False), dict.fromkeys(LIMITS, "not_enforced")),
    ],
)
def test_each_level_claims_what_its_kernel_keeps(confined: CommandConfinement, weak: dict[str, str]) -> None:
    entry = ActiveWorkspaceEntry(
        workspace_id="w", workspace_anchor="/w", execution_root="/w", execution_root_id="w", cwd="/w"
    )
    held = execution_snapshot(entry, confined, works_on_files=True).policy.process_execution
    assert {name: getattr(held, name) for name in LIMITS} == dict.fromkeys(LIMITS, "hard_enforced") | weak


# --- isolated ------------------------------------------------------------------------------------------------------


@pytest.mark.spec("HOL-TREE-01", "HOL-TREE-02", "HOL-WS-05", "HOL-EXEC-08")
async def test_isolated_work_does_not_touch_the_workspace(house: House) -> None:
    async with house.runtime(house.agent(workspace=house.repo)) as rt:
        name = (await rt.workspaces("ops")).active_workspace_id
        used = await rt.use_workspace("ops", workspace_id=name, mode="isolated", label="Fix login!")
        await house.run(rt, writes("a.txt"))
    session = used.worktree_session
    assert session is not None
    assert (session.original_working_directory, session.original_branch) == (str(house.repo), "main")
    assert session.worktree_branch.startswith("wakeful/fix-login-")
    assert (used.execution.workspace_id, used.execution.workspace_anchor) == (name, str(house.repo))
    assert (used.execution.execution_root, used.execution.projection_kind) == (
        session.worktree_path,
        "git_worktree_root",
    )
    assert Path(session.worktree_path, "a.txt").exists()
    assert not (house.repo / "a.txt").exists()
    assert git(house.repo, "status", "--porcelain") == ""


@pytest.mark.spec("HOL-TREE-03", "HOL-STATE-08")
async def test_a_worktree_session_survives_a_restart(house: House) -> None:
    agent = house.agent(workspace=house.repo)
    async with house.runtime(agent) as rt:
        used = await rt.use_workspace("ops", house.repo, mode="isolated")
        await house.run(rt, writes("a.txt"))
    async with house.runtime(agent) as rt:
        again = await rt.workspaces("ops")
        assert (again.worktree_session, again.active_workspace_id) == (used.worktree_session, used.active_workspace_id)
        await house.run(rt, calls("read_file", path="a.txt"))
        assert "not_found" not in house.results[-1]
        assert (await rt.use_workspace("ops", house.repo, mode="isolated")).worktree_session == used.worktree_session


async def test_leaving_removes_a_clean_worktree_and_keeps_one_with_work(house: House) -> None:
    async with house.runtime(house.agent(workspace=house.repo)) as rt:
        await rt.use_workspace("ops", house.repo, mode="isolated")
        left = await rt.use_workspace("ops", house.repo)
        assert left.worktree_session is None
        await rt.settled()
        assert (await rt.workspaces("ops")).worktrees == ()
        assert branches(house.repo) == ["main"]

        used = await rt.use_workspace("ops", house.repo, mode="isolated")
        session = used.worktree_session
        assert session is not None
        await house.run(rt, writes("a.txt"))
        await rt.use_workspace("ops", workspace_id="agent_home")
        await rt.settled()
        (kept,) = (await rt.workspaces("ops")).worktrees
        assert (kept.state, kept.cleanup_reason, kept.changed_files) == ("kept", "changed_files", ("a.txt",))
        assert Path(kept.worktree_path, "a.txt").exists()

        commit(kept.worktree_path, "work")
        await rt.clean_up_worktree("ops", kept.worktree_id)
        (kept,) = (await rt.workspaces("ops")).worktrees
        assert (kept.state, kept.cleanup_reason) == ("kept", "unmerged_commits")
        assert "work" in kept.detail

        back = await rt.use_workspace("ops", kept.worktree_path)
        assert back.worktree_session == session, "it is the same session again"
        with pytest.raises(InvalidRequest, match="the agent works in worktree"):
            await rt.clean_up_worktree("ops", kept.worktree_id)
        git(house.repo, "merge", "-q", kept.worktree_branch)
        await rt.use_workspace("ops", house.repo)
        await rt.settled()
        assert (await rt.workspaces("ops")).worktrees == ()
    assert (house.repo / "a.txt").exists()
    assert (branches(house.repo), Path(kept.worktree_path).exists()) == (["main"], False)


async def test_a_worktree_stays_while_a_turn_works_there_that_somebody_else_moved_its_agent_away_from(
    house: House,
) -> None:
    begun, goes_on = asyncio.Event(), asyncio.Event()

    async def reply(request: ModelRequest) -> Any:
        if request.answered:
            return "wrote"
        begun.set()
        await goes_on.wait()
        return writes("a.txt")

    async with house.runtime(Agent("ops", scripted(reply), workspace=house.repo)) as rt:
        session = (await rt.use_workspace("ops", house.repo, mode="isolated")).worktree_session
        assert session is not None
        place = Path(session.worktree_path)
        sent = await rt.send("ops", "Think, and write.")
        await begun.wait()
        await rt.use_workspace("ops", house.repo)
        with pytest.raises(InvalidRequest, match=r"turn_.* works in worktree"):
            await rt.clean_up_worktree("ops", place.name)
        goes_on.set()
        assert (await rt.answer(sent)).output == "wrote"
        assert (place / "a.txt").read_text() == "x\n", "nothing of the turn is lost"
        await passes(rt, house.clock, 600)
        (kept,) = (await rt.workspaces("ops")).worktrees
        assert (kept.state, kept.changed_files) == ("kept", ("a.txt",))
        (place / "a.txt").unlink()
        await rt.clean_up_worktree("ops", place.name)
        assert not place.exists(), "the inversion: where nobody works and nothing is lost, it goes"


async def test_a_worktree_stays_while_a_task_works_there(house: House) -> None:
    waits = "touch begun; while [ ! -e go ]; do sleep 0.01; done; rm begun go; echo finished > result.txt"
    async with house.runtime(house.agent(workspace=house.repo)) as rt:
        session = (await rt.use_workspace("ops", house.repo, mode="isolated")).worktree_session
        assert session is not None
        place = Path(session.worktree_path)
        await house.run(rt, calls("exec_command", cmd=waits, yield_time_ms=1))
        house.script = ["told"]
        await rt.use_workspace("ops", house.repo)
        await passes(rt, house.clock, 60)
        (task,) = await rt.tasks("ops")
        with pytest.raises(InvalidRequest, match=f"task {task.task_id} works in worktree"):
            await rt.clean_up_worktree("ops", place.name)
        assert place.is_dir()
        (place / "go").touch()
        async with asyncio.timeout(60):
            while await rt.tasks("ops"):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert (place / "result.txt").read_text() == "finished\n"


@pytest.mark.spec("HOL-WS-03")
async def test_an_existing_worktree_of_an_attached_repository_is_adopted_and_never_removed(house: House) -> None:
    theirs = house.root / "theirs"
    git(house.repo, "worktree", "add", "-q", "-b", "theirs", str(theirs))
    async with house.runtime(house.agent(workspace=house.repo)) as rt:
        name = (await rt.workspaces("ops")).active_workspace_id
        used = await rt.use_workspace("ops", theirs)
        assert (used.active_workspace_id, used.execution.workspace_anchor) == (name, str(house.repo))
        assert (used.execution.execution_root, used.worktree_session) == (str(theirs), None)
        assert f"mode 'isolated' with workspace_id '{name}'" in used.advice
        await house.run(rt, writes("a.txt"))
        await rt.use_workspace("ops", house.repo)
        await rt.settled()
    assert (theirs / "a.txt").exists()


async def test_a_worktree_of_a_repository_that_is_not_attached_is_a_folder_like_any_other(house: House) -> None:
    theirs, other = house.root / "theirs", house.root / "other"
    other.mkdir()
    git(house.repo, "worktree", "add", "-q", "-b", "theirs", str(theirs))
    async with house.runtime(house.agent(workspace=other)) as rt:
        used = await rt.use_workspace("ops", theirs)
        assert used.execution.workspace_anchor == str(theirs)


# --- in a turn -----------------------------------------------------------------------------------------------------


async def test_a_call_moves_its_own_turn_and_a_switch_from_outside_the_next_one(house: House) -> None:
    other = house.root / "other"
    other.mkdir()
    async with house.runtime(house.agent(workspace=house.repo)) as rt:
        name = named(await rt.attach_workspace("ops", other), other).workspace_id
        moves = calls("use_workspace", workspace_id=name)
        await house.run(rt, writes("one.txt"), moves, writes("two.txt"), calls("exec_command", cmd="pwd"))
        assert str(other) in house.results[-1]
        assert (await rt.workspaces("ops")).active_workspace_id == name
        await house.run(rt, calls("use_workspace", path=str(house.repo), mode="isolated"), writes("three.txt"))
        session = (await rt.workspaces("ops")).worktree_session
    assert (house.repo / "one.txt").exists()
    assert (other / "two.txt").exists()
    assert session is not None
    assert Path(session.worktree_path, "three.txt").exists()


@pytest.mark.spec("HOL-EXEC-12", "HOL-EXEC-09")
async def test_commands_tasks_and_worktrees_pass_one_gate_and_tell_nothing_of_who_else_is_there(house: House) -> None:
    async with house.runtime(house.agent(workspace=house.repo)) as rt:
        await house.run(
            rt,
            calls("exec_command", cmd="true"),
            calls("exec_command", cmd="echo later", yield_time_ms=1),
            calls("use_workspace", path=str(house.repo), mode="isolated"),
        )
        told = json.loads(house.results_of("use_workspace")[-1])
        events = [entry.fact.event for entry in await rt._here.engine.store.read("ops")]
    kinds = [event.kind for event in events if event.kind in ("permission.evaluated", "tool.started")]
    assert kinds == ["permission.evaluated", "tool.started"] * 3
    assert set(told) == {
        "workspace_id",
        "workspace_anchor",
        "execution_root",
        "cwd",
        "mode",
        "projection_kind",
        "summary_text",
    }


@pytest.mark.spec("HOL-EXEC-03")
async def test_the_tools_are_the_same_whoever_woke_the_agent(house: House) -> None:
    async with house.runtime(house.agent(workspace=house.repo)) as rt:
        await house.run(rt)
        trusted = house.offered
        await rt.answer(await rt.receive("ops", "hello", channel="mail"))
        assert house.offered == trusted
        assert "use_workspace" in trusted
        await rt.use_workspace("ops", house.repo, mode="isolated")
        await house.run(rt)
        assert house.offered == trusted, "nor when the place is another one"


async def test_a_folder_that_was_not_given_needs_a_person(house: House) -> None:
    other = house.root / "other"
    other.mkdir()
    async with house.runtime(house.agent(workspace=house.repo)) as rt:
        house.script = [calls("use_workspace", path=str(other)), writes("a.txt"), "done"]
        sent = await rt.send("ops", "Go on.")
        await rt.settled()
        assert (await rt.workspaces("ops")).execution.execution_root == str(house.repo)
        async with open_store(house.home / "wakeful.db") as store:
            (approval,) = await store.approvals()
            assert "is not among the workspaces of ops" in (approval.reason or "")
            await store.decide(approval.approval_id, Approve(), by="ada")
        await rt.settled()
        assert (await rt.answer(sent)).output == "done"
        assert (await rt.workspaces("ops")).execution.execution_root == str(other)
    assert (other / "a.txt").exists()


@pytest.mark.spec("HOL-GUIDE-04")
async def test_guidance_follows_the_anchor_and_not_the_worktree(house: House) -> None:
    (house.repo / "AGENTS.md").write_text("Be kind.\n")
    commit(house.repo, "guidance")
    async with house.runtime(house.agent(workspace=house.repo)) as rt:
        used = await rt.use_workspace("ops", house.repo, mode="isolated")
        (house.repo / "AGENTS.md").write_text("Be brief.\n")
        await house.run(rt)
        assert used.worktree_session is not None
        assert Path(used.worktree_session.worktree_path, "AGENTS.md").read_text() == "Be kind.\n"
    assert "Be brief." in house.prompts[-1]
    assert "Be kind." not in house.prompts[-1]


# --- gone ----------------------------------------------------------------------------------------------------------


async def test_a_missing_workspace_holds_its_agent_up_until_it_is_back_and_no_other(house: House) -> None:
    other, elsewhere = house.root / "other", house.root / "elsewhere"
    other.mkdir()
    async with house.runtime(house.agent(workspace=other), house.agent("dev", workspace=house.repo)) as rt:
        other.rename(elsewhere)
        house.script = ["done"]
        sent = await rt.send("ops", "Go on.")
        await rt.settled()
        assert (await rt.workspaces("ops")).active_workspace_entry.state == "missing"
        (deferred,) = await rt._here.engine.store.deferrals("ops", "main")
        assert (deferred.subject, deferred.cause_id) == (sent.message_id, str(other))
        assert await house.run(rt, agent="dev") == "done"
        elsewhere.rename(other)
        house.clock.advance(3600)
        assert (await rt.answer(sent)).output == "done"
        assert (await rt.agents())[0].control == "running"


async def test_a_deleted_worktree_holds_its_agent_up_until_it_is_sent_elsewhere(house: House) -> None:
    async with house.runtime(house.agent(workspace=house.repo)) as rt:
        used = await rt.use_workspace("ops", house.repo, mode="isolated")
        assert used.worktree_session is not None
        shutil.rmtree(used.worktree_session.worktree_path)
        house.script = ["done"]
        sent = await rt.send("ops", "Go on.")
        await rt.settled()
        assert (await rt.workspaces("ops")).active_workspace_entry.state == "missing"
        await rt.use_workspace("ops", house.repo)
        house.clock.advance(3600)
        assert (await rt.answer(sent)).output == "done"
        await rt.settled()
        assert (await rt.workspaces("ops")).worktrees == ()
    assert branches(house.repo) == ["main"]


async def test_a_worktree_waits_for_its_repository_and_nothing_is_made_in_its_place(house: House) -> None:
    moved = house.root / "moved"
    async with house.runtime(house.agent(workspace=house.repo)) as rt:
        await rt.use_workspace("ops", house.repo, mode="isolated")
        await house.run(rt, calls("exec_command", cmd="git status"))
        house.repo.rename(moved)
        house.script = [calls("exec_command", cmd="git status"), "done"]
        sent = await rt.send("ops", "Go on.")
        await rt.settled()
        known = await rt.workspaces("ops")
        assert (known.active_workspace_entry.state, house.repo.exists()) == ("missing", False)
        assert f"{house.repo}, and that folder is not there" in (await rt.why("ops")).sentence
        (deferred,) = await rt._here.engine.store.deferrals("ops", "main")
        assert deferred.cause_id == str(house.repo)
        moved.rename(house.repo)
        house.clock.advance(3600)
        assert (await rt.answer(sent)).output == "done"
        assert '"exit_status":0' in house.results_of("wakeful/exec_command")[-1]


async def test_a_command_whose_repository_went_away_meanwhile_is_not_started(house: House) -> None:
    moved = house.root / "moved"

    def away(request: ModelRequest) -> Any:
        if request.answered == 1:
            house.repo.rename(moved)
        house.history = list(request.history)
        return [calls("exec_command", cmd="true"), calls("exec_command", cmd="git status"), "done"][request.answered]

    async with house.runtime(Agent("ops", scripted(away), workspace=house.repo)) as rt:
        await rt.use_workspace("ops", house.repo, mode="isolated")
        assert (await rt.answer(await rt.send("ops", "Go on."))).output == "done"
        assert (
            "the repository that the workspace belongs to, is not there" in house.results_of("wakeful/exec_command")[-1]
        )
        assert not house.repo.exists()
        moved.rename(house.repo)
