"""One command of an agent, from its arguments to its envelope."""

import asyncio
import contextlib
import hashlib
import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kit.gates.confined_commands import alive, level, marker, place_outside, until
from wakeful.contracts.content import BlobRef
from wakeful.contracts.errors import InvalidConfig, ToolReported
from wakeful.sandbox import level_probe
from wakeful.sandbox.confinement import Sandbox
from wakeful.sandbox.process_watch import descendants
from wakeful.sandbox.settings import MachineLimits, SandboxSettings
from wakeful.tools.context import RunContext
from wakeful.tools.local.commands import ExecCommand
from wakeful.tools.local.output_budget import OutputBudget
from wakeful.tools.results import ToolOutput, show

ENVELOPE = {
    "disposition",
    "exit_status",
    "stdout_preview",
    "stderr_preview",
    "truncated",
    "artifacts",
    "stdout_artifact",
    "stderr_artifact",
}


class Call:
    """A context that keeps what it is given, as a run would."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self.seen: list[str] = []
        self.ctx: RunContext[None] = RunContext(None, output=self.seen.append, keep=self.keep)

    async def keep(self, data: bytes, media_type: str) -> BlobRef:
        ref = BlobRef(digest="sha256:" + hashlib.sha256(data).hexdigest(), size=len(data), media_type=media_type)
        self.kept[ref.digest] = data
        return ref


@pytest.fixture
def call() -> Call:
    return Call()


def a_tool(root: Path, mode: str = "bubblewrap", budget: OutputBudget | None = None, **settings: Any) -> ExecCommand:
    return ExecCommand(Sandbox(root, SandboxSettings(**settings), level=level(mode)), budget)


async def envelope(tool: ExecCommand, call: Call, **arguments: Any) -> dict[str, Any]:
    output = await tool.invoke(call.ctx, arguments)
    assert isinstance(output, ToolOutput)
    assert isinstance(output.content, dict)
    return output.content


async def refused(tool: ExecCommand, call: Call, **arguments: Any) -> Any:
    with pytest.raises(ToolReported) as caught:
        await tool.invoke(call.ctx, arguments)
    return caught.value.error


@pytest.mark.spec("HOL-CMD-03")
@pytest.mark.parametrize("mode", ["bubblewrap", "landlock", "not_enforced"])
async def test_a_completed_command_has_its_status_both_previews_and_where_the_whole_is(
    tmp_path: Path, call: Call, mode: str
) -> None:
    short = await envelope(a_tool(tmp_path, mode), call, cmd="echo out; echo err >&2; exit 3", login=False)
    assert short == {
        "disposition": "completed",
        "exit_status": 3,
        "stdout_preview": "out\n",
        "stderr_preview": "err\n",
        "truncated": False,
        "artifacts": [],
        "stdout_artifact": None,
        "stderr_artifact": None,
    }
    long = await envelope(a_tool(tmp_path, mode), call, cmd="seq 1 20000; seq 1 20000 >&2", login=False)
    assert set(long) == ENVELOPE
    assert long["truncated"] is True
    whole = "".join(f"{n}\n" for n in range(1, 20001)).encode()
    for stream in ("stdout", "stderr"):
        index = long[f"{stream}_artifact"]
        assert call.kept[long["artifacts"][index]["digest"]] == whole
        preview = long[f"{stream}_preview"]
        assert preview.startswith("1\n2\n")
        assert preview.endswith("19999\n20000\n")
        assert re.search(r"\[[\d,]+ bytes are left out here\]", preview)


@pytest.mark.spec("HOL-REPO-01")
async def test_a_repository_is_looked_at_through_the_shell(tmp_path: Path, call: Call) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/one.py").write_text("def found():\n    return 1\n")
    tool = a_tool(tmp_path)
    looked = await envelope(tool, call, cmd="ls src && grep -n found src/*.py && sed -n 2p src/one.py")
    assert looked["stdout_preview"] == "one.py\n1:def found():\n    return 1\n"
    assert "look around" in tool.declaration.description


@pytest.mark.spec("HOL-REPO-07")
async def test_output_over_budget_is_cut_before_it_is_a_result(tmp_path: Path, call: Call) -> None:
    for cmd in ("seq 1 100000", "yes '\"\\' | head -n 50000", "printf '\\033[1m%.0s' $(seq 1 9000)"):
        output = await a_tool(tmp_path).invoke(call.ctx, {"cmd": cmd})
        shown = show(output.content)
        assert shown.whole is None, "the gate has nothing left to cut"
        assert shown.size <= 8_000 * 3
        assert output.truncated
        assert output.artifacts
    small = await envelope(a_tool(tmp_path), call, cmd="seq 1 100000", max_output_tokens=500)
    assert len(json.dumps(small)) <= 500 * 3


def test_the_budget_is_eight_thousand_tokens_and_no_call_gets_more_than_the_cap() -> None:
    budget = OutputBudget()
    assert (budget.tokens(None), budget.tokens(100), budget.tokens(1_000_000)) == (8_000, 100, 64_000)
    assert budget.most_bytes(1_000_000) == 50_000, "no result is longer than a result may be"


def test_default_and_cap_come_from_the_settings_and_the_environment_beats_them() -> None:
    runtime = {"default_tool_output_tokens": 2_000, "max_tool_output_tokens": 9_000}
    assert OutputBudget.from_settings(runtime, {}) == OutputBudget(2_000, 9_000)
    environ = {"WAKEFUL_DEFAULT_TOOL_OUTPUT_TOKENS": "3000", "WAKEFUL_MAX_TOOL_OUTPUT_TOKENS": "4000"}
    assert OutputBudget.from_settings(runtime, environ) == OutputBudget(3_000, 4_000)
    with pytest.raises(InvalidConfig, match="WAKEFUL_MAX_TOOL_OUTPUT_TOKENS is 'lots'"):
        OutputBudget.from_settings({}, {"WAKEFUL_MAX_TOOL_OUTPUT_TOKENS": "lots"})
    with pytest.raises(InvalidConfig, match=r"runtime.default_tool_output_tokens is 0"):
        OutputBudget.from_settings({"default_tool_output_tokens": 0}, {})


async def test_output_is_seen_as_it_comes_and_escapes_stay_text(tmp_path: Path, call: Call) -> None:
    done = await envelope(a_tool(tmp_path), call, cmd="printf 'a\\033[31mred\\n'; printf '\\303'; printf '\\251\\n'")
    assert done["stdout_preview"] == "a\x1b[31mred\né\n"
    assert "".join(call.seen) == "a\x1b[31mred\né\n"


@pytest.mark.spec("HOL-CMD-07")
async def test_a_terminal_is_given_when_asked_for_and_never_by_itself(tmp_path: Path, call: Call) -> None:
    asks = "if [ -t 0 ] && [ -t 1 ]; then echo terminal; else echo pipe; exit 9; fi; echo other >&2"
    for mode in ("bubblewrap", "landlock", "not_enforced"):
        tool = a_tool(tmp_path, mode)
        with_one = await envelope(tool, call, cmd=asks, tty=True)
        assert (with_one["exit_status"], with_one["stdout_preview"]) == (0, "terminal\r\nother\r\n")
        assert with_one["stderr_preview"] == ""
        without = await envelope(tool, call, cmd=f"echo ran >> times; {asks}")
        assert (without["exit_status"], without["stdout_preview"]) == (9, "pipe\n")
    assert (tmp_path / "times").read_text() == "ran\n" * 3, "once each: a failure was not tried again with a terminal"


@pytest.mark.spec("HOL-ERR-11")
async def test_a_folder_outside_the_workspace_is_refused_with_what_is_needed_to_mend_it(
    tmp_path: Path, call: Call
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/link").symlink_to(tmp_path)
    tool = a_tool(tmp_path / "work")
    for workdir in ("..", str(tmp_path), "link", "/"):
        error = await refused(tool, call, cmd="touch ran", workdir=workdir)
        assert error.kind == "execution_root_violation"
        assert error.details == {
            "field": "workdir",
            "workdir": workdir,
            "resolved": str(Path("/") if workdir == "/" else tmp_path),
            "execution_root": str(tmp_path / "work"),
            "allowed_roots": [str(tmp_path / "work")],
        }
        assert "leave workdir out" in error.recovery_hint
    assert not (tmp_path / "ran").exists()
    root = tmp_path / "work"
    (root / "inner").mkdir()
    inside = await envelope(tool, call, cmd="pwd", workdir="inner")
    assert inside["stdout_preview"] == f"{root}/inner\n"


@pytest.mark.spec("HOL-ERR-12")
@pytest.mark.parametrize("mode", ["bubblewrap", "landlock", "not_enforced"])
async def test_a_command_that_does_not_start_says_what_was_wrong(tmp_path: Path, call: Call, mode: str) -> None:
    tool = a_tool(tmp_path, mode)
    no_shell = await refused(tool, call, cmd="true", shell="no-such-shell")
    assert no_shell.kind == "command_spawn_failed"
    assert "no-such-shell" in no_shell.message
    assert no_shell.details["shell"] == "no-such-shell"
    no_folder = await refused(tool, call, cmd="true", workdir="missing")
    assert no_folder.kind == "command_spawn_failed"
    assert no_folder.details["field"] == "workdir"
    assert f"{tmp_path}/missing does not exist" in no_folder.message
    assert "nothing has run" in (no_folder.recovery_hint or "")
    unknown = await envelope(tool, call, cmd="no-such-program", login=False)
    assert unknown["exit_status"] == 127, "the shell ran: a program that it does not find is the command's own end"


async def test_what_the_sandbox_refused_is_told_apart_from_a_failure(tmp_path: Path, call: Call) -> None:
    with place_outside() as outside:
        (outside / ".ssh").mkdir()
        (outside / ".ssh/id").write_text("canary")
        environ = {"PATH": os.environ["PATH"], "HOME": str(outside)}
        tool = ExecCommand(Sandbox(tmp_path, level=level("bubblewrap"), environ=environ))
        wrote = await refused(tool, call, cmd=f"echo x > {outside}/file", login=False)
        assert (wrote.kind, wrote.details["boundary"], wrote.details["target"]) == (
            "sandbox_violation",
            "write",
            f"{outside}/file",
        )
        assert wrote.details["write_roots"] == [str(tmp_path)]
        assert "Read-only" in wrote.details["stderr_preview"]
        read = await refused(tool, call, cmd=f"cat {outside}/.ssh/id", login=False)
        assert (read.kind, read.details["boundary"]) == ("sandbox_violation", "read")
        assert read.details["target"] == f"{outside}/.ssh/id"
        hook = await refused(tool, call, cmd="mkdir .wakeful/x", login=False)
        assert (hook.details["boundary"], hook.details["target"]) == ("write", f"{tmp_path}/.wakeful/x")
    python = 'import socket; socket.create_connection(("192.0.2.1", 80), 2)'
    network = await refused(a_tool(tmp_path), call, cmd=f"python3 -c '{python}'", login=False)
    assert (network.kind, network.details["boundary"]) == ("sandbox_violation", "network")


async def test_words_alone_are_no_refusal(tmp_path: Path, call: Call) -> None:
    tool = a_tool(tmp_path)
    own = await envelope(tool, call, cmd="echo 'cannot open ./file: Permission denied' >&2; exit 1")
    assert own["exit_status"] == 1
    tolerated = await envelope(tool, call, cmd="echo x > /usr/nothing-here || true", login=False)
    assert tolerated["exit_status"] == 0, "a command that went on is what it says"
    bare = await envelope(a_tool(tmp_path, "not_enforced"), call, cmd="echo 'x: Read-only file system' >&2; exit 1")
    assert bare["exit_status"] == 1


async def test_where_confinement_is_required_and_not_there_nothing_runs(tmp_path: Path, call: Call) -> None:
    error = await refused(a_tool(tmp_path, "not_enforced", confinement="required"), call, cmd="touch ran")
    assert error.kind == "confinement_unavailable"
    assert error.details == {"level": "not_enforced", "reason": "this test wants none"}
    assert not (tmp_path / "ran").exists()
    await envelope(a_tool(tmp_path, "not_enforced", confinement="preferred"), call, cmd="touch ran")
    assert (tmp_path / "ran").exists()


async def test_a_command_over_its_time_is_an_error_with_what_it_had_said(tmp_path: Path, call: Call) -> None:
    name = marker()
    error = await refused(a_tool(tmp_path), call, cmd=f"echo begun; sleep {name}", yield_time_ms=1_500)
    assert (error.kind, error.details["limit"]) == ("timeout", "timeout")
    assert error.details["stdout_preview"] == "begun\n"
    assert "600,000" in (error.recovery_hint or "")
    assert alive(name) == []


async def test_a_command_that_writes_without_end_is_an_error_that_names_the_limit(call: Call) -> None:
    with place_outside() as root:
        tool = a_tool(root, limits=MachineLimits(growth_bytes=4 * 1024 * 1024))
        error = await refused(tool, call, cmd="head -c 30000000 /dev/urandom > big; sync; sleep 60")
    assert (error.kind, error.details["limit"]) == ("resource_limit", "growth")
    assert "4,194,304" in error.message


@pytest.mark.parametrize("mode", ["bubblewrap", "landlock"])
async def test_a_command_whose_keeper_is_killed_has_failed(tmp_path: Path, call: Call, mode: str) -> None:
    """What ends the sandbox from outside, such as a machine without memory, is not an end of the command's own."""
    name = marker()
    running = a_tool(tmp_path, mode).start(call.ctx, {"cmd": f"touch begun; sleep {name}"})
    assert await until((tmp_path / "begun").exists)
    for pid in descendants(os.getpid()):
        # Killing one takes others along, so a process of the list may be gone by its turn.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if name.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                os.kill(pid, signal.SIGKILL)
    with pytest.raises(ToolReported) as caught:
        await running.result
    assert caught.value.error.kind == "no_exit_status"
    assert await until(lambda: not alive(name))


async def test_a_bomb_is_an_error_that_names_the_limit(tmp_path: Path, call: Call) -> None:
    name = marker()
    tool = a_tool(tmp_path, limits=MachineLimits(processes=40))
    error = await refused(tool, call, cmd=f"for i in $(seq 1 200); do sleep {name} & done; wait", login=False)
    assert (error.kind, error.details["limit"]) == ("resource_limit", "processes")
    assert "40" in error.message
    assert alive(name) == []


@pytest.mark.parametrize("mode", ["bubblewrap", "landlock", "not_enforced"])
async def test_a_cancelled_call_takes_its_processes_along(tmp_path: Path, call: Call, mode: str) -> None:
    name = marker()
    running = a_tool(tmp_path, mode).start(call.ctx, {"cmd": f"setsid sleep {name} & sleep {name}"})
    assert await until(lambda: len(alive(name)) >= 2)
    running.result.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running.result
    assert alive(name) == []


def test_what_needs_a_task_in_the_background_is_not_offered(tmp_path: Path) -> None:
    tool = a_tool(tmp_path, "not_enforced")
    schema = tool.declaration.input_schema
    assert set(schema["properties"]) == {
        "cmd",
        "workdir",
        "shell",
        "login",
        "tty",
        "yield_time_ms",
        "max_output_tokens",
    }
    for name in ("accepts_input", "duplicate_policy"):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"cmd": "true", name: 1}, schema)


def test_the_gate_is_told_what_a_command_is_and_what_holds_it(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    tool = a_tool(tmp_path)
    declared = tool.declaration
    assert (declared.permission, declared.effect, declared.serial) == ("execute", "irreversible", True)
    assert declared.capabilities == ("shell", "filesystem")
    assert not declared.leaves_machine
    assert tool.working_directory({"cmd": "true", "workdir": "inner"}) == str(tmp_path / "inner")
    held = tool.confinement({"cmd": "true"})
    assert (held.mode, held.cwd, held.write_roots) == ("bubblewrap", str(tmp_path), (str(tmp_path),))
    assert (held.network, held.reason) == ("none", "")
    assert held.process_limits["processes"] == 512
    granted = a_tool(tmp_path, network="full")
    assert granted.declaration.capabilities == ("shell", "filesystem", "network")
    assert granted.declaration.leaves_machine
    assert granted.traits({"cmd": "true"}) == granted.declaration


def test_where_nothing_holds_a_command_its_confinement_says_so_and_why(tmp_path: Path) -> None:
    held = Sandbox(tmp_path, level=level_probe.bare("bubblewrap is not installed")).confinement(str(tmp_path))
    assert (held.mode, held.network, held.write_roots) == ("not_enforced", "full", ("/",))
    assert held.reason == "bubblewrap is not installed"
    landlock = Sandbox(tmp_path, level=level("landlock")).confinement(str(tmp_path))
    assert ".git/hooks" in landlock.reason, "what Landlock does not hold is said"
