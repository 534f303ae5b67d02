"""Commands that go on as tasks, and the tools that look at them, type into them and end them."""

import asyncio
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kit.gates.confined_commands import alive, level, marker, place_outside, until
from kit.runs.store_facts import AGENT, THREAD, TURN, claimed
from unit.tools.local.test_commands import Call
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import EventRefused, ToolReported
from wakeful.contracts.events import (
    MessageAdmitted,
    TaskCreated,
    TaskEnded,
    TaskStatusChanged,
)
from wakeful.contracts.tasks import CommandSpec
from wakeful.ports.tasks import TaskRow
from wakeful.processes.process_identity import ProcessIdentity
from wakeful.runtime.tasks import RuntimeTasks
from wakeful.sandbox.confinement import Sandbox
from wakeful.sandbox.settings import MachineLimits, SandboxSettings
from wakeful.store.memory import MemoryStore
from wakeful.testing.wrapped_store import WrappedStore
from wakeful.tools.context import RunContext
from wakeful.tools.local import task_tools
from wakeful.tools.local.task_commands import ExecTaskCommand
from wakeful.tools.local.task_envelopes import OutputPreview, retrieval_status, task_output
from wakeful.tools.results import ToolOutput

MODES = pytest.mark.parametrize("mode", ["bubblewrap", "landlock", "not_enforced"])
ONCE = 1
"""Milliseconds after which a command that cannot have ended goes on as a task."""


class Desk:
    """A workspace, a store with a turn in it, and the tools of that turn."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.workspace = root / "work"
        self.workspace.mkdir()
        self.store = MemoryStore()
        self.board = RuntimeTasks(new_engine(self.store), str(root / "tasks"), frozenset)
        self.call = Call()
        self.mode = "bubblewrap"
        self.limits = MachineLimits()
        self._sandbox: Sandbox | None = None

    @property
    def sandbox(self) -> Sandbox:
        if self._sandbox is None:
            settings = SandboxSettings(hidden=(f"{self.board.folder}/",), limits=self.limits)
            self._sandbox = Sandbox(self.workspace, settings, level=level(self.mode))
        return self._sandbox

    def context(self, turn: str = TURN, **more: Any) -> RunContext[None]:
        return RunContext(None, turn_id=turn, call_id="c1", output=self.call.seen.append, keep=self.call.keep, **more)

    async def use(self, name: str, ctx: RunContext[None] | None = None, **arguments: Any) -> dict[str, Any]:
        tools = [ExecTaskCommand(self.sandbox, self.board), *task_tools.task_tools(self.sandbox, self.board)]
        (tool,) = (each for each in tools if each.name == f"wakeful/{name}")
        jsonschema.validate(arguments, tool.declaration.input_schema)
        output = await tool.invoke(ctx if ctx is not None else self.context(), arguments)
        assert isinstance(output, ToolOutput)
        assert isinstance(output.content, dict)
        return output.content

    async def task(self, cmd: str, **arguments: Any) -> str:
        """A command that is a task now and has said `ready`."""
        told = await self.use("exec_command", cmd=cmd, yield_time_ms=ONCE, **arguments)
        assert told["disposition"] == "promoted_to_task", told
        task_id = str(told["task_handle"]["task_id"])
        row = await self.row(task_id)
        assert row.output_path is not None
        path = Path(row.output_path)
        assert await until(lambda: path.exists() and b"ready" in path.read_bytes())
        return task_id

    async def row(self, task_id: str) -> TaskRow:
        row = await self.store.task(task_id)
        assert row is not None
        return row

    async def over(self, task_id: str) -> TaskRow:
        row = await self.board.wait(task_id, 60)
        assert row.is_over
        return row

    def said_go(self) -> None:
        (self.workspace / "go").touch()


WAITS = "echo ready; while [ ! -e go ]; do sleep 0.01; done; "
"""A command that ends when the test says so."""


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    with place_outside() as root:
        made = Desk(root)
        await claimed(made.store)
        await made.board.start()
        yield made
        await made.board.close()
        for row in await made.store.tasks_of(AGENT):
            assert row.recovered is not None
            assert row.recovered.supervisor is not None
            who = row.recovered.supervisor
            identity = ProcessIdentity(who.pid, who.started, who.boot)
            assert await until(lambda identity=identity: not identity.is_alive())
        await made.store.close()


# --- exec_command -----------------------------------------------------------------------------------------------------


@MODES
@pytest.mark.spec("HOL-CMD-01", "HOL-CMD-02")
async def test_a_command_that_ends_in_time_is_completed_and_no_task(desk: Desk, mode: str) -> None:
    desk.mode = mode
    told = await desk.use("exec_command", cmd="echo out; echo err >&2; exit 3")
    assert told == {
        "disposition": "completed",
        "exit_status": 3,
        "stdout_preview": "out\n",
        "stderr_preview": "err\n",
        "truncated": False,
        "artifacts": [],
        "stdout_artifact": None,
        "stderr_artifact": None,
    }
    assert await desk.store.tasks_of(AGENT) == []
    assert "".join(desk.call.seen) in ("out\nerr\n", "err\nout\n"), "shown as it came"


@MODES
@pytest.mark.spec("HOL-CMD-04", "HOL-TASK-02", "HOL-TASK-03")
async def test_a_command_that_takes_longer_goes_on_as_a_task(desk: Desk, mode: str) -> None:
    desk.mode = mode
    told = await desk.use("exec_command", cmd=WAITS + "echo done; exit 4", yield_time_ms=ONCE)
    assert set(told) == {
        "disposition",
        "task_handle",
        "initial_output_preview",
        "initial_output_truncated",
        "summary_text",
    }
    handle = told["task_handle"]
    assert (handle["task_kind"], handle["status"]) == ("command_task", "running")
    desk.said_go()
    row = await desk.over(handle["task_id"])
    assert (row.status, row.exit_status, row.kind) == ("failed", 4, "command_task")
    assert (row.parent_turn_id, row.parent_call_id, row.thread_id) == (TURN, "c1", THREAD)
    assert row.output_summary == "ready\ndone\n"


@pytest.mark.spec("HOL-TASK-05", "HOL-TASK-06")
async def test_the_end_of_a_task_is_one_message_of_the_runtime(desk: Desk) -> None:
    task = await desk.task(WAITS, tty=False)
    desk.said_go()
    await desk.over(task)
    facts = [entry.fact.event for entry in await desk.store.read(AGENT)]
    told = [event for event in facts if isinstance(event, MessageAdmitted) and event.message_kind == "task_result"]
    assert [event.task_id for event in told] == [task]
    assert (told[0].authority_class, told[0].origin.kind) == ("runtime_instruction", "task")
    assert "completed" in told[0].item.text
    assert "ready" not in told[0].item.text.split("\n", 1)[1], "what it said is asked for, through the gate"
    kinds = [event.kind for event in facts]
    assert kinds.index("task.ended") + 1 == kinds.index("message.admitted", kinds.index("task.ended"))


async def test_what_a_task_says_is_hidden_where_it_is_written_down(desk: Desk) -> None:
    secret = desk.store.secret.hex()
    task = await desk.task(WAITS + f"echo open {secret}")
    desk.said_go()
    said = (await desk.over(task)).output_summary
    assert said.startswith("ready\nopen ")
    assert secret not in said


@pytest.mark.parametrize("cause", ["operator_instruction", "external_evidence"])
async def test_a_task_keeps_the_lowest_word_of_its_turn_and_so_does_its_result(desk: Desk, cause: Any) -> None:
    ctx = desk.context(derived_from=cause)
    told = await desk.use("exec_command", ctx, cmd=WAITS, yield_time_ms=ONCE)
    desk.said_go()
    await desk.over(told["task_handle"]["task_id"])
    events = [entry.fact.event for entry in await desk.store.read(AGENT)]
    (created,) = (event for event in events if isinstance(event, TaskCreated))
    (result,) = (e for e in events if isinstance(e, MessageAdmitted) and e.message_kind == "task_result")
    assert created.derived_from == cause
    assert result.derived_from == ("runtime_instruction" if cause == "operator_instruction" else cause)


@pytest.mark.spec("HOL-CMD-05")
async def test_the_same_command_that_runs_is_named_and_not_started_again(desk: Desk) -> None:
    task = await desk.task(WAITS)
    told = await desk.use("exec_command", cmd=WAITS, yield_time_ms=5)
    assert set(told) == {"disposition", "task_handle", "command", "summary_text"}
    assert told["disposition"] == "already_running"
    assert told["task_handle"] == {"task_id": task, "task_kind": "command_task", "status": "running"}
    assert (told["command"]["cmd"], told["command"]["workdir"]) == (WAITS, desk.sandbox.root)
    other = await desk.use("exec_command", cmd=WAITS, login=True, yield_time_ms=ONCE)
    assert other["disposition"] == "promoted_to_task", "another way to run it is another command"
    desk.said_go()
    await desk.over(task)
    again = await desk.use("exec_command", cmd=WAITS)
    assert again["disposition"] == "completed", "the first one is over"


async def test_the_same_command_as_one_that_was_asked_to_end_is_started_again(desk: Desk) -> None:
    first = await desk.task("trap '' TERM; " + WAITS)
    await desk.use("task_stop", task_id=first)
    second = await desk.task("trap '' TERM; " + WAITS)
    assert second != first
    desk.said_go()
    assert [(await desk.over(each)).status for each in (first, second)] == ["cancelled", "completed"]


@pytest.mark.spec("HOL-CMD-06")
async def test_start_new_starts_another_one_all_the_same(desk: Desk) -> None:
    first = await desk.task(WAITS)
    second = await desk.task(WAITS, duplicate_policy="start_new")
    assert first != second
    desk.said_go()
    assert {(await desk.over(each)).status for each in (first, second)} == {"completed"}


@pytest.mark.spec("HOL-CMD-07", "HOL-CMD-08", "HOL-CMD-46")
async def test_a_terminal_is_the_agents_choice_and_goes_on_as_a_task_with_one_transcript(desk: Desk) -> None:
    script = "test -t 0 && echo terminal || echo none"
    plain = await desk.use("exec_command", cmd=script)
    assert plain["stdout_preview"] == "none\n"
    task = await desk.task(f"{script}; echo ready >&2; while [ ! -e go ]; do sleep 0.01; done", tty=True)
    desk.said_go()
    row = await desk.over(task)
    assert row.output_summary.replace("\r", "") == "terminal\nready\n"


@pytest.mark.spec("HOL-TASK-09")
async def test_nobody_can_ask_for_what_the_runtime_says_of_a_command(desk: Desk) -> None:
    tool = ExecTaskCommand(desk.sandbox, desk.board)
    schema = tool.declaration.input_schema
    assert set(schema["properties"]) == {
        "cmd",
        "workdir",
        "shell",
        "login",
        "tty",
        "yield_time_ms",
        "max_output_tokens",
        "accepts_input",
        "duplicate_policy",
    }
    for name in ("terminal_reentry", "wait_policy", "recovery"):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"cmd": "true", name: True}, schema)


@MODES
async def test_a_cancelled_call_takes_its_command_along_and_makes_no_task(desk: Desk, mode: str) -> None:
    desk.mode, name = mode, marker()
    tool = ExecTaskCommand(desk.sandbox, desk.board)
    running = tool.start(desk.context(), {"cmd": f"setsid sleep {name} & sleep {name}", "yield_time_ms": 600_000})
    assert await until(lambda: len(alive(name)) >= 2)
    running.result.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running.result
    assert alive(name) == []
    assert await desk.store.tasks_of(AGENT) == []


async def test_what_the_store_refuses_leaves_neither_a_task_nor_a_process(desk: Desk) -> None:
    name = marker()
    with pytest.raises(EventRefused, match="turn nobody knows"):
        await desk.use("exec_command", desk.context("turn nobody knows"), cmd=f"sleep {name}", yield_time_ms=ONCE)
    assert alive(name) == []
    assert [place.name for place in Path(desk.board.folder).iterdir()] == [".tasks"]


async def test_a_limit_of_the_machine_ends_a_task_and_is_named(desk: Desk) -> None:
    desk.limits, name = MachineLimits(processes=40), marker()
    task = await desk.task(f"{WAITS} for i in $(seq 1 200); do sleep {name} & done; wait")
    desk.said_go()
    row = await desk.over(task)
    assert row.status == "failed"
    assert row.failure is not None
    assert row.failure["kind"] == "resource_limit"
    assert "processes" in row.result_summary
    assert await until(lambda: alive(name) == [])


# --- task_status ------------------------------------------------------------------------------------------------------


@pytest.mark.spec("HOL-CMD-16", "HOL-CMD-17", "HOL-CMD-18", "HOL-CMD-19")
async def test_a_status_is_about_the_life_of_a_task_and_shows_no_output(desk: Desk) -> None:
    cmd = WAITS + "\necho later"
    task = await desk.task(cmd)
    told = await desk.use("task_status", task_id=task)
    assert set(told) == {"task"}
    snapshot = told["task"]
    assert not {"output_preview", "artifacts", "recovery", "detail", "initial_output"} & set(snapshot)
    assert "ready\n" not in str(snapshot).replace(repr(cmd)[1:-1], "")
    assert (snapshot["task_id"], snapshot["status"], snapshot["wait_policy"]) == (task, "running", "background")
    command = snapshot["command"]
    spec = CommandSpec(cmd=cmd, workdir=desk.sandbox.root, yield_time_ms=9)
    assert (command["cmd"], command["cmd_digest"]) == (cmd, spec.digest)
    assert (command["workdir"], command["shell"], command["login"], command["tty"]) == (
        desk.sandbox.root,
        None,
        False,
        False,
    )
    assert command["output_path"].endswith("/output")
    desk.said_go()
    await desk.over(task)
    assert (await desk.use("task_status", task_id=task))["task"]["status"] == "completed"


@pytest.mark.spec("HOL-CMD-20", "HOL-CMD-21")
async def test_a_preview_of_a_command_is_not_its_identity_and_re_entry_is_no_wait_policy(desk: Desk) -> None:
    one = await desk.task(WAITS + "\necho one")
    two = await desk.task(WAITS + "\necho two")
    commands = [(await desk.use("task_status", task_id=each))["task"] for each in (one, two)]
    assert commands[0]["command"]["cmd_preview"] == commands[1]["command"]["cmd_preview"]
    assert commands[0]["command"]["cmd_digest"] != commands[1]["command"]["cmd_digest"]
    assert [each["command"]["terminal_reentry"] for each in commands] == [True, True]
    assert [each["wait_policy"] for each in commands] == ["background", "background"]
    desk.said_go()
    await desk.over(one)
    await desk.over(two)


async def test_a_task_of_another_agent_or_none_is_not_found(desk: Desk) -> None:
    task = await desk.task(WAITS)
    await claimed(desk.store, "turn_other", "another")
    for name in ("task_status", "task_output", "task_input", "task_stop"):
        for ctx, asked in ((desk.context("turn_other"), task), (None, "task_nobody_has")):
            with pytest.raises(ToolReported) as refused:
                await desk.use(name, ctx, task_id=asked)
            assert refused.value.error.kind == "unknown_task"
    assert (await desk.row(task)).status == "running"
    desk.said_go()
    await desk.over(task)


# --- task_output ------------------------------------------------------------------------------------------------------


@pytest.mark.spec("HOL-CMD-39", "HOL-CMD-40", "HOL-CMD-43", "HOL-CMD-44")
async def test_output_is_the_preview_and_where_the_whole_is(desk: Desk) -> None:
    task = await desk.task(WAITS + "echo done; exit 2")
    now = await desk.use("task_output", task_id=task, block=False)
    assert now["retrieval_status"] == "not_ready"
    assert now["task"]["output_preview"] == "ready\n"
    late = await desk.use("task_output", task_id=task, timeout_ms=1)
    assert (late["retrieval_status"], late["task"]["status"]) == ("timeout", "running")
    desk.said_go()
    row = await desk.over(task)
    told = await desk.use("task_output", task_id=task)
    assert set(told) == {"retrieval_status", "task"}
    assert told["task"] == {
        "task_id": task,
        "kind": "command_task",
        "status": "failed",
        "summary": WAITS + "echo done; exit 2",
        "output_preview": "ready\ndone\n",
        "output_truncated": False,
        "output_expired": False,
        "artifacts": [{"path": row.output_path}],
        "output_artifact": 0,
        "result_summary": "it ended with exit status 2",
        "exit_status": 2,
        "failure_artifact": row.failure,
        "child_supervision": None,
    }
    assert told["retrieval_status"] == "success"


async def test_a_wait_for_output_ends_with_the_task(desk: Desk) -> None:
    task = await desk.task(WAITS)
    waiting = asyncio.ensure_future(desk.use("task_output", task_id=task, timeout_ms=600_000))
    await asyncio.sleep(0)
    desk.said_go()
    assert (await waiting)["retrieval_status"] == "success"


@pytest.mark.spec("HOL-CMD-41", "HOL-CMD-42")
async def test_long_output_is_cut_in_the_middle_and_says_so(desk: Desk) -> None:
    task = await desk.task(WAITS + "seq 1 20000")
    desk.said_go()
    await desk.over(task)
    told = (await desk.use("task_output", task_id=task))["task"]
    assert told["output_truncated"] is True
    assert len(told["output_preview"]) <= 8_000
    assert told["output_preview"].startswith("ready\n1\n2\n")
    assert told["output_preview"].endswith("19999\n20000\n")
    assert re.search(r"\[[0-9,]+ bytes are left out here\]", told["output_preview"])


@pytest.mark.spec("HOL-OUT-05", "HOL-OUT-06", "HOL-OUT-09")
async def test_where_the_file_is_gone_the_record_of_the_end_has_the_output(desk: Desk) -> None:
    task = await desk.task(WAITS + "echo done")
    desk.said_go()
    row = await desk.over(task)
    assert row.output_path is not None
    Path(row.output_path).unlink()
    told = await desk.use("task_output", task_id=task)
    assert (told["retrieval_status"], told["task"]["output_preview"]) == ("success", "ready\ndone\n")
    assert (told["task"]["artifacts"], told["task"]["output_artifact"]) == ([], None)


@pytest.mark.spec("HOL-OUT-04", "HOL-OUT-08")
async def test_the_file_comes_before_the_record_which_never_holds_all_of_it(desk: Desk) -> None:
    task = await desk.task(WAITS + "seq 1 20000")
    desk.said_go()
    row = await desk.over(task)
    assert row.output_path is not None
    assert (row.output_bytes, row.output_truncated) == (Path(row.output_path).stat().st_size, True)
    assert len(row.output_summary) <= 4_000
    preview = (await desk.use("task_output", task_id=task))["task"]["output_preview"]
    assert len(preview) > len(row.output_summary)


def made(**fields: Any) -> TaskRow:
    empty: dict[str, Any] = dict.fromkeys(TaskRow._fields)
    return TaskRow(
        **(empty | {"status": "completed", "ended_at": 5, "output_summary": "", "initial_output": ""} | fields)
    )


@pytest.mark.spec("HOL-OUT-10", "HOL-OUT-11", "HOL-OUT-12")
def test_a_terminal_status_alone_is_no_success() -> None:
    assert retrieval_status(made(), waited=False) == "unavailable"
    assert retrieval_status(made(output_path="/x/output", exit_status=None), waited=True) == "success"
    assert retrieval_status(made(output_summary="ok"), waited=True) == "success"
    assert retrieval_status(made(initial_output="ok"), waited=True) == "success"
    running = made(status="running", ended_at=None, output_path="/x/output", initial_output="ok")
    assert retrieval_status(running, waited=False) == "not_ready", "a snapshot that may change is none"
    assert retrieval_status(running, waited=True) == "timeout"
    assert task_output(made(), OutputPreview("", False, False), waited=False)["retrieval_status"] == "unavailable"


# --- task_input -------------------------------------------------------------------------------------------------------

ASKS = "echo ready; read word; echo got $word"


@MODES
@pytest.mark.spec("HOL-CMD-35", "HOL-CMD-37", "HOL-CMD-38")
async def test_input_goes_to_a_command_that_was_started_for_it(desk: Desk, mode: str) -> None:
    desk.mode = mode
    for tty, target in ((False, "stdin"), (True, "tty")):
        task = await desk.task(ASKS, tty=tty, accepts_input=True)
        command = (await desk.use("task_status", task_id=task))["task"]["command"]
        assert (command["accepts_input"], command["input_target"]) == (True, target)
        told = await desk.use("task_input", task_id=task, input="hello\n")
        assert set(told) == {"task", "accepted_input", "input_target", "bytes_written", "summary_text"}
        assert (told["accepted_input"], told["input_target"], told["bytes_written"]) == (True, target, 6)
        assert "got hello" in (await desk.over(task)).output_summary


async def test_a_terminal_takes_input_unless_the_agent_says_otherwise(desk: Desk) -> None:
    task = await desk.task(ASKS, tty=True)
    assert (await desk.use("task_input", task_id=task, input="x\n"))["accepted_input"] is True
    await desk.over(task)
    task = await desk.task(WAITS, tty=True, accepts_input=False)
    assert (await desk.use("task_input", task_id=task, input="x\n"))["accepted_input"] is False
    desk.said_go()
    await desk.over(task)


@pytest.mark.spec("HOL-CMD-36")
async def test_input_that_cannot_be_delivered_is_a_receipt_and_no_error(desk: Desk) -> None:
    task = await desk.task(WAITS)
    assert "accepts_input" not in (await desk.use("task_status", task_id=task))["task"]["command"]
    told = await desk.use("task_input", task_id=task, input="x\n")
    assert (told["accepted_input"], told["input_target"], told["bytes_written"]) == (False, None, 0)
    assert "accepts_input" in told["summary_text"]
    desk.said_go()
    await desk.over(task)
    over = await desk.task(ASKS, accepts_input=True)
    await desk.use("task_input", task_id=over, input="x\n")
    await desk.over(over)
    told = await desk.use("task_input", task_id=over, input="y\n")
    assert (told["accepted_input"], told["bytes_written"], told["summary_text"]) == (False, 0, "the task is completed")


async def test_the_end_of_input_is_said_with_close(desk: Desk) -> None:
    task = await desk.task("echo ready; wc -c", accepts_input=True)
    await desk.use("task_input", task_id=task, input="12345", close=True)
    assert (await desk.over(task)).output_summary.split() == ["ready", "5"]


# --- task_stop --------------------------------------------------------------------------------------------------------


@MODES
@pytest.mark.spec("HOL-CMD-48")
async def test_a_task_is_stopped_and_the_receipt_says_what_was_asked(desk: Desk, mode: str) -> None:
    desk.mode, name = mode, marker()
    task = await desk.task(f"setsid sleep {name} & echo ready; sleep {name}")
    told = await desk.use("task_stop", task_id=task)
    assert (told["stop_requested"], told["force_stop_requested"]) == (True, False)
    assert told["task"]["status"] in ("cancelling", "cancelled")
    row = await desk.over(task)
    assert (row.status, row.failure is not None) == ("cancelled", True)
    assert await until(lambda: alive(name) == [])
    again = await desk.use("task_stop", task_id=task, force=True)
    assert (again["stop_requested"], again["force_stop_requested"]) == (False, False)
    assert [type(entry.fact.event) for entry in await desk.store.read(AGENT)].count(TaskEnded) == 1


async def test_a_task_that_does_not_listen_is_killed_at_once_when_that_is_asked(desk: Desk) -> None:
    task = await desk.task("trap '' TERM; echo ready; while :; do sleep 0.01; done")
    told = await desk.use("task_stop", task_id=task, force=True)
    assert told["force_stop_requested"] is True
    row = await desk.over(task)
    assert (row.status, row.exit_status) == ("cancelled", 137)


# --- repositories -----------------------------------------------------------------------------------------------------


async def test_repositories_are_looked_after_when_the_task_has_ended(desk: Desk) -> None:
    """Where the sandbox does not keep a command from writing hooks, they are put back."""
    desk.mode = "not_enforced"
    subprocess.run(["git", "init", "-q", str(desk.workspace)], check=True)
    task = await desk.task(WAITS + "echo 'touch owned' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit")
    desk.said_go()
    row = await desk.over(task)
    assert row.failure is not None
    assert (row.status, row.failure["kind"]) == ("failed", "sandbox_violation")
    assert not (desk.workspace / ".git/hooks/pre-commit").exists()


async def test_a_command_that_cannot_go_on_as_a_task_is_ended_and_the_model_is_told(desk: Desk) -> None:
    desk.mode, name = "not_enforced", marker()
    folder = Path(desk.board.folder)
    shutil.rmtree(folder)
    folder.write_text("in the way")
    with pytest.raises(ToolReported) as caught:
        await desk.use("exec_command", cmd=f"sleep {name}", yield_time_ms=ONCE)
    folder.unlink()
    assert caught.value.error.kind == "task_not_made"
    assert "after 1 ms the command could not go on as a task, and was ended" in caught.value.error.message
    assert (alive(name), await desk.store.tasks_of(AGENT)) == ([], [])


class StoppedMeanwhile(WrappedStore):
    """Everything is stopped in the moment in which a command becomes a task."""

    board: RuntimeTasks

    async def admit(self, agent_id: str, facts: Sequence[Fact], **options: Any) -> Any:
        if any(isinstance(fact.event, TaskCreated) for fact in facts):
            await self.board.end_commands("everything was stopped")
        return await self.inner.admit(agent_id, facts, **options)


async def test_a_command_that_becomes_a_task_while_everything_is_stopped_is_ended(desk: Desk) -> None:
    name, store = marker(), StoppedMeanwhile(desk.store)
    store.board = board = RuntimeTasks(new_engine(store), desk.board.folder, frozenset)
    tool = ExecTaskCommand(desk.sandbox, board)
    output = await tool.invoke(desk.context(), {"cmd": f"sleep {name}", "yield_time_ms": ONCE})
    assert isinstance(output, ToolOutput) and isinstance(output.content, dict)
    row = await board.wait(output.content["task_handle"]["task_id"], 60)
    assert (row.status, alive(name)) == ("cancelled", [])
    await board.close()


class BegunMeanwhile(WrappedStore):
    """Another command becomes a task in the moment in which the first one is ended."""

    begin: Callable[[], Awaitable[object]] | None = None

    async def admit(self, agent_id: str, facts: Sequence[Fact], **options: Any) -> Any:
        begin, self.begin = self.begin, None
        if begin is not None and any(isinstance(fact.event, TaskStatusChanged) for fact in facts):
            await begin()
        return await self.inner.admit(agent_id, facts, **options)


async def test_a_command_that_becomes_a_task_while_others_are_ended_is_ended_with_them(desk: Desk) -> None:
    first, second, store = marker(), marker(), BegunMeanwhile(desk.store)
    board = RuntimeTasks(new_engine(store), desk.board.folder, frozenset)
    tool = ExecTaskCommand(desk.sandbox, board)
    await tool.invoke(desk.context(), {"cmd": f"sleep {first}", "yield_time_ms": ONCE})
    store.begin = lambda: tool.invoke(desk.context(), {"cmd": f"sleep {second}", "yield_time_ms": ONCE})
    async with asyncio.timeout(60):
        await board.end_commands("everything was stopped")
    assert (alive(first), alive(second), await desk.store.open_tasks()) == ([], [], [])
    await board.close()
