"""No agent approves itself: no command reaches a store in which people decide, at any level of confinement.

The usual set-up is the hard one: the store lies in the workspace. Each attempt is also made without what stops it.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.bites.declared import Declared, agent
from kit.gates.confined_commands import PYTHON, level, place_outside, said, sandbox, sh
from kit.gates.hostile_model import WRITE, command
from kit.gates.planted import SOURCES, path_without_bubblewrap
from kit.runs.engine_runs import calls as asked
from kit.runs.engine_runs import of_kind
from wakeful import Agent, GatePolicy, RunResult, SandboxSettings, run, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.events import SandboxApplied, ToolFailed
from wakeful.contracts.tools import Confinement
from wakeful.decisions.policy.permissions import default_policy
from wakeful.sandbox.confinement import NotConfined
from wakeful.sandbox.grants import split
from wakeful.service.commands.approvals import approvals
from wakeful.testing import scripted

READABLE = (str(SOURCES), *(path for path in sys.path if path.startswith("/") and "site-packages" in path))
"""So that a command finds wakeful itself, as it does where wakeful is installed."""
CONFINED = ["bubblewrap", "landlock"]


@tool(effect="irreversible", approval=True)
def pay(cents: int) -> str:
    """Needs a person."""
    return "paid"


@pytest.fixture
def root() -> Iterator[Path]:
    with place_outside() as folder:
        (folder / "src").mkdir()
        yield folder


@pytest.fixture(params=CONFINED)
def confined_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A machine that holds commands with this."""
    level(request.param)
    if request.param == "bubblewrap":
        yield request.param
        return
    with path_without_bubblewrap() as path:
        monkeypatch.setenv("PATH", path)
        yield request.param


async def pending(store: Path) -> str:
    """A call that waits for a person; the id of its approval."""
    model = scripted([asked(("pay", {"cents": 100})), "done"], leftover="ignore")
    await run(Agent("clerk", model, tools=[pay]), "go", store=store)
    return (await decisions(store))[0][0]


async def decisions(store: Path) -> list[tuple[str, str]]:
    async with opened_store(store) as opened:
        return [(record.id, record.status) for record in await approvals(new_engine(opened), pending_only=False)]


async def driven(root: Path, store: Path, *tries: tuple[str, Any]) -> RunResult[Any]:
    settings = SandboxSettings(read_roots=READABLE)
    steps = [*(asked(each) for each in tries), "done"]
    who = Agent("hostile", scripted(steps, leftover="ignore"), workspace=root, sandbox=settings)
    return await run(who, "go", store=store)


def wakeful(line: str) -> str:
    return f"{sys.executable} -m wakeful.surfaces.cli {line}"


def decides(approval: str, store: str) -> str:
    return wakeful(f"approvals approve {approval} --store {store}")


async def test_a_command_cannot_decide_what_waits_in_its_own_store(root: Path, confined_by: str) -> None:
    store = root / "runs.db"
    approval = await pending(store)
    turn = (await store_turns(store))[0]
    tries = [
        decides(approval, "runs.db"),
        decides(approval, str(store)),
        f"ln -s ../runs.db src/link && {decides(approval, 'src/link')}",
        f"ln runs.db src/same && {decides(approval, 'src/same')}",
        f"cp runs.db src/copy && {decides(approval, 'src/copy')} && mv src/copy runs.db",
        f"mv runs.db src/moved && {decides(approval, 'src/moved')} && mv src/moved runs.db",
        f"{PYTHON} -I -c \"import sqlite3; sqlite3.connect('runs.db').execute('select 1 from events').fetchall()\"",
        "echo x > runs.db-journal",
        "echo x >> runs.db-wal",
        "rm -f runs.db runs.db-wal runs.db-owners",
        wakeful("approvals list --store runs.db"),
        wakeful(f"cancel {turn} --store runs.db"),
        wakeful(f"resolve {turn}/call_1_1 --did-not-happen --store runs.db"),
        wakeful("budget grant --usd 100 --store runs.db"),
    ]
    result = await driven(root, store, *(command(f"( {each} ) && echo ended well") for each in tries))
    assert result.status == "completed"
    assert {event.mode for event in of_kind(result, SandboxApplied)} == {confined_by}
    for line, call in zip(tries, result.calls(), strict=True):
        assert "ended well" not in f"{call.result}{call.error}", (line, call.result)
    assert await decisions(store) == [(approval, "pending")]


async def test_without_a_sandbox_the_same_line_decides(root: Path) -> None:
    store = root / "runs.db"
    approval = await pending(store)
    ended = await sh(sandbox(root, "not_enforced"), decides(approval, "runs.db"))
    assert ended.exit_status == 0, said(ended)
    assert await decisions(store) == [(approval, "approved")]


async def test_where_landlock_is_told_of_the_whole_folder_the_same_line_decides(root: Path) -> None:
    """It is the splitting of the folder that stops it, and not Landlock by itself."""
    store = root / "runs.db"
    approval = await pending(store)
    ended = await sh(sandbox(root, "landlock", read_roots=READABLE), decides(approval, "runs.db"))
    assert ended.exit_status == 0, said(ended)
    assert await decisions(store) == [(approval, "approved")]


async def test_a_command_cannot_decide_in_the_store_of_another_agent_either(root: Path, confined_by: str) -> None:
    other = root / "other.db"
    approval = await pending(other)
    result = await driven(
        root, root / "runs.db", command(decides(approval, "other.db")), (WRITE, {"path": "other.db", "content": ""})
    )
    assert {event.mode for event in of_kind(result, SandboxApplied)} == {confined_by}
    assert '"exit_status":0' not in result.calls()[0].result
    assert result.calls()[1].status == "error"
    assert await decisions(other) == [(approval, "pending")]


async def test_where_a_folder_is_split_work_goes_on_and_what_is_refused_is_explained(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "notes.txt").write_text("old\n")
    with path_without_bubblewrap() as path:
        monkeypatch.setenv("PATH", path)
        result = await driven(
            root,
            root / "runs.db",
            command("cat notes.txt; echo new > notes.txt; mkdir -p src/deep; echo x > src/deep/made; ls"),
            command("touch fresh"),
            (WRITE, {"path": "fresh", "content": "by a file tool\n"}),
            command("cat fresh; echo more >> fresh"),
        )
    worked, refused, _, then = result.calls()
    assert '"exit_status":0' in worked.result
    assert (root / "notes.txt").read_text() == "new\n"
    assert (root / "src/deep/made").exists()
    assert refused.error is not None and "nothing directly in it" in refused.error
    assert "the owner can put the store outside the workspace" in of_kind(result, ToolFailed)[0].item.text
    assert "by a file tool" in then.result
    reasons = {event.reason for event in of_kind(result, SandboxApplied)}
    assert all(f"commands make, move and remove nothing directly in {root}" in reason for reason in reasons)


async def test_with_the_store_outside_nothing_is_split(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with path_without_bubblewrap() as path, place_outside() as elsewhere:
        monkeypatch.setenv("PATH", path)
        result = await driven(root, elsewhere / "runs.db", command("touch fresh && rm fresh && echo well"))
    assert "well" in result.calls()[0].result
    assert not any("nothing directly in" in event.reason for event in of_kind(result, SandboxApplied))


def test_what_is_granted_in_a_split_folder(tmp_path: Path) -> None:
    root = str(tmp_path)
    for name in ("a/b/hidden", "a/b/free", "a/other", "held/inside", "free", "same"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "same").unlink()
    (tmp_path / "same").hardlink_to(tmp_path / "a/b/hidden")
    (tmp_path / "link").symlink_to("a/b/hidden")
    grants = split([root], hidden=[f"{root}/a/b/hidden", f"{root}/a/b/not-there-yet"], protected=[f"{root}/held"])
    assert sorted(grants.write) == [f"{root}/a/b/free", f"{root}/a/other", f"{root}/free"]
    assert grants.read == [f"{root}/held"]
    assert sorted(grants.listed) == [root, f"{root}/a", f"{root}/a/b"]
    whole = split([root], hidden=["/elsewhere"], protected=[])
    assert (whole.write, whole.read, whole.listed) == ([root], [], [])


@pytest.mark.parametrize("mode", CONFINED)
async def test_a_store_with_a_second_name_in_the_workspace_stops_commands(root: Path, mode: str) -> None:
    (root / "runs.db").write_text("secret")
    (root / "src/same").hardlink_to(root / "runs.db")
    hidden = (str(root / "runs.db"),)
    with pytest.raises(NotConfined, match=r"runs\.db is hidden and has another name"):
        await sh(sandbox(root, mode, hidden=hidden), "cat src/same")
    assert said(await sh(sandbox(root, mode), "cat src/same")) == "secret", "the other name would be open"


async def test_a_command_that_nothing_confines_asks_unless_the_owner_says_otherwise() -> None:
    bare = Confinement(mode="not_enforced", cwd="/", reason="nothing here")
    cmd = Declared("command", bare, permission_class="execute")
    result = await run(agent([cmd], ("command",)), "go", store=":memory:")
    assert (result.status, cmd.ran) == ("approval_required", [])
    allowed = GatePolicy(tools=default_policy("library", unconfined="allow"))
    result = await run(agent([cmd], ("command",), policy=allowed), "go", store=":memory:")
    assert (result.status, cmd.ran) == ("completed", ["command"])


async def store_turns(store: Path) -> list[str]:
    async with opened_store(store) as opened:
        return [row.turn_id for row in await opened.turns()]


@pytest.mark.parametrize("place", ["state", "."])
async def test_file_tools_reach_neither_the_home_nor_the_settings_of_the_owner(
    root: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """What stands in them is obeyed at the next start: servers to be started, hooks, rules, accepted files."""
    for name in ("conf.toml", "theirs.txt"):
        (root / name).write_text("# the owner's\n")
    (root / "state").mkdir()
    (root / place / "secret").write_text("0" * 64)
    monkeypatch.setenv("WAKEFUL_HOME", str(root / place))
    monkeypatch.setenv("WAKEFUL_CONFIG", str(root / "conf.toml"))
    names = [f"{place}/{name}" for name in ("mcp.json", "wakeful.toml", "mcp/pins.json", "agents/hostile/AGENTS.md")]
    writes = [("wakeful/write_file", {"path": name, "content": "x"}) for name in ["conf.toml", *names, "theirs.txt"]]
    reads = [("wakeful/read_file", {"path": name}) for name in ("conf.toml", f"{place}/secret")]
    steps = [{"calls": [{"name": name, "arguments": given}]} for name, given in (*writes, *reads)]
    with place_outside() as outside:
        who = Agent("hostile", scripted([*steps, "done"], leftover="ignore"), workspace=root)
        result = await run(who, "go", store=outside / "runs.db")
        assert [call.status for call in result.calls()] == [*["error"] * 5, "success", *["error"] * 2]
        monkeypatch.delenv("WAKEFUL_HOME")
        monkeypatch.delenv("WAKEFUL_CONFIG")
        who = Agent("hostile", scripted([*steps, "done"], leftover="ignore"), workspace=root)
        result = await run(who, "go", store=outside / "runs.db")
        other = {call.arguments["path"]: call.status for call in result.calls()}
        assert (other["conf.toml"], other[f"{place}/mcp.json"], other[f"{place}/secret"]) == ("success",) * 3, "as any"


async def test_commands_reach_neither_the_home_nor_the_settings_of_the_owner(
    root: Path, monkeypatch: pytest.MonkeyPatch, confined_by: str
) -> None:
    (root / "conf.toml").write_text("# the owner's\n")
    monkeypatch.setenv("WAKEFUL_HOME", str(root / "state"))
    monkeypatch.setenv("WAKEFUL_CONFIG", str(root / "conf.toml"))
    names = ["conf.toml", "state/mcp.json", "state/wakeful.toml", "state/mcp/pins.json"]
    tries = [command(f"mkdir -p $(dirname {name}); echo x >> {name} && echo ended well") for name in names]
    with place_outside() as outside:
        result = await driven(root, outside / "runs.db", *tries)
    assert {event.mode for event in of_kind(result, SandboxApplied)} == {confined_by}
    for call in result.calls():
        assert "ended well" not in f"{call.result}{call.error}", call.arguments
    assert (root / "conf.toml").read_text() == "# the owner's\n"
    assert not any((root / name).exists() for name in names[1:])


async def test_file_tools_do_not_reach_the_home_of_the_runtime_they_run_in(root: Path) -> None:
    """What stands there is read at the next turn or the next start: guidance of other agents, and their definitions."""
    names = ["rt/agents/other/memory/self.md", "rt/agents/other.yaml", "rt/mcp/pins.json"]
    steps = [{"calls": [{"name": "write_file", "arguments": {"path": name, "content": "x"}}]} for name in names]

    async def statuses(store: Path) -> list[str]:
        who = Agent("hostile", scripted([*steps, "done"], leftover="ignore"), workspace=root)
        return [call.status for call in (await run(who, "go", store=store)).calls()]

    (root / "rt").mkdir()
    assert await statuses(root / "rt/wakeful.db") == ["error"] * 3
    with place_outside() as outside:
        assert await statuses(outside / "wakeful.db") == ["success"] * 3, "there it is a folder like any other"
