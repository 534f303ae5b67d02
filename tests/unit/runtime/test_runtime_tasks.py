"""Tasks of agents that live: a command goes on, its result wakes the agent, and a restart loses nothing."""

import asyncio
import json
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kit.gates.confined_commands import alive, marker, place_outside, until
from kit.runs.event_samples import task_created
from kit.runs.repositories import repository
from wakeful import Agent, Retention, Runtime, open_store
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import MessageAdmitted, TaskEnded, TaskStatusChanged
from wakeful.contracts.tasks import CommandSpec, SupervisorRef, TaskRecovery
from wakeful.ports import ModelRequest, Store
from wakeful.ports.tasks import TaskRow
from wakeful.processes.process_identity import ProcessIdentity
from wakeful.service.commands.store_upkeep import compact_store
from wakeful.store.sqlite import SqliteStore
from wakeful.testing import FixedClock, scripted

WAITS = "echo ready; while [ ! -e go ]; do sleep 0.01; done; echo done"


def calls(name: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": arguments}]}


def begins(cmd: str = WAITS, **more: Any) -> dict[str, Any]:
    return calls("exec_command", cmd=cmd, yield_time_ms=1, **more)


class House:
    """A home, a workspace, and an agent that works there."""

    def __init__(self, root: Path) -> None:
        self.home, self.workspace = root / "home", root / "work"
        self.workspace.mkdir()
        self.home.mkdir()
        self.heard: list[str] = []
        """What the model was shown last."""

    def agent(self, *replies: Any) -> Agent[None, str]:
        """Each turn gets these replies; one that a task woke gets `told` instead."""

        def reply(request: ModelRequest) -> Any:
            self.heard = [str(item) for item in request.history]
            said = [item.text for item in request.history if isinstance(item, UserItem)]
            return "told" if "authority: runtime_instruction]" in said[-1] else replies[request.answered]

        return Agent("ops", scripted(reply), workspace=self.workspace)

    def runtime(self, *replies: Any) -> Runtime:
        return Runtime(self.home, agents=[self.agent(*replies)])

    def say_go(self) -> None:
        (self.workspace / "go").touch()

    @property
    def path(self) -> Path:
        return self.home / "wakeful.db"

    async def tasks(self) -> list[TaskRow]:
        store = await SqliteStore.open(str(self.path))
        try:
            return await store.tasks_of("ops")
        finally:
            await store.close()

    async def until_over(self, count: int = 1) -> list[TaskRow]:
        """The tasks, once so many are over."""
        while True:
            rows = await self.tasks()
            if sum(row.is_over for row in rows) >= count:
                return rows
            await asyncio.sleep(0.02)

    async def results(self) -> list[MessageAdmitted]:
        store = await SqliteStore.open(str(self.path))
        try:
            events = [entry.fact.event for entry in await store.read("ops")]
        finally:
            await store.close()
        ends = [event for event in events if isinstance(event, TaskEnded)]
        told = [event for event in events if isinstance(event, MessageAdmitted) and event.message_kind == "task_result"]
        assert [event.task_id for event in ends] == [event.task_id for event in told], "each end is told once"
        return told


def identity(row: TaskRow) -> ProcessIdentity:
    assert row.recovered is not None
    assert row.recovered.supervisor is not None
    who = row.recovered.supervisor
    return ProcessIdentity(who.pid, who.started, who.boot)


@pytest.fixture
async def house() -> AsyncIterator[House]:
    with place_outside() as root:
        made = House(root)
        yield made
        for row in await made.tasks():
            identity(row).kill()


@pytest.mark.spec("HOL-TASK-01", "HOL-TASK-05", "HOL-TASK-14", "HOL-CMD-04")
async def test_the_result_of_a_task_wakes_its_agent_after_the_turn_that_began_it(house: House) -> None:
    async with house.runtime(begins(), "It runs.") as rt:
        first = await rt.answer(await rt.send("ops", "Build it.", thread="bob"))
        assert (first.output, first.status) == ("It runs.", "completed")
        (row,) = await house.tasks()
        assert (row.status, row.thread_id) == ("running", "bob")
        house.say_go()
        await house.until_over()
        (message,) = await house.results()
        assert (message.origin.kind, message.authority_class) == ("task", "runtime_instruction")
        second = await rt.answer(message.message_id)
        assert (second.output, second.thread) == ("told", "bob"), "in the conversation that began it"
    async with open_store(house.path) as store:
        turns = await store.turns()
        assert [turn.prompt.splitlines()[0] for turn in turns] == [
            f"Task {row.task_id} is completed after {turns[0].prompt.split(' after ')[1].split(':')[0]}: {WAITS}",
            "Build it.",
        ]


@pytest.mark.spec("HOL-TASK-11", "HOL-TASK-12", "HOL-TASK-13")
async def test_a_task_goes_on_while_no_runtime_is_there_and_the_next_one_finds_it(house: House) -> None:
    async with house.runtime(begins(), "It runs.") as rt:
        await rt.answer(await rt.send("ops", "Build it."))
    (row,) = await house.tasks()
    assert row.status == "running"
    assert identity(row).is_alive()
    async with house.runtime() as rt:
        house.say_go()
        (over,) = await house.until_over()
        assert (over.status, over.exit_status, over.output_summary) == ("completed", 0, "ready\ndone\n")
        (message,) = await house.results()
        assert (await rt.answer(message.message_id)).status == "completed"
    assert await until(lambda: not identity(row).is_alive())


@pytest.mark.spec("HOL-TASK-12")
async def test_a_task_that_ended_while_no_runtime_was_there_is_told_by_the_next_one_once(house: House) -> None:
    """The field failure: a result that came while nobody listened was dropped."""
    async with house.runtime(begins(), "It runs.") as rt:
        await rt.answer(await rt.send("ops", "Build it."))
    (row,) = await house.tasks()
    house.say_go()
    assert await until(lambda: not identity(row).is_alive())
    for _ in range(2):
        async with house.runtime() as rt:
            (over,) = await house.until_over()
            assert (over.status, over.exit_status) == ("completed", 0)
            (message,) = await house.results()
            await rt.answer(message.message_id)


async def lost(house: House, folder: Path | None, supervisor: SupervisorRef) -> TaskRow:
    """What the next runtime makes of a task that an earlier one wrote down and never promoted."""
    async with house.runtime("Begun.") as rt:
        await rt.answer(await rt.send("ops", "Begin."))
    store: Store = await SqliteStore.open(str(house.path))
    spec = CommandSpec(cmd="make", workdir=str(house.workspace), yield_time_ms=1)
    place = str(folder) if folder is not None else str(house.home / "nowhere")
    recovery = TaskRecovery(summary="make", spec=spec, supervisor=supervisor, folder=place)
    created = task_created("task_lost").model_copy(update={"recovery": recovery, "initial_output": "so far"})
    await store.admit("ops", [Fact(created, 1, "main")])
    await store.close()
    async with house.runtime() as rt:
        (row,) = await house.until_over()
        (message,) = await house.results()
        await rt.answer(message.message_id)
    return row


@pytest.mark.spec("HOL-TASK-12", "HOL-OUT-07", "HOL-CMD-45")
async def test_a_task_of_which_nothing_is_left_has_failed_and_its_agent_is_told(house: House) -> None:
    """The field failure: a state `running` that nobody ever changed again."""
    row = await lost(house, None, SupervisorRef(pid=1, started=1, boot="another boot"))
    assert row.failure is not None
    assert (row.status, row.failure["category"], row.failure["kind"]) == ("failed", "task", "lost_on_restart")
    assert row.output_summary == "so far", "what had been said is kept"


async def ended_alone(house: House) -> Path:
    """The folder of a task that ended while no runtime was there."""
    async with house.runtime(begins(), "It runs.") as rt:
        await rt.answer(await rt.send("ops", "Build it."))
    (row,) = await house.tasks()
    house.say_go()
    assert await until(lambda: not identity(row).is_alive())
    assert row.recovered is not None
    return Path(str(row.recovered.folder))


async def until_over_as_time_passes(house: House, clock: FixedClock, seconds: float) -> TaskRow:
    while True:
        (row,) = await house.tasks()
        if row.is_over:
            return row
        await asyncio.sleep(0.02)
        clock.advance(seconds)


async def test_a_task_that_cannot_be_looked_after_is_tried_again_and_then_fails_and_is_told(house: House) -> None:
    """It was `running` for ever, whoever stopped it, and nobody was told."""
    end = await ended_alone(house) / "end.json"
    end.write_text(json.dumps(json.loads(end.read_text()) | {"duration_ms": "long"}))
    clock = FixedClock()
    async with Runtime(house.home, agents=[house.agent()], clock=clock) as rt:
        row = await until_over_as_time_passes(house, clock, 1)
        assert row.failure is not None
        assert (row.status, row.failure["kind"]) == ("failed", "not_looked_after")
        (message,) = await house.results()
        assert (await rt.answer(message.message_id)).output == "told"
        assert await rt.stop_task(row.task_id) == "failed"


async def test_a_task_that_could_be_looked_after_at_the_second_try_ends_as_it_did(house: House) -> None:
    end = await ended_alone(house) / "end.json"
    said = end.read_text()
    end.write_text(json.dumps(json.loads(said) | {"duration_ms": "long"}))
    clock = FixedClock()
    async with Runtime(house.home, agents=[house.agent()], clock=clock) as rt:
        await rt.settled()
        end.write_text(said)
        row = await until_over_as_time_passes(house, clock, 1)
        assert (row.status, row.exit_status) == ("completed", 0)


async def test_a_task_goes_on_and_can_be_stopped_where_repositories_cannot_be_looked_at(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk, say: it was `running` for ever."""
    repository(house.workspace / "app")
    async with house.runtime(begins(), "It runs.") as rt:
        await rt.answer(await rt.send("ops", "Build it."))
    monkeypatch.setenv("WAKEFUL_HOME", str(tmp_path))
    (tmp_path / "repositories").write_text("no folder")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    async with house.runtime() as rt:
        (row,) = await house.tasks()
        assert await rt.stop_task(row.task_id) in ("cancelling", "failed")
        (row,) = await house.until_over()
        assert row.status == "failed"
        assert "repositories could not be checked" in row.result_summary


async def test_settings_that_a_person_writes_while_a_task_runs_are_kept_beside_those_that_are_put_back(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = house.home.parent / "state"
    monkeypatch.setenv("WAKEFUL_HOME", str(state))
    settings = repository(house.workspace / "shop") / ".git" / "config"
    before = settings.read_text()
    async with house.runtime(begins(), "It runs.") as rt:
        await rt.answer(await rt.send("ops", "Build it."))
        mine = f'{before}[remote "origin"]\n\turl = https://example.com/x.git\n'
        settings.write_text(mine)
        house.say_go()
        (row,) = await house.until_over()
    assert (row.status, settings.read_text()) == ("failed", before), "nobody knows who wrote it"
    (kept,) = (state / "repositories" / "kept" / "replaced").iterdir()
    assert kept.read_text() == mine
    assert f"it is as it was before; what stood there is kept in {kept}" in row.result_summary


async def test_a_project_that_is_moved_away_while_a_task_runs_is_not_made_again_where_it_was(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAKEFUL_HOME", str(house.home.parent / "state"))
    house.workspace.rmdir()
    repository(house.workspace)
    async with house.runtime(begins(), "It runs.") as rt:
        await rt.answer(await rt.send("ops", "Build it."))
        moved = house.workspace.rename(house.home.parent / "moved")
        (moved / "go").touch()
        (row,) = await house.until_over()
    assert (row.status, house.workspace.exists()) == ("completed", False)


async def test_a_task_without_anybody_who_looks_after_it_is_found_by_the_watchdog(house: House) -> None:
    clock = FixedClock()
    async with Runtime(house.home, agents=[house.agent("Begun.")], clock=clock) as rt:
        await rt.answer(await rt.send("ops", "Begin."))
        recovery = TaskRecovery(summary="make", supervisor=SupervisorRef(pid=1, started=1, boot="another boot"))
        created = task_created("task_left").model_copy(update={"recovery": recovery})
        await rt._here.engine.store.admit("ops", [Fact(created, clock.now(), "main")])
        assert await rt.stop_task("task_left") == "running"
        row = await until_over_as_time_passes(house, clock, 10)
        assert (row.status, row.failure and row.failure["kind"]) == ("failed", "lost_on_restart")
        (message,) = await house.results()
        assert (await rt.answer(message.message_id)).output == "told"


@pytest.mark.spec("HOL-BRIEF-11")
@pytest.mark.parametrize("is_asked", [True, False], ids=["its agent answers", "its model cannot be asked"])
async def test_a_task_that_failed_ends_in_a_brief_for_its_people(house: House, is_asked: bool) -> None:
    """The field failure: a task failed, and nobody was told."""

    def reply(request: ModelRequest) -> Any:
        said = [item.text for item in request.history if isinstance(item, UserItem)]
        if "authority: runtime_instruction]" not in said[-1]:
            return begins(f"{WAITS}; exit 3") if not request.answered else "It runs."
        if not is_asked:
            raise RuntimeError("the model is gone")
        return "The build failed with 3."

    async with Runtime(house.home, agents=[Agent("ops", scripted(reply), workspace=house.workspace)]) as rt:
        await rt.answer(await rt.send("ops", "Build it."))
        house.say_go()
        (row,) = await house.until_over()
        assert (row.status, row.exit_status) == ("failed", 3)
        (message,) = await house.results()
        await rt.answer(message.message_id)
        newest = (await rt.briefs("ops"))[0]
        assert (newest.related_message_id, newest.related_task_id) == (message.message_id, row.task_id)
        if is_asked:
            assert (newest.kind, newest.text) == ("result", "The build failed with 3.")
        else:
            assert (newest.kind, newest.text) == ("failure", "The model's provider did not answer.")


async def test_the_process_that_has_a_supervisors_number_now_is_left_alone(house: House) -> None:
    """A number that was given again: the process with it is not the supervisor, and is not signalled."""
    name = marker()
    other = await asyncio.create_subprocess_exec("sleep", name)
    try:
        who = ProcessIdentity.of(other.pid)
        row = await lost(house, None, SupervisorRef(pid=who.pid, started=who.started - 1, boot=who.boot))
        assert row.status == "failed"
        assert alive(name) == [other.pid]
    finally:
        other.kill()
        await other.wait()


async def test_a_task_of_a_stopped_agent_is_told_when_it_is_resumed(house: House) -> None:
    async with house.runtime(begins(), "It runs.") as rt:
        await rt.answer(await rt.send("ops", "Build it."))
        await rt.stop("ops")
        house.say_go()
        await house.until_over()
        (message,) = await house.results()
        await rt.settled()
        store = await SqliteStore.open(str(house.path))
        kept = await store.message(message.message_id)
        await store.close()
        assert kept is not None
        assert kept.state == "queued"
        await rt.resume("ops")
        assert (await rt.answer(message.message_id)).status == "completed"


async def test_commands_of_a_runtime_see_neither_tasks_nor_the_store(house: House) -> None:
    look = f"ls {house.home}/wakeful.db.tasks; cat {house.home}/wakeful.db.tasks/*/key; cat {house.home}/wakeful.db"
    async with house.runtime(
        begins(), calls("exec_command", cmd=f"({look}) 2>&1; true", yield_time_ms=600_000), "Done."
    ) as rt:
        result = await rt.answer(await rt.send("ops", "Look."))
        assert result.status == "completed"
        assert house.heard[-1].count("ermission denied") == 3, house.heard[-1]
        house.say_go()
        await house.until_over()


async def test_a_folder_that_no_task_has_is_taken_away_at_the_start(house: House) -> None:
    (left := house.home / "wakeful.db.tasks" / "task_never_written").mkdir(parents=True)
    async with house.runtime("Nothing."):
        assert await until(lambda: not left.exists())
        assert (left.parent.stat().st_mode & 0o777) == 0o700
    shutil.rmtree(left.parent)


async def test_the_folder_of_tasks_is_made_again_when_somebody_took_it_away(house: House) -> None:
    folder = Path(f"{house.path}.tasks")
    async with house.runtime(begins(), "It runs.") as rt:
        shutil.rmtree(folder)
        await rt.answer(await rt.send("ops", "Build it."))
        house.say_go()
        (row,) = await house.until_over()
        assert (row.status, row.output_summary) == ("completed", "ready\ndone\n")
        await rt.settled()


async def test_of_a_store_in_memory_tasks_end_with_the_runtime(house: House) -> None:
    name = marker()
    agent = house.agent(begins(f"echo ready; sleep {name}"), "It runs.")
    async with Runtime(store=":memory:", agents=[agent]) as rt:
        await rt.answer(await rt.send("ops", "Build it."))
        assert await until(lambda: bool(alive(name)))
    assert alive(name) == []


async def test_of_a_store_in_memory_a_stop_of_everything_ends_each_task_once(house: House) -> None:
    name = marker()
    agent = house.agent(begins(f"echo ready; sleep {name}"), "It runs.")
    async with Runtime(store=":memory:", agents=[agent]) as rt:
        await rt.answer(await rt.send("ops", "Build it."))
        await rt.stop_all()
        assert alive(name) == []
        events = [entry.fact.event for entry in await rt._here.engine.store.read("ops")]
        said = [each.status for each in events if isinstance(each, TaskStatusChanged | TaskEnded)]
        assert said == ["cancelling", "cancelled"]


async def test_a_running_task_is_waited_for_by_its_id_and_one_that_has_ended_is_not(house: House) -> None:
    def reply(request: ModelRequest) -> Any:
        said = [item.text for item in request.history if isinstance(item, UserItem)]
        results = [item.text for item in request.history if item.role == "tool"]
        if not results:
            return begins()
        task = json.loads(results[0])["task_handle"]["task_id"]
        if len(results) == 1 or (said[-1].endswith("Again.") and len(results) == 2):
            return calls("wait_for", reason="the build", wake="task_result", resource=task)
        heard.append(results[-1])
        return "told"

    heard: list[str] = []
    agent = Agent("ops", scripted(reply), workspace=house.workspace)
    async with Runtime(house.home, agents=[agent]) as rt:
        await rt.answer(await rt.send("ops", "Build it."))
        (wait,) = await rt._here.engine.store.open_waits("ops")
        house.say_go()
        (row,) = await house.until_over()
        assert wait.resource == row.task_id
        await rt.settled()
        assert await rt._here.engine.store.open_waits("ops") == []
        assert (await rt.answer(await rt.send("ops", "Again."))).output == "told"
        assert f"'{row.task_id}' is not one of your running tasks; running are: none." in heard[-1]
        assert await rt._here.engine.store.open_waits("ops") == [], "nobody waits for what has been told"


@pytest.mark.spec("HOL-FAIL-05", "HOL-WTOOL-17")
async def test_reading_a_failed_task_shows_its_failure_and_waits_for_nothing_durable(house: House) -> None:
    def reply(request: ModelRequest) -> Any:
        results = [json.loads(item.text) for item in request.history if item.role == "tool"]
        if not results:
            return begins("while [ ! -e go ]; do sleep 0.01; done; echo broken >&2; exit 3")
        house.say_go()  # it is a task
        if len(results) == 1:
            task = results[0]["task_handle"]["task_id"]
            return calls("task_output", task_id=task, block=True, timeout_ms=60_000)
        found.append(results[1])
        return "seen"

    found: list[Any] = []
    agent = Agent("ops", scripted(reply), workspace=house.workspace, work_items=True)
    async with Runtime(house.home, agents=[agent]) as rt:
        await rt.answer(await rt.send("ops", "Run it, and look at it."))
        await rt.settled()
        (read,) = found[:1]
        assert (read["retrieval_status"], read["task"]["status"], read["task"]["exit_status"]) == (
            "success",
            "failed",
            3,
        )
        assert read["task"]["failure_artifact"]["exit_status"] == 3
        kinds = {entry.fact.event.kind for entry in await rt._here.engine.store.read("ops")}
        assert not kinds & {"wait.created", "work_item.blocker_changed", "work_item.updated"}
        assert await rt._here.engine.store.open_waits("ops") == []


async def test_output_is_kept_until_its_agent_was_told_and_says_when_it_has_expired(house: House) -> None:
    replies = begins(f"seq 1 3000; {WAITS}"), "begun"
    async with house.runtime(*replies) as rt:
        assert (await rt.answer(await rt.send("ops", "Begin."))).output == "begun"
        await rt.pause("ops")
        house.say_go()
        (row,) = await house.until_over()
    folder = Path(str(row.recovered.folder))  # type: ignore[union-attr]
    store, clock = await SqliteStore.open(str(house.path)), FixedClock()
    clock.advance(row.ended_at / 1e6 + 8 * 86_400 - clock.now() / 1e6)  # type: ignore[operator]
    held = await compact_store(store, clock, Retention())
    assert (held.tasks, folder.is_dir()) == (0, True), "its agent has not read how it ended"
    await store.close()
    async with house.runtime() as rt:
        await rt.resume("ops")
        await rt.settled()
        assert house.heard[-1].count("told") == 0 and "task_output shows them" in house.heard[-1]
    store = await SqliteStore.open(str(house.path))
    gone = await compact_store(store, clock, Retention())
    assert (gone.tasks, folder.is_dir()) == (1, False)
    await store.close()
    async with house.runtime() as rt:
        shown = await rt.task_output(row.task_id)
        assert (shown.retrieval_status, shown.output_expired) == ("success", True)
        assert shown.output.startswith("1\n2\n")
